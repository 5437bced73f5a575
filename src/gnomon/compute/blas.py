"""BLAS held to one thread wherever a result is computed.

Its bits change with its thread count, and our blocks use the cores already (`compute.threads`).

threadpoolctl finds the libraries. Its own limits are not enough: they are saved and restored a call
at a time, so two overlapping calls restore each other's and can leave the whole process at one
thread; and from 3.8 on the limits of all threads but the first are ignored.

Ctrl-C can come between any two steps, also within these. So a hold is an object, not a count: it
may be taken twice and let go twice, in any order, and what was there before is forgotten only after
it was restored. A ``with`` that was torn apart lets go when its exception is forgotten.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Settings = dict[str, tuple[Any, int]]  # by the library's file: the library, its threads

__all__ = ["hold_blas", "one_blas_thread"]


def hold_blas(action: Callable[[], T]) -> T:
    """``action()`` with the BLAS of NumPy and SciPy held to one thread."""
    hold = _blas.new_hold()
    try:
        _blas.enter(hold)
        return action()
    finally:
        try:
            _blas.leave(hold)
        except BaseException:  # Ctrl-C on the way out: once more
            _blas.leave(hold)
            raise


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread within a ``with`` block; also a decorator."""
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


class _OfThread:
    """What a thread holds, and its own settings from before."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self.holds: set[_Hold] = set()
        self.before: Settings = {}


class _Hold:
    """A thread's hold on BLAS; clean-up may release it from another thread."""

    def __init__(self, thread: _OfThread) -> None:
        self.thread = thread


class _Limiter:
    """Holds BLAS to one thread while any thread is inside."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a torn hold may end here while its thread has it
        self.inside: set[int] = set()  # threads
        self.local = threading.local()
        self.shared: list[Any] = []  # libraries with one setting for the process
        self.own: list[Any] = []  # built on OpenMP: every thread has its own setting
        self.before: Settings = {}

    def new_hold(self) -> _Hold:
        if not hasattr(self.local, "thread"):
            self.local.thread = _OfThread()
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
            if thread.holds:  # it has come back
                return
            if self.inside <= {thread.ident}:
                _restore(self.before)
            self.inside.discard(thread.ident)

    def _find_libraries(self) -> None:
        if self.shared or self.own:  # looking takes 5 ms
            return
        import scipy.linalg  # noqa: F401  (brings a BLAS of its own, beside NumPy's)
        from threadpoolctl import ThreadpoolController

        found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
        own = [lib for lib in found if getattr(lib, "threading_layer", "") == "openmp"]
        self.own, self.shared = own, [lib for lib in found if lib not in own]

    def after_fork(self) -> None:
        """Only the forking thread is left in the child: forget the calls of all others."""
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
    # Past the rule that only one thread of the process may set it: ours is the one place.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


_blas = _Limiter()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.after_fork)
