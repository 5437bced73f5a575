import numpy as np
import pytest
from pca.tables import correlated
from scipy import stats

from gnomon import load, samples
from gnomon.errors import UnavailableError
from gnomon.pca import PCA


def test_t2_and_prediction_error_are_the_parts_of_a_row():
    X = correlated()
    model = PCA(2, whiten=True).fit(X)
    np.testing.assert_allclose(model.hotelling_t2(X), (model.transform(X) ** 2).sum(axis=1))
    np.testing.assert_allclose(model.prediction_error(X), (model.residuals(X) ** 2).sum(axis=1))


def test_the_mean_prediction_error_of_training_rows_is_the_lost_variance():
    X = correlated()
    model = PCA(2, standardize=True, ddof=0).fit(X)
    assert model.prediction_error(X).mean() == pytest.approx(model.lost_variance_, rel=1e-10)


@pytest.mark.parametrize("ddof", [0, 1])
def test_t2_limits_are_those_of_f_and_beta(ddof):
    model = PCA(3, ddof=ddof).fit(correlated(n=40))
    new = 3 * (40**2 - 1) / (40 * 37) * stats.f.isf(0.01, 3, 37) * (40 - ddof) / 39
    old = 39**2 / 40 * stats.beta.isf(0.01, 1.5, 18) * (40 - ddof) / 39
    assert model.t2_limit(0.01) == pytest.approx(new, rel=1e-10)
    assert model.t2_limit(0.01, new=False) == pytest.approx(old, rel=1e-10)


@pytest.mark.parametrize("ddof", [0, 1])
def test_normal_rows_pass_the_t2_limits_as_often_as_promised(ddof):
    random = np.random.default_rng(4)
    new = old = 0
    for _ in range(150):
        X = random.normal(size=(12, 3))
        model = PCA(ddof=ddof).fit(X)
        new += (model.hotelling_t2(random.normal(size=(80, 3))) > model.t2_limit(0.1)).sum()
        old += (model.hotelling_t2(X) > model.t2_limit(0.1, new=False)).sum()
    # Rows of one fit share its errors: its 80 new ones count about as much as 10.
    assert abs(new / (150 * 80) - 0.1) < 3.3 * np.sqrt(0.09 / (150 * 10))
    assert abs(old / (150 * 12) - 0.1) < 3.3 * np.sqrt(0.09 / (150 * 12))


def test_normal_rows_of_the_fit_pass_their_limit_as_often_as_promised():
    random = np.random.default_rng(5)
    spread = np.array([9.0, 5, 2, 1.5, 1, 0.5, 0.2])
    X = random.normal(size=(100_000, 7)) * spread
    model = PCA(2).fit(X)
    for alpha in (0.05, 0.01):
        limit = model.prediction_error_limit(alpha, new=False)
        # Box's two moments are an approximation: within a fifth in these tails
        assert (model.prediction_error(X) > limit).mean() == pytest.approx(alpha, rel=0.2)


def normal(random, n, d):
    return random.normal(size=(n, d)) * 0.8 ** np.arange(d)


def skewed(random, n, d):
    return random.exponential(size=(n, d)) @ np.eye(d)[::-1] * np.linspace(1, 3, d)


def heavy(random, n, d):
    return random.standard_t(4, size=(n, d)) * np.linspace(1, 2, d)


def two_kinds(random, n, d):
    return normal(random, n, d) + 5 * random.integers(0, 2, (n, 1)) * np.sin(np.arange(d))


NEW_ROWS = [
    (normal, 30, 20, 5),
    (normal, 60, 200, 10),
    (normal, 400, 30, 10),
    (normal, 20, 8, 2),
    (skewed, 300, 40, 8),
    (heavy, 300, 40, 8),
    (two_kinds, 200, 50, 10),
    (two_kinds, 40, 100, 5),
]


