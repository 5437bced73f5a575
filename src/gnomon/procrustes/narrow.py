"""Sums over pairs of short rows, as compiled loops.

For tables of a few columns NumPy spends its time between the rows, not on them: subtracting a mean
from an (n, 2) table takes longer than everything here. So:

1. A block of rows is shifted and laid out by columns, x (dx, m) and y (dy, m), in float64.
2. Sums, squares and products of columns are loops over m contiguous numbers.
3. The residuals of a block are, in the same layout, ‖s·xR − u·y‖² for each row.

A block has `BLOCK` rows whatever the number of threads, and is in the same layout whatever the
layout of the table, so the bits are those of the numbers only.
"""

import numpy as np

from gnomon.compute.kernels import kernel
from gnomon.numeric.scaling import Rows, scratch
from gnomon.typing import Floats64

# Columns up to which these loops are used. They are quicker than BLAS up to 12 or so, by the rows
# `width-…` of `benchmarks/procrustes.py`: 2.6 ms against 13 at 2 columns, 7 against 17 at 6.
WIDEST = 8
BLOCK = 16384  # rows; a block of a few columns stays in a core's cache

DOUBLE = np.dtype(np.float64)

__all__ = ["BLOCK", "WIDEST", "column_block", "pair_sums", "sq_residuals"]


def column_block(rows: Rows, start: int, stop: int, slot: int) -> Floats64:
    """Rows `start` to `stop` as columns (d, stop − start), shifted, in a buffer of this thread."""
    d = rows.shape[1]
    out: Floats64 = scratch((d, stop - start), DOUBLE, slot)  # type: ignore[assignment]
    X = rows.X
    how = rows.scaling
    plain = how.exponent == 0 and how.offset is None and how.shift.dtype == DOUBLE
    if plain and X.dtype == DOUBLE and X.dtype.isnative and X.flags.c_contiguous:
        _shift_columns(X[start:stop], how.shift, out)
    else:
        z = rows.read(start, stop, scratch((stop - start, d), rows.work, slot + 1))
        out[...] = z.T
    return out


@kernel
def _shift_columns(X: Floats64, shift: Floats64, out: Floats64) -> None:
    """out[c, i] = X[i, c] − shift[c]."""
    for c in range(X.shape[1]):
        s = shift[c]
        for i in range(X.shape[0]):
            out[c, i] = X[i, c] - s


@kernel
def pair_sums(x: Floats64, y: Floats64, w: Floats64, out: Floats64) -> None:
    """Σwx, Σwy, Σwx², Σwy² and Σwxyᵀ of x (dx, m), y (dy, m), one after the other in `out`."""
    dx, dy, m = x.shape[0], y.shape[0], x.shape[1]
    for a in range(dx):
        first, second = 0.0, 0.0
        for i in range(m):
            first += w[i] * x[a, i]
            second += w[i] * x[a, i] * x[a, i]
        out[a], out[dx + dy + a] = first, second
    for b in range(dy):
        first, second = 0.0, 0.0
        for i in range(m):
            first += w[i] * y[b, i]
            second += w[i] * y[b, i] * y[b, i]
        out[dx + b], out[2 * dx + dy + b] = first, second
    at = 2 * (dx + dy)
    for a in range(dx):
        for b in range(dy):
            total = 0.0
            for i in range(m):
                total += w[i] * x[a, i] * y[b, i]
            out[at + a * dy + b] = total


@kernel
def sq_residuals(
    x: Floats64, y: Floats64, R: Floats64, s: float, u: float, ox: Floats64, oy: Floats64,
    out: Floats64,
) -> None:  # fmt: skip
    """out[i] = ‖s·(x − ox)R − u·(y − oy)‖² of columns x (dx, m) and y (dy, m); R is (dx, D).

    Columns of R beyond those of y are compared with zero.
    """
    dx, dy, D = x.shape[0], y.shape[0], R.shape[1]
    m = x.shape[1]
    away = np.empty(m)
    for i in range(m):
        out[i] = 0.0
    for e in range(D):
        if e < dy:
            for i in range(m):
                away[i] = -u * (y[e, i] - oy[e])
        else:
            for i in range(m):
                away[i] = 0.0
        for c in range(dx):
            turn = s * R[c, e]
            for i in range(m):
                away[i] += turn * (x[c, i] - ox[c])
        for i in range(m):
            out[i] += away[i] * away[i]
