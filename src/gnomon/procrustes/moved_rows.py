"""Rows mapped by a fitted map and back, and their distances from their partners."""

from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.engine import Engine, as_engine
from gnomon.engine.arrays import as_source
from gnomon.engine.paired_tables import PairedSource
from gnomon.errors import refuse
from gnomon.events import On
from gnomon.numeric.apply import Output, RowTransformer, check_rows, check_transformed
from gnomon.procrustes.matched_tables import read_table
from gnomon.procrustes.row_pairs import PairView
from gnomon.procrustes.similarity import Residuals, Similarity


class SimilarityTransformer(RowTransformer, auto_wrap_output_keys=()):
    """Methods of `Procrustes` that need only the map."""

    if TYPE_CHECKING:
        _frame: Similarity

        def _pair(
            self, X: Any, Y: Any, id: str | None, engine: Engine, *, reset: bool
        ) -> PairedSource: ...

    def transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
    ) -> Any:
        """Map rows of X into the frame of Y, s·XR + t, shape (n, D).

        A row's result does not depend on the rows beside it. float32 stays float32.

        Parameters
        ----------
        X : any table that `fit` accepts, shape (n, dx)
        to : path, optional
            Write the rows block by block into this file, ``.npy`` or ``.parquet``, instead of
            returning them; returns the path. The file is written atomically.
        force : bool
            Whether a file that exists is replaced.
        engine : Dask client or engine, optional
            Engine that processes the blocks, as in `fit`.
        on : callable, optional
            Called with a `gnomon.events.Event` after every block: `done` and `total` are rows.
            Returning True raises `Interrupted`.
        """
        return super().transform(X, to=to, force=force, engine=engine, on=on)

    def _transformed(self, X: Any, output: Output) -> Any:
        self._refuse_unfitted()
        move = partial(self._frame.transform, names=self._names())  # solves, after partial_fit
        table = check_rows(self, X, reset=False, sparse=False)
        return self._apply(move, table, self.get_feature_names_out, output)

    def inverse_transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
    ) -> Any:
        """Map rows of Y's frame back to that of X, (Y − t) Rᵀ / s, shape (n, dx).

        `X` has the columns of the Y that was fitted, or those of `transform`; the other parameters
        are those of `transform`.
        """
        self._refuse_unfitted()
        model = self._frame
        model.refuse_no_way_back()
        dy, D = model.moments.y.shift.size, model.rotation.matrix.shape[1]
        if as_source(X) is None and np.size(X):
            X = read_table(X, "X")  # a vector is one column
        table = check_transformed(X, "X", dy, D)
        output = Output(to, force, on, engine)
        return self._apply(model.restore, table, self._column_names, output)

    @one_blas_thread()
    def residuals(
        self, X: Any, Y: Any, *, id: str | None = None, engine: Any = None
    ) -> NDArray[np.float64]:
        """Distance of each mapped row of `X` from its partner in `Y`, shape (n,), for any rows.

        The parameters are those of `fit`.
        """
        self._refuse_unfitted()
        model = self._frame
        workers = as_engine(engine, n_jobs=self.n_jobs)
        table = self._pair(X, Y, id, workers, reset=False)
        if table.widths[1] != model.moments.y.shift.size:
            refuse("Y", f"have {model.moments.y.shift.size} columns", table.widths[1])
        view = PairView(table, *model.scalings(), workers, self._names())
        found: NDArray[np.float64] = view.each_row(Residuals(model))[0]
        if not np.isfinite(found).all():
            view.refuse_bad_values()
        return found
