"""A matrix in a file, dense or sparse, read in parts: rows of some of its columns.

A sparse matrix stays sparse: a part is a CSR array of its rows. Formats that do not store rows one
after the other (columns first, coordinates) are turned into rows once, in a temporary copy:

1. One pass over the entries counts those of each row; their sums are where rows begin.
2. A second pass puts every entry behind the former ones of its row. Only whole batches of entries
   are in memory, and the copy is two files: columns and values.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.budget import check_free
from gnomon.compute.threads import row_blocks
from gnomon.data.column_options import ColumnOptions
from gnomon.data.formats.parts import AT_ONCE, LOOK, BlockFile, Piece, refuse_absent
from gnomon.data.formats.spool import Spool
from gnomon.data.matrix import number_codes
from gnomon.data.raw import RawTable
from gnomon.data.refusals import COPIED_WHOLE, FileError, OptionError, quoted
from gnomon.data.roles import assign_roles
from gnomon.data.table import ColumnRoles
from gnomon.engine.source import INDEX_BYTES, partition_rows
from gnomon.errors import DataError
from gnomon.inputs.csr import canonical_csr

__all__ = ["BATCH", "CsrFiles", "Matrix", "MatrixTable", "spool_csr", "stored_entries"]

BATCH = 2**22  # entries that are turned at once
NAME_ROWS = 2**17  # rows whose names are read at once
ROW_BYTES = 32  # counts and places of a row while rows are put together
COLUMN_BYTES = 100  # name of a column
LOOK_BYTES = 2**24  # bytes that are looked at to see what columns hold
COLUMN, VALUE = "columns", "values"  # files of a copy

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # rows, columns, values


class Matrix(ABC):
    """Rows of a matrix that lies in a file; small when it is pickled."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    stored: int | None  # entries of a sparse matrix

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Rows `start` to `stop` as an array, or as a canonical CSR array."""

    def row_bytes(self, start: int, stop: int) -> int:
        """Bytes of some rows in memory."""
        return (stop - start) * self.shape[1] * self.dtype.itemsize

    def release(self) -> None:  # noqa: B027  (most keep no file open)
        """Close the file."""


class CsrRows(Matrix):
    """Rows of a CSR matrix; a subclass reads its entries.

    Parameters
    ----------
    name : str
        What it is called in errors.
    shape : tuple of int
    dtype : dtype
    indptr : array (n + 1,)
        Where each row begins among the entries.
    """

    def __init__(
        self, name: str, shape: tuple[int, int], dtype: np.dtype[Any], indptr: NDArray[Any]
    ) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
        self.indptr = np.asarray(indptr, np.int64)
        ends = self.indptr.shape == (shape[0] + 1,) and self.indptr[0] == 0
        if not ends or (np.diff(self.indptr) < 0).any():
            raise FileError(
                f"{name} is a broken sparse matrix: indptr must hold {shape[0] + 1:,} whole "
                "numbers that begin with 0 and never decrease.",
                COPIED_WHOLE,
            )
        self.stored = int(self.indptr[-1])

    @abstractmethod
    def take(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Columns and values of the entries `start` to `stop`."""

    def read(self, start: int, stop: int) -> Any:
        """Rows `start` to `stop` as a canonical CSR array."""
        indptr = self.indptr[start : stop + 1]
        columns, values = self.take(int(indptr[0]), int(indptr[-1]))
        rows = indptr - indptr[0]
        small = rows[-1] < 2**31 and self.shape[1] < 2**31
        kind = np.int32 if small else np.int64
        shape = (len(rows) - 1, self.shape[1])
        try:
            parts = values, columns.astype(kind, copy=False), rows.astype(kind)
            return canonical_csr(sp.csr_array(parts, shape=shape))
        except DataError as error:
            raise FileError(f"{error.replace(table=self.name)}") from None
        except (ValueError, TypeError, IndexError) as error:
            raise FileError(f"{self.name} is a broken sparse matrix ({error}).") from None

    def row_bytes(self, start: int, stop: int) -> int:
        """Bytes of the entries of some rows."""
        entries = int(self.indptr[stop] - self.indptr[start])
        return entries * (self.dtype.itemsize + INDEX_BYTES) + 8 * (stop - start + 1)


