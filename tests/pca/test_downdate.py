"""Errors of rows that were left out of a fit, against fits that leave them out."""

import numpy as np
import pytest

from gnomon import PCA, samples
from gnomon.pca.downdate import held_out_errors

rng = np.random.default_rng(19)
TABLES = {
    "wide": (rng.standard_normal((50, 200)), 5),
    "wide with components": (rng.standard_normal((50, 200)) * np.r_[9, 7, 5, np.ones(197)], 3),
    "flat": (rng.standard_normal((120, 40)), 12),
    "steep": (rng.standard_normal((60, 10)) * 0.7 ** np.arange(10), 3),
    "few rows": (rng.standard_normal((12, 30)), 8),
    "as many components as rows": (rng.standard_normal((12, 30)), 12),
    "heavy tails": (rng.standard_t(3, (100, 40)), 5),
    "wine": (samples.load("wine").X, 3),
    "digits": (samples.load("digits").X[:200], 20),
}


def refitted(X, k, weights=None):
    """The squared error of every row under a fit of all the others."""
    weights = np.ones(len(X)) if weights is None else weights
    errors = []
    for i, row in enumerate(X):
        left = np.where(np.arange(len(X)) == i, np.maximum(weights - 1, 0), weights)
        model = PCA(min(k, np.count_nonzero(left) - 1), solver="svd").fit(X, sample_weight=left)
        errors.append(model.prediction_error(row[None])[0])
    return np.array(errors)


@pytest.mark.parametrize("name", TABLES)
def test_rows_left_out_have_the_errors_of_fits_without_them(name):
    X, k = TABLES[name]
    model = PCA(k).fit(X)
    found, true = model.held_out_error(X), refitted(X, k)
    assert np.median(np.abs(found / true - 1)) < 0.04
    for level in (0.5, 0.9, 0.95, 0.99):
        assert np.quantile(found, level) == pytest.approx(np.quantile(true, level), rel=0.04)
    # the fit's own errors are too small to stand for those of new rows
    assert model.prediction_error(X).mean() < 0.97 * true.mean()


@pytest.mark.parametrize("name", TABLES)
def test_with_all_scores_at_hand_nothing_is_approximate(name):
    X, k = TABLES[name]
    n, model = len(X), PCA(solver="svd").fit(X)
    r = model.rank_
    found = held_out_errors(
        model.transform(X)[:, :r],
        np.zeros(n),
        model.explained_variance_[:r],
        np.zeros(0),
        weight=n,
        divisor=n - 1,
        rank=min(k, n - 2),
    )
    np.testing.assert_allclose(found, refitted(X, min(k, n - 2)), rtol=1e-6)


@pytest.mark.parametrize("tied", [False, True])
def test_rows_with_scores_of_zero_have_the_errors_of_an_eigendecomposition(tied):
    """A row that is 0 along most components, and one that has most of the variance of its own."""
    rng, n = np.random.default_rng(4), 50.0
    for _ in range(200):
        d = int(rng.integers(3, 9))
        k = int(rng.integers(1, d))
        variances = np.sort(rng.uniform(0.1, 5, d))[::-1]
        if tied:
            variances[rng.integers(1, d) :] = variances[-1]
        row = rng.normal(size=d) * (rng.random(d) < 0.5)
        most = np.sqrt(n / (n - 1) * (row**2 / ((n - 1) * variances)).sum())
        row *= rng.choice([0.5, 0.95, 0.999]) / (most or 1.0)
        others = np.diag((n - 1) * variances) - n / (n - 1) * np.outer(row, row)
        values, vectors = np.linalg.eigh(others)
        if values[d - k] - values[d - k - 1] < 1e-6:
            continue  # the space of the last components is not determined
        found = held_out_errors(
            row[None], np.zeros(1), variances, np.zeros(0), weight=n, divisor=n - 1, rank=k
        )
        true = (n / (n - 1)) ** 2 * ((vectors[:, : d - k].T @ row) ** 2).sum()
        assert found[0] == pytest.approx(true, rel=1e-8, abs=1e-9)


def test_of_a_row_that_counts_more_than_once_one_copy_is_left_out():
    X, k = TABLES["steep"]
    weights = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    found = PCA(k).fit(X, sample_weight=weights).held_out_error(X, sample_weight=weights)
    true = refitted(X, k, weights)
    np.testing.assert_allclose(np.median(found / true), 1, atol=0.02)
    every = PCA(k).fit(np.repeat(X, weights.astype(int), axis=0)).held_out_error(X)
    np.testing.assert_allclose(found, every, rtol=1e-9)


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
def test_every_solver_knows_what_rows_left_out_would_show(solver):
    X, k = TABLES["wide with components"]
    exact = PCA(k, solver="svd").fit(X).held_out_error(X)
    found = PCA(k, solver=solver).fit(X).held_out_error(X)
    np.testing.assert_allclose(found, exact, rtol=0.02)


@pytest.mark.parametrize("power", [-600, 600])
def test_the_units_of_the_table_do_not_matter(power):
    X, k = TABLES["steep"]
    scaled = PCA(k, standardize=True).fit(np.ldexp(X, power)).held_out_error(np.ldexp(X, power))
    plain = PCA(k, standardize=True).fit(X).held_out_error(X)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)


def test_errors_in_chunks_are_those_of_one(monkeypatch):
    X, k = TABLES["flat"]
    whole = PCA(k).fit(X).held_out_error(X)
    monkeypatch.setattr("gnomon.pca.downdate.CHUNK_NUMBERS", 1000)
    np.testing.assert_array_equal(PCA(k).fit(X).held_out_error(X), whole)


@pytest.mark.parametrize("name", ["heavy tails", "digits", "wide with components"])
def test_a_row_has_the_same_bits_in_any_company(name):
    """The search for roots ends for each row by itself."""
    X, k = TABLES[name]
    model = PCA(k).fit(X)
    alone = [model.held_out_error(row[None])[0] for row in X]
    np.testing.assert_array_equal(model.held_out_error(X), alone)


def test_threads_do_not_change_the_bits():
    X = np.random.default_rng(3).standard_t(2, (3000, 60))
    one, two, four = (PCA(20, n_jobs=jobs).fit(X).held_out_error(X) for jobs in (1, 2, 4))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, four)


def test_nothing_is_beyond_components_that_hold_every_direction():
    X = TABLES["steep"][0]
    assert not PCA().fit(X).held_out_error(X).any()
