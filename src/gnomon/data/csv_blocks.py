"""CSV and its kin in blocks of rows.

1. How the text is written, and which columns are numbers, is seen from its beginning.
2. A first pass over the bytes finds where every block begins and on which line: after a newline
   with an even number of quotes before it. Blank lines are no rows. Where a quote is a letter of a
   plain field, or a return alone ends a line, it begins again, byte by byte.
3. A block is its bytes, read by pyarrow. A cell that is no number, or a line of another length, is
   found by the slow reader of `gnomon.data.lines`, with its line.

The text must be UTF-8: other encodings would have to be turned as a whole.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from gnomon.budget import Budget
from gnomon.data.blocks import AT_ONCE, LOOK, BlockFile, Chosen, Piece, choose, numbers_of
from gnomon.data.content import Content
from gnomon.data.csv_files import read_csv
from gnomon.data.dialect import MISSING, Dialect, is_number, sniff
from gnomon.data.disk import read_as_usual
from gnomon.data.lines import NEWLINE, QUOTE, RETURN, line_of_byte, read_records
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.records import RecordFinder
from gnomon.data.refusals import FileError, quoted
from gnomon.data.table import Places, count
from gnomon.data.wishes import Wishes
from gnomon.engine.source import partition_rows
from gnomon.files import shown_name

__all__ = ["CsvBlocks"]

STEP = 2**24
BEGINNING = 2**23  # bytes that are looked at to see what columns hold
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
ENCODE = "Save it as UTF-8."
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


class Place(NamedTuple):
    """Bytes of a block, and the line that it begins on."""

    begin: int
    end: int
    line: int


class CsvBlocks(BlockFile):
    """The columns of numbers of a delimited text."""

    def __init__(
        self,
        path: Path,
        wishes: Wishes,
        rows: int | None,
        like: Chosen | None = None,
        *,
        more: bool = False,
    ) -> None:
        self.path, self.name, self.wishes = path, shown_name(path), wishes
        head = read_as_usual(path, 0, BEGINNING).tobytes()
        if head.startswith(UTF16):
            raise FileError(f"{self.name} is UTF-16, which is not read in blocks.", ENCODE)
        self.skip = len(BOM) if head.startswith(BOM) else 0
        self._refuse_other_encodings(head)
        self.dialect = self._sniff(head[self.skip :])
        self.all_names = tuple(unique_names(self.dialect.header, self.dialect.width)[0])
        more = more or len(head) == BEGINNING
        self.chosen = self._choose(head[self.skip :], like, more=more)
        self.names = self.chosen.names if self.dialect.header is not None else None
        self.columns, self.dtype = len(self.chosen.names), self.chosen.dtype
        self.roles, self.notes = self.chosen.roles, self.chosen.notes
        self.dialect = replace(self.dialect, sample=self.dialect.sample[:1])  # it has been seen
        survey = _Survey(self, partition_rows(self.columns, rows))
        self.quotes, self.pieces = survey.quotes > 0, survey.pieces

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> NDArray[Any]:
        """The rows of a block."""
        place: Place = piece.place
        data = read_as_usual(self.path, place.begin, place.end - place.begin)
        if data.size < place.end - place.begin:
            return np.empty((0, self.columns), self.dtype)
        try:
            table = self._table(data, texts=False)
        except pa.ArrowInvalid as error:
            places = Places(lines=self._explain(data, place, error))
            # All are numbers, as in memory: with spaces that pyarrow does not know, or a plus.
            table = self._table(data, texts=True)
        else:
            places = Places()
        columns = dict(zip(self.chosen.numbers, table.columns, strict=True))
        raw = RawTable(self.name, columns, places=places, decimal=self.dialect.decimal)
        try:
            return numbers_of(raw, self.chosen, self.wishes)
        except FileError:
            if places.lines is not None:
                raise
            # A cell of a column with thousands separators, which was read as text: on which line?
            records = read_records(data, self.dialect.delimiter)
            lines = np.array([place.line + record.line - 1 for record in records], np.int64)
            return numbers_of(replace(raw, places=Places(lines=lines)), self.chosen, self.wishes)

    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All cells of some columns as text, block after block."""
        for piece in self.pieces:
            place: Place = piece.place
            data = read_as_usual(self.path, place.begin, place.end - place.begin)
            try:
                table = self._table(data, texts=True, names=names)
            except pa.ArrowInvalid as error:
                self._explain(data, place, error)
                raise
            columns = dict(zip(names, table.columns, strict=True))
            yield RawTable(self.name, columns, decimal=self.dialect.decimal)

    def _table(
        self, data: NDArray[np.uint8], *, texts: bool, names: Sequence[str] | None = None
    ) -> Any:
        """The columns in use, or those called `names`, as what they hold or as `texts`."""
        names = self.chosen.numbers if names is None else names
        used = {self.all_names.index(name): name for name in names}

        def kind(j: int) -> Any:
            if texts or used.get(j) in self.chosen.marks:
                return pa.string()
            return pa.bool_() if used.get(j) in self.chosen.truths else pa.float64()

        types = {str(j): kind(j) for j in range(self.dialect.width)}
        return pc.read_csv(
            pa.BufferReader(data.data),
            pc.ReadOptions(column_names=list(types), block_size=data.size + 1, use_threads=False),
            pc.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=self.quotes),
            pc.ConvertOptions(
                column_types=types,
                include_columns=[str(j) for j in used],
                null_values=[*MISSING, *self.wishes.na],
                decimal_point=self.dialect.decimal,
                true_values=TRUE,
                false_values=FALSE,
            ),
        )

    def _refuse_other_encodings(self, head: bytes) -> None:
        """Before names are read: the survey begins below them."""
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < BEGINNING)
        except UnicodeDecodeError as error:
            line = line_of_byte(np.frombuffer(head, np.uint8), error.start)
            raise _other_encoding(self.name, line, head[error.start]) from None

    def _sniff(self, head: bytes) -> Dialect:
        how = self.wishes
        return sniff(np.frombuffer(head, np.uint8), self.name, how.na, how.decimal)

    def _choose(self, head: bytes, like: Chosen | None, *, more: bool) -> Chosen:
        """What columns hold, from whole records at the beginning, or as in the file before."""
        if len(head) + self.skip == BEGINNING:  # cut off
            head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1] or head
        asked = (self.wishes.label, self.wishes.id, *self.wishes.shown.values())
        literal = [name for name in asked if name is not None]
        lines = head.split(b"\n", LOOK + self.dialect.skipped)
        if len(lines) > LOOK + self.dialect.skipped and head.count(b'"') == 0:
            head, more = b"\n".join(lines[:-1]) + b"\n", more or bool(lines[-1])
        content = Content(
            self.name, np.frombuffer(head, np.uint8), "text", Budget.from_memory(None)
        )
        how = self.wishes
        first = read_csv(content, literal=literal, na=how.na, decimal=how.decimal)
        chosen = choose(first, how, like, more=more)
        notes = (*first.notes, *chosen.notes)
        return replace(chosen, dtype=np.dtype(np.float64), notes=notes)

    def _explain(
        self, data: NDArray[np.uint8], place: Place, error: Exception
    ) -> NDArray[np.int64]:
        """Name the line that pyarrow could not read; the lines of all rows if each can be."""
        wrong = re.search(r"CSV column #(\d+)", str(error))
        missing = {*MISSING, *self.wishes.na}
        lines: list[int] = []
        for record in read_records(data, self.dialect.delimiter):
            line, fields = place.line + record.line - 1, record.fields
            lines.append(line)
            if len(fields) != self.dialect.width:
                first = "the first line" if self.dialect.header is None else "the line of names"
                raise FileError(
                    f"{self.name}, line {line}: {count(len(fields), 'field')}, where {first} has "
                    f"{self.dialect.width}.",
                    "Mend the line, or remove it.",
                ) from None
            if wrong is None:
                continue
            name, cell = self.all_names[int(wrong[1])], fields[int(wrong[1])].strip()
            if cell in missing or self._fits(name, cell):
                continue
            what = "not only true and false" if name in self.chosen.truths else "text"
            raise FileError(
                f"{self.name}: column {quoted(name)} holds {what} (first: line {line}, "
                f"{quoted(cell)}).",
                ("na", cell),
                ("drop", name),
            ) from None
        if wrong is None:
            raise FileError(f"{self.name} cannot be read as CSV ({error}).") from None
        return np.array(lines, np.int64)

    def _fits(self, name: str, cell: str) -> bool:
        """Whether a cell is what its column holds."""
        if name in self.chosen.truths:
            return cell in (*TRUE, *FALSE)
        return is_number(cell, self.dialect.decimal)


