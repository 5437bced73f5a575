"""Fits that points which truly moved do not drag along: iteratively reweighted least squares.

With r the distance of a row from its partner and u = r / σ, a row's weight is

- Huber: 1 up to u = k, then k / u: far points pull as near ones do;
- Tukey: (1 − (u / c)²)² up to u = c, then 0: far points do not pull at all.

In one dimension k = 1.345 and c = 4.685 are usual [Holland & Welsch 1977]: 82.1 % and all but
2.8e-6 of a normal sample are nearer. In d dimensions r² / σ² is χ² with d degrees of freedom, and
the limits here are the same quantiles of it.

0. A row more than `FAR` times as far from the median as half of the rows are, in X or in Y, has
   leverage: it bends the frame, and the scale most of all, until its own r is small. Such rows are
   weighed down by the square of what they exceed.
1. From there on, rows are weighted by 1 / r: the sum of distances, which needs no σ and which a
   minority of wild rows cannot move far.
2. σ is read off the (weighted) median distance, and stays.
3. Huber's weights, times those of step 0, until they settle; then, for Tukey, from there on
   Tukey's alone, since its objective has many minima and the right one is near.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from gnomon.errors import NotConvergedWarning
from gnomon.parallel import row_blocks
from gnomon.procrustes.frame import Frame, Rules, fit_frame
from gnomon.procrustes.pairs import Pair
from gnomon.rows import Rows

Floats64 = NDArray[np.float64]

SHARES = {"huber": 0.8213728, "tukey": 1 - 2.8e-6}  # of a normal sample within k, within c
START_STEPS = 20
FAR = 5.0  # half of the rows are within 1; of a normal sample in the plane, all are within 5
SAMPLE = 4096  # rows that the median is taken of
STEPS = 200
SETTLED = 1e-9  # largest change of a weight
WORTH_SAYING = 1e-4  # below it, weights of distances that are mere rounding may go on changing
ROUNDING = 1e-13  # of the size of Y: distances below are none

__all__ = ["ROBUST", "RobustFit", "fit_robust"]

ROBUST = ("huber", "tukey")


class RobustFit(NamedTuple):
    """The map, each row's squared distance, and each row's weight in [0, 1]."""

    frame: Frame
    sq_residuals: Floats64
    weights: Floats64


def fit_robust(pair: Pair, weights: Floats64 | None, rules: Rules, kind: str) -> RobustFit:
    """Fit `pair` with Huber's or Tukey's weights on top of the rows' own `weights`."""
    given = np.ones(pair.rows()) if weights is None else weights
    # One pass says in which units the sums exist; all later ones use them.
    first = fit_frame(pair.moments(weights), rules)
    pair = pair.in_units_of(first.moments)
    frame, r = first, _distances(pair, first)
    size = float(np.sqrt(first.sq_y / first.moments.y.weight)) * first.factor
    least = max(ROUNDING * size, float(np.finfo(np.float64).tiny))
    calm = np.minimum(_calm(pair.left), _calm(pair.right))
    if calm.min() < 1:
        frame, r = _refit(pair, given * calm, rules)
    for _ in range(START_STEPS):
        pull = _relative(1.0 / np.maximum(r, least)) * calm
        frame, r = _refit(pair, given * pull, rules)
    degrees = max(pair.left.shape[1], pair.right.shape[1])
    sigma = max(_weighted_median(r, given) / _quantile(degrees, 0.5), least)
    for name in ROBUST[: 1 + ROBUST.index(kind)]:
        weigh = _huber if name == "huber" else _tukey
        limit = _quantile(degrees, SHARES[name]) * sigma
        lever = calm if name == "huber" else np.ones_like(calm)
        frame, r, own = _settle(pair, given * lever, rules, weigh, limit, r)
        own = own * lever
    frame, sq = frame.with_rows(pair, given * own)
    return RobustFit(frame, sq, own)


def _calm(rows: Rows) -> Floats64:
    """1 for rows that are not far out, less for those that are; see step 0."""
    n = rows.shape[0]
    at = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp))
    sample = replace(rows, X=rows.X[at]).read(0, at.size).astype(np.float64)
    median = np.median(sample, axis=0)
    away = np.empty(n)
    for start, stop in row_blocks(n, rows.block_rows()):
        away[start:stop] = np.linalg.norm(rows.read(start, stop) - median, axis=1)
    usual = FAR * float(np.median(away))
    return (usual / np.maximum(away, usual)) ** 2 if usual > 0 else np.ones(n)


def _settle(
    pair: Pair,
    given: Floats64,
    rules: Rules,
    weigh: Callable[[Floats64, float], Floats64],
    limit: float,
    r: Floats64,
) -> tuple[Frame, Floats64, Floats64]:
    own = weigh(r, limit)
    for _ in range(STEPS):
        frame, r = _refit(pair, given * own, rules)
        new = weigh(r, limit)
        change = float(np.abs(new - own).max())
        own = new
        if change <= SETTLED:
            break
    if change > WORTH_SAYING:
        warnings.warn(
            f"The weights of a robust fit still change by {change:.1e} after {STEPS} steps.",
            NotConvergedWarning,
            stacklevel=2,
        )
    return frame, r, own


def _refit(pair: Pair, weights: Floats64, rules: Rules) -> tuple[Frame, Floats64]:
    frame = fit_frame(pair.moments(weights), rules)
    return frame, _distances(pair, frame)


def _distances(pair: Pair, frame: Frame) -> Floats64:
    return np.sqrt(pair.sq_residuals(frame, frame.scale, frame.factor))


def _huber(r: Floats64, limit: float) -> Floats64:
    return limit / np.maximum(r, limit)


def _tukey(r: Floats64, limit: float) -> Floats64:
    return np.maximum(0.0, 1 - (r / limit) ** 2) ** 2


def _relative(pull: Floats64) -> Floats64:
    """At most 1, and never so small that a sum of them loses its meaning."""
    return np.asarray(np.maximum(pull / pull.max(), 1e-12))


def _quantile(degrees: int, share: float) -> float:
    """Square root of a quantile of χ², in units of σ."""
    return float(np.sqrt(2 * gammaincinv(degrees / 2, share)))


def _weighted_median(values: Floats64, weights: Floats64) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
