"""CSV and its kin by pyarrow, which reads in parallel; errors are given their line.

Columns that look like numbers are read as such at once, and those that look like whole numbers as
these, which takes half the time and memory. If one of these has a fraction further down, the file
is read again with none of them; if a number turns out to be a text, with that column, and then with
all columns, as text: slow, but every value can be shown in the error, or be a label.
"""

import re
import time
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from gnomon.data.content import Content
from gnomon.data.dialect import MISSING, Dialect, as_utf8, is_number, sniff
from gnomon.data.lines import BrokenRecordError, Survey, locate, read_records
from gnomon.data.names import is_id_like, is_label_like, unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError
from gnomon.data.table import count

__all__ = ["read_csv"]

# pyarrow is as fast with blocks of 1 MB, but every column is then in eight times as many pieces.
BLOCK = 2**23
LARGEST_BLOCK = 2**30
ROWS_A_BLOCK = 64
PATIENCE = 1.0  # seconds

TEXT, WHOLE, NUMBER = pa.string(), pa.int32(), pa.float64()

_SMALL_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_NAME_OF_DIGITS = re.compile(r"0\d+|\d{16,}", re.ASCII)


def read_csv(
    content: Content, *, literal: Collection[str], na: Sequence[str], decimal: str | None = None
) -> RawTable:
    """All columns of a delimited text.

    Parameters
    ----------
    content : Content
    literal : names of columns that are labels or ids, whose text must stay as it is
    na : what stands for a missing value, beside the usual
    decimal : what divides decimals, if the user said so
    """
    name = content.name
    data, seen, notes = as_utf8(content.data, name)
    dialect = sniff(data, name, na, decimal)
    _refuse_open_quote(data, seen, dialect, name)
    width = dialect.width
    # pyarrow's columns and our rows are both in memory for a moment, 8 bytes a number.
    content.check(2 * 8 * seen.newlines * width)
    names, said = unique_names(dialect.header, width)
    kinds = [_guess_kind(names[j], j, dialect, literal, na) for j in range(width)]
    table = _read(data, seen, dialect, kinds, na, name)
    places = locate(
        data, seen, delimiter=dialect.delimiter, skipped=dialect.skipped, rows=table.num_rows
    )
    return RawTable(
        name=name,
        columns=dict(zip(names, table.columns, strict=True)),
        places=places,
        notes=(*notes, *dialect.notes, *said),
        named=dialect.header is not None,
        decimal=dialect.decimal,
    )


def _guess_kind(
    name: str, j: int, dialect: Dialect, literal: Collection[str], na: Sequence[str]
) -> pa.DataType:
    """What to read a column as: text where it is no number, or where a number would spoil it."""
    if name in literal or is_label_like(name) or is_id_like(name):
        return TEXT
    missing = {*MISSING, *na}
    values = [row[j].strip() for row in dialect.sample if j < len(row)]
    values = [value for value in values if value not in missing]
    if values and all(map(_SMALL_WHOLE.fullmatch, values)):
        kind = WHOLE
    elif all(is_number(value, dialect.decimal) for value in values):
        kind = NUMBER
    else:
        return TEXT
    # 007 is a name, and so is what has more digits than a float64 keeps.
    return TEXT if any(map(_NAME_OF_DIGITS.fullmatch, values)) else kind


def _read(
    data: NDArray[np.uint8], seen: Survey, dialect: Dialect, kinds: list[pa.DataType],
    na: Sequence[str], name: str,
) -> Any:  # fmt: skip
    line = max((sum(map(len, row)) + len(row) for row in dialect.sample), default=0)
    block = min(LARGEST_BLOCK, max(BLOCK, ROWS_A_BLOCK * line))
    surprises = 0
    while True:
        types = {str(j): kind for j, kind in enumerate(kinds)}
        body = data[dialect.body :]
        held, source = weakref.ref(body), pa.BufferReader(pa.py_buffer(body))
        del body
        try:
            return pc.read_csv(
                source,
                pc.ReadOptions(column_names=list(types), block_size=block),
                pc.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=seen.quotes > 0),
                pc.ConvertOptions(
                    column_types=types,
                    null_values=[*MISSING, *na],
                    strings_can_be_null=False,
                    decimal_point=dialect.decimal,
                ),
            )
        except pa.ArrowInvalid as error:
            column = re.search(r"CSV column #(\d+).*conversion error to (\w+)", str(error))
            if "straddl" in str(error) and block < LARGEST_BLOCK:
                block = min(LARGEST_BLOCK, 8 * block)
            elif column is not None and column[2] == str(WHOLE):
                kinds = [NUMBER if kind == WHOLE else kind for kind in kinds]
            elif column is not None:
                # The second time all at once: who knows how many more there are.
                surprises += 1
                kinds = [
                    TEXT if surprises > 1 or j == int(column[1]) else kind
                    for j, kind in enumerate(kinds)
                ]
            else:
                _refuse_ragged(data, dialect, name)
                raise FileError(f"{name} cannot be read as CSV ({error}).") from None
        finally:
            del source
            _wait_until_gone(held)


def _wait_until_gone(held: "weakref.ref[NDArray[np.uint8]]") -> None:
    """Until pyarrow has let go of the bytes.

    One of its threads has them a moment longer than it takes to read them. If it gives them back
    while Python ends, as it does after an error of the command, the process is aborted.
    """
    end = time.monotonic() + PATIENCE
    while held() is not None and time.monotonic() < end:
        time.sleep(1e-4)


def _refuse_ragged(data: NDArray[np.uint8], dialect: Dialect, name: str) -> None:
    """Name the first line that has more or fewer fields than the first."""
    for record in read_records(data, dialect.delimiter):
        if record.line > dialect.skipped and len(record.fields) != dialect.width:
            first = "the first line" if dialect.header is None else "the line of names"
            raise FileError(
                f"{name}, line {record.line}: {count(len(record.fields), 'field')}, where {first} "
                f"has {dialect.width}.",
                "Mend the line, or remove it.",
            )


def _refuse_open_quote(data: NDArray[np.uint8], seen: Survey, dialect: Dialect, name: str) -> None:
    """A quote that is never closed would make one cell of the rest of the file."""
    if seen.quotes % 2 == 0:
        return
    # A line of our own at the end is a record of its own only if all quotes are closed.
    whole = np.concatenate([data, np.frombuffer(b"\nend\n", np.uint8)])
    try:
        (last,) = deque(read_records(whole, dialect.delimiter), maxlen=1)
        closed, line = last.fields == ["end"], last.line
    except BrokenRecordError as error:
        closed, line = False, error.line
    if not closed:
        raise FileError(
            f"{name}, line {line}: a quote is opened and never closed.",
            "Close it, or double it if it is part of the text.",
        )