def _other_encoding(file: str, line: int, byte: int) -> FileError:
    return FileError(
        f"{file}, line {line}: byte 0x{byte:02X} is not UTF-8, and other encodings are not read in "
        "blocks.",
        ENCODE,
    )


class _UnusualError(Exception):
    """Quotes that are letters, or lines that end in a return: to count quotes is not enough."""


class _Survey:
    """One pass over the bytes: where blocks begin, and whether the text can be read.

    Attributes
    ----------
    pieces : list of Piece
        Blocks of so many rows, the last one shorter.
    quotes : int
        How many there are.
    """

    def __init__(self, file: CsvBlocks, rows: int) -> None:
        self.file = file
        self.delimiter = ord(file.dialect.delimiter)
        self.finder: RecordFinder | None = None
        try:
            self._divide(rows)
        except _UnusualError:
            self.finder = RecordFinder(file.dialect.delimiter, file.dialect.skipped + 1)
            self._divide(rows)

    def _divide(self, rows: int) -> None:
        self.pieces: list[Piece] = []
        self.quotes = 0
        # of the chunk, and of the line
        self.at = self.start = self.file.skip + self.file.dialect.body
        self.line = self.file.dialect.skipped + 1
        self.quoted_from = 0  # the line on which the present quote was opened; 0 outside of quotes
        self.before = NEWLINE  # the byte before the chunk
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        begin, line, first, there = self.start, self.line, 0, 0
        for ends, lines in self._records():
            at = 0
            while there + ends.size - at >= rows:
                last = at + rows - there - 1
                end = int(ends[last])
                self.pieces.append(Piece(first, rows, Place(begin, end, line)))
                first, begin, line = first + rows, end, int(lines[last]) + 1
                there, at = 0, last + 1
            there += ends.size - at
        if there:
            self.pieces.append(Piece(first, there, Place(begin, self.at, line)))

    def _records(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of every chunk: the bytes after its records, and the lines on which they end."""
        whole, size = True, self.file.path.stat().st_size
        while whole:
            chunk = read_as_usual(self.file.path, self.at, STEP)
            whole = chunk.size == STEP and self.at + STEP < size  # and more to come
            self._check_text(chunk, whole)
            if self.finder is not None:
                yield self._find(self.finder, chunk, whole)
            elif chunk.size:
                self._refuse_unusual(chunk, whole)
                yield self._look_through(chunk, whole)
        if self.quoted_from:
            raise FileError(
                f"{self.file.name}, line {self.quoted_from}: a quote is opened and never closed.",
                "Close it, or double it if it is part of the text.",
            )

    def _find(
        self, finder: RecordFinder, chunk: NDArray[np.uint8], whole: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        records = finder.find(chunk, self.at, last=not whole)
        self.line, self.quoted_from = finder.line, finder.quoted_from
        self.quotes += int(np.count_nonzero(chunk == QUOTE))
        self.at += chunk.size
        self.before = int(chunk[-1]) if chunk.size else self.before
        return records

    def _refuse_unusual(self, chunk: NDArray[np.uint8], whole: bool) -> None:
        """See that every second quote begins a field, and that every return has its newline."""
        quotes = np.flatnonzero(chunk == QUOTE)[self.quotes % 2 :: 2]
        before = np.where(quotes > 0, chunk[quotes - 1], self.before)
        if not np.isin(before, (self.delimiter, NEWLINE, QUOTE)).all():
            raise _UnusualError
        if self.before == RETURN and chunk[0] != NEWLINE:
            raise _UnusualError
        if chunk.size and (chunk == RETURN).any():
            returns = np.flatnonzero(chunk == RETURN)
            last = returns[-1] == chunk.size - 1
            followed = chunk[returns[:-1] + 1 if last else returns + 1]
            if (followed != NEWLINE).any() or (last and not whole):
                raise _UnusualError

    def _look_through(
        self, chunk: NDArray[np.uint8], whole: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        newlines = np.flatnonzero(chunk == NEWLINE)
        if not whole and chunk[-1] != NEWLINE:
            newlines = np.append(newlines, chunk.size)  # the last line ends with the file
        quotes = np.flatnonzero(chunk == QUOTE)
        ends = np.minimum(newlines + 1, chunk.size) + self.at
        starts = np.concatenate([[self.start], ends[:-1]])[: ends.size]
        lines = self.line + np.arange(ends.size)
        # a line ends a record if the number of quotes before its end is even
        inside = (self.quotes + np.searchsorted(quotes, newlines)) % 2 == 1
        began_inside = np.concatenate([[self.quoted_from > 0], inside[:-1]])[: ends.size]
        length = newlines + self.at - starts
        last_letter = np.where(newlines > 0, chunk[newlines - 1], self.before)
        blank = ~began_inside & ((length == 0) | ((length == 1) & (last_letter == RETURN)))
        records = ~inside & ~blank
        if ends.size:
            opened = lines[inside & ~began_inside]
            if not inside[-1]:
                self.quoted_from = 0
            elif opened.size:
                self.quoted_from = int(opened[-1])
            self.start = int(ends[-1])
        self.line += ends.size
        self.quotes += quotes.size
        self.at += chunk.size
        self.before = int(chunk[-1])
        return ends[records], lines[records]

    def _check_text(self, chunk: NDArray[np.uint8], whole: bool) -> None:
        name = self.file.name
        if chunk.size and chunk.min() == 0:
            line = self._line_of(chunk, int(np.flatnonzero(chunk == 0)[0]))
            raise FileError(
                f"{name}, line {line}: there is a NUL byte.",
                "The file is damaged, or it is no text.",
            )
        begun = len(self.decoder.getstate()[0])  # bytes of a letter, in the chunk before
        if chunk.max(initial=0) < 128 and not begun:
            return
        try:
            self.decoder.decode(chunk.tobytes(), final=not whole)
        except UnicodeDecodeError as error:
            line = self._line_of(chunk, max(0, error.start - begun))
            raise _other_encoding(name, line, error.object[error.start]) from None

    def _line_of(self, chunk: NDArray[np.uint8], at: int) -> int:
        """The line of a byte; a return ends one as well, unless a newline follows."""
        text = np.concatenate([[self.before], chunk[: at + 1]])
        alone = (text[:-1] == RETURN) & (text[1:] != NEWLINE)
        return self.line + int(np.count_nonzero(text[1:-1] == NEWLINE) + np.count_nonzero(alone))
