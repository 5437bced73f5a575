"""Fixed blocks of rows on a thread pool, with the same bits for any number of threads.

How it works:

1. Blocks depend on the size of the work only (`row_blocks`), never on the number of threads.
2. The calling thread works too; up to ``n_jobs - 1`` threads of one shared pool help it. Each takes
   the next free block. A caller therefore never waits for a pool that is busy with other work, and
   nested calls cannot lock each other out.
3. Results are handed back, or added up, in the order of the blocks (`map_blocks`, `fold_blocks`).
   `beside` has the others work on something else while the caller goes on.
4. BLAS runs one thread meanwhile (`gnomon.compute.blas`).

An error or Ctrl-C stops everybody at the next block. Ctrl-C raises in the main thread where a
function begins, after a call, and where a loop goes back, also inside the standard library:
`threading.Condition`, `Thread.start` and `concurrent.futures` may then leave a lock held, give back
one that they lost, or forget a thread that Python waits for at exit; and a ``with`` whose manager
is written in Python may never be left. So threads wait for tokens in queues, the calling thread
waits for no lock here, and the clean-up of `_see_through` is done again where it was torn.

After a fork the child starts with a pool of its own. Inside joblib or Dask workers `n_jobs=None`
keeps to the threads that those allow.
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
    """How many threads `n_jobs` asks for, on the CPUs that this process may use.

    ``None`` is all of them, or what ``OMP_NUM_THREADS`` says, as for scikit-learn's own threaded
    code: joblib and Dask set that variable in their workers. A positive number is taken as it is;
    −1 is all CPUs, −2 all but one.
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
    """What joblib counts, which knows the container's share too but reads files to find it."""
    from joblib import cpu_count

    count: int = cpu_count()
    return count


def map_blocks(
    function: Callable[[int, int], T], blocks: Sequence[Block], *, n_jobs: int | None = None
) -> list[T]:
    """``[function(start, stop) for start, stop in blocks]``, on threads, in order."""
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
    """Call ``add(function(start, stop))`` for every block, the `add` calls in block order.

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
            other.first = work  # its helpers are awake
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
    """``meanwhile()``, while other threads call `function` for every block.

    What this thread hands out meanwhile comes first: the others look for it between two blocks. At
    the end this thread helps with the blocks that are left. Waking threads costs as much as a small
    piece of work does, so it is done once for both.
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
    """Work on one block after the other: small work gains most by waking no thread."""
    outer = _busy.in_block
    try:
        _busy.in_block = True
        for start, stop in blocks:
            add(function(start, stop))
    finally:
        _busy.in_block = outer


def quiet(function: Callable[[int, int], T]) -> Callable[[int, int], T]:
    """`function` without NumPy's warnings of overflow and NaN, which a thread sets for itself."""

    def silent(start: int, stop: int) -> T:
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):
            return function(start, stop)

    return silent


class _Busy(threading.local):
    """Whether this thread is inside a block already: then inner calls stay on it.

    And what others do beside it.
    """

    in_block = False
    beside: "_Work | None" = None


_busy = _Busy()


class _Work:
    """One call of `fold_blocks` or `beside`: which blocks are left, which results wait.

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
        self.adding = threading.Lock()  # never waited for: who has it looks again
        self.inside = 0  # helpers in `help`
        self.counting = threading.Lock()  # around `inside`
        self.gone: SimpleQueue[None] = SimpleQueue()  # a token for each helper that has left
        self.stopped = False
        self.error: BaseException | None = None
        self.first: _Work | None = None  # more urgent than the blocks here

    def help(self) -> None:
        """What a helper does; one that comes too late, as it was busy, finds nothing to do."""
        with self.counting:
            self.inside += 1
        try:
            if self.left:
                hold_blas(self.run)  # this thread's own setting, where there is one
        except BaseException as error:
            self.error = self.error or error
            self.stopped = True
            self.clear()
        finally:
            with self.counting:
                self.inside -= 1
            self.gone.put(None)

    def run(self) -> None:
        """Take blocks until none is left."""
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
        """Stop every thread from taking another block, or waiting for one."""
        self.left.clear()
        self._make_room(1)

    def settle(self, patience: float | None) -> None:
        """Wait for the last helper to leave, and forget what the work was about.

        None leaves within `patience` seconds, if there is a limit, where one waits for a lock that
        this thread has and was torn out of: then it is left behind.
        """
        if self.stopped:
            self.clear()
        try:
            while self.inside:
                self.gone.get(timeout=patience)
        except Empty:
            _helpers.started -= self.inside
        _helpers.works.discard(self)
        # A helper that is busy elsewhere has it in its queue still.
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
        except IndexError:  # others took the last ones meanwhile, or all have to stop
            self._make_room(1)  # a thread that waits for room has to leave too
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


PATIENCE = 10.0  # seconds that Ctrl-C waits for the blocks of others; the second one does not


def _see_through(work: _Work, lead: Callable[[], T]) -> T:
    """Call ``lead()``; then wait until no thread works, Ctrl-C or not, and raise what went wrong.

    What goes wrong on this thread, Ctrl-C among it, comes before what went wrong on others.
    """
    found: list[T] = []
    patience, less = None, PATIENCE
    try:
        found.append(lead())
    except Exception as error:
        work.stopped, work.error = True, error
    except BaseException as error:
        work.stopped, work.error = True, error
        patience, less = PATIENCE, 0.0
    try:
        work.settle(patience)
    except BaseException as error:  # Ctrl-C, maybe before it had begun to wait
        work.stopped, work.error = True, error
        work.settle(less)
    if work.error is not None:
        try:
            raise work.error
        finally:
            work.error = None  # its traceback leads here: they would keep each other
    return found[0]


_POOL_SIZE = 63  # threads are started as they are needed; this is only a ceiling


class _Helpers:
    """Threads that wait to be called. Python ends without them: who called them has waited."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Work] = SimpleQueue()
        self.works: set[_Work] = set()  # that are under way
        self.started = 0

    def call(self, work: _Work, *, after: _Work | None = None) -> None:
        """Wake as many as `work` has use for, and start those that are missing.

        One that is about to leave its last work, or `after`, is not missing: threads that start
        anew have cold caches and no scratch memory yet. Two callers at once, or Ctrl-C, may start
        one too many, never one too few.
        """
        self.works.add(work)
        self.works.discard(after)
        wanted = sum(each.threads - 1 for each in tuple(self.works))
        while self.started < min(wanted, _POOL_SIZE):
            try:
                start_new_thread(self._serve, ())
            except RuntimeError:  # there are no more: the caller works too
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
