"""How a delimited text is written: encoding, delimiter, decimal point, and whether it has names.

All of it is guessed from the beginning of the file; whatever is unusual is said in a note.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gnomon.data.lines import (
    BrokenRecordError,
    Survey,
    TextRecord,
    line_of_byte,
    read_records,
    survey,
)
from gnomon.data.refusals import FileError, NoRowsError

__all__ = ["MISSING", "Dialect", "as_utf8", "is_number", "sniff"]

# In the order of preference. A comma is last but one: it also stands inside numbers, and a file
# that a semicolon divides evenly is not divided by its commas.
DELIMITERS = ("\t", ";", "|", ",", " ")
CALLED = {"\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}

# Text that means a missing value without an option. Other words may be values ("none", "-").
MISSING = ("", "NA", "NaN", "nan", "NULL", "null")

SAMPLE_BYTES = 2**18
SAMPLE_LINES = 20  # a line of a wide table may be longer than the whole sample
SAMPLE_RECORDS = 1000

_POINT = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_COMMA = re.compile(r"[+-]?(\d+,\d+|,\d+)([eE][+-]?\d+)?", re.ASCII)
# The first line of some files that Excel writes.
_SEPARATOR_LINE = re.compile(rb"sep=([,;\t| ])\r?\n")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+", re.ASCII)
_GROUPED_COMMA = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+", re.ASCII)
_GROUPED_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+", re.ASCII)

LEAST_SCALE = 10  # names that are ascending numbers, as those of spectra and years
SCALE_ROWS = 20  # rows that are looked at to see that they do not ascend as well


@dataclass(frozen=True)
class Dialect:
    """What `sniff` found.

    Attributes
    ----------
    delimiter, decimal : str
    header : list of str or None
        Names of the columns; None if the first record is a row.
    body : int
        The byte at which the rows begin.
    skipped : int
        Lines before that.
    sample : list of list of str
        The first rows.
    notes : tuple of str
    """

    delimiter: str
    decimal: str
    header: list[str] | None
    body: int
    skipped: int
    sample: list[list[str]]
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """Fields of every record."""
        return len(self.sample[0] if self.header is None else self.header)


def as_utf8(data: NDArray[np.uint8], name: str) -> tuple[NDArray[np.uint8], Survey, list[str]]:
    """The text as UTF-8 without byte order mark; what occurs in it; what had to be assumed."""
    head, notes = data[:4].tobytes(), []
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            data = np.frombuffer(data.tobytes().decode("utf-16").encode("utf-8"), np.uint8)
        except UnicodeDecodeError:
            raise FileError(f"{name} is damaged UTF-16.", "Save it as UTF-8.") from None
        notes.append("text is UTF-16")
    elif head.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    seen = survey(data)
    if seen.nul:
        at = int(np.flatnonzero(data == 0)[0])
        raise FileError(
            f"{name}, line {line_of_byte(data, at)}: there is a NUL byte.",
            "The file is damaged, or it is no text; text in UTF-16 must be saved as UTF-8.",
        )
    if not seen.ascii and (bad := _first_bad_byte(data)) is not None:
        line = line_of_byte(data, bad)
        try:
            data = np.frombuffer(data.tobytes().decode("cp1252").encode("utf-8"), np.uint8)
        except UnicodeDecodeError:
            raise FileError(
                f"{name}, line {line}: byte 0x{data[bad]:02X} is not UTF-8.", "Save it as UTF-8."
            ) from None
        notes.append(f"text is read as Windows-1252: line {line} is not UTF-8")
        seen = survey(data)
    return data, seen, notes


def _first_bad_byte(data: NDArray[np.uint8]) -> int | None:
    try:
        data.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether `text` is a number as pyarrow reads them."""
    text = text.strip(" \t")
    if decimal == ",":
        return "." not in text and _POINT.fullmatch(text.replace(",", ".", 1)) is not None
    return _POINT.fullmatch(text) is not None


def sniff(
    data: NDArray[np.uint8], name: str, na: Sequence[str] = (), decimal: str | None = None
) -> Dialect:
    """Guess how the text is written; `data` is UTF-8, and `decimal` what the user said of it."""
    stated = _SEPARATOR_LINE.match(data[:8].tobytes())
    if stated is None:
        return _sniff(data, name, na, DELIMITERS, decimal)
    size = stated.end()
    found = _sniff(data[size:], name, na, (stated[1].decode(), ","), decimal)
    return replace(found, body=found.body + size, skipped=found.skipped + 1)


def _sniff(
    data: NDArray[np.uint8],
    name: str,
    na: Sequence[str],
    delimiters: tuple[str, ...],
    stated: str | None,
) -> Dialect:
    sample = _sample(data)
    found = {mark: _records(sample, mark, name) for mark in delimiters}
    if not found[","]:
        raise FileError(f"{name} is empty.", "It needs a header row and rows of numbers.")
    delimiter = _choose(found)
    records = found[delimiter]
    if sample.size < data.size and len(records) > 2:
        records = records[:-1]  # cut off by the sample
    first, rest = records[0], [record.fields for record in records[1:]]
    decimal = stated or _decimal([record.fields for record in records], delimiter)
    missing = {*MISSING, *na}
    is_row = _is_row(first.fields, decimal, missing) and not _is_scale(first.fields, rest, decimal)
    is_row = is_row or _is_mixed_row(first.fields, rest, decimal, missing)
    header = None if is_row else _all_names(first.fields, rest)
    notes = []
    if delimiter != ",":
        notes.append(f"columns are delimited by {CALLED[delimiter]}")
    if decimal == ",":
        notes.append("decimals are written with a comma")
    if header is None:
        notes.append("there is no header row")
    elif not rest:
        raise NoRowsError(f"{name} has a header row (line {first.line}) and no rows.")
    lines = 0 if header is None else line_of_byte(data, first.end) - 1
    if header is None:
        return Dialect(delimiter, decimal, None, 0, 0, [first.fields, *rest], tuple(notes))
    return Dialect(delimiter, decimal, header, first.end, lines, rest, tuple(notes))


