"""Parquet and Feather in blocks of rows.

A file has row groups (Parquet) or record batches (Feather), which can be read in any order. Small
ones are taken together and large ones divided, until a block has about the rows wanted; the blocks
inside a large one are read from front to back (`gnomon.engine.cursor`), a strip of columns at a
time: threads that want neighbouring blocks take the strips from opposite ends and share the work.
Row groups of the size of a block or a few are best: workers of a cluster then share the file too.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.data.arrow_files import DAMAGED, brief, decoded
from gnomon.data.blocks import LOOK, BlockFile, Chosen, Piece, choose, numbers_of
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError
from gnomon.data.roles import Wishes
from gnomon.data.row_groups import FeatherGroups, Groups, ParquetGroups
from gnomon.data.table import Places
from gnomon.engine.cursor import Cursor
from gnomon.engine.source import partition_rows
from gnomon.parallel import row_blocks

__all__ = ["ArrowBlocks"]

T = TypeVar("T")

STRIPS = 8  # of columns, in a row group that is divided
MOST_OPEN = 3  # row groups that are being read at the same time: threads are in two, as a rule

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

    def __init__(
        self,
        path: Path,
        wishes: Wishes,
        rows: int | None,
        kind: str,
        like: Chosen | None = None,
    ) -> None:
        self.path, self.name, self.wishes = path, path.name, wishes
        self.cursors: dict[int, list[Cursor[Any]]] = {}
        self.latest = -1  # the run that was begun last
        opener = ParquetGroups if kind == "parquet" else FeatherGroups
        self.file: Groups = self._asked(lambda: opener(path))
        columns = self.file.columns
        if not columns:
            raise FileError(f"{self.name} has no columns.")
        groups = self._asked(self.file.sizes)
        if not sum(groups):
            raise NoRowsError(f"{self.name} has names of columns and no rows.")
        self.most_strips = STRIPS if self.file.apart else 1
        self.all_names = tuple(unique_names(columns, len(columns))[0])
        first = next(self._tables(range(len(groups)), list(range(len(columns))), LOOK))
        self.chosen = choose(self._raw(first.columns, self.all_names, 0), wishes, like)
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
        return {**super().__getstate__(), "cursors": {}, "latest": -1}

    def read(self, piece: Piece) -> NDArray[Any]:
        """A block; what is before it in the same row group has just been read, as a rule."""
        number, at = piece.place
        strips = self._strips(number)
        found: dict[int, list[Any]] = {}
        for i in range(len(strips)) if at % 2 else reversed(range(len(strips))):
            table = strips[i].take(at)
            if table is None:
                return np.empty((0, self.columns), self.dtype)
            found[i] = table.columns
        self._done_with(number, strips)
        columns = [column for i in range(len(strips)) for column in found[i]]
        return numbers_of(
            self._raw(columns, self.chosen.numbers, piece.first), self.chosen, self.wishes
        )

    def let_go(self, but: Place | None = None) -> None:
        """Whoever reads on in another row group begins it again."""
        here = None if but is None else but.run
        with _lock:
            self.cursors = {run: found for run, found in self.cursors.items() if run == here}

    def _strips(self, number: int) -> list[Cursor[Any]]:
        """Where the strips of a run are being read; only a few runs are, at a time."""
        if len(self.runs[number].rows) == 1:
            return self._begin(number)
        with _lock:
            strips = self.cursors.get(number)
            if strips is None:
                strips = self.cursors[number] = self._begin(number)
            while len(self.cursors) > MOST_OPEN:
                del self.cursors[next(iter(self.cursors))]
        return strips

    def _begin(self, number: int) -> list[Cursor[Any]]:
        return [Cursor(partial(self._run, number, columns)) for columns in self._columns(number)]

    def _columns(self, number: int) -> list[list[int]]:
        """Which columns stand in which strip of a run; all in one, unless it is divided."""
        most = self.most_strips if len(self.runs[number].rows) > 1 else 1
        bounds = row_blocks(len(self.used), -(-len(self.used) // most))
        return [self.used[begin:end] for begin, end in bounds]

    def _done_with(self, number: int, strips: list[Cursor[Any]]) -> None:
        """Forget about a run whose blocks are all given: nobody will ask for them again."""
        blocks = len(self.runs[number].rows)
        if all(strip.given >= blocks for strip in strips):
            with _lock:
                if self.cursors.get(number) is strips:
                    del self.cursors[number]

    def _run(self, number: int, columns: list[int]) -> Iterator[Any]:
        run = self.runs[number]
        if run.end > self._asked(self.file.count):
            return iter(())
        self._fetch_next(number)
        return self._tables(range(run.begin, run.end), columns, run.rows[0])

    def _fetch_next(self, number: int) -> None:
        """While a run is decoded, have the next one fetched, if this process is to read it.

        On a cluster somebody else may: whoever reads one run after the other will go on so.
        """
        if number == self.latest:  # another strip of it
            return
        follows, self.latest = number in (0, self.latest + 1), number
        # Threads are in one run that is divided, or in two that are not.
        after = number + (1 if len(self.runs[number].rows) > 1 else 2)
        if follows and after < len(self.runs):
            self.file.fetch(range(self.runs[after].begin, self.runs[after].end), self.used)

    def _raw(self, columns: list[Any], names: tuple[str, ...], first: int) -> RawTable:
        found = dict(zip(names, map(decoded, columns), strict=True))
        places = Places(rows=np.arange(first, first + len(columns[0])))
        return RawTable(self.name, found, places=places)

    def _asked(self, question: Callable[[], T]) -> T:
        """What the file says about itself."""
        try:
            return question()
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from None

    def _tables(self, groups: range, columns: list[int], rows: int) -> Iterator[Any]:
        """Tables of exactly `rows` rows, but for the last."""
        waiting: list[Any] = []
        there = 0
        try:
            for batch in self.file.batches(groups, columns, rows):
                waiting.append(batch)
                there += batch.num_rows
                while there >= rows:
                    table = pa.Table.from_batches(waiting)
                    yield table.slice(0, rows)
                    there -= rows
                    waiting = table.slice(rows).to_batches() if there else []
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from None
        if there:
            yield pa.Table.from_batches(waiting)

    def _damaged(self, error: Exception) -> Exception:
        if getattr(error, "errno", None) is not None:  # the system's; pyarrow's own have no number
            return error
        return FileError(f"{self.name} is a damaged file ({brief(error)}).", DAMAGED)


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
