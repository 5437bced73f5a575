"""The one decorator for compiled loops.

A kernel is a plain Python function over arrays and a range of rows. `kernel` compiles it with the
flags below, and `parallel.py` runs it over blocks of rows on threads.

- ``nogil``: two blocks run at once. Never ``parallel=True``: Numba's threading layer aborts the
  process when two threads enter it together, which Dask and joblib do.
- ``cache``: compiling takes about half a second a kernel, once a machine. The cache does not see a
  change in a kernel called from another file, so a kernel calls only kernels of its own file.
- ``error_model="numpy"``: a division does not pay for a test for zero.
- ``fastmath``: sums may be reordered (``reassoc``) and fused (``contract``), and a division by a
  constant may be a product (``arcp``), which is what lets loops use vector instructions.
  ``nnan`` and ``ninf`` are left out: they promise that no NaN or infinity occurs, and user data
  may hold both.

Index arrays are unsigned 32-bit integers where they fit: signed ones pay for Python's wrap-around
of negative indices on every access (11.5 ms against 3.3 ms over 8.8 million edges).

Whenever a kernel has to be compiled, the logger ``gnomon`` says so at level INFO: a command shows
it where its bar would stand still.
"""

import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")

LOGGER = logging.getLogger("gnomon")
FASTMATH = frozenset({"reassoc", "contract", "arcp"})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over rows; the signature and types of the Python function stay."""
    compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath=set(FASTMATH))(function)
    return cast("Callable[P, R]", compiled)


class _Compiling(event.Listener):
    """Log that a kernel is compiled, which does not happen where it is in the cache."""

    def on_start(self, _: Any) -> None:
        LOGGER.info("compiling, once on this machine")

    def on_end(self, _: Any) -> None:
        pass


event.register("numba:compile", _Compiling())
