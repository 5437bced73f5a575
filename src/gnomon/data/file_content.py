"""Files as bytes: found, mapped, decompressed, and known by how they begin."""

import difflib
import errno
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.data.refusals import COPIED_WHOLE, FileError, OptionError, quoted
from gnomon.files import shown_name

__all__ = [
    "COPIED",
    "GZ",
    "FileContent",
    "Stream",
    "byte_chunks",
    "first_bytes",
    "gunzip",
    "kind_inside",
    "kind_of_file",
    "open_content",
    "read_chunks",
]

# What a file must begin with, by kind. Everything else is text.
MAGIC = {
    b"PAR1": "parquet",
    b"PARE": "encrypted parquet",
    b"ARROW1": "feather",
    b"FEA1": "Feather version 1",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\xd0\xcf\x11\xe0": "excel",
    b"\x89HDF": "HDF5",
    b"SQLite format 3": "SQLite",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"%PDF": "PDF",
    b"%%MatrixMarket": "mtx",
}
AS_CSV = "Save the table as CSV."
OTHERWISE = {
    "Feather version 1": "Save the table as Feather version 2, as Parquet or as CSV.",
    "a JSON object": 'Write rows as an array, [{"column": value, …}, …], or one object a line '
    "(JSON lines, .jsonl).",
    "HDF5": "An AnnData file is read if its name ends in .h5ad; save other tables as Parquet or "
    "CSV.",
}
READABLE = ("parquet", "feather", "npy", "zip", "mtx", "text", "jsonl", "json", "excel")
SUFFIXES = {
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npy": "npy",
    ".npz": "zip",
    ".mtx": "mtx",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
}
CALLED = {
    "parquet": "a Parquet",
    "feather": "a Feather",
    "npy": "an .npy",
    "zip": "an .npz",
    "mtx": "a Matrix Market",
    "excel": "an Excel",
}
PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
JSON_LINES = (".jsonl", ".ndjson")
GZ = b"\x1f\x8b"
STEP = 2**24
COPIED = ("text", "gz", "zip", "mtx")  # kinds whose rows are read in blocks from a temporary copy
HEAD = 16  # bytes that tell what a file is


@dataclass(frozen=True, eq=False)
class FileContent:
    """What a file holds.

    Attributes
    ----------
    name : str
        How the file is called in sentences.
    data : array of uint8
        Its bytes, mapped rather than read where that is possible, decompressed if they were gz.
    kind : str
        "parquet", "feather", "npy", "zip", "mtx", "jsonl", "json", "excel" or "text".
    budget : Budget
        What reading may take.
    """

    name: str
    data: NDArray[np.uint8]
    kind: str
    budget: Budget

    def check(self, needed: int) -> None:
        """Refuse the table before anything is allocated for it if it needs more than there is."""
        self.budget.check(f"{self.name}: its table", needed)


def open_content(path: str | os.PathLike[str], memory: Memory = None) -> FileContent:
    """The bytes of a file, or of standard input if `path` is "-", and what kind of file it is."""
    budget = Budget.from_memory(memory)
    if isinstance(path, Stream):
        name, suffix, data = path.name, path.suffix, np.frombuffer(path.head, np.uint8)
        budget.check(name, data.size)
    elif os.fspath(path) == "-":
        name, suffix = "standard input", ""
        data = _together(read_chunks(_standard_input()), name, budget)
    else:
        file = Path(path)
        name, suffix = shown_name(file), file.suffix.lower()
        data = _bytes_of(file, budget)
    if data[:2].tobytes() == GZ:
        suffix = Path(name.lower().removesuffix(".gz")).suffix
        data = _gunzip(data, name, budget)
    return FileContent(name, data, _kind(data, name, suffix), budget)


def _standard_input() -> Any:
    if sys.stdin is None:
        raise OptionError("Standard input is closed.", "Name a file, or pipe the table in.")
    return sys.stdin.buffer


class Stream:
    """Standard input or a pipe, which can be read only once; its first bytes are read already.

    Attributes
    ----------
    name, suffix : str
        How it is called in sentences, and the ending of that name.
    head : bytes
        The first `most` bytes and a few more.
    whole : bool
        Whether there are no others.
    """

    def __init__(self, path: str | os.PathLike[str], most: float) -> None:
        self.path, self.name, self.suffix = os.fspath(path), "standard input", ""
        if self.path != "-":
            self.name, self.suffix = shown_name(Path(path)), Path(path).suffix.lower()
        self.stream = _standard_input() if self.path == "-" else open(path, "rb")  # noqa: SIM115
        self.head = first_bytes(read_chunks(self.stream), most + 1)
        self.whole = len(self.head) <= most

    def __fspath__(self) -> str:
        return self.path

    def chunks(self) -> Iterator[bytes]:
        """All bytes, `STEP` or fewer at a time after the first."""
        yield self.head
        self.head = b""
        yield from read_chunks(self.stream)


