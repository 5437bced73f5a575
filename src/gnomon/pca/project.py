"""Scores and reconstructions, a row's result never depending on the rows beside it.

BLAS may add in another order for another number of rows. So every product here is of exactly
`ROWS` rows, the last block filled up with zeros: the same row gives the same bits in any batch.
The products are float64 for float32 tables too: OpenBLAS's float32 product adds in an order that
depends on a row's place in the block.
"""

from dataclasses import replace

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
    W = np.ascontiguousarray(components.T)
    scores = np.empty((n, k), rows.work)
    wide = replace(rows, work=np.dtype(np.float64))

    def block(start: int, stop: int) -> None:
        buffer, product = np.empty((ROWS, d)), np.empty((ROWS, k))
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            wide.read(at, end, buffer)
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
    exponent: int,
    n_jobs: int | None,
) -> Floats:
    """(Z W) / factor · 2^exponent + mean for scores Z (n, k), shape (n, d).

    A column whose factor is 0 (constant, standardised) is restored by its mean.
    """
    (n, k), d = scores.shape, components.shape[1]
    W = np.where(factor == 0, 0.0, components / np.where(factor == 0, 1.0, factor))
    out = np.empty((n, d), scores.dtype)

    def block(start: int, stop: int) -> None:
        buffer, product = np.zeros((ROWS, k)), np.empty((ROWS, d))
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            buffer[: end - at] = scores[at:end]
            buffer[end - at :] = 0
            np.matmul(buffer, W, out=product)
            if exponent:
                np.ldexp(product, exponent, out=product)
            out[at:end] = product[: end - at] + mean

    map_blocks(block, row_blocks(n, RANGE), n_jobs=n_jobs)
    return out