@pytest.mark.parametrize(("make", "n", "d", "k"), NEW_ROWS)
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_about_alpha_of_unseen_rows_of_the_same_kind_are_beyond_the_limit(make, n, d, k, alpha):
    random = np.random.default_rng(7)
    flagged, naive = [], []
    for _ in range(60):
        model = PCA(k).fit(make(random, n, d))
        errors = model.prediction_error(make(random, 500, d))
        flagged.append((errors > model.prediction_error_limit(alpha)).mean())
        naive.append((errors > model.prediction_error_limit(alpha, new=False)).mean())
    assert alpha / 2 < np.mean(flagged) < 2 * alpha
    assert abs(np.mean(flagged) - alpha) < abs(np.mean(naive) - alpha) or make is normal


@pytest.mark.parametrize("whole", [True, False])
def test_rows_that_came_in_batches_have_a_limit_for_new_ones_too(whole):
    random, flagged = np.random.default_rng(8), []
    for _ in range(60):
        model, X = PCA(5), normal(random, 40, 20)
        for batch in (X[:15], X[15:]):
            model.partial_fit(batch)
        if not whole:
            a, b = (PCA(5, solver="covariance").fit(batch) for batch in (X[:15], X[15:]))
            model = a.merge(b)
        limit = model.prediction_error_limit(0.05)
        flagged.append((model.prediction_error(normal(random, 500, 20)) > limit).mean())
    assert 0.025 < np.mean(flagged) < 0.1


def test_unseen_digits_are_flagged_as_often_as_promised():
    X = samples.load("digits").X
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        for n in (150, 900):
            model = PCA(20).fit(X[order[:n]])
            errors = model.prediction_error(X[order[900:]])
            for alpha in (0.05, 0.01):
                share = (errors > model.prediction_error_limit(alpha)).mean()
                # of 897 rows, and the limit itself is of n: three standard errors of both
                error = np.sqrt(alpha * (1 / n + 1 / 897))
                assert abs(share - alpha) < 3 * error + 0.2 * alpha


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
def test_every_solver_has_the_same_limit_for_new_rows(solver):
    X = normal(np.random.default_rng(9), 80, 40)
    exact = PCA(4, solver="svd").fit(X).prediction_error_limit(0.05)
    assert PCA(4, solver=solver).fit(X).prediction_error_limit(0.05) == pytest.approx(
        exact, rel=0.02
    )


def test_the_limit_counts_a_row_as_often_as_it_was():
    X = normal(np.random.default_rng(10), 90, 12)
    weights = np.arange(90) % 3
    weighted = PCA(3).fit(X, sample_weight=weights).prediction_error_limit(0.2)
    repeated = PCA(3).fit(np.repeat(X, weights, axis=0)).prediction_error_limit(0.2)
    assert weighted == pytest.approx(repeated, rel=1e-9)


def test_the_limit_for_new_rows_survives_saving(tmp_path):
    X = heavy(np.random.default_rng(11), 200, 20)
    model = PCA(4).fit(X)
    model.save(tmp_path / "pca.gnomon")
    loaded = load(tmp_path / "pca.gnomon")
    assert loaded.prediction_error_limit(0.01) == model.prediction_error_limit(0.01)


def test_nothing_is_beyond_a_model_that_keeps_everything():
    assert PCA().fit(correlated()).prediction_error_limit() == 0
    assert PCA().fit(correlated()).prediction_error_limit(new=False) == 0


def test_limits_that_a_model_cannot_know_are_refused():
    X = correlated()
    with pytest.raises(UnavailableError, match="all eigenvalues"):
        PCA(2, solver="krylov").fit(X).prediction_error_limit(new=False)
    with pytest.raises(UnavailableError, match="fewer components"):
        PCA(solver="svd").fit(X[:5]).t2_limit(new=False)
    with pytest.raises(UnavailableError, match="at least 3 rows"):
        PCA(1).fit(X[:2]).prediction_error_limit()
