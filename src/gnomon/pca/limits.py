"""Rows that do not fit: Hotelling's T², the squared prediction error, and limits for both.

T² and its limits are from [Jackson 1991], the limit of the prediction error from [Box 1954].
`gnomon.pca.measure` defines the symbols.
"""

from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, gammainccinv
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import UnavailableError
from gnomon.inputs import check_choice, check_real, check_weights
from gnomon.pca.downdate import SampledRows, draw_left_out, held_out_errors, upper_quantile
from gnomon.pca.measure import EPS, Measurement, prediction_errors
from gnomon.typing import Matrix, Vector

__all__ = ["Limits"]


class Limits(Measurement):
    """Methods of `PCA` that distinguish ordinary rows from unusual ones."""

    def hotelling_t2(self, X: Any) -> Vector:
        """Hotelling's T² = Σ t²/λ of each row of `X` over the components, shape (n,).

        Distance of a row from the mean *within* the model. Components without variance are left
        out. `t2_limit` gives the limit of ordinary rows.
        """
        check_is_fitted(self)
        t2: Vector = np.einsum(
            "ij,j->i", self._scores(self._rows(X)) ** 2, self._inverse_variances()
        )
        return t2

    def prediction_error(self, X: Any) -> Vector:
        """Squared prediction error ‖z − Wᵀt‖² of each row of `X`, shape (n,).

        Distance of a row from the model; also called SPE or Q. In squared working units: of
        the table, of standard deviations if columns were standardised, times the column weights.
        Its mean over the rows of the fit is `lost_variance_` times (Σw − ddof)/Σw.
        `prediction_error_limit` gives the limit of ordinary rows.
        """
        check_is_fitted(self)
        table = self._check(X, reset=False, min_rows=0)
        return prediction_errors(self._model(), table, self.n_jobs)

    def t2_limit(self, alpha: float = 0.05, new: bool = True) -> float:
        """Limit that Hotelling's T² of a row exceeds with probability `alpha`, for normal data.

        For ddof = 1, n rows and k components (as many as have variance):

            new rows: k(n² − 1)/(n(n − k)) · F(k, n − k),
            rows of the fit: (n − 1)²/n · Beta(k/2, (n − k − 1)/2),

        both at 1 − alpha [Jackson 1991]. Exact if the k directions were chosen independently
        of the data; in practice for n well above the number of columns.

        Parameters
        ----------
        alpha : float, default=0.05
        new : bool, default=True
            True for rows that were not in the fit, False for rows of the fit.
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
        if new:  # the F distribution, computed from a Beta
            a, b = k / 2, (n - k) / 2
            limit = (n**2 - 1) / n * betainccinv(a, b, alpha) / betaincinv(b, a, alpha)
        else:
            limit = (n - 1) ** 2 / n * betainccinv(k / 2, (n - k - 1) / 2, alpha)
        return float(limit * (n - self.ddof) / (n - 1))

    def held_out_error(self, X: Any, sample_weight: Any = None) -> Vector:
        """Leave-one-out squared prediction error of each row of the fit; shape (n,).

        The error of a new row in its place: rows of the fit attracted the components.
        Computed by one downdate of the moments per row, without another fit; see
        `gnomon.pca.downdate`. Scales of standardised columns are not recomputed.

        Parameters
        ----------
        X : table (n, d)
            Rows that the model was fitted on, all or some.
        sample_weight : array (n,), optional
            Weights of the rows in `fit`. One copy is left out of a row that counts more than once.
        """
        measured = self._measure(X)
        weights = check_weights("sample_weight", sample_weight, len(measured.scores), of="row")
        sample = SampledRows(measured.scores, measured.sq_residuals, weights)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self._left_out(sample), 2 * self._unit)

    def prediction_error_limit(self, alpha: float = 0.05, new: bool = True) -> float:
        """Limit that the squared prediction error of a row exceeds with probability `alpha`.

        For new rows: estimated from the leave-one-out errors (`held_out_error`) of at most 1,024
        evenly spaced rows of the fit. The data may have any distribution;
        beyond the five largest of these errors the tail is that of g·χ²(h) with their mean and
        variance, widened because they are few. After `partial_fit` or `merge` the rows are gone,
        and normal rows replace them.

        For rows of the fit, if they are normal: their error is a sum of squares with the variances
        λ that were not kept. With θ₁ = Σλ and θ₂ = Σλ², its mean is θ₁ and its variance 2θ₂, as for
        g·χ²(h) with g = θ₂/θ₁ and h = θ₁²/θ₂; the limit is that distribution's [Box 1954].

        The limit is 0 if no variance was left out.

        Parameters
        ----------
        alpha : float, default=0.05
        new : bool, default=True
            True for rows that were not in the fit, False for rows of the fit.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, 0.0, 1.0, open_low=True)
        check_choice("new", new, (False, True))
        if new:
            errors, weights = self._held_out()
            limit = upper_quantile(errors, weights, alpha)
        else:
            limit = self._box_limit(alpha)
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(limit, 2 * self._unit))

    def _box_limit(self, alpha: float) -> float:
        if not self._whole:
            raise UnavailableError(
                "A limit for the prediction errors of rows of the fit needs all eigenvalues, which "
                "this solver did not compute. Fit with solver 'covariance', 'gram' or "
                "'svd'; for new rows there is a limit with every solver."
            )
        lost = self._spectrum[self.components_.shape[0] :]
        top = float(lost.max(initial=0.0))
        if top <= 0:
            return 0.0
        theta1, theta2 = float((lost / top).sum()), float(((lost / top) ** 2).sum())
        g, h = top * theta2 / theta1, theta1**2 / theta2
        return g * 2.0 * float(gammainccinv(h / 2, alpha))

    def _held_out(self) -> Matrix:
        """Leave-one-out errors of rows of the fit, and their weights; shape (2, m).

        In units of 4^`_unit`. Computed on first access; the scores of single rows that
        they are computed from are dropped then, and never stored in a model file.
        """
        if self.n_samples_ < 3:
            raise UnavailableError(
                f"A limit for new rows needs at least 3 rows of a fit; got {self.n_samples_}."
            )
        if "_held_out_errors" not in self.__dict__:
            assert self.components_ is not None
            sample: SampledRows | None = self.__dict__.pop("_sample", None)
            errors = self._left_out(self._drawn_rows() if sample is None else sample)
            weights = None if sample is None else sample.weights
            counts = np.ones_like(errors) if weights is None else weights
            self._held_out_errors = np.stack([errors, counts])
        return self._held_out_errors

    def _drawn_rows(self) -> SampledRows:
        """Normal rows instead of those that came in batches."""
        return draw_left_out(
            self._variances[: self.rank_],
            self._rest(),
            n=int(self.n_samples_),
            divisor=self._divisor(),
            random=np.random.default_rng(0),
        )

    def _left_out(self, sample: SampledRows) -> Vector:
        """`held_out_errors` of rows of the fit."""
        weights, total = sample.weights, self._divisor() + self.ddof
        return held_out_errors(
            sample.scores[:, : self.rank_],
            sample.sq_errors,
            self._variances[: self.rank_],
            self._rest(),
            weight=total,
            divisor=self._divisor(),
            rank=min(int(self.n_samples_) - 2, self.components_.shape[1]),
            left_out=1.0 if weights is None else np.minimum(weights, 1.0),
            n_jobs=self.n_jobs,
        )

    def _rest(self) -> Vector:
        """Variances above rounding that were not kept; unknown ones are extrapolated."""
        k, d = self.components_.shape
        known = self._spectrum[k:]
        many = min(int(self.n_samples_) - 1, d) - k - known.size
        if not self._whole and many > 0:
            left = self._total - float(self._variances.sum()) - float(known.sum())
            known = np.concatenate([known, _geometric(float(self._spectrum[-1]), left, many)])
        floor = self.certificate_.formation_error + EPS * d
        above: Vector = known[known > floor * float(self._spectrum[0])]
        return above


def _geometric(first: float, total: float, many: int) -> Vector:
    """Geometric sequence of `many` numbers that starts at `first` and adds up to `total`."""
    low, high = 0.0, 1.0
    powers = np.arange(1, many + 1)
    for _ in range(50):
        middle = (low + high) / 2
        enough = first * float((middle**powers).sum()) > total
        low, high = (low, middle) if enough else (middle, high)
    return np.asarray(first * high**powers, np.float64)
