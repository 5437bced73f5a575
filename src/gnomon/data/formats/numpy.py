"""`.npy` and `.npz` without trust: the header is checked against the file before it is believed.

NumPy's own reader allocates what the header claims and can unpickle. Here the header is
a literal of three entries, the bytes it promises must be there, and objects are refused.

`read_npy` and `read_npz` give the whole of a file, `NpyTable` and `npz_parts` its parts. A part is
read into memory of its own rather than mapped: mapped pages count as memory of the process for as
long as the file is open, and a file that is cut short while it is mapped ends the process instead
of raising an error. Of files with columns first, a part of each column is read.
"""

import ast
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.budget import readable_bytes
from gnomon.data.column_options import ColumnOptions
from gnomon.data.file_content import FileContent, read_chunks
from gnomon.data.formats.io import Disk, Ranges
from gnomon.data.formats.matrix_parts import Matrix, MatrixTable
from gnomon.data.formats.parts import AHEAD, AT_ONCE, BlockFile, Piece
from gnomon.data.formats.prefetch import Coming
from gnomon.data.formats.sparse import is_sparse_npz, npz_rows, sparse_npz
from gnomon.data.formats.spool import Spool
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import COPIED_WHOLE, FileError, NoRowsError, listed, quoted
from gnomon.errors import GnomonError
from gnomon.files import shown_name
from gnomon.typing import Octets

__all__ = ["NpyTable", "npz_bytes", "npz_parts", "read_header", "read_npy", "read_npz"]

LONGEST_HEADER = 10_000  # NumPy's own limit: parsing a longer literal may crash the interpreter
# What zipfile and the decompressors raise for a damaged archive.
UNZIPPING = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)
NAMES = ("columns", "feature_names", "names", "features", "var_names", "genes")


def read_npy(content: FileContent) -> RawTable:
    """The array of an .npy file as a table; its rows stay in the file until they are needed."""
    array = _array(content.data, content.name)
    return _raw(array, content.name)


def read_npz(content: FileContent) -> RawTable:
    """The one table of an .npz file, and arrays of as many rows beside it as further columns."""
    archive, check = io.BytesIO(content.data.tobytes()), lambda size: content.check(2 * size)
    members = _members(archive, content.name, check)
    arrays = {key: _array(data, inside) for key, data, inside, _ in members}
    if is_sparse_npz(arrays):
        return sparse_npz(arrays, content.name)
    return _npz_table(arrays, content.name)[0]


def npz_bytes(path: Path) -> tuple[int, bool]:
    """Bytes of the arrays of an .npz file, and whether they are a sparse matrix."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except UNZIPPING:  # which is said when it is read
        return path.stat().st_size, False
    names = [member.filename.removesuffix(".npy") for member in members]
    return sum(member.file_size for member in members), is_sparse_npz(names)


def _npz_table(arrays: dict[str, NDArray[Any]], file: str) -> tuple[RawTable, str]:
    """The table among the arrays of an .npz file, and which of them it is."""
    tables = [key for key, array in arrays.items() if array.ndim == 2]
    if len(tables) > 1 and "X" in tables:
        tables = ["X"]
    if len(tables) != 1:
        many = (
            f"{len(tables)} tables ({listed(tables)})" if tables else "no table of two dimensions"
        )
        raise FileError(f"{file} holds {many}.", "Save the one to use with numpy.save.")
    X = arrays[tables[0]]
    names = next((arrays[key] for key in NAMES if key in arrays and _fits(arrays[key], X)), None)
    raw = _raw(X, file, None if names is None else [str(name) for name in names])
    beside = {
        key: _column(array, f"{file}: {quoted(key)}")
        for key, array in arrays.items()
        if array.shape == X.shape[:1] and array is not names and key not in raw.matrix_names
    }
    used = {tables[0], *beside}
    unread = [
        f"{quoted(key)} ({' × '.join(map(str, array.shape)) or 'one value'})"
        for key, array in arrays.items()
        if key not in used and array is not names
    ]
    notes = (*raw.notes, *([f"{', '.join(unread)} not read"] if unread else []))
    return RawTable(
        raw.name,
        beside,
        raw.matrix,
        raw.matrix_names,
        notes=notes,
        named=raw.named,
        beside=frozenset(beside),
        typed=True,
    ), tables[0]


def _column(array: NDArray[Any], name: str) -> Any:
    """An array beside the table as a column."""
    try:
        wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
        return pa.chunked_array([pa.array((array.astype(float) if wide else array).tolist())])
    except (pa.ArrowException, OverflowError):
        raise FileError(
            f"{name} holds {array.dtype}, which is neither numbers nor text.",
            "Save the table alone with numpy.save.",
        ) from None


def _fits(names: NDArray[Any], X: NDArray[Any]) -> bool:
    return names.dtype.kind == "U" and names.shape == X.shape[1:]


def _members(
    file: Any, name: str, check: Callable[[int], None], spool: Spool | None = None
) -> Iterator[tuple[str, Octets, str, Path]]:
    """Names and bytes of the arrays, in memory or in `spool`, and how each is called.

    `check` is given the bytes of all of them before any is decompressed.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            if not entries:
                raise FileError(
                    f"{name} is a zip file without arrays.", "Is it an Excel file? Save it as CSV."
                )
            check(sum(entry.file_size for entry in entries))
            for number, entry in enumerate(entries):
                path = Path(f"{number}.npy")
                with archive.open(entry) as stream:
                    if spool is None:
                        # One byte more than was promised shows a directory that lies.
                        data = np.frombuffer(stream.read(entry.file_size + 1), np.uint8)
                    else:
                        path = spool.store(read_chunks(stream), path.name)
                        data = np.memmap(path, np.uint8, "r")
                key = entry.filename.removesuffix(".npy")
                yield key, data, f"{name}: {quoted(entry.filename)}", path
    except GnomonError:
        raise
    except UNZIPPING as error:
        raise FileError(f"{name} is a damaged zip file ({error}).", COPIED_WHOLE) from None


