"""CSV and its kin by pyarrow, which reads in parallel; errors are given their line.

`read_csv` gives the whole of a text. `CsvTable` gives its parts: a text larger than memory is
streamed once, in pieces of whole records (`gnomon.data.formats.csv_stream`), into a temporary
Arrow file.

Columns that look like numbers are read as such at once, and those that look like whole numbers as
these, which takes half the time and memory. If one of these has a fraction further down, the file
is read again with none of them; if a number turns out to be a text, with that column, and then with
all columns, as text: slow, but every value can be shown in the error, or be a label.
"""

import codecs
import itertools
import re
import time
import weakref
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from gnomon.budget import Budget
from gnomon.data.column_options import ColumnOptions
from gnomon.data.dialect import MISSING, Dialect, as_utf8, is_number, sniff
from gnomon.data.file_content import GZ, FileContent, first_bytes
from gnomon.data.formats.arrow import ArrowTable
from gnomon.data.formats.csv_stream import (
    OtherEncodingError,
    TextPiece,
    text_chunks,
    text_pieces,
)
from gnomon.data.formats.parts import LOOK, Chosen, beside_each_other, choose, numbers_of
from gnomon.data.formats.spool import SPOOLED, Spool, SpoolWriter
from gnomon.data.lines import BrokenRecordError, Survey, line_of_byte, locate, read_records
from gnomon.data.names import is_id_like, is_label_like, unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError
from gnomon.data.table import SHOWN, count
from gnomon.engine.source import partition_rows
from gnomon.errors import ChangedSourceError

__all__ = ["CsvTable", "read_csv"]

# pyarrow is as fast with blocks of 1 MB, but every column is then in eight times as many pieces.
BLOCK = 2**23
LARGEST_BLOCK = 2**30
ROWS_A_BLOCK = 64
PATIENCE = 1.0  # seconds
BEGINNING = 2**23  # bytes that are looked at to see what columns hold

TEXT, WHOLE, NUMBER = pa.string(), pa.int32(), pa.float64()

_SMALL_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
UNCONVERTED = re.compile(r"CSV column #(\d+).*conversion error to (\w+)")
_NAME_OF_DIGITS = re.compile(r"0\d+|\d{16,}", re.ASCII)


