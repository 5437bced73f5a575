"""What the system knows about folders, and the call that lets two of them change places."""

import ctypes
import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["exchange", "is_open", "is_within", "mount_of", "owner_of"]

AT_FDCWD, EXCHANGE = -100, 2  # of renameat2(2) and, on macOS, renamex_np(2)


def exchange(one: Path, other: Path) -> None:
    """Let two files or folders change places in one step; OSError where the system cannot."""
    system = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = system.renamex_np(*paths, EXCHANGE)
        else:
            failed = system.renameat2(AT_FDCWD, paths[0], AT_FDCWD, paths[1], EXCHANGE)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def is_open(handle: int, path: Path) -> bool:
    """Whether an open file is the one at `path`, which may have been removed and made anew."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def is_within(folder: Path) -> bool:
    """Whether the working directory is `folder`, or below it."""
    try:
        return Path.cwd().is_relative_to(folder)
    except FileNotFoundError:
        return False


def owner_of(folder: Path) -> tuple[int, int]:
    """User and group."""
    found = folder.stat()
    return found.st_uid, found.st_gid


def mount_of(folder: Path) -> tuple[int, str]:
    """Device and, on Linux, mount: renames work within one."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        info = ""
        with suppress(OSError):
            info = Path(f"/proc/self/fdinfo/{handle}").read_text()
        mount = [line for line in info.splitlines() if line.startswith("mnt_id:")]
        return os.fstat(handle).st_dev, "".join(mount)
    finally:
        os.close(handle)
