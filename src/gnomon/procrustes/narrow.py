"""Sums over pairs of short rows, as compiled loops.

For tables of a few columns NumPy's overhead per row dominates: subtracting a mean
from an (n, 2) table takes longer than everything here. So:

1. A block of rows is shifted and laid out by columns, x (dx, m) and y (dy, m), in float64.
2. Sums, squares and products of columns are loops over m contiguous numbers.
3. The residuals of a block are, in the same layout, ‖s·xR − u·y‖² for each row.

A block has `BLOCK` rows for any number of threads, and the same layout for any
layout of the table, so the bits depend only on the numbers.

Compiling the loops takes a second of processor time on a new machine. Blocks of up to `SMALL_UP_TO`
rows, a short table or the end of a long one, are computed by NumPy instead, in the same layout; the
loops round differently. BLAS is not used: its sums may depend on memory addresses. Products
are summed as they are formed, and what is kept meanwhile is in buffers of the thread.
"""

import numpy as np

from gnomon.compute.kernels import kernel
from gnomon.numeric.scaling import Rows, scratch
from gnomon.typing import Floats64

# Most columns for which these loops are used. They are faster than BLAS up to 12 or so, by the rows
# `width-…` of `benchmarks/procrustes.py`: 2.6 ms against 13 at 2 columns, 7 against 17 at 6.
WIDEST = 8
BLOCK = 16384  # rows; a block of a few columns stays in a core's cache
# Rows of a block up to which compiling the loops costs more than it saves
# (`benchmarks/crossovers.py`, "narrow").
SMALL_UP_TO = 2_500

DOUBLE = np.dtype(np.float64)

__all__ = ["BLOCK", "WIDEST", "column_block", "pair_sums", "sq_residuals"]


def column_block(left: Rows, right: Rows, start: int, stop: int) -> Floats64:
    """Rows `start` to `stop` of X and Y as columns (dx + dy, stop − start), shifted.

    In a buffer of this thread; the columns of X come first.
    """
    dx, dy = left.X.shape[1], right.X.shape[1]
    columns = _buffer((dx + dy, stop - start), 0)
    _fill(left, start, stop, columns[:dx])
    _fill(right, start, stop, columns[dx:])
    return columns


def _fill(rows: Rows, start: int, stop: int, out: Floats64) -> None:
    X = rows.X
    how = rows.scaling
    plain = how.exponent == 0 and how.offset is None and how.shift.dtype == DOUBLE
    loop = plain and X.dtype == DOUBLE and X.dtype.isnative and X.flags.c_contiguous
    if loop and stop - start > SMALL_UP_TO:
        _shift_columns(X[start:stop], how.shift, out)
    elif loop:
        np.subtract(X[start:stop].T, how.shift[:, None], out=out)
    else:
        z = rows.read(start, stop, scratch((stop - start, len(out)), rows.work, 1))
        out[...] = z.T


def pair_sums(columns: Floats64, dx: int, w: Floats64, out: Floats64) -> None:
    """Σwx, Σwy, Σwx², Σwy² and Σwxyᵀ of a block of columns, one after the other in `out`."""
    if columns.shape[1] > SMALL_UP_TO:
        _pair_sums(columns[:dx], columns[dx:], w, out)
        return
    d = len(columns)
    weighted = np.multiply(columns, w, out=_buffer(columns.shape, 2))
    np.add.reduce(weighted, axis=1, out=out[:d])
    np.einsum("im,im->i", weighted, columns, out=out[d : 2 * d])
    cross = out[2 * d :].reshape(dx, d - dx)
    np.einsum("im,jm->ij", weighted[:dx], columns[dx:], out=cross)


def sq_residuals(
    columns: Floats64, R: Floats64, s: float, u: float, offset: Floats64, out: Floats64
) -> None:
    """out[i] = ‖s·(x − ox)R − u·(y − oy)‖² of a block of columns; R is (dx, D).

    `offset` is ox and oy. Columns of R beyond those of y are compared to zero.
    """
    dx, D = R.shape
    if columns.shape[1] > SMALL_UP_TO:
        _sq_residuals(columns[:dx], columns[dx:], R, s, u, offset[:dx], offset[dx:], out)
        return
    centred = np.subtract(columns, offset[:, None], out=_buffer(columns.shape, 2))
    y = centred[dx:]
    y *= u
    away = _buffer((D, columns.shape[1]), 3)
    np.einsum("ce,cm->em", s * R, centred[:dx], out=away)
    away[: len(y)] -= y
    np.einsum("em,em->m", away, away, out=out)


def _buffer(shape: tuple[int, int], slot: int) -> Floats64:
    return scratch(shape, DOUBLE, slot)  # type: ignore[return-value]


@kernel
def _shift_columns(X: Floats64, shift: Floats64, out: Floats64) -> None:
    """out[c, i] = X[i, c] − shift[c]."""
    for c in range(X.shape[1]):
        s = shift[c]
        for i in range(X.shape[0]):
            out[c, i] = X[i, c] - s


@kernel
def _pair_sums(x: Floats64, y: Floats64, w: Floats64, out: Floats64) -> None:
    """Compute `pair_sums` of a long block."""
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
def _sq_residuals(
    x: Floats64,
    y: Floats64,
    R: Floats64,
    s: float,
    u: float,
    ox: Floats64,
    oy: Floats64,
    out: Floats64,
) -> None:
    """Compute `sq_residuals` of a long block."""
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
