import numpy as np
import pytest
from procrustes.sets import orthogonal, pair
from scipy.stats import chi2

from gnomon import Procrustes
from gnomon.errors import NotConvergedWarning
from gnomon.procrustes.robust import SHARES, _quantile, _weighted_median


def with_movers(n=200, d=2, share=0.3, noise=0.01, seed=0):
    """Pairs under a known map, some of which moved far away together."""
    random = np.random.default_rng(seed)
    X, R = random.normal(size=(n, d)), orthogonal(d, seed, reflected=False)
    Y = X @ R + noise * random.normal(size=(n, d))
    moved = np.arange(n) < share * n
    Y[moved] += 5 + random.normal(size=(moved.sum(), d))
    return X, Y, R, moved


@pytest.mark.parametrize("kind", ["huber", "tukey"])
@pytest.mark.parametrize("d", [2, 5, 12])
def test_points_that_moved_do_not_drag_the_frame(kind, d):
    X, Y, R, moved = with_movers(d=d)
    model = Procrustes(robust=kind).fit(X, Y)
    plain = Procrustes().fit(X, Y)
    # noise 0.01 over 140 rows turns a frame by about 0.01 · d / √140
    limit = 0.05 if kind == "huber" else 0.01
    assert np.linalg.norm(model.translation_) < limit * np.sqrt(d)
    assert np.linalg.norm(model.rotation_ - R) < limit * d
    assert np.linalg.norm(plain.translation_) > 1
    assert model.weights_.shape == (200,)
    assert model.weights_[moved].max() < 0.05
    assert np.median(model.weights_[~moved]) > 0.7


def test_tukey_leaves_far_points_out_and_huber_never_does():
    X, Y, _, moved = with_movers()
    assert not Procrustes(robust="tukey").fit(X, Y).weights_[moved].any()
    assert Procrustes(robust="huber").fit(X, Y).weights_.min() > 0


@pytest.mark.parametrize("kind", ["huber", "tukey"])
def test_exact_pairs_are_recovered_exactly_though_others_moved(kind):
    X, Y, R, moved = with_movers(noise=0.0)
    model = Procrustes(robust=kind, scaling=True).fit(X, 3 * Y)
    # Huber's far points keep a pull of k·σ, and σ, which is 0, is known to about 1e-8
    error = 1e-6 if kind == "huber" else 1e-10
    assert np.allclose(model.rotation_, R, atol=error)
    assert model.scale_ == pytest.approx(3, rel=error)
    assert model.residuals_[~moved].max() < 10 * error


def test_robust_and_plain_fits_agree_where_nothing_moved():
    X, Y = pair(n=2000, d=2, noise=0.1)
    plain, robust = Procrustes().fit(X, Y), Procrustes(robust="huber").fit(X, Y)
    # both are estimates with an error of 0.1 / √2000
    assert np.allclose(robust.rotation_, plain.rotation_, atol=3e-3)
    # Huber weighs down what a normal sample has beyond its limit
    assert np.mean(robust.weights_ < 1) == pytest.approx(1 - SHARES["huber"], abs=0.03)


def test_limits_are_the_usual_ones_in_one_dimension_and_quantiles_in_others():
    assert _quantile(1, SHARES["huber"]) == pytest.approx(1.345, abs=1e-3)
    assert _quantile(1, SHARES["tukey"]) == pytest.approx(4.685, abs=2e-3)
    assert _quantile(7, 0.8) == pytest.approx(np.sqrt(chi2.ppf(0.8, 7)))


def test_weights_of_rows_are_copies_in_a_robust_fit_too():
    X, Y, _, _ = with_movers(n=50)
    w = 1 + np.arange(50) % 3
    a = Procrustes(robust="tukey").fit(X, Y, sample_weight=w)
    b = Procrustes(robust="tukey").fit(np.repeat(X, w, 0), np.repeat(Y, w, 0))
    assert np.allclose(a.rotation_, b.rotation_, atol=1e-8)  # the weights settle to 1e-9
    assert np.allclose(np.repeat(a.weights_, w), b.weights_, atol=1e-7)


def test_the_median_counts_weights():
    assert _weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])) == 2
    assert _weighted_median(np.array([3.0, 1.0, 2.0]), np.array([9.0, 1.0, 5.0])) == 3


def test_units_do_not_matter():
    X, Y, _, _ = with_movers()
    expected = Procrustes(robust="tukey").fit(X, Y).weights_
    found = Procrustes(robust="tukey").fit(X * 2.0**-600, Y * 2.0**-600).weights_
    assert np.allclose(found, expected, atol=1e-12)


def test_weights_that_do_not_settle_are_reported(monkeypatch):
    X, Y, _, _ = with_movers(noise=0.5)
    monkeypatch.setattr("gnomon.procrustes.robust.STEPS", 1)
    with pytest.warns(NotConvergedWarning, match="still change by .* after 1 steps"):
        Procrustes(robust="huber").fit(X, Y)


@pytest.mark.parametrize("kind", ["huber", "tukey"])
@pytest.mark.parametrize("side", ["X", "Y"])
@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
def test_one_wild_row_on_either_side_does_not_bend_scale_or_rotation(kind, side, scaling):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    Y = (X @ turn) * (1.0 if scaling is False else 3.0) + 7 + rng.normal(size=(30, 2)) * 0.01
    (X if side == "X" else Y)[4] += 1000
    model = Procrustes(scaling=scaling, robust=kind).fit(X, Y)
    # Tukey leaves the row out, and noise of 0.01 is left; Huber's bounded pull leaves a trace.
    loose = 0.01 if kind == "tukey" else 0.05
    if scaling != "norm-ratio":  # a ratio of norms sees the wild row's norm unless it weighs 0
        assert abs(model.scale_ / (1.0 if scaling is False else 3.0) - 1) < loose
    np.testing.assert_allclose(model.rotation_, turn, atol=loose)
