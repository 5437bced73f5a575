"""How much memory there is, and how to say so."""

from pathlib import Path

__all__ = ["available_bytes", "readable_bytes"]


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
    return free


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
