"""Centres of a table's rows, by a few iterations of k-means on a sample.

1. Draw a sample of 64 rows per centre, and choose the first centres from it.
2. Ten iterations: every sampled row is assigned to its nearest centre, every centre moves to the
   mean of its rows. A centre without rows takes half of the rows of the largest group: both move
   slightly apart.

Rows are processed in fixed blocks on threads, whose sums are added in order: the bits do not depend
on the number of threads.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.typing import Floats32, Floats64

SAMPLED = 64  # sampled rows per centre
ROUNDS = 10
ROWS = 1024
APART = 1 / 1024  # relative movement of a centre when its group is halved

__all__ = ["find_centres"]


def find_centres(
    Z: NDArray[Any], count: int, *, largest: float, seed: int, n_jobs: int | None = None
) -> Floats32:
    """Find centres of the rows of `Z`, shape (n, d); numbers beyond `largest` are clipped."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(Z), min(len(Z), SAMPLED * count), replace=False))
    sample = np.clip(Z[rows], -largest, largest).astype(np.float32)
    centres: Floats32 = sample[rng.choice(len(sample), count, replace=False)]
    with one_blas_thread():
        for _ in range(ROUNDS):
            sums, counts = _sums(sample, centres, n_jobs)
            _halve_largest(sums, counts)
            centres = (sums / counts[:, None]).astype(np.float32)
    return centres


def _sums(
    sample: Floats32, centres: Floats32, n_jobs: int | None
) -> tuple[Floats64, NDArray[np.int64]]:
    """Sum and number of the rows nearest to each centre."""
    half_sq = ((centres.astype(np.float64) ** 2).sum(axis=1) / 2).astype(np.float32)
    sums, counts = np.zeros(centres.shape), np.zeros(len(centres), np.int64)

    def block(start: int, stop: int) -> tuple[Floats64, NDArray[np.int64]]:
        rows = sample[start:stop]
        nearest = (half_sq - rows @ centres.T).argmin(axis=1)
        found = np.bincount(nearest, minlength=len(centres))
        order = np.argsort(nearest, kind="stable")
        starts = np.concatenate([[0], np.cumsum(found)])
        groups = sp.csr_array((np.ones(len(rows)), order, starts), (len(centres), len(rows)))
        return groups @ rows.astype(np.float64), found

    def add(part: tuple[Floats64, NDArray[np.int64]]) -> None:
        nonlocal sums, counts
        sums += part[0]
        counts += part[1]

    fold_blocks(block, row_blocks(len(sample), ROWS), add, n_jobs=n_jobs)
    return sums, counts


def _halve_largest(sums: Floats64, counts: NDArray[np.int64]) -> None:
    """Give every empty group half of the largest one, at nearly the same mean."""
    apart = np.where(np.arange(sums.shape[1]) % 2 == 0, APART, -APART)
    for empty in np.flatnonzero(counts == 0):
        largest = np.argmax(counts)
        mean, rows = sums[largest] / counts[largest], counts[largest]
        counts[empty] = max(1, rows // 2)
        counts[largest] = max(1, rows - rows // 2)
        sums[empty] = counts[empty] * mean * (1 + apart)
        sums[largest] = counts[largest] * mean * (1 - apart)