def kind_of_file(file: Path) -> str:
    """What a file is, by its first bytes: as `FileContent.kind`, or "gz"."""
    data = _bytes_of(file, Budget.from_memory(None), HEAD)
    if data[:2].tobytes() == GZ:
        return "gz"
    return _kind(data, shown_name(file), file.suffix.lower())


def kind_inside(file: Path) -> str:
    """What kind of file a gz file holds, as `FileContent.kind`."""
    name = shown_name(file)
    head = first_bytes(byte_chunks(file, name), HEAD)
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    return _kind(np.frombuffer(head, np.uint8), name, suffix)


def _bytes_of(file: Path, budget: Budget, most: int | None = None) -> NDArray[np.uint8]:
    """A file as bytes, mapped; or its first bytes, `most` of them, read."""
    try:
        size = file.stat().st_size
        if most is not None and file.is_file():
            with file.open("rb") as stream:
                return np.frombuffer(stream.read(most), np.uint8)
        if file.is_file():  # a pipe has no size and cannot be mapped
            return np.memmap(file, np.uint8, "r") if size else np.empty(0, np.uint8)
        with file.open("rb") as stream:
            return _together(read_chunks(stream), file.name, budget)
    except FileNotFoundError:
        raise OptionError(f"There is no file {_path(file)}.", *_near(file)) from None
    except PermissionError:
        raise OptionError(f"{_path(file)} may not be read.", "Change its permissions.") from None
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise budget.too_large(f"{shown_name(file)}: mapping it", size) from None
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


def _together(chunks: Iterable[bytes], name: str, budget: Budget) -> NDArray[np.uint8]:
    """All bytes, as long as there is memory for them: how many are still to come is not known."""
    parts: list[bytes] = []
    size = 0
    for part in chunks:
        parts.append(part)
        size += len(part)
        budget.check(name, 2 * size, at_least=True)  # the parts and their concatenation
    return np.frombuffer(b"".join(parts), np.uint8)


def _gunzip(data: NDArray[np.uint8], name: str, budget: Budget) -> NDArray[np.uint8]:
    """All members of a gz file, in steps, so that a bomb is found before it fills the memory."""
    chunks = (data[at : at + STEP].tobytes() for at in range(0, data.size, STEP))
    return _together(gunzip(chunks, name), name, budget)


def read_chunks(stream: Any) -> Iterator[bytes]:
    """The bytes of an open file, `STEP` or fewer at a time."""
    return iter(lambda: stream.read(STEP), b"")


def byte_chunks(path: Path, name: str) -> Iterator[bytes]:
    """The bytes of a file, `STEP` or fewer at a time, decompressed if they are gz."""
    with path.open("rb") as file:
        packed = file.read(len(GZ)) == GZ
        file.seek(0)
        chunks = read_chunks(file)
        yield from gunzip(chunks, name) if packed else chunks


def first_bytes(chunks: Iterator[bytes], least: float) -> bytes:
    """The first `least` bytes and the rest of their chunk; what follows is left in `chunks`."""
    head = b""
    while len(head) < least and (chunk := next(chunks, b"")):
        head += chunk
    return head


def gunzip(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Decompress all members of a gz file, `STEP` bytes or fewer at a time."""
    member = zlib.decompressobj(wbits=31)
    rest = b""
    try:
        for chunk in chunks:
            rest += chunk
            while rest:
                if member.eof:
                    if len(rest) < len(GZ):
                        break
                    if not rest.startswith(GZ):
                        return  # padding
                    member = zlib.decompressobj(wbits=31)
                yield member.decompress(rest, STEP)
                rest = member.unused_data if member.eof else member.unconsumed_tail
    except zlib.error as error:
        raise FileError(f"{name}: the gz file is damaged ({error}).", "Copy it again.") from None
    if not member.eof:
        raise FileError(f"{name}: the gz file is cut short.", "Copy it again.")


def _kind(data: NDArray[np.uint8], name: str, suffix: str) -> str:
    head = data[:HEAD].tobytes()
    kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "text")
    begins = head.lstrip()[:1]
    if kind == "text" and (suffix in JSON_LINES or (not suffix and begins == b"{")):
        kind = "jsonl"
    elif kind == "text" and suffix == ".json" and begins in (b"[", b"{"):
        kind = "json" if begins == b"[" else "a JSON object"
    elif kind == "text" and not suffix and b"".join(head.split())[:2] == b"[{":
        kind = "json"  # standard input
    claimed = SUFFIXES.get(suffix)
    if kind == "zip" and claimed == "excel":
        kind = "excel"
    if head.startswith(PICKLES):
        raise FileError(
            f"{name} is a Python pickle, which may run any code when it is read.",
            "Save the numbers with numpy.save(…, allow_pickle=False), or as CSV or Parquet.",
        )
    if kind not in READABLE:
        raise FileError(f"{name} is {kind}, which is not read.", OTHERWISE.get(kind, AS_CSV))
    if claimed is not None and kind != claimed:
        raise FileError(
            f"{name} is not {CALLED[claimed]} file: it begins with {head[:8]!r}."
            if head
            else f"{name} is empty.",
            COPIED_WHOLE,
        )
    return kind
