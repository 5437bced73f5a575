"""Parquet and Feather in blocks of rows.

A file has row groups (Parquet) or record batches (Feather), which can be read in any order. Small
ones are taken together and large ones divided, until a block has about the rows wanted; the blocks
inside a large one are read from front to back (`gnomon.engine.cursor`), a strip of columns at a
time: threads that want neighbouring blocks take the strips from opposite ends and share the work.
Row groups of the size of a block or a few are best: workers of a cluster then share the file too.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.data.column_options import ColumnOptions
from gnomon.data.file_content import FileContent
from gnomon.data.formats.parquet import FeatherGroups, Groups, ParquetGroups
from gnomon.data.formats.parts import (
    AHEAD,
    AT_ONCE,
    LOOK,
    BlockFile,
    Chosen,
    Piece,
    choose,
    numbers_of,
)
from gnomon.data.formats.prefetch import Coming
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import COPIED_WHOLE, FileError, NoRowsError, quoted
from gnomon.data.table import Places
from gnomon.engine.cursor import Cursor
from gnomon.engine.source import partition_rows
from gnomon.files import shown_name

__all__ = [
    "READING",
    "ArrowTable",
    "arrow_table",
    "brief",
    "parquet_bytes",
    "read_feather",
    "read_parquet",
]

T = TypeVar("T")

# What pyarrow raises for a damaged file; names of columns may be no UTF-8.
READING = (pa.ArrowException, OSError, UnicodeDecodeError)

STRIPS = 8  # of columns, in a row group that is divided
STRIP = 2**24  # bytes of one, in a large row group
MOST_OPEN = 3  # row groups that are being read at the same time: threads are in two, as a rule

_lock = threading.Lock()  # around the lists of cursors, which is quick


def read_parquet(content: FileContent) -> RawTable:
    """All columns of a Parquet file."""
    source = pa.BufferReader(pa.py_buffer(content.data))
    try:
        file = pq.ParquetFile(source)
        content.check(2 * _decoded_bytes(file.metadata))  # pyarrow's columns and our rows
        table = file.read()
        names = table.column_names
    except READING as error:
        raise FileError(
            f"{content.name} is a damaged Parquet file ({brief(error)}).", COPIED_WHOLE
        ) from None
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


def read_feather(content: FileContent) -> RawTable:
    """All columns of a Feather (Arrow IPC) file."""
    source = pa.BufferReader(pa.py_buffer(content.data))
    try:
        table = pf.read_table(source, memory_map=False)
        names = table.column_names
    except READING as error:
        raise FileError(
            f"{content.name} is a damaged Feather file ({brief(error)}).", COPIED_WHOLE
        ) from None
    content.check(8 * table.num_rows * table.num_columns)
    return _raw(table, names, content)


def _raw(table: Any, columns: list[str], content: FileContent) -> RawTable:
    if table.num_columns == 0:
        raise FileError(f"{content.name} has no columns.")
    if table.num_rows == 0:
        raise NoRowsError(f"{content.name} has columns but no rows.")
    names, notes = unique_names(columns, len(columns))
    return arrow_table(content.name, names, table.columns, notes=tuple(notes))


def arrow_table(name: str, names: Sequence[str], columns: Sequence[Any], **known: Any) -> RawTable:
    """Columns of Arrow under `names`, as all readers have them; damaged ones are refused."""
    for each, column in zip(names, columns, strict=True):
        _refuse_damaged(name, each, column)
    categories = (each for each, column in zip(names, columns, strict=True) if _is_category(column))
    found = dict(zip(names, map(decoded, columns), strict=True))
    pictures = [each for each, column in zip(names, columns, strict=True) if _is_picture(column)]
    notes = [f"{quoted(each)} holds pictures: --image {each} shows them" for each in pictures]
    known["notes"] = (*known.get("notes", ()), *notes)
    return RawTable(name, found, categories=frozenset(categories), typed=True, **known)


def _is_picture(column: Any) -> bool:
    """Whether a column holds pictures as Hugging Face datasets do: their bytes and their paths."""
    kind = column.type
    return pa.types.is_struct(kind) and {kind.field(i).name for i in range(kind.num_fields)} == {
        "bytes",
        "path",
    }


def _refuse_damaged(file: str, name: str, column: Any) -> None:
    """Refuse a column whose offsets or codes point out of it, or whose text is no text.

    pyarrow's readers leave that to us, and its functions follow an offset wherever it points. Plain
    numbers have no offsets: every bit pattern is one.
    """
    try:
        column.validate(full=not pa.types.is_primitive(column.type))
    except pa.ArrowException as error:
        raise FileError(
            f"{file} is a damaged file (column {quoted(name)}: {brief(error)}).", COPIED_WHOLE
        ) from None


def _is_category(column: Any) -> bool:
    """Whether a dictionary holds names of groups; one of numbers with fractions is a short cut."""
    if not pa.types.is_dictionary(column.type):
        return False
    kind = column.type.value_type
    return not (pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def decoded(column: Any) -> Any:
    """Codes of a dictionary as their values, an extension as its storage, pictures as bytes."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    if _is_picture(column):
        return pc.struct_field(column, "bytes")
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def brief(error: Exception) -> str:
    """The first sentence of pyarrow's message."""
    return str(error).splitlines()[0].rstrip(".")[:120] if str(error) else type(error).__name__


