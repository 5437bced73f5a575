"""Ranges of long files, read past the page cache where the disk is quick, and prefetched.

The page cache keeps what was read for the next read. A table larger than memory is evicted before
then, together with everything else, and caching costs a second of processor time and more for 1 GB,
where reading past the cache took 0.06 s (decision 0021). Files that the cache holds already, short
ones, files on a slow disk and those of systems without O_DIRECT are read through the cache.

`Disk` is the one place that knows which way is taken: `Disk.read_range` reads bytes, and
`Disk.prefetch` fetches them beforehand, on a thread of ours or by advice to the system.
"""

import ctypes
import io
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gnomon.data.formats.prefetch import Ahead
from gnomon.typing import Octets

__all__ = ["Disk", "DiskFile", "Parts", "Ranges", "read_buffered"]

LONG = 2**27  # bytes of a file that the cache is spared
PAGE = 4096  # what is read past the cache begins and ends on a multiple of it, in file and memory
QUICK = 4e8  # bytes a second; a quicker disk needs no cache
LOOKS = 64  # pages of a file that are looked at to see whether the cache has it
TRIALS = 16  # reads that are timed, one after the other: the first are the slowest
SHORT = 2**17  # bytes of a read that is too short to measure a disk
BEFOREHAND = 2**26  # bytes that the system is advised to fetch
ADVISED = 2**20  # of these at a time: Linux forgets what is beyond some megabytes

Ranges = tuple[tuple[int, int], ...]  # bytes from, to
Parts = Sequence[tuple[int, Octets]]

_trial = threading.Lock()
_rates: dict[int, list[float]] = {}


