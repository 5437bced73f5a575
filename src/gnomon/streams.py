"""A source read as shifted, scaled rows: what `gnomon.rows` is for tables in memory.

A `Stream` is `Rows` whose table is a `Source`. It is not read by row numbers; a function of `Rows`
runs on every block instead, wherever the engine has room, and the results are added up in the order
of the partitions (`Stream.reduce`). All blocks have the same shift, chosen from evenly spaced rows
of a few evenly spaced partitions, so that the sums of blocks can be added as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnomon.engine import Block, Engine, LocalEngine, Partition, Source
from gnomon.errors import DataError, MissingValueError
from gnomon.inputs import Found, find_bad_values, refuse_found
from gnomon.rows import Rows, Sample, evenly_spaced, reading, sample_size

T = TypeVar("T")
Weights = NDArray[np.float64] | None
OfRows = Callable[[Rows, Weights], T]

SAMPLE_PARTITIONS = 8  # that are read to choose a shift

__all__ = ["Stream", "naming_rows", "read_source"]


@dataclass(frozen=True)
class Stream(Rows):
    """A source, how its rows are shifted and scaled, and who reads it (see the module).

    `done` is told how many rows of a pass have been worked through.
    """

    engine: Engine = field(default_factory=LocalEngine)
    done: Callable[[int], object] | None = None

    def reduce(
        self, function: OfRows[T], combine: Callable[[T, T], T], weights: Weights = None
    ) -> T:
        """``function(rows, weights)`` of every block, added up by `combine` in a fixed order."""
        total: T = self.engine.reduce(
            self._of_blocks(function),
            self.X,
            combine,
            beside=self._beside(weights),
            done=self.done,
        )
        return total

    def map(self, function: OfRows[T], weights: Weights = None) -> list[T]:
        """``function(rows, weights)`` of every block, in order."""
        return self.engine.map(
            self._of_blocks(function), self.X, beside=self._beside(weights), done=self.done
        )

    def anew(self, weights: Weights, shift: NDArray[Any], work: DTypeLike) -> "Stream":
        """The same source, to be read about another shift and in another precision."""
        return read_source(
            self.X,
            self.engine,
            shift=shift,
            work=work,
            weights=weights,
            names=self.names,
            done=self.done,
        )

    def amplitude(self) -> float:
        """Largest |x − shift| of the whole table, in one pass."""
        plain = replace(self, exponent=0, offset=None, factor=None, root_weight=None)
        return max(plain.map(_largest), default=0.0)

    def refuse_bad_values(self) -> None:
        """Raise an error that names the file and row of the first infinity or missing value."""
        found = self.map(_bad_values)
        for kind in range(2):
            count = sum(part[kind].many for part in found)
            if not count:
                continue
            at = next(i for i, part in enumerate(found) if part[kind].many)
            partition = self.X.partitions[at]
            first = found[at][kind]
            told = [Found(0, -1, -1), Found(0, -1, -1)]
            told[kind] = Found(count, partition.first + first.row, first.column)
            refuse_found(*told, names=self.names, file=partition.file)

    def _of_blocks(self, function: OfRows[T]) -> "_OfBlock":
        """`function` as engines want it, without anything that belongs to single rows."""
        none = np.empty((0, self.shape[1]), self.X.dtype)
        like = Rows(none, self.work, self.shift, self.exponent, self.offset, self.factor,
                    long=self.is_long)  # fmt: skip
        return _OfBlock(like, function)

    def _beside(self, weights: Weights) -> Sequence[Any] | None:
        if weights is None and self.root_weight is None:
            return None
        return [
            tuple(
                None if array is None else _slice(array, partition)
                for array in (weights, self.root_weight)
            )
            for partition in self.X.partitions
        ]


@dataclass(frozen=True)
class _OfBlock:
    """A function of rows as a function of blocks."""

    like: Rows
    function: Callable[[Rows, Weights], Any]

    def __call__(self, block: Block) -> Any:
        weights, roots = (None, None) if block.beside is None else block.beside
        return self.function(replace(self.like, X=block.X, root_weight=roots), weights)


def _largest(rows: Rows, _: Weights) -> float:
    return float(np.abs(rows.read(0, rows.shape[0])).max(initial=0))


def _bad_values(rows: Rows, _: Weights) -> tuple[Found, Found]:
    return find_bad_values(rows.X)


def read_source(
    source: Source,
    engine: Engine,
    *,
    shift: NDArray[Any] | None = None,
    work: DTypeLike | None = None,
    weights: Weights = None,
    names: NDArray[Any] | None = None,
    done: Callable[[int], object] | None = None,
) -> Stream:
    """`source` with a shift and an exponent chosen from a sample of its rows.

    A few partitions are read for that, however large the source is. Rows of weight 0 are absent.
    """
    sample = _sample(source, engine, weights)
    work_type, shift, exponent = reading(source, sample.X, shift, work, weights)
    return Stream(
        source,
        work_type,
        shift,
        exponent,
        names=names,
        sample=sample,
        engine=engine,
        done=done,
    )


@contextmanager
def naming_rows(
    source: Source, engine: Engine, names: NDArray[Any] | None = None
) -> Iterator[None]:
    """Around work on blocks: bad numbers, told by the rows of a block, are told by file and row.

    `names` are of the columns; by default those that the source has.
    """
    try:
        yield
    except DataError as error:
        if type(error) not in (DataError, MissingValueError):  # of files, which say it already
            raise
        none = np.zeros(source.columns)
        if names is None and source.names is not None:
            names = np.array(source.names, object)
        Stream(source, np.dtype(np.float64), none, names=names, engine=engine).refuse_bad_values()
        raise


def _sample(source: Source, engine: Engine, weights: Weights) -> Sample:
    """About a thousand rows: evenly spaced ones of evenly spaced partitions."""
    present = [
        partition
        for partition in source.partitions
        if partition.rows and (weights is None or _slice(weights, partition).any())
    ]
    if not present:
        raise DataError("There are no rows, or every weight is 0: there is nothing to add up.")
    chosen = [present[i] for i in evenly_spaced(len(present), SAMPLE_PARTITIONS)]
    each = max(1, sample_size(source.columns) // len(chosen))
    wanted = {}
    for partition in chosen:
        there = _present(partition, weights)
        wanted[partition.index] = there[evenly_spaced(there.size, each)]
    rows = np.concatenate(engine.map(_SomeRows(wanted), source.only(chosen)))
    if weights is None:
        return Sample(rows, None)
    at = [partition.start + wanted[partition.index] for partition in chosen]
    return Sample(rows, weights[np.concatenate(at)])


def _present(partition: Partition, weights: Weights) -> NDArray[np.intp]:
    """Rows of a partition that have a weight above 0."""
    if weights is None:
        return np.arange(partition.rows)
    return np.flatnonzero(_slice(weights, partition))


def _slice(weights: NDArray[np.float64], partition: Partition) -> NDArray[np.float64]:
    return weights[partition.start : partition.start + partition.rows]


@dataclass(frozen=True)
class _SomeRows:
    """Chosen rows of a block; `wanted` has them by the partition's number."""

    wanted: dict[int, NDArray[np.intp]]

    def __call__(self, block: Block) -> NDArray[Any]:
        return np.ascontiguousarray(block.X[self.wanted[block.partition.index]])
