import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from scores import brute

from gnomon import scores
from gnomon.scores.distances import order_within

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 6))
Y = X[:, :2] + 0.3 * rng.standard_normal((300, 2))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_over_all_pairs_it_is_spearmans_rho_of_the_distances(metric):
    found = scores.rank_correlation(X, Y, metric=metric)
    expected = spearmanr(pdist(X, metric), pdist(Y)).statistic
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert (found.standard_error, found.pairs, found.of) == (0, 44_850, 44_850)


def test_equal_distances_share_their_ranks():
    grid = rng.integers(0, 3, (60, 2)).astype(float)
    found = scores.rank_correlation(grid, Y[:60])
    assert found.value == pytest.approx(spearmanr(pdist(grid), pdist(Y[:60])).statistic, abs=1e-12)


def test_the_same_distances_correlate_fully_and_unrelated_ones_not():
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert scores.rank_correlation(X, X).value == 1
    assert scores.rank_correlation(X, 2 * X @ turn + 5).value == pytest.approx(1, abs=1e-12)
    junk = rng.standard_normal((300, 2))
    # Pairs share points: of the order of 1/√300, not of 1/√44850.
    assert abs(scores.rank_correlation(X, junk).value) < 0.12
    assert scores.rank_correlation(X, Y).value == scores.rank_correlation(Y, X).value


def test_the_standard_error_of_sampled_pairs_covers_the_value_of_all():
    exact = scores.rank_correlation(X, Y).value
    found = [scores.rank_correlation(X, Y, pairs=5000, random_state=s) for s in range(100)]
    z = np.array([(f.value - exact) / f.standard_error for f in found])
    assert 88 <= np.sum(np.abs(z) < 2.1) <= 99  # 95 expected of a t with 19 degrees of freedom
    typical = np.mean([f.standard_error for f in found])
    assert np.std([f.value for f in found]) == pytest.approx(typical, rel=0.25)
    assert "5,000 of 44,850 pairs" in str(found[0])


def test_every_pair_is_as_likely_and_no_row_meets_itself():
    from gnomon.scores.distances import _draw_pairs

    i, j = _draw_pairs(5, 100_000, np.random.default_rng(0))
    counts = np.bincount(5 * i + j, minlength=25).reshape(5, 5)
    assert (np.diag(counts) == 0).all()
    assert counts.sum() == 100_000
    # 20 kinds of pair, 5,000 each with a deviation of 69
    np.testing.assert_allclose(counts[~np.eye(5, dtype=bool)], 5000, atol=300)


def test_within_neighbourhoods_it_is_spearmans_rho_of_each_points_neighbours():
    found = scores.score_map(X, Y, n_neighbors=[2, 12]).order
    for column, k in enumerate((2, 12)):
        near = brute.neighbours(X, k)
        for i in (0, 17, 299):
            a, b = (np.linalg.norm(T[near[i]] - T[i], axis=1) for T in (X, Y))
            assert found.points[i, column] == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


def test_where_all_distances_are_equal_there_is_no_order():
    flat = np.zeros((300, 2))
    found = scores.score_map(X, flat)
    assert np.isnan(found.order.points).all()
    assert np.isnan(found.distances.value)
    assert found.distances.to_dict()["value"] is None
    assert "–" in str(found.distances)
    assert np.isnan(scores.rank_correlation(X, flat, pairs=1000).value)
    assert np.isnan(order_within(np.ones((1, 1)), np.ones((1, 1)))[0])


@pytest.mark.parametrize("bad", [0, 199, 2.5e5, "many", True])
def test_pairs_are_a_number_large_enough_for_an_error(bad):
    with pytest.raises((ValueError, TypeError), match="`pairs` must be an integer ≥ 200"):
        scores.rank_correlation(X, Y, pairs=bad)
