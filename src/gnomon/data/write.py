"""Tables and records as files, none of which is ever half written or overwritten unasked.

The name's ending says which format: CSV, TSV, Parquet, Feather or ``.npy``.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.files import writing

__all__ = ["TABLES", "csv_text", "json_text", "write_json", "write_table", "writing"]

TABLES = (".csv", ".tsv", ".parquet", ".feather", ".arrow", ".npy")

SURROGATE = re.compile("[\ud800-\udfff]")
ROW_GROUP = 2**17  # rows of a Parquet row group, which is what is read and written at once

# Spreadsheets take cells that begin like this for a formula, which can run programs and send data
# away: one of the four signs, also as a full-width or small form, after any blanks (Z) and control
# or format characters (C), which some programs drop; or a line break. An apostrophe in front makes
# text of the cell. The page has the same rule (web/src/download.ts).
FORMULA = r"^(?:[\p{Z}\p{C}]*[=+\-@＝＋－＠﹦﹢﹣﹫]|[\t\r\n])"


def write_json(path: Path | str, content: dict[str, Any], *, force: bool = False) -> None:
    """`content` as readable JSON; NaN and infinities become null, which JSON has no word for."""
    with writing(path, force=force) as part:
        part.write_text(json_text(content), encoding="utf-8")


def json_text(content: dict[str, Any]) -> str:
    """`content` as JSON text, with a line break at its end."""
    plain = _without_nan(content)
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.isascii() and SURROGATE.search(text):  # a file name that is no UTF-8
        text = json.dumps(plain, indent=2, allow_nan=False)
    return text + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value


def write_table(
    path: Path | str,
    names: Sequence[str],
    columns: Sequence[NDArray[Any]],
    *,
    force: bool = False,
) -> None:
    """Named columns as a file in the format that its ending says.

    Parameters
    ----------
    path : path
        Ending in one of `TABLES`.
    names : list of str
    columns : list of arrays (n,)
        Numbers, text or truth values. ``.npy`` holds numbers only, and no names.
    force : bool
        Whether a file that exists is replaced.
    """
    ending = Path(path).suffix.lower()
    if ending not in TABLES:
        refuse("path", f"end in one of {', '.join(TABLES)}", str(path))
    with writing(path, force=force) as part:
        if ending == ".npy":
            _write_npy(part, columns)
        else:
            _write_arrow(part, ending, names, columns)


def _write_npy(part: Path, columns: Sequence[NDArray[Any]]) -> None:
    arrays = [np.asarray(column) for column in columns]
    for array in arrays:
        if array.dtype.kind not in "biuf":
            refuse("path", "end in .csv or .parquet for a table with text", ".npy", kind=True)
    with part.open("wb") as file:
        np.save(file, np.column_stack(arrays), allow_pickle=False)


def _write_arrow(
    part: Path, ending: str, names: Sequence[str], columns: Sequence[NDArray[Any]]
) -> None:
    import pyarrow as pa

    if ending == ".parquet":
        _write_parquet(part, names, columns)
        return
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=list(names))
    with part.open("wb") as file:
        if ending in (".feather", ".arrow"):
            import pyarrow.feather as feather

            feather.write_feather(table, file)
        else:
            _write_csv(file, table, "\t" if ending == ".tsv" else ",")


def _write_parquet(part: Path, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """One row group after the other: of columns of numbers no whole copy is made."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if len({len(column) for column in columns}) > 1:
        raise ValueError("Columns of a table must have the same length.")
    # What cells of other kinds are is seen from all of them.
    whole = [np.asarray(column).dtype.kind not in "biuf" for column in columns]
    parts = [
        pa.array(column) if all_ else column for column, all_ in zip(columns, whole, strict=True)
    ]

    def rows(start: int) -> Any:
        cells = [column[start : start + ROW_GROUP] for column in parts]
        arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in cells]
        return pa.Table.from_arrays(arrays, names=list(names))

    first = rows(0)
    # An open file: pyarrow takes no name that is no UTF-8.
    with part.open("wb") as file, pq.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for start in range(ROW_GROUP, len(columns[0]) if columns else 0, ROW_GROUP):
            writer.write_table(rows(start))


def csv_text(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> bytes:
    """Named columns as CSV in UTF-8, for standard output; formulas neutralised as in files."""
    import io

    import pyarrow as pa

    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=list(names))
    text = io.BytesIO()
    _write_csv(text, table, ",")
    return text.getvalue()


def _write_csv(file: Any, table: Any, delimiter: str) -> None:
    import pyarrow as pa
    from pyarrow import csv

    harmless = [_neutralised(column) for column in table.columns]
    names = _neutralised(pa.array(table.column_names, pa.string())).to_pylist()
    options = csv.WriteOptions(delimiter=delimiter)
    csv.write_csv(pa.Table.from_arrays(harmless, names=names), file, options)


def _neutralised(column: Any) -> Any:
    """Text cells that a spreadsheet would run, with an apostrophe in front; numbers as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    runs = pc.match_substring_regex(column, FORMULA)
    marked = pc.binary_join_element_wise(
        pa.scalar("'", column.type), column, pa.scalar("", column.type)
    )
    return pc.if_else(runs, marked, column)
