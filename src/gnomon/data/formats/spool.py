"""Temporary copies of files whose rows cannot be read in any order: text, compressed files, pipes.

Such a file is streamed once into a folder of its own, ``gnomon-spool-…`` below the system's folder
for temporary files or below the one that the user names, and read from there. The folder is removed
when its reader is no longer used, and at the latest when the process ends; only a process that was
killed leaves it behind.
"""

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.ipc as ipc

from gnomon.budget import readable_bytes
from gnomon.data.file_content import byte_chunks
from gnomon.data.refusals import FileError, OptionError, quoted
from gnomon.errors import Parameter, TooLargeError

__all__ = ["PREFIX", "SPOOLED", "Spool", "SpoolWriter"]

PREFIX = "gnomon-spool-"
SPOOLED = "gnomon-rows.arrow"
SPARE_BYTES = 2**26  # left free on the disk for other programs


class Spool:
    """A temporary folder for the copy of one file; a pickled one only knows where it is.

    Parameters
    ----------
    name : str
        The file that is copied, as it is called in errors.
    parent : path, optional
        Where the folder is made; by default among the system's temporary files.
    """

    def __init__(self, name: str, parent: str | os.PathLike[str] | None = None) -> None:
        self.name, self.shared = name, parent is not None
        where = Path(tempfile.gettempdir() if parent is None else parent).absolute()
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        except OSError as error:
            raise OptionError(
                "{parameter} must be a folder that may be written to; got {folder} ({why}).",
                "Make it, or name another one.",
                parameter=Parameter("spool"),
                folder=quoted(where, longest=4096),
                why=error.strerror or str(error),
            ) from None
        self._remove = weakref.finalize(self, _remove, self.folder, os.getpid())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_remove"}

    def check(self, needed: float, *, at_least: bool = False) -> None:
        """Refuse a copy of `needed` more bytes if the disk does not have them."""
        free = shutil.disk_usage(self.folder).free
        if needed + SPARE_BYTES > free:
            much = f"{'more than' if at_least else 'about'} {readable_bytes(needed)}"
            raise TooLargeError(
                "{file} is read from a temporary copy, which needs {much} of disk; {folder} has "
                "{has} free. Name a folder on a larger disk with {parameter}, or save the table as "
                "Parquet.",
                file=self.name,
                much=much,
                has=readable_bytes(free),
                folder=quoted(self.folder.parent, longest=4096),
                parameter=Parameter("spool"),
            )

    def store(self, chunks: Iterable[bytes], name: str) -> Path:
        """Copy bytes into a file called `name`, and return its path."""
        path = self.folder / name
        with self.writing(), path.open("wb") as file:
            for chunk in chunks:
                self.check(len(chunk), at_least=True)
                file.write(chunk)
        return path

    def unpack(self, path: Path) -> Path:
        """Decompress a gz file into a copy under its own name, and return its path."""
        return self.store(byte_chunks(path, self.name), path.name)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Word the error of a disk that is full, and remove the copy after any error."""
        try:
            yield
        except BaseException as error:
            self.remove()
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise TooLargeError(
                    "The disk is full: no more of the temporary copy of {file} can be written. "
                    "Name a folder on a larger disk with {parameter}, or save the table as "
                    "Parquet.",
                    file=self.name,
                    parameter=Parameter("spool"),
                ) from None
            raise

    def missing(self) -> FileError:
        """The error of a process that cannot see the copy."""
        return FileError(
            "The temporary copy of {file} is gone, or is not on this machine. Workers on other "
            "machines need one on a disk that all of them share: name a folder there with "
            "{parameter}, or save the table as Parquet.",
            file=self.name,
            parameter=Parameter("spool"),
        )

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        self._remove()


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process has a copy of the object, and not of the files
        shutil.rmtree(folder, ignore_errors=True)


class SpoolWriter:
    """Record batches of `rows` rows in an Arrow file, from batches of any length.

    Parameters
    ----------
    spool : Spool
    rows : int
        Rows of a record batch; the last may have fewer.
    expected : int or None
        Bytes of the text that will be copied, where they are known; the first batch then tells
        how much disk all of it takes.

    Attributes
    ----------
    sizes : list of int
        Rows of the record batches written so far.
    """

    def __init__(self, spool: Spool, rows: int, expected: int | None = None) -> None:
        self.spool, self.rows, self.expected = spool, rows, expected
        self.sizes: list[int] = []
        self.waiting: list[Any] = []
        self.there = 0
        self.file: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.there:
            self._put(pa.Table.from_batches(self.waiting))
        if self.file is not None:
            self.file.close()

    def write(self, batch: Any, text_bytes: int) -> None:
        """Add rows, which took `text_bytes` in the text."""
        if self.file is None:
            if self.expected is not None and text_bytes:
                self.spool.check(batch.nbytes * (self.expected / text_bytes))
            self.file = ipc.new_file(os.fspath(self.spool.folder / SPOOLED), batch.schema)
        self.waiting.append(batch)
        self.there += batch.num_rows
        while self.there >= self.rows:
            table = pa.Table.from_batches(self.waiting)
            self._put(table.slice(0, self.rows))
            self.waiting = table.slice(self.rows).to_batches()
            self.there -= self.rows

    def _put(self, table: Any) -> None:
        self.spool.check(table.nbytes, at_least=True)
        (batch,) = table.combine_chunks().to_batches()
        self.file.write_batch(batch)
        self.sizes.append(batch.num_rows)
