"""Write blocks of rows, one after the other, into one file, atomically."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.files import writing

Add = Callable[[NDArray[Any]], object]

ENDINGS = (".npy", ".parquet")

__all__ = ["ENDINGS", "writing_blocks"]


@contextmanager
def writing_blocks(
    path: str | PathLike[str],
    rows: int,
    names: Sequence[str],
    *,
    force: bool = False,
    beside: Mapping[str, Any] | None = None,
) -> Iterator[Add]:
    """Open `path` for blocks; yield a function that appends a block (m, d).

    Parameters
    ----------
    path : path
        Output file, with a suffix in `ENDINGS`; it appears under its name at the end.
    rows : int
        Total number of rows.
    names : sequence of str, length d
        Column names; ``.npy`` has none.
    force : bool
        Whether a file that exists is replaced.
    beside : mapping of str to array (rows,), optional
        Columns of a Parquet file that go before those of the blocks, such as ids.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        refuse("to", f"end in one of {', '.join(ENDINGS)}", str(path))
    with writing(Path(path), force=force) as part, part.open("wb") as file:
        sink: _Npy | _Parquet = _Parquet(file, names, beside or {})
        if ending == ".npy":
            sink = _Npy(file, rows, len(names))
        try:
            yield sink.add
            sink.close()
            file.flush()
        except BaseException:
            sink.abandon()
            raise


class _Npy:
    """Write a header with the type of the first block, then the raw rows."""

    def __init__(self, file: BinaryIO, rows: int, columns: int) -> None:
        self.file, self.shape = file, (rows, columns)
        self.begun = False

    def add(self, block: NDArray[Any]) -> None:
        """Append rows."""
        if not self.begun:
            self._begin(block.dtype)
        self.file.write(np.ascontiguousarray(block).data)

    def close(self) -> None:
        """Write the header of a table without rows, if there was no block."""
        if not self.begun:
            self._begin(np.dtype(np.float64))

    def abandon(self) -> None:
        """Do nothing: no resource is held."""

    def _begin(self, dtype: np.dtype[Any]) -> None:
        self.begun = True
        header = {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": self.shape,
        }
        np.lib.format.write_array_header_1_0(self.file, header)


class _Parquet:
    """Write one row group for each block, so that the file can be read in blocks."""

    def __init__(self, file: BinaryIO, names: Sequence[str], beside: Mapping[str, Any]) -> None:
        import pyarrow as pa

        self.file, self.names, self.done = file, [*beside, *names], 0
        self.beside = [pa.array(column) for column in beside.values()]
        self.writer: Any = None

    def add(self, block: NDArray[Any]) -> None:
        """Append rows."""
        import pyarrow as pa

        columns = [column.slice(self.done, len(block)) for column in self.beside]
        columns += [pa.array(column) for column in np.ascontiguousarray(block.T)]
        self.done += len(block)
        table = pa.Table.from_arrays(columns, self.names)
        self._writer(table.schema).write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """Write the footer of the Parquet file."""
        import pyarrow as pa

        self._writer(pa.schema([(name, pa.float64()) for name in self.names])).close()

    def abandon(self) -> None:
        """Close the file, which will be removed."""
        if self.writer is not None:
            with suppress(Exception):  # closing writes too, which fails on a full disk
                self.writer.close()

    def _writer(self, schema: Any) -> Any:
        if self.writer is None:
            import pyarrow.parquet as pq

            # computed numbers rarely repeat: dictionary encoding would take a third longer
            self.writer = pq.ParquetWriter(self.file, schema, use_dictionary=False)
        return self.writer
