"""Row groups of Parquet files and record batches of Feather files, read in any order.

What a Parquet file says about itself stands at its end, and grows with it: it is read once, not for
every row group. Columns of a row group that is not too large are decoded whole; of a larger one, a
piece of each column is read at a time. `gnomon.data.formats.io` reads bytes and prefetches them;
here is which bytes a row group takes.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from gnomon.data.formats.io import Disk, DiskFile, Ranges

__all__ = ["FeatherGroups", "Groups", "ParquetGroups"]

WHOLE = 2**26  # bytes of a row group that is always decoded at once
PIECES = 2**26  # bytes of the pieces of all columns of a larger one, unless there are many
PIECE = 2**17  # bytes of a column that are read at a time, at the least
Spans = list[tuple[str, int, int]]  # a column, bytes from, to
WIDTHS = {"BOOLEAN": 1, "FLOAT": 4, "INT32": 4, "DOUBLE": 8, "INT64": 8}  # bytes, once decoded

# A file that was written anew may have fewer row groups, which is an IndexError.
HARMLESS = (OSError, pa.ArrowException, IndexError)

MOST_READERS = 2  # of a thread: two tables may be read side by side


class _Readers(threading.local):
    """Readers of the files that a thread read last, for as long as these files are referenced."""

    def __init__(self) -> None:
        self.latest: WeakKeyDictionary[ParquetGroups, tuple[Any, Any, Any]] = WeakKeyDictionary()


_mine = _Readers()


class ParquetGroups:
    """Row groups of a Parquet file; a copy that was pickled looks at the file again."""

    def __init__(self, path: Path) -> None:
        self.path, self.disk = path, Disk(path)
        self.known: tuple[Any, Any] | None = None  # when the file was looked at, and what it said
        self.width: int | None = None  # bytes of a row's numbers, once they are decoded
        self.flat: set[str] = set()  # columns of numbers
        self.spans: dict[int, tuple[Any, Spans]] = {}  # of the row groups looked at last
        self.columns: list[str] = self._open(native(path), 0).schema_arrow.names
        # Of columns with the same name pyarrow reads all, and with "s" a column "s.x" as well.
        outer = {
            name[:i] for name in self.columns for i, letter in enumerate(name) if letter == "."
        }
        same = len({*self.columns}) < len(self.columns)
        self.apart = not same and outer.isdisjoint(self.columns)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "known": None, "spans": {}}

    def sizes(self) -> list[int]:
        """Rows of each row group."""
        meta = self._metadata()
        return [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]

    def count(self) -> int:
        """How many there are now."""
        return int(self._metadata().num_row_groups)

    def batches(
        self, groups: range, columns: list[int], rows: int, at_once: int = 0
    ) -> Iterator[Any]:
        """Batches of the columns with these numbers.

        Row groups of up to `at_once` bytes are decoded at once, and small ones anyway.
        """
        names = self._names(columns)
        there = sum(self._metadata().row_group(i).num_rows for i in groups)
        # The blocks themselves are shared by threads; pyarrow's own would only cost more.
        asked = {
            "row_groups": list(groups),
            "columns": names if self.apart else None,
            "use_threads": False,
        }
        if there <= rows or self._is_small(groups, names, at_once):
            found = iter(self._whole(asked, groups, {*names}, max(1, there)))
        else:
            file = DiskFile(self.disk) if self.disk.past else native(self.path)
            reader = self._open(file, max(PIECE, PIECES // len(self.columns)))
            found = reader.iter_batches(batch_size=rows, **asked)
        for batch in found:
            yield batch if self.apart else batch.select(columns)

    def _whole(self, asked: dict[str, Any], groups: range, names: set[str], rows: int) -> list[Any]:
        """All batches, decoded; the bytes that they were read from are released."""
        if not self.disk.past:
            return list(self._open(native(self.path), 0).iter_batches(batch_size=rows, **asked))
        file, reader = self._reader()
        file.parts = self.disk.read_parts(self._ranges(groups, names))
        try:
            return list(reader.iter_batches(batch_size=rows, **asked))
        finally:
            file.parts = ()

    def _reader(self) -> tuple[DiskFile, Any]:
        """The one of this thread, if it has read this file just now.

        To open a file takes as long as to decode some columns.
        """
        meta, latest = self._metadata(), _mine.latest
        known, file, reader = latest.get(self, (None, None, None))
        if known is meta:
            return file, reader
        latest.pop(self, None)  # the newest is last
        file = DiskFile(self.disk)
        latest[self] = meta, file, self._open(file, 0)
        while len(latest) > MOST_READERS:
            del latest[next(iter(latest))]
        return latest[self][1:]

    def prefetch(self, groups: range, columns: list[int], at_once: int = 0) -> None:
        """Prefetch the bytes that `batches` will read.

        It is a hint: errors are raised when `batches` reads.
        """
        names = self._names(columns)
        with suppress(*HARMLESS):
            if not self.disk.past or self._is_small(groups, names, at_once):
                self.disk.prefetch(self._ranges(groups, {*names}))

    def drop(self, groups: range, columns: list[int]) -> None:
        """Forget what was read of it."""
        with suppress(*HARMLESS):
            self.disk.drop(self._ranges(groups, {*self._names(columns)}))

    def drop_all(self) -> None:
        """Forget all that was read beforehand."""
        self.disk.drop_all()

    def _names(self, columns: list[int]) -> list[str]:
        return [self.columns[j] for j in columns] if self.apart else self.columns

    def _is_small(self, groups: range, names: list[str], at_once: int) -> bool:
        """Whether there is room for these row groups as a whole, as far as that can be known."""
        meta = self._metadata()
        if self.width is None:
            leaves = [meta.schema.column(j) for j in range(meta.num_columns)]
            flat = [
                leaf
                for leaf in leaves
                if leaf.path in self.columns and leaf.physical_type in WIDTHS
            ]
            self.flat = {leaf.path for leaf in flat}
            self.width = sum(WIDTHS[leaf.physical_type] for leaf in flat)
        if not self.flat.issuperset(names):  # texts and lists, of unknown length
            return False
        found = [meta.row_group(i) for i in groups]
        # What repeats takes little room in the file, and its own once it is decoded.
        decoded = sum(group.num_rows for group in found) * self.width
        stored = sum(group.total_byte_size for group in found)
        return bool(max(decoded, stored) <= max(WHOLE, at_once))

    def _ranges(self, groups: range, names: set[str]) -> Ranges:
        """Where the columns stand in the file: bytes from, to; neighbours are one range."""
        found: list[tuple[int, int]] = []
        for i in groups:
            spans = self._spans(i)
            # The numbers of a column of lists stand under a longer name.
            lists = tuple(f"{name}." for name in names.difference(path for path, *_ in spans))
            for path, start, stop in spans:
                if path not in names and not path.startswith(lists):
                    continue
                if found and 0 <= start - found[-1][1] < PIECE:
                    start = found.pop()[0]
                found.append((start, stop))
        return tuple(found)

    def _spans(self, group: int) -> Spans:
        """Where each column of a row group stands in the file."""
        meta = self._metadata()
        known, spans = self.spans.get(group, (None, []))
        if known is not meta:
            found, spans = meta.row_group(group), []
            for j in range(found.num_columns):
                chunk = found.column(j)
                first = chunk.dictionary_page_offset
                start = chunk.data_page_offset if first is None else first
                spans.append((chunk.path_in_schema, start, start + chunk.total_compressed_size))
            self.spans = {**dict(list(self.spans.items())[-7:]), group: (meta, spans)}
        return spans

    def _open(self, file: Any, buffer: int) -> Any:
        return pq.ParquetFile(file, metadata=self._metadata(), buffer_size=buffer, pre_buffer=False)

    def _metadata(self) -> Any:
        """What the file says about itself, unless it changed since then."""
        now = self.path.stat()
        stamp = (now.st_mtime_ns, now.st_size)
        if self.known is None or self.known[0] != stamp:
            self.known = stamp, pq.read_metadata(native(self.path))
        return self.known[1]


def native(path: Path) -> Any:
    """An open file of pyarrow's own, whatever its name; names as text must be UTF-8."""
    return pa.OSFile(os.fsencode(path))


