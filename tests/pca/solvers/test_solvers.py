"""All solvers, against each other, scikit-learn and R."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from references.tables import read
from sklearn import decomposition

from gnomon import PCA, samples

SOLVERS = ["covariance", "gram", "svd", "deflation", "krylov"]
SAMPLES = ["iris", "wine", "breast-cancer", "digits", "house-prices"]


def same_up_to_sign(a, b, tolerance):
    """Rows of `a` and `b` agree up to sign, to `tolerance` of each row's norm."""
    norms = np.linalg.norm(b, axis=1)
    gap = np.minimum(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))
    assert (gap <= tolerance * norms).all(), (gap / norms).max()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_solver_agrees_with_scikit_learns_full_svd_on_every_sample(solver, name):
    X = samples.load(name).X
    k = {"digits": 20, "breast-cancer": 5, "house-prices": 1}.get(name, 4)
    ours = PCA(k, solver=solver, tol=1e-13).fit(X)
    theirs = decomposition.PCA(k, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9
    )
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12, atol=1e-12)
    scale = ours.total_variance_
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, atol=1e-12 * scale)
    same_up_to_sign(ours.components_, theirs.components_, 1e-7)
    same_up_to_sign(ours.transform(X).T, theirs.transform(X).T, 1e-7)


@pytest.mark.parametrize("shape", [(60, 25), (25, 60), (40, 40), (200, 3), (3, 200)])
@pytest.mark.parametrize("standardize", [False, True])
def test_solvers_agree_with_each_other_for_every_shape(shape, standardize):
    X = np.random.default_rng(1).standard_normal(shape) * np.geomspace(1, 5, shape[1]) + 7
    k = min(shape) - 1
    models = [PCA(k, solver=s, standardize=standardize, tol=1e-13).fit(X) for s in SOLVERS]
    for model in models[1:]:
        np.testing.assert_allclose(
            model.explained_variance_, models[0].explained_variance_, rtol=1e-9
        )
        # the same signs too, not only up to sign
        np.testing.assert_allclose(model.components_, models[0].components_, atol=1e-6)
        assert model.solver_ in SOLVERS


@pytest.mark.parametrize("solver", SOLVERS)
def test_tied_components_are_the_same_from_every_solver(solver):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((40, 6))
    base = np.linalg.qr(base - base.mean(axis=0))[0] * [5.0, 2.0, 2.0, 2.0, 1.0, 0.5]
    X = base @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    model = PCA(5, solver=solver, tol=1e-13).fit(X)
    assert model.certificate_.inseparable == ((2, 3, 4),)
    np.testing.assert_allclose(model.components_, PCA(5).fit(X[::-1]).components_, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_tables_give_the_float64_answer_to_float32_precision(solver):
    X = samples.load("digits").X
    exact = PCA(8).fit(X)
    model = PCA(8, solver=solver).fit(X.astype(np.float32))
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-4)
    assert model.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_components_of_a_rank_deficient_table_are_orthonormal(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 12))
    for table in (X, X.T.copy()):
        model = PCA(solver=solver).fit(table)
        k = min(table.shape)
        assert model.components_.shape == (k, table.shape[1])
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(k), atol=1e-10)
        assert model.rank_ == 4
        assert (model.explained_variance_[4:] < 1e-12 * model.explained_variance_[0]).all()
        restored = model.inverse_transform(model.transform(table))
        np.testing.assert_allclose(restored, table, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_tables_give_the_dense_answer(solver, make):
    rng = np.random.default_rng(2)
    dense = rng.poisson(0.3, (120, 30)) * rng.uniform(1, 3, 30)
    model = PCA(5, solver=solver, tol=1e-13).fit(make(dense))
    exact = PCA(5, solver="svd").fit(dense)
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-6)
    np.testing.assert_allclose(model.transform(make(dense)), exact.transform(dense), atol=1e-6)


@given(
    st.integers(2, 30),
    st.integers(1, 30),
    st.integers(0, 2**31),
    st.sampled_from(SOLVERS),
    st.booleans(),
)
def test_the_certificate_holds_for_any_table(n, d, seed, solver, weighted):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 10 * rng.standard_normal(d)
    weights = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    model = PCA(solver=solver, ddof=0).fit(X, sample_weight=weights)
    mean = weights @ X / weights.sum()
    sigma = (X - mean).T @ ((X - mean) * weights[:, None]) / weights.sum()
    V, values = model.components_.T, model.explained_variance_
    residual = np.linalg.norm(sigma @ V - V * values, axis=0).max()
    top = max(np.linalg.eigvalsh(sigma)[-1], 1e-300)
    assert residual <= 1e-9 * top
    assert np.abs(V.T @ V - np.eye(V.shape[1])).max() < 1e-9
    assert model.certificate_.converged


CASES = [
    ("usarrests", "prcomp_usarrests_scaled", True),
    ("usarrests", "prcomp_usarrests_unscaled", False),
    ("iris", "prcomp_iris_unscaled", False),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("table", "reference", "standardize"), CASES)
def test_agrees_with_prcomp_to_1e_8_of_each_columns_norm(solver, table, reference, standardize):
    _, _, data = read(table)
    _, _, rotation = read(f"{reference}_rotation")
    _, _, scores = read(f"{reference}_scores")
    _, _, importance = read(f"{reference}_importance")
    X = data[:, : rotation.shape[0]].astype(float)
    model = PCA(solver=solver, standardize=standardize, tol=1e-13).fit(X)
    np.testing.assert_allclose(np.sqrt(model.explained_variance_), importance[:, 0], rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, importance[:, 2], atol=5.1e-6)
    same_up_to_sign(model.components_, rotation.T, 1e-8)
    same_up_to_sign(model.transform(X).T, scores.T, 1e-8)


REFERENCE = json.loads(
    (Path(__file__).parents[2] / "references/sklearn_pca_tables.json").read_text()
)


@pytest.mark.parametrize("name", ["iris", "digits", "wine"])
def test_agrees_with_scikit_learns_stored_results(name):
    expected = REFERENCE[name]
    X = samples.load(name).X
    assert X.shape == (expected["n"], expected["d"])
    model = PCA(expected["k"]).fit(X)
    for ours, theirs in (
        (model.explained_variance_, "explained_variance"),
        (model.explained_variance_ratio_, "explained_variance_ratio"),
        (model.singular_values_, "singular_values"),
        (model.noise_variance_, "noise_variance"),
        (model.score(X), "mean_log_likelihood"),
    ):
        np.testing.assert_allclose(ours, expected[theirs], rtol=1e-8)
    np.testing.assert_allclose(
        np.abs(model.components_[:3]), expected["components_abs_first3"], atol=1e-8
    )
