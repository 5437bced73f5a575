"""Basis of every diagnostic of a fitted PCA: working rows, scores, distances and variances.

Symbols of the formulas here and in `diagnose`, `categories`, `limits` and `likelihood`: a row x
becomes the *working* row z = (x − μ)/scale · √w with the column weights w (`solvers.problem`);
W (k, d) holds the components, t = Wz the scores of the row, λ the variances of the scores.
Whitening changes none of these numbers. All sums are in float64; a row's numbers do not depend on
the rows beside it. Where a variance is zero, so that a share of it is 0/0, the share is 0.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gnomon.compute.threads import map_blocks, quiet, row_blocks
from gnomon.inputs import refuse_bad_values
from gnomon.numeric.certificate import Certificate
from gnomon.numeric.moments import Moments
from gnomon.numeric.row_product import RANGE_ROWS, ROWS
from gnomon.numeric.scaling import Rows
from gnomon.pca.components import Components
from gnomon.typing import Matrix, Table, Vector

EPS = float(np.finfo(np.float64).eps)

__all__ = ["EPS", "Measurement", "RowMeasures", "measure_rows", "prediction_errors", "ratio"]


class Measurement:
    """Base class of the diagnostics.

    Numbers are in units of 2^`_unit`, as the scores of `gnomon.pca.transform` are.
    """

    if TYPE_CHECKING:  # attributes of `PCA`
        certificate_: Certificate
        components_: Matrix
        n_samples_: int
        rank_: int
        mean_: Vector
        singular_values_: Vector
        _exponent: int
        _noise: float
        _spectrum: Vector
        _total: float
        _unit: int
        _variances: Vector
        _whole: bool
        _working_variances: Vector
        ddof: int
        n_jobs: int | None

        def _check(self, X: Any, *, reset: bool, min_rows: int) -> Table: ...
        def _names(self) -> NDArray[Any] | None: ...
        def _model(self) -> Components: ...
        def _factor(self) -> Vector: ...

    def _rows(self, X: Any) -> Rows:
        """`X` as working rows in float64."""
        check_is_fitted(self)
        return _working_rows(self._model(), self._check(X, reset=False, min_rows=0))

    def _scores(self, rows: Rows) -> Matrix:
        """Scores t of working rows, not whitened, shape (n, k)."""
        model = self._model()
        scores = model.project(rows, self.n_jobs)
        _refuse_bad(model, rows, scores)
        return scores

    def _measure(self, X: Any) -> "RowMeasures":
        """Scores, distances from the mean and distances from the model."""
        check_is_fitted(self)
        return measure_rows(self._model(), self._check(X, reset=False, min_rows=0), self.n_jobs)

    def _kept_variances(self) -> Vector:
        """Variances λ, exactly 0 beyond the numerical rank."""
        return np.where(np.arange(self._variances.size) < self.rank_, self._variances, 0.0)

    def _inverse_variances(self) -> Vector:
        """1/λ, 0 beyond the numerical rank."""
        variances = self._kept_variances()
        return ratio(np.ones_like(variances), variances)

    def _divisor(self) -> float:
        """Σw − ddof of the fit."""
        moments: Moments | None = self.__dict__.get("moments_")
        if moments is not None:
            return moments.divisor(int(self.ddof))
        if self._variances.size == 0:
            return float(self.n_samples_ - self.ddof)
        # singular value = √(divisor · λ)
        spread = float(np.ldexp(np.sqrt(self._variances[0]), self._unit))
        root = float(self.singular_values_[0]) / spread if spread > 0 else np.inf
        return root**2 if np.isfinite(root) else float(self.n_samples_ - self.ddof)


class RowMeasures(NamedTuple):
    """Scores (n, k), ‖z‖² (n,) and ‖z − Wᵀt‖² (n,) of each row, in units of 2^`_unit`."""

    scores: Matrix
    sq_norms: Vector
    sq_residuals: Vector


def measure_rows(model: Components, X: Table, n_jobs: int | None = None) -> RowMeasures:
    """Measure the rows in one pass, in blocks of fixed size as in `gnomon.numeric.row_product`."""
    rows, W = _working_rows(model, X), model.W
    (n, d), k = rows.shape, W.shape[0]
    Wt = np.ascontiguousarray(W.T)
    scores, sq_norms, sq_residuals = np.empty((n, k)), np.empty(n), np.empty(n)

    def block(start: int, stop: int) -> None:
        z, left, t = np.empty((ROWS, d)), np.empty((ROWS, d)), np.empty((ROWS, k))
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            m = end - at
            rows.read(at, end, z)
            z[m:] = 0
            np.matmul(z, Wt, out=t)
            scores[at:end] = t[:m]
            sq_norms[at:end] = np.einsum("ij,ij->i", z, z)[:m]
            # ‖z‖² − ‖t‖² would lose small residuals to cancellation
            np.matmul(t, W, out=left)
            np.subtract(z, left, out=left)
            sq_residuals[at:end] = np.einsum("ij,ij->i", left, left)[:m]

    map_blocks(quiet(block), row_blocks(n, RANGE_ROWS), n_jobs=n_jobs)
    _refuse_bad(model, rows, scores)
    return RowMeasures(scores, sq_norms, sq_residuals)


def prediction_errors(model: Components, X: Table, n_jobs: int | None = None) -> Vector:
    """Squared prediction error ‖z − Wᵀt‖² of each row of `X`, in working units, shape (n,)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(measure_rows(model, X, n_jobs).sq_residuals, 2 * model.unit)


def _working_rows(model: Components, X: Table) -> Rows:
    """`X` as working rows in float64."""
    return model.rows(model.filled(X)).scaled(work=np.dtype(np.float64))


def _refuse_bad(model: Components, rows: Rows, result: NDArray[Any]) -> None:
    """Refuse NaN and infinities, which show in every sum, with their position."""
    if not np.isfinite(result).all():
        refuse_bad_values(rows.X, names=model.names)


def ratio(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Quotient a / b, and 0 where b is 0."""
    quotient = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    np.divide(a, b, out=quotient, where=np.broadcast_to(b, quotient.shape) != 0)
    return quotient
