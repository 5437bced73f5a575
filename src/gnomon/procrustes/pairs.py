"""Two tables read row beside row: their moments in one pass, their residuals in another.

`Pair.moments` is what `CrossMoments.of` gives, in one reading of both tables instead of three.
Tables of up to `narrow.WIDEST` columns go through compiled loops, wider ones through BLAS, both
over blocks that depend on the tables' size only.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs import Table, refuse_bad_values
from gnomon.moments import FLUSH_ROWS, RANGE_NUMBERS, CrossMoments, Moments
from gnomon.parallel import fold_blocks, map_blocks, quiet, row_blocks
from gnomon.procrustes.narrow import BLOCK, WIDEST, column_block, pair_sums, sq_residuals
from gnomon.procrustes.tables import speaking_of
from gnomon.roundoff import ROUNDINGS
from gnomon.rows import Rows, amplitude, exponent_for, read_rows, scratch

if TYPE_CHECKING:
    from gnomon.procrustes.frame import Frame

Floats64 = NDArray[np.float64]

ONES = np.ones(BLOCK)

__all__ = ["Pair", "read_pair"]


@dataclass(frozen=True)
class Pair:
    """Tables X (n, dx) and Y (n, dy), prepared for reading, and how many threads read them."""

    left: Rows
    right: Rows
    n_jobs: int | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the compiled loops are used."""
        return max(self.left.shape[1], self.right.shape[1]) <= WIDEST

    def in_units_of(self, moments: CrossMoments) -> "Pair":
        """The same tables, read with the exponents of `moments`."""
        left = replace(self.left, exponent=moments.x.exponent)
        return replace(self, left=left, right=replace(self.right, exponent=moments.y.exponent))

    def in_float64(self) -> "Pair":
        """The same tables, their products in float64."""
        wide = np.dtype(np.float64)
        return replace(
            self, left=replace(self.left, work=wide), right=replace(self.right, work=wide)
        )

    def rows(self) -> int:
        """How many there are."""
        return self.left.shape[0]

    def threads(self, blocks: int) -> int | None:
        """`n_jobs`, or 1 for one block: counting CPUs takes as long as a small fit."""
        return 1 if blocks == 1 else self.n_jobs

    def moments(self, weights: Floats64 | None = None) -> CrossMoments:
        """Count, means, column variances and Σ w (x − μₓ)(y − μᵧ)ᵀ."""
        found = _Sums(self, weights)
        if not found.finite:
            refuse_bad_values(self.left.X, names=self.left.names)
            with speaking_of("Y"):
                refuse_bad_values(self.right.X)
        if not found.finite or found.vanished:
            found = _Sums(self._measured(), weights)  # finite, but too large or small to square
        return found.about_the_means()

    def _measured(self) -> "Pair":
        """With the exponents that the largest numbers of the whole tables ask for."""
        left, right = (
            replace(rows, exponent=exponent_for(amplitude(rows, self.n_jobs), rows.work))
            for rows in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    def sq_residuals(self, frame: "Frame", scale: float, factor: float) -> Floats64:
        """‖scale·xR − factor·y‖² of every row x, y in the units of `frame`'s moments, shape (n,).

        Rows are about their means if `frame` is.
        """
        left, right = frame.about(self.left, self.right)
        out = np.empty(self.rows())
        one = _narrow_residuals if self.is_narrow else _wide_residuals

        def block(start: int, stop: int) -> None:
            one(left, right, frame.rotation.matrix, scale, factor, out[start:stop], start)

        blocks = row_blocks(self.rows(), BLOCK if self.is_narrow else _step(left, right))
        map_blocks(quiet(block), blocks, n_jobs=self.threads(len(blocks)))
        return out


def read_pair(
    X: Table,
    Y: Table,
    weights: Floats64 | None,
    *,
    shifts: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
    names: NDArray[Any] | None = None,
    n_jobs: int | None = None,
) -> Pair:
    """X and Y with the shifts and exponents chosen for reading."""
    if X.shape[0] != Y.shape[0]:
        raise DataError(
            f"X and Y must have the same number of rows; got {X.shape[0]} and {Y.shape[0]}. "
            "Rows are points, and row i of X belongs to row i of Y; `gnomon.align` joins them by "
            "ids."
        )
    narrow = max(X.shape[1], Y.shape[1]) <= WIDEST
    work = np.float64 if narrow else None
    left = read_rows(X, shift=shifts[0], work=work, weights=weights, names=names)
    right = read_rows(Y, shift=shifts[1], work=work, weights=weights)
    return Pair(left, right, n_jobs)


class _Sums:
    """Σw, Σwx, Σwy, Σwx², Σwy² and Σwxyᵀ about the shifts."""

    def __init__(self, pair: Pair, weights: Floats64 | None) -> None:
        self.pair, self.weights = pair, weights
        self.n = pair.rows() if weights is None else int(np.count_nonzero(weights))
        self.weight = float(self.n) if weights is None else float(weights.sum())
        (n, dx), dy = pair.left.shape, pair.right.shape[1]
        self.dx, self.dy = dx, dy
        self.sums = np.zeros(2 * (dx + dy) + dx * dy)
        if pair.is_narrow:
            one, step = self._narrow, BLOCK
        else:
            one = self._wide
            longest = FLUSH_ROWS * max(1, -(-RANGE_NUMBERS // (FLUSH_ROWS * max(dx, dy))))
            step = min(pair.left.range_rows(longest), pair.right.range_rows(longest))
        blocks = row_blocks(n, step)
        fold_blocks(quiet(one), blocks, self._add, n_jobs=pair.threads(len(blocks)))

    def _add(self, part: Floats64) -> None:
        self.sums += part

    def _narrow(self, start: int, stop: int) -> Floats64:
        x = column_block(self.pair.left, start, stop, 0)
        y = column_block(self.pair.right, start, stop, 2)
        w = ONES[: stop - start] if self.weights is None else self.weights[start:stop]
        out = np.empty(self.sums.size)
        pair_sums(x, y, w, out)
        return out

    def _wide(self, start: int, stop: int) -> Floats64:
        left, right, dx, dy = self.pair.left, self.pair.right, self.dx, self.dy
        step = _step(left, right)
        x_block = scratch((step, dx), left.work)
        y_block = scratch((step, dy), right.work, slot=1)
        product = np.empty((dx, dy), np.result_type(left.work, right.work))
        total = np.zeros(self.sums.size)
        cross = total[2 * (dx + dy) :].reshape(dx, dy)
        for at in range(start, stop, step):
            end = min(at + step, stop)
            a, b = left.read(at, end, x_block), right.read(at, end, y_block)
            roots = np.ones(end - at)
            if self.weights is not None:
                roots = np.sqrt(self.weights[at:end])
                a *= roots[:, None].astype(a.dtype)
                b *= roots[:, None].astype(b.dtype)
            total[:dx] += roots.astype(a.dtype) @ a
            total[dx : dx + dy] += roots.astype(b.dtype) @ b
            total[dx + dy : 2 * dx + dy] += np.einsum("ij,ij->j", a, a)
            total[2 * dx + dy : 2 * (dx + dy)] += np.einsum("ij,ij->j", b, b)
            np.matmul(a.T, b, out=product)
            cross += product
        return total

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.sums).all())

    @property
    def vanished(self) -> bool:
        """Whether a side's squares are so small that digits were lost, though it is not zero."""
        squares = self.sums[self.dx + self.dy : 2 * (self.dx + self.dy)]
        sides = ((self.pair.left, squares[: self.dx]), (self.pair.right, squares[self.dx :]))
        return any(
            rows.exponent == 0
            and squares.max(initial=0.0) < 1e-280
            and amplitude(rows, self.pair.n_jobs) > 0
            for rows, squares in sides
        )

    def about_the_means(self) -> CrossMoments:
        """Sums about the shifts become sums about the means."""
        dx, dy = self.dx, self.dy
        first, second = self.sums[: dx + dy], self.sums[dx + dy : 2 * (dx + dy)]
        cross = self.sums[2 * (dx + dy) :].reshape(dx, dy)
        x = self._side(self.pair.left, first[:dx], second[:dx])
        y = self._side(self.pair.right, first[dx:], second[dx:])
        return CrossMoments(x, y, cross - self.weight * np.outer(x.offset, y.offset))

    def _side(self, rows: Rows, first: Floats64, second: Floats64) -> Moments:
        offset = first / self.weight
        scatter = np.maximum(second - self.weight * offset * offset, 0.0)
        rounding = ROUNDINGS * float(np.finfo(rows.work).eps) * float(second.max(initial=0.0))
        return Moments(self.n, self.weight, rows.shift, offset, scatter, rows.exponent, rounding)


def _step(left: Rows, right: Rows) -> int:
    return min(left.block_rows(), right.block_rows())


def _narrow_residuals(
    left: Rows, right: Rows, R: Floats64, scale: float, factor: float, out: Floats64, start: int
) -> None:
    stop = start + out.size
    # The offsets are left to the kernel: the shifted rows are read as quickly as they can be.
    x = column_block(replace(left, offset=None), start, stop, 0)
    y = column_block(replace(right, offset=None), start, stop, 2)
    ox = np.zeros(x.shape[0]) if left.offset is None else left.offset
    oy = np.zeros(y.shape[0]) if right.offset is None else right.offset
    sq_residuals(x, y, R, scale, factor, ox, oy, out)


def _wide_residuals(
    left: Rows, right: Rows, R: Floats64, scale: float, factor: float, out: Floats64, start: int
) -> None:
    """In float64: what is left is small against what it is the difference of."""
    stop, wide = start + out.size, np.dtype(np.float64)
    x = replace(left, work=wide).read(start, stop)
    y = replace(right, work=wide).read(start, stop)
    away = x @ R
    away *= scale
    away[:, : y.shape[1]] -= factor * y
    np.einsum("ij,ij->i", away, away, out=out)
