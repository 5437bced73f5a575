"""Prefetching: reading on a thread of its own while others compute.

`Ahead` is one such read. `Coming` decides which parts of a file are read next and how many fit into
memory, without their bytes: where they stand in the file is looked up when a read begins.

`Ahead.take` returns the result if it is ready, waits if it is being read, and otherwise reads
synchronously. It never waits for a thread that has not begun, so nothing is lost where the thread
cannot be started, is slow, or was not copied into a forked process.
"""

import os
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

ROOM = 2**26  # bytes of a file that are read beforehand, at the most

__all__ = ["Ahead", "Coming", "Reads"]


class Ahead(Generic[T]):
    """Something that is being read, or will be, or has been.

    Parameters
    ----------
    read : callable
        Reads it. Errors are not kept: `take` reads again and raises them.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self.read, self.process = read, os.getpid()
        self.first = deque([None])  # who takes this reads
        self.found: SimpleQueue[tuple[T] | None] = SimpleQueue()
        _reader.ask(self)

    def begin(self) -> None:
        """Read it, unless another thread did or does."""
        try:
            self.first.pop()
        except IndexError:
            return
        found = None
        with suppress(Exception):
            found = (self.read(),)
        self.found.put(found)

    def cancel(self) -> None:
        """Cancel the read, unless it has begun."""
        self.first.clear()

    def take(self) -> T:
        """Return what was read; once."""
        try:
            self.first.pop()
        except IndexError:
            found = self.found.get() if self.process == os.getpid() else None
            if found is not None:
                return found[0]
        return self.read()


class _Reader:
    """The thread, which is started when it is needed first. Python ends without it."""

    def __init__(self) -> None:
        self.wanted: SimpleQueue[Ahead[Any]] = SimpleQueue()
        self.started = False

    def ask(self, ahead: Ahead[Any]) -> None:
        """Queue a read."""
        self.wanted.put(ahead)
        if not self.started:  # two threads may both find that, and start two, which does no harm
            with suppress(RuntimeError):  # there are no more
                start_new_thread(self._serve, ())
            self.started = True

    def _serve(self) -> None:
        while True:
            self.wanted.get().begin()


_reader = _Reader()


def _after_fork() -> None:
    global _reader
    _reader = _Reader()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Reads(Protocol[K_contra]):
    """A file that can begin to read a part of itself, named by a key."""

    def part_bytes(self, key: K_contra) -> int:
        """About how many bytes a part has."""

    def prefetch_part(self, key: K_contra) -> None:
        """Begin to read a part."""

    def drop_part(self, key: K_contra) -> None:
        """Drop what was read of a part."""


class Coming(Generic[K]):
    """Parts of a file that will be read, in order.

    As many of them are prefetched as `room` bytes allow; when one is read, the next is prefetched.
    """

    def __init__(self) -> None:
        self.known: set[K] = set()
        self.waiting: dict[K, None] = {}
        self.begun: dict[K, int] = {}  # and their bytes
        self.room = ROOM
        self.asking = threading.Lock()  # never waited for

    def __reduce__(self) -> tuple[Any, ...]:
        return Coming, ()  # a copy, for another process, knows of none

    def tell(self, keys: Iterable[K], file: Reads[K], room: int = ROOM) -> None:
        """Append parts that come next; `room` bytes are free for them."""
        self.room = min(ROOM, room)
        for key in keys:
            if key not in self.known:
                self.known.add(key)
                self.waiting[key] = None
        self._go_on(file)

    def asked(self, key: K, file: Reads[K]) -> None:
        """Note that a part is about to be read, and prefetch the next ones."""
        self.known.add(key)
        self.waiting.pop(key, None)
        self.begun.pop(key, None)
        self._go_on(file)

    def _go_on(self, file: Reads[K]) -> None:
        if not self.waiting or not self.asking.acquire(blocking=False):
            return
        try:
            for key in list(self.waiting):
                if key not in self.waiting:  # read meanwhile
                    continue
                size = file.part_bytes(key)
                room = self.room - sum(tuple(self.begun.values()))
                if size > room and self.begun:
                    break
                if size <= room:
                    self.begun[key] = size
                    file.prefetch_part(key)
                if key in self.waiting:
                    self.waiting.pop(key, None)
                else:  # or just now
                    self.begun.pop(key, None)
                    file.drop_part(key)
        finally:
            self.asking.release()
