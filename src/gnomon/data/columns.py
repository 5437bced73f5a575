"""What a column holds, and its cells as numbers or as text."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.data.dialect import MISSING
from gnomon.data.refusals import FileError, Way, quoted
from gnomon.data.table import Places, count
from gnomon.data.thousands import Marks, find_marks, fits_marks, is_unclear, plain_numbers
from gnomon.errors import Parameter, Remedy

__all__ = [
    "Column",
    "Reading",
    "as_column",
    "as_text",
    "colour_of",
    "dressed_number",
    "numbers_of_column",
    "refuse_column",
    "shown_of",
    "texts_of",
]

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI]nf(inity)?|INF)$"
COMMA_NUMBER = NUMBER.replace(r"\.", ",")
DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?([ T]\d\d?:\d\d.*)?|\d\d?[./]\d\d?[./]\d{4}")
# A number with something before or behind it: $1,250.00, 12 %, 3.5 kg, (7.25).
DRESSED = r"^[^0-9A-Za-z]{0,3}[0-9][0-9.,' ]*[^0-9]?([^0-9A-Za-z ]|[A-Za-z]{1,4})?$"
PLAIN = r"^[-+]?[0-9][0-9.,' ]*$"
TRUTH = {"true": True, "false": False}

# A column is meant to be numbers, and a text in it is an error, if at least half of it is numbers
# and the texts are few words (for "missing", say), or if nearly all of it is numbers.
HALF, NEARLY_ALL = 0.5, 0.95
FEW_WORDS = 10


@dataclass(frozen=True, eq=False)
class Column:
    """One column and what it is.

    Attributes
    ----------
    name : str
    kind : str
        "numbers", "codes" (digits with leading zeros), "truth" (true and false), "vectors",
        "text", "mixed" (numbers and a few texts), "unclear" (numbers such as 1,234, whose mark may
        divide thousands or decimals), "dates", "empty", or pyarrow's name for what is none of
        these.
    values : ChunkedArray
        Numbers for "numbers" and "codes", booleans for "truth"; for all else as in the file.
    cells : ChunkedArray
        As in the file.
    bad : tuple of int, int, str
        For "mixed" and "unclear": how many such texts, the row of the first, and what it says.
    marks : Marks or None
        For numbers with thousands separators: the marks.
    category : bool
        Whether the file says that it holds categories (Arrow's dictionaries).
    """

    name: str
    kind: str
    values: Any
    cells: Any
    bad: tuple[int, int, str] = (0, 0, "")
    marks: Marks | None = None
    category: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the cells are text, whatever it says."""
        return _is_text_type(self.cells.type)


@dataclass(frozen=True)
class Reading:
    """How numbers are written in text.

    Attributes
    ----------
    na : collection of str
        Text that means a missing value, besides the usual.
    decimal : str
        The decimal mark of the file.
    stated : bool
        Whether the user said so.
    """

    na: Collection[str] = ()
    decimal: str = "."
    stated: bool = False


def as_column(name: str, cells: Any, how: Reading, marks: Marks | None = None) -> Column:
    """See what `cells` hold; `marks` are those of the column, where they are known already."""
    kind = cells.type
    if pa.types.is_null(kind) or cells.null_count == len(cells):
        return Column(name, "empty", cells, cells)
    if pa.types.is_boolean(kind):
        return Column(name, "truth", cells, cells)
    if pa.types.is_decimal(kind):
        return Column(name, "numbers", cells.cast(pa.float64()), cells)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        empty = pa.types.is_floating(kind) and bool(pc.all(pc.is_nan(cells.drop_null())).as_py())
        return Column(name, "empty" if empty else "numbers", cells, cells)
    if pa.types.is_temporal(kind):
        return Column(name, "dates", cells, cells)
    if _is_text_type(kind):
        return _text_column(name, cells.cast(pa.large_string()), how, marks)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        if pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner):
            return Column(name, "vectors", cells, cells)
    return Column(name, str(kind).split("<")[0], cells, cells)


def _is_text_type(kind: Any) -> bool:
    view = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or view(kind))


def _text_column(name: str, cells: Any, how: Reading, marks: Marks | None) -> Column:
    trimmed = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(trimmed, value_set=pa.array([*MISSING, *how.na], pa.large_string()))
    present = pc.if_else(missing, pa.scalar(None, pa.large_string()), trimmed)
    known = len(present) - present.null_count
    if not known:
        return Column(name, "empty", cells, cells)
    if marks is not None:
        is_number = fits_marks(present, marks)
    else:
        pattern = COMMA_NUMBER if how.decimal == "," else NUMBER
        is_number = pc.match_substring_regex(present, pattern)
    numbers = pc.sum(is_number).as_py() or 0
    if numbers < known and marks is None:
        marks = find_marks(present, how.decimal if how.stated else None)
        if marks is not None:
            return _text_column(name, cells, how, marks)
        if is_unclear(present):
            row = pc.index(is_number, pa.scalar(False)).as_py()
            bad = (known - numbers, row, cells[row].as_py())
            return Column(name, "unclear", cells, cells, bad)
    if numbers == known:
        return _number_column(name, cells, present, how.decimal, marks)
    words = pc.if_else(is_number, pa.scalar(None, pa.large_string()), present)
    few = pc.count_distinct(words).as_py() <= FEW_WORDS
    if numbers >= (HALF if few else NEARLY_ALL) * known:
        row = pc.index(is_number, pa.scalar(False)).as_py()
        return Column(name, "mixed", cells, cells, (known - numbers, row, cells[row].as_py()))
    some = pc.unique(present.slice(0, 1000)).drop_null().to_pylist()
    if {value.casefold() for value in some} <= TRUTH.keys():
        truth = pc.utf8_lower(present)
        is_truth = pc.is_in(truth, value_set=pa.array(list(TRUTH), pa.large_string()))
        if pc.sum(is_truth).as_py() == known:
            values = pc.if_else(
                pc.is_null(truth), pa.scalar(None, pa.bool_()), pc.equal(truth, "true")
            )
            return Column(name, "truth", values, cells)
    dates = bool(some) and all(DATE.fullmatch(value) for value in some)
    return Column(name, "dates" if dates else "text", cells, cells)


