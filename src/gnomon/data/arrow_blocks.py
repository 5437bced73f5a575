"""Parquet and Feather in blocks of rows.

A file has row groups (Parquet) or record batches (Feather), which can be read in any order. Small
ones are taken together and large ones divided, until a block has about the rows wanted; the blocks
inside a large one are read from front to back (`gnomon.engine.cursor`). Row groups of the size of a
block or a few are best: several threads, or workers of a cluster, then share the file.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gnomon.data.arrow_files import DAMAGED, brief, decoded
from gnomon.data.blocks import LOOK, BlockFile, Piece, choose, numbers_of
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError
from gnomon.data.roles import Wishes
from gnomon.data.table import Places
from gnomon.engine.cursor import Cursor
from gnomon.engine.source import partition_rows

__all__ = ["ArrowBlocks"]

MOST_OPEN = 3  # row groups that are being read at the same time: threads are in two, as a rule
BUFFER = 2**17  # bytes of a column that are read at a time, where a row group is large


_lock = threading.Lock()  # around the lists of cursors, which is quick


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


class ArrowBlocks(BlockFile):
    """The columns of numbers of a Parquet or Feather file."""

    def __init__(self, path: Path, wishes: Wishes, rows: int | None, kind: str) -> None:
        self.path, self.name, self.wishes = path, path.name, wishes
        self.opener = _Parquet if kind == "parquet" else _Feather
        self.cursors: dict[int, Cursor[Any]] = {}
        file = self._open()
        if not file.columns:
            raise FileError(f"{self.name} has no columns.")
        groups = self._sizes(file)
        if not sum(groups):
            raise FileError(f"{self.name} has names of columns and no rows.")
        self.all_names = tuple(unique_names(file.columns, len(file.columns))[0])
        first = next(self._tables(file, range(file.count), range(len(file.columns)), LOOK))
        self.chosen = choose(self._raw(first, self.all_names, 0), wishes)
        self.names, self.columns = self.chosen.names, len(self.chosen.names)
        self.dtype = self.chosen.dtype
        self.used = [self.all_names.index(name) for name in self.chosen.numbers]
        self.runs = _runs(groups, partition_rows(self.columns, rows))
        self.pieces = [
            Piece(run.first + at * run.rows[0], size, Place(number, at))
            for number, run in enumerate(self.runs)
            for at, size in enumerate(run.rows)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cursors": {}}

    def read(self, piece: Piece) -> NDArray[Any]:
        """A block; what is before it in the same row group has just been read, as a rule."""
        number, at = piece.place
        table = self._cursor(number).take(at)
        if table is None:
            return np.empty((0, self.columns), self.dtype)
        return numbers_of(
            self._raw(table, self.chosen.numbers, piece.first), self.chosen, self.wishes
        )

    def _cursor(self, number: int) -> Cursor[Any]:
        """Where the run is being read; those that nobody will ask for again are let go."""
        run = self.runs[number]
        if len(run.rows) == 1:
            return Cursor(lambda: self._run(run))
        with _lock:
            cursor = self.cursors.get(number)
            if cursor is None or cursor.given >= len(run.rows):
                cursor = self.cursors[number] = Cursor(lambda: self._run(run))
            while len(self.cursors) > MOST_OPEN:
                del self.cursors[next(iter(self.cursors))]
        return cursor

    def _run(self, run: Run) -> Iterator[Any]:
        file = self._open(buffered=len(run.rows) > 1)
        if run.end > file.count:
            return iter(())
        return self._tables(file, range(run.begin, run.end), self.used, run.rows[0])

    def _raw(self, table: Any, names: tuple[str, ...], first: int) -> RawTable:
        columns = dict(zip(names, map(decoded, table.columns), strict=True))
        places = Places(rows=np.arange(first, first + table.num_rows))
        return RawTable(self.name, columns, places=places)

    def _open(self, *, buffered: bool = False) -> "_Parquet | _Feather":
        try:
            return self.opener(self.path, buffered)
        except pa.ArrowException as error:
            raise self._damaged(error) from None

    def _sizes(self, file: "_Parquet | _Feather") -> list[int]:
        try:
            return file.sizes()
        except pa.ArrowException as error:
            raise self._damaged(error) from None

    def _tables(self, file: Any, groups: range, columns: Any, rows: int) -> Iterator[Any]:
        """Tables of exactly `rows` rows, but for the last."""
        waiting: list[Any] = []
        there = 0
        try:
            for batch in file.batches(groups, list(columns), rows):
                waiting.append(batch)
                there += batch.num_rows
                while there >= rows:
                    table = pa.Table.from_batches(waiting)
                    yield table.slice(0, rows)
                    there -= rows
                    waiting = table.slice(rows).to_batches() if there else []
        except pa.ArrowException as error:
            raise self._damaged(error) from None
        if there:
            yield pa.Table.from_batches(waiting)

    def _damaged(self, error: Exception) -> FileError:
        return FileError(f"{self.name} is a damaged file ({brief(error)}).", DAMAGED)


class _Parquet:
    """Row groups of a Parquet file."""

    def __init__(self, path: Path, buffered: bool) -> None:
        self.file = pq.ParquetFile(path, buffer_size=BUFFER if buffered else 0, pre_buffer=False)
        self.columns = self.file.schema_arrow.names
        self.count = self.file.metadata.num_row_groups

    def sizes(self) -> list[int]:
        """Rows of each row group."""
        return [self.file.metadata.row_group(i).num_rows for i in range(self.count)]

    def batches(self, groups: range, columns: list[int], rows: int) -> Iterator[Any]:
        """Batches of the columns with these numbers."""
        names = [self.columns[j] for j in columns]
        if len(set(self.columns)) < len(self.columns):  # pyarrow would take all of one name
            names = self.columns
        # The blocks themselves are shared by threads; pyarrow's own would only cost more.
        found = self.file.iter_batches(
            batch_size=rows, row_groups=list(groups), columns=names, use_threads=False
        )
        for batch in found:
            yield batch if names is not self.columns else batch.select(columns)


class _Feather:
    """Record batches of a Feather file."""

    def __init__(self, path: Path, _: bool) -> None:
        self.path = path
        file = self._file(None)
        self.columns, self.count = file.schema.names, file.num_record_batches

    def sizes(self) -> list[int]:
        """Rows of each record batch: they are written nowhere else, so one column is read."""
        file = self._file([0])
        return [file.get_batch(i).num_rows for i in range(self.count)]

    def batches(self, groups: range, columns: list[int], rows: int) -> Iterator[Any]:
        """Batches of the columns with these numbers, in parts of so many rows."""
        file = self._file(sorted(columns))
        order = [sorted(columns).index(j) for j in columns]
        for i in groups:
            batch = file.get_batch(i).select(order)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _file(self, columns: list[int] | None) -> Any:
        options = ipc.IpcReadOptions(included_fields=columns)
        return ipc.open_file(pa.OSFile(str(self.path)), options=options)


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
