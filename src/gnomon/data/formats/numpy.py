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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.budget import readable_bytes
from gnomon.compute.threads import row_blocks
from gnomon.data.column_options import ColumnOptions
from gnomon.data.file_content import STEP, FileContent
from gnomon.data.formats.io import Disk, Ranges
from gnomon.data.formats.matrix_parts import MatrixTable
from gnomon.data.formats.parts import AHEAD, AT_ONCE, LOOK, BlockFile, Piece
from gnomon.data.formats.prefetch import Coming
from gnomon.data.formats.sparse import is_sparse_npz, npz_rows, sparse_npz
from gnomon.data.formats.spool import Spool
from gnomon.data.matrix import number_codes
from gnomon.data.names import find_name, unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError, listed, quoted
from gnomon.data.roles import Roles, assign_roles
from gnomon.data.table import ColumnRoles
from gnomon.engine.source import partition_rows
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
LOOK_BYTES = 2**24  # bytes that are looked at to see what columns hold


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
                        chunks = iter(partial(stream.read, STEP), b"")
                        path = spool.store(chunks, path.name)
                        data = np.memmap(path, np.uint8, "r")
                key = entry.filename.removesuffix(".npy")
                yield key, data, f"{name}: {quoted(entry.filename)}", path
    except GnomonError:
        raise
    except UNZIPPING as error:
        raise FileError(
            f"{name} is a damaged zip file ({error}).", "Was it copied whole?"
        ) from None


def _array(data: NDArray[np.uint8], name: str) -> NDArray[Any]:
    """The array that `data` holds, as a view of it."""
    dtype, shape, fortran, start = read_header(data, name)
    _check_size(name, shape, dtype, data.size - start)
    numbers = data[start:].view(np.ndarray)
    if not _aligned(data, start, dtype):
        numbers = numbers.copy()
    flat = numbers.view(dtype)
    if dtype.kind == "U" and not _is_text(flat):
        raise FileError(f"{name} holds characters that do not exist.", "Was it copied whole?")
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
            "Was it copied whole?",
        )


