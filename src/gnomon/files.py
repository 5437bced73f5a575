"""Atomic writes: a temporary file beside the target, then one rename.

A temporary file is locked while it is written. One that is not locked was left by a
killed process, and is removed by the next writer of the same file.
"""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gnomon.errors import ExistingFileError, WriteError

try:
    import fcntl
except ImportError:  # a system without flock
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "explained",
    "flush_folder",
    "lock",
    "refuse_existing",
    "refuse_lost_link",
    "short_name",
    "shown",
    "shown_name",
    "writing",
]

LONGEST_NAME_BYTES = 100  # bytes of a name within the name of a temporary file, which may have 255

ELSEWHERE = "Choose a folder that you may write to."
WAYS_OUT = {
    errno.ENOSPC: "Free some space, or write to another disk.",
    errno.EDQUOT: "Free some space, or write to another disk.",
    errno.EFBIG: "Write to another disk.",
    errno.EACCES: ELSEWHERE,
    errno.EPERM: ELSEWHERE,
    errno.EROFS: ELSEWHERE,
    errno.ENOENT: "Create the folder first.",
    errno.ENOTDIR: "Create the folder first.",
    errno.EISDIR: "Give the name of a file.",
    errno.ENAMETOOLONG: "Give a shorter name.",
}


@contextmanager
def writing(path: Path | str, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` only if no error occurs.

    The file is flushed to disk before the rename, so that after a crash there is the old file or
    the new one, never a part of it. An existing file is replaced only if `force`, and keeps its
    permissions; a symbolic link keeps pointing to it. A dangling link is refused.
    """
    refuse_lost_link(path)
    refuse_existing(path, force=force)
    target = Path(os.path.realpath(path))  # a rename would replace the link itself
    part: Path | None = None
    handle = -1
    try:
        _remove_leftovers(target)
        handle, part = _locked_part(target)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(_mode(target))  # mkstemp's files are private
        _move(part, target, force)
        flush_folder(target.parent)
    except ExistingFileError:
        raise
    except OSError as error:
        raise explained(error, path) from error
    finally:
        if part is not None:
            with suppress(OSError):  # the original error is more useful
                part.unlink(missing_ok=True)
            os.close(handle)


def refuse_existing(path: Path | str, *, force: bool) -> None:
    """Raise an error if a file exists, unless `force`."""
    if not force and Path(path).exists():
        raise _exists(path)


def refuse_lost_link(path: Path | str) -> None:
    """Refuse a dangling link: the user did not name the file that it points to."""
    if os.path.islink(path) and not os.path.exists(path):
        raise ExistingFileError(
            f"{path} is a link to {os.readlink(path)}, which does not exist. Remove the link, or "
            "choose another name."
        )


def lock(handle: int) -> bool:
    """Lock an open file for as long as it is open; False if another process has locked it.

    Also True if the file system has no locks: another writer cannot be detected then.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _locked_part(target: Path) -> tuple[int, Path]:
    """Create a temporary file beside `target` and lock it.

    Between the two steps another writer may take the file for a leftover and remove it: then a new
    one is created. A file that is locked and still there is removed by no other writer.
    """
    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{short_name(target.name)}.", suffix=".part"
        )
        if lock(handle) and os.path.exists(name):
            return handle, Path(name)
        os.close(handle)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of this target whose writers have died."""
    if fcntl is None:
        return
    leftover = re.compile(rf"\.{re.escape(short_name(target.name))}\.[a-z0-9_]{{8}}\.part")
    for name in os.listdir(target.parent):
        if not leftover.fullmatch(name):
            continue
        with suppress(OSError), (target.parent / name).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
            (target.parent / name).unlink()


def short_name(name: str) -> str:
    """Prefix of `name` that fits into the name of a temporary file."""
    while len(os.fsencode(name)) > LONGEST_NAME_BYTES:
        name = name[:-1]
    return name


def shown(text: str) -> str:
    """Make `text` printable, even if it contains a file name that is not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def shown_name(path: Path) -> str:
    """Printable name of a file."""
    return shown(path.name)


def _exists(path: Path | str) -> ExistingFileError:
    return ExistingFileError(
        f"{path} exists and is not overwritten. Choose another name, or use force=True."
    )


def _mode(target: Path) -> int:
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _move(part: Path, target: Path, force: bool) -> None:
    """Move in one step; without `force` a file that appeared meanwhile is not replaced."""
    if force:
        part.replace(target)
        return
    try:
        os.link(part, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without links
        refuse_existing(target, force=False)
        part.replace(target)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk; some systems cannot open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def explained(error: OSError, path: Path | str) -> WriteError:
    """Error about a file or a folder that could not be written."""
    why = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    way_out = WAYS_OUT.get(error.errno or 0, "Nothing was changed; try again or elsewhere.")
    failure = WriteError(f"{path} could not be written ({why}); no file was changed. {way_out}")
    failure.errno = error.errno
    return failure
