"""Sparse matrices in files: SciPy's `.npz`, Matrix Market, and folders as 10x Genomics writes them.

They are held as canonical CSR arrays, or read in parts (`matrix_parts`), and never made dense. What
a file claims about its size is compared with the bytes that are there and with the memory allowed
before anything is allocated.

A 10x folder holds ``matrix.mtx`` with genes in its rows and cells in its columns, ``features.tsv``
(``genes.tsv`` before version 3) and ``barcodes.tsv``, each also as ``.gz``. Its table has a row for
each cell: barcodes are ids, gene names are columns.
"""

import io
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.budget import Memory
from gnomon.data.column_options import ColumnOptions
from gnomon.data.file_content import FileContent, byte_chunks, first_bytes, open_content
from gnomon.data.formats.matrix_parts import (
    BATCH,
    CsrFiles,
    Entries,
    MatrixTable,
    spool_csr,
    stored_entries,
)
from gnomon.data.formats.spool import Spool
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import COPIED_WHOLE, FileError, quoted
from gnomon.errors import DataError
from gnomon.inputs.csr import canonical_csr

__all__ = [
    "find_10x",
    "is_sparse_npz",
    "matrix_bytes",
    "mtx_table",
    "npz_rows",
    "read_10x",
    "read_mtx",
    "sparse_npz",
    "table_10x",
]

# Arrays of each format that scipy.sparse.save_npz writes beside "format", "shape" and "data".
PARTS = {
    "csr": {"indices", "indptr"},
    "csc": {"indices", "indptr"},
    "bsr": {"indices", "indptr"},
    "coo": {"row", "col"},
}
ENTRY_BYTES = 40  # of an entry of Matrix Market: row, column and value as read, and as CSR
LEAST_ENTRY = 4  # characters of an entry: "1 1\n"
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
GENES = ("features.tsv.gz", "features.tsv", "genes.tsv.gz", "genes.tsv")
CELLS = ("barcodes.tsv.gz", "barcodes.tsv")
MATRIX = ("matrix.mtx.gz", "matrix.mtx")
CSC = "stored by columns (CSC): turned into rows once, which takes a copy"
HEAD_BYTES = 2**20  # in which the sizes of a Matrix Market file stand


def is_sparse_npz(keys: Any) -> bool:
    """Whether an `.npz` has the arrays that scipy.sparse.save_npz writes."""
    return {"format", "shape", "data"} <= set(keys)


def sparse_npz(arrays: Mapping[str, NDArray[Any]], name: str) -> RawTable:
    """The matrix whose arrays save_npz wrote; they were checked for pickles when they were read."""
    kind, size = _stored_as(arrays, name)
    data = arrays["data"]
    try:
        if kind == "coo":
            X = sp.coo_array((data, (arrays["row"], arrays["col"])), shape=size)
        else:
            made = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[kind]
            X = made((data, arrays["indices"], arrays["indptr"]), shape=size)
    except (ValueError, TypeError, IndexError) as error:
        raise FileError(f"{name} holds a broken sparse matrix ({error}).", COPIED_WHOLE) from None
    return _raw(X, name, notes=(CSC,) if kind == "csc" else ())


