"""Memory: how much is free, how much may be used, and the refusal of work that needs more."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from gnomon.errors import TooLargeError, Way, refuse

__all__ = [
    "LIBRARY_BYTES",
    "Budget",
    "Memory",
    "address_limit",
    "available_bytes",
    "check_free",
    "libraries_of",
    "parse_bytes",
    "readable_bytes",
]

# Memory of a command before any table: Python and its libraries. Resident
# when all of them were imported: 273 MB; peak of a map of 150 rows: 315 (benchmarks/command.py).
LIBRARY_BYTES = 300_000_000

UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?)(?:b|bytes)?", re.ASCII | re.IGNORECASE)

# Files with limit and usage of containers: cgroups version 2 and version 1.
CONTAINERS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_bytes() -> int:
    """Bytes that this process may still allocate: free memory of the machine or its container."""
    free = _meminfo("MemAvailable")
    for limit, used in CONTAINERS:
        try:
            room = int(_read(limit)) - int(_read(used))
        except (OSError, ValueError):  # no container, or "max"
            continue
        free = min(free, max(0, room))
    addresses = address_limit()
    if addresses is not None:
        free = min(free, max(0, addresses - _addresses()))
    return free


def address_limit() -> int | None:
    """Address-space limit of this process (``ulimit -v``) in bytes; None if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _addresses() -> int:
    """Bytes of address space in use."""
    try:
        pages = _read("/proc/self/statm").split()[0]
    except OSError:  # not Linux
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _read(file: str) -> bytes:
    """Read a short system file; every small fit reads some, and `Path` takes twice as long."""
    opened = os.open(file, os.O_RDONLY)
    try:
        return os.read(opened, 2**14)
    finally:
        os.close(opened)


def _meminfo(field: str) -> int:
    try:
        found = _read("/proc/meminfo")
        at = found.find(field.encode() + b":")
        if at >= 0:
            return int(found[at:].split(maxsplit=2)[1]) * 1024
    except OSError:
        pass
    return 8 * 2**30  # not Linux: assume 8 GB


