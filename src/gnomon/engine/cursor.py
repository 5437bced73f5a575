"""Sequential blocks for threads that request them in nearly sequential order.

An iterator, or the inside of a compressed row group, cannot start in the middle. Reading a block
reads everything before it; blocks read on the way are kept for the threads that request them next.
Threads take partitions in order, so these are one or two. Requesting an earlier block restarts
from the front.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from gnomon.compute.threads import thread_count

T = TypeVar("T")

__all__ = ["Cursor"]


class Cursor(Generic[T]):
    """A position in a sequence of blocks.

    Parameters
    ----------
    begin : callable
        Returns a fresh iterator over all blocks.
    """

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self.begin = begin
        self.lock = threading.Lock()
        self.blocks: Iterator[T] | None = None
        self.at = 0  # index of the iterator's next block
        self.kept: dict[int, T] = {}
        self.most_kept = 2 + thread_count(None)
        self.given = 0  # number of blocks returned so far

    def take(self, index: int) -> T | None:
        """Return block `index`; None if the sequence ends before it."""
        with self.lock:
            if index in self.kept:
                self.given += 1
                return self.kept.pop(index)
            if self.blocks is None or index < self.at:
                self.blocks, self.at = self.begin(), 0
                self.kept.clear()
            try:
                return self._read_up_to(index)
            except BaseException:
                self.blocks = None  # the iterator failed half-way: restart next time
                raise

    def _read_up_to(self, index: int) -> T | None:
        assert self.blocks is not None
        while True:
            block = next(self.blocks, None)
            if block is None:
                self.blocks = None
                return None
            self.at += 1
            if self.at > index:
                self.given += 1
                return block
            self.kept[self.at - 1] = block
            if len(self.kept) > self.most_kept:
                del self.kept[min(self.kept)]
