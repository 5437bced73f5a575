"""Arrays, dataframes and sparse matrices of the user as all columns of a table."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from gnomon.data.formats.arrow import arrow_table
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, quoted
from gnomon.engine.arrays import names_of
from gnomon.errors import DataTypeError
from gnomon.inputs import as_table

__all__ = ["index_name", "is_in_memory", "raw_table"]

FRAME, ARRAY = "dataframe", "array"
INDEX = "index"


def is_in_memory(table: Any) -> bool:
    """Whether something is a dataframe, an array or a sparse matrix."""
    if nw.dependencies.is_into_dataframe(table):
        return True
    return hasattr(table, "shape") and (hasattr(table, "__array__") or hasattr(table, "tocsr"))


def raw_table(table: Any) -> RawTable:
    """All columns of a dataframe with its own index, or those of an array, which have no names."""
    if nw.dependencies.is_into_dataframe(table):
        return _of_frame(table)
    X = as_table(table)
    if 0 in X.shape:
        what = "columns" if X.shape[1] == 0 else "rows"
        raise FileError(f"{ARRAY} has no {what}: its shape is {X.shape}.")
    names, _ = unique_names(None, X.shape[1])
    return RawTable(ARRAY, {}, X, tuple(names), named=False)


def index_name(table: Any) -> str | None:
    """Name of the index of a pandas dataframe, if its owner gave it one that names each row."""
    index: Any = getattr(table, "index", None)
    if not hasattr(index, "to_series") or type(index).__name__ == "RangeIndex":
        return None
    if index.nlevels > 1 or not index.is_unique:
        return None
    return INDEX if index.name is None else str(index.name)


def _of_frame(table: Any) -> RawTable:
    names_of(table)  # refuses names of which some are text
    frame = nw.from_native(table, eager_only=True)
    columns = [_column(frame.get_column(name), str(name)) for name in frame.columns]
    names = [str(name) for name in frame.columns]
    if (called := index_name(table)) is not None:
        index = pa.chunked_array([_array(table.index, called)])
        names, columns = [called, *names], [index, *columns]
    if not names or not len(columns[0]):
        raise FileError(f"{FRAME} has no {'rows' if names else 'columns'}.")
    unique, notes = unique_names(names, len(names))
    return arrow_table(FRAME, unique, columns, notes=tuple(notes))


def _column(series: Any, name: str) -> Any:
    """A column of a dataframe as Arrow has it."""
    try:
        found = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _mixed(name) from None
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _array(values: Any, name: str) -> Any:
    try:
        return pa.array(np.asarray(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _mixed(name) from None


def _mixed(name: str) -> DataTypeError:
    return DataTypeError(
        f"Column {quoted(name)} of the dataframe holds objects of several kinds, or of one that is "
        "neither numbers, text nor dates. Make it one kind, or drop it."
    )
