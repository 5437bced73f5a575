"""JSON lines, and a JSON array of objects: keys are the columns.

1. pyarrow reads the whole text as one block, so that a column has one type in all rows.
2. A key that a line does not have is a missing value. Objects within objects are columns of their
   own, ``address.city``; arrays of numbers are vectors.
3. What pyarrow refuses is found again line by line, so that the error names line and column: text
   that is no JSON, a line that holds no object, a column that changes its type.
4. An array is parsed object by object, and the text of each becomes a line.
"""

import json
from dataclasses import replace
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

__all__ = ["read_json_array", "read_json_lines"]

MEMORY_TIMES = 3  # of the text: the parser's buffer, the columns, our rows
ARRAY_TIMES = 6  # of the text: as characters, its objects as lines, and these joined
MOST_NESTED = 16  # objects within objects
NEWLINE, SPACES = 0x0A, b" \t\r"
BLANKS = (" ", "\t", "\r", "\n")
WHOLE = "Was it copied whole?"
ROWS = 'Write rows as [{"column": value, …}, …].'
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
    return _read(content, _lines(content.data))


def read_json_array(content: FileContent) -> RawTable:
    """All keys of an array of objects as columns."""
    content.check((ARRAY_TIMES + MEMORY_TIMES) * content.data.size)
    try:
        text = content.data.tobytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{content.name} is not UTF-8 text ({error.reason}).") from None
    objects, lines = _objects(content.name, text)
    data = np.frombuffer("\n".join(objects).encode(), np.uint8)
    return _read(replace(content, data=data), np.array(lines, np.int64))


def _objects(name: str, text: str) -> tuple[list[str], list[int]]:
    """The objects of an array, each as text on one line, and the lines on which they begin."""
    objects, lines, line, seen = list[str](), list[int](), 1, 0
    decode = json.JSONDecoder().raw_decode
    at = _skip(text, _skip(text, 0) + 1)  # behind the bracket
    while text[at : at + 1] != "]" or objects:
        line, seen = line + text.count("\n", seen, at), at
        place = f"{name}, line {line}"
        try:
            found, end = decode(text, at)
        except (ValueError, RecursionError) as wrong:
            what = wrong.msg if isinstance(wrong, json.JSONDecodeError) else "it cannot be read"
            raise FileError(f"{place}: this is not JSON ({what}).", "Mend the file.") from None
        if not isinstance(found, dict):
            raise FileError(
                f"{place}: {TYPES.get(type(found), 'null')}, where the array holds objects.",
                ROWS,
            )
        objects.append(text[at:end].replace("\n", " ").replace("\r", " "))
        lines.append(line)
        at = _skip(text, end)
        mark = text[at : at + 1]
        if mark == "]":
            break
        if mark != ",":
            raise FileError(f"{place}: a comma or ] is missing behind this object.", WHOLE)
        at = _skip(text, at + 1)
    if _skip(text, at + 1) < len(text):
        raise FileError(f"{name} goes on behind the array.", ROWS)
    return objects, lines


def _skip(text: str, at: int) -> int:
    """The next place that is no white space."""
    while text[at : at + 1] in BLANKS:
        at += 1
    return at


def _read(content: FileContent, lines: NDArray[np.int64]) -> RawTable:
    """The columns of objects, one a line; `lines` are their lines in the file."""
    if not lines.size:
        raise NoRowsError(f"{content.name} has no rows.")
    try:
        table = pj.read_json(
            pa.BufferReader(pa.py_buffer(content.data)),
            pj.ReadOptions(block_size=content.data.size + 1, use_threads=False),
        )
        table = _flat(table, content.name)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        _explain(content, lines, error)
    if table.num_rows != lines.size:  # several objects on a line, or one over several lines
        _explain(content, lines, None)
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


def _explain(content: FileContent, lines: NDArray[np.int64], error: Exception | None) -> NoReturn:
    """Name the line and the column that cannot be read."""
    seen: dict[str, tuple[str, int]] = {}
    filled = (line for line in content.data.tobytes().split(b"\n") if line.strip())
    for number, line in zip(lines.tolist(), filled, strict=False):
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
    raise FileError(f"{content.name} cannot be read as JSON ({why}).")
