"""PCA as a normal distribution: how likely rows are, and its covariance [Tipping & Bishop 1999].

`gnomon.pca.measure` defines the symbols.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gnomon.compute.blas import one_blas_thread
from gnomon.errors import DataWarning, UnavailableError
from gnomon.pca.measure import EPS, Measurement, ratio
from gnomon.typing import Matrix, Vector

__all__ = ["Likelihood"]


class Likelihood(Measurement):
    """Methods of `PCA` as a probabilistic model."""

    def score_samples(self, X: Any) -> Vector:
        """Log-likelihood of each row of `X` under probabilistic PCA, shape (n,).

        A normal distribution with mean μ and covariance C = Wᵀ(Λ − σ²)W + σ² in the working space,
        where σ² is `noise_variance_`:

            log p = −½ (d log 2π + log|C| + Σ t²/λ + ‖z − Wᵀt‖²/σ²) + log|∂z/∂x|

        The last term makes it a density in the table's own units, also when columns are
        standardised or weighted. Without it, it equals scikit-learn's (which for ``whiten=True``
        scales the components twice). With all d components σ² is 0 and not needed: C has only the
        variances λ. A variance of 0, as when k = n < d, is replaced by the largest value that
        rounding can hide, with a warning.
        """
        check_is_fitted(self)
        variances, noise = self._probabilistic()
        rows = self._measure(X)
        k, d = self.components_.shape
        log_det = float(np.log(variances).sum())
        sq_dist = np.einsum("ij,j->i", rows.scores**2, 1.0 / variances)
        if d > k:
            log_det += (d - k) * float(np.log(noise))
            sq_dist += rows.sq_residuals / noise
        stretch = float(np.log(self._factor()).sum()) - d * self._exponent * float(np.log(2.0))
        likelihood: Vector = stretch - 0.5 * (d * np.log(2 * np.pi) + log_det + sq_dist)
        return likelihood

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`: log-likelihood of `X` per row. Higher is better."""
        return float(self.score_samples(self._check(X, reset=False, min_rows=1)).mean())

    def get_covariance(self) -> Matrix:
        """Covariance of the columns under probabilistic PCA, in the table's units, shape (d, d).

        C = Wᵀ(Λ − σ²)W + σ², see `score_samples`. With all components kept it is the covariance of
        the rows of the fit.
        """
        check_is_fitted(self)
        W, noise = self.components_, self._noise
        more = np.maximum(self._variances - noise, 0.0)
        with one_blas_thread():
            C = (W.T * more) @ W
        C[np.diag_indices_from(C)] += noise
        factor = self._factor()
        unscale = ratio(np.ones_like(factor), factor)
        C *= unscale
        C *= unscale[:, None]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(C, 2 * self._exponent)

    def get_precision(self) -> Matrix:
        """Inverse of `get_covariance`, shape (d, d): Wᵀ(1/Λ − 1/σ²)W + 1/σ² in working columns."""
        check_is_fitted(self)
        variances, noise = self._probabilistic()
        W = self.components_
        rest = 1.0 / noise if W.shape[1] > W.shape[0] else 0.0
        with one_blas_thread():
            P = (W.T * (1.0 / variances - rest)) @ W
        P[np.diag_indices_from(P)] += rest
        factor = self._factor()
        P *= factor
        P *= factor[:, None]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(P, -2 * self._exponent)

    def _probabilistic(self) -> tuple[Vector, float]:
        """Variances along the components and outside of them, none of them zero.

        A variance lost in rounding is replaced by ε d λ₁, about the largest that it can be.
        """
        k, d = self.components_.shape
        variances = np.maximum(self._variances, self._noise)
        rounding = EPS * d * float(self._spectrum[0])
        if rounding == 0:
            raise UnavailableError(
                "A likelihood needs variance; all rows of the fitted table are equal."
            )
        beside = d - k if self._noise <= rounding else 0
        lost = int(np.count_nonzero(variances <= rounding)) + beside
        if lost:
            warnings.warn(
                f"{lost} of {d} directions have no variance beyond rounding (redundant or constant "
                "columns), and the likelihood depends on the value assumed for them. Keep fewer "
                f"components than {max(1, d - lost)}, the table's rank.",
                DataWarning,
                stacklevel=3,
            )
        return np.maximum(variances, rounding), max(self._noise, rounding)
