"""From moments to a similarity: rotation, scale and translation, and how well they fit.

All numbers here are in the units of the moments, 2^x.exponent and 2^y.exponent, so that tables of
1e±200 have squares. With the norms ‖X‖² and ‖Y‖² (about the means if centred) and the trace
t = tr(RᵀM) of the best R (`solve.py`):

- least squares scale t / ‖X‖², never negative; "norm-ratio" ‖Y‖ / ‖X‖, so that fitting backwards is
  the inverse;
- Σ w ‖s·xR − y‖² = s²‖X‖² + ‖Y‖² − 2st;
- disparity 1 − t² / (‖X‖²‖Y‖²), the same whatever the scale.

The last two are differences of large numbers where the fit is good; `Frame.with_rows` then
computes them from the rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.moments import CrossMoments, Moments
from gnomon.procrustes.pairs import Pair
from gnomon.procrustes.solve import Rotation, refuse_too_large, solve
from gnomon.rows import Rows

Floats64 = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# Scatter about the mean is zero when it is no more than this many times the estimated rounding of
# the scatter about the shift.
ZERO = 8.0

__all__ = ["Frame", "Rules", "fit_frame"]


@dataclass(frozen=True)
class Rules:
    """What kind of map is looked for; see `Procrustes`."""

    reflection: str = "allow"
    scaling: bool | str = False
    centering: bool = True
    prior: Floats64 | None = None


@dataclass(frozen=True, eq=False)
class Frame:
    """A fitted map, in units of the moments.

    Attributes
    ----------
    moments : CrossMoments
    rules : Rules
    rotation : Rotation
    cross : array (dx, D)
        The M that was solved for.
    sq_x, sq_y : float
        ‖X‖² in units of 4^x.exponent, ‖Y‖² in units of 4^y.exponent.
    unit : int
        Exponent of what the map gives.
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
        """Scale that fits best, in units of 2^(y.exponent − x.exponent)."""
        return max(self.rotation.trace, 0.0) / self.sq_x if self.sq_x > 0 else 0.0

    @property
    def is_best(self) -> bool:
        """Whether the scale is the one that fits best."""
        return self.scale == self.least_squares_scale and self.factor == 1

    def about(self, left: Rows, right: Rows) -> tuple[Rows, Rows]:
        """Both tables read about the centres that the map turns about."""
        return (
            _about(left, self.moments.x, self.rules.centering),
            _about(right, self.moments.y, self.rules.centering),
        )

    def with_rows(self, pair: Pair, weights: Floats64 | None) -> tuple["Frame", Floats64]:
        """The same map, its sums computed from the rows, and each row's squared residual."""
        sq = pair.sq_residuals(self, self.scale, self.factor)
        disparity = self.disparity
        if self.sq_x > 0 and self.sq_y > 0:
            best = self.least_squares_scale
            left = sq if self.is_best else pair.sq_residuals(self, best, 1.0)
            disparity = min(1.0, _total(left, weights) / self.sq_y)
        return replace(self, residual_sum=_total(sq, weights), disparity=disparity), sq

    def is_close(self) -> bool:
        """Whether what is left is a small difference of large numbers."""
        x, y = self.moments.x, self.moments.y
        eps = max(_relative_rounding(x), _relative_rounding(y), EPS)
        small = 64 * np.sqrt(eps)
        whole = self.scale**2 * self.sq_x + self.factor**2 * self.sq_y
        return bool(self.residual_sum < small * whole or self.disparity < small)


