"""X or a layer that is not in memory, backed by a file or by Dask, as a table read in parts.

Parts are those of an array in memory, whatever chunks the file or Dask has, so that results have
the same bits. Sparse parts stay sparse.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.engine import Partition, Source
from gnomon.engine.source import partition_rows
from gnomon.inputs import is_sparse
from gnomon.inputs.csr import canonical_csr

__all__ = ["MatrixParts", "as_parts"]


class MatrixParts(Source):
    """Rows of a matrix outside of memory, some of its columns alone.

    Parameters
    ----------
    rows : callable
        Rows `start` to `stop` of all columns, dense or sparse.
    shape : tuple of int
    dtype : dtype
    entries : int or None
        Entries of a sparse matrix; −1 if they are to be counted.
    used : array or None
        Numbers of the columns in use.
    """

    def __init__(
        self,
        rows: Callable[[int, int], Any],
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        entries: int | None,
        used: NDArray[np.intp] | None = None,
    ) -> None:
        n, d = shape[0], shape[1] if used is None else used.size
        partitions = [
            Partition(index, start, stop - start, "X", start)
            for index, (start, stop) in enumerate(row_blocks(n, partition_rows(d)))
        ]
        super().__init__(d, np.dtype(np.uint8) if dtype.kind == "b" else dtype, partitions)
        self.take, self.entries, self.used = rows, entries, used

    @cached_property
    def stored(self) -> int | None:
        """Entries of a sparse matrix, at most; Dask's are counted in one pass."""
        if self.entries is not None and self.entries < 0:
            return sum(int(self.read(partition).nnz) for partition in self.partitions)
        return self.entries

    @property
    def is_sparse(self) -> bool:
        """Whether parts are CSR arrays."""
        return self.entries is not None

    def read(self, partition: Partition) -> Any:
        """Some rows of the columns in use."""
        rows = self.take(partition.start, partition.stop)
        if self.used is not None:
            rows = rows[:, self.used]
        if self.is_sparse:
            return canonical_csr(sp.csr_array(rows)).astype(self.dtype, copy=False)
        return np.ascontiguousarray(rows, self.dtype)

    def columns_at(self, at: NDArray[np.intp]) -> "MatrixParts":
        """Return the table with some of its columns in use."""
        shape = self.rows, self.columns
        return MatrixParts(self.take, shape, self.dtype, self.entries, at)


def as_parts(matrix: Any) -> MatrixParts | None:
    """A matrix backed by a file or by Dask in parts; None for one in memory.

    One that is stored by columns (CSC) is None as well: its rows are all over the file.
    """
    if type(matrix).__module__.startswith("dask.array"):
        lazy = matrix.rechunk({1: -1}) if len(matrix.chunks[1]) > 1 else matrix
        sparse = is_sparse(matrix._meta)

        def computed(start: int, stop: int) -> Any:
            blocks = _computed(lazy, start, stop)
            return sp.vstack(blocks, "csr") if sparse else np.concatenate(blocks)

        return MatrixParts(computed, matrix.shape, matrix.dtype, -1 if sparse else None)
    if isinstance(matrix, np.ndarray) or is_sparse(matrix):
        return None
    if hasattr(matrix, "to_memory"):  # sparse, in a file
        if matrix.format != "csr":
            return None
        entries = int(matrix.group["data"].size)
        return MatrixParts(lambda a, b: matrix[a:b], matrix.shape, matrix.dtype, entries)
    if hasattr(matrix, "id"):  # of h5py
        return MatrixParts(lambda a, b: matrix[a:b], matrix.shape, matrix.dtype, None)
    return None


def _computed(lazy: Any, start: int, stop: int) -> list[Any]:
    """Rows of a Dask array, chunk by chunk."""
    found, at = [], 0
    for number, size in enumerate(lazy.chunks[0]):
        first, last = max(start, at), min(stop, at + size)
        if first < last:
            chunk = lazy.blocks[number].compute(scheduler="synchronous")
            found.append(chunk[first - at : last - at])
        at += size
    return found
