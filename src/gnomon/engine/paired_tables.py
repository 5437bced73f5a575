"""Two tables whose rows belong together, as one table whose blocks hold rows of both.

By row, in the partitions of the wider table (of the first, if both are equally wide), each with the
same rows of the other: where both tables are partitioned by `partition_rows`, the boundaries of the
pair depend only on the columns of both, wherever the tables are stored. By id, if both are sorted
by a column of ids: a merge join, block by block.

1. One pass over each table checks that its ids ascend, and keeps the first and last id of each
   partition.
2. A partition of the first table can only match partitions of the second whose id ranges overlap
   its own; another pass counts the matches.
3. From then on the pair is a source like any other: blocks can be read in any order, repeatedly,
   here and on a cluster.
"""

from bisect import bisect_right
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.engine import Engine
from gnomon.engine.source import Block, Partition, Seal, Source
from gnomon.engine.task import changed
from gnomon.errors import DataError, Parameter
from gnomon.typing import Array

__all__ = ["Both", "PairedSource", "call", "called", "pair_by_id", "pair_by_row"]

CACHED_PARTITIONS = 4  # partitions of a table cached per table while parts of them are in use
LARGEST_EXACT_ID = 2.0**53  # beyond it float64 cannot represent every whole number


def call(source: Source, name: str) -> Source:
    """Name a source for error messages about pairs."""
    named = source.only(source.partitions)
    named.__dict__["called"] = name
    return named


def called(source: Source, otherwise: str) -> str:
    """Name given by `call`, or `otherwise`."""
    return str(source.__dict__.get("called", otherwise))


@dataclass(frozen=True)
class PartitionSlice:
    """Rows `start` to `stop` of a partition."""

    partition: Partition
    start: int
    stop: int

    @property
    def is_whole(self) -> bool:
        """Whether the piece is the whole partition."""
        return self.start == 0 and self.stop == self.partition.rows


