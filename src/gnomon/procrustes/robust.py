"""Robust fits that are not distorted by points that truly moved: reweighted least squares.

With r the distance of a row from its partner and u = r / σ, a row's weight is

- Huber: 1 up to u = k, then k / u: far points have bounded influence;
- Tukey: (1 − (u / c)²)² up to u = c, then 0: far points have no influence.

In one dimension k = 1.345 and c = 4.685 are usual [Holland & Welsch 1977]: 82.1 % and all but
2.8e-6 of a normal sample are nearer. In d dimensions r² / σ² is χ² with d degrees of freedom, and
the limits here are the same quantiles of it.

0. A row more than `FAR` times as far from the median as half of the rows are, in X or in Y, has
   leverage: it distorts the fit, above all its scale, until its own r is small. Such rows are
   downweighted by the square of their excess.
1. From there on, rows are weighted by 1 / r: the sum of distances, which needs no σ and is
   insensitive to a minority of outliers.
2. σ is estimated from the (weighted) median distance, and kept.
3. Huber's weights, times those of step 0, until they converge; then, for Tukey, Tukey's weights
   alone, since its objective has many minima and the right one is near.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from gnomon.errors import NotConvergedWarning, warn_caller
from gnomon.procrustes.row_pairs import Pair, PairView, Weights, pair_block_rows
from gnomon.procrustes.similarity import Rules, Similarity, Squares, fit_similarity
from gnomon.typing import Floats64

SHARES = {"huber": 0.8213728, "tukey": 1 - 2.8e-6}  # of a normal sample, within k and c
START_STEPS = 20
FAR = 5.0  # half of the rows are within 1; of a normal sample in the plane, all are within 5
SAMPLE = 4096  # rows sampled for the median
STEPS = 200
SETTLED = 1e-9  # largest change of a weight
WORTH_SAYING = 1e-4  # smaller changes are not warned of: they may be rounding
ROUNDING = 1e-13  # relative to the size of Y: smaller distances count as 0

__all__ = ["ROBUST", "RobustFit", "fit_robust"]

ROBUST = ("huber", "tukey")


class RobustFit(NamedTuple):
    """The map, and the squared distance and weight in [0, 1] of each row."""

    map: Similarity
    sq_residuals: Floats64
    weights: Floats64


def fit_robust(view: PairView, weights: Weights, rules: Rules, kind: str) -> RobustFit:
    """Fit a pair with Huber's or Tukey's weights, times the rows' own `weights`.

    Every step is a pass over both tables for the sums and one for the distances; weights and
    distances of all rows are held in this process.
    """
    given = np.ones(view.rows) if weights is None else weights
    # One pass determines the units in which the sums are finite; all later ones use them.
    first = fit_similarity(view.moments(weights), rules)
    view = view.in_units_of(first.moments)
    found, r = first, _distances(view, first)
    size = float(np.sqrt(first.sq_y / first.moments.y.weight)) * first.factor
    least = max(ROUNDING * size, float(np.finfo(np.float64).tiny))
    calm = _calm(view)
    if calm.min() < 1:
        found, r = _refit(view, given * calm, rules)
    for _ in range(START_STEPS):
        pull = _relative(1.0 / np.maximum(r, least)) * calm
        found, r = _refit(view, given * pull, rules)
    degrees = max(view.table.widths)
    sigma = max(_weighted_median(r, given) / _quantile(degrees, 0.5), least)
    for name in ROBUST[: 1 + ROBUST.index(kind)]:
        weigh = _huber if name == "huber" else _tukey
        limit = _quantile(degrees, SHARES[name]) * sigma
        lever = calm if name == "huber" else np.ones_like(calm)
        found, r, own = _settle(view, given * lever, rules, weigh, limit, r)
        own = own * lever
    found, sq = found.with_rows(view, given * own)
    assert sq is not None
    return RobustFit(found, sq, own)


def _calm(view: PairView) -> Floats64:
    """Weight 1 for rows that are not outliers in either table, less for others; see step 0."""
    n = view.rows
    at = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp))
    some = view.rows_at(at)
    medians = [
        np.median(scaling.apply(Z).astype(np.float64), axis=0)
        for scaling, Z in zip((view.left, view.right), some, strict=True)
    ]
    calm = np.ones(n)
    for away in view.each_row(_Away(medians[0], medians[1]), lines=2):
        usual = FAR * float(np.median(away))
        if usual > 0:
            np.minimum(calm, (usual / np.maximum(away, usual)) ** 2, out=calm)
    return calm


@dataclass(frozen=True)
class _Away:
    """Distance of rows of X and of Y from the medians."""

    x: Floats64
    y: Floats64

    def step(self, pair: Pair, _: int) -> int:
        return pair_block_rows(pair)

    def __call__(self, pair: Pair, _: Weights, start: int, stop: int, out: Floats64) -> None:
        for line, rows, median in zip(out, (pair.left, pair.right), (self.x, self.y), strict=True):
            line[:] = np.linalg.norm(rows.read(start, stop) - median, axis=1)


def _settle(
    view: PairView,
    given: Floats64,
    rules: Rules,
    weigh: Callable[[Floats64, float], Floats64],
    limit: float,
    r: Floats64,
) -> tuple[Similarity, Floats64, Floats64]:
    own = weigh(r, limit)
    for _ in range(STEPS):
        found, r = _refit(view, given * own, rules)
        new = weigh(r, limit)
        change = float(np.abs(new - own).max())
        own = new
        if change <= SETTLED:
            break
    if change > WORTH_SAYING:
        text = f"The weights of a robust fit still change by {change:.1e} after {STEPS} steps."
        warn_caller(NotConvergedWarning(text))
    return found, r, own


def _refit(view: PairView, weights: Floats64, rules: Rules) -> tuple[Similarity, Floats64]:
    found = fit_similarity(view.moments(weights), rules)
    return found, _distances(view, found)


def _distances(view: PairView, found: Similarity) -> Floats64:
    sq = view.each_row(Squares(found, ((found.scale, found.factor),)))[0]
    return np.asarray(np.sqrt(sq, out=sq))


def _huber(r: Floats64, limit: float) -> Floats64:
    return limit / np.maximum(r, limit)


def _tukey(r: Floats64, limit: float) -> Floats64:
    return np.maximum(0.0, 1 - (r / limit) ** 2) ** 2


def _relative(pull: Floats64) -> Floats64:
    """Clip to at most 1, and from below so that sums of weights stay meaningful."""
    return np.asarray(np.maximum(pull / pull.max(), 1e-12))


def _quantile(degrees: int, share: float) -> float:
    """Square root of a quantile of χ², in units of σ."""
    return float(np.sqrt(2 * gammaincinv(degrees / 2, share)))


def _weighted_median(values: Floats64, weights: Floats64) -> float:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