@dataclass(frozen=True)
class Numbers:
    """Numbers that lie one after the other in a file."""

    path: Path
    dtype: np.dtype[Any]
    offset: int = 0

    def take(self, start: int, stop: int) -> NDArray[Any]:
        """Numbers `start` to `stop`; fewer if the file has lost some."""
        at = self.offset + start * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, count=stop - start, offset=at)


class CsrFiles(CsrRows):
    """A CSR matrix whose columns and values are in two files."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, int],
        indptr: NDArray[Any],
        columns: Numbers,
        values: Numbers,
    ) -> None:
        super().__init__(name, shape, values.dtype.newbyteorder("="), indptr)
        self.columns, self.values = columns, values

    def take(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Columns and values of some entries."""
        values = self.values.take(start, stop).astype(self.dtype, copy=False)
        return self.columns.take(start, stop), values


def spool_csr(
    name: str,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    batches: Callable[[], Iterator[Entries]],
    spool: Spool,
) -> CsrFiles:
    """Turn entries in any order into rows, in files of `spool` (see the module).

    `batches()` gives all of them twice, a few million at a time; rows and columns are checked.
    """
    needed = ROW_BYTES * shape[0] + COLUMN_BYTES * shape[1]
    check_free(f"{name}: a sparse matrix of shape {shape}", needed, "Take fewer rows.")
    counts = np.zeros(shape[0], np.int64)
    for rows, columns, _ in batches():
        for at, size, what in ((rows, shape[0], "row"), (columns, shape[1], "column")):
            if at.size and not 0 <= at.min() <= at.max() < size:
                raise FileError(
                    f"{name} is a broken sparse matrix: a {what} is beyond its {size:,} {what}s.",
                    COPIED_WHOLE,
                )
        counts += np.bincount(rows, minlength=shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total = int(indptr[-1])
    kind = np.dtype(np.int32 if shape[1] < 2**31 else np.int64)
    spool.check(total * (kind.itemsize + dtype.itemsize))
    files = Numbers(spool.folder / COLUMN, kind), Numbers(spool.folder / VALUE, dtype)
    with spool.writing():
        if total == 0:
            for file in files:
                file.path.touch()
            return CsrFiles(name, shape, indptr, *files)
        to = [np.memmap(file.path, file.dtype, "w+", shape=(total,)) for file in files]
        free = indptr[:-1].copy()  # where the next entry of each row goes
        for rows, columns, values in batches():
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
            first = np.concatenate([[True], rows[1:] != rows[:-1]])
            starts = np.flatnonzero(first)
            within = np.arange(rows.size) - starts[np.cumsum(first) - 1]
            places = free[rows] + within
            to[0][places], to[1][places] = columns[order], values[order]
            free[rows[starts]] += np.diff(np.append(starts, rows.size))
        for array in to:
            array.flush()
    return CsrFiles(name, shape, indptr, *files)


def stored_entries(
    indptr: NDArray[Any], indices: Any, data: Any, *, by_rows: bool
) -> Iterator[Entries]:
    """Entries of a CSR matrix, or of a CSC matrix if not `by_rows`, a batch at a time."""
    total = data.shape[0]
    for start in range(0, total, BATCH):
        stop = min(start + BATCH, total)
        ends = np.searchsorted(indptr, np.arange(start, stop), "right") - 1
        at, values = np.asarray(indices[start:stop]), np.asarray(data[start:stop])
        yield (ends, at, values) if by_rows else (at, ends, values)


class MatrixTable(BlockFile):
    """A matrix in parts, with what stands beside its rows.

    Parameters
    ----------
    name : str
    matrix : Matrix
    names : sequence of str
        Of its columns.
    options : ColumnOptions
    rows : int or None
        Rows of a part.
    named : bool
        Whether the names are from the file.
    beside : callable
        Columns that stand beside rows `start` to `stop`, by name.
    categories : frozenset of str
        Those of these columns that the file calls categories.
    notes : tuple of str
    spool : Spool, optional
        The temporary copy that the matrix is read from.
    """

    def __init__(
        self,
        name: str,
        matrix: Matrix,
        names: Sequence[str],
        options: ColumnOptions,
        rows: int | None,
        *,
        named: bool,
        beside: Callable[[int, int], Mapping[str, Any]] | None = None,
        categories: frozenset[str] = frozenset(),
        notes: tuple[str, ...] = (),
        spool: Spool | None = None,
    ) -> None:
        self.name, self.matrix, self.beside, self.named = name, matrix, beside, named
        self.categories = categories
        self.matrix_names, self.notes, self.spool = tuple(names), notes, spool
        self.all_names = (*self.matrix_names, *(() if beside is None else beside(0, 1)))
        roles, numbers = self._roles(options)
        self.roles, self.used = roles, None
        if numbers != self.matrix_names:
            place = {name: j for j, name in enumerate(self.matrix_names)}
            self.used = np.array([place[name] for name in numbers], np.intp)
        self.names = numbers if named else None
        self.columns, self.dtype, self.stored = len(numbers), matrix.dtype, matrix.stored
        if self.codes and self.dtype.kind != "f":
            self.dtype = np.dtype(np.float64)
        self.pieces = [
            Piece(start, stop - start, start)
            for start, stop in row_blocks(matrix.shape[0], partition_rows(self.read_columns, rows))
        ]
        self.most_bytes = max(
            matrix.row_bytes(piece.first, piece.first + piece.rows) for piece in self.pieces
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "beside": None}

    @property
    def read_columns(self) -> int:
        """Columns by which rows are divided into parts."""
        return self.columns

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> Any:
        """Some rows, dense or CSR."""
        block = self.matrix.read(piece.first, piece.first + piece.rows)
        if self.used is not None:
            block = block[:, self.used]
        if self.codes:
            block = np.array(block, self.dtype)  # bytes of a file are not to be written to
            for code in self.codes:
                block[block == code] = np.nan
        return block if self.stored is None else canonical_csr(block)

    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All cells of some columns, part after part."""
        inside = [name for name in names if name in self.matrix_names]
        step = self.pieces[0].rows if inside else NAME_ROWS
        for start, stop in row_blocks(self.matrix.shape[0], step):
            beside = {} if self.beside is None else self.beside(start, stop)
            found = {name: cells for name, cells in beside.items() if name in names}
            if inside:
                at = [self.matrix_names.index(name) for name in inside]
                block = self.matrix.read(start, stop)[:, at]
                numbers = block if self.stored is None else block.toarray()
                found |= {name: _column(numbers[:, j]) for j, name in enumerate(inside)}
            categories = self.categories & {*found}
            yield RawTable(self.name, found, named=self.named, categories=categories)

    def release(self, but: Any = None) -> None:
        """Close the file."""
        if but is None:
            self.matrix.release()

    def _roles(self, options: ColumnOptions) -> tuple[ColumnRoles, tuple[str, ...]]:
        """What columns are used for, by the first rows, and the names of the features."""
        self.codes = number_codes(options.na)
        if self.codes and self.matrix.stored is not None:
            raise OptionError(
                f"{self.name} holds a sparse matrix, whose missing values are NaN.", "Leave na out."
            )
        if options.columns is not None:
            absent = not {*options.columns} <= {*self.matrix_names}
            if absent and not self.named and len(options.columns) == len(self.matrix_names):
                return ColumnRoles(self.matrix_names), self.matrix_names
            refuse_absent(options.columns, self.matrix_names, self.name)
            return ColumnRoles(options.columns), options.columns
        n = self.matrix.shape[0]
        width = max(1, self.matrix.row_bytes(0, n) // n)
        rows = min(n, max(1, LOOK_BYTES // width), LOOK)
        beside = {} if self.beside is None else dict(self.beside(0, rows))
        first = RawTable(
            self.name,
            beside,
            self.matrix.read(0, rows),
            self.matrix_names,
            named=self.named,
            typed=True,
            categories=self.categories,
            beside=frozenset(beside),
            more=rows < n,
        )
        roles = assign_roles(first, options)
        dense = [name for name in roles.numbers if name in beside]
        if dense:
            raise OptionError(
                f"{self.name}: {quoted(dense[0])} stands beside the matrix, and is no feature of a "
                "table that is read in blocks.",
                ("drop", dense[0]),
            )
        self.notes = (*self.notes, *roles.notes)
        return roles.names, roles.numbers


def _column(numbers: NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array(np.ascontiguousarray(numbers))])
