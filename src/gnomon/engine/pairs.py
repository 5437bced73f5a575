"""Two tables in blocks whose rows belong together, as one table of both tables' columns.

By row, partition after partition of the first, with the same rows of the second. By id, if both are
in ascending order of a column of ids: a merge join, block by block.

1. One pass over each table sees that its ids ascend, and keeps each partition's first and last.
2. A partition of the first can only have partners in those partitions of the second whose ids reach
   into its own; one more pass counts them.
3. From then on the pair is a source like any other: blocks can be read in any order, as often as
   one likes, here and on a cluster.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.engine import Engine
from gnomon.engine.source import Block, Partition, Seal, Source
from gnomon.engine.task import changed
from gnomon.errors import DataError

Array = NDArray[Any]

__all__ = ["PairedSource", "call", "called", "pair_by_id", "pair_by_row"]

WHOLE = 2.0**53  # from here on float64, which blocks are of, gives several whole numbers one place


def call(source: Source, name: str) -> Source:
    """The same source under a name, by which errors about pairs speak of it."""
    named = source.only(source.partitions)
    named.__dict__["called"] = name
    return named


def called(source: Source, otherwise: str) -> str:
    """The name that `call` gave it."""
    return str(source.__dict__.get("called", otherwise))


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of a partition."""

    partition: Partition
    start: int
    stop: int

    def sealed(self, source: Source) -> tuple[Array, Seal]:
        """These rows alone, and the checksum of the whole partition."""
        X, seal = source.sealed(self.partition)
        return X[self.start : self.stop], seal


class PairedSource(Source):
    """Rows of two sources side by side: the columns of the first, then those of the second.

    Made by `pair_by_row` and `pair_by_id`.

    Attributes
    ----------
    widths : tuple of int
        How many columns are of the first, and of the second.
    """

    def __init__(
        self,
        left: Source,
        right: Source,
        partitions: Sequence[Partition],
        ids: tuple[int, int] | None = None,
    ) -> None:
        self.left, self.right, self.ids = left, right, ids
        away = 0 if ids is None else 1
        self.widths = left.columns - away, right.columns - away
        super().__init__(sum(self.widths), np.result_type(left.dtype, right.dtype), partitions)
        self.seals = _Seals(left, right, partitions)

    def read(self, partition: Partition) -> Array:
        """The rows of one partition, those of the first table on the left."""
        return self.sealed(partition)[0]

    def sealed(self, partition: Partition) -> tuple[Array, Seal]:
        """The same, and the checksums of all partitions that they are from."""
        seals: list[tuple[int, int, Seal]] = []
        blocks: list[Array] = []
        for side, source in enumerate((self.left, self.right)):
            parts = []
            for piece in partition.place[side]:
                X, seal = piece.sealed(source)
                parts.append(X)
                seals.append((side, piece.partition.index, seal))
            blocks.append(_stack(parts))
        return self._beside(*blocks), tuple(seals)

    def soon(self, partitions: Sequence[Partition]) -> None:
        """Told to both tables."""
        for side, source in enumerate((self.left, self.right)):
            pieces = (piece for partition in partitions for piece in partition.place[side])
            source.soon(list(dict.fromkeys(piece.partition for piece in pieces)))

    def let_go(self, but: Partition | None = None) -> None:
        """Of both tables."""
        for side, source in enumerate((self.left, self.right)):
            pieces = () if but is None else but.place[side]
            source.let_go(pieces[-1].partition if pieces else None)

    def _beside(self, mine: Array, theirs: Array) -> Array:
        if self.ids is not None:
            here, there = self.ids
            i, j = self._partners(mine, theirs, self.ids)
            mine, theirs = np.delete(mine[i], here, axis=1), np.delete(theirs[j], there, axis=1)
        if len(mine) != len(theirs):  # one of the files is shorter than it was
            return mine[:0].astype(self.dtype)
        return np.hstack([mine.astype(self.dtype), theirs.astype(self.dtype)])

    @staticmethod
    def _partners(mine: Array, theirs: Array, ids: tuple[int, int]) -> tuple[Array, Array]:
        """Rows of both that have equal ids, in their order."""
        here, there = mine[:, ids[0]], theirs[:, ids[1]]
        _, i, j = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        return i, j

    def origin(self, partition: Partition, side: int, row: int) -> tuple[str, int]:
        """The file that a row of a block is from, in table 0 or 1, and its number there."""
        if self.ids is not None:
            mine, theirs = (
                _stack([piece.sealed(source)[0] for piece in pieces])
                for source, pieces in zip((self.left, self.right), partition.place, strict=True)
            )
            row = int(self._partners(mine, theirs, self.ids)[side][row])
        for piece in partition.place[side]:
            if row < piece.stop - piece.start:
                return piece.partition.file, piece.partition.first + piece.start + row
            row -= piece.stop - piece.start
        raise AssertionError("the row is of no piece")

    def names_of(self, side: int) -> Array | None:
        """Names of the columns of table 0 or 1 that are in the pair, where it has any."""
        names = (self.left, self.right)[side].names
        if names is None:
            return None
        found = np.array(names, dtype=object)
        return found if self.ids is None else np.delete(found, self.ids[side])

    def split(self, X: Array) -> tuple[Array, Array]:
        """A block of rows as its two tables."""
        return X[:, : self.widths[0]], X[:, self.widths[0] :]


