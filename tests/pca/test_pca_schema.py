import children
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from models.same import assert_same, there_and_back

from gnomon import PCA, samples

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12)) @ RNG.standard_normal((12, 12)) + 5
NEW = RNG.standard_normal((9, 12)) * 3
HOLES = np.where(RNG.random(X.shape) < 0.05, np.nan, X)

MODELS = {
    "covariance": lambda: PCA(3).fit(X),
    "gram": lambda: PCA(3, solver="gram").fit(X[:8]),
    "svd": lambda: PCA(3, solver="svd").fit(X),
    "deflation": lambda: PCA(3, solver="deflation").fit(X),
    "krylov": lambda: PCA(3, solver="krylov").fit(X),
    "float32": lambda: PCA(3).fit(X.astype(np.float32)),
    "integers": lambda: PCA(3).fit((X * 100).astype(np.int64) + 2**60),
    "booleans": lambda: PCA(3).fit(X > 5),
    "whitened": lambda: PCA(3, whiten=True).fit(X),
    "standardised": lambda: PCA(0.9, standardize=True).fit(X),
    "weighted": lambda: PCA(
        3, feature_weight=np.arange(1.0, 13.0), random_state=np.random.default_rng(7)
    ).fit(X, sample_weight=np.arange(80.0)),
    "fractions as weights": lambda: PCA(3, n_jobs=-2).fit(X, sample_weight=np.arange(80) / 7),
    "filled in": lambda: PCA(3, missing="em").fit(HOLES),
    "sparse": lambda: PCA(3).fit(sp.random_array((90, 12), density=0.3, rng=0, format="csr")),
    "huge numbers": lambda: PCA(3).fit(X * 1e200),
    "tiny numbers": lambda: PCA(3).fit(X * 1e-200),
    "by a rule": lambda: PCA("parallel", random_state=np.random.RandomState(3)).fit(X),
    "dataframe": lambda: PCA(3).fit(pd.DataFrame(X, columns=[f"Größe {i}" for i in range(12)])),
    "partial_fit, solved": lambda: solved(PCA(3).partial_fit(X[:30]).partial_fit(X[30:])),
    "partial_fit, not solved": lambda: PCA(3).partial_fit(X[:30]).partial_fit(X[30:]),
    "merged": lambda: PCA(3).fit(X[:40]).merge(PCA(3).fit(X[40:])),
}


def solved(pca):
    _ = pca.components_
    return pca


@pytest.mark.parametrize("name", MODELS)
def test_every_attribute_comes_back_with_the_same_bits(tmp_path, name):
    pca = MODELS[name]()
    assert_same(pca, there_and_back(pca, tmp_path))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_transforms_to_the_same_bits(tmp_path, name):
    pca = MODELS[name]()
    new = NEW
    if name == "dataframe":
        new = pd.DataFrame(NEW, columns=pca.feature_names_in_)
    elif name == "filled in":
        new = NEW.copy()
        new[2, 3] = new[5, :4] = np.nan
    loaded = there_and_back(pca, tmp_path)
    scores = pca.transform(new)
    assert loaded.transform(new).tobytes() == scores.tobytes()
    assert loaded.inverse_transform(scores).tobytes() == pca.inverse_transform(scores).tobytes()
    assert str(loaded.certificate_) == str(pca.certificate_)
    assert str(loaded.plan_) == str(pca.plan_)
    assert repr(loaded) == repr(pca) or "random_state" in repr(pca)


@pytest.mark.parametrize("name", ["covariance", "partial_fit, not solved", "merged", "float32"])
def test_a_loaded_model_goes_on_learning_with_the_same_bits(tmp_path, name):
    pca = MODELS[name]()
    loaded = there_and_back(pca, tmp_path)
    more = PCA(3, solver="covariance").fit(NEW)
    together = loaded.merge(more), pca.merge(more)
    assert_same(*map(solved, together))
    assert_same(solved(loaded.partial_fit(NEW)), solved(pca.partial_fit(NEW)))


def test_columns_are_checked_by_name_after_loading(tmp_path):
    pca = MODELS["dataframe"]()
    loaded = there_and_back(pca, tmp_path)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(pd.DataFrame(NEW, columns=[f"other {i}" for i in range(12)]))


def test_the_output_that_was_asked_for_is_remembered(tmp_path):
    pca = PCA(3).set_output(transform="pandas").fit(X)
    loaded = there_and_back(pca, tmp_path)
    pd.testing.assert_frame_equal(loaded.transform(NEW), pca.transform(NEW))


def test_an_unfitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        PCA(2).save(tmp_path / "m.gnomon")
    assert not any(tmp_path.iterdir())


def test_callbacks_stay_behind(tmp_path):
    class Silent:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, **_): ...

    pca = PCA(2, solver="krylov").set_callbacks(Silent()).fit(X)
    loaded = there_and_back(pca, tmp_path)
    assert not getattr(loaded, "_skl_callbacks", [])
    assert loaded.transform(NEW).tobytes() == pca.transform(NEW).tobytes()


def test_parameters_may_be_lists_and_columns_of_dataframes(tmp_path):
    weights = np.arange(1.0, 13.0)
    for given in (weights.tolist(), tuple(weights), pd.Series(weights)):
        pca = PCA(np.int64(3), feature_weight=given).fit(X)
        loaded = there_and_back(pca, tmp_path)
        assert type(loaded.n_components) is np.int64
        assert loaded.fit(X).transform(NEW).tobytes() == pca.transform(NEW).tobytes()


def test_a_real_table_in_a_new_process_gives_the_same_bits(tmp_path):
    table = samples.load("wine").X
    pca = PCA(4, standardize=True).fit(table)
    pca.save(tmp_path / "m.gnomon")
    code = (
        "import sys, gnomon, hashlib\n"
        "scores = gnomon.load(sys.argv[1]).transform(gnomon.samples.load('wine').X)\n"
        "print(hashlib.sha256(scores.tobytes()).hexdigest())"
    )
    done = children.run(["-c", tmp_path / "m.gnomon"], code=code)
    import hashlib

    assert done.stdout.strip() == hashlib.sha256(pca.transform(table).tobytes()).hexdigest()