class Both(NamedTuple):
    """Rows of two tables that belong together, X (m, dx) and Y (m, dy)."""

    X: Array
    Y: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of both; 0 rows if the two differ in their number of rows."""
        rows = len(self.X) if len(self.X) == len(self.Y) else 0
        return rows, self.X.shape[1] + self.Y.shape[1]


class PairedSource(Source):
    """Rows of two sources beside each other; blocks are `Both`.

    Created by `pair_by_row` and `pair_by_id`.

    Attributes
    ----------
    widths : tuple of int
        Number of columns of the first and of the second table.
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
        self.kept: tuple[_Kept, _Kept] = ({}, {})

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "kept": ({}, {})}

    def array(self) -> Both | None:
        """Both tables, if they are in memory and row i belongs to row i."""
        if self.ids is not None:
            return None
        X, Y = self.left.array(), self.right.array()
        return None if X is None or Y is None else Both(X, Y)

    def read(self, partition: Partition) -> Any:
        """Read the rows of one partition from both tables."""
        return self.read_checked(partition)[0]

    def read_checked(self, partition: Partition) -> tuple[Any, Seal]:
        """Read a partition from both tables, with the checksums of all partitions involved."""
        seals: list[tuple[int, int, Seal]] = []
        blocks: list[Array] = []
        for side in range(2):
            parts = []
            for piece in partition.place[side]:
                X, seal = self._sealed(side, piece)
                parts.append(X)
                seals.append((side, piece.partition.index, seal))
            blocks.append(_stack(parts))
        return self._beside(*blocks), tuple(seals)

    def _sealed(self, side: int, piece: PartitionSlice) -> tuple[Array, Seal]:
        """Rows of a piece, and the checksum of its whole partition.

        A partition that several blocks have pieces of is cached, so that it is read only once.
        """
        source, kept = (self.left, self.right)[side], self.kept[side]
        if piece.is_whole:
            return source.read_checked(piece.partition)
        index = piece.partition.index
        found = kept.get(index)
        if found is None:
            found = source.read_checked(piece.partition)
            while len(kept) >= CACHED_PARTITIONS:
                kept.pop(min(kept, default=-1), None)  # other threads evict too
            kept[index] = found
        X, seal = found
        return X[piece.start : piece.stop], seal

    def prefetch(self, partitions: Sequence[Partition]) -> None:
        """Prefetch partitions of both tables."""
        for side, source in enumerate((self.left, self.right)):
            kept = self.kept[side]
            pieces = (piece for partition in partitions for piece in partition.place[side])
            coming = dict.fromkeys(piece.partition for piece in pieces)
            if not partitions or coming:
                source.prefetch([each for each in coming if each.index not in kept])

    def release(self, but: Partition | None = None) -> None:
        """Limit the memory of both tables."""
        if but is None:
            for kept in self.kept:
                kept.clear()
        for side, source in enumerate((self.left, self.right)):
            pieces = () if but is None else but.place[side]
            source.release(pieces[-1].partition if pieces else None)

    def _beside(self, mine: Array, theirs: Array) -> Both:
        if self.ids is None:
            return Both(mine, theirs)
        here, there = self.ids
        i, j = self._partners(mine, theirs, self.ids)
        return Both(np.delete(mine[i], here, axis=1), np.delete(theirs[j], there, axis=1))

    @staticmethod
    def _partners(mine: Array, theirs: Array, ids: tuple[int, int]) -> tuple[Array, Array]:
        """Rows of both tables that have equal ids, in their order."""
        here, there = mine[:, ids[0]], theirs[:, ids[1]]
        _, i, j = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        return i, j

    def origin(self, partition: Partition, side: int, row: int) -> tuple[str, int]:
        """File of a row of a block, in table 0 or 1, and its number in that file."""
        if self.ids is not None:
            mine, theirs = (
                _stack([self._sealed(at, piece)[0] for piece in pieces])
                for at, pieces in enumerate(partition.place)
            )
            row = int(self._partners(mine, theirs, self.ids)[side][row])
        for piece in partition.place[side]:
            if row < piece.stop - piece.start:
                return piece.partition.file, piece.partition.first + piece.start + row
            row -= piece.stop - piece.start
        raise AssertionError("the row belongs to no piece")

    def names_of(self, side: int) -> Array | None:
        """Column names of table 0 or 1 within the pair, or None."""
        names = (self.left, self.right)[side].names
        if names is None:
            return None
        found = np.array(names, dtype=object)
        return found if self.ids is None else np.delete(found, self.ids[side])


_Kept = dict[int, tuple[Array, Seal]]


class _Seals(MutableMapping[int, Seal]):
    """Checksums of a pair, stored in the mappings of both tables."""

    def __init__(self, left: Source, right: Source, partitions: Sequence[Partition]) -> None:
        self.tables = left.seals, right.seals
        self.places = {partition.index: partition.place for partition in partitions}

    def __getitem__(self, index: int) -> Seal:
        """Checksums of all partitions involved; a KeyError if one of them is not known yet."""
        return tuple(
            (side, piece.partition.index, self.tables[side][piece.partition.index])
            for side, pieces in enumerate(self.places[index])
            for piece in pieces
        )

    def __setitem__(self, index: int, seal: Any) -> None:
        pieces = [piece for pieces in self.places[index] for piece in pieces]
        for (side, at, found), piece in zip(seal, pieces, strict=True):
            if self.tables[side].setdefault(at, found) != found:  # one was known already
                raise changed(piece.partition)

    def __delitem__(self, index: int) -> None:
        raise TypeError("Checksums cannot be deleted.")

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
    """Pair two tables by row number: row i belongs to row i."""
    if left.rows != right.rows:
        raise DataError(
            "{left} and {right} must have the same number of rows; got {rows[0]:,} and "
            "{rows[1]:,}. Rows are points, and row i of the one belongs to row i of the other. "
            "To join rows by ids, give {parameter}, the name of a column of both, or "
            "join them by `gnomon.align`.",
            left=called(left, "X"),
            right=called(right, "Y"),
            rows=(left.rows, right.rows),
            parameter=Parameter("id"),
        )
    sides = (left, right)
    wide = 0 if left.columns >= right.columns else 1
    others = sides[1 - wide].partitions
    starts = [partition.start for partition in others]
    partitions: list[Partition] = []
    for partition in sides[wide].partitions:
        stop = partition.stop
        pieces = []
        for other in others[max(0, bisect_right(starts, partition.start) - 1) :]:
            if other.start >= stop:
                break
            low, high = max(partition.start, other.start), min(stop, other.stop)
            if high > low:
                pieces.append(PartitionSlice(other, low - other.start, high - other.start))
        if partition.rows:
            own = (PartitionSlice(partition, 0, partition.rows),)
            mine, theirs = (own, tuple(pieces)) if wide == 0 else (tuple(pieces), own)
            partitions.append(_joined(partitions, partition, mine, theirs, partition.rows))
    return PairedSource(left, right, partitions)


