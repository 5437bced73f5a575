"""A table given by a function that returns a fresh iterator over its blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.arrays import names_of, usual_type
from gnomon.engine.cursor import Cursor
from gnomon.engine.source import Partition, Seal, Source, checksum
from gnomon.errors import ChangedSourceError, DataError, ParameterTypeError
from gnomon.inputs import as_table, is_sparse

__all__ = ["IteratorSource"]


class IteratorSource(Source):
    """Blocks of rows from a function that can be called repeatedly.

    A first pass counts them; blocks without rows are skipped. Every later pass must yield
    the same rows in the same blocks. On a cluster each worker reads from the front, so files are
    faster there.

    Parameters
    ----------
    function : callable
        Returns a fresh iterator over arrays (m, d) of numbers, with any m and always the same d; or
        over dataframes with the same columns in the same order.
    names : sequence of str, optional
        Column names; by default those of the dataframes.
    """

    def __init__(
        self,
        function: Callable[[], Iterable[Any]],
        names: Sequence[str] | None = None,
    ) -> None:
        self.function = function
        partitions: list[Partition] = []
        seals: dict[int, Seal] = {}
        first: _Kind | None = None
        start = 0
        for number, (block, called) in enumerate(self._tables()):
            rows, kind = block.shape[0], _Kind(block.shape[1], block.dtype, called)
            if first is None or (rows and not partitions):
                first = kind  # a block without rows may lack types
            if not rows:
                continue
            first.refuse_other(kind, number)
            index = len(partitions)
            partitions.append(Partition(index, start, rows, "the iterator", start))
            seals[index] = checksum(block)
            start += rows
        if first is None:
            raise DataError("The function returned no blocks. It must return a fresh iterator.")
        names = first.names if names is None else names
        super().__init__(first.columns, first.dtype, partitions, names)
        self.seals = seals
        self.cursor: Cursor[NDArray[Any]] | None = None
        self.count = len(partitions)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cursor": None}

    def read(self, partition: Partition) -> NDArray[Any]:
        """Read the block, from an iterator that is positioned shortly before it if there is one."""
        if self.cursor is None:
            self.cursor = Cursor(self._blocks)
        block = self.cursor.take(partition.index)
        last = partition.index == self.count - 1
        if last and self.cursor.take(self.count) is not None:
            raise ChangedSourceError(
                f"The iterator gave more than {self.count} blocks this time. It must give the same "
                "rows in the same blocks on every call of the function."
            )
        return np.empty((0, self.columns), self.dtype) if block is None else block

    def _blocks(self) -> Iterator[NDArray[Any]]:
        return (block for block, _ in self._tables() if len(block))

    def _tables(self) -> Iterator[tuple[NDArray[Any], tuple[str, ...] | None]]:
        """Blocks of the function as arrays, with their column names."""
        for block in _iterator(self.function):
            table = as_table(block)
            if is_sparse(table):
                raise DataError("The function returned a sparse block. Use block.toarray().")
            yield np.ascontiguousarray(table, usual_type(table.dtype)), names_of(block)


@dataclass(frozen=True)
class _Kind:
    """Columns, names and dtype that all blocks share."""

    columns: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None

    def refuse_other(self, other: "_Kind", number: int) -> None:
        """Raise an error if block `number` differs in columns, names or dtype."""
        if (other.columns, other.dtype) != (self.columns, self.dtype):
            raise DataError(
                f"Block {number} has {other.columns} columns of {other.dtype}, but the first has "
                f"{self.columns} of {self.dtype}; they must agree."
            )
        if other.names != self.names:
            raise DataError(
                f"Block {number} has {_listed(other.names)}, but the first has "
                f"{_listed(self.names)}. Give the same columns in the same order."
            )


def _listed(names: tuple[str, ...] | None, most: int = 5) -> str:
    if names is None:
        return "no column names"
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return f"the columns {shown}" + (f" and {len(names) - most:,} more" * (len(names) > most))


def _iterator(function: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    try:
        return iter(function())
    except TypeError as error:
        raise ParameterTypeError(
            f"The function must return an iterator over blocks of rows ({error})."
        ) from None