def _array(data: NDArray[np.uint8], name: str) -> NDArray[Any]:
    """The array that `data` holds, as a view of it."""
    dtype, shape, fortran, start = read_header(data, name)
    _check_size(name, shape, dtype, data.size - start)
    numbers = data[start:].view(np.ndarray)
    if (data.ctypes.data + start) % max(1, dtype.alignment):
        numbers = numbers.copy()
    flat = numbers.view(dtype)
    if dtype.kind == "U" and not _is_text(flat):
        raise FileError(f"{name} holds characters that do not exist.", COPIED_WHOLE)
    try:
        return flat.reshape(shape, order="F" if fortran else "C")
    except ValueError:  # more axes than NumPy has, or nothing times more than it counts to
        raise FileError(
            f"{name} has the shape {shape}, which no array has.", "Save it again."
        ) from None


def _check_size(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> None:
    """Refuse a header that promises more or fewer bytes than are there."""
    promised = int(dtype.itemsize)
    for size in shape:  # Python's integers do not overflow
        promised *= size
    if promised != there:
        less = "is cut short" if promised > there else "is longer than it should be"
        raise FileError(
            f"{name} {less}: its header promises {readable_bytes(promised)} (shape {shape}, "
            f"{dtype}), and {readable_bytes(there)} are there.",
            COPIED_WHOLE,
        )


def _refuse_unusable(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is no table of numbers, or an empty one."""
    if len(shape) != 2:
        raise FileError(
            f"{name} must hold a table of rows and columns; its shape is {shape}.",
            "Reshape it: array.reshape(len(array), -1) makes one row of each entry.",
        )
    if dtype.kind not in "biuf":
        what = {"c": "complex numbers", "M": "dates", "m": "time spans"}.get(dtype.kind, "text")
        raise FileError(
            f"{name} holds {what} ({dtype}), not numbers.", "Encode them as columns of numbers."
        )
    if 0 in shape:
        what, kind = ("columns", FileError) if shape[1] == 0 else ("rows", NoRowsError)
        raise kind(f"{name} has no {what}: its shape is {shape}.")


def _is_text(array: NDArray[np.str_]) -> bool:
    """Whether every code is a character of Unicode; Python may crash on others."""
    codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    return bool(((codes < 0xD800) | (codes > 0xDFFF) & (codes <= 0x10FFFF)).all())


def read_header(
    data: NDArray[np.uint8], name: str
) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Type, shape, order, and where the numbers begin."""
    head = data[: 12 + LONGEST_HEADER].tobytes()
    broken = FileError(f"{name} is not an .npy file, or its header is damaged.", "Save it again.")
    if head[:6] != b"\x93NUMPY" or len(head) < 12 or head[6] not in (1, 2, 3):
        raise broken
    size, start = struct.unpack("<H", head[8:10])[0], 10
    if head[6] > 1:
        size, start = struct.unpack("<I", head[8:12])[0], 12
    if size > LONGEST_HEADER or start + size > data.size:
        raise broken
    try:
        header = ast.literal_eval(head[start : start + size].decode("utf-8").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        dtype = np.dtype(descr) if isinstance(descr, str) else np.dtype([("f", "V1")])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise broken from None
    sizes = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not sizes or type(fortran) is not bool or not dtype.itemsize:  # "<U0" takes no bytes
        raise broken
    if dtype.hasobject:
        raise FileError(
            f"{name} holds Python objects, which may run any code when they are read.",
            "Save numbers: numpy.save(…, array.astype(float)).",
        )
    if dtype.kind == "V":
        raise FileError(f"{name} holds records of several fields.", "Save it as CSV or Parquet.")
    return dtype, shape, fortran, start + size


def _raw(X: NDArray[Any], name: str, names: list[str] | None = None) -> RawTable:
    _refuse_unusable(name, X.shape, X.dtype)
    X = X.view(np.uint8) if X.dtype.kind == "b" else X
    columns, notes = unique_names(names, X.shape[1])
    return RawTable(name, {}, X, tuple(columns), notes=tuple(notes), named=names is not None)


class NpyRows(Matrix):
    """Rows of the array of an ``.npy`` file; truth values are read as 0 and 1."""

    stored = None

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.disk = path, Disk(path)
        with path.open("rb") as file:
            head = np.frombuffer(file.read(12 + LONGEST_HEADER), np.uint8)
        self.type, shape, self.fortran, self.start = read_header(head, name)
        _refuse_unusable(name, shape, self.type)
        _check_size(name, shape, self.type, path.stat().st_size - self.start)
        self.shape = (shape[0], shape[1])
        self.dtype = np.dtype(np.uint8) if self.type.kind == "b" else self.type

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Some rows, in memory of their own; fewer if the file was cut short."""
        block = (self._columns_first if self.fortran else self._rows_first)(start, stop)
        return block.view(np.uint8) if self.type.kind == "b" else block

    def span(self, start: int, stop: int) -> Ranges:
        """Where some rows are in a file that has rows first."""
        width = self.shape[1] * self.type.itemsize
        return ((self.start + start * width, self.start + stop * width),)

    def _rows_first(self, start: int, stop: int) -> NDArray[Any]:
        width = self.shape[1] * self.type.itemsize
        parts = self.disk.read_parts(self.span(start, stop)) or ((0, np.empty(0, np.uint8)),)
        ((_, octets),) = parts
        whole = octets[: octets.size // width * width].view(self.type).reshape(-1, self.shape[1])
        return np.require(whole, requirements="A")  # a header may be of any length

    def _columns_first(self, start: int, stop: int) -> NDArray[Any]:
        columns = np.empty((self.shape[1], stop - start), self.type)
        with self.path.open("rb", buffering=0) as file:
            for j, column in enumerate(columns):
                file.seek(self.start + self.type.itemsize * (j * self.shape[0] + start))
                if file.readinto(column.view(np.uint8)) != column.nbytes:
                    return np.empty((0, self.shape[1]), self.type)
        return columns.T


class NpyTable(MatrixTable):
    """The array of an ``.npy`` file in parts, or one of those of an ``.npz`` file, unpacked.

    Parameters
    ----------
    path : Path
    options : ColumnOptions
    rows : int or None
        Rows of a part.
    among : RawTable, optional
        The table as the archive has it that the array comes from: with names, and with columns
        beside it.
    spool : Spool, optional
        Where the archive was unpacked.
    """

    matrix: NpyRows

    def __init__(
        self,
        path: Path,
        options: ColumnOptions,
        rows: int | None,
        among: RawTable | None = None,
        spool: Spool | None = None,
    ) -> None:
        name = shown_name(path) if among is None else among.name
        matrix = NpyRows(path, name)
        self.disk = matrix.disk
        self.coming: Coming[Piece] = Coming()
        if among is None:
            names = tuple(unique_names(None, matrix.shape[1])[0])
            among = RawTable(name, {}, None, names, named=False)
        columns = among.columns

        def beside(start: int, stop: int) -> dict[str, Any]:
            return {key: cells.slice(start, stop - start) for key, cells in columns.items()}

        super().__init__(
            name,
            matrix,
            among.matrix_names,
            options,
            rows,
            named=among.named,
            beside=beside,
            notes=among.notes,
            spool=spool,
        )

    @property
    def read_columns(self) -> int:
        """All columns, which are read where some are used."""
        return self.matrix.shape[1]

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> NDArray[Any]:
        """Some rows, in memory of their own."""
        if not self.matrix.fortran:
            self.coming.asked(piece, self)
        block: NDArray[Any] = super().read(piece, at_once)
        return block

    def prefetch(self, pieces: Sequence[Piece], at_once: int = AT_ONCE) -> None:
        """Prefetch the next two parts."""
        if not pieces:
            self.coming = Coming()
            self.disk.drop_all()
        if not self.matrix.fortran:
            self.coming.tell(pieces[:2], self, at_once // AHEAD)

    def part_bytes(self, key: Piece) -> int:
        """Bytes of a part in the file."""
        return key.rows * self.matrix.shape[1] * self.matrix.type.itemsize

    def prefetch_part(self, key: Piece) -> None:
        """Begin to read a part, unless the system reads ahead by itself: rows come in order."""
        if self.disk.past:
            self.disk.prefetch(self.matrix.span(key.first, key.first + key.rows))

    def drop_part(self, key: Piece) -> None:
        """Drop a part that was prefetched."""
        self.disk.drop(self.matrix.span(key.first, key.first + key.rows))


def npz_parts(path: Path, options: ColumnOptions, rows: int | None, spool: Spool) -> BlockFile:
    """The one table, or the sparse matrix, of an ``.npz`` file in parts, unpacked into `spool`."""
    arrays, files = {}, {}
    for key, data, inside, file in _members(path, spool.name, spool.check, spool):
        arrays[key], files[key] = _array(data, inside), file
    if not is_sparse_npz(arrays):
        table, key = _npz_table(arrays, spool.name)
        return NpyTable(files[key], options, rows, replace(table, matrix=None), spool)
    matrix, notes = npz_rows(arrays, spool.name, spool)
    for file in files.values():  # its rows are in files of their own
        file.unlink()
    names, said = unique_names(None, matrix.shape[1])
    notes = (*notes, *said)
    return MatrixTable(
        spool.name, matrix, names, options, rows, named=False, notes=notes, spool=spool
    )
