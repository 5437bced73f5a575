"""A source whose blocks are made ready when read: gaps dropped or filled in, columns scaled.

One pass measures every column (`gnomon.data.spread`). Dropping rows takes a second one, which finds
the rows without gaps and measures these. Afterwards each block is made ready when it is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from gnomon.data.missing import rows_without_gaps
from gnomon.data.spread import Spread, Tally
from gnomon.data.table import Table
from gnomon.engine import Block, Engine, Partition, Source
from gnomon.engine.source import Seal

if TYPE_CHECKING:
    from gnomon.data.preparation import Preparation

__all__ = ["PreparedSource", "drop_gaps"]


class PreparedSource(Source):
    """The rows of another table, made ready as `preparation` says.

    Gaps that it neither drops nor fills in stay.

    Parameters
    ----------
    source : Source
    preparation : Preparation
    kept : sequence of int, optional
        How many rows of each partition have no gaps, where the others are dropped.
    """

    def __init__(
        self, source: Source, preparation: "Preparation", kept: Sequence[int] | None = None
    ) -> None:
        dtype = preparation.scaled_type(source.dtype)
        partitions = source.partitions if kept is None else _shortened(source.partitions, kept)
        super().__init__(source.columns, dtype, partitions, source.names)
        self.source, self.preparation, self.drops = source, preparation, kept is not None
        self.seals = source.seals  # of the pass that measured the columns, too

    @property
    def stored(self) -> int | None:
        """Entries of the source; where rows are dropped, at most so many."""
        return self.source.stored

    def read(self, partition: Partition) -> NDArray[Any]:
        """The numbers of the source, made ready."""
        return self.read_checked(partition)[0]

    def read_checked(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """Rows made ready, with the checksum of the numbers as the source has them."""
        X, seal = self.source.read_checked(self._original(partition))
        if self.drops:
            X = X[rows_without_gaps(X)]
        elif self.preparation.fills:
            X = self.preparation.fill_in(X)
        return self.preparation.scaled(X), seal

    def only(self, partitions: Sequence[Partition]) -> Self:
        """Restrict the wrapped source, too: it reads scattered partitions in another way."""
        some = super().only(partitions)
        some.source = self.source.only([*map(self._original, partitions)])
        return some

    def limit(self, memory: int | None) -> Self:
        """Limit the memory of the wrapped source."""
        some = super().only(self.partitions)
        some.source = self.source.limit(memory)
        return some

    def prefetch(self, partitions: Sequence[Partition]) -> None:
        """Have the wrapped source prefetch its partitions."""
        self.source.prefetch([*map(self._original, partitions)])

    def release(self, but: Partition | None = None) -> None:
        """Have the wrapped source close what it keeps open."""
        self.source.release(None if but is None else self._original(but))

    def _original(self, partition: Partition) -> Partition:
        """The partition of the wrapped source."""
        original: Partition = partition.place if self.drops else partition
        return original


def _shortened(partitions: Sequence[Partition], kept: Sequence[int]) -> list[Partition]:
    """Partitions of the rows that are kept; those without any are left out."""
    found, start = [], 0
    for partition, rows in zip(partitions, kept, strict=True):
        if rows:
            found.append(replace(partition, start=start, rows=rows, place=partition))
        start += rows
    return found


def drop_gaps(
    table: Table, preparation: "Preparation", engine: Engine
) -> tuple[Table, NDArray[np.int64], Spread | None]:
    """A table in blocks without the rows that have gaps, their numbers, and how columns spread.

    The spread is None where no row is left.
    """
    found: _Kept = engine.reduce(_measure_kept, table.X, _Kept.__add__)
    masks = [
        np.unpackbits(mask, count=partition.rows)
        for mask, partition in zip(found.masks, table.X.partitions, strict=True)
    ]
    kept = np.flatnonzero(np.concatenate(masks)).astype(np.int64)
    counts = [int(mask.sum()) for mask in masks]
    ready = PreparedSource(table.X, preparation, counts)
    return (
        table.with_rows(ready, kept),
        kept,
        None if found.tally is None else found.tally.spread(),
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """What rows without gaps add up to, and which they are: a mask of bits for each partition."""

    tally: Tally | None
    masks: tuple[NDArray[np.uint8], ...]

    def __add__(self, other: "_Kept") -> "_Kept":
        tallies = [each for each in (self.tally, other.tally) if each is not None]
        both = tallies[0] + tallies[1] if len(tallies) == 2 else next(iter(tallies), None)
        return _Kept(both, self.masks + other.masks)


def _measure_kept(block: Block) -> _Kept:
    kept = rows_without_gaps(block.X)
    tally = Tally.of(block.X[kept], n_jobs=1) if kept.any() else None
    return _Kept(tally, (np.packbits(kept),))
