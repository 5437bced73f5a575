"""Against vegan and SciPy, whose results are kept in `tests/references`.

vegan's procrustes(X, Y) and SciPy's spatial.procrustes(a, b) move their second argument onto the
first; ours moves X onto Y.
"""

import json

import numpy as np
import pytest
from references.tables import HERE, read
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

from gnomon import Procrustes

SCIPY = json.loads((HERE / "scipy_procrustes.json").read_text())
# vegan's tables are printed with 16 digits, and R is about 1e-16 · cond away
DIGITS = 1e-12


def vegan(scale, symmetric):
    name = f"vegan_vare_scale{'TRUE' if scale else 'FALSE'}_sym{'TRUE' if symmetric else 'FALSE'}"
    parts = {key: read(f"{name}_{key}")[2] for key in ("Yrot", "Xout", "rotation")}
    _, columns, values = read(f"{name}_summary")
    return parts, dict(zip(columns, values[0], strict=True))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_all_four_choices_of_vegan_are_reproduced(scale, symmetric):
    parts, summary = vegan(scale, symmetric)
    X, Y = read("vegan_vare_inputX")[2], read("vegan_vare_inputY")[2]
    if symmetric:  # vegan first divides both centred sets by their norms
        X, Y = (Z - Z.mean(axis=0) for Z in (X, Y))
        X, Y = X / np.linalg.norm(X), Y / np.linalg.norm(Y)
    model = Procrustes(scaling=scale).fit(Y, X)
    assert np.allclose(model.rotation_, parts["rotation"], atol=DIGITS)
    assert model.scale_ == pytest.approx(summary["scale"], rel=DIGITS)
    assert model.residual_sum_ == pytest.approx(summary["ss"], rel=DIGITS)
    # vegan's Yrot is centred, before the translation is added
    assert np.allclose(model.transform(Y) - X.mean(axis=0), parts["Yrot"], atol=DIGITS)
    expected = [summary["tr1"], summary["tr2"]]
    assert np.allclose(model.translation_, expected, atol=DIGITS)
    norms = np.linalg.norm(Y - Y.mean(axis=0)) * np.linalg.norm(X - X.mean(axis=0))
    sigma = [summary["svd.1"], summary["svd.2"]]
    assert np.allclose(model.singular_values_ * norms, sigma, rtol=DIGITS)
    assert np.allclose(
        model.residuals_, np.linalg.norm(parts["Yrot"] - parts["Xout"], axis=1), atol=DIGITS
    )


def test_the_disparity_is_vegans_symmetric_one():
    X, Y = read("vegan_vare_inputX")[2], read("vegan_vare_inputY")[2]
    expected = vegan(True, True)[1]["ss"]
    for scaling in (False, True, "norm-ratio"):
        assert Procrustes(scaling=scaling).fit(Y, X).disparity_ == pytest.approx(
            expected, rel=DIGITS
        )


def test_scipys_stretched_square_is_reproduced():
    case = SCIPY["stretched"]
    A, B = np.array(case["A"]), np.array(case["B"])
    model = Procrustes(scaling=True).fit(A, B)
    assert np.allclose(model.transform(A), case["B_approx"], atol=1e-10)
    assert model.disparity_ == pytest.approx(case["disparity"], rel=1e-12)
    assert Procrustes(scaling=True).fit(B, A).disparity_ == pytest.approx(case["disparity"])


@pytest.mark.parametrize("name", ["exact", "L_shape"])
def test_scipys_equal_shapes_have_no_disparity(name):
    A, B = np.array(SCIPY[name]["A"]), np.array(SCIPY[name]["B"])
    model = Procrustes(scaling=True).fit(A, B)
    assert model.disparity_ < 1e-28
    assert np.allclose(model.transform(A), B, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_scipy_finds_the_same_map(d):
    random = np.random.default_rng(d)
    X, Y = random.normal(size=(50, d)), random.normal(size=(50, d))
    R, total = orthogonal_procrustes(X, Y)
    model = Procrustes(centering=False).fit(X, Y)
    assert np.allclose(model.rotation_, R, atol=1e-12)
    norms = np.linalg.norm(X) * np.linalg.norm(Y)
    assert model.singular_values_.sum() * norms == pytest.approx(total)
    _, moved, disparity = procrustes(Y, X)
    both = Procrustes(scaling=True).fit(X, Y)
    assert both.disparity_ == pytest.approx(disparity)
    y = Y - Y.mean(axis=0)
    assert np.allclose((both.transform(X) - Y.mean(axis=0)) / np.linalg.norm(y), moved, atol=1e-12)
