"""How much memory there is, and how to say so."""

import os
import re
from pathlib import Path

from gnomon.errors import refuse

__all__ = ["LIBRARIES", "address_limit", "available_bytes", "parse_bytes", "readable_bytes"]

# What a command takes before there is any table: Python and the libraries it works with. Resident
# when all of them were imported: 273 MB; most of a map of 150 rows: 315 (benchmarks/command.py).
LIBRARIES = 300_000_000

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
         "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}  # fmt: skip
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?)(?:b|bytes)?", re.ASCII | re.IGNORECASE)


def available_bytes() -> int:
    """Bytes that this process may still take: what the machine, or its container, has free."""
    free = _meminfo("MemAvailable")
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        try:
            room = int(limit.read_text()) - int(used.read_text())
        except (OSError, ValueError):  # no container, or "max"
            continue
        free = min(free, max(0, room))
    addresses = address_limit()
    if addresses is not None:
        free = min(free, max(0, addresses - _addresses()))
    return free


def address_limit() -> int | None:
    """Bytes of addresses that this process may use (``ulimit -v``); None if there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _addresses() -> int:
    """Bytes of addresses in use."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:  # not Linux
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _meminfo(field: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 8 * 2**30  # not Linux: assume an ordinary machine


def readable_bytes(count: float) -> str:
    """``"1.5 GB"``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} TB"


def parse_bytes(size: int | str) -> int:
    """Bytes of a size such as ``"2GB"``, ``"500 MB"`` or ``"1.5GiB"``; a number is bytes.

    Examples
    --------
    >>> from gnomon.memory import parse_bytes
    >>> parse_bytes("1.5 GB"), parse_bytes("64KiB"), parse_bytes(1000)
    (1500000000, 65536, 1000)
    """
    may_be = isinstance(size, (int, str)) and not isinstance(size, bool)
    found = _SIZE.fullmatch(str(size).strip()) if may_be else None
    unit = "" if found is None else found[2].lower()
    bytes_ = 0 if found is None or unit not in UNITS else int(float(found[1]) * UNITS[unit])
    if bytes_ < 1:
        refuse("memory", "be a size above 0, such as 2GB or 500MB", size,
               kind=not may_be)  # fmt: skip
    return bytes_
