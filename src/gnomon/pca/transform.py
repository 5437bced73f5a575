"""Scores, reconstructions and residuals of a fitted PCA."""

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.engine import Source, as_engine
from gnomon.engine.arrays import ArraySource, as_source
from gnomon.errors import refuse
from gnomon.inputs import Table, is_sparse, refuse_bad_values
from gnomon.pca.blocks import Output, carry_blocks, check_rows
from gnomon.pca.impute import Imputation, fill_rows
from gnomon.pca.project import project, restore
from gnomon.rows import Rows, working_type
from gnomon.streams import Stream


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

        def _names(self) -> NDArray[Any] | None: ...

    def transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """Scores z = Wᵀ(x − μ) of the rows of `X`, shape (n, k).

        A row's scores do not depend on the rows beside it. float32 stays float32.

        Parameters
        ----------
        X : whatever `fit` takes, shape (n, d)
        to : path, optional
            Write them block by block into this file, ``.npy`` or ``.parquet``, instead of returning
            them; its path is returned. The file is whole or not there.
        force : bool
            Whether a file that exists is replaced.
        engine : Dask client or engine, optional
            Who works through blocks, as in `fit`.
        progress : callable, optional
            Told ``(rows done, rows in all)`` after every block.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.get_feature_names_out()]
        X = check_rows(self, X, engine, reset=False, blocks=to is not None)
        if isinstance(X, Source):
            output = Output(to, force, progress)
            return carry_blocks(self, "_carried", X, names, output, engine)
        return self._carried(X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]:
        """`fit`, then `transform` of the same rows: the same bits as the two calls."""
        engine = fit_params.get("engine")
        scores: NDArray[Any] = self.fit(X, y, **fit_params).transform(X, engine=engine)
        return scores

    def inverse_transform(
        self,
        Z: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """Reconstruction x̂ = Wz + μ in the original columns and units, shape (n, d).

        `Z` may be a source of scores; the other parameters are those of `transform`.
        """
        check_is_fitted(self)
        k = self.components_.shape[0]
        source = as_source(Z)
        Z = np.asarray(Z) if source is None else source
        if len(Z.shape) != 2 or Z.shape[1] != k:
            refuse("Z", f"have shape (n, {k})", Z.shape)
        if Z.dtype.kind not in "biuf":
            refuse("Z", "hold numbers", f"dtype {Z.dtype}", kind=True)
        if source is None and (to is not None or engine is not None):
            source = ArraySource(Z)
        if source is not None:
            output = Output(to, force, progress)
            return carry_blocks(self, "_restored", source, self._column_names(), output, engine)
        return self._restored(Z)

    def residuals(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """X − X̂, what the components do not explain, in the original units, shape (n, d).

        Orthogonal to every component ([Selitskii 2025], eq. (34)). The parameters are those of
        `transform`.
        """
        check_is_fitted(self)
        _ = self.components_
        X = check_rows(self, X, engine, reset=False, blocks=to is not None)
        if isinstance(X, Source):
            output = Output(to, force, progress)
            return carry_blocks(self, "_left_over", X, self._column_names(), output, engine)
        return self._left_over(X)

    def _carried(self, X: Table) -> NDArray[Any]:
        X = self._filled(X)
        scores = project(self._centred_rows(X), self.components_, n_jobs=self.n_jobs)
        if not np.isfinite(scores).all():
            refuse_bad_values(X, names=self._names())
        if self.whiten:
            spread = self._spread()
            inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
            scores = scores * inverse.astype(scores.dtype)
        elif self._unit:
            scores = np.ldexp(scores, self._unit)
        return scores

    def _restored(self, Z: NDArray[Any]) -> NDArray[Any]:
        Z = Z if Z.dtype == np.float32 else Z.astype(np.float64)
        if self.whiten:
            Z = Z * self._spread().astype(Z.dtype)
        elif self._unit:
            Z = np.ldexp(Z, -self._unit)
        return restore(
            Z,
            self.components_,
            self._factors,
            self.mean_,
            exponent=self._exponent,
            n_jobs=self.n_jobs,
        )

    def _left_over(self, X: Table) -> NDArray[Any]:
        X_hat = self._restored(self._carried(X))
        X = self._filled(X)
        left: NDArray[Any] = np.asarray(X.toarray() if is_sparse(X) else X, X_hat.dtype) - X_hat
        return left

    def _column_names(self) -> list[str]:
        names = self._names()
        return [f"x{j}" for j in range(self.mean_.size)] if names is None else list(names)

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

    def _centred_rows(self, X: Table | Source, engine: Any = None) -> Rows:
        """`X` prepared for reading like the training rows."""
        rows = Rows(X, working_type(X), self._shift, exponent=self._exponent)
        if isinstance(X, Source):
            workers = as_engine(engine, n_jobs=self.n_jobs)
            rows = Stream(X, rows.work, rows.shift, rows.exponent, engine=workers)
        return rows.centred(self._offset, None if (self._factors == 1).all() else self._factors)

    def _factor(self) -> NDArray[np.float64]:
        """The columns' factors, 1 where a column is constant and there is nothing to scale."""
        return np.where(self._factors == 0, 1.0, self._factors)

    def _spread(self) -> NDArray[np.float64]:
        """Standard deviation of each score, in units of 2^`_unit`; 0 below the numerical rank."""
        spread: NDArray[np.float64] = np.sqrt(self._variances)
        spread[self.rank_ :] = 0.0
        return spread


def _paths_as_they_are(wrapped: Any) -> Any:
    """`transform` as scikit-learn wraps it, but for paths.

    After `set_output` the wrapper makes tables of whatever comes back, and fails over a path.
    """
    plain = wrapped.__wrapped__

    @wraps(plain)
    def transform(self: Transformation, X: Any, *, to: Any = None, **how: Any) -> Any:
        return (wrapped if to is None else plain)(self, X, to=to, **how)

    return transform


Transformation.transform = _paths_as_they_are(  # type: ignore[method-assign]
    Transformation.transform
)
