"""Fixed blocks of rows on a thread pool, with the same bits for any number of threads.

How it works:

1. Blocks depend on the size of the work only (`row_blocks`), never on the number of threads.
2. The calling thread works too; up to ``n_jobs - 1`` threads of one shared pool help it. Each takes
   the next block that nobody has taken. A caller therefore never waits for a pool that is busy with
   somebody else's work, and nested calls cannot lock each other out.
3. Results are handed back, or added up, in the order of the blocks (`map_blocks`, `fold_blocks`).
   `beside` has the others work on something else while the caller goes on.
4. BLAS runs one thread wherever a result is computed (`one_blas_thread`): its bits change with its
   thread count, and our blocks already use the cores.

An error or Ctrl-C stops everybody at the next block. After a fork the child starts with a pool of
its own. Inside joblib or Dask workers `n_jobs=None` keeps to the threads that those allow.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from gnomon.errors import refuse

T = TypeVar("T")
Block = tuple[int, int]

__all__ = [
    "beside",
    "fold_blocks",
    "map_blocks",
    "one_blas_thread",
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
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__")):
        refuse("n_jobs", "be None or an integer other than 0", n_jobs, kind=True)
    if n_jobs is not None:
        n_jobs = n_jobs.__index__()
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
        _on_this_thread(function, blocks, add)
        return
    work = _Work(function, blocks, add, threads)
    other = _busy.beside
    with one_blas_thread():
        if other is not None and other.has_blocks():
            other.first = work  # its helpers are awake
        else:
            work.call_helpers()
        try:
            work.run()
        finally:
            if other is not None:
                other.first = None
            work.settle()


@contextmanager
def beside(
    function: Callable[[int, int], object], blocks: Sequence[Block], *, n_jobs: int | None = None
) -> Iterator[None]:
    """Have other threads call `function` for every block while this one does what is inside.

    What this thread hands out meanwhile comes first: the others look for it between two blocks. At
    the end this thread helps with the blocks that are left. Waking threads costs as much as a small
    piece of work does, so it is done once for both.
    """
    threads = 1 if _busy.in_block else min(thread_count(n_jobs), len(blocks) + 1, 1 + _POOL_SIZE)
    if threads == 1 or _busy.beside is not None:
        yield
        _on_this_thread(function, blocks, _forget)
        return
    work = _Work(function, blocks, _forget, threads)
    with one_blas_thread():
        work.call_helpers()
        try:
            _busy.beside = work
            yield
            _busy.beside = None
            work.run()
        except BaseException:
            work.stop()
            raise
        finally:
            _busy.beside = None
            work.settle()


def _forget(result: object) -> None:
    pass


def _on_this_thread(
    function: Callable[[int, int], T], blocks: Sequence[Block], add: Callable[[T], object]
) -> None:
    """One block after the other: waking nobody is what small work can gain."""
    outer, _busy.in_block = _busy.in_block, True
    try:
        with one_blas_thread():
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
    """One call of `fold_blocks` or `beside`: which block is next, which results wait."""

    def __init__(
        self,
        function: Callable[[int, int], Any],
        blocks: Sequence[Block],
        add: Callable[[Any], object],
        threads: int,
    ) -> None:
        self.function, self.blocks, self.add = function, blocks, add
        self.most_open = threads + 1
        self.taken = self.added = 0
        self.waiting: dict[int, Any] = {}
        self.inside = 0  # threads in `run`
        self.stopped = False
        self.error: BaseException | None = None
        self.turn = threading.Condition()
        self.first: _Work | None = None  # more urgent than the blocks here

    def call_helpers(self) -> None:
        """Wake others; one that comes too late, because the pool is busy, finds nothing to do."""
        for _ in range(self.most_open - 2):
            _shared_pool().submit(self.run)

    def has_blocks(self) -> bool:
        return self.taken < len(self.blocks)

    def run(self) -> None:
        """Take blocks until none is left; the first error is kept and stops everybody."""
        outer, _busy.in_block = _busy.in_block, True
        with self.turn:
            self.inside += 1
        try:
            with one_blas_thread():  # this thread's own setting, where there is one
                while (index := self._take()) is not None:
                    self._finish(index, self.function(*self.blocks[index]))
                    if (first := self.first) is not None:
                        first.run()
        except BaseException as error:
            self.stop(error)
        finally:
            _busy.in_block = outer
            with self.turn:
                self.inside -= 1
                self.turn.notify_all()

    def settle(self) -> None:
        """Wait for the last thread to leave, Ctrl-C or not; raise what went wrong."""
        waiting = True
        while waiting:
            try:
                with self.turn:
                    while self.inside:
                        self.turn.wait()
                waiting = False
            except BaseException as error:
                self.stop(error)
        if self.error is not None:
            raise self.error

    def _take(self) -> int | None:
        with self.turn:
            while not self.stopped and self.taken < len(self.blocks):
                if self.taken < self.added + self.most_open:
                    break
                self.turn.wait()
            if self.stopped or self.taken == len(self.blocks):
                return None
            self.taken += 1
            return self.taken - 1

    def _finish(self, index: int, result: Any) -> None:
        with self.turn:
            self.waiting[index] = result
            while self.added in self.waiting and not self.stopped:
                self.add(self.waiting.pop(self.added))
                self.added += 1
            self.turn.notify_all()

    def stop(self, error: BaseException | None = None) -> None:
        with self.turn:
            self.stopped = True
            self.error = self.error or error
            self.turn.notify_all()


_POOL_SIZE = 63  # threads are started as they are needed; this is only a ceiling
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_POOL_SIZE, thread_name_prefix="gnomon")
        return _pool


class _BlasLimiter:
    """Holds BLAS to one thread while anybody is inside; process-wide, locked and counted.

    threadpoolctl finds the libraries. Its own limits are not enough: they are saved and restored a
    call at a time, so two overlapping calls restore each other's and can leave the whole process at
    one thread; and from 3.8 on the limits of all threads but the first are ignored.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.mine = threading.local()
        self.shared: list[Any] = []  # libraries with one setting for the process
        self.own: list[Any] = []  # built on OpenMP: every thread has its own setting
        self.before: list[int] = []
        self.with_faiss = False

    def enter(self) -> None:
        if getattr(self.mine, "depth", 0) > 0:  # this thread holds it already
            self.mine.depth += 1
            return
        with self.lock:
            if self.inside == 0:
                self._find_libraries()
                self.before = _limit(self.shared)
            self.inside += 1
        self.mine.depth = 1
        self.mine.own = self.own
        self.mine.before = _limit(self.own)

    def leave(self) -> None:
        self.mine.depth -= 1
        if self.mine.depth > 0:
            return
        _restore(self.mine.own, self.mine.before)
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                _restore(self.shared, self.before)

    def _find_libraries(self) -> None:
        with_faiss = "faiss" in sys.modules  # it brings a BLAS of its own
        if self.shared and with_faiss == self.with_faiss:  # looking takes 5 ms
            return
        self.with_faiss = with_faiss
        import scipy.linalg  # noqa: F401  (brings a BLAS of its own, beside NumPy's)
        from threadpoolctl import ThreadpoolController

        found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
        self.own = [lib for lib in found if getattr(lib, "threading_layer", "") == "openmp"]
        self.shared = [lib for lib in found if lib not in self.own]

    def after_fork(self) -> None:
        """Only the forking thread is left in the child: forget the calls of all others."""
        self.lock = threading.Lock()
        held = getattr(self.mine, "depth", 0) > 0
        if self.inside > 0 and not held:
            _restore(self.shared, self.before)
        self.inside = int(held)


def _limit(libraries: list[Any]) -> list[int]:
    """Set every library to one thread; returns what they had."""
    before = [library.get_num_threads() for library in libraries]
    _restore(libraries, [1] * len(libraries))
    return before


def _restore(libraries: list[Any], counts: list[int]) -> None:
    for library, count in zip(libraries, counts, strict=True):
        # Past the rule that only one thread of the process may set it: ours is the one place.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


_blas = _BlasLimiter()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold NumPy's, SciPy's and faiss's BLAS to one thread while inside."""
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


def _after_fork() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()
    _busy.in_block, _busy.beside = False, None
    _blas.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
