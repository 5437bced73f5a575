"""Records of a delimited text, one after the other, and the lines they stand on.

pyarrow reads fast but says little about where something stands. This reader is slow and knows every
line; it looks at the beginning of a file, and at all of it only when an error needs a place.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.data.table import Places

__all__ = [
    "BrokenRecordError",
    "Survey",
    "TextRecord",
    "line_of_byte",
    "locate",
    "read_records",
    "survey",
]

STEP = 2**24
NEWLINE, RETURN, QUOTE = 10, 13, 34


class TextRecord(NamedTuple):
    """One record: its fields, the line it begins on, and the byte after its end."""

    fields: list[str]
    line: int
    end: int


class BrokenRecordError(Exception):
    """A record that cannot be read, and the line it begins on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(line, why)  # what pickle makes it again from
        self.line, self.why = line, why

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(frozen=True)
class Survey:
    """What bytes occur in a text."""

    nul: bool
    ascii: bool
    newlines: int
    quotes: int


def survey(data: NDArray[np.uint8]) -> Survey:
    """One pass over the bytes."""
    lowest, highest, newlines, quotes = 255, 0, 0, 0
    for start in range(0, data.size, STEP):
        part = data[start : start + STEP]
        lowest, highest = min(lowest, int(part.min())), max(highest, int(part.max()))
        newlines += int(np.count_nonzero(part == NEWLINE))
        quotes += int(np.count_nonzero(part == QUOTE))
    return Survey(lowest == 0, highest < 128, newlines, quotes)


def line_of_byte(data: NDArray[np.uint8], at: int) -> int:
    """The line, from 1, that the byte at position `at` is on."""
    newlines = np.count_nonzero(data[:at] == NEWLINE)
    returns = np.flatnonzero(data[:at] == RETURN)  # each a line's end, unless a newline follows
    followed = data[np.minimum(returns + 1, data.size - 1)] == NEWLINE
    return 1 + int(newlines) + int(np.count_nonzero(~followed))


def read_records(data: NDArray[np.uint8], delimiter: str) -> Iterator[TextRecord]:
    """The records of a UTF-8 text that are not blank; a field may have 131,072 letters."""
    lines = _Lines(data)
    reader = csv.reader(lines, delimiter=delimiter, strict=False)
    while True:
        first = lines.number + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BrokenRecordError(first, str(error)) from None
        if fields:
            yield TextRecord(fields, first, lines.end)


class _Lines:
    """Lines of the text, counted: CR, LF and both end one; U+2028 and its kind do not."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        # Undecodable bytes: a sample may end within a letter.
        stream = io.BytesIO(data.tobytes())
        self.text = io.TextIOWrapper(stream, "utf-8", errors="replace", newline="")
        self.number = self.end = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = next(self.text)
        self.number += 1
        self.end += len(line.encode("utf-8"))
        return line


def locate(
    data: NDArray[np.uint8], seen: Survey, *, delimiter: str, skipped: int, rows: int
) -> Places:
    """Lines of the rows that follow `skipped` lines of header."""
    ends_open = bool(data.size) and data[-1] != NEWLINE
    if seen.newlines + ends_open == skipped + rows:
        return Places(first=skipped + 1)
    return Places(lines=_lines_by_quotes(data, skipped, rows, delimiter))


def _lines_by_quotes(
    data: NDArray[np.uint8], skipped: int, rows: int, delimiter: str
) -> NDArray[np.int64]:
    """A line ends a record if the number of quotes before its end is even."""
    ends = np.flatnonzero(data == NEWLINE)
    if data.size and data[-1] != NEWLINE:
        ends = np.append(ends, data.size)
    quotes = np.flatnonzero(data == QUOTE)
    closed = np.searchsorted(quotes, ends) % 2 == 0
    begins = np.concatenate([[True], closed[:-1]])
    starts = np.concatenate([[0], ends[:-1] + 1])
    length = ends - starts
    blank = (length == 0) | ((length == 1) & (data[np.minimum(starts, data.size - 1)] == RETURN))
    lines = 1 + np.flatnonzero(begins & ~(blank & closed))
    lines = lines[lines > skipped]
    if lines.size == rows:
        return lines.astype(np.int64)
    # Quotes inside unquoted fields, or lines that end in \r alone.
    records = read_records(data, delimiter)
    return np.array([record.line for record in records if record.line > skipped], np.int64)
