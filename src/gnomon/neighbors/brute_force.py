"""Exact nearest neighbours of a small table, by products of matrices and one compiled loop.

A table of a few thousand rows is searched in a fraction of a second by any method, while compiling
the kernels of `inverted_lists` takes four seconds on a new machine, and the one here half a second.
For a block of m queries:

1. Squared distances to all n rows, less |q|²: |z|² − 2 q·z, shape (m, n), float64.
2. The smallest k + `SPARE` of each row are candidates, and those up to a limit estimated from a
   sample of the columns: selecting in the sample takes an eighth of the time.
3. Distances of the candidates are computed as differences, and sorted by (distance, row number).
4. The rounding of a product depends on the other queries in it. A row z within the k-th distance r
   of q has |z| ≤ |q| + r, so its rounding is at most about d ε (2|q| + r)². If r² is not below the
   limit by more than that, the query computes its distance to every row instead.

So the result is exact, and does not depend on the other queries. Step 3 is compiled because NumPy
holds the interpreter's lock in most of it: on two threads it took as long as on one.
"""

import numpy as np

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, quiet, row_blocks
from gnomon.numeric.scaling import scratch
from gnomon.typing import Floats64, Indices

SPARE = 4  # candidates beyond the k requested
EVERY = 8  # one column in this many is sampled for the limit of the candidates
QUERIES = 64  # queries in a block
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
        Q = np.ascontiguousarray(Q)  # compiled loops may round strided rows differently
        found, distances = np.empty((len(Q), k), np.int64), np.empty((len(Q), k))
        own = np.full(len(Q), -1) if own is None else own

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            self._search_block(Q[part], own[part], found[part], distances[part])

        with one_blas_thread():
            map_blocks(quiet(block), row_blocks(len(Q), QUERIES), n_jobs=n_jobs)
        return found, distances

    def _search_block(self, Q: Floats64, own: Indices, found: Indices, distances: Floats64) -> None:
        """Fill in `found` and `distances`, (m, k)."""
        m, k, n = *found.shape, len(self.Z)
        far = np.matmul(-2 * Q, self.Z.T, out=scratch((m, n), Q.dtype))
        far += self.sq
        inside = np.flatnonzero(own >= 0)
        far[inside, own[inside]] = np.inf
        limit = _limits(far, k + SPARE)
        _take_nearest(far, limit, np.arange(m), Q, self.Z, own, found, distances)
        length, last = np.sqrt(np.einsum("ij,ij->i", Q, Q)), distances[:, -1]
        rounding = (Q.shape[1] + 8) * (EPSILON * (2 * length + last) ** 2 + SMALLEST)
        unsure = np.flatnonzero(~(last**2 < limit + length**2 - rounding))
        limit[unsure] = np.inf
        _take_nearest(far, limit, unsure, Q, self.Z, own, found, distances)


@kernel
def _take_nearest(
    far: Floats64,
    limit: Floats64,
    queries: Indices,
    Q: Floats64,
    Z: Floats64,
    own: Indices,
    found: Indices,
    distances: Floats64,
) -> None:
    """Measure the rows of `Z` within the limits of some `queries`, and keep the nearest in order.

    Equally far rows stay in the order of their numbers.
    """
    k = found.shape[1]
    for i in queries:
        n = 0
        for j in range(Z.shape[0]):
            if far[i, j] > limit[i] or j == own[i]:
                continue
            sq = 0.0
            for c in range(Z.shape[1]):
                step = Q[i, c] - Z[j, c]
                sq += step * step
            distance = np.sqrt(sq)
            if n == k:
                if not distance < distances[i, k - 1]:
                    continue
                n -= 1
            at = n
            while at > 0 and distance < distances[i, at - 1]:
                distances[i, at], found[i, at] = distances[i, at - 1], found[i, at - 1]
                at -= 1
            distances[i, at], found[i, at] = distance, j
            n += 1


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