def readable_bytes(count: float) -> str:
    """Format bytes, such as ``"1.5 GB"``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} TB"


def parse_bytes(size: int | str) -> int:
    """Parse a size such as ``"2GB"``, ``"500 MB"`` or ``"1.5GiB"``; a number is bytes.

    Examples
    --------
    >>> from gnomon.budget import parse_bytes
    >>> parse_bytes("1.5 GB"), parse_bytes("64KiB"), parse_bytes(1000)
    (1500000000, 65536, 1000)
    """
    may_be = isinstance(size, (int, str)) and not isinstance(size, bool)
    found = _SIZE.fullmatch(str(size).strip()) if may_be else None
    unit = "" if found is None else found[2].lower()
    bytes_ = 0 if found is None or unit not in UNITS else int(float(found[1]) * UNITS[unit])
    if bytes_ < 1:
        refuse("memory", "be a size above 0, such as 2GB or 500MB", size, kind=not may_be)
    return bytes_


def check_free(what: str, needed: float, way_out: Way) -> None:
    """Refuse `what` before anything is allocated if it needs more bytes than are free."""
    free = available_bytes()
    if needed > free:
        raise TooLargeError(
            "{what} needs about {much} of memory; {has} are free.",
            way_out,
            what=what,
            needed=needed,
            much=readable_bytes(needed),
            has=readable_bytes(free),
        )


def libraries_of(processes: int) -> str:
    """``"the libraries"``, or of how many processes if there are several."""
    return "the libraries" if processes <= 1 else f"the libraries of {processes} processes"


@dataclass(frozen=True)
class Budget:
    """Bytes that may be used, and whether the user set them.

    Attributes
    ----------
    bytes : int
        Bytes for tables and the work on them.
    asked : bool
        Whether the user set them; otherwise they are the free memory of the machine.
    processes : int
        Processes whose libraries count towards what the user allowed: for a command, its own and
        its workers; 0 from Python, where all of it is for the work.
    """

    bytes: int
    asked: bool
    processes: int = 0

    @classmethod
    def from_memory(cls, memory: "Memory") -> "Budget":
        """Budget from `memory`; by default the free memory of the machine."""
        if isinstance(memory, Budget):
            return memory
        if memory is None:
            return cls(available_bytes(), asked=False)
        return cls(parse_bytes(memory), asked=True)

    @property
    def limit(self) -> int | None:
        """Bytes set by the user, or None."""
        return self.bytes if self.asked else None

    def each(self, workers: int) -> int | None:
        """Share the budget evenly among several processes of this machine."""
        return self.limit if workers < 2 else self.bytes // workers

    @property
    def allowed(self) -> int:
        """Total that the user allowed."""
        return self.bytes + self.processes * LIBRARY_BYTES

    def shared(self, processes: int) -> "Budget":
        """Subtract the memory of other processes' libraries; the result may be 0."""
        left = self.bytes - processes * LIBRARY_BYTES
        return replace(self, bytes=left, processes=self.processes + processes)

    def check(self, what: str, needed: float, *, at_least: bool = False) -> None:
        """Refuse `what` before anything is allocated if it needs more bytes than the budget."""
        if needed > self.bytes:
            raise self.too_large(what, None if at_least else needed)

    def too_large(self, what: str, needed: float | None) -> TooLargeError:
        """Error that `what` does not fit, with what it needs and what is available.

        `needed` is None if only this budget is known to be too small. The message includes the
        libraries that were subtracted from what the user allowed.
        """
        libraries = self.processes * LIBRARY_BYTES
        others = (
            f" beside the {readable_bytes(libraries)} of {libraries_of(self.processes)}"
            if libraries
            else ""
        )
        if needed is None:
            text, much, enough = "{what} needs more memory{others} than the {has}.", "", "SIZE"
        else:
            text = "{what} needs about {much} of memory{others}, more than the {has}."
            much = readable_bytes(needed)
            # Rounded up, so that the size in the message is enough.
            size = readable_bytes(1.1 * (needed + libraries))
            enough = size.replace(" ", "").replace("bytes", "B")
        fewer = "fewer rows or columns."
        ways: tuple[Way, ...] = (
            (("memory", enough), f"Or take {fewer}") if self.asked else (f"Take {fewer}",)
        )
        has = f"{readable_bytes(self.allowed)} that are {'allowed' if self.asked else 'free'}"
        return TooLargeError(
            text,
            *ways,
            what=what,
            needed=needed,
            much=much,
            has=has,
            others=others,
            libraries=libraries,
        )

    def rest(self, **held: int) -> str:
        """Rest of a sentence: the memory allowed, if set, and what takes the rest of it.

        `held` are bytes by what takes them, such as ``table=…``:

            … of the 1.0 GB allowed: 300 MB are for the libraries, 200 MB for the table
        """
        taken = self._taken(held)
        return f" of the {readable_bytes(self.allowed)} allowed: {taken}" if taken else ""

    def _taken(self, held: Mapping[str, int]) -> str:
        """``"300 MB are for the libraries, 200 MB for the table"``, of what the user allowed."""
        parts = [(f"the {name}", bytes_) for name, bytes_ in held.items() if bytes_]
        if self.processes:
            parts.insert(0, (libraries_of(self.processes), self.processes * LIBRARY_BYTES))
        if not (parts and self.asked):
            return ""
        (first, most), *others = parts
        words = [f"{readable_bytes(most)} are for {first}"]
        return ", ".join(
            words + [f"{readable_bytes(bytes_)} for {name}" for name, bytes_ in others]
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Add the memory of the libraries to refusals within, which do not know about it."""
        try:
            yield
        except TooLargeError as error:
            if "libraries" in error.fields or not self.processes:
                raise
            whole = f"Of the {readable_bytes(self.allowed)} allowed, {self._taken({})}."
            raise error.replace(ways=(*error.ways, whole)) from error


# Bytes, a size such as "2GB", or a command's budget; None means the free memory of the machine.
Memory: TypeAlias = int | str | Budget | None
