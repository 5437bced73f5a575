"""Arrays as sources: in memory, memory-mapped, or Dask arrays."""

import sys
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.engine.source import Block, Partition, Seal, Source, partition_rows
from gnomon.errors import DataError, DataTypeError
from gnomon.events import On
from gnomon.inputs import as_table, is_sparse
from gnomon.inputs.csr import stored_bytes
from gnomon.typing import Table

__all__ = ["ArraySource", "DaskArraySource", "as_source", "hold", "names_of", "usual_type"]


def usual_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type of blocks of such numbers: native byte order, float64 at most.

    pyarrow, which checks names, supports neither foreign byte order nor longer floats.
    """
    longest = np.dtype(np.float64)
    return longest if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("=")


def names_of(table: Any) -> tuple[str, ...] | None:
    """Column names of a dataframe; None for arrays, and where columns are numbered."""
    if not nw.dependencies.is_into_dataframe(table):
        return None
    names = tuple(nw.from_native(table).columns)
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        raise DataTypeError(
            "The dataframe mixes column names that are text with others that are not. Make all of "
            "them text: frame.columns = frame.columns.astype(str)."
        )
    return names if texts else None


class ArraySource(Source):
    """An array in memory, a memory map or a CSR array, in blocks of rows.

    Parameters
    ----------
    X : array or CSR array (n, d) of numbers
    rows : int, optional
        Rows per partition; by default `partition_rows` of the columns.
    names : sequence of str, optional
    checked : bool
        Whether each pass checks that the numbers are those of the first pass.
    """

    def __init__(
        self,
        X: Table,
        rows: int | None = None,
        names: Sequence[str] | None = None,
        *,
        checked: bool = True,
    ) -> None:
        blocks = row_blocks(X.shape[0], partition_rows(X.shape[1], rows))
        partitions = [
            Partition(index, start, stop - start, "the array", start)
            for index, (start, stop) in enumerate(blocks)
        ]
        super().__init__(X.shape[1], usual_type(X.dtype), partitions, names)
        self.X, self.part_rows, self.checked = X, rows, checked

    def array(self) -> Table:
        """The array itself; None for a memory map given as a source: it is read in parts."""
        return None if self.checked and _is_mapped(self.X) else self.X

    @property
    def stored(self) -> int | None:
        """Entries of a CSR array."""
        return int(self.X.nnz) if is_sparse(self.X) else None

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return stored_bytes(self.X)

    def read(self, partition: Partition) -> Any:
        """Rows of the array, without a copy unless their type is unusual."""
        rows = self.X[partition.start : partition.stop]
        return rows if is_sparse(rows) else np.asarray(rows, self.dtype)

    def read_checked(self, partition: Partition) -> tuple[Any, Seal]:
        """Rows and their checksum; no checksum if the array cannot change during the call."""
        return super().read_checked(partition) if self.checked else (self.read(partition), 0)


def _is_mapped(X: Any) -> bool:
    """Whether the numbers of an array are memory-mapped."""
    while isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
        X = X.base
    return isinstance(X, np.memmap)


class DaskArraySource(Source):
    """A Dask array, in its own chunks of rows; a chunk is computed each time it is read.

    Parameters
    ----------
    X : dask.array.Array (n, d) of numbers
        Chunks of known size. Columns in several chunks are brought together. Masked cells
        are missing values. Chunks that a cluster holds (`persist`) are fetched from that cluster.
    names : sequence of str, optional
    """

    def __init__(self, X: Any, names: Sequence[str] | None = None) -> None:
        if X.ndim != 2:
            raise DataError(f"Expected 2D array of rows and columns; got shape {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise DataTypeError(f"The Dask array must hold numbers; its dtype is {X.dtype}.")
        if any(not isinstance(size, (int, np.integer)) for size in X.chunks[0]):
            raise DataError(
                "The Dask array has chunks of unknown size. Call X.compute_chunk_sizes() first."
            )
        self.X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        sizes = [int(size) for size in X.chunks[0]]
        starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        partitions = [
            Partition(index, starts[at], sizes[at], "the Dask array", starts[at], place=at)
            for index, at in enumerate(i for i, size in enumerate(sizes) if size)
        ]
        dtype = np.dtype(np.uint8) if X.dtype.kind == "b" else usual_type(X.dtype)
        if isinstance(X._meta, np.ma.MaskedArray) and dtype.kind != "f":
            dtype = np.dtype(np.float64)  # float64 can hold NaN for missing values
        super().__init__(int(X.shape[1]), dtype, partitions, names)
        self.held = _client_of(X) is not None

    def read(self, partition: Partition) -> NDArray[Any]:
        """Compute one chunk on the calling thread."""
        block = as_table(self._computed(self.X.blocks[partition.place]))
        if is_sparse(block):
            raise DataError(
                "The Dask array has sparse chunks. Use X.map_blocks(lambda b: b.todense())."
            )
        if not np.can_cast(block.dtype, self.dtype, "same_kind"):
            raise DataTypeError(
                f"{partition}: the chunk has dtype {block.dtype}, but the Dask array declares "
                f"{self.dtype}. Use X.astype('{block.dtype}')."
            )
        dense: NDArray[Any] = block.astype(self.dtype, copy=False)
        return dense

    def _computed(self, chunk: Any) -> Any:
        if not self.held:
            return chunk.compute(scheduler="synchronous")
        from distributed import get_worker, worker_client

        try:
            get_worker()
        except ValueError:  # not on a worker
            return _client_of(chunk).compute(chunk).result()
        with worker_client() as client:  # frees the worker's thread meanwhile
            return client.compute(chunk).result()


def _client_of(X: Any) -> Any:
    """Client of a Dask array that a cluster holds at least partly; otherwise None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Future

    parts = X.__dask_graph__().values()
    return next((part.client for part in parts if isinstance(part, Future)), None)


