"""Inverted lists: a table's rows grouped around centres, searched group by group.

1. Every row is in the list of its nearest centre, as its offset from that centre in float32.
2. A query probes the lists of its nearest centres. Queries that probe the same list are
   batched, so that their distances |q|² + |x|² − 2 q·x are one product of matrices, about
   four times as fast as one query at a time. The nearest list comes first: its rows
   bound what the other lists can still add.
3. A few more than k are kept. Their distances are computed as differences in float64, and
   the nearest are returned by (distance, row number).

The rounding of a matrix product depends on the other queries in it. With ``alone=True`` the result
does not: where rounding could have changed what was kept, by a bound on it, the query
computes the distance of every row of its lists that may be as near as those it has. So it gets the
nearest by (distance, row number) and no others. That is rare, except if many rows are at the same
distance or the columns are so many that the bound is wide; those queries are batched again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats32, Floats64, Indices

SPARE = 4  # candidates kept beyond the k requested
ROOM = 3  # buffer size, in multiples of the candidates, before selecting the nearest
QUERIES = 4096  # queries at a time, in the order of their nearest lists
TOGETHER = 256  # queries per product
LONG = 2048  # rows per product
MANY = 200  # kept rows of which as many may be equally far, too many to insert one by one
AGAIN = 2**22  # distances at a time of queries that search again
CHUNK = 64  # distances compared at once with the farthest one kept
TWO = np.float32(2)
WILDEST = np.float32(1e16)  # squares of differences must not overflow float32
LARGEST, SMALLEST = 1e38, 2.0**-126  # above all squares; below, float32 is denormal

__all__ = ["WILDEST", "InvertedLists"]


class InvertedLists:
    """The rows of `Z`, shape (n, d), in lists around `centres`, shape (lists, d)."""

    def __init__(self, Z: Floats64, centres: Floats32, n_jobs: int | None = None) -> None:
        self.Z, self.centres = Z, centres
        self._by_column = np.ascontiguousarray(centres.T)
        self._half_sq = ((centres.astype(np.float64) ** 2).sum(axis=1) / 2).astype(np.float32)
        own = self.nearest(Z, 1, n_jobs)[:, 0]
        self.order = np.argsort(own, kind="stable")  # rows, list after list
        self.starts = np.searchsorted(own[self.order], np.arange(len(centres) + 1))
        self.offsets = np.empty(Z.shape, np.float32)
        self.sq = np.empty(len(Z), np.float32)
        self.radii = np.zeros(len(centres))

        def block(start: int, stop: int) -> None:
            for at in range(start, stop):
                rows = slice(self.starts[at], self.starts[at + 1])
                if rows.start < rows.stop:
                    sq = self.sq[rows]
                    _offsets(Z, self.order[rows], centres[at], self.offsets[rows], sq)
                    self.radii[at] = np.sqrt(np.float64(sq.max()))

        map_blocks(block, row_blocks(len(centres), 16), n_jobs=n_jobs)

    def nearest(self, Q: Floats64, n_probes: int, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Lists whose centres are nearest to each row of `Q`, nearest first."""
        found = np.empty((len(Q), n_probes), np.int32)

        def block(start: int, stop: int) -> None:
            _nearest(Q, self._by_column, self._half_sq, found, start, stop)

        map_blocks(block, row_blocks(len(Q), 512), n_jobs=n_jobs)
        return found

    def search(
        self,
        Q: Floats64,
        k: int,
        n_probes: int,
        *,
        own: Indices | None = None,
        alone: bool = False,
        n_jobs: int | None = None,
    ) -> tuple[NDArray[np.int32], Floats64]:
        """Find the `k` nearest rows to each row of `Q` in `n_probes` lists, and their distances.

        Parameters
        ----------
        own : array (len(Q),), optional
            The table's row that each query is; it is excluded from its neighbours.
        alone : bool
            Whether a query's result must not depend on the other queries: the nearest rows, and
            the lowest row numbers among equal distances.

        Returns
        -------
        found : array (len(Q), k)
            −1 if the lists held too few rows.
        distances : array (len(Q), k)
        """
        Q = np.ascontiguousarray(Q)  # compiled loops may round strided rows differently
        probes = self.nearest(Q, min(n_probes, len(self.centres)), n_jobs)
        found = np.full((len(Q), k), -1, np.int32)
        distances = np.full((len(Q), k), np.inf)
        own = np.full(len(Q), -1) if own is None else own
        order = np.argsort(probes[:, 0], kind="stable")
        step = max(1, AGAIN // int(np.diff(self.starts).max()))

        def block(start: int, stop: int) -> None:
            rows = order[start:stop]
            kept, bound, slack = self._keep(Q, rows, probes[rows], k)
            unsure = self._settle(Q, rows, own, kept, bound - slack, found, distances)
            again = np.flatnonzero(unsure) if alone else rows[:0]
            for first in range(0, len(again), step):
                some = again[first : first + step]
                limits = distances[rows[some], -1] ** 2 + slack[some]
                near = self._within(Q, rows[some], probes[rows[some]], limits)
                beyond = np.full(len(some), np.inf)
                self._settle(Q, rows[some], own, near, beyond, found, distances)

        size = min(QUERIES, max(128, -(-len(Q) // 8)))
        with one_blas_thread():
            map_blocks(block, row_blocks(len(Q), size), n_jobs=n_jobs)
        return found, distances

    def _keep(
        self, Q: Floats64, rows: Indices, probes: NDArray[np.int32], k: int
    ) -> tuple[NDArray[np.int32], Floats64, Floats64]:
        """A few more than the k nearest rows, by approximate distance; −1 for none.

        Also returns a bound on the squared distances of the others, and the error of such squares.
        """
        n_lists, n_probes = len(self.centres), probes.shape[1]
        later = n_lists * (np.arange(n_probes) > 0)  # nearest lists first
        pairs = (probes + later).ravel()
        by_list = np.argsort(pairs.astype(np.uint16) if n_lists < 2**15 else pairs, kind="stable")
        pairs = pairs[by_list]
        cuts = np.flatnonzero(np.diff(pairs, prepend=-1, append=-1))
        most = k + 1 + SPARE
        room = min(ROOM * most, len(self.Z))  # at most all rows
        kept = np.empty((len(rows), room + CHUNK), np.int32)
        bound, slack = np.full(len(rows), np.inf, np.float32), np.zeros(len(rows))
        _look(
            Q,
            rows,
            by_list // n_probes,
            cuts,
            pairs[cuts[:-1]] % n_lists,
            self.centres,
            self.starts,
            self.radii,
            self.offsets,
            self.sq,
            most,
            kept,
            bound,
            slack,
        )
        return (
            np.ascontiguousarray(kept[:, : most + SPARE]),  # as for one row: same loop
            bound.astype(np.float64),
            (Q.shape[1] + 8) * (2.0**-24 * slack + SMALLEST),
        )

    def _settle(
        self,
        Q: Floats64,
        rows: Indices,
        own: Indices,
        kept: NDArray[np.int32],
        beyond: Floats64,
        found: NDArray[np.int32],
        distances: Floats64,
    ) -> NDArray[np.bool_]:
        """Write the nearest of the kept rows; returns where rows `beyond` them may be nearer."""
        far, names = np.empty(kept.shape), np.empty(kept.shape, np.int64)
        _measure(Q, self.Z, self.order, rows, own, kept, far, names)
        # As they stand, equally far rows of one list are in order already.
        by_distance = np.argsort(far, axis=1, kind="stable" if kept.shape[1] > MANY else None)
        unsure: NDArray[np.bool_] = _settle(rows, far, names, by_distance, beyond, found, distances)
        return unsure

    def _within(
        self, Q: Floats64, rows: Indices, probes: NDArray[np.int32], limits: Floats64
    ) -> NDArray[np.int32]:
        """Positions in their lists of the rows whose squared distances may be within `limits`.

        One row per query; −1 after the last.
        """
        queries, places = [], []
        for at in np.unique(probes):
            those = np.flatnonzero((probes == at).any(axis=1))
            offsets = np.empty((len(those), Q.shape[1]), np.float32)
            sq, start, stop = np.empty(len(those), np.float32), *self.starts[at : at + 2]
            _offsets(Q, rows[those], self.centres[at], offsets, sq)
            far = (TWO * offsets) @ self.offsets[start:stop].T
            np.subtract(self.sq[start:stop], far, out=far)
            below = np.minimum(limits[those] - sq, LARGEST).astype(np.float32)
            query, place = np.divmod(np.flatnonzero(far <= below[:, None]), stop - start)
            queries.append(those[query])
            places.append(start + place)
        query, place = np.concatenate(queries), np.concatenate(places)
        order, counts = np.argsort(query, kind="stable"), np.bincount(query, minlength=len(rows))
        near = np.full((len(rows), counts.max()), -1, np.int32)
        near[np.arange(counts.max()) < counts[:, None]] = place[order]
        return near


@kernel
def _nearest(
    Q: Floats64, columns: Floats32, half_sq: Floats32, found: Any, start: int, stop: int
) -> None:
    """Centres with the least |c|²/2 − q·c, in order."""
    n_lists, n_probes = half_sq.shape[0], found.shape[1]
    far = np.empty(n_lists, np.float32)
    least = np.empty(n_probes, np.float32)
    for i in range(start, stop):
        for j in range(n_lists):
            far[j] = half_sq[j]
        for c in range(columns.shape[0]):
            q = np.float32(min(max(Q[i, c], -WILDEST), WILDEST))
            for j in range(n_lists):
                far[j] -= q * columns[c, j]
        n = 0
        for j in range(n_lists):
            if n == n_probes:
                if not far[j] < least[n - 1]:
                    continue
                n -= 1
            at = n
            while at > 0 and far[j] < least[at - 1]:
                least[at], found[i, at] = least[at - 1], found[i, at - 1]
                at -= 1
            least[at], found[i, at] = far[j], j
            n += 1


@kernel
def _offsets(Q: Floats64, rows: Indices, centre: Floats32, out: Floats32, sq: Floats32) -> None:
    """Rows of `Q` relative to the centre, and their squared lengths."""
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(centre.shape[0]):
            q = min(max(Q[rows[i], c], -WILDEST), WILDEST)
            out[i, c] = q - centre[c]
            total += np.float64(out[i, c]) ** 2
        sq[i] = total


@kernel
def _look(
    Q: Floats64,
    rows: Indices,
    queries: Indices,
    cuts: Indices,
    lists: Any,
    centres: Floats32,
    starts: Indices,
    radii: Floats64,
    table: Floats32,
    table_sq: Floats32,
    most: int,
    kept: Any,
    bound: Floats32,
    slack: Floats64,
) -> None:
    """Probe one list with the queries between two `cuts`, list after list."""
    near = np.empty(kept.shape, np.float32)
    count = np.zeros(len(rows), np.int64)
    offsets = np.empty((TOGETHER, Q.shape[1]), np.float32)
    sq = np.empty(TOGETHER, np.float32)
    products = np.empty(TOGETHER * LONG, np.float32)
    for group in range(lists.shape[0]):
        at = lists[group]
        for first in range(cuts[group], cuts[group + 1], TOGETHER):
            those = queries[first : min(first + TOGETHER, cuts[group + 1])]
            m = those.shape[0]
            _offsets(Q, rows[those], centres[at], offsets, sq)
            for start in range(starts[at], starts[at + 1], LONG):
                stop = min(start + LONG, starts[at + 1])
                dots = products[: m * (stop - start)].reshape(m, stop - start)
                np.dot(offsets[:m], table[start:stop].T, dots)
                _take(dots, table_sq[start:stop], sq, those, start, most, near, kept, count, bound)
            for i in range(m):
                size = np.sqrt(np.float64(sq[i])) + radii[at]
                slack[those[i]] = max(slack[those[i]], size * size)
    for q in range(count.shape[0]):
        if count[q] > most + SPARE:
            end, bound[q] = _select(near[q], kept[q], np.uint64(count[q]), most, bound[q])
            count[q] = end
        kept[q, count[q] :] = -1


@kernel
def _take(
    dots: Floats32,
    table_sq: Floats32,
    sq: Floats32,
    queries: Indices,
    first: int,
    most: int,
    near: Floats32,
    kept: Any,
    count: Indices,
    bound: Floats32,
) -> None:
    """Keep the rows nearer than the farthest of the `most` nearest known so far.

    `dots` become distances, less the squared length of the query. All that a loop indexes with is
    unsigned, and a chunk's end is found at run time: a loop of fixed length would be unrolled
    before it is vectorised.
    """
    length, chunk = np.uint64(table_sq.shape[0]), np.uint64(CHUNK)
    for i in range(queries.shape[0]):
        q = queries[i]
        here, names, far, n, shift = near[q], kept[q], dots[i], np.uint64(count[q]), sq[i]
        below = bound[q] - shift
        for start in range(np.uint64(0), length, chunk):
            stop, nearer = min(start + chunk, length), np.int32(0)
            for j in range(start, stop):
                far[j] = table_sq[j] - TWO * far[j]
                nearer += np.int32(far[j] < below)
            if nearer == 0:
                continue
            if n + chunk > np.uint64(here.shape[0]):
                n, bound[q] = _select(here, names, n, most, bound[q])
                below = bound[q] - shift
            for j in range(start, stop):
                here[n], names[n] = far[j] + shift, first + np.int64(j)
                n += np.uint64(far[j] < below)
        count[q] = n


@kernel
def _select(near: Floats32, kept: Any, n: Any, most: int, high: Any) -> Any:
    """Move the `most` smallest of the first `n`, or a few more, to the front, in order.

    Returns how many, and the bound that the others exceed. It is found by bisection: counting
    is fast, while sorting suffers from mispredicted branches.
    """
    if high == np.inf:
        high = near[0]
        for j in range(n):
            high = near[j] if near[j] > high else high
    low, below = np.float32(-np.inf), 0  # number of values not above `low`
    few = False  # values not above `high`
    while high > 0 and not few:
        middle = np.float32((max(low, np.float32(0)) + high) / 2)
        if middle <= low or middle >= high:
            break  # all values in between are equal
        count = np.int32(0)
        for j in range(n):
            count += np.int32(near[j] <= middle)
        if count < most:
            low, below = middle, int(count)
        else:
            high, few = middle, bool(count <= most + SPARE)
    if few:
        low = high
    equal, end = most + SPARE - below, np.uint64(0)
    for j in range(n):
        value = near[j]
        near[end], kept[end] = value, kept[j]
        if few:  # no branch that depends on a value
            end += np.uint64(value <= high)
        else:
            tie = low < value <= high and equal > 0
            equal -= tie
            end += np.uint64(tie or value <= low)
    return end, high


@kernel
def _measure(
    Q: Floats64,
    Z: Floats64,
    order: Indices,
    rows: Indices,
    own: Indices,
    kept: Any,
    far: Floats64,
    names: Indices,
) -> None:
    """Distances of the kept rows as differences, and their numbers; infinite for none."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(kept.shape[1]):
            far[i, j], names[i, j] = np.inf, -1
            if kept[i, j] < 0:
                continue
            other = order[kept[i, j]]
            if other == own[row]:
                continue
            total = 0.0
            for c in range(Z.shape[1]):
                step = Q[row, c] - Z[other, c]
                total += step * step
            far[i, j], names[i, j] = np.sqrt(total), other


@kernel
def _settle(
    rows: Indices,
    far: Floats64,
    names: Indices,
    by_distance: Indices,
    beyond: Floats64,
    found: Any,
    distances: Floats64,
) -> Any:
    """Take the nearest by (distance, row number); return whether others may be nearer.

    `by_distance` sorts `far`, equal distances in any order.
    """
    k = found.shape[1]
    unsure = np.zeros(rows.shape[0], np.bool_)
    for i in range(rows.shape[0]):
        row, n = rows[i], 0
        for j in range(by_distance.shape[1]):
            distance, other = far[i, by_distance[i, j]], names[i, by_distance[i, j]]
            if other < 0:
                break
            if n == k:
                last = distances[row, k - 1]
                if distance > last:
                    break
                if other > found[row, k - 1]:
                    continue
                n -= 1
            at = n
            while at > 0 and distance == distances[row, at - 1] and other < found[row, at - 1]:
                distances[row, at], found[row, at] = distances[row, at - 1], found[row, at - 1]
                at -= 1
            distances[row, at], found[row, at] = distance, other
            n += 1
        unsure[i] = n == k and not distances[row, k - 1] ** 2 < beyond[i]
    return unsure