def _all_names(names: list[str], rows: list[list[str]]) -> list[str]:
    """The header row with an empty one added where every row has one field more.

    R writes rows' names before the first column and none above them; others end rows, but not the
    header row, with a delimiter.
    """
    if not rows or any(len(row) != len(names) + 1 for row in rows):
        return names
    return [*names, ""] if all(row[-1] == "" for row in rows) else ["", *names]


def _sample(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    size = SAMPLE_BYTES
    while size < data.size and np.count_nonzero(data[:size] == 10) < SAMPLE_LINES:
        size *= 4
    return data[:size]


def _records(sample: NDArray[np.uint8], delimiter: str, name: str) -> list[TextRecord]:
    records: list[TextRecord] = []
    try:
        for record in itertools.islice(read_records(sample, delimiter), SAMPLE_RECORDS):
            records.append(record)
    except BrokenRecordError as error:
        if delimiter == "," and not records:
            raise FileError(f"{name} cannot be read as CSV ({error}).") from None
    return records


def _choose(found: dict[str, list[TextRecord]]) -> str:
    """The first delimiter that divides every record as it divides the first, and does divide it."""
    share = {}
    for mark, records in found.items():
        widths = [len(record.fields) for record in records]
        if widths and widths[0] > 1:
            share[mark] = sum(width == widths[0] for width in widths) / len(widths)
            if len(widths) > 2 and set(widths[1:]) == {widths[0] + 1}:
                share[mark] = 1.0  # R names rows, and not the column of their names
    even = [mark for mark in found if share.get(mark) == 1.0]
    if even:
        return even[0]
    uneven = {mark: part for mark, part in share.items() if mark != " "}
    if uneven:  # the ragged line will be named when all is read
        return max(uneven, key=lambda mark: uneven[mark])
    # One column. If commas stand in it, they are not what divides it.
    return "," if all(len(record.fields) == 1 for record in found[","]) else ";"


def _decimal(records: list[list[str]], delimiter: str) -> str:
    """A comma, if some numbers can only be read with one and none has a point."""
    points = commas = 0
    for field in itertools.chain.from_iterable(records):
        if "," in field and _COMMA.fullmatch(field.strip()):
            # "1,234" in quotes is a thousand where commas divide columns.
            commas += delimiter != "," or not _THOUSANDS.fullmatch(field.strip())
        elif "," in field and _GROUPED_COMMA.fullmatch(field.strip()):
            commas += 1  # 1.234,5: thousands and decimals
        elif "," in field and _GROUPED_POINT.fullmatch(field.strip()):
            points += 1  # 1,234.5
        elif "." in field and is_number(field):
            points += 1
    return "," if commas > points else "."


def _is_row(fields: list[str], decimal: str, missing: set[str]) -> bool:
    """Whether the first record is numbers; 0, 1, 2, … are the names that pandas gives."""
    texts = [field.strip() for field in fields]
    names = texts[1:] if texts[0] == "" else texts  # pandas writes its index without a name
    if len(texts) > 2 and names == [str(j) for j in range(len(names))]:
        return False
    numbers = [text for text in texts if text not in missing]
    return bool(numbers) and all(is_number(text, decimal) for text in numbers)


def _is_mixed_row(
    fields: list[str], rest: list[list[str]], decimal: str, missing: set[str]
) -> bool:
    """Whether the first record, of text and numbers, is a row like those below it.

    Its numbers stand above numbers and its text above text. And there is a second signal: some of
    its text comes again below, or two of its numbers have fractions and they neither ascend nor
    descend, as a scale of doses would.
    """
    rows = [row for row in rest if len(row) == len(fields)]
    numbers, again = [], False
    for j, field in enumerate(fields):
        text = field.strip()
        below = (row[j].strip() for row in rows)
        known = [cell for cell in below if cell not in missing]
        if text in missing or not known:
            continue
        numeric = all(is_number(cell, decimal) for cell in known)
        if is_number(text, decimal) != numeric:
            return False
        if numeric:
            numbers.append(text)
        again = again or (not numeric and text in known)
    if not numbers or len(numbers) == len(fields):
        return False
    return again or (
        sum(decimal in text for text in numbers) >= 2 and not _ascends(numbers, decimal)
    )


def _is_scale(fields: list[str], rest: list[list[str]], decimal: str) -> bool:
    """Whether numbers in the first record are names: wavelengths or years, which only ascend."""
    if len(fields) < LEAST_SCALE or not rest or not _ascends(fields, decimal):
        return False
    return not any(_ascends(row, decimal) for row in rest[:SCALE_ROWS])


def _ascends(fields: list[str], decimal: str) -> bool:
    """Whether all fields are numbers, each larger than the one before, or each smaller."""
    try:
        numbers = np.array([float(field.strip().replace(decimal, ".")) for field in fields])
    except ValueError:
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all())
