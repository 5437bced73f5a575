"""Rows that do not fit: Hotelling's T², the squared prediction error, and what is unusual in them.

T² and its limits are from [Jackson 1991], the limit of the prediction error from [Box 1954].
`gnomon.pca.measure` explains the letters.
"""

from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, gammainccinv
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import UnavailableError
from gnomon.inputs import check_choice, check_real
from gnomon.pca.measure import Measurement, Vector

__all__ = ["Limits"]


class Limits(Measurement):
    """Methods of `PCA` that tell ordinary rows from unusual ones."""

    def hotelling_t2(self, X: Any) -> Vector:
        """Hotelling's T² = Σ t²/λ of each row of `X` over the components, shape (n,).

        How far a row lies from the mean *within* the model. Components without variance are left
        out. `t2_limit` says what is unusual.
        """
        check_is_fitted(self)
        t2: Vector = np.einsum("ij,j->i", self._scores(X) ** 2, self._inverse_variances())
        return t2

    def prediction_error(self, X: Any) -> Vector:
        """Squared prediction error ‖z − Wᵀt‖² of each row of `X`, shape (n,).

        How far a row lies *outside* the model; also called SPE or Q. In squared working units: of
        the table, of standard deviations if columns were standardised, times the column weights.
        Its mean over the rows of the fit is `lost_variance_` times (Σw − ddof)/Σw.
        `prediction_error_limit` says what is unusual.
        """
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self._measure(X).sq_residuals, 2 * self._unit)

    def t2_limit(self, alpha: float = 0.05, new: bool = True) -> float:
        """What Hotelling's T² of a row exceeds with probability `alpha`, for normal data.

        For ddof = 1, n rows and k components (as many as have variance):

            new rows: k(n² − 1)/(n(n − k)) · F(k, n − k),
            rows of the fit: (n − 1)²/n · Beta(k/2, (n − k − 1)/2),

        both at 1 − alpha [Jackson 1991]. Exact if the k directions had been chosen without looking
        at the data; in practice for n well above the number of columns.

        Parameters
        ----------
        alpha : float, default=0.05
        new : bool, default=True
            True for rows that had no part in the fit, False for those that had.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, 0.0, 1.0, open_low=True)
        check_choice("new", new, (False, True))
        k, n = int(self.rank_), int(self.n_samples_)
        least = k + 1 if new else k + 2
        if k == 0 or n < least:
            raise UnavailableError(
                f"A limit for T² needs a component with variance and at least {least} rows; the "
                f"model has {k} such components of {n} rows. Keep fewer components."
            )
        if new:  # the F distribution by way of its Beta
            a, b = k / 2, (n - k) / 2
            limit = (n**2 - 1) / n * betainccinv(a, b, alpha) / betaincinv(b, a, alpha)
        else:
            limit = (n - 1) ** 2 / n * betainccinv(k / 2, (n - k - 1) / 2, alpha)
        return float(limit * (n - self.ddof) / (n - 1))

    def prediction_error_limit(self, alpha: float = 0.05) -> float:
        """What the squared prediction error of a row exceeds with probability `alpha`.

        For normal data it is a sum of squares with the variances λ that were not kept. With
        θ₁ = Σλ and θ₂ = Σλ², its mean is θ₁ and its variance 2θ₂, as for g·χ²(h) with g = θ₂/θ₁
        and h = θ₁²/θ₂; the limit is that distribution's [Box 1954]. 0 if nothing was left out.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, 0.0, 1.0, open_low=True)
        k = self.components_.shape[0]
        if not self._whole:
            raise UnavailableError(
                "A limit for the prediction error needs all eigenvalues, which the solver at hand "
                "did not compute. Fit with solver 'covariance', 'gram' or 'svd'."
            )
        lost = self._spectrum[k:]
        top = float(lost.max(initial=0.0))
        if top <= 0:
            return 0.0
        theta1, theta2 = float((lost / top).sum()), float(((lost / top) ** 2).sum())
        g, h = top * theta2 / theta1, theta1**2 / theta2
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(g * 2.0 * gammainccinv(h / 2, alpha), 2 * self._unit))
