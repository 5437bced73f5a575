"""`.npy` and `.npz` without trust: the header is checked against the file before it is believed.

NumPy's own reader allocates what the header claims and can be told to unpickle. Here the header is
a literal of three entries, the bytes it promises must be there, and objects are refused.
"""

import ast
import io
import lzma
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.budget import readable_bytes
from gnomon.data.content import Content
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, listed, quoted
from gnomon.errors import GnomonError

__all__ = ["read_header", "read_npy", "read_npz"]

LONGEST_HEADER = 10_000  # NumPy's own limit: parsing a longer literal may crash the interpreter
SPARSE = {"indices", "indptr", "format", "shape", "data"}
# What zipfile and the decompressors raise for a damaged archive.
UNZIPPING = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError,
             RuntimeError, ValueError, OverflowError)  # fmt: skip
NAMES = ("columns", "feature_names", "names", "features", "var_names", "genes")


def read_npy(content: Content) -> RawTable:
    """The array of an .npy file as a table; its rows stay in the file until they are needed."""
    array = _array(content.data, content.name)
    return _raw(array, content.name)


def read_npz(content: Content) -> RawTable:
    """The one table of an .npz file, and arrays of as many rows beside it as further columns."""
    arrays = _members(content)
    if set(arrays) >= SPARSE:
        raise FileError(
            f"{content.name} holds a sparse matrix of SciPy, which is not read from files.",
            "Load it with scipy.sparse.load_npz and give it to PCA or TSNE in Python.",
        )
    tables = [key for key, array in arrays.items() if array.ndim == 2]
    if len(tables) > 1 and "X" in tables:
        tables = ["X"]
    if len(tables) != 1:
        many = (
            f"{len(tables)} tables ({listed(tables)})" if tables else "no table of two dimensions"
        )
        raise FileError(f"{content.name} holds {many}.", "Save the one to use with numpy.save.")
    X = arrays[tables[0]]
    names = next((arrays[key] for key in NAMES if key in arrays and _fits(arrays[key], X)), None)
    raw = _raw(X, f"{content.name}", None if names is None else [str(name) for name in names])
    beside = {
        key: _column(array, f"{content.name}: {quoted(key)}")
        for key, array in arrays.items()
        if array.shape == X.shape[:1] and array is not names and key not in raw.matrix_names
    }
    used = {tables[0], *beside}
    unread = [f"{quoted(key)} ({' × '.join(map(str, array.shape)) or 'one value'})"
              for key, array in arrays.items() if key not in used and array is not names
              ]  # fmt: skip
    notes = (*raw.notes, *([f"{', '.join(unread)} not read"] if unread else []))
    return RawTable(
        raw.name, beside, raw.matrix, raw.matrix_names, notes=notes, named=raw.named,
        beside=frozenset(beside), typed=True,
    )  # fmt: skip


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


def _members(content: Content) -> dict[str, NDArray[Any]]:
    """The arrays by name, each checked before it is decompressed."""
    name, arrays = content.name, {}
    try:
        with zipfile.ZipFile(io.BytesIO(content.data.tobytes())) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            if not entries:
                raise FileError(
                    f"{name} is a zip file without arrays.", "Is it an Excel file? Save it as CSV."
                )
            content.check(2 * sum(entry.file_size for entry in entries))
            for entry in entries:
                inside = f"{name}: {quoted(entry.filename)}"
                with archive.open(entry) as stream:
                    # One byte more than was promised shows a directory that lies.
                    data = stream.read(entry.file_size + 1)
                arrays[entry.filename.removesuffix(".npy")] = _array(
                    np.frombuffer(data, np.uint8), inside
                )
    except GnomonError:
        raise
    except UNZIPPING as error:
        raise FileError(
            f"{name} is a damaged zip file ({error}).", "Was it copied whole?"
        ) from None
    return arrays


def _array(data: NDArray[np.uint8], name: str) -> NDArray[Any]:
    """The array that `data` holds, as a view of it."""
    dtype, shape, fortran, start = read_header(data, name)
    promised = int(dtype.itemsize)
    for size in shape:  # Python's integers do not overflow
        promised *= size
    there = data.size - start
    if promised != there:
        less = "is cut short" if promised > there else "is longer than it should be"
        raise FileError(
            f"{name} {less}: its header promises {readable_bytes(promised)} (shape {shape}, "
            f"{dtype}), and {readable_bytes(there)} are there.",
            "Was it copied whole?",
        )
    numbers = data[start:].view(np.ndarray)
    if not _aligned(data, start, dtype):
        numbers = numbers.copy()
    flat = numbers.view(dtype)
    if dtype.kind == "U" and not _is_text(flat):
        raise FileError(f"{name} holds characters that do not exist.", "Was it copied whole?")
    try:
        return flat.reshape(shape, order="F" if fortran else "C")
    except ValueError:  # more axes than NumPy has, or nothing times more than it counts to
        raise FileError(f"{name} has the shape {shape}, which no array has.", "Save it again."
                        ) from None  # fmt: skip


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
    if X.ndim != 2:
        raise FileError(
            f"{name} must hold a table of rows and columns; its shape is {X.shape}.",
            "Reshape it: array.reshape(len(array), -1) makes one row of each entry.",
        )
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
