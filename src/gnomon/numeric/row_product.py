"""Rows times a matrix; the result of a row never depends on the rows beside it.

BLAS may add in another order for another number of rows. So every product has exactly `ROWS`
rows, the last block padded with zeros: the same row gives the same bits in any batch. The
products are float64 for float32 tables too: OpenBLAS's float32 product adds in an order that
depends on the position of a row in its block.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, quiet, row_blocks
from gnomon.numeric.scaling import Rows
from gnomon.typing import Floats

ROWS = 256  # rows of a product, by definition: the bits of results follow from it
RANGE_ROWS = 16 * ROWS  # rows that a thread takes at a time

__all__ = ["RANGE_ROWS", "ROWS", "row_product"]


def row_product(
    rows: Rows,
    matrix: NDArray[np.float64],
    *,
    exponent: int = 0,
    centre: NDArray[np.float64] | None = None,
    n_jobs: int | None,
) -> Floats:
    """(Z A) · 2^exponent + centre for the prepared rows Z (n, d) and A (d, k), shape (n, k)."""
    (n, d), k = rows.shape, matrix.shape[1]
    A = np.ascontiguousarray(matrix)
    out = np.empty((n, k), rows.work)
    wide = rows if rows.work.itemsize == 8 else rows.scaled(work=np.dtype(np.float64))

    def block(start: int, stop: int) -> None:
        buffer, product = np.empty((ROWS, d)), np.empty((ROWS, k))
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            wide.read(at, end, buffer)
            buffer[end - at :] = 0
            np.matmul(buffer, A, out=product)
            if exponent:
                np.ldexp(product, exponent, out=product)
            if centre is not None:
                product += centre
            out[at:end] = product[: end - at]

    # An infinity shows in the product; the caller reports it with row and column.
    map_blocks(quiet(block), row_blocks(n, RANGE_ROWS), n_jobs=n_jobs)
    return out
