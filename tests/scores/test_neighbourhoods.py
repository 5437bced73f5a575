import numpy as np
import pytest
from scores import brute
from sklearn import manifold

from gnomon import scores
from gnomon.scores.neighbourhoods import (
    check_sizes,
    recall_by_chance,
    score_rows,
    trustworthiness_by_chance,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 6))
Y = X[:, :2] + 0.3 * rng.standard_normal((150, 2))


def every_row(X, Y, sizes, **options):
    return score_rows(X, Y, np.arange(len(X)), sizes, **options)


@pytest.mark.parametrize("k", [1, 5, 30, 74])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_trustworthiness_is_scikit_learns(k, metric):
    theirs = manifold.trustworthiness(X, Y, n_neighbors=k, metric=metric)
    assert scores.trustworthiness(X, Y, k, metric=metric) == pytest.approx(theirs, abs=1e-14)


def test_points_have_the_scores_of_the_definitions():
    found = every_row(X, Y, (3, 10, 40))
    for column, k in enumerate((3, 10, 40)):
        np.testing.assert_allclose(
            found.trustworthiness[:, column], brute.trustworthiness(X, Y, k), atol=1e-14
        )
        np.testing.assert_allclose(
            found.continuity[:, column], brute.trustworthiness(Y, X, k), atol=1e-14
        )
        np.testing.assert_allclose(found.recall[:, column], brute.recall(X, Y, k), atol=1e-15)


def test_several_sizes_at_once_are_the_same_as_one_at_a_time():
    together = every_row(X, Y, (3, 10, 40))
    for column, k in enumerate((3, 10, 40)):
        for name, alone in every_row(X, Y, (k,))._asdict().items():
            both = getattr(together, name)[:, [column]]
            assert np.array_equal(both, alone, equal_nan=True), name


def test_the_continuity_of_a_map_is_its_trustworthiness_read_backwards():
    assert scores.continuity(X, Y, 7) == scores.trustworthiness(Y, X, 7)
    assert scores.recall(X, Y, 7) == scores.recall(Y, X, 7)


def test_a_perfect_map_scores_one():
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for score in (scores.trustworthiness, scores.continuity, scores.recall):
        assert score(X, X) == 1
        assert score(X, 3 * X @ turn + 1) == 1


def test_the_worst_map_scores_zero():
    """Everybody's neighbour in the map is the farthest in the data."""
    data = np.array([[0.0], [1.0], [10.0], [11.0]])
    worst = np.array([[0.0], [1.0], [-1.0], [0.1]])
    assert (every_row(data, worst, (1,)).trustworthiness == 0).all()


def test_a_random_map_scores_what_chance_gives():
    data, junk = rng.standard_normal((2000, 5)), rng.standard_normal((2000, 2))
    for k in (5, 50, 500):
        found = every_row(data, junk, (k,))
        chance = trustworthiness_by_chance(k, 2000)
        # Means of 2,000 rows whose own spread is below a third of the range.
        assert found.trustworthiness.mean() == pytest.approx(chance, abs=0.02)
        assert found.continuity.mean() == pytest.approx(chance, abs=0.02)
        hits = 2000 * k * recall_by_chance(k, 2000)
        assert found.recall.sum() * k == pytest.approx(hits, abs=4 * np.sqrt(hits))


@pytest.mark.parametrize("side", ["data", "map"])
def test_turning_shifting_and_scaling_either_side_changes_nothing(side):
    table = X if side == "data" else Y
    turn = np.linalg.qr(rng.standard_normal((table.shape[1],) * 2))[0]
    plain = every_row(X, Y, (4, 20))
    for moved in (table @ turn, table + 1e3, table * 1e200, table * 1e-200, -table / 7):
        pair = (moved, Y) if side == "data" else (X, moved)
        assert scores.trustworthiness(*pair, 4) == plain.trustworthiness[:, 0].mean()
        assert scores.continuity(*pair, 20) == plain.continuity[:, 1].mean()


@pytest.mark.parametrize("power", [-1000, -664, 664, 1000])
def test_powers_of_two_leave_every_bit(power):
    whole = np.round(X * 64)
    plain = scores.score_map(whole, Y)
    scaled = scores.score_map(np.ldexp(whole, power), np.ldexp(Y, -power))
    for name, column in plain.columns().items():
        assert np.array_equal(column, scaled.columns()[name], equal_nan=True), name
    assert plain.distances == scaled.distances


