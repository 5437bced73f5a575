"""Tables that are no files: an array in memory, a Dask array, a function that gives blocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.source import Partition, Source, partition_rows
from gnomon.parallel import row_blocks

__all__ = ["ArraySource"]


class ArraySource(Source):
    """An array in memory, or a memory map, in blocks of rows.

    Parameters
    ----------
    X : array (n, d) of numbers
    rows : int, optional
        Rows of a partition; by default as many as make two million numbers.
    names : sequence of str, optional
    """

    def __init__(
        self, X: NDArray[Any], rows: int | None = None, names: Sequence[str] | None = None
    ) -> None:
        partitions = [
            Partition(index, start, stop - start, "the array", start)
            for index, (start, stop) in enumerate(
                row_blocks(X.shape[0], partition_rows(X.shape[1], rows))
            )
        ]
        super().__init__(X.shape[1], X.dtype, partitions, names)
        self.X = X

    def read(self, partition: Partition) -> NDArray[Any]:
        """Rows of the array itself."""
        return np.asarray(self.X[partition.start : partition.start + partition.rows])