def hold(table: Source, engine: Any, *, on: On | None = None) -> ArraySource:
    """Read `table` into memory, repartitioned by `partition_rows`."""
    X = (_sparse_array if table.is_sparse else _dense_array)(table, engine, on)
    held = ArraySource(X, table.part_rows, table.names, checked=False)
    held.held_from = table
    return held


def _dense_array(table: Source, engine: Any, on: On | None) -> NDArray[Any]:
    """The blocks of a dense table as one array."""
    X = np.empty(table.shape, table.dtype)
    done = 0

    def add(rows: NDArray[Any]) -> None:
        nonlocal done
        X[done : done + len(rows)] = rows
        done += len(rows)

    engine.write(_rows_of, table, add, on=on)
    return X


def _sparse_array(table: Source, engine: Any, on: On | None) -> Any:
    """The blocks of a sparse table as one CSR array."""
    assert table.stored is not None
    n, most = table.rows, table.stored
    data, indices = np.empty(most, table.dtype), np.empty(most, _index_type(most))
    indptr = np.zeros(n + 1, indices.dtype)
    row = at = 0

    def add(rows: Any) -> None:
        nonlocal row, at
        end = at + rows.nnz
        data[at:end], indices[at:end] = rows.data, rows.indices
        indptr[row + 1 : row + 1 + rows.shape[0]] = rows.indptr[1:] + np.asarray(at, indptr.dtype)
        row, at = row + rows.shape[0], end

    engine.write(_rows_of, table, add, on=on)
    return sp.csr_array((data[:at], indices[:at], indptr), shape=table.shape)


def _index_type(largest: int) -> type[np.signedinteger[Any]]:
    return np.int32 if largest < 2**31 else np.int64


def _rows_of(block: Block) -> NDArray[Any]:
    return block.X


def as_source(X: Any) -> Source | None:
    """Return `X` if it is a source, the source of a Dask array, or None for everything else."""
    if isinstance(X, Source):
        return X
    if type(X).__module__.startswith("dask.array"):
        return DaskArraySource(X)
    return None
