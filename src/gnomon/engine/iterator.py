"""A table given by a function that returns a fresh iterator over its blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.cursor import Cursor
from gnomon.engine.source import Partition, Seal, Source, checksum
from gnomon.errors import ChangedSourceError, DataError, ParameterTypeError
from gnomon.inputs import as_table, is_sparse

__all__ = ["IteratorSource"]


class IteratorSource(Source):
    """Blocks of rows from a function that can be called again and again.

    They are counted in a first pass. Every later pass must give the same rows in the same blocks;
    on a cluster each worker reads from the front, so files are better there.

    Parameters
    ----------
    function : callable
        Returns a fresh iterator over arrays (m, d) of numbers, m as it likes, d always the same.
    names : sequence of str, optional
    """

    def __init__(
        self,
        function: Callable[[], Iterable[Any]],
        names: Sequence[str] | None = None,
    ) -> None:
        self.function = function
        partitions: list[Partition] = []
        seals: dict[int, Seal] = {}
        columns, dtype, start = 0, np.dtype(np.float64), 0
        for index, block in enumerate(self._blocks()):
            rows, width = block.shape
            if index == 0:
                columns, dtype = width, block.dtype
            elif width != columns or block.dtype != dtype:
                raise DataError(
                    f"Block {index} has {width} columns of {block.dtype}, and the first has "
                    f"{columns} of {dtype}; they must agree."
                )
            partitions.append(Partition(index, start, rows, "the iterator", start))
            seals[index] = checksum(block)
            start += rows
        if not partitions:
            raise DataError("The function gave no blocks. It must return a fresh iterator.")
        super().__init__(columns, dtype, partitions, names)
        self.seals = seals
        self.cursor: Cursor[NDArray[Any]] | None = None
        self.count = len(partitions)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cursor": None}

    def read(self, partition: Partition) -> NDArray[Any]:
        """The block, from an iterator that stands close before it if there is one."""
        if self.cursor is None:
            self.cursor = Cursor(self._blocks)
        block = self.cursor.take(partition.index)
        last = partition.index == self.count - 1
        if last and self.cursor.take(self.count) is not None:
            raise ChangedSourceError(
                f"The iterator gave more than {self.count} blocks this time. It must give the same "
                "rows in the same blocks whenever the function is called."
            )
        return np.empty((0, self.columns), self.dtype) if block is None else block

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for block in _iterator(self.function):
            table = as_table(block)
            if is_sparse(table):
                raise DataError("The function gave a sparse block. Use block.toarray().")
            yield np.ascontiguousarray(table)


def _iterator(function: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    try:
        return iter(function())
    except TypeError as error:
        raise ParameterTypeError(
            f"The function must return an iterator over blocks of rows ({error})."
        ) from None
