import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scores import brute

from gnomon.scores import ranks
from gnomon.scores.ranks import find_nearest, rank_block_rows, rank_rows

rng = np.random.default_rng(0)


@pytest.fixture(params=["small", "kernels"], autouse=True)
def path(request):
    """Every test runs both without compiled loops, as small tables do, and with them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "kernels":
            patch.setattr(ranks, "SMALL_UP_TO", 0)
        yield


def check(X, Y, k):
    n = len(X)
    found = rank_rows(X, Y, np.arange(n), k)
    rank_x, rank_y = brute.ranks(X), brute.ranks(Y)
    one_to_k = np.broadcast_to(np.arange(1, k + 1), (n, k))
    assert np.array_equal(np.take_along_axis(rank_x, found.near_x, 1), one_to_k)
    assert np.array_equal(np.take_along_axis(rank_y, found.near_y, 1), one_to_k)
    assert np.array_equal(np.take_along_axis(rank_x, found.near_y, 1), found.rank_x)
    assert np.array_equal(np.take_along_axis(rank_y, found.near_x, 1), found.rank_y)
    return found


@pytest.mark.parametrize("k", [1, 2, 7, 59])
@pytest.mark.parametrize("d", [1, 2, 3, 17])
def test_neighbours_and_ranks_are_those_of_a_full_sort(k, d):
    check(rng.standard_normal((60, d)), rng.standard_normal((60, 2)), k)


@given(st.integers(3, 30), st.integers(1, 4), st.integers(0, 2**32))
def test_ties_and_copies_are_ordered_by_row(n, values, seed):
    """Small whole numbers: nearly everything is a tie."""
    random = np.random.default_rng(seed)
    X = random.integers(0, values, (n, 2)).astype(float)
    Y = random.integers(0, values, (n, 1)).astype(float)
    check(X, Y, int(random.integers(1, n)))


def test_tables_of_many_tiles_are_the_same():
    X, Y = rng.integers(0, 9, (700, 90)).astype(float), rng.standard_normal((700, 2))
    found = check(X, Y, 20)  # whole numbers: sums in any order are exact
    assert found.sq_x[0, 0] == ((X[0] - X[found.near_x[0, 0]]) ** 2).sum()
    assert found.sq_y[0, 0] == pytest.approx(((Y[0] - Y[found.near_x[0, 0]]) ** 2).sum())


def test_float32_is_added_in_float64():
    X = rng.standard_normal((200, 30)).astype(np.float32)
    assert np.array_equal(
        rank_rows(X, X, np.arange(200), 20).sq_x,
        rank_rows(X.astype(float), X, np.arange(200), 20).sq_x,
    )


def test_a_row_is_not_its_own_neighbour_even_when_all_others_overflow():
    X = np.zeros((6, 1))
    X[2] = 1e200
    assert find_nearest(X, np.array([2]), 5).tolist() == [[0, 1, 3, 4, 5]]


def test_only_the_rows_asked_for_are_ranked():
    X, Y = rng.standard_normal((50, 4)), rng.standard_normal((50, 2))
    every, some = rank_rows(X, Y, np.arange(50), 9), rank_rows(X, Y, np.array([3, 31]), 9)
    for whole, part in zip(every, some, strict=True):
        assert np.array_equal(whole[[3, 31]], part)


def test_a_block_of_distances_stays_small():
    assert rank_block_rows(100) == 32
    assert rank_block_rows(10**6) * 10**6 * 8 <= 2**24
    assert rank_block_rows(10**9) == 1


def test_small_tables_compile_nothing(monkeypatch):
    def compiled(*_):
        raise AssertionError("a small table called a kernel")

    for name in ("_sq_distances", "_nearest", "_rank"):
        monkeypatch.setattr(ranks, name, compiled)
    monkeypatch.setattr(ranks, "SMALL_UP_TO", 300)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((300, 2))
    rank_rows(X, Y, np.arange(300), 9)
    find_nearest(Y, np.arange(300), 9)
    with pytest.raises(AssertionError):
        find_nearest(np.vstack([Y, Y]), np.arange(300), 9)


@pytest.mark.parametrize("d", [1, 2, 64, 784])
def test_distances_of_a_small_table_are_those_of_the_kernel(monkeypatch, d):
    Z, rows = rng.standard_normal((300, d)), np.arange(0, 300, 7)
    small = ranks.sq_distances_from(Z, rows)
    monkeypatch.setattr(ranks, "SMALL_UP_TO", 0)
    # d squares added in another order: d roundings of the sum
    assert np.allclose(
        small, ranks.sq_distances_from(Z, rows), rtol=d * 2.0**-52, atol=0, equal_nan=True
    )
