"""Apply an estimator to a table: check its columns, map rows to rows, write the result.

A map from rows to rows (scores, reconstructions, rows moved by a rotation) is a function of an
array in which each result row depends only on its own input row. So an array is processed in one
call, and every other table part by part. Estimators write the signatures of `RowTransformer` out
again for their own docstrings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.budget import check_free
from gnomon.engine import Block, Source, as_engine
from gnomon.engine.arrays import ArraySource, as_source
from gnomon.engine.sink import writing_blocks
from gnomon.errors import DataError, refuse, warn_caller
from gnomon.events import On
from gnomon.inputs import about_table, as_table, check_table, is_sparse
from gnomon.inputs.cells import refuse_type
from gnomon.numeric.scaling import working_type
from gnomon.numeric.view import naming_rows

__all__ = [
    "Output",
    "RowTransformer",
    "apply_rows",
    "check_columns",
    "check_rows",
    "check_transformed",
    "names_in",
    "plain_transform",
]


def check_rows(estimator: Any, X: Any, *, reset: bool, sparse: bool = True) -> Source:
    """Check `X` as data of `estimator` and return it as a table; `sparse` allows sparse arrays."""
    source = as_source(X)
    if source is None:
        least = 1 if reset else 0
        checked = check_table(estimator, X, reset=reset, min_rows=least, sparse=sparse)
        return ArraySource(checked, checked=False)
    if source.dtype.kind not in "biuf":
        refuse_type(source.dtype)
    check_columns(estimator, source.columns, source.names, reset=reset)
    if reset and source.rows == 0:
        raise DataError("{table} has 0 rows; at least 1 is needed. Add rows.", table="The source")
    return source


def check_columns(
    estimator: Any, columns: int, names: Sequence[str] | None, *, reset: bool
) -> None:
    """Store the columns of a table on `estimator` if `reset`; otherwise compare them.

    For tables that are read in parts; scikit-learn does the same for arrays and dataframes.
    """
    if columns == 0:
        raise DataError("{table} has 0 columns; at least 1 is needed.", table="The source")
    given = None if names is None else np.array(names, dtype=object)
    if reset:
        estimator.n_features_in_ = columns
        estimator.__dict__.pop("feature_names_in_", None)
        if given is not None:
            estimator.feature_names_in_ = given
        return
    model, expected = type(estimator).__name__, estimator.n_features_in_
    if columns != expected:
        raise DataError(
            "{table} has {columns} features, but {model} is expecting {expected} features as "
            "input. Give the columns that were fitted.",
            table="X",
            columns=columns,
            model=model,
            expected=expected,
        )
    kept = names_in(estimator)
    # Both warnings use scikit-learn's text, so that one filter matches all tables.
    if kept is None and given is not None:
        warn_caller(
            UserWarning(f"X has feature names, but {model} was fitted without feature names")
        )
    elif kept is not None and given is None:
        text = f"X does not have valid feature names, but {model} was fitted with feature names"
        warn_caller(UserWarning(text))
    elif kept is not None and given is not None and (given != kept).any():
        at = int(np.flatnonzero(given != kept)[0])
        raise DataError(
            "The feature names of {table} should match those that {model} was fitted on; column "
            "{at} is '{given}' and was '{fitted}'. Give the same columns in the same order.",
            table="X",
            model=model,
            at=at,
            given=given[at],
            fitted=kept[at],
        )


def names_in(estimator: Any) -> NDArray[Any] | None:
    """Column names that `estimator` was fitted with, or None."""
    return getattr(estimator, "feature_names_in_", None)


def check_transformed(Z: Any, name: str, *widths: int) -> Source:
    """Check `Z`, rows as `transform` returns them, as a table with one of the `widths`."""
    source = as_source(Z)
    if is_sparse(Z):
        refuse(name, "be dense", "a sparse matrix", f"Give {name}.toarray().", kind=True)
    if source is None:
        with about_table(name):
            Z = as_table(Z)
    shape = Z.shape if source is None else source.shape
    if shape[1] not in widths:
        wide = " or ".join(map(str, dict.fromkeys(widths)))
        refuse(name, f"have shape (n, {wide})", shape)
    return ArraySource(Z, checked=False) if source is None else source


@dataclass(frozen=True)
class Output:
    """Where rows are written, which engine computes them, and the callback for progress.

    Attributes
    ----------
    to : path or None
        A file ending in ``.npy`` or ``.parquet``; None for an array in memory.
    force : bool
        Whether a file that exists is replaced.
    on : callable or None
        Called with an event after every block.
    engine : Dask client, engine or None
        None means threads of this process.
    beside : mapping of str to array (n,)
        Columns of a Parquet file written before the columns of the rows, such as ids.
    """

    to: str | PathLike[str] | None = None
    force: bool = False
    on: On | None = None
    engine: Any = None
    beside: Mapping[str, Any] = field(default_factory=dict)


class _Wrapped(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The `transform` that scikit-learn wraps: `set_output` chooses the container of its arrays."""

    def __init_subclass__(
        cls, auto_wrap_output_keys: tuple[str, ...] = ("transform",), **others: Any
    ) -> None:
        """Pass on scikit-learn's class parameter, which is untyped."""
        keys: Any = {"auto_wrap_output_keys": auto_wrap_output_keys, **others}
        super().__init_subclass__(**keys)

    def _transformed(self, X: Any, output: Output) -> Any:
        """Transform the rows of `X` into an array or a file."""
        raise NotImplementedError

    def transform(self, X: Any, *, engine: Any = None, on: On | None = None) -> Any:
        return self._transformed(X, Output(on=on, engine=engine))


