"""Many small Procrustes problems at once.

For 5,000 problems of 50 × 2 the arithmetic takes milliseconds, but calling a library 5,000 times
takes most of a second. Here compiled loops iterate over problems and rows:

1. Means, norms and M = XᵀY of each problem, centred on its means.
2. All rotations as one stack (`solve.solve_many`; in the plane by angles).
3. Residuals of each problem, from its rows.

Each problem has its own unit (a power of two), so that numbers such as 1e±200 do not overflow.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.errors import DataError
from gnomon.numeric.scaling import exponent_for
from gnomon.procrustes.similarity import Rules
from gnomon.procrustes.solve import refuse_too_large, solve_many
from gnomon.records import Record
from gnomon.typing import Floats64

EPS = float(np.finfo(np.float64).eps)
NUMBERS = 2**17  # numbers in a block of problems

__all__ = ["Batch", "fit_batch"]


@dataclass(frozen=True, eq=False)
class Batch(Record):
    """Maps of many problems; each array's first axis counts them.

    Attributes
    ----------
    rotation : array (p, dx, D)
    scale : array (p,)
    translation : array (p, D)
        y ≈ scale · x @ rotation + translation, in each problem.
    disparity, residual_sum, rmsd : array (p,)
    reflected : array (p,) of bool
        Meaningless, and False, where X and Y have different widths.
    """

    rotation: Floats64 = field(repr=False)
    scale: Floats64 = field(repr=False)
    translation: Floats64 = field(repr=False)
    disparity: Floats64 = field(repr=False)
    residual_sum: Floats64 = field(repr=False)
    rmsd: Floats64 = field(repr=False)
    reflected: NDArray[np.bool_] = field(repr=False)

    def title(self) -> str:
        """One-line summary."""
        return f"{self.scale.size:,} Procrustes fits"

    def lines(self) -> list[tuple[str, str]]:
        """Range and median of the results."""
        return [
            ("disparity", _spread(self.disparity)),
            ("rmsd", _spread(self.rmsd)),
            ("scale", _spread(self.scale)),
            ("reflected", f"{int(self.reflected.sum()):,} of {self.reflected.size:,}"),
        ]


def _spread(values: Floats64) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{low:.3g} to {high:.3g}, median {middle:.3g}"


def fit_batch(X: Any, Y: Any, rules: Rules, *, n_jobs: int | None) -> Batch:
    """Fit X (p, n, dx) onto Y (p, n, dy), problem by problem."""
    (p, n, dx), dy = X.shape, Y.shape[2]
    D = max(dx, dy)
    refuse_too_large(dx, D)
    x, ex = _in_units(X)
    y, ey = _in_units(Y)
    out = Batch(
        rotation=np.empty((p, dx, D)),
        scale=np.empty(p),
        translation=np.empty((p, D)),
        disparity=np.empty(p),
        residual_sum=np.empty(p),
        rmsd=np.empty(p),
        reflected=np.empty(p, bool),
    )

    def block(start: int, stop: int) -> None:
        part = slice(start, stop)
        _fit_block(x[part], y[part], ex[part], ey[part], rules, out, start)

    step = max(1, NUMBERS // max(n * D, dx * D))
    map_blocks(block, row_blocks(p, step), n_jobs=n_jobs)
    return out


def _fit_block(
    x: Floats64,
    y: Floats64,
    ex: NDArray[np.intc],
    ey: NDArray[np.intc],
    rules: Rules,
    out: Batch,
    start: int,
) -> None:
    (p, n, dx), dy = x.shape, y.shape[2]
    part, D = slice(start, start + p), max(dx, dy)
    mx, my, M = np.zeros((p, dx)), np.zeros((p, D)), np.zeros((p, dx, D))
    sq_x, sq_y = np.empty(p), np.empty(p)
    _moments(x, y, rules.centering, mx, my, M, sq_x, sq_y)
    _refuse_bad_numbers(sq_x, sq_y, start)
    for m, sq in ((mx, sq_x), (my, sq_y)):  # at most the rounding of the mean counts as zero
        sq[sq <= n * (8 * EPS) ** 2 * np.einsum("ij,ij->i", m, m)] = 0.0
    nothing = (sq_x == 0) | (sq_y == 0)
    _refuse_zero_norm(nothing, sq_x, rules, start)
    M[nothing] = 0.0
    R, trace, reflected = solve_many(
        M,
        reflection=rules.reflection,
        prior=rules.prior,
        floors=8 * EPS * np.sqrt(sq_x) * np.sqrt(sq_y),
        same_width=dx == dy,
    )
    safe_x = np.where(nothing, 1.0, sq_x)
    best = np.maximum(trace, 0.0) / safe_x
    unit, factor = ey, np.ones(p)
    if rules.scaling is False:
        unit = np.maximum(ex, ey)
        scale, factor = np.ldexp(1.0, ex - unit), np.ldexp(1.0, ey - unit)
    else:
        scale = best if rules.scaling is True else np.sqrt(sq_y / safe_x)
    residual, least = np.empty(p), np.empty(p)
    _residuals(x, y, mx, my, R, scale, factor, residual)
    _residuals(x, y, mx, my, R, best, np.ones(p), least)
    same_point = np.where(sq_x == sq_y, 0.0, 1.0)
    shape = np.divide(least, sq_y, out=same_point, where=~nothing)
    out.rotation[part], out.reflected[part] = R, reflected
    out.disparity[part] = np.minimum(1.0, shape)
    with np.errstate(over="ignore", under="ignore"):
        out.scale[part] = np.ldexp(scale, unit - ex)
        out.residual_sum[part] = np.ldexp(residual, 2 * unit)
        out.rmsd[part] = np.ldexp(np.sqrt(residual / n), unit)
    moved = scale[:, None] * np.einsum("ij,ijk->ik", mx, R)
    out.translation[part] = np.ldexp(factor[:, None] * my - moved, unit[:, None])


@kernel
def _moments(
    x: Floats64,
    y: Floats64,
    centering: bool,
    mx: Floats64,
    my: Floats64,
    M: Floats64,
    sq_x: Floats64,
    sq_y: Floats64,
) -> None:
    """Means (zeros unless `centering`), XᵀY and squared norms of x (p, n, dx), y (p, n, dy)."""
    n, dx, dy = x.shape[1], x.shape[2], y.shape[2]
    for k in range(x.shape[0]):
        if centering:
            for i in range(n):
                for a in range(dx):
                    mx[k, a] += x[k, i, a]
                for b in range(dy):
                    my[k, b] += y[k, i, b]
            for a in range(dx):
                mx[k, a] /= n
            for b in range(dy):
                my[k, b] /= n
        xx, yy = 0.0, 0.0
        for i in range(n):
            for b in range(dy):
                yb = y[k, i, b] - my[k, b]
                yy += yb * yb
            for a in range(dx):
                xa = x[k, i, a] - mx[k, a]
                xx += xa * xa
                for b in range(dy):
                    M[k, a, b] += xa * (y[k, i, b] - my[k, b])
        sq_x[k], sq_y[k] = xx, yy


@kernel
def _residuals(
    x: Floats64,
    y: Floats64,
    mx: Floats64,
    my: Floats64,
    R: Floats64,
    scale: Floats64,
    factor: Floats64,
    out: Floats64,
) -> None:
    """out[k] = Σ ‖scale·(x − mx)R − factor·(y − my)‖² of problem k."""
    n, dx, dy, D = x.shape[1], x.shape[2], y.shape[2], R.shape[2]
    for k in range(x.shape[0]):
        total = 0.0
        for i in range(n):
            for e in range(D):
                away = 0.0
                for a in range(dx):
                    away += (x[k, i, a] - mx[k, a]) * R[k, a, e]
                away *= scale[k]
                if e < dy:
                    away -= factor[k] * (y[k, i, e] - my[k, e])
                total += away * away
        out[k] = total


def _in_units(Z: Any) -> tuple[Floats64, NDArray[np.intc]]:
    """`Z` in float64, each problem divided by a power of two if its squares would overflow."""
    Z = np.ascontiguousarray(Z, np.float64)
    exponents = np.zeros(len(Z), np.intc)
    largest = np.maximum(Z.max(axis=(1, 2)), -Z.min(axis=(1, 2)))
    double = np.dtype(np.float64)
    if not (largest.min() > 2.0**-100 and largest.max() < 2.0**100):
        exponents[:] = [exponent_for(float(size), double) for size in largest]
        Z = np.ldexp(Z, -exponents[:, None, None])
    return Z, exponents


def _refuse_bad_numbers(sq_x: Floats64, sq_y: Floats64, start: int) -> None:
    for name, sq in (("X", sq_x), ("Y", sq_y)):
        bad = np.flatnonzero(~np.isfinite(sq))
        if bad.size:
            raise DataError(
                f"{name} holds a missing (NaN) or infinite value in problem {start + bad[0]} "
                "(problems count from 0). Drop that problem or fill it in."
            )


def _refuse_zero_norm(nothing: NDArray[np.bool_], sq_x: Floats64, rules: Rules, start: int) -> None:
    if rules.scaling is False or not nothing.any():
        return
    at = int(np.argmax(nothing))
    raise DataError(
        f"{'X' if sq_x[at] == 0 else 'Y'} has norm 0 in problem {start + at}: it has no size, but "
        f"`scaling={rules.scaling!r}` needs one. Use `scaling=False`, or leave it out."
    )
