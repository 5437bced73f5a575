"""Neighbours of some rows in two tables, and the rank of each in the other table.

For a block of m rows i, against all n rows of both tables:

1. Squared distances to every row, shape (m, n), by differences, over tiles of rows that stay in
   the cache. A row's distance from itself is NaN: it compares false with everything, so that the
   row is never a neighbour and never counted.
2. The k nearest, shape (m, k), kept in a heap while the distances are read once.
3. The ranks of these k in the other table. They are sorted in the other table's order; every row is
   then placed among them by bisection and counted: rank = number of rows at or before it.

Rows are ordered by (distance, row number), so that copies and other ties have a unique order.
Nothing longer than k is sorted: O(n (d + log k)) per row.

Compiling these loops takes 1.6 s of processor time on a new machine, more than scoring a table of
up to `SMALL_UP_TO` rows without them. Such a table is sorted completely, which gives the same
neighbours and ranks. If it has at most `SMALL_NUMBERS` numbers as well, SciPy computes its
distances: also by differences in float64, but adding in another order, so that they agree to d
roundings.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.neighbors.search import SMALL_UP_TO
from gnomon.scores.table_pair import GivenDistances
from gnomon.typing import Floats64, Indices32

TILE_NUMBERS = 2**14  # numbers per tile of rows: 128 KB, which fit a core's L2 cache
BLOCK_NUMBERS = 2**21  # distances per block: 16 MB per table and thread
MOST_ROWS = 32  # rows per block: memory against reading the table more often
# Numbers in a table up to which SciPy takes half of what compiling the loops does, 0.5 s; compiled
# they are quicker (`benchmarks/crossovers.py`, "wide-ranks").
SMALL_NUMBERS = 2**18

__all__ = ["Ranks", "find_nearest", "rank_block_rows", "rank_rows", "sq_distances_from"]


class Ranks(NamedTuple):
    """Neighbours of m rows, nearest first; every array has shape (m, k).

    Attributes
    ----------
    near_x, near_y
        Neighbours in the data, and in the map.
    rank_x
        Rank in the data of each of `near_y`, from 1.
    rank_y
        Rank in the map of each of `near_x`.
    sq_x, sq_y
        Squared distances of `near_x`, in the data and in the map, each in its own unit.
    """

    near_x: Indices32
    near_y: Indices32
    rank_x: Indices32
    rank_y: Indices32
    sq_x: Floats64
    sq_y: Floats64


def rank_block_rows(n: int) -> int:
    """Rows per block, a function of the size of the table only."""
    return max(1, min(MOST_ROWS, BLOCK_NUMBERS // n))


def rank_rows(
    Z: NDArray[Any] | GivenDistances, W: NDArray[Any], rows: NDArray[np.int64], k: int
) -> Ranks:
    """Neighbours and ranks of `rows` in prepared tables `Z` (n, d) and `W` (n, p)."""
    all_x, all_y = sq_distances_from(Z, rows), sq_distances_from(W, rows)
    if len(Z) <= SMALL_UP_TO:
        order_x, order_y = _order(all_x), _order(all_y)
        near_x, near_y = order_x[:, :k].copy(), order_y[:, :k].copy()
        rank_x, rank_y = _ranks_in(order_x, near_y), _ranks_in(order_y, near_x)
    else:
        shape = len(rows), k
        near_x, near_y = np.empty(shape, np.int32), np.empty(shape, np.int32)
        _nearest(all_x, near_x)
        _nearest(all_y, near_y)
        rank_x, rank_y = np.empty(shape, np.int32), np.empty(shape, np.int32)
        _rank(all_x, near_y, rank_x)
        _rank(all_y, near_x, rank_y)
    sq_x = np.take_along_axis(all_x, near_x, axis=1)
    sq_y = np.take_along_axis(all_y, near_x, axis=1)
    return Ranks(near_x, near_y, rank_x, rank_y, sq_x, sq_y)


def find_nearest(W: NDArray[Any], rows: NDArray[np.int64], k: int) -> Indices32:
    """Find the `k` nearest of `rows` in one table, shape (m, k)."""
    all_sq = sq_distances_from(W, rows)
    if len(W) <= SMALL_UP_TO:
        return _order(all_sq)[:, :k].copy()
    near = np.empty((len(rows), k), np.int32)
    _nearest(all_sq, near)
    return near


def sq_distances_from(Z: NDArray[Any] | GivenDistances, rows: NDArray[np.int64]) -> Floats64:
    """Squared distances (m, n) of `rows` from all rows of a prepared table; NaN from itself."""
    if isinstance(Z, GivenDistances):
        given = Z.sq[rows]
        given[np.arange(len(rows)), rows] = np.nan
        return given
    if len(Z) <= SMALL_UP_TO and Z.size <= SMALL_NUMBERS:
        from scipy.spatial.distance import cdist

        away: Floats64 = cdist(Z[rows], Z, "sqeuclidean")
        away[np.arange(len(rows)), rows] = np.nan
        return away
    out = np.empty((len(rows), len(Z)))
    _sq_distances(Z, rows, max(1, TILE_NUMBERS // Z.shape[1]), out)
    return out


def _order(all_sq: Floats64) -> Indices32:
    """Columns of each row by (distance, column); NaN, the row itself, is last."""
    return np.argsort(all_sq, axis=1, kind="stable").astype(np.int32)


def _ranks_in(order: Indices32, near: Indices32) -> Indices32:
    """Rank of each of the columns `near`, (m, k), in the order of all of them, (m, n), from 1."""
    m, n = order.shape
    rank = np.empty((m, n), np.int32)
    np.put_along_axis(rank, order, np.arange(1, n + 1, dtype=np.int32)[None], axis=1)
    return np.take_along_axis(rank, near, axis=1)


@kernel
def _sq_distances(Z: NDArray[Any], rows: NDArray[np.int64], tile: int, out: Floats64) -> None:
    """out[q, j] = |Z[rows[q]] − Z[j]|², NaN at j = rows[q]."""
    n, d = Z.shape
    for first in range(0, n, tile):
        last = min(first + tile, n)
        for q in range(rows.size):
            here = Z[rows[q]]
            for j in range(first, last):
                there = Z[j]
                total = 0.0
                for c in range(d):
                    step = np.float64(here[c]) - np.float64(there[c])
                    total += step * step
                out[q, j] = total
    for q in range(rows.size):
        out[q, rows[q]] = np.nan


@kernel
def _sift_down(sq: Floats64, at: Indices32, size: int) -> None:
    """Move the first of `size` pairs down a heap whose top is the largest by (sq, at)."""
    value, row, place = sq[0], at[0], 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            sq[other] > sq[child] or (sq[other] == sq[child] and at[other] > at[child])
        ):
            child = other
        if sq[child] < value or (sq[child] == value and at[child] < row):
            break
        sq[place], at[place] = sq[child], at[child]
        place = child
    sq[place], at[place] = value, row


@kernel
def _sift_up(sq: Floats64, at: Indices32, place: int) -> None:
    """Move the pair at `place`, the last of a heap, up to its position."""
    value, row = sq[place], at[place]
    while place > 0:
        parent = (place - 1) // 2
        if sq[parent] > value or (sq[parent] == value and at[parent] > row):
            break
        sq[place], at[place] = sq[parent], at[parent]
        place = parent
    sq[place], at[place] = value, row


@kernel
def _unheap(sq: Floats64, at: Indices32) -> None:
    """Sort the pairs of a heap by (sq, at), ascending."""
    for last in range(sq.size - 1, 0, -1):
        sq[0], sq[last] = sq[last], sq[0]
        at[0], at[last] = at[last], at[0]
        _sift_down(sq, at, last)


@kernel
def _nearest(all_sq: Floats64, near: Indices32) -> None:
    """near[q] = the first k columns of row q by (distance, column)."""
    m, n = all_sq.shape
    k = near.shape[1]
    sq = np.empty(k)
    for q in range(m):
        at = near[q]
        size = 0
        for j in range(n):
            here = all_sq[q, j]
            if size < k:
                if here == here:
                    sq[size], at[size] = here, j
                    _sift_up(sq, at, size)
                    size += 1
            elif here < sq[0]:  # in a tie the earlier row stays
                sq[0], at[0] = here, j
                _sift_down(sq, at, k)
        _unheap(sq, at)


@kernel
def _place(sq: Floats64, at: Indices32, value: float, row: int) -> int:
    """Number of the sorted pairs before (value, row)."""
    low, size = 0, sq.size
    while size > 0:  # branch-free: a misprediction costs more than a step
        half = (size + 1) // 2
        middle = low + half - 1
        before = (sq[middle] < value) | ((sq[middle] == value) & (at[middle] < row))
        low += half * before
        size -= half
    return low


@kernel
def _rank(all_sq: Floats64, near: Indices32, rank: Indices32) -> None:
    """rank[q, r] = rank of column near[q, r] among all of row q by (distance, column), from 1."""
    m, n = all_sq.shape
    k = near.shape[1]
    sq, at, count = np.empty(k), np.empty(k, np.int32), np.empty(k, np.int32)
    for q in range(m):
        for r in range(k):
            sq[r], at[r], count[r] = all_sq[q, near[q, r]], near[q, r], 0
            _sift_up(sq, at, r)
        _unheap(sq, at)
        farthest = sq[k - 1]
        for j in range(n):
            here = all_sq[q, j]
            if here <= farthest:  # false for the row itself, which is NaN
                place = _place(sq, at, here, j)
                if place < k:
                    count[place] += 1
        for r in range(1, k):
            count[r] += count[r - 1]
        for r in range(k):
            rank[q, r] = count[_place(sq, at, all_sq[q, near[q, r]], near[q, r])]
