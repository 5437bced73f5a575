"""What files that are read in blocks have in common.

Which columns are numbers is decided from the first rows (`gnomon.data.roles`), once; every block is
then read for these columns, and a cell that is no number is an error with its place.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.data.column_options import ColumnOptions
from gnomon.data.columns import COMMA_NUMBER, NUMBER, TRUTH, Column, as_column
from gnomon.data.dialect import MISSING
from gnomon.data.formats.spool import Spool
from gnomon.data.matrix import gather_numbers, vector_width
from gnomon.data.names import find_name, vector_of
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, OptionError, quoted
from gnomon.data.roles import Roles, assign_roles
from gnomon.data.table import ColumnRoles
from gnomon.data.thousands import Marks, fits_marks
from gnomon.errors import Parameter

__all__ = [
    "AHEAD",
    "AT_ONCE",
    "LOOK",
    "AbsentError",
    "BlockFile",
    "Chosen",
    "Piece",
    "choose",
    "numbers_of",
    "refuse_absent",
]

LOOK = 10_000  # rows that are looked at to see what columns hold
AT_ONCE = 2**29  # bytes that are decoded at once, where there is memory for them
AHEAD = 8  # times as many as those that are read beforehand


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file: the first of them, how many, and where they are found."""

    first: int
    rows: int
    place: Any


