import numpy as np
import pytest
from pca.tables import correlated
from scipy import stats

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


def test_normal_rows_pass_the_prediction_error_limit_as_often_as_promised():
    random = np.random.default_rng(5)
    spread = np.array([9.0, 5, 2, 1.5, 1, 0.5, 0.2])
    model = PCA(2).fit(random.normal(size=(20_000, 7)) * spread)
    new = random.normal(size=(20_000, 7)) * spread
    for alpha in (0.05, 0.01):
        beyond = (model.prediction_error(new) > model.prediction_error_limit(alpha)).mean()
        # Box's two moments are an approximation: within a fifth in these tails
        assert beyond == pytest.approx(alpha, rel=0.2)


def test_nothing_is_beyond_a_model_that_keeps_everything():
    assert PCA().fit(correlated()).prediction_error_limit() == 0


def test_limits_that_a_model_cannot_know_are_refused():
    X = correlated()
    with pytest.raises(UnavailableError, match="all eigenvalues"):
        PCA(2, solver="krylov").fit(X).prediction_error_limit()
    with pytest.raises(UnavailableError, match="fewer components"):
        PCA(solver="svd").fit(X[:5]).t2_limit(new=False)
