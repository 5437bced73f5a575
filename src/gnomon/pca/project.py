"""Scores and reconstructions, a row's result never depending on the rows beside it.

BLAS may add in another order for another number of rows. So every product here is of exactly
`ROWS` rows, the last block filled up with zeros: the same row gives the same bits in any batch.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.parallel import map_blocks, row_blocks
from gnomon.rows import Floats, Rows

ROWS = 256
RANGE = 16 * ROWS  # what a thread takes at a time

__all__ = ["project", "restore"]


def project(rows: Rows, components: NDArray[np.float64], *, n_jobs: int | None) -> Floats:
    """Z Wᵀ for the prepared rows Z (n, d) and the components W (k, d), shape (n, k)."""
    (n, d), k = rows.shape, components.shape[0]
    W = np.ascontiguousarray(components.T.astype(rows.work))
    scores = np.empty((n, k), rows.work)

    def block(start: int, stop: int) -> None:
        buffer, product = np.empty((ROWS, d), rows.work), np.empty((ROWS, k), rows.work)
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            rows.read(at, end, buffer)
            buffer[end - at :] = 0
            np.matmul(buffer, W, out=product)
            scores[at:end] = product[: end - at]

    map_blocks(block, row_blocks(n, RANGE), n_jobs=n_jobs)
    return scores


def restore(
    scores: Floats,
    components: NDArray[np.float64],
    factor: NDArray[np.float64],
    mean: NDArray[np.float64],
    *,
    n_jobs: int | None,
) -> Floats:
    """(Z W) / factor + mean for scores Z (n, k), shape (n, d)."""
    (n, k), d = scores.shape, components.shape[1]
    W = np.ascontiguousarray((components / factor).astype(scores.dtype))
    out = np.empty((n, d), scores.dtype)
    centre = mean.astype(scores.dtype)

    def block(start: int, stop: int) -> None:
        buffer, product = np.zeros((ROWS, k), scores.dtype), np.empty((ROWS, d), scores.dtype)
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            buffer[: end - at] = scores[at:end]
            buffer[end - at :] = 0
            np.matmul(buffer, W, out=product)
            np.add(product[: end - at], centre, out=out[at:end])

    map_blocks(block, row_blocks(n, RANGE), n_jobs=n_jobs)
    return out
