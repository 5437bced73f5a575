"""The folder of a run: old or new as a whole, whatever fails.

1. A hidden folder beside it is locked for as long as the run takes; a second run is refused.
2. All results are written into a new folder in there. What else is in the old folder, such as notes
   of the user, is linked into the new one.
3. The system exchanges the two folders in one step. What is then in the hidden folder is the old
   one, and is removed.

Some folders cannot be exchanged: mount points, folders that hold folders of the user, the working
directory, folders of other users, file systems that cannot do it. There, 3. is to move the old
results out of the folder and then the new ones in, each by a rename. Results of two runs are never
beside each other; a run that is killed in that moment leaves some of them, and the next one puts
back the old or moves in the rest of the new.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from gnomon.cli.exchange import exchange, is_open, is_within, mount_of, owner_of
from gnomon.errors import WriteError
from gnomon.files import explained, flush_folder, lock, short_name

__all__ = ["RESULTS", "RunFolder"]

# Everything that gnomon map and gnomon reduce write.
RESULTS = (
    "report.html",
    "map.parquet",
    "scores.parquet",
    "model.gnomon",
    "run.json",
    "map.svg",
    "scree.svg",
)
RECORD = "run.json"  # is in every folder of a run
LOCK, MAKING = "lock", "making"
LEAVING, LEFT = "leaving", "left"  # old results while they are moved out, and once all are


class RunFolder:
    """Where the results of a run go; a context manager that holds the lock.

    Parameters
    ----------
    path : Path
        The folder, which need not exist.
    results : tuple of str
        What this run writes, of `RESULTS`.
    """

    def __init__(self, path: Path, results: tuple[str, ...] = ()) -> None:
        self.shown, self.results = path, results
        self.path = Path(os.path.realpath(path))
        self.made: list[Path] = []  # folders above it that were not there
        self.handle = -1
        self._new: Path | None = None

    def __enter__(self) -> Self:
        try:
            self._make_parents()
            self.hidden = self._place()
            self._lock()
            self._recover()
        except WriteError:
            self.__exit__()
            raise
        except OSError as error:
            self.__exit__()
            raise explained(error, self.shown) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is not needed any more, and let others in."""
        with suppress(OSError):
            if self.handle >= 0:
                self._recover()
                (self.hidden / LOCK).unlink()
                self.hidden.rmdir()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        for folder in reversed(self.made):
            with suppress(OSError):  # it holds the results
                folder.rmdir()

    @property
    def new(self) -> Path:
        """The folder to write to, made on first use.

        It is called by its own inode: under this name there is another folder once the two were
        exchanged, which a later run can tell.
        """
        if self._new is None:
            with self.explaining(OSError):
                made = self.hidden / MAKING
                made.mkdir()
                if self.path.is_dir():
                    shutil.copystat(self.path, made)
                self._new = made.rename(self.hidden / str(made.stat().st_ino))
        return self._new

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """The folder to write to; the results in it become those of the run at the end."""
        with self.explaining():
            yield self.new
        self._commit()

    @contextmanager
    def explaining(self, kind: type[OSError] = WriteError) -> Iterator[None]:
        """Errors about the hidden folder as errors about the one that is known."""
        try:
            yield
        except kind as error:
            raise explained(error, self.shown) from error

    def _make_parents(self) -> None:
        missing = [folder for folder in self.path.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self.made.append(folder)

    def _place(self) -> Path:
        """The hidden folder: beside the folder, or within it where that is the only way."""
        parent = self.path.parent
        if self.path.is_dir() and (
            not os.access(parent, os.W_OK | os.X_OK) or mount_of(parent) != mount_of(self.path)
        ):
            return self.path / ".gnomon"
        return parent / f".{short_name(self.path.name)}.gnomon"

    def _lock(self) -> None:
        """Take the lock, or refuse to: the other run may take hours."""
        while True:
            self.hidden.mkdir(exist_ok=True)
            if self.hidden.is_symlink():  # it may point at files that are not ours to remove
                raise WriteError(f"{self.hidden} is a link, where a folder is needed. Remove it.")
            try:
                self.handle = os.open(self.hidden / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            except FileNotFoundError:  # another run has just ended
                continue
            if not lock(self.handle):
                process = os.read(self.handle, 20).decode("ascii", "replace")
                os.close(self.handle)
                self.handle = -1
                raise WriteError(
                    f"Another run (process {process}) is writing to {self.shown}. Wait until it "
                    "has ended, or use another folder."
                )
            if is_open(self.handle, self.hidden / LOCK):
                break
            os.close(self.handle)
        os.ftruncate(self.handle, 0)
        os.write(self.handle, str(os.getpid()).encode())

    def _commit(self) -> None:
        new, old = self.new, self._old_results()
        with self.explaining(OSError):
            for name in old & {*os.listdir(new)}:
                shutil.copymode(self.path / name, new / name)
            flush_folder(new)
            if not self.path.exists():
                new.rename(self.path)
            elif not self._exchange(old):
                self._move_out(old)
            flush_folder(self.path.parent)
        try:
            self._recover()
        except OSError as error:
            raise WriteError(
                f"{self.shown} could not be written as a whole ({error.strerror}). The next run "
                "into this folder puts the rest in place."
            ) from error

    def _old_results(self) -> set[str]:
        """Files that go: results of this kind of run, and of any if the folder is one of a run."""
        there = {*os.listdir(self.path)} if self.path.is_dir() else set()
        return there & ({*RESULTS} if RECORD in there else {*self.results})

    def _exchange(self, old: set[str]) -> bool:
        """Exchange the folders with all that is the user's in both; False where it cannot be."""
        if self.hidden.parent == self.path or is_within(self.path):
            return False
        if owner_of(self.new) != owner_of(self.path):
            return False
        try:
            for name in {*os.listdir(self.path)} - old:
                os.link(self.path / name, self.new / name, follow_symlinks=False)
            flush_folder(self.new)
            exchange(self.new, self.path)
        except (OSError, NotImplementedError):
            return False
        return True

    def _move_out(self, old: set[str]) -> None:
        leaving = self.hidden / LEAVING
        leaving.mkdir()
        for name in old:
            (self.path / name).rename(leaving / name)
        leaving.rename(self.hidden / LEFT)  # from here on the new results are the right ones

    def _recover(self) -> None:
        """Finish or undo what this run, or one that was killed, had begun, and remove the rest."""
        leaving, left = self.hidden / LEAVING, self.hidden / LEFT
        if leaving.exists() or left.exists():
            self.path.mkdir(exist_ok=True)
        if leaving.exists():
            for name in os.listdir(leaving):
                (leaving / name).rename(self.path / name)
            leaving.rmdir()
        for folder in self.hidden.iterdir():
            if not folder.name.isdigit():
                continue
            if left.exists():
                for name in {*os.listdir(folder)} & {*RESULTS}:
                    (folder / name).rename(self.path / name)
            elif folder.stat().st_ino != int(folder.name):
                self._remove_exchanged(folder)
                continue
            shutil.rmtree(folder)
        for folder in (left, self.hidden / MAKING):
            if folder.exists():
                shutil.rmtree(folder)
        self._new = None

    def _remove_exchanged(self, old: Path) -> None:
        """Remove the old folder, but no file of the user that the new one has not.

        They were linked into the new one. What came a moment later, or is newer, is moved there.
        """
        for here in [*old.iterdir()]:
            there = self.path / here.name
            known = os.path.lexists(there)
            if here.name in RESULTS or (known and _time(here) <= _time(there)):
                here.unlink()
            else:
                self.path.mkdir(exist_ok=True)  # the user may have removed it meanwhile
                here.replace(there)
        old.rmdir()


def _time(path: Path) -> int:
    return path.lstat().st_mtime_ns
