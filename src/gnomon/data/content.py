"""Files as bytes: found, mapped, decompressed, and known by how they begin."""

import difflib
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.refusals import FileError, OptionError, quoted
from gnomon.errors import TooLargeError
from gnomon.memory import available_bytes, readable_bytes

__all__ = ["Content", "check_memory", "open_content"]

# What a file must begin with, by kind. Everything else is text.
MAGIC = {
    b"PAR1": "parquet",
    b"PARE": "encrypted parquet",
    b"ARROW1": "feather",
    b"FEA1": "feather",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\xd0\xcf\x11\xe0": "old Excel",
    b"\x89HDF": "HDF5",
    b"SQLite format 3": "SQLite",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"%PDF": "PDF",
}
READABLE = ("parquet", "feather", "npy", "zip", "text")
SUFFIXES = {
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npy": "npy",
    ".npz": "zip",
}
CALLED = {"parquet": "a Parquet", "feather": "a Feather", "npy": "an .npy", "zip": "an .npz"}
PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
STEP = 2**24


@dataclass(frozen=True, eq=False)
class Content:
    """What a file holds.

    Attributes
    ----------
    name : str
        How the file is called in sentences.
    data : array of uint8
        Its bytes, mapped rather than read where that is possible, decompressed if they were gz.
    kind : str
        "parquet", "feather", "npy", "zip" or "text".
    memory : int
        Bytes that reading may take.
    """

    name: str
    data: NDArray[np.uint8]
    kind: str
    memory: int


def open_content(path: str | os.PathLike[str], memory: int | None = None) -> Content:
    """The bytes of a file, or of standard input if `path` is "-", and what kind of file it is."""
    room = available_bytes() if memory is None else memory
    if os.fspath(path) == "-":
        name, suffix, data = "standard input", "", _read_all(sys.stdin.buffer, "", room)
    else:
        file = Path(path)
        name, suffix = file.name, file.suffix.lower()
        data = _bytes_of(file, room)
    if data[:2].tobytes() == b"\x1f\x8b":
        suffix = Path(name.lower().removesuffix(".gz")).suffix
        data = _gunzip(data, name, room)
    return Content(name, data, _kind(data, name, suffix), room)


def check_memory(needed: int, content: Content, what: str) -> None:
    """Refuse before anything is allocated when a table would not fit."""
    if needed > content.memory:
        raise TooLargeError(
            f"{content.name}: {what} would take about {readable_bytes(needed)}, and "
            f"{readable_bytes(content.memory)} are allowed. Use fewer rows or columns, or more "
            "memory."
        )


def _bytes_of(file: Path, room: int) -> NDArray[np.uint8]:
    try:
        if file.is_dir():
            raise OptionError(f"{_path(file)} is a folder.", "Name a file in it.")
        size = file.stat().st_size
        if file.is_file():  # a pipe has no size and cannot be mapped
            return np.memmap(file, np.uint8, "r") if size else np.empty(0, np.uint8)
        with file.open("rb") as stream:
            return _read_all(stream, file.name, room)
    except FileNotFoundError:
        raise OptionError(f"There is no file {_path(file)}.", *_near(file)) from None
    except PermissionError:
        raise OptionError(f"{_path(file)} may not be read.", "Change its permissions.") from None
    except ValueError as error:  # a NUL inside the name
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"There is no file {_path(file)}.") from None


def _path(file: Path) -> str:
    return quoted(file, longest=4096)


def _near(file: Path) -> tuple[str, ...]:
    """A file that the user may have meant."""
    try:
        there = [path.name for path in file.parent.iterdir() if path.is_file()]
    except OSError:
        return (f"There is no folder {_path(file.parent)} either.",)
    close = difflib.get_close_matches(file.name, there, 1)
    return (f"Did you mean {_path(file.with_name(close[0]))}?",) if close else ()


def _read_all(stream: Any, name: str, room: int) -> NDArray[np.uint8]:
    parts: list[bytes] = []
    size = 0
    while part := stream.read(STEP):
        parts.append(part)
        size += len(part)
        _check_room(2 * size, room, name or "standard input")  # the parts, and what joins them
    return np.frombuffer(b"".join(parts), np.uint8)


def _gunzip(data: NDArray[np.uint8], name: str, room: int) -> NDArray[np.uint8]:
    """All members of a gz file, in steps, so that a bomb is found before it fills the memory."""
    parts: list[bytes] = []
    size, at = 0, 0
    member = zlib.decompressobj(wbits=31)
    try:
        while at < data.size or member.unconsumed_tail:
            rest = member.unconsumed_tail
            if not rest:
                rest = data[at : at + STEP].tobytes()
                at += len(rest)
            parts.append(member.decompress(rest, STEP))
            size += len(parts[-1])
            _check_room(2 * size, room, name)
            if member.eof:
                at -= len(member.unused_data)
                if data[at : at + 2].tobytes() != b"\x1f\x8b":
                    break  # padding
                member = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        raise FileError(f"{name}: the gz file is damaged ({error}).", "Copy it again.") from None
    if not member.eof:
        raise FileError(f"{name}: the gz file is cut short.", "Copy it again.")
    return np.frombuffer(b"".join(parts), np.uint8)


def _check_room(needed: int, room: int, name: str) -> None:
    if needed > room:
        raise TooLargeError(
            f"{name} does not fit into the {readable_bytes(room)} of memory allowed. Use fewer "
            "rows or columns, or more memory."
        )


def _kind(data: NDArray[np.uint8], name: str, suffix: str) -> str:
    head = data[:16].tobytes()
    kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "text")
    claimed = SUFFIXES.get(suffix)
    if head.startswith(PICKLES):
        raise FileError(
            f"{name} is a Python pickle, which may run any code when it is read.",
            "Save the numbers with numpy.save(…, allow_pickle=False), or as CSV or Parquet.",
        )
    if kind not in READABLE:
        raise FileError(f"{name} is {kind}, which is not read.", "Save the table as CSV.")
    if claimed is not None and kind != claimed:
        raise FileError(
            f"{name} is not {CALLED[claimed]} file: it begins with {head[:8]!r}."
            if head
            else f"{name} is empty.",
            "Was it copied whole?",
        )
    return kind