class _Seals(MutableMapping[int, Seal]):
    """The seals of a pair, which are those of both tables."""

    def __init__(self, left: Source, right: Source, partitions: Sequence[Partition]) -> None:
        self.tables = left.seals, right.seals
        self.places = {partition.index: partition.place for partition in partitions}

    def __getitem__(self, index: int) -> Seal:
        """Those of all partitions that it is from; a KeyError if one of them is not known yet."""
        return tuple(
            (side, piece.partition.index, self.tables[side][piece.partition.index])
            for side, pieces in enumerate(self.places[index])
            for piece in pieces
        )

    def __setitem__(self, index: int, seal: Any) -> None:
        pieces = [piece for pieces in self.places[index] for piece in pieces]
        for (side, at, found), piece in zip(seal, pieces, strict=True):
            if self.tables[side].setdefault(at, found) != found:  # one side was known, one not
                raise changed(piece.partition)

    def __delitem__(self, index: int) -> None:
        raise TypeError("What the tables know is not forgotten.")

    def __iter__(self) -> Iterator[int]:
        for index in self.places:
            with suppress(KeyError):
                self[index]
                yield index

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _stack(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def pair_by_row(left: Source, right: Source) -> PairedSource:
    """Row i of the one belongs to row i of the other."""
    if left.rows != right.rows:
        raise DataError(
            f"{called(left, 'X')} and {called(right, 'Y')} must have the same number of rows; got "
            f"{left.rows:,} and {right.rows:,}. "
            "Give `id`, the name of a column, where rows belong together by ids."
        )
    starts = np.array([partition.start for partition in right.partitions])
    partitions: list[Partition] = []
    for partition in left.partitions:
        stop = partition.start + partition.rows
        first = int(np.searchsorted(starts, partition.start, side="right")) - 1
        pieces = []
        for other in right.partitions[max(first, 0) :]:
            if other.start >= stop:
                break
            low, high = max(partition.start, other.start), min(stop, other.start + other.rows)
            if high > low:
                pieces.append(Piece(other, low - other.start, high - other.start))
        if partition.rows:
            mine = (Piece(partition, 0, partition.rows),)
            partitions.append(_joined(partitions, partition, mine, tuple(pieces), partition.rows))
    return PairedSource(left, right, partitions)


def pair_by_id(left: Source, right: Source, name: str, engine: Engine) -> PairedSource:
    """Rows with equal ids belong together; in both tables the column `name` ascends."""
    names = called(left, "X"), called(right, "Y")
    ids = _id_column(left, name, names[0]), _id_column(right, name, names[1])
    left, right = (_without_empty(source) for source in (left, right))
    mine, theirs = (
        _bounds(source, column, engine, which)
        for source, column, which in zip((left, right), ids, names, strict=True)
    )
    candidates = []
    for partition, (low, high) in zip(left.partitions, mine, strict=True):
        first = int(np.searchsorted(theirs[:, 1], low, side="left"))
        last = int(np.searchsorted(theirs[:, 0], high, side="right"))
        if first < last:
            candidates.append((partition, tuple(right.partitions[first:last])))
    counts = engine.map(
        _CountShared(right, ids),
        left.only([partition for partition, _ in candidates]),
        beside=[others for _, others in candidates],
    )
    partitions: list[Partition] = []
    for (partition, others), count in zip(candidates, counts, strict=True):
        if count:
            own = (Piece(partition, 0, partition.rows),)
            pieces = tuple(Piece(other, 0, other.rows) for other in others)
            partitions.append(_joined(partitions, partition, own, pieces, count))
    if not partitions:
        a, b = names
        raise DataError(f"{a} and {b} have no id in common in the column '{name}'. Check the ids.")
    return PairedSource(left, right, partitions, ids)


def _joined(
    before: Sequence[Partition],
    partition: Partition,
    mine: tuple[Piece, ...],
    theirs: tuple[Piece, ...],
    rows: int,
) -> Partition:
    start = before[-1].start + before[-1].rows if before else 0
    return Partition(
        len(before), start, rows, partition.file, partition.first, place=(mine, theirs)
    )


def _id_column(source: Source, name: str, which: str) -> int:
    if source.names is None or name not in source.names:
        raise DataError(
            f"{which} has no column '{name}' of numbers to join by. Ids that are text cannot be "
            "joined in blocks; give the rows numbers, or leave `id` out to join by row."
        )
    if source.columns < 2:
        raise DataError(f"{which} has no column beside its ids.")
    return source.names.index(name)


def _bounds(source: Source, column: int, engine: Engine, which: str) -> NDArray[np.float64]:
    """First and last id of every partition, shape (p, 2); ids that do not ascend are an error."""
    found = np.array(engine.map(_Ascending(column, which), source), dtype=float).reshape(-1, 2)
    for (_, (_, before)), (partition, (low, _)) in pairwise(
        zip(source.partitions, found, strict=True)
    ):
        if not before < low:
            raise _unsorted(which, partition, partition.first, before, low)
    return found


def _without_empty(source: Source) -> Source:
    return source.only([partition for partition in source.partitions if partition.rows])


def _unsorted(which: str, where: Partition, row: int, before: float, now: float) -> DataError:
    return DataError(
        f"The ids of {which} must ascend to be joined in blocks; {where.file}, row {row}, has "
        f"{now:.15g} after {before:.15g}. Sort the table by its ids, each of them once."
    )


@dataclass(frozen=True)
class _Ascending:
    """First and last id of a block whose ids ascend."""

    column: int
    which: str

    def __call__(self, block: Block) -> tuple[float, float]:
        ids = block.X[:, self.column].astype(float)
        large = np.flatnonzero(np.abs(ids) >= WHOLE)
        if large.size:  # before their order, which may be lost already
            raise self._too_large(block.partition, int(large[0]), ids[large[0]])
        wrong = np.flatnonzero(~(ids[1:] > ids[:-1]))
        if wrong.size or np.isnan(ids[0]):
            row = int(wrong[0]) + 1 if wrong.size else 0
            at = block.partition
            raise _unsorted(self.which, at, at.first + row, ids[max(row - 1, 0)], ids[row])
        return float(ids[0]), float(ids[-1])

    def _too_large(self, where: Partition, row: int, id: float) -> DataError:
        return DataError(
            f"The ids of {self.which} must be between -2^53 and 2^53 to be joined in blocks, where "
            f"larger whole numbers cannot be told apart; {where.file}, row {where.first + row}, "
            f"has about {id:.0f}. Give the rows smaller numbers, the same in both tables."
        )


@dataclass(frozen=True)
class _CountShared:
    """How many ids of a block the partitions beside it have too."""

    right: Source
    ids: tuple[int, int]

    def __call__(self, block: Block) -> int:
        here, there = self.ids
        theirs = _stack([self.right.read(partition) for partition in block.beside])
        return int(np.isin(block.X[:, here], theirs[:, there], assume_unique=True).sum())
