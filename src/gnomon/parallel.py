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

An error or Ctrl-C stops everybody at the next block. Ctrl-C can come between any two steps of the
main thread, also inside the standard library. So locks are entered by ``with`` alone, which it
cannot tear, and threads wait for tokens in queues. `threading.Condition`, `Thread.start` and
`concurrent.futures` do not survive it: they may leave a lock held, give back one that they lost, or
forget a thread that Python then waits for at exit.

After a fork the child starts with a pool of its own. Inside joblib or Dask workers `n_jobs=None`
keeps to the threads that those allow.
"""

import os
import sys
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, TypeVar

from gnomon.errors import refuse

T = TypeVar("T")
Block = tuple[int, int]
Settings = Sequence[tuple[Any, int]]  # BLAS libraries, and the threads of each

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
        try:
            if other is not None and other.left:
                other.first = work  # its helpers are awake
            else:
                _helpers.call(work)
            work.run()
        except BaseException as error:
            work.stop(error)
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
        try:
            _helpers.call(work)
            _busy.beside = work
            yield
            _busy.beside = None
            work.run()
        except BaseException as error:
            work.stop(error)
        finally:
            _busy.beside = None
            work.settle()


def _forget(result: object) -> None:
    pass


def _on_this_thread(
    function: Callable[[int, int], T], blocks: Sequence[Block], add: Callable[[T], object]
) -> None:
    """One block after the other: waking nobody is what small work can gain."""
    outer = _busy.in_block
    try:
        _busy.in_block = True
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
    """One call of `fold_blocks` or `beside`: which blocks are left, which results wait."""

    def __init__(
        self,
        function: Callable[[int, int], Any],
        blocks: Sequence[Block],
        add: Callable[[Any], object],
        threads: int,
    ) -> None:
        self.function, self.blocks, self.add = function, blocks, add
        self.threads, self.helpers = threads, 0
        self.left = deque(range(len(blocks)))
        self.room: SimpleQueue[None] = SimpleQueue()  # a token for each result that may exist
        self._make_room(threads + 1)
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
                self.run()
        except BaseException as error:
            self.stop(error)
        finally:
            with self.counting:
                self.inside -= 1
            self.gone.put(None)

    def run(self) -> None:
        """Take blocks until none is left."""
        outer = _busy.in_block
        try:
            _busy.in_block = True
            with one_blas_thread():  # this thread's own setting, where there is one
                while (index := self._take()) is not None:
                    self._finish(index, self.function(*self.blocks[index]))
                    if (first := self.first) is not None:
                        first.help()
        finally:
            _busy.in_block = outer

    def stop(self, error: BaseException) -> None:
        """Let nobody take another block, nor wait for one; the first error is kept."""
        self.error = self.error or error
        self.stopped = True
        self.left.clear()
        self._make_room(self.threads)

    def settle(self) -> None:
        """Wait for the last helper to leave, Ctrl-C or not; raise what went wrong."""
        waiting = True
        while waiting:
            try:
                while self.inside:
                    self.gone.get()
                waiting = False
            except BaseException as error:
                self.stop(error)
        _helpers.let_go(self)
        if self.error is not None:
            raise self.error

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
            self._make_room(1)  # whoever waits for room has to leave too
            return None

    def _finish(self, index: int, result: Any) -> None:
        """Add this result and those that waited for it, or leave it to the thread that adds."""
        self.waiting[index] = result
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


_POOL_SIZE = 63  # threads are started as they are needed; this is only a ceiling


class _Helpers:
    """Threads that wait to be called. Python ends without them: who called them has waited."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Work] = SimpleQueue()
        self.wanted = self.started = 0
        self.counting = threading.Lock()

    def call(self, work: _Work) -> None:
        """Wake as many as `work` has use for, and start those that are missing.

        One that is about to leave its last work is not missing: threads that start anew have cold
        caches and no scratch memory yet.
        """
        helpers = work.threads - 1
        with self.counting:
            self.wanted += helpers
            work.helpers = helpers
            while self.started < min(self.wanted, _POOL_SIZE):
                start_new_thread(self._serve, ())
                self.started += 1  # after it: Ctrl-C may leave one too many, never one too few
        for _ in range(helpers):
            self.calls.put(work)

    def let_go(self, work: _Work) -> None:
        with self.counting:
            self.wanted -= work.helpers
            work.helpers = 0

    def _serve(self) -> None:
        threading.current_thread().name = "gnomon"
        while True:
            work = self.calls.get()
            work.help()
            del work  # and the data that it holds


_helpers = _Helpers()


class _BlasLimiter:
    """Holds BLAS to one thread while anybody is inside; process-wide, locked and counted.

    threadpoolctl finds the libraries. Its own limits are not enough: they are saved and restored a
    call at a time, so two overlapping calls restore each other's and can leave the whole process at
    one thread; and from 3.8 on the limits of all threads but the first are ignored.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: set[int] = set()  # threads
        self.mine = _Mine()
        self.shared: list[Any] = []  # libraries with one setting for the process
        self.own: list[Any] = []  # built on OpenMP: every thread has its own setting
        self.before: Settings = ()
        self.with_faiss = False

    def enter(self) -> None:
        self.mine.depth += 1
        if self.mine.depth > 1:  # this thread holds it already
            return
        with self.lock:
            if not self.inside:
                self._find_libraries()
                self.before = _settings(self.shared)
            self.inside.add(threading.get_ident())
            if len(self.inside) == 1:
                _set_to_one(self.before)
        self.mine.before = _settings(self.own)
        _set_to_one(self.mine.before)

    def leave(self, depth: int) -> None:
        """Go back to `depth`, from wherever `enter` came to."""
        self.mine.depth = depth
        if depth > 0:
            return
        _restore(self.mine.before)
        self.mine.before = ()
        me = threading.get_ident()
        with self.lock:
            if self.inside == {me}:
                _restore(self.before)
            self.inside.discard(me)

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
        mine = self.inside & {threading.get_ident()}
        if self.inside and not mine:
            _restore(self.before)
        self.inside = mine


class _Mine(threading.local):
    """How often a thread is inside, and its own settings from before."""

    depth = 0
    before: Settings = ()


def _settings(libraries: list[Any]) -> Settings:
    return [(library, library.get_num_threads()) for library in libraries]


def _set_to_one(settings: Settings) -> None:
    _restore([(library, 1) for library, _ in settings])


def _restore(settings: Settings) -> None:
    for library, count in settings:
        # Past the rule that only one thread of the process may set it: ours is the one place.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


_blas = _BlasLimiter()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold NumPy's, SciPy's and faiss's BLAS to one thread while inside."""
    depth = _blas.mine.depth
    try:
        _blas.enter()
        yield
    finally:
        _blas.leave(depth)


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()
    _busy.in_block, _busy.beside = False, None
    _blas.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
