"""Scores, reconstructions and residuals of a fitted PCA."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import refuse
from gnomon.inputs import Table, is_sparse, refuse_bad_values
from gnomon.pca.impute import Imputation, fill_rows
from gnomon.pca.project import project, restore
from gnomon.rows import Rows, working_type


class Transformation(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of `PCA` that carry rows into the components' frame and back.

    Inside, numbers are in units of 2^`_exponent` (see `gnomon.rows`), scores in units of 2^`_unit`,
    which is the same unless columns were standardised and have no unit.
    """

    if TYPE_CHECKING:
        components_: NDArray[np.float64]
        mean_: NDArray[np.float64]
        missing_: Imputation
        rank_: int
        whiten: bool
        n_jobs: int | None
        _shift: NDArray[Any]
        _offset: NDArray[np.float64]
        _factors: NDArray[np.float64]
        _variances: NDArray[np.float64]
        _exponent: int
        _unit: int

        fit: Any

        def _check(self, X: Any, *, reset: bool, min_rows: int) -> Table: ...
        def _names(self) -> NDArray[Any] | None: ...

    def transform(self, X: Any) -> NDArray[Any]:
        """Scores z = Wᵀ(x − μ) of the rows of `X`, shape (n, k).

        A row's scores do not depend on the rows beside it. float32 stays float32.
        """
        check_is_fitted(self)
        components = self.components_  # solves, after partial_fit
        X = self._filled(self._check(X, reset=False, min_rows=0))
        scores = project(self._centred_rows(X), components, n_jobs=self.n_jobs)
        if not np.isfinite(scores).all():
            refuse_bad_values(X, names=self._names())
        if self.whiten:
            spread = self._spread()
            inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
            scores = scores * inverse.astype(scores.dtype)
        elif self._unit:
            scores = np.ldexp(scores, self._unit)
        return scores

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]:
        """`fit`, then `transform` of the same rows: the same bits as the two calls."""
        scores: NDArray[Any] = self.fit(X, y, **fit_params).transform(X)
        return scores

    def inverse_transform(self, Z: Any) -> NDArray[Any]:
        """Reconstruction x̂ = Wz + μ in the original columns and units, shape (n, d)."""
        check_is_fitted(self)
        components = self.components_
        Z = np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != components.shape[0]:
            refuse("Z", f"have shape (n, {components.shape[0]})", Z.shape)
        if Z.dtype.kind not in "biuf":
            refuse("Z", "hold numbers", f"dtype {Z.dtype}", kind=True)
        Z = Z if Z.dtype == np.float32 else Z.astype(np.float64)
        if self.whiten:
            Z = Z * self._spread().astype(Z.dtype)
        elif self._unit:
            Z = np.ldexp(Z, -self._unit)
        return restore(
            Z, components, self._factors, self.mean_, exponent=self._exponent, n_jobs=self.n_jobs
        )

    def residuals(self, X: Any) -> NDArray[Any]:
        """X − X̂, what the components do not explain, in the original units, shape (n, d).

        Orthogonal to every component ([Selitskii 2025], eq. (34)).
        """
        X_hat = self.inverse_transform(self.transform(X))
        X = self._filled(self._check(X, reset=False, min_rows=0))
        left: NDArray[Any] = np.asarray(X.toarray() if is_sparse(X) else X, X_hat.dtype) - X_hat
        return left

    def _filled(self, X: Table) -> Table:
        """`X` with its gaps filled in, if the model was fitted to do that."""
        how = self.__dict__.get("missing_")
        if how is None:
            return X
        e = self._exponent
        filled = fill_rows(
            np.ldexp(X, -e) if e else X,
            how,
            mean=np.ldexp(self.mean_, -e),
            factor=self._factor(),
            names=self._names(),
        )
        return np.ldexp(filled, e) if e else filled

    def _centred_rows(self, X: Table) -> Rows:
        """`X` prepared for reading like the training rows."""
        rows = Rows(X, working_type(X), self._shift, exponent=self._exponent)
        return rows.centred(self._offset, None if (self._factors == 1).all() else self._factors)

    def _factor(self) -> NDArray[np.float64]:
        """The columns' factors, 1 where a column is constant and there is nothing to scale."""
        return np.where(self._factors == 0, 1.0, self._factors)

    def _spread(self) -> NDArray[np.float64]:
        """Standard deviation of each score, in units of 2^`_unit`; 0 below the numerical rank."""
        spread: NDArray[np.float64] = np.sqrt(self._variances)
        spread[self.rank_ :] = 0.0
        return spread