def _after_fork() -> None:
    global _trial
    _trial = threading.Lock()  # the thread that had it may be none of this process


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Disk:
    """Reads parts of a file, on any thread; a copy can be pickled."""

    def __init__(self, path: Path) -> None:
        found = path.stat()
        self.path, self.device = path, found.st_dev
        self.can = hasattr(os, "O_DIRECT") and found.st_size >= LONG and not _is_kept(path, found)
        self.ahead: dict[Ranges, Ahead[Parts]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ahead": {}}

    @property
    def rates(self) -> list[float]:
        """Bytes a second of the reads that were timed, of any file on this disk."""
        return _rates.setdefault(self.device, [])

    @property
    def past(self) -> bool:
        """Whether it reads past the cache."""
        # The best of them: something else may have been in the way of the others.
        return self.can and (len(self.rates) < TRIALS or max(self.rates) >= QUICK)

    def read_range(self, at: int, size: int) -> Octets:
        """Bytes `at` to `at` + `size`, as far as the file goes, in memory of their own."""
        if not self.past or not size:
            return read_buffered(self.path, at, size)
        try:
            if len(self.rates) >= TRIALS or size < SHORT:
                return self._past_the_cache(at, size)
            with _trial:
                return self._timed(at, size)
        except OSError:  # of the file system, or of the file: then the read below raises it again
            self.can = False
            return read_buffered(self.path, at, size)

    def prefetch(self, ranges: Ranges) -> None:
        """Prefetch ranges for `read_parts`; they are kept until they are read, or dropped.

        Of a file in the page cache, the system is advised to fetch them.
        """
        if not self.past:
            _advise(self.path, ranges)
        elif ranges not in self.ahead:
            self.ahead[ranges] = Ahead(partial(self._read_parts, ranges))

    def drop(self, ranges: Ranges) -> None:
        """Drop a range that was prefetched."""
        if (ahead := self.ahead.pop(ranges, None)) is not None:
            ahead.cancel()

    def drop_all(self) -> None:
        """Drop everything that was prefetched."""
        for ranges in tuple(self.ahead):
            self.drop(ranges)

    def read_parts(self, ranges: Ranges) -> Parts:
        """Each range at once, as far as the file goes, and where it begins."""
        ahead = self.ahead.pop(ranges, None)
        return self._read_parts(ranges) if ahead is None else ahead.take()

    def _read_parts(self, ranges: Ranges) -> Parts:
        size = self.path.stat().st_size
        inside = ((start, min(stop, size)) for start, stop in ranges)
        return [
            (start, self.read_range(start, stop - start)) for start, stop in inside if start < stop
        ]

    def _timed(self, at: int, size: int) -> Octets:
        start = time.perf_counter()
        found = self._past_the_cache(at, size)
        self.rates.append(found.size / (time.perf_counter() - start))
        return found

    def _past_the_cache(self, at: int, size: int) -> Octets:
        first, last = at // PAGE * PAGE, -(-(at + size) // PAGE) * PAGE
        memory = np.empty(last - first + PAGE, np.uint8)
        aligned = memory[-memory.ctypes.data % PAGE :][: last - first]
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        try:
            there, end = 0, min(aligned.size, os.fstat(file).st_size - first)
            while there < end:
                there += (more := os.preadv(file, [aligned[there:].data], first + there))
                if there < end and (not more or there % PAGE):
                    raise OSError(f"{self.path.name} comes in parts that are no pages.")
        finally:
            os.close(file)
        return aligned[at - first : max(at - first, min(there, at - first + size))]


def _is_kept(path: Path, found: os.stat_result) -> bool:
    """Whether the cache has most of a file already, from some read before; False if unknown."""
    # mincore(2) reports residency only for files that we own or may write.
    if found.st_uid != os.geteuid() and not os.access(path, os.W_OK):
        return False
    with suppress(OSError, ValueError, AttributeError):  # other systems, other files
        mapped, mincore = np.memmap(path, np.uint8, "r"), ctypes.CDLL(None).mincore
        kept, there = 0, ctypes.create_string_buffer(1)
        for at in range(0, mapped.size, max(PAGE, mapped.size // LOOKS // PAGE * PAGE)):
            if mincore(ctypes.c_void_p(mapped.ctypes.data + at), ctypes.c_size_t(1), there):
                return False
            kept += there.raw[0] & 1
        return 2 * kept > LOOKS
    return False


def _advise(path: Path, ranges: Ranges) -> None:
    """Have the system fetch ranges of a file, if it can be advised to."""
    if not hasattr(os, "posix_fadvise"):
        return
    left = BEFOREHAND
    with path.open("rb", buffering=0) as file:
        for start, stop in ranges:
            stop = min(stop, start + left)
            for at in range(start, stop, ADVISED):
                length = min(ADVISED, stop - at)
                os.posix_fadvise(file.fileno(), at, length, os.POSIX_FADV_WILLNEED)
            left -= stop - start


def read_buffered(path: Path, at: int, size: int) -> Octets:
    """Bytes `at` to `at` + `size`, as far as the file goes, in memory of their own."""
    found = np.empty(size, np.uint8)
    there = 0
    with path.open("rb", buffering=0) as file:
        file.seek(at)
        while there < size and (more := file.readinto(found[there:].data)):
            there += more
    return found[:there]


class DiskFile(io.RawIOBase):
    """A disk as a file that pyarrow jumps about in.

    Parameters
    ----------
    disk : Disk
    parts : sequence of (int, array)
        What has been read of it already, and where that begins.
    """

    def __init__(self, disk: Disk, parts: Parts = ()) -> None:
        self.disk, self.parts, self.at = disk, parts, 0
        self.size = disk.path.stat().st_size

    def readable(self) -> bool:
        """Whether the file can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Whether the file can be read from any byte: yes."""
        return True

    def tell(self) -> int:
        """The byte that is read next."""
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte counted from the beginning, from here, or from the end."""
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def read_buffer(self, size: int) -> pa.Buffer:
        """The next `size` bytes as a buffer that pyarrow need not copy."""
        found = self._read(max(0, min(size, self.size - self.at)))
        self.at += found.size
        return pa.py_buffer(found.data)

    def _read(self, size: int) -> Octets:
        for start, octets in self.parts:
            if start <= self.at and self.at + size <= start + octets.size:
                return octets[self.at - start :][:size]
        return self.disk.read_range(self.at, size)

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes as an object of Python."""
        return bytes(self.read_buffer(self.size if size is None or size < 0 else size))