class RowTransformer(_Wrapped, auto_wrap_output_keys=()):
    """`transform` of an estimator that maps rows to rows, into memory or into a file.

    A subclass defines `_transformed`. If it defines `transform` too, it is declared with
    ``auto_wrap_output_keys=()``: scikit-learn would convert the path of a file to a dataframe.
    """

    n_jobs: int | None
    n_features_in_: int

    def transform(
        self,
        X: Any,
        *,
        to: str | PathLike[str] | None = None,
        force: bool = False,
        engine: Any = None,
        on: On | None = None,
    ) -> Any:
        """Transform rows, as documented on the class."""
        if to is None:
            return super().transform(X, engine=engine, on=on)
        return self._transformed(X, Output(to, force, on, engine))

    def _refuse_unfitted(self) -> None:
        """Check that the estimator is fitted; scikit-learn's check costs as much as a few rows."""
        if "n_features_in_" not in self.__dict__:
            check_is_fitted(self)

    def _names(self) -> NDArray[Any] | None:
        """Column names of X, or None."""
        return names_in(self)

    def _column_names(self) -> list[str]:
        """Column names of X, generated if X had none."""
        names, d = names_in(self), self.n_features_in_
        return [f"x{j}" for j in range(d)] if names is None else [*names]

    def _apply(
        self,
        function: Callable[..., NDArray[Any]],
        table: Source,
        names: Callable[[], Sequence[Any]],
        output: Output,
    ) -> Any:
        """Apply ``function(rows, n_jobs=…)`` to `table` on this estimator's threads."""
        return apply_rows(
            function, table, names, output, n_jobs=self.n_jobs, columns=names_in(self)
        )


def apply_rows(
    function: Callable[..., NDArray[Any]],
    table: Source,
    names: Callable[[], Sequence[Any]],
    output: Output,
    *,
    n_jobs: int | None = None,
    columns: NDArray[Any] | None = None,
) -> Any:
    """Apply ``function(rows, n_jobs=…)`` to all rows; return one array or write one file.

    An array is processed in one call, every other table part by part. `names()` returns the column
    names of the result; `columns` names those of the table, for errors. A file is written
    atomically: it gets its name when every part is in it.
    """
    X = table.array()
    if X is not None and output.to is None and output.engine is None and output.on is None:
        return function(X, n_jobs=n_jobs)
    n, called = table.rows, [str(name) for name in names()]
    workers = as_engine(output.engine, n_jobs=n_jobs)
    apply = _Apply(partial(function, n_jobs=1))
    with naming_rows(table, workers, columns):
        if output.to is not None:
            with writing_blocks(
                output.to, n, called, force=output.force, beside=output.beside
            ) as add:
                workers.write(apply, table, add, on=output.on)
            return Path(output.to)
        check_free(  # memory for the parts and the whole array
            f"An array of {n:,} × {len(called):,}",
            2.0 * n * len(called) * working_type(table.dtype).itemsize,
            "Write it to a file: `to='rows.npy'`.",
        )
        parts: list[NDArray[Any]] = workers.map(apply, table, on=output.on)
    return np.concatenate(parts) if parts else np.zeros((n, len(called)))


@dataclass(frozen=True)
class _Apply:
    """A function of rows as a function of blocks."""

    function: Callable[[NDArray[Any]], NDArray[Any]]

    def __call__(self, block: Block) -> Any:
        return self.function(block.X)


def plain_transform(model: Any, X: Any) -> NDArray[Any]:
    """Return ``model.transform(X)`` as an array, whatever `set_output` is configured."""
    return np.ascontiguousarray(model.transform(X))