def test_tables_far_from_zero_are_scored_right():
    whole = rng.integers(0, 1000, (150, 4))
    expected = scores.trustworthiness(whole, Y)
    assert scores.trustworthiness(whole + 1e12, Y) == expected
    assert scores.trustworthiness(whole + 2**60, Y) == expected
    near = (whole[:, :4] / 8 + 4096).astype(np.float32)  # exact in float32
    assert scores.trustworthiness(near, Y) == expected


@pytest.mark.parametrize("size", [1e100, 1e200, 1e308])
def test_one_wild_row_does_not_spoil_the_others(size):
    far, wild = X.copy(), X.copy()
    far[5], wild[5] = 1e3, size
    expected = scores.score_map(far, Y).columns()
    found = scores.score_map(wild, Y).columns()
    others = np.arange(150) != 5
    for name, column in found.items():
        assert np.array_equal(column[others], expected[name][others], equal_nan=True), name


def test_copies_are_scored_by_the_order_of_their_rows():
    copies = np.repeat(X[:15], 10, axis=0)
    assert scores.trustworthiness(copies, copies, 12) == 1
    flat = np.zeros((150, 2))
    found = every_row(copies, flat, (12,))
    np.testing.assert_allclose(
        found.trustworthiness[:, 0], brute.trustworthiness(copies, flat, 12), atol=1e-14
    )
    assert scores.recall(flat, flat, 30) == 1


def test_order_storage_and_threads_do_not_change_the_bits():
    data, points = rng.standard_normal((700, 19)), rng.standard_normal((700, 2))
    labels = rng.integers(0, 4, 700)
    plain = scores.score_map(data, points, labels, sample=400, n_jobs=1)
    wide = np.zeros((1400, 38))
    wide[::2, ::2] = data
    frozen = data.copy()
    frozen.flags.writeable = False
    stored = [np.asfortranarray(data), wide[::2, ::2], frozen, data.astype(">f8"), data.tolist()]
    runs = [scores.score_map(table, points, labels, sample=400) for table in stored]
    runs += [scores.score_map(data, points, labels, sample=400, n_jobs=jobs) for jobs in (2, 4)]
    for run in runs:
        assert run.distances == plain.distances
        for name, column in plain.columns().items():
            assert np.array_equal(column, run.columns()[name], equal_nan=True), name


def test_inputs_are_left_alone():
    before = X.copy(), Y.copy()
    scores.trustworthiness(X * 1e200, Y, metric="cosine")
    scores.trustworthiness(X, Y, metric="cosine")
    assert np.array_equal(before[0], X)
    assert np.array_equal(before[1], Y)


@pytest.mark.parametrize("score", [scores.trustworthiness, scores.continuity, scores.recall])
@pytest.mark.parametrize("k", [0, 75, -1, 5.0, True, "5", None, [5]])
def test_neighbourhoods_stay_below_half_of_the_rows(score, k):
    with pytest.raises((ValueError, TypeError), match="`n_neighbors` must be an integer"):
        score(X, Y, k)


def test_the_error_of_a_large_neighbourhood_says_the_bound_and_the_rows():
    with pytest.raises(ValueError, match=r"to 74; got 75.*below n/2; there are 150 rows"):
        scores.trustworthiness(X, Y, 75)
    assert check_sizes(74, 149 + 1) == (74,)
    assert check_sizes(74, 149) == (74,)
    with pytest.raises(ValueError, match="from 1 to 73"):
        check_sizes(74, 148)


def test_sizes_are_sorted_and_usual_ones_fit_the_table():
    assert check_sizes([30, 5, 5], 150) == (5, 30)
    assert check_sizes(np.array([2, 1]), 150) == (1, 2)
    assert check_sizes(None, 70_000) == (5, 15, 50)
    assert check_sizes(None, 60) == (5, 15)
    assert check_sizes(None, 3) == (1,)
    for bad in ([], [0], [[1, 2]], [1.5], "5"):
        with pytest.raises((ValueError, TypeError), match="n_neighbors"):
            check_sizes(bad, 150)


def test_the_smallest_tables_have_scores():
    three = np.array([[0.0], [1.0], [5.0]])
    assert scores.trustworthiness(three, three, 1) == 1
    assert scores.trustworthiness(three, three[[2, 0, 1]], 1) == pytest.approx(
        brute.trustworthiness(three, three[[2, 0, 1]], 1).mean()
    )


def test_a_sample_of_rows_has_the_exact_scores_of_those_rows():
    whole, part = scores.score_map(X, Y), scores.score_map(X, Y, sample=40, random_state=3)
    every = whole.columns()
    for name, column in part.columns().items():
        assert np.array_equal(column, every[name][part.rows], equal_nan=True), name