def fit_frame(moments: CrossMoments, rules: Rules) -> Frame:
    """The best map under `rules`, from moments alone."""
    x, y = moments.x, moments.y
    dx, dy = moments.cross.shape
    D = max(dx, dy)
    refuse_too_large(dx, D)
    M = np.zeros((dx, D))
    M[:, :dy] = moments.cross
    sq_x, sq_y = float(x.scatter.sum()), float(y.scatter.sum())
    if rules.centering:
        sq_x, sq_y = (0.0 if _is_rounding(m) else sq for m, sq in ((x, sq_x), (y, sq_y)))
    else:
        mx, my = _mean(x), _mean(y)
        M[:, :dy] += x.weight * np.outer(mx, my)
        sq_x, sq_y = sq_x + x.weight * float(mx @ mx), sq_y + x.weight * float(my @ my)
    if sq_x == 0 or sq_y == 0:
        M[...] = 0  # nothing but rounding
        _refuse_zero_norm("X" if sq_x == 0 else "Y", rules)
    rotation = solve(
        M,
        reflection=rules.reflection,
        prior=rules.prior,
        floor=_formation(x, y, sq_x, sq_y),
        same_width=dx == dy,
    )
    frame = Frame(moments, rules, rotation, M, sq_x, sq_y, y.exponent, 1.0, 1.0, 0.0, 0.0)
    return _with_scale(frame)


def _with_scale(frame: Frame) -> Frame:
    x, y, scaling = frame.moments.x, frame.moments.y, frame.rules.scaling
    unit, factor = y.exponent, 1.0
    if scaling is False:
        unit = max(x.exponent, y.exponent)
        scale = float(np.ldexp(1.0, x.exponent - unit))
        factor = float(np.ldexp(1.0, y.exponent - unit))
    elif scaling is True:
        scale = frame.least_squares_scale
    else:
        scale = float(np.sqrt(frame.sq_y) / np.sqrt(frame.sq_x))
    trace, norms = frame.rotation.trace, frame.norms
    left = scale**2 * frame.sq_x + factor**2 * frame.sq_y - 2 * scale * factor * trace
    if norms > 0:
        correlation = min(1.0, max(trace, 0.0) / norms)
        disparity = (1 - correlation) * (1 + correlation)
    else:  # a point: it lies on a point, and says nothing of anything else
        disparity = 0.0 if frame.sq_x == frame.sq_y else 1.0
    return replace(
        frame, unit=unit, scale=scale, factor=factor, residual_sum=max(left, 0.0),
        disparity=disparity,
    )  # fmt: skip


def _total(sq: Floats64, weights: Floats64 | None) -> float:
    return float(sq.sum() if weights is None else weights @ sq)


def _refuse_zero_norm(name: str, rules: Rules) -> None:
    if rules.scaling is False:
        return
    what = "all rows are the same point" if rules.centering else "all rows are zero"
    raise DataError(
        f"{name} has norm 0 ({what}): it has no size, and `scaling={rules.scaling!r}` asks for "
        "one. Use `scaling=False`, or leave this table out."
    )


def _about(rows: Rows, moments: Moments, centering: bool) -> Rows:
    rows = replace(rows, shift=moments.shift, exponent=moments.exponent, offset=moments.offset)
    if centering:
        return rows
    return replace(rows, shift=np.zeros(moments.shift.shape), offset=None)


def _mean(m: Moments) -> Floats64:
    """In units of 2^exponent."""
    whole: Any = m.shift.astype(np.float64)
    return np.asarray(np.ldexp(whole, -m.exponent) + m.offset)


def _is_rounding(m: Moments) -> bool:
    rounding = _relative_rounding(m) * m.weight * (m.offset @ m.offset)
    return bool(m.scatter.sum() <= ZERO * rounding)


def _relative_rounding(m: Moments) -> float:
    """Estimated error of the sums of squares, relative to their size about the shift."""
    largest = float((m.scatter + m.weight * m.offset**2).max(initial=0.0))
    return m.rounding / largest if largest > 0 else 0.0


def _formation(x: Moments, y: Moments, sq_x: float, sq_y: float) -> float:
    """How large a singular value of M may be by rounding alone."""
    eps = max(_relative_rounding(x), _relative_rounding(y))
    about_shift = [float((m.scatter + m.weight * m.offset**2).sum()) for m in (x, y)]
    sizes = np.sqrt([max(about_shift[0], sq_x), max(about_shift[1], sq_y)])
    return eps * float(sizes[0] * sizes[1])
