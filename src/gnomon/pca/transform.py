"""Scores, reconstructions and residuals of a fitted PCA, for arrays and tables in parts."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.events import On, former_rows
from gnomon.numeric.apply import Output, RowTransformer, check_rows, check_transformed
from gnomon.pca.components import Components


class ComponentTransformer(RowTransformer, auto_wrap_output_keys=()):
    """Methods of `PCA` that map rows to scores and back."""

    if TYPE_CHECKING:
        components_: NDArray[np.float64]
        whiten: bool

        fit: Any

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
        X : any table that `fit` accepts, shape (n, d)
        to : path, optional
            Write the scores block by block into this file, ``.npy`` or ``.parquet``, instead of
            returning them; returns the path. The file is written atomically.
        force : bool
            Whether a file that exists is replaced.
        engine : Dask client or engine, optional
            Engine that processes the blocks, as in `fit`.
        on : callable, optional
            Called with a `gnomon.events.Event` after every block: `done` and `total` are rows.
            Returning True raises `Interrupted`.
        progress : callable, optional
            Deprecated: use `on`.
        """
        on = former_rows(on, progress)
        return super().transform(X, to=to, force=force, engine=engine, on=on)

    def _transformed(self, X: Any, output: Output) -> Any:
        self._refuse_unfitted()
        table = check_rows(self, X, reset=False)
        scores = partial(self._model().scores, whiten=self.whiten)
        return self._apply(scores, table, self.get_feature_names_out, output)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]:
        """Fit, then transform the same rows: the same bits as the two calls."""
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
        The result is an array, as in scikit-learn: `set_output` is about `transform`.
        """
        self._refuse_unfitted()
        table = check_transformed(X, "X", self.components_.shape[0])
        output = Output(to, force, former_rows(on, progress), engine)
        restore = partial(self._model().restore, whiten=self.whiten)
        return self._apply(restore, table, self._column_names, output)

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
        """Residuals X − X̂ that the components do not explain, in original units, shape (n, d).

        Orthogonal to every component ([Selitskii 2025], eq. (34)). The parameters are those of
        `transform`.
        """
        self._refuse_unfitted()
        table = check_rows(self, X, reset=False)
        output = Output(to, force, former_rows(on, progress), engine)
        residuals = partial(self._model().residuals, whiten=self.whiten)
        return self._apply(residuals, table, self._column_names, output)
