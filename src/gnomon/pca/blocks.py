"""A fitted or to be fitted PCA meets a table in blocks: checked, carried over, written down."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine import Block, Source, as_engine
from gnomon.engine.arrays import ArraySource, as_source
from gnomon.engine.sink import writing_blocks
from gnomon.errors import DataError, TooLargeError
from gnomon.inputs import Table, check_table, is_sparse
from gnomon.memory import available_bytes, readable_bytes
from gnomon.rows import working_type
from gnomon.streams import naming_rows

if TYPE_CHECKING:
    from gnomon.pca.transform import Transformation

__all__ = ["Output", "carry_blocks", "check_rows", "light"]


def check_rows(
    estimator: Any, X: Any, engine: Any = None, *, reset: bool, blocks: bool = False
) -> Table | Source:
    """`X` checked as data of `estimator`: a table, or a source where it is to be read in blocks.

    That is so for sources and Dask arrays, and for tables in memory if there is an `engine` or
    `blocks` asks for it.
    """
    source = as_source(X)
    if source is None:
        table = check_table(estimator, X, reset=reset, min_rows=1 if reset else 0)
        return ArraySource(_dense(table)) if blocks or engine is not None else table
    # An empty table of the same columns is checked in the way of all others.
    check_table(estimator, _empty_table(source), reset=reset, min_rows=0)
    if reset and source.rows == 0:
        raise DataError("The source has 0 rows; at least 1 is needed.")
    return source


def _dense(table: Table) -> NDArray[Any]:
    if is_sparse(table):
        raise DataError("A sparse table is not read in blocks. Leave out `engine` and `to`.")
    dense: NDArray[Any] = table
    return dense


def _empty_table(source: Source) -> Any:
    if source.names is None:
        return np.empty((0, source.columns), source.dtype)
    import pyarrow as pa

    none = pa.array(np.empty(0, source.dtype))
    return pa.table(dict.fromkeys(source.names, none))


@dataclass(frozen=True)
class Output:
    """Where the rows of a source go, and who is told of them.

    Attributes
    ----------
    to : path or None
        A file ending in ``.npy`` or ``.parquet``; None for an array in memory.
    force : bool
        Whether a file that exists is replaced.
    progress : callable or None
        Told ``(rows done, rows in all)`` after every block.
    """

    to: str | PathLike[str] | None = None
    force: bool = False
    progress: Callable[[int, int], object] | None = None


def carry_blocks(
    model: "Transformation",
    method: str,
    source: Source,
    names: list[str],
    output: Output,
    engine: Any = None,
) -> NDArray[Any] | Path:
    """``model.method(rows)`` of every block, as one file or one array; `names` are of its columns.

    A file is whole or not there: it takes its name when every block is in it.
    """
    n, told = source.rows, output.progress
    workers = as_engine(engine, n_jobs=model.n_jobs)
    done = None if told is None else (lambda rows: told(rows, n))
    function = _Carry(light(model), method)
    with naming_rows(source, workers, model._names()):
        if output.to is not None:
            with writing_blocks(output.to, n, names, force=output.force) as add:
                workers.write(function, source, add, done=done)
            return Path(output.to)
        _refuse_too_large(n, len(names), working_type(source).itemsize)
        parts: list[NDArray[Any]] = workers.map(function, source, done=done)
    return np.concatenate(parts) if parts else np.empty((0, len(names)))


@dataclass(frozen=True)
class _Carry:
    """One method of a fitted model, for blocks."""

    model: Any
    method: str

    def __call__(self, block: Block) -> Any:
        return getattr(self.model, self.method)(block.X)


def light(model: "Transformation") -> Any:
    """The model without its d × d moments, which rows are not carried by."""
    light = copy.copy(model)
    light.__dict__["moments_"] = None
    light.__dict__["n_jobs"] = 1
    return light


def _refuse_too_large(n: int, columns: int, itemsize: int) -> None:
    needed, room = 2.0 * n * columns * itemsize, available_bytes()  # the parts, and all together
    if needed > room:
        raise TooLargeError(
            f"An array of {n:,} × {columns:,} needs {readable_bytes(needed)} of memory, and "
            f"{readable_bytes(room)} are free. Write it to a file: `to='rows.npy'`."
        )