def _check_two_dimensional(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise FileError(
            f"{name} must hold a table of rows and columns; its shape is {shape}.",
            "Reshape it: array.reshape(len(array), -1) makes one row of each entry.",
        )


def _is_text(array: NDArray[np.str_]) -> bool:
    """Whether every code is a character of Unicode; Python may crash on others."""
    codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    return bool(((codes < 0xD800) | (codes > 0xDFFF) & (codes <= 0x10FFFF)).all())


def _aligned(data: NDArray[np.uint8], start: int, dtype: np.dtype[Any]) -> bool:
    return bool((data.ctypes.data + start) % max(1, dtype.alignment) == 0)


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
    _check_two_dimensional(name, X.shape)
    if X.dtype.kind not in "biuf":
        what = {"c": "complex numbers", "M": "dates", "m": "time spans"}.get(X.dtype.kind, "text")
        raise FileError(
            f"{name} holds {what} ({X.dtype}), not numbers.", "Encode them as columns of numbers."
        )
    if 0 in X.shape:
        what = "columns" if X.shape[1] == 0 else "rows"
        raise FileError(f"{name} has no {what}: its shape is {X.shape}.")
    X = X.view(np.uint8) if X.dtype.kind == "b" else X
    columns, notes = unique_names(names, X.shape[1])
    return RawTable(name, {}, X, tuple(columns), notes=tuple(notes), named=names is not None)


class NpyTable(BlockFile):
    """The array of an ``.npy`` file in parts.

    Parameters
    ----------
    path : Path
    options : ColumnOptions
    rows : int or None
        Rows of a part.
    among : RawTable, optional
        The table as the archive has it that the array comes from: with names, and with columns
        beside it.
    """

    def __init__(
        self, path: Path, options: ColumnOptions, rows: int | None, among: RawTable | None = None
    ) -> None:
        self.path, self.disk = path, Disk(path)
        self.name = shown_name(path) if among is None else among.name
        with path.open("rb") as file:
            head = np.frombuffer(file.read(12 + LONGEST_HEADER), np.uint8)
        self.type, shape, self.fortran, self.start = read_header(head, self.name)
        self._check(shape, path.stat().st_size)
        self.shape = (shape[0], shape[1])
        self.coming: Coming[Piece] = Coming()
        if among is None:
            names = tuple(unique_names(None, shape[1])[0])
            among = RawTable(self.name, {}, None, names, named=False)
        self.among, self.all_names, self.notes = among, among.names, among.notes
        roles = self._roles(options)
        self.roles = roles.names
        self.used = None
        if roles.numbers != among.matrix_names:
            self.used = np.array(
                [among.matrix_names.index(name) for name in roles.numbers], np.intp
            )
        self.names = roles.numbers if among.named else None
        self.columns = shape[1] if self.used is None else self.used.size
        self.gaps = number_codes(options.na)
        self.dtype = np.dtype(np.uint8) if self.type.kind == "b" else self.type
        if self.gaps and self.dtype.kind != "f":
            self.dtype = np.dtype(np.float64)
        self.pieces = [
            Piece(start, stop - start, start)
            for start, stop in row_blocks(shape[0], partition_rows(shape[1], rows))
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "among": None}

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> NDArray[Any]:
        """Some rows, in memory of their own."""
        block = self._decoded(piece)
        block = block if self.used is None else block[:, self.used]
        if self.gaps:
            block = np.array(block, self.dtype)  # bytes of a file are not to be written to
            for code in self.gaps:
                block[block == code] = np.nan
        return block

    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All cells of some columns, part after part."""
        beside, matrix_names = self.among.columns, self.among.matrix_names
        for piece in self.pieces:
            inside = [name for name in names if name not in beside]
            block = self._decoded(piece) if inside else np.empty((0, 0))
            found = {
                name: cells.slice(piece.first, piece.rows)
                for name, cells in beside.items()
                if name in names
            }
            for name in inside:
                numbers = block[:, matrix_names.index(name)].copy()
                found[name] = pa.chunked_array([pa.array(numbers)])
            yield RawTable(self.name, found, named=self.among.named)

    def _decoded(self, piece: Piece) -> NDArray[Any]:
        """Rows with all columns; true and false as numbers."""
        block = self._columns_first(piece) if self.fortran else self._rows_first(piece)
        return block.view(np.uint8) if self.type.kind == "b" else block

    def prefetch(self, pieces: Sequence[Piece], at_once: int = AT_ONCE) -> None:
        """Prefetch the next two parts."""
        if not pieces:
            self.coming = Coming()
            self.disk.drop_all()
        if not self.fortran:
            self.coming.tell(pieces[:2], self, at_once // AHEAD)

    def part_bytes(self, key: Piece) -> int:
        """Bytes of a part in the file."""
        ((start, stop),) = self._range(key)
        return stop - start

    def prefetch_part(self, key: Piece) -> None:
        """Begin to read a part, unless the system reads ahead by itself: rows come in order."""
        if self.disk.past:
            self.disk.prefetch(self._range(key))

    def drop_part(self, key: Piece) -> None:
        """Drop a part that was prefetched."""
        self.disk.drop(self._range(key))

    def _range(self, piece: Piece) -> Ranges:
        width = self.shape[1] * self.type.itemsize
        start = self.start + piece.first * width
        return ((start, start + piece.rows * width),)

    def _rows_first(self, piece: Piece) -> NDArray[Any]:
        width = self.shape[1] * self.type.itemsize
        self.coming.asked(piece, self)
        ((_, octets),) = self.disk.read_parts(self._range(piece)) or ((0, np.empty(0, np.uint8)),)
        whole = octets[: octets.size // width * width].view(self.type).reshape(-1, self.shape[1])
        return np.require(whole, requirements="A")  # a header may be of any length

    def _columns_first(self, piece: Piece) -> NDArray[Any]:
        columns = np.empty((self.shape[1], piece.rows), self.type)
        with self.path.open("rb", buffering=0) as file:
            for j, column in enumerate(columns):
                file.seek(self.start + self.type.itemsize * (j * self.shape[0] + piece.first))
                if file.readinto(column.view(np.uint8)) != column.nbytes:  # it was cut short
                    return np.empty((0, self.shape[1]), self.type)
        return columns.T

    def _check(self, shape: tuple[int, ...], size: int) -> None:
        _check_two_dimensional(self.name, shape)
        if self.type.kind not in "biuf":
            raise FileError(f"{self.name} holds {self.type}, not numbers.")
        if 0 in shape:
            what, kind = ("columns", FileError) if shape[1] == 0 else ("rows", NoRowsError)
            raise kind(f"{self.name} has no {what}: its shape is {shape}.")
        _check_size(self.name, shape, self.type, size - self.start)

    def _roles(self, options: ColumnOptions) -> Roles:
        """What columns are used for, by the first rows."""
        width = self.shape[1] * self.type.itemsize
        rows = min(self.shape[0], max(1, LOOK_BYTES // width), LOOK)
        first = self._decoded(Piece(0, rows, 0))
        among = self.among
        beside = {name: cells.slice(0, rows) for name, cells in among.columns.items()}
        raw = replace(among, columns=beside, matrix=first, more=rows < self.shape[0])
        if options.columns is not None:
            # By name: an array of as many columns as were named has them in its own order.
            found = [
                find_name("columns", name, among.matrix_names, self.name)
                for name in options.columns
            ]
            return Roles(tuple(found), ColumnRoles(tuple(found)), {})
        roles = assign_roles(raw, options)
        for name in roles.numbers:
            if name in beside:
                raise FileError(
                    f"{self.name}: {quoted(name)} is an array beside the table, which is no "
                    "feature of a table that is read in blocks.",
                    "Save both as one array with numpy.save.",
                )
        return roles


class NpzTable(NpyTable):
    """The one table of an ``.npz`` file in parts: one of its arrays, unpacked."""

    def __init__(
        self, path: Path, options: ColumnOptions, rows: int | None, among: RawTable, spool: Spool
    ) -> None:
        super().__init__(path, options, rows, among)
        self.spool = spool


def npz_parts(path: Path, options: ColumnOptions, rows: int | None, spool: Spool) -> BlockFile:
    """The one table, or the sparse matrix, of an ``.npz`` file in parts, unpacked into `spool`."""
    arrays, files = {}, {}
    for key, data, inside, file in _members(path, spool.name, spool.check, spool):
        arrays[key], files[key] = _array(data, inside), file
    if not is_sparse_npz(arrays):
        table, key = _npz_table(arrays, spool.name)
        return NpzTable(files[key], options, rows, replace(table, matrix=None), spool)
    matrix, notes = npz_rows(arrays, spool.name, spool)
    for file in files.values():  # its rows are in files of their own
        file.unlink()
    names, said = unique_names(None, matrix.shape[1])
    notes = (*notes, *said)
    return MatrixTable(
        spool.name, matrix, names, options, rows, named=False, notes=notes, spool=spool
    )
