"""JSON lines: one object a line, its keys are the columns.

1. pyarrow reads the whole text as one block, so that a column has one type in all rows.
2. A key that a line does not have is a missing value. Objects within objects are columns of their
   own, ``address.city``; arrays of numbers are vectors.
3. What pyarrow refuses is found again line by line, so that the error names line and column: text
   that is no JSON, a line that holds no object, a column that changes its type.
"""

import json
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from gnomon.data.file_content import FileContent
from gnomon.data.formats.arrow import arrow_table, brief
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError, quoted
from gnomon.data.table import Places

__all__ = ["read_json_lines"]

MEMORY_TIMES = 3  # of the text: the parser's buffer, the columns, our rows
MOST_NESTED = 16  # objects within objects
NEWLINE, SPACES = 0x0A, b" \t\r"
TYPES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "an array",
    dict: "an object",
}


def read_json_lines(content: FileContent) -> RawTable:
    """All keys of a file of JSON lines as columns."""
    content.check(MEMORY_TIMES * content.data.size)
    lines = _lines(content.data)
    if not lines.size:
        raise NoRowsError(f"{content.name} has no rows.")
    try:
        table = pj.read_json(
            pa.BufferReader(pa.py_buffer(content.data)),
            pj.ReadOptions(block_size=content.data.size + 1, use_threads=False),
        )
        table = _flat(table, content.name)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        _explain(content, error)
    if table.num_rows != lines.size:  # several objects on a line, or one over several lines
        _explain(content, None)
    if table.num_columns == 0:
        raise FileError(f"{content.name} has {table.num_rows:,} rows and no keys in them.")
    names, notes = unique_names(table.column_names, table.num_columns)
    places = Places(lines=lines)
    return arrow_table(content.name, names, table.columns, notes=tuple(notes), places=places)


def _lines(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Numbers of the lines that are not blank, from 1."""
    ends = np.append(np.flatnonzero(data == NEWLINE), data.size)
    starts = np.concatenate([[0], ends[:-1] + 1])
    filled = np.zeros(data.size + 1, np.int64)
    np.cumsum(~np.isin(data, list(SPACES + b"\n")), out=filled[1:])
    return np.flatnonzero(filled[ends] > filled[np.minimum(starts, data.size)]) + 1


def _flat(table: Any, name: str) -> Any:
    """Columns of objects as columns of their keys."""
    for _ in range(MOST_NESTED):
        if not any(pa.types.is_struct(kind) for kind in table.schema.types):
            return table
        table = table.flatten()
    raise FileError(f"{name} has objects within objects, more than {MOST_NESTED} deep.")


def _explain(content: FileContent, error: Exception | None) -> NoReturn:
    """Name the line and the column that cannot be read."""
    seen: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(content.data.tobytes().split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"{content.name}, line {number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as wrong:
            what = wrong.msg if isinstance(wrong, json.JSONDecodeError) else "it cannot be read"
            raise FileError(
                f"{place}: this is not one JSON object ({what}).",
                "Mend the line.",
            ) from None
        if not isinstance(found, dict):
            raise FileError(
                f"{place}: {TYPES.get(type(found), 'null')}, where each line holds an object.",
                'Write rows as {"column": value, …}, one a line.',
            )
        for key, value in found.items():
            kind = TYPES.get(type(value))
            known = seen.setdefault(key, (kind, number)) if kind is not None else None
            if known is not None and known[0] != kind:
                raise FileError(
                    f"{place}: column {quoted(key)} holds {kind}, and {known[0]} on line "
                    f"{known[1]}.",
                    "Write all values of a column alike.",
                )
    why = brief(error) if error is not None else "its rows are not one a line"
    raise FileError(f"{content.name} cannot be read as JSON lines ({why}).")
