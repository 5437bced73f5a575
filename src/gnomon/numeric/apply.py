"""An estimator meets a table: its columns checked, a function of rows applied, the result written.

What takes rows to rows (scores, reconstructions, rows moved by a rotation) is a function of an
array whose results do not depend on the rows beside one. So an array is worked on as it is, and
every other table part by part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import check_free
from gnomon.engine import Block, Source, as_engine
from gnomon.engine.arrays import ArraySource, as_source
from gnomon.engine.sink import writing_blocks
from gnomon.errors import DataError
from gnomon.events import On
from gnomon.inputs import check_table
from gnomon.numeric.scaling import working_type
from gnomon.numeric.view import naming_rows

__all__ = [
    "Output",
    "apply_blocks",
    "apply_rows",
    "check_columns",
    "check_rows",
    "paths_as_they_are",
    "plain_transform",
]


def check_rows(estimator: Any, X: Any, *, reset: bool, sparse: bool = True) -> Source:
    """`X` checked as data of `estimator`, as a table; sparse arrays only if `sparse`."""
    source = as_source(X)
    if source is None:
        least = 1 if reset else 0
        checked = check_table(estimator, X, reset=reset, min_rows=least, sparse=sparse)
        return ArraySource(checked, checked=False)
    check_columns(estimator, source.columns, source.names, source.dtype, reset=reset)
    if reset and source.rows == 0:
        raise DataError("{table} has 0 rows; at least 1 is needed. Add rows.", table="The source")
    return source


def check_columns(
    estimator: Any,
    columns: int,
    names: Sequence[str] | None,
    dtype: np.dtype[Any],
    *,
    reset: bool,
) -> None:
    """The columns of a table checked as those of `estimator`, or kept by it if `reset`."""
    # An empty table of the same columns is checked in the way of all others.
    empty: Any = np.empty((0, columns), dtype)
    if names is not None:
        import pyarrow as pa

        empty = pa.table(dict.fromkeys(names, pa.array(np.empty(0, dtype))))
    check_table(estimator, empty, reset=reset, min_rows=0)


@dataclass(frozen=True)
class Output:
    """Where the rows of a source go, and the callback that is called for them.

    Attributes
    ----------
    to : path or None
        A file ending in ``.npy`` or ``.parquet``; None for an array in memory.
    force : bool
        Whether a file that exists is replaced.
    on : callable or None
        Called with an event after every block.
    beside : mapping of str to array (n,)
        Columns of a Parquet file that go before those of the rows, such as ids.
    """

    to: str | PathLike[str] | None = None
    force: bool = False
    on: On | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)


def apply_rows(
    method: Callable[..., NDArray[Any]],
    table: Source,
    names: list[str],
    output: Output,
    *,
    engine: Any = None,
    n_jobs: int | None = None,
    columns: NDArray[Any] | None = None,
) -> Any:
    """``method(rows, n_jobs=…)`` of an array at once, of all other tables by `apply_blocks`."""
    X = table.array()
    if X is not None and output.to is None and engine is None and output.on is None:
        return method(X, n_jobs=n_jobs)
    function = partial(method, n_jobs=1)
    return apply_blocks(
        function, table, names, output, engine=engine, n_jobs=n_jobs, columns=columns
    )


def apply_blocks(
    function: Callable[[NDArray[Any]], NDArray[Any]],
    table: Source,
    names: list[str],
    output: Output,
    *,
    engine: Any = None,
    n_jobs: int | None = None,
    columns: NDArray[Any] | None = None,
) -> NDArray[Any] | Path:
    """``function(rows)`` of every part, as one file or one array; `names` are of its columns.

    `columns` are the names of the table's columns, for errors. A file is whole or not there: it
    takes its name when every part is in it.
    """
    n = table.rows
    workers = as_engine(engine, n_jobs=n_jobs)
    apply = _Apply(function)
    with naming_rows(table, workers, columns):
        if output.to is not None:
            with writing_blocks(
                output.to, n, names, force=output.force, beside=output.beside
            ) as add:
                workers.write(apply, table, add, on=output.on)
            return Path(output.to)
        check_free(  # the parts, and all together
            f"An array of {n:,} × {len(names):,}",
            2.0 * n * len(names) * working_type(table.dtype).itemsize,
            "Write it to a file: `to='rows.npy'`.",
        )
        parts: list[NDArray[Any]] = workers.map(apply, table, on=output.on)
    return np.concatenate(parts) if parts else np.empty((0, len(names)))


@dataclass(frozen=True)
class _Apply:
    """A function of rows, for blocks."""

    function: Callable[[NDArray[Any]], NDArray[Any]]

    def __call__(self, block: Block) -> Any:
        return self.function(block.X)


def plain_transform(model: Any, X: Any) -> NDArray[Any]:
    """``model.transform(X)`` as an array, whatever output scikit-learn is configured to give."""
    return np.ascontiguousarray(model.transform(X))


def paths_as_they_are(wrapped: Any) -> Any:
    """A `transform` that scikit-learn has wrapped, with paths returned as they are.

    After `set_output` the wrapper makes tables of whatever comes back, and fails over a path.
    """
    plain = wrapped.__wrapped__

    @wraps(plain)
    def transform(self: Any, X: Any, *, to: Any = None, **how: Any) -> Any:
        return (wrapped if to is None else plain)(self, X, to=to, **how)

    return transform
