"""What every solver is given, and what every solver gives back.

A solver is one function ``solve(problem) -> Solution`` in a file of its own, named in
`estimator.SOLVERS`. It finds eigenvectors of Σ, the covariance of the *working* columns

    z = ((x − μ) / scale) · √feature_weight

where `scale` is 1 unless the columns are standardised. All variances are in units of 4^exponent
(see `gnomon.rows`); the estimator turns them back.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.moments import ROUNDINGS, Moments
from gnomon.pca.heldout import SampledRows
from gnomon.pca.rank import Request
from gnomon.rows import Rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """The rows, how columns are scaled, and what is asked for."""

    rows: Rows
    weights: Vector | None
    request: Request
    standardize: bool
    feature_weight: Vector | None
    ddof: int
    tol: float
    random: np.random.Generator
    n_jobs: int | None
    step: Callable[..., bool] = lambda **_: False  # progress: True asks to stop
    passes: int | None = None  # how often a source may be read by an iteration

    @property
    def root_weight(self) -> Vector | None:
        """√w of the rows."""
        return None if self.weights is None else np.sqrt(self.weights)

    def count(self, spectrum: Vector, total: float, moments: Moments, *, whole: bool) -> int:
        """How many components the request asks for, given the eigenvalues known so far."""
        return self.request.count(
            spectrum,
            total=total,
            n=moments.size,
            d=self.rows.shape[1],
            whole=whole,
            standardized=self.standardize,
            variances=self.scaling(moments).variances,
            seed=self.random,
            n_jobs=self.n_jobs,
        )

    def scaling(self, moments: Moments) -> "Scaling":
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
        return Scaling(scale, None if trivial else factor, float(working.sum()), constant, working)

    def _constant(self, variance: Vector, moments: Moments) -> NDArray[np.bool_]:
        """Columns whose spread is a few roundings of their own mean: dividing would show noise."""
        kind = self.rows.X.dtype
        eps = float(np.finfo(kind).eps) if kind.kind == "f" else 0.0
        mean = np.abs(np.ldexp(moments.mean, -moments.exponent))
        constant: NDArray[np.bool_] = np.sqrt(variance) <= 4 * eps * mean
        return constant


@dataclass(frozen=True)
class Scaling:
    """Divisor and whole factor of every column (None if all 1), and the total variance.

    `constant` marks columns that should have been standardised and have no spread; `variances` are
    those of the working columns.
    """

    scale: Vector
    factor: Vector | None
    total: float
    constant: NDArray[np.bool_]
    variances: Vector


@dataclass(frozen=True)
class Solution:
    """Eigenpairs of Σ and what is known about their accuracy.

    Attributes
    ----------
    moments : Moments
        Mean and variances of the raw columns; with the d × d matrix where the solver formed it.
    scaling : Scaling
    components : array (k, d)
        Unit eigenvectors as rows, largest variance first.
    variances : array (k,)
    spectrum : array (m,), m ≥ k
        All eigenvalues known, largest first; all min(n, d) of them when `whole`.
    residuals : array (k,)
        ‖Σv − λv‖ of each component.
    formation : float
        Estimated error of Σ itself, or of the products with it, by rounding.
    sample : SampledRows, optional
        Scores and errors of some rows, where the solver has them anyhow.
    """

    moments: Moments
    scaling: Scaling
    components: Matrix
    variances: Vector
    spectrum: Vector
    whole: bool
    residuals: Vector
    formation: float
    passes: int
    sample: SampledRows | None = None


def product_error(rows: Rows, largest: float) -> float:
    """Estimated rounding error of products with the centred rows, as in `Moments.rounding`."""
    return ROUNDINGS * float(np.finfo(rows.work).eps) * max(0.0, float(largest))


def residual_norms(sigma: Matrix, vectors: Matrix, values: Vector) -> Vector:
    """‖Σv − λv‖ for each column v of `vectors`, shape (k,)."""
    norms: Vector = np.linalg.norm(sigma @ vectors - vectors * values, axis=0)
    return norms
