"""Files that are never half written: a temporary file beside the target, then one rename."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gnomon.errors import ExistingFileError, WriteError

__all__ = ["refuse_existing", "writing"]

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
    """A temporary path to write to; it takes the place of `path` only when all went well.

    The file is flushed to disk before the rename, so that after a crash there is the old file or
    the new one, never a part of it. A file that exists is replaced only if `force`, and keeps its
    permissions; a link keeps pointing to it.
    """
    refuse_existing(path, force=force)
    target = Path(os.path.realpath(path))  # a rename would replace the link itself
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part"
        )
        part = Path(name)
        os.close(handle)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(_mode(target))  # mkstemp's files are private
        _move(part, target, force)
        _flush_folder(target.parent)
    except ExistingFileError:
        raise
    except OSError as error:
        raise _explained(error, path) from error
    finally:
        if part is not None:
            with suppress(OSError):  # the error that brought us here says more
                part.unlink(missing_ok=True)


def refuse_existing(path: Path | str, *, force: bool) -> None:
    """Nothing is overwritten unless that was asked for."""
    if not force and Path(path).exists():
        raise _exists(path)


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
    """One step either way; without `force` a file that appeared meanwhile is left alone."""
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


def _flush_folder(folder: Path) -> None:
    """Make the new name itself last; not every system lets folders be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _explained(error: OSError, path: Path | str) -> WriteError:
    why = error.strerror or str(error) or type(error).__name__
    way_out = WAYS_OUT.get(error.errno or 0, "Nothing was changed; try again or elsewhere.")
    told = WriteError(f"{path} could not be written ({why}); no file was changed. {way_out}")
    told.errno = error.errno
    return told
