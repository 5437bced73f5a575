"""BLAS held to one thread wherever a result is computed.

The bits of BLAS results depend on its thread count, and our blocks already use all cores
(`compute.threads`).

threadpoolctl finds the libraries. Its context manager is not enough: limits are saved and restored
per call, so two overlapping calls restore each other's limits and can leave the whole process at
one thread; and since version 3.8 limits are ignored in every thread but the first.

Ctrl-C can arrive between any two steps, including the steps here. So a hold is an object rather
than a count: it may be acquired twice and released twice, in any order, and the previous settings
are dropped only after they were restored. A ``with`` block that was interrupted releases its hold
when its exception is garbage-collected.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Settings = dict[str, tuple[Any, int]]  # by path of the library: the library, its thread count

__all__ = ["hold_blas", "one_blas_thread"]


def hold_blas(action: Callable[[], T]) -> T:
    """Return ``action()`` with the BLAS of NumPy and SciPy limited to one thread."""
    hold = _blas.new_hold()
    try:
        _blas.enter(hold)
        return action()
    finally:
        try:
            _blas.leave(hold)
        except BaseException:  # Ctrl-C during the release: release again
            _blas.leave(hold)
            raise


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a ``with`` block; also works as a decorator."""
    hold = _blas.new_hold()
    try:
        _blas.enter(hold)
        yield
    finally:
        try:
            _blas.leave(hold)
        except BaseException:
            _blas.leave(hold)
            raise


class _ThreadState:
    """The holds of one thread, and the settings that it had before."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self.holds: set[_Hold] = set()
        self.before: Settings = {}


class _Hold:
    """A thread's hold on BLAS; clean-up may release it from another thread."""

    def __init__(self, thread: _ThreadState) -> None:
        self.thread = thread


class _Limiter:
    """Limits BLAS to one thread while any thread has a hold."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # an interrupted hold may be released by its own thread
        self.inside: set[int] = set()  # ids of the threads with a hold
        self.local = threading.local()
        self.shared: list[Any] = []  # libraries with one thread count per process
        self.own: list[Any] = []  # built on OpenMP: one thread count per thread
        self.before: Settings = {}

    def new_hold(self) -> _Hold:
        if not hasattr(self.local, "thread"):
            self.local.thread = _ThreadState()
        return _Hold(self.local.thread)

    def enter(self, hold: _Hold) -> None:
        thread = hold.thread
        held = bool(thread.holds)
        thread.holds.add(hold)
        if held:
            return
        with self.lock:
            self._find_libraries()
            self.inside.add(thread.ident)
            _limit(self.shared, self.before)
        _limit(self.own, thread.before)

    def leave(self, hold: _Hold) -> None:
        thread = hold.thread
        thread.holds.discard(hold)
        if thread.holds:
            return
        if thread.ident == threading.get_ident():
            _restore(thread.before)
        with self.lock:
            if thread.holds:  # the thread still has another hold
                return
            if self.inside <= {thread.ident}:
                _restore(self.before)
            self.inside.discard(thread.ident)

    def _find_libraries(self) -> None:
        if self.shared or self.own:  # finding them takes 5 ms
            return
        import scipy.linalg  # noqa: F401  (SciPy has its own BLAS, in addition to NumPy's)
        from threadpoolctl import ThreadpoolController

        found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
        own = [lib for lib in found if getattr(lib, "threading_layer", "") == "openmp"]
        self.own, self.shared = own, [lib for lib in found if lib not in own]

    def after_fork(self) -> None:
        """Drop the holds of all other threads: only the forking thread exists in the child."""
        self.lock = threading.RLock()
        mine = self.inside & {threading.get_ident()}
        if self.inside and not mine:
            _restore(self.before)
        self.inside = mine


def _limit(libraries: list[Any], before: Settings) -> None:
    for library in libraries:
        before.setdefault(library.filepath, (library, library.get_num_threads()))
        _set_threads(library, 1)


def _restore(before: Settings) -> None:
    for library, threads in before.values():
        _set_threads(library, threads)
    before.clear()


def _set_threads(library: Any, threads: int) -> None:
    # Bypass threadpoolctl's rule that only the first thread may set the limit: only we set it.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


_blas = _Limiter()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.after_fork)