def _stored_as(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[str, tuple[int, int]]:
    """The format of a matrix that save_npz wrote, and its shape."""
    kind = arrays["format"].item() if arrays["format"].ndim == 0 else ""
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in PARTS:
        raise FileError(
            f"{name} holds a sparse matrix of format {quoted(kind)}; {', '.join(PARTS)} are read.",
            "Save it again: scipy.sparse.save_npz(file, X.tocsr()).",
        )
    absent = PARTS[kind] - set(arrays)
    shape = arrays["shape"]
    if absent or shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        what = f"lacks {quoted(min(absent))}" if absent else "has no shape of two whole numbers"
        raise FileError(f"{name}: the sparse matrix {what}.", "Save it again.")
    return kind, (int(shape[0]), int(shape[1]))


def npz_rows(
    arrays: Mapping[str, NDArray[Any]], name: str, spool: Spool
) -> tuple[CsrFiles, tuple[str, ...]]:
    """Rows of the matrix that save_npz wrote, whose arrays are mapped from files; and notes."""
    kind, shape = _stored_as(arrays, name)
    _refuse_empty(shape, name)
    data = arrays["data"]
    if data.dtype.kind not in "biuf":
        raise FileError(f"{name} holds {data.dtype}, not numbers.")
    if kind == "bsr":
        raise FileError(
            f"{name} holds a sparse matrix in blocks (BSR), which is not read in parts.",
            "Save it again: scipy.sparse.save_npz(file, X.tocsr()).",
        )
    _refuse_broken(arrays, kind, shape, name)
    dtype = np.dtype(np.uint8) if data.dtype.kind == "b" else data.dtype.newbyteorder("=")

    def batches() -> Iterator[Entries]:
        if kind != "coo":
            yield from stored_entries(
                arrays["indptr"], arrays["indices"], data, by_rows=kind == "csr"
            )
            return
        for start in range(0, data.size, BATCH):
            some = slice(start, start + BATCH)
            yield arrays["row"][some], arrays["col"][some], data[some]

    return spool_csr(name, shape, dtype, batches, spool), (CSC,) if kind == "csc" else ()


def _refuse_broken(
    arrays: Mapping[str, NDArray[Any]], kind: str, shape: tuple[int, int], name: str
) -> None:
    """Refuse arrays that cannot be those of a matrix of this shape."""
    data, places = arrays["data"], [arrays[key] for key in sorted(PARTS[kind])]
    sound = data.ndim == 1 and all(each.ndim == 1 and each.dtype.kind in "iu" for each in places)
    if sound and kind == "coo":
        sound = all(each.size == data.size for each in places)
    elif sound:
        indices, indptr = places
        ends = shape[0] if kind == "csr" else shape[1]
        sound = indices.size == data.size and indptr.size == ends + 1
        sound = sound and indptr[0] == 0 and indptr[-1] == data.size
        sound = sound and bool((indptr[1:] >= indptr[:-1]).all())
    if not sound:
        raise FileError(f"{name} holds a broken sparse matrix.", COPIED_WHOLE)


def mtx_table(path: Path, options: ColumnOptions, rows: int | None, spool: Spool) -> MatrixTable:
    """A Matrix Market file in parts, from a temporary copy by rows."""
    matrix = _coordinate_rows(path, spool, transposed=False)
    names, said = unique_names(None, matrix.shape[1])
    return MatrixTable(
        spool.name, matrix, names, options, rows, named=False, notes=tuple(said), spool=spool
    )


def table_10x(
    files: Mapping[str, Path], options: ColumnOptions, rows: int | None, spool: Spool
) -> MatrixTable:
    """A 10x folder in parts, from a temporary copy by cells."""
    matrix = _coordinate_rows(files["matrix"], spool, transposed=True)
    genes, cells = _names_10x(files, spool.name, matrix.shape, None)
    names, said = unique_names(genes, matrix.shape[1])

    def beside(start: int, stop: int) -> dict[str, Any]:
        return {"barcode": cells.slice(start, stop - start)}

    return MatrixTable(
        spool.name,
        matrix,
        names,
        options,
        rows,
        named=True,
        beside=beside,
        notes=tuple(said),
        spool=spool,
    )


def matrix_bytes(path: Path) -> int:
    """Bytes that a Matrix Market file takes while it is brought into memory, by its sizes."""
    return ENTRY_BYTES * _read_sizes(_head(path), path.name)[1]


def _head(path: Path) -> bytes:
    return first_bytes(byte_chunks(path, path.name), HEAD_BYTES)[:HEAD_BYTES]


def _coordinate_rows(path: Path, spool: Spool, *, transposed: bool) -> CsrFiles:
    """The entries of a Matrix Market file by rows, or by columns if `transposed`."""
    head = _head(path)
    (n, d), entries, at = _read_sizes(head, path.name)
    _refuse_empty((n, d), path.name)
    field, symmetry = head.split(b"\n", 1)[0].decode("latin-1").lower().split()[3:5]
    if symmetry != "general":
        raise FileError(
            f"{path.name} holds one half of a {symmetry} matrix, which is not read in parts.",
            "Save the whole of it: scipy.io.mmwrite(file, X, symmetry='general').",
        )
    width = 2 if field == "pattern" else 3
    whole = field in ("integer", "unsigned-integer")
    dtype = np.dtype(np.int64 if whole else np.float64)

    def batches() -> Iterator[Entries]:
        seen = 0
        for numbers in _numbers(path, at, width):
            seen += len(numbers)
            _refuse_fractions(numbers if whole else numbers[:, :2], path.name)
            rows, columns = (numbers[:, j].astype(np.int64) - 1 for j in range(2))
            values = np.ones(len(numbers)) if width == 2 else numbers[:, 2]
            rows, columns = (columns, rows) if transposed else (rows, columns)
            yield rows, columns, values.astype(dtype)
        if seen != entries:
            raise FileError(
                f"{path.name} promises {entries:,} entries and has {seen:,}.", COPIED_WHOLE
            )

    shape = (d, n) if transposed else (n, d)
    return spool_csr(spool.name, shape, dtype, batches, spool)


def _numbers(path: Path, at: int, width: int) -> Iterator[NDArray[np.float64]]:
    """The lines of a Matrix Market file from byte `at` on as numbers, shape (lines, width)."""
    rest, skip = b"", at
    chunks = byte_chunks(path, path.name)
    for chunk in _with_end(chunks):
        some, skip = chunk[skip:], max(0, skip - len(chunk))
        lines, newline, rest = (rest + some).rpartition(b"\n")
        text = lines + newline
        if not text.strip():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            try:
                found = np.fromstring(text.decode("ascii"), sep=" ")
                yield found.reshape(-1, width)
            except (ValueError, DeprecationWarning, UnicodeDecodeError):
                raise FileError(
                    f"{path.name} is a broken Matrix Market file: not every line has {width} "
                    "numbers.",
                    COPIED_WHOLE,
                ) from None


def _refuse_fractions(numbers: NDArray[np.float64], name: str) -> None:
    """Refuse whole numbers that are none, or that float64 does not hold."""
    if not (np.abs(numbers) < 2**53).all() or (numbers % 1).any():
        raise FileError(
            f"{name} is a broken Matrix Market file: numbers that should be whole and below 2^53 "
            "are not.",
            COPIED_WHOLE,
        )


def _with_end(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, and a newline for a last line without one."""
    yield from chunks
    yield b"\n"


def _refuse_empty(shape: tuple[int, int], name: str) -> None:
    if 0 in shape:
        what = "columns" if shape[1] == 0 else "rows"
        raise FileError(f"{name} has no {what}: its shape is {shape}.")


def read_mtx(content: FileContent) -> RawTable:
    """A coordinate matrix in Matrix Market format; rows of the file are rows."""
    return _raw(_read_coordinates(content), content.name)


def _read_coordinates(content: FileContent) -> Any:
    """The matrix as SciPy reads it, once its header agrees with its size."""
    from scipy.io import mmread

    name = content.name
    shape, entries, at = _read_sizes(content.data[:HEAD_BYTES].tobytes(), name)
    content.check(ENTRY_BYTES * entries + 16 * max(shape))
    if entries * LEAST_ENTRY - 1 > content.data.size - at:  # the last newline may be missing
        raise FileError(
            f"{name} promises {entries:,} entries, and there is no space for so many.", COPIED_WHOLE
        )
    try:
        return mmread(io.BytesIO(content.data.tobytes()))
    except (ValueError, OverflowError, IndexError, TypeError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{name} is a broken Matrix Market file ({what}).", COPIED_WHOLE) from None


def _read_sizes(text: bytes, name: str) -> tuple[tuple[int, int], int, int]:
    """Rows and columns, entries, and where the entries begin, from the first bytes of a file."""
    banner = text.split(b"\n", 1)[0].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[1:3] != ["matrix", "coordinate"] or banner[3] not in FIELDS:
        raise FileError(
            f"{name} is a Matrix Market file of {quoted(' '.join(banner[1:]))}; coordinate "
            "matrices of real or whole numbers are read.",
            "Save it again with scipy.io.mmwrite of a sparse matrix.",
        )
    at = 0
    for line in text.split(b"\n"):
        at += len(line) + 1
        if line.strip() and not line.startswith(b"%"):
            break
    try:
        rows, columns, entries = (int(part) for part in line.split())
    except ValueError:
        rows = columns = entries = -1
    if min(rows, columns, entries) < 0:
        raise FileError(
            f"{name} does not say how many rows, columns and entries it has.", COPIED_WHOLE
        )
    return (rows, columns), entries, at


def find_10x(folder: Path) -> dict[str, Path] | None:
    """The three files of a 10x folder by what they hold; None for any other folder."""
    if not folder.is_dir():
        return None
    found = {}
    for what, names in (("matrix", MATRIX), ("genes", GENES), ("cells", CELLS)):
        there = next((folder / name for name in names if (folder / name).is_file()), None)
        if there is None:
            return None
        found[what] = there
    return found


def read_10x(files: Mapping[str, Path], name: str, memory: Memory = None) -> RawTable:
    """Cells × genes of a 10x folder, with the names of both."""
    content = open_content(files["matrix"], memory)
    if content.kind != "mtx":
        raise FileError(f"{content.name} is no Matrix Market file.", COPIED_WHOLE)
    X = _read_coordinates(content).T
    genes, cells = _names_10x(files, name, X.shape, memory)
    return _raw(X, name, genes, {"barcode": cells})


def _names_10x(
    files: Mapping[str, Path], name: str, shape: tuple[int, int], memory: Memory
) -> tuple[list[str], Any]:
    """Names of genes and cells, as many as the matrix has."""
    genes = _lines(files["genes"], memory)
    barcodes = [row[0] for row in _lines(files["cells"], memory)]
    for many, size, what in ((genes, shape[1], "genes"), (barcodes, shape[0], "cells")):
        if len(many) != size:
            raise FileError(
                f"{name}: {files[what].name} names {len(many):,} {what}, and "
                f"{files['matrix'].name} has {size:,}.",
                "Take the files of one run.",
            )
    cells = pa.chunked_array([pa.array(barcodes, pa.string())])
    return [row[1] if len(row) > 1 and row[1] else row[0] for row in genes], cells


def _lines(path: Path, memory: Memory) -> list[list[str]]:
    """The fields of each line of a small table without a header row."""
    data = open_content(path, memory).data.tobytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{path.name} is no text in UTF-8.", COPIED_WHOLE) from None
    return [line.rstrip("\r").split("\t") for line in text.rstrip("\n").split("\n") if line]


def _raw(
    X: Any,
    name: str,
    names: list[str] | None = None,
    beside: dict[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> RawTable:
    """A sparse matrix as the columns of a table."""
    _refuse_empty(X.shape, name)
    try:
        matrix = canonical_csr(sp.coo_array(X) if not sp.issparse(X) else X)
    except DataError as error:
        raise FileError(f"{name}: {error.replace(table='it')}") from None
    if matrix.dtype.kind == "b":
        matrix = matrix.astype(np.uint8)
    columns, said = unique_names(names, matrix.shape[1])
    beside = beside or {}
    return RawTable(
        name,
        beside,
        matrix,
        tuple(columns),
        notes=(*notes, *said),
        named=names is not None,
        beside=frozenset(beside),
        typed=True,
    )
