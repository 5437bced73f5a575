"""Exact nearest neighbours of a small table, by products of matrices in NumPy alone.

A table of a few thousand rows is searched in a fraction of a second by any method, while compiling
the kernels of `inverted_lists` takes four seconds on a new machine. For a block of m queries:

1. Squared distances to all n rows, less |q|²: |z|² − 2 q·z, shape (m, n), float64.
2. The smallest k + `SPARE` of each row are candidates, and those up to a limit estimated from a
   sample of the columns: selecting in the sample takes an eighth of the time.
3. Distances of the candidates are computed as differences, and sorted by (distance, row number).
4. The rounding of a product depends on the other queries in it. A row z within the k-th distance r
   of q has |z| ≤ |q| + r, so its rounding is at most about d ε (2|q| + r)². If r² is not below the
   limit by more than that, the query computes its distance to every row instead.

So the result is exact, and does not depend on the other queries.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import map_blocks, quiet, row_blocks
from gnomon.numeric.scaling import scratch
from gnomon.typing import Floats64, Indices

SPARE = 4  # candidates beyond the k requested
EVERY = 8  # one column in this many is sampled for the limit of the candidates
QUERIES = 64  # queries in a block
PAIR_NUMBERS = 2**15  # differences at a time: 256 kB, which fit a core's cache
EPSILON, SMALLEST = 2.0**-52, 2.0**-1022  # of float64

__all__ = ["BruteForce"]


class BruteForce:
    """Exhaustive search among the rows of `Z`, shape (n, d)."""

    def __init__(self, Z: Floats64) -> None:
        self.Z = Z
        with np.errstate(over="ignore"):
            self.sq = np.einsum("ij,ij->i", Z, Z)

    def search(
        self,
        Q: Floats64,
        k: int,
        *,
        own: Indices | None = None,
        n_jobs: int | None = None,
    ) -> tuple[Indices, Floats64]:
        """Find the `k` nearest rows to each row of `Q`, and their distances, both (len(Q), k).

        Parameters
        ----------
        own : array (len(Q),), optional
            The table's row that each query is; it is excluded from its neighbours.
        """
        found, distances = np.empty((len(Q), k), np.int64), np.empty((len(Q), k))
        own = np.full(len(Q), -1) if own is None else own

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            sure = self._search_block(Q[part], own[part], found[part], distances[part])
            for i in start + np.flatnonzero(~sure):
                everyone = np.delete(np.arange(len(self.Z)), own[i : i + 1][own[i : i + 1] >= 0])
                far = self._measure(Q, np.full(everyone.size, i), everyone)
                nearest = np.lexsort((everyone, far))[:k]
                found[i], distances[i] = everyone[nearest], far[nearest]

        with one_blas_thread():
            map_blocks(quiet(block), row_blocks(len(Q), QUERIES), n_jobs=n_jobs)
        return found, distances

    def _search_block(
        self, Q: Floats64, own: Indices, found: Indices, distances: Floats64
    ) -> NDArray[np.bool_]:
        """Fill in `found` and `distances`, (m, k); return which queries are certain."""
        m, k, n = *found.shape, len(self.Z)
        far = np.matmul(-2 * Q, self.Z.T, out=scratch((m, n), Q.dtype))
        far += self.sq
        inside = np.flatnonzero(own >= 0)
        far[inside, own[inside]] = np.inf
        limit = _limits(far, k + SPARE)
        query, row = np.divmod(np.flatnonzero(~(far > limit[:, None])), n)
        query, row = (values[row != own[query]] for values in (query, row))
        counts = np.bincount(query, minlength=m)
        place = np.arange(query.size) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, away = np.zeros((m, counts.max()), np.int64), np.full((m, counts.max()), np.inf)
        rows[query, place], away[query, place] = row, self._measure(Q, query, row)
        nearest = np.argsort(away, axis=1, kind="stable")[:, :k]  # ties: lowest row first
        found[...] = np.take_along_axis(rows, nearest, axis=1)
        distances[...] = np.take_along_axis(away, nearest, axis=1)
        length, last = np.sqrt(np.einsum("ij,ij->i", Q, Q)), distances[:, -1]
        rounding = (Q.shape[1] + 8) * (EPSILON * (2 * length + last) ** 2 + SMALLEST)
        sure: NDArray[np.bool_] = last**2 < limit + length**2 - rounding
        return sure

    def _measure(self, Q: Floats64, query: Indices, row: Indices) -> Floats64:
        """Distances between rows of `Q` and rows of the table, as differences."""
        out = np.empty(query.size)
        step = max(1, PAIR_NUMBERS // Q.shape[1])
        for start in range(0, query.size, step):
            part = slice(start, start + step)
            away: Any = Q[query[part]]
            away -= self.Z[row[part]]
            np.einsum("ij,ij->i", away, away, out=out[part])
        return np.sqrt(out, out=out)


def _limits(far: Floats64, least: int) -> Floats64:
    """Limits that at least `least` numbers of each row do not exceed, and rarely many more.

    The sample's quantile is chosen two standard deviations too high. Rows for which it still
    leaves too few are searched completely.
    """
    m, n = far.shape
    if least >= n:
        return np.full(m, np.inf)
    in_sample = least / EVERY
    rank = int(in_sample + 2 * np.sqrt(in_sample))
    sample = far[:, ::EVERY]
    if rank >= sample.shape[1]:
        return _ranked(far, least - 1)
    limits = _ranked(sample, rank)
    few = np.count_nonzero(far <= limits[:, None], axis=1) < least
    limits[few] = _ranked(far[few], least - 1)
    return limits


def _ranked(numbers: Floats64, rank: int) -> Floats64:
    """Number of this rank in each row; 0 is the smallest."""
    return np.partition(numbers, rank, axis=1)[:, rank].copy()
