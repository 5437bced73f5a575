"""The Procrustes model: rotation, scale and translation, their fit, and their use on rows.

`fit_similarity` finds it from moments; workers, model files and `Procrustes` use it. The result of
a row in `transform` and `restore` never depends on the rows beside it (`numeric.row_product`).

All numbers here are in the units of the moments, 2^x.exponent and 2^y.exponent, so that squares
of 1e±200 do not overflow. With the norms ‖X‖² and ‖Y‖² (about the means if centred) and the trace
t = tr(RᵀM) of the best R (`solve.py`):

- least squares scale t / ‖X‖², never negative; "norm-ratio" ‖Y‖ / ‖X‖, so that fitting backwards is
  the inverse;
- Σ w ‖s·xR − y‖² = s²‖X‖² + ‖Y‖² − 2st;
- disparity 1 − t² / (‖X‖²‖Y‖²), independent of the scale.

The last two are differences of large numbers if the fit is good; `Similarity.with_rows` then
computes them from the rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import available_bytes
from gnomon.compute.threads import row_blocks
from gnomon.errors import DataError, UnavailableError
from gnomon.inputs import refuse_bad_values
from gnomon.numeric.moments import Moments
from gnomon.numeric.row_product import row_product
from gnomon.numeric.scaling import Rows, Scaling, working_type
from gnomon.procrustes.cross_moments import CrossMoments
from gnomon.procrustes.narrow import BLOCK, WIDEST, column_block, sq_residuals
from gnomon.procrustes.row_pairs import Pair, PairView, Weights, pair_block_rows, sum_rows
from gnomon.procrustes.solve import Rotation, refuse_too_large, solve
from gnomon.typing import Floats64, Table

EPS = float(np.finfo(np.float64).eps)
# Scatter about the mean counts as zero if it is at most this many times the estimated rounding of
# the scatter about the shift.
ZERO = 8.0
HARMLESS = 2**27  # bytes; below this, free memory is not checked, which costs more than a small fit
SHARE = 4  # numbers per row may take one part in this many of the free memory
WIDE = np.dtype(np.float64)
BLOCKS = 4  # blocks of the compiled loops that a thread takes at a time

__all__ = ["Residuals", "Rules", "Similarity", "Squares", "fit_similarity"]


@dataclass(frozen=True)
class Rules:
    """Constraints on the map; see `Procrustes`."""

    reflection: str = "allow"
    scaling: bool | str = False
    centering: bool = True
    prior: Floats64 | None = None


@dataclass(frozen=True, eq=False)
class Similarity:
    """A fitted map s·xR + t, in units of the moments.

    Attributes
    ----------
    moments : CrossMoments
    rules : Rules
    rotation : Rotation
    cross : array (dx, D)
        Matrix M that was solved for.
    sq_x, sq_y : float
        ‖X‖² in units of 4^x.exponent, ‖Y‖² in units of 4^y.exponent.
    unit : int
        Exponent of the map's output.
    scale, factor : float
        scale·xR and factor·y are in units of 2^unit.
    residual_sum : float
        Σ w ‖scale·xR − factor·y‖², in units of 4^unit.
    disparity : float
    """

    moments: CrossMoments
    rules: Rules
    rotation: Rotation
    cross: Floats64
    sq_x: float
    sq_y: float
    unit: int
    scale: float
    factor: float
    residual_sum: float
    disparity: float

    @property
    def norms(self) -> float:
        """‖X‖‖Y‖, in units of the cross product."""
        return float(np.sqrt(self.sq_x) * np.sqrt(self.sq_y))

    @property
    def least_squares_scale(self) -> float:
        """Best scale, in units of 2^(y.exponent − x.exponent)."""
        return _least_squares_scale(self.rotation, self.sq_x)

    @property
    def is_best(self) -> bool:
        """Whether the scale is the best one."""
        return self.scale == self.least_squares_scale and self.factor == 1

    def scalings(self) -> tuple[Scaling, Scaling]:
        """Scalings that read X and Y about the centres of the map, in float64."""
        x, y = self.moments.x, self.moments.y
        return _about(x, self.rules.centering), _about(y, self.rules.centering)

    @property
    def centre(self) -> Floats64 | None:
        """Mean of Y, with zeros for the columns that it lacks; None if it is the origin."""
        if not self.rules.centering:
            return None
        mean = self.moments.y.mean
        centre = np.zeros(self.rotation.matrix.shape[1])
        centre[: mean.size] = mean
        return centre

    def transform(
        self, X: Table, *, names: NDArray[Any] | None = None, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Map rows of X into the frame of Y, s·XR + t, shape (n, D); float32 stays float32.

        `names` are the column names, for errors.
        """
        scaling = replace(self.scalings()[0], work=working_type(X.dtype))
        matrix = self.scale * self.rotation.matrix
        out = row_product(
            Rows(X, scaling), matrix, exponent=self.unit, centre=self.centre, n_jobs=n_jobs
        )
        if not np.isfinite(out).all():
            refuse_bad_values(X, names=names)
        return out

    def restore(self, Y: Table, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Map rows of Y's frame, of dy or D columns, back to that of X, (Y − t) Rᵀ / s, (n, dx)."""
        self.refuse_no_way_back()
        d, centre = Y.shape[1], self.centre
        shift = np.zeros(d) if centre is None else centre[:d]
        x = self.moments.x
        out = row_product(
            Rows(Y, Scaling(working_type(Y.dtype), shift, self.unit)),
            self.rotation.matrix[:, :d].T / self.scale,
            exponent=x.exponent,
            centre=x.mean if self.rules.centering else None,
            n_jobs=n_jobs,
        )
        if not np.isfinite(out).all():
            refuse_bad_values(Y)
        return out

    def refuse_no_way_back(self) -> None:
        """Raise an error if the map is not invertible."""
        if self.scale == 0:
            raise UnavailableError("`scale_` is 0: there is no inverse.")

    def residuals(self, X: Table, Y: Table) -> Floats64:
        """Distance of each mapped row of `X` from its partner in `Y`, shape (n,)."""
        out = np.empty((1, X.shape[0]))
        self.squares(X, Y, ((self.scale, self.factor),), out)
        return np.asarray(np.ldexp(np.sqrt(out[0], out=out[0]), self.unit))

    def squares(
        self, X: Table, Y: Table, scales: tuple[tuple[float, float], ...], out: Floats64
    ) -> None:
        """‖s·xR − u·y‖² of every row for each (s, u), in the units of the moments, to `out` (k, n).

        Rows are centred if the map is.
        """
        work = _narrow_squares if max(X.shape[1], Y.shape[1]) <= WIDEST else _wide_squares
        work(self, X, Y, scales, out)

    def with_rows(
        self, view: PairView, weights: Weights, *, keep: bool = True
    ) -> tuple["Similarity", Floats64 | None]:
        """Copy with sums computed from the rows, and each row's squared residual.

        The residuals are None if they would take too much memory, unless they are required.
        """
        scales = [(self.scale, self.factor)]
        if self.sq_x > 0 and self.sq_y > 0 and not self.is_best:
            scales.append((self.least_squares_scale, 1.0))
        work = Squares(self, tuple(scales))
        kept = None
        if keep or _fits(8 * len(scales) * view.rows):
            kept = view.each_row(work, lines=len(scales))
            sums = np.array([view.row_total(line, weights) for line in kept])
        else:
            sums = view.total(_SquareSums(work), weights)
        disparity = self.disparity
        if self.sq_x > 0 and self.sq_y > 0:
            disparity = min(1.0, float(sums[-1]) / self.sq_y)
        found = replace(self, residual_sum=float(sums[0]), disparity=disparity)
        return found, None if kept is None else kept[0]

    def is_close(self) -> bool:
        """Whether the residual sum is a small difference of large numbers."""
        x, y = self.moments.x, self.moments.y
        eps = max(*(_relative_rounding(m, _about_shift(m)) for m in (x, y)), EPS)
        small = 64 * np.sqrt(eps)
        whole = self.scale**2 * self.sq_x + self.factor**2 * self.sq_y
        return bool(self.residual_sum < small * whole or self.disparity < small)


def fit_similarity(moments: CrossMoments, rules: Rules) -> Similarity:
    """Find the best map under `rules`, from moments alone."""
    x, y = moments.x, moments.y
    dx, dy = moments.cross.shape
    D = max(dx, dy)
    refuse_too_large(dx, D)
    M = np.zeros((dx, D))
    M[:, :dy] = moments.cross
    sq_x, sq_y = float(x.scatter.sum()), float(y.scatter.sum())
    about_x, about_y = _about_shift(x), _about_shift(y)
    eps_x, eps_y = _relative_rounding(x, about_x), _relative_rounding(y, about_y)
    if rules.centering:
        sq_x = 0.0 if _is_rounding(x, sq_x, eps_x) else sq_x
        sq_y = 0.0 if _is_rounding(y, sq_y, eps_y) else sq_y
    else:
        mx, my = _mean(x), _mean(y)
        M[:, :dy] += x.weight * np.outer(mx, my)
        sq_x, sq_y = sq_x + x.weight * float(mx @ mx), sq_y + x.weight * float(my @ my)
    if sq_x == 0 or sq_y == 0:
        M[...] = 0  # pure rounding
        _refuse_zero_norm("X" if sq_x == 0 else "Y", rules)
    rotation = solve(
        M,
        reflection=rules.reflection,
        prior=rules.prior,
        floor=max(eps_x, eps_y) * _largest_size(about_x, sq_x) * _largest_size(about_y, sq_y),
        same_width=dx == dy,
    )
    unit, scale, factor = _scales(x.exponent, y.exponent, rules.scaling, rotation, sq_x, sq_y)
    trace, norms = rotation.trace, float(np.sqrt(sq_x) * np.sqrt(sq_y))
    left = scale**2 * sq_x + factor**2 * sq_y - 2 * scale * factor * trace
    if norms > 0:
        correlation = min(1.0, max(trace, 0.0) / norms)
        disparity = (1 - correlation) * (1 + correlation)
    else:  # a single point fits a point exactly, and determines nothing else
        disparity = 0.0 if sq_x == sq_y else 1.0
    return Similarity(
        moments, rules, rotation, M, sq_x, sq_y, unit, scale, factor, max(left, 0.0), disparity
    )


def _scales(
    x: int, y: int, scaling: bool | str, rotation: Rotation, sq_x: float, sq_y: float
) -> tuple[int, float, float]:
    """Unit of the map's output, scale and factor of a `Similarity`; x and y are exponents."""
    if scaling is False:
        unit = max(x, y)
        return unit, float(np.ldexp(1.0, x - unit)), float(np.ldexp(1.0, y - unit))
    if scaling is True:
        return y, _least_squares_scale(rotation, sq_x), 1.0
    return y, float(np.sqrt(sq_y) / np.sqrt(sq_x)), 1.0


def _least_squares_scale(rotation: Rotation, sq_x: float) -> float:
    return max(rotation.trace, 0.0) / sq_x if sq_x > 0 else 0.0


@dataclass(frozen=True)
class Squares:
    """Squared residuals of a range, one line per scale; see `Similarity.squares`."""

    map: Similarity
    scales: tuple[tuple[float, float], ...]

    def step(self, pair: Pair, _: int) -> int:
        """Rows of a few blocks of the compiled loops, or rows that stay in the cache."""
        return BLOCKS * BLOCK if pair.is_narrow else pair_block_rows(pair)

    def __call__(self, pair: Pair, _: Weights, start: int, stop: int, out: Floats64) -> None:
        """Compute rows `start` to `stop`."""
        self.map.squares(pair.left.X[start:stop], pair.right.X[start:stop], self.scales, out)


@dataclass(frozen=True)
class _SquareSums:
    """Sums of the squared residuals over a whole part, with the bits of `PairView.row_total`."""

    work: Squares

    def step(self, _: Pair, rows: int) -> int:
        return rows

    def __call__(self, pair: Pair, weights: Weights, start: int, stop: int) -> Floats64:
        lines = np.empty((len(self.work.scales), stop - start))
        for low, high in row_blocks(stop - start, self.work.step(pair, stop - start)):
            self.work(pair, None, start + low, start + high, lines[:, low:high])
        own = None if weights is None else weights[start:stop]
        return np.array([sum_rows(line, own) for line in lines])


@dataclass(frozen=True)
class Residuals:
    """`Similarity.residuals` for a range of rows."""

    map: Similarity

    def step(self, pair: Pair, _: int) -> int:
        """Rows of a few blocks of the compiled loops, or rows that stay in the cache."""
        return BLOCKS * BLOCK if pair.is_narrow else pair_block_rows(pair)

    def __call__(self, pair: Pair, _: Weights, start: int, stop: int, out: Floats64) -> None:
        """Compute rows `start` to `stop`."""
        out[0] = self.map.residuals(pair.left.X[start:stop], pair.right.X[start:stop])


def _narrow_squares(
    found: Similarity, X: Table, Y: Table, scales: tuple[tuple[float, float], ...], out: Floats64
) -> None:
    # `sq_residuals` subtracts the offsets: rows that are only shifted are read fastest.
    left, right = found.scalings()
    offsets = [np.zeros(z.shift.size) if z.offset is None else z.offset for z in (left, right)]
    offset, R = np.concatenate(offsets), found.rotation.matrix
    x, y = (Rows(Z, Scaling(WIDE, z.shift, z.exponent)) for Z, z in ((X, left), (Y, right)))
    for start, stop in row_blocks(out.shape[1], BLOCK):
        columns = column_block(x, y, start, stop)
        for line, (scale, factor) in zip(out, scales, strict=True):
            sq_residuals(columns, R, scale, factor, offset, line[start:stop])


def _wide_squares(
    found: Similarity, X: Table, Y: Table, scales: tuple[tuple[float, float], ...], out: Floats64
) -> None:
    """Squared residuals in float64: small differences of large numbers."""
    left, right = found.scalings()
    n = out.shape[1]
    y, turned = Rows(Y, right).read(0, n), Rows(X, left).read(0, n) @ found.rotation.matrix
    for line, (scale, factor) in zip(out, scales, strict=True):
        away = scale * turned
        away[:, : y.shape[1]] -= factor * y
        np.einsum("ij,ij->i", away, away, out=line)


def _fits(needed: int) -> bool:
    return needed <= HARMLESS or needed <= available_bytes() // SHARE


def _refuse_zero_norm(name: str, rules: Rules) -> None:
    if rules.scaling is False:
        return
    what = "all rows are the same point" if rules.centering else "all rows are zero"
    raise DataError(
        f"{name} has norm 0 ({what}): it has no size, but `scaling={rules.scaling!r}` needs "
        "one. Use `scaling=False`, or leave this table out."
    )


def _about(m: Moments, centering: bool) -> Scaling:
    if centering:
        return Scaling(WIDE, m.shift, m.exponent, m.offset)
    return Scaling(WIDE, np.zeros(m.shift.size), m.exponent)


def _mean(m: Moments) -> Floats64:
    """Mean in units of 2^exponent."""
    whole: Any = m.shift.astype(np.float64)
    return np.asarray(np.ldexp(whole, -m.exponent) + m.offset)


def _is_rounding(m: Moments, sq: float, eps: float) -> bool:
    """Whether the sum of squares `sq` is pure rounding of relative size `eps`."""
    return bool(sq <= ZERO * eps * m.weight * (m.offset @ m.offset))


def _about_shift(m: Moments) -> Floats64:
    """Sum of squares of every column about the shift."""
    return np.asarray(m.scatter + m.weight * m.offset**2)


def _relative_rounding(m: Moments, about_shift: Floats64) -> float:
    """Estimated error of the sums of squares, relative to their size about the shift."""
    largest = float(about_shift.max(initial=0.0))
    return m.rounding / largest if largest > 0 else 0.0


def _largest_size(about_shift: Floats64, sq: float) -> float:
    """Norm of a table about its shift, or about its centre if that is larger.

    The product of both tables' norms, times the relative rounding of sums, bounds a singular value
    of M that is pure rounding.
    """
    return float(np.sqrt(max(float(about_shift.sum()), sq)))
