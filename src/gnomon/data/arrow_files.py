"""Parquet and Feather by pyarrow: columns with types, so that little is left to guess."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq

from gnomon.data.content import Content
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, quoted

__all__ = [
    "DAMAGED",
    "READING",
    "arrow_table",
    "brief",
    "parquet_bytes",
    "read_feather",
    "read_parquet",
]

DAMAGED = "Was it copied whole?"
# What pyarrow raises for a damaged file; names of columns may be no UTF-8.
READING = (pa.ArrowException, OSError, UnicodeDecodeError)


def read_parquet(content: Content) -> RawTable:
    """All columns of a Parquet file."""
    source = pa.BufferReader(pa.py_buffer(content.data))
    try:
        file = pq.ParquetFile(source)
        content.check(2 * _decoded_bytes(file.metadata))  # pyarrow's columns and our rows
        table = file.read()
        names = table.column_names
    except READING as error:
        raise FileError(f"{content.name} is a damaged Parquet file ({brief(error)}).", DAMAGED
                        ) from None  # fmt: skip
    return _raw(table, names, content)


def parquet_bytes(path: Path) -> int:
    """What a Parquet file takes once it is decoded; 0 for any other, and for a damaged one."""
    try:
        with path.open("rb") as file:
            return _decoded_bytes(pq.read_metadata(file)) if file.read(4) == b"PAR1" else 0
    except READING:
        return 0


def _decoded_bytes(meta: Any) -> int:
    """What a column of repeated values takes is not seen in the size of the file."""
    sizes = (meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    return int(max(8 * meta.num_rows * meta.num_columns, sum(max(0, size) for size in sizes)))


def read_feather(content: Content) -> RawTable:
    """All columns of a Feather (Arrow IPC) file."""
    source = pa.BufferReader(pa.py_buffer(content.data))
    try:
        table = pf.read_table(source, memory_map=False)
        names = table.column_names
    except READING as error:
        raise FileError(f"{content.name} is a damaged Feather file ({brief(error)}).", DAMAGED
                        ) from None  # fmt: skip
    content.check(8 * table.num_rows * table.num_columns)
    return _raw(table, names, content)


def _raw(table: Any, columns: list[str], content: Content) -> RawTable:
    if table.num_columns == 0:
        raise FileError(f"{content.name} has no columns.")
    if table.num_rows == 0:
        raise FileError(f"{content.name} has names of columns and no rows.")
    names, notes = unique_names(columns, len(columns))
    return arrow_table(content.name, names, table.columns, notes=tuple(notes))


def arrow_table(name: str, names: Sequence[str], columns: Sequence[Any], **known: Any) -> RawTable:
    """Columns of Arrow under `names`, as all readers have them; damaged ones are refused."""
    for each, column in zip(names, columns, strict=True):
        _refuse_damaged(name, each, column)
    categories = (each for each, column in zip(names, columns, strict=True) if _is_category(column))
    found = dict(zip(names, map(decoded, columns), strict=True))
    return RawTable(name, found, categories=frozenset(categories), typed=True, **known)


def _refuse_damaged(file: str, name: str, column: Any) -> None:
    """Refuse a column whose offsets or codes point out of it, or whose text is no text.

    pyarrow's readers leave that to us, and its functions follow an offset wherever it points. Plain
    numbers have no offsets: every bit pattern is one.
    """
    try:
        column.validate(full=not pa.types.is_primitive(column.type))
    except pa.ArrowException as error:
        raise FileError(
            f"{file} is a damaged file (column {quoted(name)}: {brief(error)}).", DAMAGED
        ) from None


def _is_category(column: Any) -> bool:
    """Whether a dictionary holds names of groups; one of numbers with fractions is a short cut."""
    if not pa.types.is_dictionary(column.type):
        return False
    kind = column.type.value_type
    return not (pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def decoded(column: Any) -> Any:
    """Codes of a dictionary as the values they stand for, an extension as its storage."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def brief(error: Exception) -> str:
    """The first sentence of pyarrow's message."""
    return str(error).splitlines()[0].rstrip(".")[:120] if str(error) else type(error).__name__
