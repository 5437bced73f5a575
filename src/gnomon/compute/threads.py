"""Fixed blocks of rows on a thread pool, with the same bits for any number of threads.

How it works:

1. Blocks depend only on the size of the work (`row_blocks`), never on the number of threads.
2. The calling thread works too; up to ``n_jobs - 1`` threads of one shared pool help it. Each takes
   the next free block. A caller therefore never waits for a pool that is busy with other work, and
   nested calls cannot deadlock.
3. Results are returned, or added up, in block order (`map_blocks`, `fold_blocks`).
   `beside` runs blocks on the other threads while the caller continues.
4. BLAS runs on one thread meanwhile (`gnomon.compute.blas`).

An error or Ctrl-C stops every thread at its next block. Ctrl-C raises in the main thread where a
function begins, after a call, and where a loop jumps back, also inside the standard library:
`threading.Condition`, `Thread.start` and `concurrent.futures` may then leave a lock held, release
one that they do not hold, or lose a thread that Python joins at exit; and a context manager written
in Python may never run its exit. So threads wait for tokens in queues, the calling thread
waits for no lock here, and the clean-up of `_see_through` is repeated if it was interrupted.

After a fork the child starts with a new pool. Inside joblib or Dask workers `n_jobs=None`
respects the thread limits that those set.
"""

import operator
import os
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from gnomon.compute.blas import hold_blas
from gnomon.errors import refuse

T = TypeVar("T")
Block = tuple[int, int]

__all__ = [
    "beside",
    "fold_blocks",
    "map_blocks",
    "quiet",
    "row_blocks",
    "thread_count",
]