def _number_column(
    name: str, cells: Any, present: Any, decimal: str, marks: Marks | None
) -> Column:
    """Text that is all numbers."""
    if marks is not None:
        plain = plain_numbers(present, marks)
    else:
        plain = pc.replace_substring(present, decimal, ".") if decimal != "." else present
    plain = pc.utf8_ltrim(plain, characters="+")  # which pyarrow's cast does not know
    # 007 and 01234 are names of things; who wants their numbers can keep them.
    codes = pc.any(pc.match_substring_regex(present, "^0[0-9]+$")).as_py()
    values = plain.cast(pa.float64())
    return Column(name, "codes" if codes else "numbers", values, cells, marks=marks)


def dressed_number(column: Column) -> str | None:
    """A cell of a column of text whose cells are numbers but for a sign or a unit; or None."""
    cells = pc.utf8_trim_whitespace(column.cells.slice(0, 1000).cast(pa.large_string())).drop_null()
    fits = pc.match_substring_regex(cells, DRESSED)
    if not len(cells) or pc.sum(fits).as_py() < NEARLY_ALL * len(cells):
        return None
    odd = pc.and_(fits, pc.invert(pc.match_substring_regex(cells, PLAIN)))
    row = pc.index(odd, pa.scalar(True)).as_py()
    return None if row < 0 else str(cells[row].as_py())


def refuse_column(column: Column, file: str, places: Places, asked: str | None = None) -> NoReturn:
    """Raise the sentence about a column that is wanted as numbers and does not hold them.

    `asked` is the option by which the user wanted it, if any.
    """
    out: Way = ("drop", column.name) if asked is None else Remedy.LEAVE_OUT
    fields = {"file": file, "column": quoted(column.name)}
    if asked is not None:
        fields["parameter"] = Parameter(asked)
    if column.kind == "mixed":
        many, row, value = column.bad
        raise FileError(
            "{file}: column {column} holds text in {rows} (first: {place}, {value}).",
            ("na", value),
            out,
            rows=count(many, "row"),
            place=places.of(row),
            value=quoted(value),
            **fields,
        )
    if column.kind == "unclear":
        value = column.bad[2].strip()
        raise FileError(
            "{file}: column {column} holds {value} ({place}), whose mark may divide thousands or "
            "decimals, and no other cell says which.",
            ("decimal", "."),
            ("decimal", ","),
            out,
            place=places.of(column.bad[1]),
            value=quoted(value),
            **fields,
        )
    if column.kind == "dates":
        raise FileError(
            "{file}: column {column} holds dates.",
            out,
            "To use them, choose an encoding, such as days since the first.",
            **fields,
        )
    if column.kind == "empty":
        raise FileError("{file}: column {column} has no values.", out, **fields)
    raise FileError(
        "{file}: column {column} holds {kind}, not numbers.", out, kind=column.kind, **fields
    )


class Texts(Protocol):
    """Makes texts of a column's cells, with `gaps` None where a value is missing."""

    def __call__(self, column: Column, na: Collection[str], *, gaps: bool) -> Any: ...


def numbers_of_column(column: Column) -> NDArray[np.float64]:
    """The cells as float64, NaN where a value is missing; for columns of numbers and truth."""
    cells = column.values.cast(pa.float64()) if column.kind == "truth" else column.values
    return np.asarray(cells.to_numpy(), np.float64)


def texts_of(column: Column, na: Collection[str], *, gaps: bool) -> NDArray[np.object_]:
    """The cells as text, to the letter; with `gaps`, None where a value is missing."""
    texts = np.empty(len(column.cells), dtype=object)
    texts[:] = [as_text(value) for value in column.cells.to_pylist()]
    if gaps:
        missing = {*MISSING, *na}
        texts[[text is None or text.strip() in missing for text in texts]] = None
    else:
        texts[[text is None for text in texts]] = ""
    return texts


def colour_of(column: Column, na: Collection[str], texts: Texts = texts_of) -> Any:
    """A column that is kept for colour: quantities as numbers, all else as `texts`."""
    if column.kind == "numbers" and not column.category:
        return numbers_of_column(column)
    return texts(column, na, gaps=True)


def shown_of(column: Column, role: str, texts: Texts = texts_of) -> tuple[str, Any]:
    """A column that a page shows, and its name: `texts` to the letter; pictures as they are."""
    if role != "image":
        return column.name, texts(column, (), gaps=False)
    cells = np.empty(len(column.cells), dtype=object)
    cells[:] = column.cells.to_pylist()
    return column.name, cells


def as_text(value: Any) -> str | None:
    """A cell as text, whole numbers without a decimal point; None where there is none."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
