"""Scores, reconstructions and residuals of a fitted PCA, of arrays and of tables in parts."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.engine import Source
from gnomon.engine.arrays import ArraySource, as_source
from gnomon.errors import refuse
from gnomon.events import On, former_rows
from gnomon.numeric.apply import Output, apply_rows, check_rows, paths_as_they_are
from gnomon.pca.components import Components


class Transformation(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of `PCA` that take rows to the components and back."""

    if TYPE_CHECKING:
        components_: NDArray[np.float64]
        mean_: NDArray[np.float64]
        whiten: bool
        n_jobs: int | None

        fit: Any

        def _names(self) -> NDArray[Any] | None: ...
        def _model(self) -> Components: ...

    def transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
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
        on : callable, optional
            Called with a `gnomon.events.Event` after every block: `done` and `total` are rows. True
            from it raises `Interrupted`.
        progress : callable, optional
            Deprecated: use `on`.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.get_feature_names_out()]
        table = check_rows(self, X, reset=False)
        output = Output(to, force, former_rows(on, progress))
        return self._apply(Components.scores, table, names, output, engine)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]:
        """`fit`, then `transform` of the same rows: the same bits as the two calls."""
        engine = fit_params.get("engine")
        scores: NDArray[Any] = self.fit(X, y, **fit_params).transform(X, engine=engine)
        return scores

    def inverse_transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """Reconstruction x̂ = Wz + μ in the original columns and units, shape (n, d).

        `X` are scores (n, k), or a source of them; the other parameters are those of `transform`.
        """
        check_is_fitted(self)
        k = self.components_.shape[0]
        source = as_source(X)
        X = np.asarray(X) if source is None else source
        if len(X.shape) != 2 or X.shape[1] != k:
            refuse("X", f"be scores of shape (n, {k})", X.shape)
        if X.dtype.kind not in "biuf":
            refuse("X", "hold numbers", f"dtype {X.dtype}", kind=True)
        table = ArraySource(X, checked=False) if source is None else source
        output = Output(to, force, former_rows(on, progress))
        return self._apply(Components.restore, table, self._column_names(), output, engine)

    def residuals(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Any:
        """X − X̂, what the components do not explain, in the original units, shape (n, d).

        Orthogonal to every component ([Selitskii 2025], eq. (34)). The parameters are those of
        `transform`.
        """
        check_is_fitted(self)
        table = check_rows(self, X, reset=False)
        output = Output(to, force, former_rows(on, progress))
        return self._apply(Components.residuals, table, self._column_names(), output, engine)

    def _apply(
        self,
        method: Callable[..., NDArray[Any]],
        table: Source,
        names: list[str],
        output: Output,
        engine: Any,
    ) -> Any:
        """A method of `Components` over the rows of `table`, as an array or as a file."""
        model = self._model()
        function = partial(method, model, whiten=self.whiten)
        return apply_rows(
            function, table, names, output, engine=engine, n_jobs=self.n_jobs, columns=model.names
        )

    def _column_names(self) -> list[str]:
        names = self._names()
        return [f"x{j}" for j in range(self.mean_.size)] if names is None else list(names)


Transformation.transform = paths_as_they_are(  # type: ignore[method-assign]
    Transformation.transform
)