def pair_by_id(left: Source, right: Source, name: str, engine: Engine) -> PairedSource:
    """Pair rows with equal ids; in both tables the column `name` must ascend."""
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
            own = (PartitionSlice(partition, 0, partition.rows),)
            pieces = tuple(PartitionSlice(other, 0, other.rows) for other in others)
            partitions.append(_joined(partitions, partition, own, pieces, count))
    if not partitions:
        a, b = names
        raise DataError(f"{a} and {b} have no id in common in the column '{name}'. Check the ids.")
    return PairedSource(left, right, partitions, ids)


def _joined(
    before: Sequence[Partition],
    partition: Partition,
    mine: tuple[PartitionSlice, ...],
    theirs: tuple[PartitionSlice, ...],
    rows: int,
) -> Partition:
    start = before[-1].stop if before else 0
    return Partition(
        len(before), start, rows, partition.file, partition.first, place=(mine, theirs)
    )


def _id_column(source: Source, name: str, which: str) -> int:
    if source.names is None or name not in source.names:
        raise DataError(
            "{table} has no numeric column '{column}' to join by. Text ids cannot be joined in "
            "blocks; use numeric ids, or leave {parameter} out to join by row.",
            table=which,
            column=name,
            parameter=Parameter("id"),
        )
    if source.columns < 2:
        raise DataError(f"{which} has no column besides its ids.")
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
        f"{now:.15g} after {before:.15g}. Sort the table by its ids, without duplicates."
    )


@dataclass(frozen=True)
class _Ascending:
    """Compute the first and last id of a block; refuse ids that do not ascend."""

    column: int
    which: str

    def __call__(self, block: Block) -> tuple[float, float]:
        ids = block.X[:, self.column].astype(float)
        large = np.flatnonzero(np.abs(ids) >= LARGEST_EXACT_ID)
        if large.size:  # checked before the order, which rounding may have changed
            raise self._too_large(block.partition, int(large[0]), ids[large[0]])
        wrong = np.flatnonzero(~(ids[1:] > ids[:-1]))
        if wrong.size or np.isnan(ids[0]):
            row = int(wrong[0]) + 1 if wrong.size else 0
            at = block.partition
            raise _unsorted(self.which, at, at.first + row, ids[max(row - 1, 0)], ids[row])
        return float(ids[0]), float(ids[-1])

    def _too_large(self, where: Partition, row: int, id: float) -> DataError:
        return DataError(
            f"The ids of {self.which} must be between -2^53 and 2^53 to be joined in blocks, since "
            f"float64 cannot distinguish larger ones; {where.file}, row {where.first + row}, "
            f"has about {id:.0f}. Use smaller ids, the same in both tables."
        )


@dataclass(frozen=True)
class _CountShared:
    """Count the ids of a block that the partitions of the other table also have."""

    right: Source
    ids: tuple[int, int]

    def __call__(self, block: Block) -> int:
        here, there = self.ids
        theirs = _stack([self.right.read(partition) for partition in block.beside])
        return int(np.isin(block.X[:, here], theirs[:, there], assume_unique=True).sum())
