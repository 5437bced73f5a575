"""The PCA model: principal components as plain numbers, and their use on rows.

`PCA` finds these numbers; workers, maps and pages use them. A row's result never depends on the
rows beside it (`numeric.row_product`), so that arrays and parts of tables give the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.inputs import is_sparse, refuse_bad_values
from gnomon.numeric.row_product import row_product
from gnomon.numeric.scaling import Rows, Scaling, working_type
from gnomon.pca.impute import Imputation, fill_rows
from gnomon.typing import Table

__all__ = ["Components"]


@dataclass(frozen=True)
class Components:
    """Orthonormal components W of rows that are centred and scaled.

    Numbers are in units of 2^`exponent` (see `gnomon.numeric.scaling`), scores in units of
    2^`unit`, which is the same unless columns were standardised and have no unit.

    Attributes
    ----------
    W : array (k, d)
        Orthonormal rows.
    variances : array (k,)
        Variances of the scores.
    rank : int
        Number of variances above rounding.
    shift, offset : array (d,)
        Vectors subtracted from every row, in two steps.
    factors : array (d,)
        Factors of the columns; 0 for constant columns that were to be standardised.
    mean : array (d,)
        Mean in the units of the table.
    filling : Imputation or None
        How missing values are filled in; None if they are refused.
    names : array (d,) of str or None
        Column names, for error messages.
    """

    W: NDArray[np.float64]
    variances: NDArray[np.float64]
    rank: int
    shift: NDArray[Any]
    offset: NDArray[np.float64]
    factors: NDArray[np.float64]
    mean: NDArray[np.float64]
    exponent: int = 0
    unit: int = 0
    filling: Imputation | None = None
    names: NDArray[Any] | None = None

    def scores(self, X: Table, *, whiten: bool = False, n_jobs: int | None = None) -> NDArray[Any]:
        """Scores z = W(x − μ) of the rows of `X`, shape (n, k); float32 stays float32."""
        X = self.filled(X)
        scores = self.project(self.rows(X), n_jobs)
        if not np.isfinite(scores).all():
            refuse_bad_values(X, names=self.names)
        if whiten:
            spread = self._spread()
            inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
            scores = scores * inverse.astype(scores.dtype)
        elif self.unit:
            scores = np.ldexp(scores, self.unit)
        return scores

    def restore(
        self, Z: NDArray[Any], *, whiten: bool = False, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Reconstructions x̂ = Wᵀz + μ of scores (n, k) in the original units, shape (n, d)."""
        Z = Z if Z.dtype == np.float32 else Z.astype(np.float64)
        if whiten:
            Z = Z * self._spread().astype(Z.dtype)
        elif self.unit:
            Z = np.ldexp(Z, -self.unit)
        as_they_are = Rows(Z, Scaling(Z.dtype, np.zeros(Z.shape[1], Z.dtype)))
        if self.factors.all():
            W = self.W / self.factors
        else:  # a constant column is restored from its mean
            W = np.divide(self.W, self.factors, out=np.zeros_like(self.W), where=self.factors != 0)
        return row_product(as_they_are, W, exponent=self.exponent, centre=self.mean, n_jobs=n_jobs)

    def residuals(
        self, X: Table, *, whiten: bool = False, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """X − X̂, what the components do not explain, in the original units, shape (n, d)."""
        X_hat = self.restore(
            self.scores(X, whiten=whiten, n_jobs=n_jobs), whiten=whiten, n_jobs=n_jobs
        )
        X = self.filled(X)
        left: NDArray[Any] = np.asarray(X.toarray() if is_sparse(X) else X, X_hat.dtype) - X_hat
        return left

    def scaling(self, dtype: np.dtype[Any]) -> Scaling:
        """Scaling that centres and scales rows of `dtype`."""
        factor = None if (self.factors == 1).all() else self.factors
        return Scaling(working_type(dtype), self.shift, self.exponent, self.offset, factor)

    def rows(self, X: Table) -> Rows:
        """Rows of `X`, centred and scaled."""
        return Rows(X, self.scaling(X.dtype))

    def project(self, rows: Rows, n_jobs: int | None = None) -> NDArray[Any]:
        """Scores of rows that are centred and scaled, in units of 2^`unit`, shape (n, k)."""
        return row_product(rows, self.W.T, n_jobs=n_jobs)

    def filled(self, X: Table) -> Table:
        """Fill in the missing values of `X`, if the model was fitted to do so."""
        if self.filling is None:
            return X
        e = self.exponent
        filled = fill_rows(
            np.ldexp(X, -e) if e else X,
            self.filling,
            mean=np.ldexp(self.mean, -e),
            factor=np.where(self.factors == 0, 1.0, self.factors),
            names=self.names,
        )
        return np.ldexp(filled, e) if e else filled

    def _spread(self) -> NDArray[np.float64]:
        """Standard deviation of each score, in units of 2^`unit`; 0 below the numerical rank."""
        spread: NDArray[np.float64] = np.sqrt(self.variances)
        spread[self.rank :] = 0.0
        return spread