class FeatherGroups:
    """Record batches of a Feather file."""

    apart = True  # columns are read by their numbers

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = self._file(None).schema.names

    def sizes(self) -> list[int]:
        """Rows of each record batch: they are written nowhere else, so one column is read."""
        file = self._file([0])
        return [file.get_batch(i).num_rows for i in range(file.num_record_batches)]

    def count(self) -> int:
        """How many there are now."""
        return int(self._file(None).num_record_batches)

    def batches(
        self, groups: range, columns: list[int], rows: int, at_once: int = 0
    ) -> Iterator[Any]:
        """Batches of the columns with these numbers, in parts of so many rows."""
        file = self._file(sorted(columns))
        order = [sorted(columns).index(j) for j in columns]
        for i in groups:
            batch = file.get_batch(i).select(order)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def prefetch(self, groups: range, columns: list[int], at_once: int = 0) -> None:
        """Record batches are read in one go, with nothing to decode meanwhile."""

    def drop(self, groups: range, columns: list[int]) -> None:
        """Nothing is read beforehand."""

    def drop_all(self) -> None:
        """Nothing is read beforehand."""

    def _file(self, columns: list[int] | None) -> Any:
        options = ipc.IpcReadOptions(included_fields=columns)
        return ipc.open_file(native(self.path), options=options)


Groups = ParquetGroups | FeatherGroups