def row_blocks(n_rows: int, block_rows: int) -> list[Block]:
    """Ranges ``(start, stop)`` of `block_rows` rows, the last one shorter, that cover `n_rows`."""
    return [(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`, on the CPUs that this process may use.

    ``None`` means all CPUs, or ``OMP_NUM_THREADS`` if it is set, as in scikit-learn's own threaded
    code: joblib and Dask set that variable in their workers. A positive number is used as given;
    −1 means all CPUs, −2 all but one.
    """
    if n_jobs is not None:
        n_jobs = _integer(n_jobs)
        if n_jobs == 0:
            refuse("n_jobs", "be None or an integer other than 0", n_jobs, "Use -1 for all CPUs.")
        if n_jobs > 0:
            return n_jobs
    allowed_cpus = getattr(os, "sched_getaffinity", lambda _: ())(0)
    cpus = _cpu_count(frozenset(allowed_cpus))
    if n_jobs is None:
        allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return min(cpus, max(1, int(allowed))) if allowed.isdigit() else cpus
    return max(1, cpus + 1 + n_jobs)


def _integer(n_jobs: Any) -> int:
    must = "be None or an integer other than 0"
    if isinstance(n_jobs, bool):
        refuse("n_jobs", must, n_jobs, kind=True)
    try:
        return operator.index(n_jobs)
    except TypeError:
        refuse("n_jobs", must, n_jobs, kind=True)


@lru_cache
def _cpu_count(affinity: frozenset[int]) -> int:
    """CPU count of joblib, which respects container limits but reads files to find them."""
    from joblib import cpu_count

    count: int = cpu_count()
    return count


def map_blocks(
    function: Callable[[int, int], T], blocks: Sequence[Block], *, n_jobs: int | None = None
) -> list[T]:
    """Return ``[function(start, stop) for start, stop in blocks]``, computed on threads."""
    results: list[T] = []
    fold_blocks(function, blocks, results.append, n_jobs=n_jobs)
    return results


def fold_blocks(
    function: Callable[[int, int], T],
    blocks: Sequence[Block],
    add: Callable[[T], object],
    *,
    n_jobs: int | None = None,
) -> None:
    """Call ``add(function(start, stop))`` for every block, with the `add` calls in block order.

    `function` runs on several threads at once and should release the GIL; `add` runs on one thread
    at a time. Finished results wait for their turn; a thread that is too far ahead waits, so that
    at most one more result than there are threads exists at any time.
    """
    if not blocks:
        return
    alone = _busy.in_block or len(blocks) == 1
    threads = 1 if alone else min(thread_count(n_jobs), len(blocks), 1 + _POOL_SIZE)
    if threads == 1:
        hold_blas(lambda: _on_this_thread(function, blocks, add))
        return
    work = _Work(function, blocks, add, threads, room=threads + 1)
    other = _busy.beside

    def lead() -> None:
        if other is not None and other.left:
            other.first = work  # the helpers of `other` are awake already
        else:
            _helpers.call(work, after=other)
        work.run()
        if other is not None:
            other.first = None

    hold_blas(lambda: _see_through(work, lead))


def beside(
    function: Callable[[int, int], object],
    blocks: Sequence[Block],
    meanwhile: Callable[[], T],
    *,
    n_jobs: int | None = None,
) -> T:
    """Return ``meanwhile()``, while other threads call `function` for every block.

    Work that this thread submits inside `meanwhile` has priority: the other threads look for it
    between two blocks. At the end this thread helps with the remaining blocks. Waking threads costs
    as much as a small piece of work, so they are woken once for both.
    """
    threads = 1 if _busy.in_block else min(thread_count(n_jobs), len(blocks) + 1, 1 + _POOL_SIZE)
    work = _Work(function, blocks, _forget, threads, room=len(blocks) + threads)

    def first_the_one() -> T:
        found = meanwhile()
        _on_this_thread(function, blocks, _forget)
        return found

    def lead() -> T:
        _helpers.call(work)
        try:
            _busy.beside = work
            found = meanwhile()
        finally:
            _busy.beside = None
        work.run()
        return found

    if threads == 1 or _busy.beside is not None:
        return hold_blas(first_the_one)
    return hold_blas(lambda: _see_through(work, lead))


def _forget(*_: object) -> None:
    pass


def _on_this_thread(
    function: Callable[[int, int], T], blocks: Sequence[Block], add: Callable[[T], object]
) -> None:
    """Run the blocks one after the other: for small work, waking threads would cost more."""
    outer = _busy.in_block
    try:
        _busy.in_block = True
        for start, stop in blocks:
            add(function(start, stop))
    finally:
        _busy.in_block = outer


def quiet(function: Callable[[int, int], T]) -> Callable[[int, int], T]:
    """Wrap `function` to ignore NumPy's overflow and NaN warnings, a setting of each thread."""

    def silent(start: int, stop: int) -> T:
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            return function(start, stop)

    return silent


class _Busy(threading.local):
    """Whether this thread is running a block: then nested calls stay on it.

    `beside` is the work that other threads do meanwhile.
    """

    in_block = False
    beside: "_Work | None" = None


_busy = _Busy()


class _Work:
    """One call of `fold_blocks` or `beside`: the blocks that remain and the results that wait.

    At most `room` results exist at a time.
    """

    def __init__(
        self,
        function: Callable[[int, int], Any],
        blocks: Sequence[Block],
        add: Callable[[Any], object],
        threads: int,
        room: int,
    ) -> None:
        self.function, self.blocks, self.add = function, blocks, add
        self.threads = threads
        self.left = deque(range(len(blocks)))
        self.room: SimpleQueue[None] = SimpleQueue()  # a token for each result that may exist
        self._make_room(room)
        self.waiting: dict[int, Any] = {}
        self.added = 0
        self.adding = threading.Lock()  # never waited for: its holder checks again after releasing
        self.inside = 0  # helpers in `help`
        self.counting = threading.Lock()  # around `inside`
        self.gone: SimpleQueue[None] = SimpleQueue()  # a token for each helper that has left
        self.stopped = False
        self.error: BaseException | None = None
        self.first: _Work | None = None  # work with priority over these blocks

    def help(self) -> None:
        """Run blocks as a helper; a helper that arrives late finds no blocks left."""
        with self.counting:
            self.inside += 1
        try:
            if self.left:
                hold_blas(self.run)  # sets the thread count of this thread, if it has its own
        except BaseException as error:
            self.error = self.error or error
            self.stopped = True
            self.clear()
        finally:
            with self.counting:
                self.inside -= 1
            self.gone.put(None)

    def run(self) -> None:
        """Take and run blocks until none is left."""
        outer = _busy.in_block
        try:
            _busy.in_block = True
            while (index := self._take()) is not None:
                self._finish(index, self.function(*self.blocks[index]))
                if (first := self.first) is not None:
                    first.help()
        finally:
            _busy.in_block = outer

    def clear(self) -> None:
        """Stop every thread from taking another block or waiting for one."""
        self.left.clear()
        self._make_room(1)

    def settle(self, patience: float | None) -> None:
        """Wait for the last helper to leave, then drop the references to the work.

        With a limit of `patience` seconds, a helper that waits for a lock which this thread was
        interrupted in never leaves in time: it is abandoned.
        """
        if self.stopped:
            self.clear()
        try:
            while self.inside:
                self.gone.get(timeout=patience)
        except Empty:
            _helpers.started -= self.inside
        _helpers.works.discard(self)
        # A helper that is busy elsewhere still has this work in its queue.
        self.function = self.add = _forget
        self.waiting.clear()

    def _make_room(self, results: int) -> None:
        for _ in range(results):
            self.room.put(None)

    def _take(self) -> int | None:
        if not self.left:
            return None
        self.room.get()
        try:
            return self.left.popleft()
        except IndexError:  # other threads took the last blocks, or all must stop
            self._make_room(1)  # wake a thread that waits for room, so that it leaves too
            return None

    def _finish(self, index: int, result: Any) -> None:
        """Add this result and those that waited for it, or leave it to the thread that adds."""
        self.waiting[index] = result
        del result
        while self.added in self.waiting and not self.stopped:
            if not self.adding.acquire(blocking=False):
                return
            try:
                if self.added in self.waiting:
                    self.add(self.waiting.pop(self.added))
                    self.added += 1
                    self._make_room(1)
            finally:
                self.adding.release()


PATIENCE_SECONDS = 10.0  # seconds that a first Ctrl-C waits for running blocks


def _see_through(work: _Work, lead: Callable[[], T]) -> T:
    """Call ``lead()``, wait until no thread works, even after Ctrl-C, and raise the first error.

    Errors of this thread, Ctrl-C included, take precedence over errors of other threads.
    """
    found: list[T] = []
    patience, less = None, PATIENCE_SECONDS
    try:
        found.append(lead())
    except Exception as error:
        work.stopped, work.error = True, error
    except BaseException as error:
        work.stopped, work.error = True, error
        patience, less = PATIENCE_SECONDS, 0.0
    try:
        work.settle(patience)
    except BaseException as error:  # Ctrl-C, possibly before the wait began
        work.stopped, work.error = True, error
        work.settle(less)
    if work.error is not None:
        try:
            raise work.error
        finally:
            work.error = None  # its traceback refers to this frame: avoid a reference cycle
    return found[0]


_POOL_SIZE = 63  # upper limit; threads start on demand


class _Helpers:
    """Daemon threads that wait for work. Python may exit without them: callers wait for results."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Work] = SimpleQueue()
        self.works: set[_Work] = set()  # works in progress
        self.started = 0

    def call(self, work: _Work, *, after: _Work | None = None) -> None:
        """Wake as many helpers as `work` can use, and start the missing ones.

        A helper that is about to finish its last work, or `after`, is not missing: new threads
        have cold caches and no scratch memory yet. Two callers at once, or Ctrl-C, may start
        one helper too many, never one too few.
        """
        self.works.add(work)
        self.works.discard(after)
        wanted = sum(each.threads - 1 for each in tuple(self.works))
        while self.started < min(wanted, _POOL_SIZE):
            try:
                start_new_thread(self._serve, ())
            except RuntimeError:  # the system has no more threads: the caller works too
                break
            self.started += 1
        for _ in range(min(work.threads - 1, self.started)):
            self.calls.put(work)

    def _serve(self) -> None:
        threading.current_thread().name = "gnomon"
        while True:
            work = self.calls.get()
            work.help()
            del work


_helpers = _Helpers()


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()
    _busy.in_block, _busy.beside = False, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