class BlockFile(ABC):
    """A file that is read in blocks; it can be pickled, and is then small."""

    name: str
    names: tuple[str, ...] | None  # of the columns in use; None where the file has no names
    all_names: tuple[str, ...]  # of all columns, to be compared with those of other files
    columns: int
    dtype: np.dtype[Any]
    pieces: Sequence[Piece]
    roles: ColumnRoles
    notes: tuple[str, ...] = ()
    size: str = ""  # of the file in words; rows × columns if empty
    stored: int | None = None  # entries of a sparse matrix, whose parts are CSR arrays
    most_bytes: int | None = None  # of a part, where that does not follow from its numbers
    spool: Spool | None = None  # a temporary copy of its rows that it is read from
    unpacked: Spool | None = None  # a temporary copy of a compressed file
    origin: Spool | None = None  # a temporary copy of standard input

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "pieces": ()}

    @property
    def copies(self) -> list[Spool]:
        """Temporary copies that it is read from."""
        return [copy for copy in (self.spool, self.unpacked) if copy is not None]

    @abstractmethod
    def read(self, piece: Piece, at_once: int = AT_ONCE) -> Any:
        """The rows of a piece, shape (rows, columns); fewer if the file has lost some.

        A part of the file that must be read in one go, and is larger than `at_once` bytes, is read
        from its beginning up to this piece and no further.
        """

    @abstractmethod
    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All cells of some columns, one part of the file after the other."""

    def prefetch(self, pieces: Sequence[Piece], at_once: int = AT_ONCE) -> None:  # noqa: B027
        """Begin to read the pieces that come next, if that helps; forget it if there are none."""

    def release(self, but: Any = None) -> None:  # noqa: B027  (most have nothing open)
        """Close what is kept open for the pieces that follow others than the one at `but`."""


class AbsentError(OptionError):
    """Columns that were named and are not there: fields `absent` and `there`."""


@dataclass(frozen=True)
class Chosen:
    """The columns in use: as the file has them, and as the table has them.

    They differ where a column holds vectors, which are several columns of the table.

    Attributes
    ----------
    numbers : tuple of str
        Columns of the file.
    names : tuple of str
        Columns of the table.
    dtype : dtype
    truths : frozenset of str
        Those of `numbers` that hold true and false.
    widths : mapping of str to int
        Those of `numbers` that hold vectors, and how long these are.
    taken : tuple of int or None
        Which columns of the table are taken where not all entries of vectors are.
    marks : mapping of str to Marks
        Those of `numbers` that are text with thousands separators.
    roles : ColumnRoles
        What all columns are used for, by the first rows.
    notes : tuple of str
        What had to be assumed about them.
    asked : mapping of str to str
        The option that named a feature, where one did.
    """

    numbers: tuple[str, ...]
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    truths: frozenset[str] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)
    taken: tuple[int, ...] | None = None
    marks: Mapping[str, Marks] = field(default_factory=dict)
    roles: ColumnRoles = field(default_factory=lambda: ColumnRoles(()))
    notes: tuple[str, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)


def choose(
    first: RawTable, options: ColumnOptions, like: Chosen | None = None, *, more: bool = False
) -> Chosen:
    """Decide from the first rows which columns are numbers, and of what type the table is.

    float32 if nothing in it needs more; float64 for everything else, whole numbers included, since
    a cell further down may be missing. What columns hold is taken from `like`, if there is a file
    that this one continues. `more` says that other rows follow.
    """
    first = replace(first, more=more)
    if options.columns is not None:
        asked = tuple(dict.fromkeys(options.columns))
        options = replace(options, columns=asked)
        if first.named:
            entries = (name for name in asked if vector_of(name) in first.columns)
            refuse_absent(asked, [*first.names, *entries], first.name)
    roles = assign_roles(first, options)
    truths = frozenset(name for name in roles.numbers if roles.seen[name].kind == "truth")
    widths = {
        name: vector_width(roles.seen[name])
        for name in roles.numbers
        if roles.seen[name].kind == "vectors"
    }
    found = ((name, roles.seen[name].marks) for name in roles.numbers)
    marks = {name: each for name, each in found if each is not None}
    seen = roles.seen
    if like is not None:
        truths, widths, marks = like.truths, dict(like.widths), dict(like.marks)
        how = options.reading(first.decimal)
        seen = {
            name: as_column(name, first.columns[name], how, marks.get(name))
            for name in roles.numbers
        }
        for name in roles.numbers:
            _refuse_other_kind(seen[name], first, like, options)
    seen = {name: _with_values(seen[name], widths) for name in roles.numbers}
    only = Roles(roles.numbers, roles.names, seen, asked=roles.asked)
    table, names = gather_numbers(first, only, options.na, widths)
    small = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    dtype = np.dtype(np.float32 if small else np.float64)
    used = replace(roles.names, features=names)
    chosen = Chosen(
        roles.numbers,
        names,
        dtype,
        truths,
        widths,
        marks=marks,
        roles=used,
        notes=roles.notes,
        asked=roles.asked,
    )
    if options.columns is None or not first.named:
        return chosen
    return _take(chosen, options.columns, first.name)


def _take(chosen: Chosen, columns: Sequence[str], file: str) -> Chosen:
    """Choose the entries of vectors that `columns` names, in its order."""
    asked: list[str] = []
    for name in columns:
        width = chosen.widths.get(name)  # of a vector that is wanted as a whole
        asked += [name] if width is None else [f"{name}[{i}]" for i in range(width)]
    if tuple(asked) == chosen.names:
        return chosen
    refuse_absent(asked, chosen.names, file)
    taken = tuple(chosen.names.index(name) for name in asked)
    roles = replace(chosen.roles, features=tuple(asked))
    return replace(chosen, names=tuple(asked), taken=taken, roles=roles)


def refuse_absent(asked: Sequence[str], there: Sequence[str], file: str) -> None:
    """Refuse columns that are not spelled as in the file: other files and models have them so."""
    known = set(there)
    absent = [name for name in asked if name not in known]
    if not absent:
        return
    try:
        way = f"Did you mean {quoted(find_name('columns', absent[0], there, file))}?"
    except OptionError as error:
        way = " ".join(map(str, error.ways))
    raise AbsentError(
        "{file} has no column {column}, named by the option {parameter}.",
        way,
        file=file,
        column=quoted(absent[0]),
        parameter=Parameter("columns"),
        absent=tuple(absent),
        there=tuple(there),
    )


def numbers_of(block: RawTable, chosen: Chosen, options: ColumnOptions) -> NDArray[Any]:
    """The chosen columns of a block as rows."""
    cells = [block.columns[name] for name in chosen.numbers]
    plain = pa.from_numpy_dtype(chosen.dtype)
    if not options.na and all(column.type == plain for column in cells):
        # Column beside column, as they came: a block is transposed where it is used, in the cache.
        return beside_each_other(cells, chosen.dtype)
    seen: dict[str, Column] = {}
    for name in chosen.numbers:
        cells, how = block.columns[name], options.reading(block.decimal)
        column = as_column(name, cells, how, chosen.marks.get(name))
        _refuse_other_kind(column, block, chosen, options)
        seen[name] = _with_values(column, chosen.widths)
    only = Roles(chosen.numbers, chosen.roles, seen, asked=chosen.asked)
    table, _ = gather_numbers(block, only, options.na, chosen.widths)
    if chosen.taken is not None:
        table = table[:, chosen.taken]
    return table.astype(chosen.dtype, copy=False)


def _refuse_other_kind(
    column: Column, block: RawTable, chosen: Chosen, options: ColumnOptions
) -> None:
    """Raise an error about a block whose column holds something else than it did in the first rows.

    By itself it could be read: all of it true, or vectors of another length.
    """
    if column.kind == "empty":
        return
    name, width = column.name, chosen.widths.get(column.name)
    if pa.types.is_large_string(column.cells.type):  # whatever type of text it was
        fits = ("truth",) if name in chosen.truths else ("numbers", "codes")
        if column.kind not in fits and width is None:
            _refuse_text(column, block, chosen, options)
    if (column.kind == "vectors") == (width is not None):
        return
    row = int(np.argmax(np.asarray(column.cells.is_valid())))
    what = "single numbers" if width is None else f"vectors of length {width}"
    raise FileError(
        f"{block.name}: column {quoted(name)} holds {column.kind} (first: {block.places.of(row)}), "
        f"where {what} are expected.",
        ("drop", name),
    )


def _refuse_text(
    column: Column, block: RawTable, chosen: Chosen, options: ColumnOptions
) -> NoReturn:
    """Name the first cell that is not what its column holds."""
    truth, marks = column.name in chosen.truths, chosen.marks.get(column.name)
    how = options.reading(block.decimal)
    number = re.compile(COMMA_NUMBER if how.decimal == "," else NUMBER)
    missing = {*MISSING, *options.na}
    trimmed = pc.utf8_trim_whitespace(column.cells)
    fits = [None] * len(trimmed) if marks is None else fits_marks(trimmed, marks).to_pylist()
    row, text = next(
        (row, text)
        for row, (text, fit) in enumerate(zip(trimmed.to_pylist(), fits, strict=True))
        if text is not None
        and text not in missing
        and not (
            fit or (text.casefold() in TRUTH if truth else marks is None and number.search(text))
        )
    )
    raise FileError(
        f"{block.name}: column {quoted(column.name)} holds "
        f"{'not only true and false' if truth else 'text'} (first: {block.places.of(row)}, "
        f"{quoted(text)}).",
        ("na", text),
        ("drop", column.name),
    )


def beside_each_other(cells: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Columns that are of the type already as one Fortran-ordered table, NaN where they miss."""
    if all(column.num_chunks == 1 for column in cells):
        batch = pa.RecordBatch.from_arrays([column.chunk(0) for column in cells], [""] * len(cells))
        table: NDArray[Any] = batch.to_tensor(null_to_nan=True, row_major=False).to_numpy()
        return table
    turned = np.empty((len(cells), len(cells[0])), dtype)
    for j, column in enumerate(cells):
        turned[j] = column.to_numpy()
    return turned.T


def _with_values(column: Column, widths: Mapping[str, int]) -> Column:
    """A column that happens to be empty in these rows as missing numbers, or missing vectors."""
    if column.kind != "empty":
        return column
    vectors = column.name in widths
    kind = pa.list_(pa.float32()) if vectors else pa.float32()
    nothing = pa.chunked_array([pa.nulls(len(column.cells), kind)])
    return Column(
        column.name,
        "vectors" if vectors else "numbers",
        nothing,
        nothing if vectors else column.cells,
    )
