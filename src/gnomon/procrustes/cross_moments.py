"""Mergeable moments of a pair of tables: what Procrustes is read from.

With the total weight W = Σw and the means μₓ, μᵧ: C = Σ w (x − μₓ)(y − μᵧ)ᵀ, beside the moments of
both tables (`numeric/moments.py`). Two sets are merged by Chan's formula,
C = Cᵃ + Cᵇ + (WᵃWᵇ/W)(μₓᵇ − μₓᵃ)(μᵧᵇ − μᵧᵃ)ᵀ; one is taken out again by the same formula backwards.
`PairView.moments` adds the sums up.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs import as_table, check_weights, is_sparse
from gnomon.models.fields import UnfitError
from gnomon.numeric.moments import ROUNDED, Moments, distance_between, in_one_unit, rescale

__all__ = ["CrossMoments", "check_cross"]


@dataclass(frozen=True)
class CrossMoments:
    """Moments of X and Y row by row, and Σ w (x − μₓ)(y − μᵧ)ᵀ: what Procrustes is read from.

    Attributes
    ----------
    x, y : Moments
        Each side's count, mean and column variances (1-D `scatter`).
    cross : array (dx, dy), float64
        Σ w (x − μₓ)(y − μᵧ)ᵀ in units of 2^(x.exponent + y.exponent).
    """

    x: Moments
    y: Moments
    cross: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        *,
        shifts: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
        n_jobs: int | None = None,
    ) -> "CrossMoments":
        """Moments of paired rows, in one pass.

        Parameters
        ----------
        X, Y : array (n, dx), array (n, dy)
            A sparse table is copied as a dense one.
        sample_weight : array (n,), optional
            Frequencies: an integer weight is that many copies, 0 is an absent row.
        shifts : pair of arrays (dx,) and (dy,), optional
            Common shifts for sets that will be merged; by default close to the means.
        n_jobs : int, optional
            Threads; the result's bits do not depend on it.
        """
        from gnomon.procrustes.row_pairs import view_arrays  # which returns these moments

        left, right = _as_dense(X), _as_dense(Y)
        n, m = len(left), len(right)
        if m != n:
            raise DataError(f"X and Y must have the same number of rows; got {n} and {m}.")
        weights = check_weights("sample_weight", sample_weight, n, of="row")
        return view_arrays(left, right, weights, shifts=shifts, n_jobs=n_jobs).moments(weights)

    def __add__(self, other: "CrossMoments") -> "CrossMoments":
        (ax, bx), (ay, by) = in_one_unit(self.x, other.x), in_one_unit(self.y, other.y)
        dx = bx.offset - ax.offset + distance_between(bx.shift, ax.shift, ax.exponent)
        dy = by.offset - ay.offset + distance_between(by.shift, ay.shift, ay.exponent)
        weight = ax.weight + bx.weight
        share = ax.weight * (bx.weight / weight) if weight else 0.0
        mine = rescale(self.cross, self.x.exponent + self.y.exponent, ax.exponent + ay.exponent)
        yours = rescale(other.cross, other.x.exponent + other.y.exponent, ax.exponent + ay.exponent)
        return CrossMoments(ax + bx, ay + by, mine + yours + share * np.outer(dx, dy))

    def __sub__(self, other: "CrossMoments") -> "CrossMoments":
        x, y = self.x - other.x, self.y - other.y
        if x.n == 0:
            return CrossMoments(x, y, 0 * self.cross)
        # Chan's formula backwards: what is left, merged with `other`, gives `self`
        unit = x.exponent + y.exponent
        left = CrossMoments(x, y, np.zeros_like(self.cross))
        none = replace(other, cross=np.zeros_like(other.cross))
        between = rescale((left + none).cross, _units(left + none), unit)
        mine = rescale(self.cross, _units(self), unit)
        yours = rescale(other.cross, _units(other), unit)
        return CrossMoments(x, y, mine - yours - between)


def _units(moments: CrossMoments) -> int:
    return moments.x.exponent + moments.y.exponent


def _as_dense(X: Any) -> NDArray[Any]:
    table = as_table(X)
    dense: NDArray[Any] = table.toarray() if is_sparse(table) else table
    return dense


def check_cross(moments: CrossMoments) -> None:
    """Refuse cross moments that violate Schwarz's inequality: no pair of tables has them."""
    roots = [np.sqrt(part.scatter.max(initial=0.0)) for part in (moments.x, moments.y)]
    if (np.abs(moments.cross) > ROUNDED * roots[0] * roots[1]).any():
        raise UnfitError("its moments cannot come from a pair of tables")
