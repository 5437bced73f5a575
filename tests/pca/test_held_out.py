"""Residuals of rows held out, against components computed anew without them, and new rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom

from gnomon import PCA
from gnomon.moments import Moments
from gnomon.pca.held_out import choose_folds, held_out_residuals

SEED = 20260417


def noise(rng, n):
    return rng.standard_normal((n, 60))


def spiked(rng, n):
    """Ten strong directions, steep, in noise; the same for every call."""
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((120, 10)))[0]
    return (rng.standard_normal((n, 10)) * np.linspace(12, 3, 10)) @ directions.T + (
        rng.standard_normal((n, 120))
    )


def heavy(rng, n):
    return rng.standard_t(2, (n, 60))


def skewed(rng, n):
    return rng.gamma(0.4, size=(n, 80)) + rng.gamma(0.4, size=(n, 1))


def wide(rng, n):
    """More columns than rows."""
    return rng.standard_normal((n, 8)) @ np.random.default_rng(1).standard_normal((8, 900)) + (
        2 * rng.standard_normal((n, 900))
    )


KINDS = {
    "noise": (noise, 600, 20),
    "spiked": (spiked, 500, 15),
    "heavy": (heavy, 900, 20),
    "skewed": (skewed, 900, 25),
    "wide": (wide, 150, 30),
}


def anew(X, folds, k, weights=None):
    """The truth: components of the moments of all rows minus those of the fold, by NumPy."""
    found, everything = [], Moments.of(X, weights)
    for fold in folds:
        w = None if weights is None else weights[fold]
        others = everything - Moments.of(X[fold], w)
        W = np.linalg.eigh(others.covariance())[1][:, ::-1][:, : min(k, others.n - 1)]
        Z = X[fold] - others.mean
        found.append(((Z - Z @ W @ W.T) ** 2).sum(axis=1))
    return np.concatenate(found)


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_rows_have_the_residuals_of_components_computed_without_them(kind):
    make, n, k = KINDS[kind]
    X = make(np.random.default_rng(SEED), n)
    model, folds = PCA(k).fit(X), choose_folds(n, X.shape[1], n, 0)
    rows = np.concatenate(folds)
    assert np.array_equal(np.sort(rows), np.arange(n))
    found, truth = held_out_residuals(model, X, folds), anew(X, folds, k)
    # Where the spectrum is flat the components, and with them single rows, may differ; their
    # distribution does not. Of heavy tails a third of the components are dropped with the rows that
    # made them, and others would have taken their places.
    if kind in ("spiked", "wide"):
        np.testing.assert_allclose(np.sqrt(found), np.sqrt(truth), rtol=0.1)
    near = 0.2 if kind == "heavy" else 0.04
    for share in (0.1, 0.5, 0.9, 0.99):
        assert np.quantile(found, share) == pytest.approx(np.quantile(truth, share), rel=near)
    fitted = model.prediction_error(X[rows])  # what the guard is for: these are smaller
    assert np.quantile(fitted, 0.99) < 0.985 * np.quantile(truth, 0.99)


@pytest.mark.parametrize("n", [9, 30])
def test_components_that_hold_all_rows_are_left_with_the_span_of_the_others(n):
    """Exactly: directions that the others do not have are rounding, and dropped."""
    X = np.random.default_rng(n).standard_normal((n, 200))
    folds = choose_folds(n, 200, n, 0)
    found = held_out_residuals(PCA(n).fit(X), X, folds)
    np.testing.assert_allclose(found, anew(X, folds, n), rtol=1e-8)


@pytest.mark.rounds(test=6, soak=40, long=400)
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_new_rows_as_asked_for_lie_beyond_the_limit_of_held_out_rows(kind, rounds):
    """Over many tables; each limit is itself a quantile of a few hundred rows."""
    make, n, k = KINDS[kind]
    alpha, new, beyond, fitted = 0.05, 400, [], []
    for seed in range(rounds):
        rng = np.random.default_rng([SEED, seed])
        X, others = make(rng, n), make(rng, new)
        model, folds = PCA(k).fit(X), choose_folds(n, X.shape[1], n, seed)
        held = np.sort(held_out_residuals(model, X, folds))
        errors = model.prediction_error(others)
        at = int(np.ceil((held.size + 1) * (1 - alpha))) - 1
        beyond.append(np.count_nonzero(errors > held[at]))
        fitted.append(np.count_nonzero(errors > np.quantile(model.prediction_error(X), 1 - alpha)))
    # Of the limit: binomial of its table's rows; of the rows beyond: of the new ones. What folds
    # of a third leave out of the components may make the share 0.6 to 1.4 of what was asked for.
    total = rounds * new
    spread = np.sqrt(alpha * (1 - alpha) * (1 / total + 1 / (rounds * n)))
    assert 0.6 * alpha - 4 * spread < sum(beyond) / total < 1.4 * alpha + 4 * spread
    assert binom.sf(sum(fitted) - 1, total, alpha) < 1e-3  # the limit of fitted rows is too low


@pytest.mark.parametrize("solver", ["gram", "svd", "krylov", "deflation"])
def test_every_solver_gives_the_same(solver):
    X = spiked(np.random.default_rng(3), 200)
    folds = choose_folds(200, 120, 200, 1)
    expected = held_out_residuals(PCA(8, solver="covariance").fit(X), X, folds)
    found = held_out_residuals(PCA(8, solver=solver, tol=1e-9).fit(X), X, folds)
    # the next eigenvalue, below which directions are dropped, is not known to all of them
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_sparse_rows_and_scaled_columns_are_measured_alike():
    X = np.where(spiked(np.random.default_rng(4), 300) > 1.0, 3.0, 0.0)
    folds = choose_folds(300, 120, 300, 1)
    dense = held_out_residuals(PCA(9).fit(X), X, folds)
    sparse = held_out_residuals(PCA(9).fit(sp.csr_array(X)), sp.csr_array(X), folds)
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)
    scale = X.std(axis=0, ddof=1)
    scaled = held_out_residuals(PCA(9, standardize=True).fit(X), X, folds)
    np.testing.assert_allclose(
        scaled, held_out_residuals(PCA(9).fit(X / scale), X / scale, folds), rtol=1e-8
    )
    weighed = held_out_residuals(PCA(9, feature_weight=np.full(120, 4.0)).fit(X), X, folds)
    np.testing.assert_allclose(weighed, 4 * dense, rtol=1e-9)
    white = held_out_residuals(PCA(9, whiten=True).fit(X), X, folds)
    np.testing.assert_allclose(white, dense, rtol=1e-12)


def test_a_weight_is_so_many_copies():
    rng = np.random.default_rng(5)
    X, weights = skewed(rng, 90), rng.integers(1, 4, 90).astype(float)
    which = np.repeat(np.arange(90), weights.astype(int))
    folds = choose_folds(90, 80, 90, 2)
    copies = [np.flatnonzero(np.isin(which, fold)) for fold in folds]
    found = held_out_residuals(PCA(6, ddof=0).fit(X, sample_weight=weights), X, folds, weights)
    repeated = held_out_residuals(PCA(6, ddof=0).fit(X[which]), X[which], copies)
    expected = np.concatenate([
        [part[which[copy] == row][0] for row in fold]
        for fold, copy, part in zip(
            folds, copies, np.split(repeated, np.cumsum([c.size for c in copies])[:-1]), strict=True
        )
    ])  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_row_that_made_a_component_for_itself_lies_outside_of_the_others():
    X = noise(np.random.default_rng(6), 300)
    X[7] = 0.0
    X[7, 3] = 1000.0
    model = PCA(5).fit(X)
    assert model.prediction_error(X[7:8])[0] < 60  # it is component 1
    folds = choose_folds(300, 60, 300, 0)
    at = np.flatnonzero(np.concatenate(folds) == 7)[0]
    truth = anew(X, folds, 5)[at]
    assert truth > 0.8e6
    assert held_out_residuals(model, X, folds)[at] == pytest.approx(truth, rel=0.15)


def test_a_model_of_fewer_rows_has_not_seen_these():
    rng = np.random.default_rng(8)
    X, model = noise(rng, 200), PCA(4).fit(noise(rng, 150))
    folds = choose_folds(200, 60, 150, 0)
    assert np.array_equal(
        held_out_residuals(model, X, folds), model.prediction_error(X[np.concatenate(folds)])
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e120, 1e200])
def test_extreme_units_change_nothing(scale):
    X = spiked(np.random.default_rng(9), 150)
    folds = choose_folds(150, 120, 150, 0)
    plain = held_out_residuals(PCA(6).fit(X), X, folds)
    model = PCA(6).fit(X * scale)
    scaled = np.sqrt(held_out_residuals(model, X * scale, folds))
    np.testing.assert_allclose(np.ldexp(scaled, model._unit) / scale, np.sqrt(plain), rtol=1e-6)


def test_numbers_far_from_zero_change_nothing():
    X = np.round(64 * spiked(np.random.default_rng(9), 150)) / 64
    folds = choose_folds(150, 120, 150, 0)
    plain = held_out_residuals(PCA(6).fit(X), X, folds)
    far = held_out_residuals(PCA(6).fit(X + 2.0**30), X + 2.0**30, folds)
    np.testing.assert_allclose(far, plain, rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    X = skewed(np.random.default_rng(10), 9000)
    folds = choose_folds(9000, 80, 9000, 0)
    one = held_out_residuals(PCA(6, n_jobs=1).fit(X), X, folds)
    assert np.array_equal(held_out_residuals(PCA(6, n_jobs=n_jobs).fit(X), X, folds), one)


def test_few_rows_and_tables_without_a_residual():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((3, 4))
    found = held_out_residuals(PCA(3).fit(X), X, choose_folds(3, 4, 3, 0))
    assert found.shape == (3,)
    assert (found > 0).all()  # two others span a line
    flat = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 7))
    folds = choose_folds(200, 7, 200, 0)
    # differences of squares up to 100
    assert held_out_residuals(PCA(3).fit(flat), flat, folds).max() < 1e-12
    whole = rng.standard_normal((200, 5))
    assert held_out_residuals(PCA(5).fit(whole), whole, folds).max() < 1e-12
    with pytest.warns(UserWarning, match="All rows are the same"):
        same = PCA(2).fit(np.ones((9, 3)))
    assert np.array_equal(
        held_out_residuals(same, np.ones((9, 3)), choose_folds(9, 3, 9, 0)), np.zeros(9)
    )


def test_folds_are_a_third_or_less_and_rows_are_not_held_out_twice():
    for n, d, of, count, most in [
        (3, 4, 3, 3, 3), (100, 4, 100, 3, 100), (10_000, 784, 10_000, 2, 5000),
        (70_000, 784, 70_000, 1, 5000), (3000, 50_000, 3000, 1, 335), (2000, 10**6, 2000, 1, 300),
        (900, 10, 10**6, 1, 900),
    ]:  # fmt: skip
        folds = choose_folds(n, d, of, 7)
        rows = np.concatenate(folds)
        assert len(folds) == count
        assert rows.size == np.unique(rows).size == most
        assert max(fold.size for fold in folds) <= -(-of // 3)
        assert all(np.array_equal(a, b) for a, b in zip(folds, choose_folds(n, d, of, 7),
                                                        strict=True))  # fmt: skip