class Run(NamedTuple):
    """Row groups `begin` to `end` that are read together, in blocks of so many `rows`."""

    begin: int
    end: int
    first: int
    rows: tuple[int, ...]


class Place(NamedTuple):
    """A block of a run."""

    run: int
    at: int


class Part(NamedTuple):
    """A strip of columns of a run, and how many bytes may be decoded at once."""

    run: int
    strip: int
    at_once: int


class ArrowTable(BlockFile):
    """The columns of numbers of a Parquet or Feather file."""

    def __init__(
        self,
        path: Path,
        options: ColumnOptions,
        rows: int | None,
        kind: str,
        like: Chosen | None = None,
        *,
        more: bool = False,
    ) -> None:
        self.path, self.name, self.options = path, shown_name(path), options
        self._open(path, kind)
        columns = self.file.columns
        if not columns:
            raise FileError(f"{self.name} has no columns.")
        groups = self._asked(self.file.sizes)
        if not sum(groups):
            raise NoRowsError(f"{self.name} has columns but no rows.")
        self.all_names = tuple(unique_names(columns, len(columns))[0])
        first = next(self._tables(range(len(groups)), list(range(len(columns))), LOOK))
        raw, more = self._raw(first.columns, self.all_names, 0), more or sum(groups) > LOOK
        self.chosen = choose(raw, options, like, more=more)
        self.names, self.columns = self.chosen.names, len(self.chosen.names)
        self.dtype, self.roles, self.notes = self.chosen.dtype, self.chosen.roles, self.chosen.notes
        self.used = self._positions(self.chosen.numbers)
        self._divide(groups, rows)

    def _open(self, path: Path, kind: str) -> None:
        """Look at the file for the first time."""
        self.cursors: dict[int, list[Cursor[Any]]] = {}
        self.coming: Coming[Part] = Coming()
        opener = ParquetGroups if kind == "parquet" else FeatherGroups
        self.file: Groups = self._asked(lambda: opener(path))

    def _divide(self, groups: list[int], rows: int | None) -> None:
        """Divide row groups of so many rows into parts of about `rows`."""
        self.runs = _runs(groups, partition_rows(self.columns, rows))
        self.pieces = [
            Piece(run.first + at * run.rows[0], size, Place(number, at))
            for number, run in enumerate(self.runs)
            for at, size in enumerate(run.rows)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cursors": {}}

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> NDArray[Any]:
        """A block; what is before it in the same row group has just been read, as a rule."""
        number, at = piece.place
        strips = self._strips(number, at_once)
        found: dict[int, list[Any]] = {}
        for i in range(len(strips)) if at % 2 else reversed(range(len(strips))):
            table = strips[i].take(at)
            if table is None:
                return np.empty((0, self.columns), self.dtype)
            found[i] = table.columns
        self._done_with(number, strips)
        columns = [column for i in range(len(strips)) for column in found[i]]
        return self._numbers(columns, piece.first)

    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All cells of some columns, row group after row group."""
        columns = self._positions(names)
        groups = range(self._asked(self.file.count))
        for table in self._tables(groups, columns, self.runs[0].rows[0]):
            yield self._raw(table.columns, tuple(names), 0)

    def release(self, but: Place | None = None) -> None:
        """Drop the cursors of other row groups, which are then read from their start again."""
        here = None if but is None else but.run
        with _lock:
            self.cursors = {run: found for run, found in self.cursors.items() if run == here}

    def _strips(self, number: int, at_once: int) -> list[Cursor[Any]]:
        """Where the strips of a run are being read; only a few runs are, at a time."""
        if len(self.runs[number].rows) == 1:
            return self._begin(number, at_once)
        with _lock:
            strips = self.cursors.get(number)
            if strips is None:
                strips = self.cursors[number] = self._begin(number, at_once)
            while len(self.cursors) > MOST_OPEN:
                del self.cursors[next(iter(self.cursors))]
        return strips

    def _begin(self, number: int, at_once: int) -> list[Cursor[Any]]:
        strips = range(len(self._columns(number)))
        return [Cursor(partial(self._run, Part(number, strip, at_once))) for strip in strips]

    def _columns(self, number: int) -> list[list[int]]:
        """Which columns stand in which strip of a run; all in one, unless it is divided."""
        rows, wide = self.runs[number].rows, len(self.used)
        most = 1
        if len(rows) > 1 and self.file.apart:
            most = max(STRIPS, sum(rows) * wide * self.dtype.itemsize // STRIP)
        bounds = row_blocks(wide, -(-wide // most))
        return [self.used[begin:end] for begin, end in bounds]

    def _done_with(self, number: int, strips: list[Cursor[Any]]) -> None:
        """Drop the cursors of a run once all its blocks were returned."""
        blocks = len(self.runs[number].rows)
        if all(strip.given >= blocks for strip in strips):
            with _lock:
                if self.cursors.get(number) is strips:
                    del self.cursors[number]

    def _run(self, key: Part) -> Iterator[Any]:
        groups, columns = self._where(key)
        if groups.stop > self._asked(self.file.count):
            return iter(())
        self.coming.asked(key, self)
        return self._tables(groups, columns, self.runs[key.run].rows[0], key.at_once)

    def prefetch(self, pieces: Sequence[Piece], at_once: int = AT_ONCE) -> None:
        """Begin to read the row groups that come next."""
        if not pieces:
            self.coming = Coming()
            self.file.drop_all()
        for number in dict.fromkeys(piece.place.run for piece in pieces):
            strips = from_both_ends(range(len(self._columns(number))))
            parts = (Part(number, strip, at_once) for strip in strips)
            self.coming.tell(parts, self, at_once // AHEAD)

    def part_bytes(self, key: Part) -> int:
        """Bytes of the numbers of a strip, once they are decoded."""
        columns = len(self._columns(key.run)[key.strip])
        return sum(self.runs[key.run].rows) * columns * self.dtype.itemsize

    def prefetch_part(self, key: Part) -> None:
        """Begin to read a strip."""
        self.file.prefetch(*self._where(key), key.at_once)

    def drop_part(self, key: Part) -> None:
        """Drop a strip that was prefetched."""
        self.file.drop(*self._where(key))

    def _where(self, key: Part) -> tuple[range, list[int]]:
        run = self.runs[key.run]
        return range(run.begin, run.end), self._columns(key.run)[key.strip]

    def _numbers(self, columns: list[Any], first: int) -> NDArray[Any]:
        """The columns in use as rows, of which `first` is the first."""
        raw = self._raw(columns, self.chosen.numbers, first)
        return numbers_of(raw, self.chosen, self.options)

    def _positions(self, names: Sequence[str]) -> list[int]:
        """Which columns of the file these are."""
        return [self.all_names.index(name) for name in names]

    def _raw(self, columns: list[Any], names: tuple[str, ...], first: int) -> RawTable:
        places = Places(rows=np.arange(first, first + len(columns[0])))
        return arrow_table(self.name, names, columns, places=places)

    def _asked(self, question: Callable[[], T]) -> T:
        """What the file says about itself."""
        try:
            return question()
        except READING as error:
            raise self._damaged(error) from None

    def _tables(
        self, groups: range, columns: list[int], rows: int, at_once: int = 0
    ) -> Iterator[Any]:
        """Tables of exactly `rows` rows, but for the last."""
        waiting: list[Any] = []
        there = 0
        try:
            for batch in self.file.batches(groups, columns, rows, at_once):
                waiting.append(batch)
                there += batch.num_rows
                while there >= rows:
                    table = pa.Table.from_batches(waiting)
                    yield table.slice(0, rows)
                    there -= rows
                    waiting = table.slice(rows).to_batches() if there else []
        except READING as error:
            raise self._damaged(error) from None
        if there:
            yield pa.Table.from_batches(waiting)

    def _damaged(self, error: Exception) -> Exception:
        if getattr(error, "errno", None) is not None:  # the system's; pyarrow's own have no number
            return error
        return FileError(f"{self.name} is a damaged file ({brief(error)}).", COPIED_WHOLE)


def from_both_ends(many: range) -> list[int]:
    """First, last, second, last but one …: in the order in which two threads come to them."""
    half = -(-len(many) // 2)
    both = zip_longest(many[:half], reversed(many[half:]))
    return [i for pair in both for i in pair if i is not None]


def _runs(groups: list[int], rows: int) -> list[Run]:
    """Consecutive row groups of no more than `rows` rows together, and larger ones divided."""
    runs: list[Run] = []
    begin = first = there = 0

    def close(end: int) -> None:
        if there:
            sizes = [min(rows, there - at) for at in range(0, there, rows)]
            runs.append(Run(begin, end, first, tuple(sizes)))

    for number, size in enumerate(groups):
        if there and there + size > rows:
            close(number)
            begin, first, there = number, first + there, 0
        there += size
    close(len(groups))
    return runs
