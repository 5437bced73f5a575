"""The neighbours of some rows in two tables, and the rank of each in the other table.

For a block of m rows i, against all n rows of both tables:

1. Squared distances to every row, shape (m, n), by differences, over tiles of rows that stay in
   the cache. A row's distance from itself is NaN: it compares false with everything, so that the
   row is never a neighbour and never counted.
2. The k nearest, shape (m, k), kept in a heap while the distances are read once.
3. The ranks in the other table of these k. They are put in the other table's order; every row is
   then placed among them by bisection and counted: rank = how many stand at or before it.

Rows are ordered by (distance, row number), so that copies and other ties have one answer. Nothing
is sorted that is longer than k: O(n (d + log k)) a row.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.scores.tables import GivenDistances
from gnomon.typing import Floats64, Indices32

TILE_NUMBERS = 2**14  # rows of a tile, in numbers: 128 KB, which a core's second cache holds
BLOCK_NUMBERS = 2**21  # distances of a block: 16 MB a table and thread
MOST_ROWS = 32

__all__ = ["Ranks", "block_rows", "find_nearest", "rank_rows", "sq_distances_from"]


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


def block_rows(n: int) -> int:
    """How many rows make a block; of the size of the table only."""
    return max(1, min(MOST_ROWS, BLOCK_NUMBERS // n))


def rank_rows(
    Z: NDArray[Any] | GivenDistances, W: NDArray[Any], rows: NDArray[np.int64], k: int
) -> Ranks:
    """Neighbours and ranks of `rows` in prepared tables `Z` (n, d) and `W` (n, p)."""
    all_x, all_y = sq_distances_from(Z, rows), sq_distances_from(W, rows)
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
    """The `k` nearest of `rows` in one table, shape (m, k)."""
    near = np.empty((len(rows), k), np.int32)
    _nearest(sq_distances_from(W, rows), near)
    return near


def sq_distances_from(Z: NDArray[Any] | GivenDistances, rows: NDArray[np.int64]) -> Floats64:
    """Squared distances (m, n) of `rows` from all rows of a prepared table; NaN from itself."""
    if isinstance(Z, GivenDistances):
        given = Z.sq[rows]
        given[np.arange(len(rows)), rows] = np.nan
        return given
    out = np.empty((len(rows), len(Z)))
    _sq_distances(Z, rows, max(1, TILE_NUMBERS // Z.shape[1]), out)
    return out


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
    """Move the first of `size` pairs down a heap whose top is the last by (sq, at)."""
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
    """Move the pair at `place`, the last of a heap, up to where it belongs."""
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
            elif here < sq[0]:  # at the same distance the earlier row stays
                sq[0], at[0] = here, j
                _sift_down(sq, at, k)
        _unheap(sq, at)


@kernel
def _place(sq: Floats64, at: Indices32, value: float, row: int) -> int:
    """How many of the sorted pairs stand before (value, row)."""
    low, size = 0, sq.size
    while size > 0:  # no jump depends on a comparison: one wrongly foreseen costs more than a step
        half = (size + 1) // 2
        middle = low + half - 1
        before = (sq[middle] < value) | ((sq[middle] == value) & (at[middle] < row))
        low += half * before
        size -= half
    return low


@kernel
def _rank(all_sq: Floats64, near: Indices32, rank: Indices32) -> None:
    """rank[q, r] = place of column near[q, r] among all of row q by (distance, column), from 1."""
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
