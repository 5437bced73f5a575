import numpy as np
import pandas as pd
import pytest
from models.same import assert_same, there_and_back

from gnomon import Procrustes

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4)) + 3
TURN = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
Y = 2 * X @ TURN + [1.0, 2.0, 3.0, 4.0] + 0.01 * RNG.standard_normal((60, 4))
NEW = RNG.standard_normal((7, 4))

MODELS = {
    "plain": lambda: Procrustes().fit(X, Y),
    "scaled": lambda: Procrustes(scaling=True).fit(X, Y),
    "norm ratio": lambda: Procrustes(scaling="norm-ratio", reflection="forbid").fit(X, Y),
    "about the origin": lambda: Procrustes(centering=False).fit(X, Y),
    "robust": lambda: Procrustes(scaling=True, robust="tukey").fit(X, moved(Y)),
    "weighted": lambda: Procrustes().fit(X, Y, sample_weight=np.arange(60.0)),
    "fractions as weights": lambda: Procrustes(n_jobs=-2).fit(
        X, Y, sample_weight=np.arange(60) / 7
    ),
    "float32": lambda: Procrustes().fit(X.astype(np.float32), Y.astype(np.float32)),
    "integers": lambda: Procrustes().fit((X * 9).astype(int), (Y * 9).astype(int)),
    "narrower": lambda: Procrustes().fit(X[:, :4], Y[:, :2]),
    "wider": lambda: Procrustes().fit(X[:, :2], Y),
    "prior": lambda: Procrustes(prior=TURN).fit(X, Y),
    "in the plane": lambda: Procrustes(scaling=True).fit(X[:, :2], Y[:, :2]),
    "huge numbers": lambda: Procrustes(scaling=True).fit(X * 1e200, Y * 1e-200),
    "dataframe": lambda: Procrustes().fit(pd.DataFrame(X, columns=list("abcd")), Y),
    "partial_fit, solved": lambda: solved(Procrustes().partial_fit(X[:9], Y[:9])),
    "partial_fit, not solved": lambda: Procrustes().partial_fit(X[:9], Y[:9]),
    "merged": lambda: Procrustes().fit(X[:9], Y[:9]).merge(Procrustes().fit(X[9:], Y[9:])),
}


def moved(table):
    table = table.copy()
    table[:5] += 50
    return table


def solved(model):
    _ = model.rotation_
    return model


@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_comes_back_with_the_same_bits(tmp_path, name):
    model = MODELS[name]()
    assert_same(model, there_and_back(model, tmp_path))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_carries_rows_to_the_same_bits(tmp_path, name):
    model = MODELS[name]()
    loaded = there_and_back(model, tmp_path)
    new = NEW[:, : model.n_features_in_]
    if name == "dataframe":
        new = pd.DataFrame(new, columns=list("abcd"))
    there = model.transform(new)
    assert loaded.transform(new).tobytes() == there.tobytes()
    assert loaded.inverse_transform(there).tobytes() == model.inverse_transform(there).tobytes()
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.disparity_ == model.disparity_


@pytest.mark.parametrize("name", ["plain", "partial_fit, not solved", "merged", "float32"])
def test_a_loaded_model_goes_on_learning_with_the_same_bits(tmp_path, name):
    model = MODELS[name]()
    loaded = there_and_back(model, tmp_path)
    more = Procrustes().fit(X[20:], Y[20:])
    assert_same(solved(loaded.merge(more)), solved(model.merge(more)))
    assert_same(solved(loaded.partial_fit(X, Y)), solved(model.partial_fit(X, Y)))


def test_what_a_robust_fit_refuses_it_refuses_after_loading(tmp_path):
    loaded = there_and_back(MODELS["robust"](), tmp_path)
    with pytest.raises(ValueError, match="robust"):
        loaded.partial_fit(X, Y)
    assert (loaded.weights_[:5] < 0.1).all()
