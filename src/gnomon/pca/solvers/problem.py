"""Input and output of every solver.

A solver is a file with ``solve(problem) -> Solution``, which declares what it needs of the table
(`Solver`) and is listed in `plan.SOLVERS`. It finds eigenvectors of Σ, the covariance of the
*working* columns

    z = ((x − μ) / scale) · √feature_weight

where `scale` is 1 unless the columns are standardised. All variances are in units of 4^exponent
(see `gnomon.numeric.scaling`); the estimator converts them back.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnomon.numeric.certificate import Measured
from gnomon.numeric.moments import Moments
from gnomon.numeric.roundoff import PRECISION, ROUNDINGS, relative_rounding
from gnomon.numeric.view import View
from gnomon.pca.downdate import SampledRows
from gnomon.pca.rank import Request
from gnomon.typing import Matrix, Vector


@dataclass(frozen=True, kw_only=True)
class Question:
    """The scaling of columns and the requested components: all that moments are solved for."""

    request: Request
    dtype: np.dtype[Any]  # type of the table's numbers
    standardize: bool
    feature_weight: Vector | None
    ddof: int
    tol: float
    random: np.random.Generator
    n_jobs: int | None

    def count(self, spectrum: Vector, total: float, moments: Moments, *, whole: bool) -> int:
        """Number of components requested, given the eigenvalues known so far."""
        return self.request.count(
            spectrum,
            total=total,
            n=moments.size,
            d=moments.offset.size,
            whole=whole,
            standardized=self.standardize,
            variances=self.scaling(moments).variances,
            seed=self.random,
            n_jobs=self.n_jobs,
        )

    def scaling(self, moments: Moments) -> "ColumnFactors":
        """Column divisors and factors from the columns' variances."""
        variance = moments.variance(self.ddof)
        scale = np.ones_like(variance)
        constant = np.zeros(variance.shape, bool)
        if self.standardize:
            constant = self._constant(variance, moments)
            scale = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
        factor = np.where(constant, 0.0, 1.0 / scale)
        if self.feature_weight is not None:
            factor = factor * np.sqrt(self.feature_weight)
        trivial = not self.standardize and self.feature_weight is None
        working = variance * factor**2
        total = float(working.sum())
        return ColumnFactors(scale, None if trivial else factor, total, constant, working)

    def _constant(self, variance: Vector, moments: Moments) -> NDArray[np.bool_]:
        """Mark columns with a spread of a few roundings of their mean: scaling would show noise."""
        eps = float(np.finfo(self.dtype).eps) if self.dtype.kind == "f" else 0.0
        mean = np.abs(np.ldexp(moments.mean, -moments.exponent))
        constant: NDArray[np.bool_] = np.sqrt(variance) <= 4 * eps * mean
        return constant


@dataclass(frozen=True, kw_only=True)
class Problem(Question):
    """A question together with its table."""

    view: View
    weights: Vector | None
    step: Callable[..., bool] = lambda **_: False  # progress callback: True stops
    passes: int | None = None  # most passes of an iteration; None means no limit

    def centred_view(self, moments: Moments, factors: "ColumnFactors") -> View:
        """View of the table about its mean, with columns and rows scaled."""
        roots = None if self.weights is None else np.sqrt(self.weights)
        view = self.view.scaled(exponent=moments.exponent)
        return view.centred(moments.offset, factors.factor, roots)


@dataclass(frozen=True)
class ColumnFactors:
    """Divisor and total factor of every column (None if all 1), and the total variance.

    `constant` marks columns that should be standardised but have no spread; `variances` are
    those of the working columns.
    """

    scale: Vector
    factor: Vector | None
    total: float
    constant: NDArray[np.bool_]
    variances: Vector


@dataclass(frozen=True)
class Solution:
    """Eigenpairs of Σ and their accuracy.

    Attributes
    ----------
    moments : Moments
        Mean and variances of the raw columns; with the d × d matrix if the solver formed it.
    scaling : ColumnFactors
    components : array (k, d)
        Unit eigenvectors as rows, largest variance first.
    variances : array (k,)
    spectrum : array (m,), m ≥ k
        All eigenvalues known, largest first; all min(n, d) of them when `whole`.
    residuals : array (k,)
        ‖Σv − λv‖ of each component, or a bound on it.
    formation : float
        Estimated rounding error of Σ itself, or of the products with it.
    following : float
        Upper bound of the first variance not kept, formation error aside.
    singular : Measured, optional
        Accuracy of the components as singular vectors, if the table was not squared.
    sample : SampledRows, optional
        Scores and errors of some rows, if the solver computes them anyway.
    """

    moments: Moments
    scaling: ColumnFactors
    components: Matrix
    variances: Vector
    spectrum: Vector
    whole: bool
    residuals: Vector
    formation: float
    following: float
    passes: int
    singular: Measured | None = None
    sample: SampledRows | None = None

    def without_components(self) -> "Solution":
        """Solution without components; one was computed for the variances and the accuracy."""
        singular = self.singular
        if singular is not None:
            first = float(singular.values[0])
            singular = singular._replace(
                values=singular.values[:0], residuals=singular.residuals[:0], following=first
            )
        return replace(
            self,
            components=self.components[:0],
            variances=self.variances[:0],
            residuals=self.residuals[:0],
            following=float(self.variances[0]),
            singular=singular,
            sample=None,
        )

    @property
    def measured(self) -> Measured:
        """Variances, with error bounds of variances and components."""
        return Measured(self.variances, self.residuals, self.formation, self.following)


class Solver(Protocol):
    """Contents of the file of a solver."""

    NEEDS_ARRAY: bool  # whether it needs the whole table in memory
    PASSES: int  # passes over the table; for an iteration, those before and after it

    def solve(self, problem: Problem) -> Solution:
        """Find the components that the problem requests."""


def following(values: Vector, k: int, d: int) -> float:
    """Value after the first `k` of `d`, given all non-zero values.

    Includes the rounding of a backward stable solver.
    """
    if k == d:
        return -np.inf
    rounding = ROUNDINGS * PRECISION * float(values[0])
    return float(values[k]) + rounding if k < values.size else rounding


def product_error(view: View, largest: float, *, wide: bool = False) -> float:
    """Estimated rounding error of products with the centred rows, as in `Moments.rounding`.

    `wide` means that ZZᵀ was formed, not ZᵀZ.
    """
    return relative_rounding(view.scaling, view.sample, wide=wide) * max(0.0, float(largest))


def residual_norms(sigma: Matrix, vectors: Matrix, values: Vector) -> Vector:
    """‖Σv − λv‖ for each column v of `vectors`, shape (k,), plus the rounding of measuring it."""
    norms: Vector = np.linalg.norm(sigma @ vectors - vectors * values, axis=0)
    norms += PRECISION * np.sqrt(len(sigma)) * float(values.max(initial=0.0))
    return norms
