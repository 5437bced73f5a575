"""Diagnostics of a PCA that R users expect and Python lacks.

This file: which rows and columns make up a component, and how well it represents each of them.
Other files: how other columns relate to it (`categories`), which rows do not fit the model
(`limits`), how likely rows are (`likelihood`), and intervals (`bootstrap`).
`gnomon.pca.measure` defines the symbols.

Contributions and cos² are those of FactoMineR [Lê, Josse & Husson 2008].
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import refuse
from gnomon.inputs import check_weights
from gnomon.pca.bootstrap import Bootstrap, bootstrap
from gnomon.pca.categories import Categories, Supplements
from gnomon.pca.likelihood import Likelihood
from gnomon.pca.limits import Limits
from gnomon.pca.measure import EPS, ratio
from gnomon.typing import Matrix, Vector

__all__ = ["Categories", "Diagnostics"]


class Diagnostics(Supplements, Limits, Likelihood):
    """Methods of `PCA` that explain rows and columns."""

    def correlations(self) -> Matrix:
        """Correlation of each column with each component's scores, shape (d, k).

        With the working column's standard deviation s, r = W √λ / s. For standardised columns
        this is `loadings_`. A constant column has correlation 0.
        """
        check_is_fitted(self)
        covariance = self.components_.T * np.sqrt(self._kept_variances())
        spread = self._column_spread()[:, None]
        return np.clip(ratio(covariance, spread), -1.0, 1.0)

    def contributions(self, X: Any = None, sample_weight: Any = None) -> Matrix:
        """Share of each column, or of each row of `X`, in each component's variance, in per cent.

        Columns: 100 W². Rows: 100 w t² / ((Σw − ddof) λ) with the weights w of the rows. Over all
        columns, or over the rows (with the weights) that the model was fitted on, each
        component's contributions add up to 100. For other rows: what the row would add.

        Parameters
        ----------
        X : table (n, d), optional
            None for the columns.
        sample_weight : array (n,), optional
            The rows' weights in `fit`.

        Returns
        -------
        array (d, k) without `X`, (n, k) with it
        """
        check_is_fitted(self)
        if X is None:
            if sample_weight is not None:
                refuse("sample_weight", "be None for the contributions of columns", "weights")
            return 100.0 * self.components_.T**2
        scores = self._scores(self._rows(X))
        shares = 100.0 * scores**2 * (self._inverse_variances() / self._divisor())
        weights = check_weights("sample_weight", sample_weight, scores.shape[0], of="row")
        return shares if weights is None else shares * weights[:, None]

    def cos2(self, X: Any = None) -> Matrix:
        """How well each component represents each column or row of `X`: 1 fully, 0 not at all.

        Columns: the squared correlation. Rows: t² / ‖z‖², the squared cosine of the angle between
        the row and the component, where ‖z‖ is the row's whole distance from the mean
        (`distances`), not only its part along the components kept.

        Parameters
        ----------
        X : table (n, d), optional
            None for the columns.

        Returns
        -------
        array (d, k) without `X`, (n, k) with it
        """
        if X is None:
            return self.correlations() ** 2
        rows = self._measure(X)
        # Not t² / ‖z‖²: the squares may overflow although their ratio does not.
        return ratio(rows.scores, np.sqrt(rows.sq_norms)[:, None]) ** 2

    def distances(self, X: Any) -> Vector:
        """Distance ‖z‖ of each row of `X` from the mean, in working columns, shape (n,).

        FactoMineR calls it ``ind$dist``. In the units of the table, or in standard deviations if
        columns were standardised.
        """
        return np.ldexp(np.sqrt(self._measure(X).sq_norms), self._unit)

    def _column_spread(self) -> Vector:
        """Standard deviation of each working column, in units of 2^`_unit`; 0 if constant."""
        spread = np.sqrt(self._working_variances)
        rounding = 4 * EPS * np.abs(np.ldexp(self.mean_, -self._exponent)) * self._factor()
        return np.where(spread <= rounding, 0.0, spread)

    def bootstrap(
        self,
        X: Any,
        n_boot: int = 200,
        level: float = 0.95,
        random_state: Any = 0,
        sample_weight: Any = None,
    ) -> Bootstrap:
        """Bootstrap intervals of eigenvalues and loadings from resampled rows; see `Bootstrap`.

        Parameters
        ----------
        X : table (n, d)
            The rows that the model was fitted on.
        n_boot : int, default=200
            Number of resampled fits.
        level : float, default=0.95
            Nominal coverage of the intervals.
        random_state : int, Generator or None, default=0
            The same seed gives the same bits, for any `n_jobs`.
        sample_weight : array (n,) of whole numbers, optional
            The rows' frequencies in `fit`.
        """
        check_is_fitted(self)
        return bootstrap(
            self,
            X,
            n_boot=n_boot,
            level=level,
            random_state=random_state,
            sample_weight=sample_weight,
        )
