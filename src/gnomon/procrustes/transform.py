"""Rows carried through a fitted map and back, and how far they land from their partners."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.blas import one_blas_thread
from gnomon.carry import carry
from gnomon.errors import UnavailableError, refuse
from gnomon.inputs import Table, check_table, refuse_bad_values
from gnomon.procrustes.frame import Frame
from gnomon.procrustes.pairs import read_pair
from gnomon.procrustes.tables import read_table, speaking_of
from gnomon.rows import Rows, working_type


class Transformation(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of `Procrustes` that need no more than the map."""

    if TYPE_CHECKING:
        n_jobs: int | None
        _frame: Frame

        def _check_pair(
            self, X: Any, Y: Any, sample_weight: Any, *, reset: bool
        ) -> tuple[Table, Table, NDArray[np.float64] | None]: ...
        def _names(self) -> NDArray[Any] | None: ...

    def transform(self, X: Any) -> NDArray[Any]:
        """The rows of X in the frame of Y, s·XR + t, shape (n, D).

        A row's result does not depend on the rows beside it. float32 stays float32.
        """
        check_is_fitted(self)
        frame: Frame = self._frame  # solves, after partial_fit
        X = check_table(self, X, reset=False, min_rows=0, sparse=False)
        left, _ = frame.about(_rows(X), _rows(X))
        out = carry(
            left,
            frame.scale * frame.rotation.matrix,
            exponent=frame.unit,
            centre=self._centre() if frame.rules.centering else None,
            n_jobs=self.n_jobs,
        )
        if not np.isfinite(out).all():
            refuse_bad_values(X, names=self._names())
        return out

    def inverse_transform(self, Y: Any) -> NDArray[Any]:
        """Rows of Y's frame back in that of X, (Y − t) Rᵀ / s, shape (n, dx)."""
        check_is_fitted(self)
        frame: Frame = self._frame
        x, y = frame.moments.x, frame.moments.y
        dy, D = y.shift.size, frame.rotation.matrix.shape[1]
        if frame.scale == 0:
            raise UnavailableError("`scale_` is 0: every point went to one, and none comes back.")
        Y = read_table(Y, "Y") if np.size(Y) else np.asarray(Y)
        if Y.ndim != 2 or Y.shape[1] not in (dy, D):
            wide = f"{dy} or {D}" if dy != D else str(D)
            refuse("Y", f"have {wide} columns", f"shape {Y.shape}")
        shift = self._centre()[: Y.shape[1]] if frame.rules.centering else np.zeros(Y.shape[1])
        out = carry(
            Rows(Y, working_type(Y), shift, exponent=frame.unit),
            frame.rotation.matrix[:, : Y.shape[1]].T / frame.scale,
            exponent=x.exponent,
            centre=x.mean if frame.rules.centering else None,
            n_jobs=self.n_jobs,
        )
        if not np.isfinite(out).all():
            with speaking_of("Y"):
                refuse_bad_values(Y)
        return out

    @one_blas_thread()
    def residuals(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Distance of each mapped row of `X` from its partner in `Y`, shape (n,); any rows."""
        check_is_fitted(self)
        frame: Frame = self._frame
        X, Y, _ = self._check_pair(X, Y, None, reset=False)
        if Y.shape[1] != frame.moments.y.shift.size:
            refuse("Y", f"have {frame.moments.y.shift.size} columns", Y.shape[1])
        pair = read_pair(X, Y, None, names=self._names(), n_jobs=self.n_jobs)
        sq = pair.sq_residuals(frame, frame.scale, frame.factor)
        if not np.isfinite(sq).all():
            refuse_bad_values(X, names=self._names())
            with speaking_of("Y"):
                refuse_bad_values(Y)
        return np.asarray(np.ldexp(np.sqrt(sq), frame.unit))

    def _centre(self) -> NDArray[np.float64]:
        """Mean of Y, with zeros for the columns that it lacks."""
        mean = self._frame.moments.y.mean
        centre = np.zeros(self._frame.rotation.matrix.shape[1])
        centre[: mean.size] = mean
        return centre


def _rows(X: Table) -> Rows:
    return Rows(X, working_type(X), np.zeros(X.shape[1]))
