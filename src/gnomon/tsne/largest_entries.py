"""P cut to its largest entries: two fifths of them hold nine tenths of every row.

Row i keeps its largest entries, as many as hold `SHARE` of its mass. An entry p_ij stays if row i
or row j keeps it, so that what is left is symmetric and every row still holds that share or more.
It is then divided by its sum.

The descent follows the cut P up to the last iterations, which have the whole one: attraction costs
in proportion to the entries, and small ones hardly pull.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats32, Table

SHARE = 0.9  # of a row's mass: time against KL (decision 0025, `benchmarks/tsne_sets.py`)
HALVINGS = 16  # of the span in which a row's smallest entry that stays is looked for: 1 in 65,000
ROWS = 2048  # rows at a time

__all__ = ["SHARE", "cut"]


def cut(P: Table, share: float = SHARE, n_jobs: int | None = None) -> Table:
    """The entries of a symmetric CSR array that hold `share` of every row, summing to 1."""
    n = P.shape[0]
    blocks = row_blocks(n, ROWS)
    limits, lengths = np.empty(n, np.float32), np.empty(n, np.int64)
    given = P.indptr.astype(np.uint64), P.indices.view(f"u{P.indices.itemsize}"), P.data

    def limit(start: int, stop: int) -> None:
        _limit(given[0], given[2], np.float32(share), limits, start, stop)

    def count(start: int, stop: int) -> None:
        _count(*given, limits, lengths, start, stop)

    map_blocks(limit, blocks, n_jobs=n_jobs)
    map_blocks(count, blocks, n_jobs=n_jobs)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(P.indptr.dtype)
    indices, data = np.empty(indptr[-1], P.indices.dtype), np.empty(indptr[-1], np.float32)

    def fill(start: int, stop: int) -> float:
        _fill(*given, limits, indptr, indices, data, start, stop)
        return float(data[indptr[start] : indptr[stop]].sum(dtype=np.float64))

    data *= np.float32(1 / sum(map_blocks(fill, blocks, n_jobs=n_jobs)))
    return sp.csr_array((data, indices, indptr), shape=(n, n))


@kernel
def _limit(
    indptr: Any, data: Floats32, share: Any, limits: Floats32, start: int, stop: int
) -> None:
    """The largest number, nearly, such that the entries of row i not below it hold the share."""
    for i in range(np.uint64(start), np.uint64(stop)):
        total = low = high = np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            total += data[at]
            high = max(high, data[at])
        wanted = share * total
        for _ in range(HALVINGS):
            middle = np.float32(0.5) * (low + high)
            held = np.float32(0)
            for at in range(indptr[i], indptr[i + 1]):
                held += data[at] if data[at] >= middle else np.float32(0)
            if held >= wanted:
                low = middle
            else:
                high = middle
        limits[i] = low


@kernel
def _count(
    indptr: Any, indices: Any, data: Floats32, limits: Floats32, lengths: Any, start: int, stop: int
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        count = 0
        for at in range(indptr[i], indptr[i + 1]):
            count += data[at] >= min(limits[i], limits[indices[at]])
        lengths[i] = count


@kernel
def _fill(
    indptr: Any,
    indices: Any,
    data: Floats32,
    limits: Floats32,
    to_indptr: Any,
    to_indices: Any,
    to_data: Floats32,
    start: int,
    stop: int,
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        to = to_indptr[i]
        for at in range(indptr[i], indptr[i + 1]):
            if data[at] >= min(limits[i], limits[indices[at]]):
                to_indices[to], to_data[to] = indices[at], data[at]
                to += 1
