import json
from pathlib import Path

import numpy as np
import pytest
from pca.tables import correlated
from references.tables import HERE
from scipy import stats
from sklearn import datasets, decomposition

from gnomon.errors import DataWarning, UnavailableError
from gnomon.pca import PCA


@pytest.mark.parametrize("k", [1, 3, 6])
def test_likelihood_covariance_and_precision_are_scikit_learns(k):
    X = correlated()
    ours, theirs = PCA(k).fit(X), decomposition.PCA(k, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-9)
    np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["iris", "digits", "wine"])
def test_the_mean_likelihood_is_the_one_kept_from_scikit_learn(name):
    want = json.loads((Path(HERE) / "sklearn_pca_tables.json").read_text(encoding="utf-8"))[name]
    X = getattr(datasets, f"load_{name}")().data
    model = PCA(want["k"]).fit(X)
    assert model.score(X) == pytest.approx(want["mean_log_likelihood"], rel=1e-9)
    assert model.noise_variance_ == pytest.approx(want["noise_variance"], rel=1e-9)


@pytest.mark.parametrize("options", [{"standardize": True}, {"feature_weight": np.arange(1.0, 7)}])
def test_likelihood_of_scaled_columns_is_a_density_in_the_tables_units(options):
    X = correlated()
    model = PCA(3, whiten=True, **options).fit(X)
    normal = stats.multivariate_normal(X.mean(axis=0), model.get_covariance())
    np.testing.assert_allclose(model.score_samples(X), normal.logpdf(X), rtol=1e-9)
    np.testing.assert_allclose(
        model.get_precision() @ model.get_covariance(), np.eye(6), atol=1e-10
    )


def test_with_all_components_the_covariance_is_that_of_the_rows():
    X = correlated()
    for options in ({}, {"standardize": True}, {"feature_weight": np.arange(1.0, 7)}):
        np.testing.assert_allclose(PCA(**options).fit(X).get_covariance(), np.cov(X.T), rtol=1e-9)


def test_the_likelihood_follows_the_unit():
    X = correlated()
    ours = PCA(2).fit(np.ldexp(X, 700)).score_samples(np.ldexp(X, 700))
    want = PCA(2).fit(X).score_samples(X) - 6 * 700 * np.log(2)
    np.testing.assert_allclose(ours, want, rtol=1e-12)


@pytest.mark.parametrize("exponent", [700, -1050])
@pytest.mark.parametrize("standardize", [False, True])
def test_covariances_beyond_floating_point_are_infinite_or_zero_without_a_warning(
    exponent, standardize
):
    X = np.ldexp(correlated(), exponent)
    model = PCA(2, standardize=standardize).fit(X)
    large, small = model.get_covariance(), model.get_precision()
    large, small = (large, small) if exponent > 0 else (small, large)
    assert np.isinf(large).all()
    np.testing.assert_array_equal(small, 0)


def test_a_variance_of_zero_is_taken_as_what_rounding_may_hide():
    X = correlated()[:5]  # five rows of six columns have four variances
    model = PCA().fit(X)
    with pytest.warns(DataWarning, match="2 of 6 directions have no variance beyond rounding"):
        found = model.score_samples(X)
    kept, axes = np.linalg.eigh(np.cov(X.T))
    kept[:2] = np.finfo(np.float64).eps * 6 * kept[-1]
    scores = (X - X.mean(axis=0)) @ axes[:, 2:]  # there is nothing beside these four
    want = stats.norm.logpdf(scores, scale=np.sqrt(kept[2:])).sum(axis=1)
    want += 2 * stats.norm.logpdf(0.0, scale=np.sqrt(kept[0]))
    # what is left of rounding beside them, divided by what rounding may hide
    np.testing.assert_allclose(found, want, atol=0.5)


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"whiten": True}])
def test_with_all_components_the_likelihood_needs_no_noise(options):
    X = correlated()
    model = PCA(**options).fit(X)
    assert model.noise_variance_ == 0
    want = stats.multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), want, rtol=1e-9)
    assert model.score(X) == pytest.approx(decomposition.PCA().fit(X).score(X), rel=1e-9)


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
def test_with_all_components_directions_without_variance_get_that_of_rounding(solver):
    X = correlated(d=4)
    X = np.column_stack([X, X[:, 0] - X[:, 1], X[:, 2] + X[:, 3]])
    model = PCA(solver=solver).fit(X)
    with pytest.warns(DataWarning, match="2 of 6 directions"):
        found = model.score_samples(X)
    along = model.components_[:4]
    rounding = np.finfo(float).eps * 6 * model.explained_variance_[0]
    want = stats.multivariate_normal(np.zeros(4), np.diag(model.explained_variance_[:4]))
    # two more normal densities, at their middle
    at_rest = -np.log(2 * np.pi * rounding)
    np.testing.assert_allclose(found, want.logpdf((X - X.mean(axis=0)) @ along.T) + at_rest)
    with pytest.warns(DataWarning, match="2 of 6 directions"):
        assert model.score_samples(X + np.eye(6)[4]).max() < found.min()


@pytest.mark.filterwarnings("ignore:All rows are the same")
def test_rows_that_are_all_the_same_have_no_likelihood():
    X = np.ones((5, 3))
    with pytest.raises(UnavailableError, match="all rows of the fitted table"):
        PCA().fit(X).score(X)