def read_csv(
    content: FileContent, *, literal: Collection[str], na: Sequence[str], decimal: str | None = None
) -> RawTable:
    """All columns of a delimited text.

    Parameters
    ----------
    content : FileContent
    literal : names of columns that are labels or ids, whose text must stay as it is
    na : text that means a missing value, besides the usual
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
    data: NDArray[np.uint8],
    seen: Survey,
    dialect: Dialect,
    kinds: list[pa.DataType],
    na: Sequence[str],
    name: str,
) -> Any:
    line = max((sum(map(len, row)) + len(row) for row in dialect.sample), default=0)
    block = min(LARGEST_BLOCK, max(BLOCK, ROWS_A_BLOCK * line))
    surprises = 0
    while True:
        types = {str(j): kind for j, kind in enumerate(kinds)}
        try:
            return _parse(data[dialect.body :], types, dialect, na, seen.quotes > 0, block)
        except pa.ArrowInvalid as error:
            column = UNCONVERTED.search(str(error))
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
                if seen.quotes:
                    _refuse_unclosed(data, dialect, name)
                _refuse_ragged(data, dialect, name)
                raise FileError(f"{name} cannot be read as CSV ({error}).") from None


def _parse(
    body: NDArray[np.uint8],
    types: dict[str, pa.DataType],
    dialect: Dialect,
    na: Sequence[str],
    quoted: bool,
    block: int,
    include: Sequence[str] = (),
) -> Any:
    """Rows of text as a table of pyarrow; of its columns those of `include`, or all."""
    held, source = weakref.ref(body), pa.BufferReader(pa.py_buffer(body))
    del body
    try:
        return pc.read_csv(
            source,
            pc.ReadOptions(column_names=list(types), block_size=block),
            pc.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=quoted),
            pc.ConvertOptions(
                column_types=types,
                include_columns=include,
                null_values=[*MISSING, *na],
                strings_can_be_null=False,
                decimal_point=dialect.decimal,
            ),
        )
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


def _refuse_ragged(data: NDArray[np.uint8], dialect: Dialect, name: str, above: int = 0) -> None:
    """Name the first line that has more or fewer fields than the first; `above` are before it."""
    for record in read_records(data, dialect.delimiter):
        line = record.line + above
        if line > dialect.skipped and len(record.fields) != dialect.width:
            first = "the first line" if dialect.header is None else "the header row"
            raise FileError(
                f"{name}, line {line}: {count(len(record.fields), 'field')}, where {first} "
                f"has {dialect.width}.",
                "Mend the line, or remove it.",
            )


def _refuse_open_quote(
    data: NDArray[np.uint8], seen: Survey, dialect: Dialect, name: str, above: int = 0
) -> None:
    """Refuse a quote that is never closed: it would make one cell of the rest of the file."""
    if seen.quotes % 2:
        _refuse_unclosed(data, dialect, name, above)


def _refuse_unclosed(data: NDArray[np.uint8], dialect: Dialect, name: str, above: int = 0) -> None:
    """Name the line on which a quote is opened that is never closed."""
    # A line of our own at the end is a record of its own only if all quotes are closed.
    whole = np.concatenate([data, np.frombuffer(b"\nend\n", np.uint8)])
    try:
        (last,) = deque(read_records(whole, dialect.delimiter), maxlen=1)
        closed, line = last.fields == ["end"], last.line
    except BrokenRecordError as error:
        closed, line = False, error.line
    if not closed:
        raise FileError(
            f"{name}, line {line + above}: a quote is opened and never closed.",
            "Close it, or double it if it is part of the text.",
        )


class CsvTable(ArrowTable):
    """A delimited text in parts: streamed once into an Arrow file, and read from there.

    Columns in use are numbers in that file. Labels, ids and what else goes with the rows are text,
    to the letter; other columns are left out.
    """

    def __init__(
        self,
        path: Path,
        options: ColumnOptions,
        rows: int | None,
        like: Chosen | None = None,
        *,
        more: bool = False,
        spool: Spool,
    ) -> None:
        self.path, self.name, self.options, self.spool = path, spool.name, options, spool
        before = path.stat()
        with spool.writing():
            try:
                sizes = self._stream(text_chunks(path, self.name), rows, like, more=more)
            except OtherEncodingError as error:
                chunks = text_chunks(path, self.name, error)
                sizes = self._stream(chunks, rows, like, more=more)
            after = path.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise ChangedSourceError(
                    f"{self.name} changed while it was read. Leave it alone and start again."
                )
        self._open(spool.folder / SPOOLED, "feather")
        self.used = list(range(self.columns))
        self._divide(sizes, rows)

    def _stream(
        self,
        text: tuple[Iterator[bytes], list[str]],
        rows: int | None,
        like: Chosen | None,
        *,
        more: bool,
    ) -> list[int]:
        """Copy the rows; how many there are in each record batch of the copy."""
        (chunks, assumed), spool = text, self.spool
        assert spool is not None
        head = first_bytes(chunks, BEGINNING)
        rest = next(chunks, b"")
        self.dialect = self._look_at(head, like, more=more, cut=bool(rest))
        self.notes = (*assumed, *self.notes)
        roles = self.chosen.roles
        names = (
            roles.label,
            roles.id,
            *(getattr(roles, role) for role in SHOWN),
            *(left.column for left in roles.kept_for_colour),
        )
        self.texts = tuple(dict.fromkeys(name for name in names if name is not None))
        pieces = text_pieces(
            itertools.chain([head[self.dialect.body :], rest], chunks),
            self.name,
            self.dialect.delimiter,
            self.dialect.skipped + 1,
        )
        writer = SpoolWriter(spool, partition_rows(self.columns, rows), self._expected_bytes())
        with writer:
            for piece in pieces:
                writer.write(self._batch(piece), piece.data.size)
        if not sum(writer.sizes):
            raise NoRowsError(f"{self.name} has a header row and no rows.")
        return writer.sizes

    def _expected_bytes(self) -> int | None:
        """Bytes of the text, where that is known."""
        with self.path.open("rb") as file:
            return None if file.read(len(GZ)) == GZ else self.path.stat().st_size

    def _look_at(self, head: bytes, like: Chosen | None, *, more: bool, cut: bool) -> Dialect:
        """See from the beginning how the text is written and what its columns hold."""
        _refuse_other_encodings(head, final=not cut)
        how = self.options
        data = np.frombuffer(head, np.uint8)
        dialect = sniff(data, self.name, how.na, how.decimal)
        self.all_names = tuple(unique_names(dialect.header, dialect.width)[0])
        if cut:  # within a record, as a rule
            head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1] or head
        lines = head.split(b"\n", LOOK + dialect.skipped)
        if len(lines) > LOOK + dialect.skipped and head.count(b'"') == 0:
            head, cut = b"\n".join(lines[:-1]) + b"\n", cut or bool(lines[-1])
        asked = (how.label, how.id, *how.shown.values())
        literal = [name for name in asked if name is not None]
        content = FileContent(
            self.name, np.frombuffer(head, np.uint8), "text", Budget.from_memory(None)
        )
        first = read_csv(content, literal=literal, na=how.na, decimal=how.decimal)
        chosen = choose(first, how, like, more=more or cut)
        self.chosen = replace(chosen, dtype=np.dtype(np.float64))
        self.names = chosen.names if dialect.header is not None else None
        self.columns, self.dtype, self.roles = len(chosen.names), self.chosen.dtype, chosen.roles
        self.notes = (*first.notes, *chosen.notes)
        return replace(dialect, sample=dialect.sample[:1])  # it has been seen

    def _batch(self, piece: TextPiece) -> Any:
        """The records of a piece as numbers and texts."""
        data, above = piece.data, piece.line - 1
        _refuse_open_quote(data, piece.seen, self.dialect, self.name, above)
        table = self._columns_of(piece)
        columns = dict(zip((*self.chosen.numbers, *self.texts), table.columns, strict=True))
        raw = RawTable(self.name, columns, decimal=self.dialect.decimal)
        try:
            numbers = numbers_of(raw, self.chosen, self.options)
        except FileError:  # in which line?
            places = locate(
                data, piece.seen, delimiter=self.dialect.delimiter, skipped=0, rows=table.num_rows
            )
            raw = replace(raw, places=places.below(above))
            numbers = numbers_of(raw, self.chosen, self.options)
        arrays = [pa.array(column) for column in np.asfortranarray(numbers).T]
        texts = [columns[name].combine_chunks().cast(pa.large_string()) for name in self.texts]
        names = [*self.chosen.names, *self.texts]
        return pa.RecordBatch.from_arrays([*arrays, *texts], names)

    def _columns_of(self, piece: TextPiece) -> Any:
        """Columns of numbers and then of texts, as far as pyarrow can tell numbers by itself."""
        chosen, quoted = self.chosen, piece.seen.quotes > 0
        texts = {*self.texts, *chosen.marks, *chosen.truths}
        plain = {name for name in chosen.numbers if name not in texts}
        include = [str(self.all_names.index(name)) for name in (*chosen.numbers, *self.texts)]
        block = BLOCK
        while True:
            types = {
                str(j): NUMBER if name in plain else TEXT for j, name in enumerate(self.all_names)
            }
            try:
                return _parse(
                    piece.data[:], types, self.dialect, self.options.na, quoted, block, include
                )
            except pa.ArrowInvalid as error:
                if "straddl" in str(error) and block <= piece.data.size:
                    block = piece.data.size + 1
                elif UNCONVERTED.search(str(error)) and plain:
                    plain = set()  # `numbers_of` knows more: spaces, a plus; and says what is none
                else:
                    if quoted:
                        _refuse_unclosed(piece.data, self.dialect, self.name, piece.line - 1)
                    _refuse_ragged(piece.data, self.dialect, self.name, piece.line - 1)
                    raise FileError(f"{self.name} cannot be read as CSV ({error}).") from None

    def _numbers(self, columns: list[Any], first: int) -> NDArray[Any]:
        return beside_each_other(columns, self.dtype)

    def _positions(self, names: Sequence[str]) -> list[int]:
        """Where texts stand in the copy: behind all numbers."""
        return [self.columns + self.texts.index(name) for name in names]

    def _raw(self, columns: list[Any], names: tuple[str, ...], first: int) -> RawTable:
        found = dict(zip(names, columns, strict=True))
        return RawTable(self.name, found, decimal=self.dialect.decimal)


def _refuse_other_encodings(head: bytes, *, final: bool) -> None:
    """Before names are read: records are looked through below them."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=final)
    except UnicodeDecodeError as error:
        line = line_of_byte(np.frombuffer(head, np.uint8), error.start)
        raise OtherEncodingError(line, head[error.start]) from None
