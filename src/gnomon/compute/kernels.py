"""The one decorator for compiled loops.

A kernel is a plain Python function over arrays and a range of rows. `kernel` compiles it with the
flags below, and `threads.py` runs it over blocks of rows on threads.

- ``nogil``: two blocks run at once. Never ``parallel=True``: Numba's threading layer aborts the
  process when two threads enter it together, which Dask and joblib do.
- ``cache``: compiling takes about half a second per kernel, once per machine. The cache is stored
  in the package's folder, or in the user's cache folder if the package is read-only; if neither is
  writable, in a temporary folder for this process and its children. The cache does not notice a
  change in a kernel called from another file, so a kernel calls only kernels in its own file.
- ``error_model="numpy"``: division does not test for zero.
- ``fastmath``: sums may be reordered (``reassoc``) and fused (``contract``), and a division by a
  constant may be a product (``arcp``), which is what lets loops use vector instructions.
  ``nnan`` and ``ninf`` are left out: they promise that no NaN or infinity occurs, and user data
  may hold both.

Index arrays are unsigned 32-bit integers where they fit: signed indices need Python's wrap-around
of negative indices on every access (11.5 ms against 3.3 ms over 8.8 million edges).

Whenever a kernel is compiled, the logger ``gnomon`` reports it at level INFO, so that a command
can show why its progress bar does not move.
"""

import atexit
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from numba import config, njit
from numba.core import event

from gnomon.errors import GnomonWarning

P = ParamSpec("P")
R = TypeVar("R")

LOGGER = logging.getLogger("gnomon")
FASTMATH = frozenset({"reassoc", "contract", "arcp"})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over rows; the signature and types of the Python function are preserved."""
    compiled = partial(njit, nogil=True, error_model="numpy", fastmath=set(FASTMATH))
    try:
        if _has_no_home() and not _is_writable(Path(function.__code__.co_filename).parent):
            raise RuntimeError  # Numba would create a folder named "~" in the working directory
        made = compiled(cache=True)(function)
    except RuntimeError:  # no writable folder for the cache
        made = compiled(cache=_cache_in_temporary_folder())(function)
    return cast("Callable[P, R]", ignoring_cache_errors(made))


def ignoring_cache_errors(compiled: Any) -> Any:
    """Ignore errors of a cache that is full or damaged: recompile instead of failing.

    Numba raises every error of reading and writing its cache: a full disk, or a file truncated when
    the machine stopped, would otherwise fail every call of the kernel.
    """
    kept: Any = getattr(compiled, "_cache", None)
    if not hasattr(kept, "cache_path"):  # the cache is disabled
        return compiled
    load, save = kept.load_overload, kept.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # a damaged pickle can raise any exception
            with suppress(OSError):
                kept.flush()
            return None

    def save_overload(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    kept.load_overload, kept.save_overload = load_overload, save_overload
    return compiled


@cache
def _cache_in_temporary_folder() -> bool:
    """Make Numba cache in a temporary folder, and log it; return False if there is none either.

    This happens only once: later kernels find the folder. Child processes find it through the
    environment variable.
    """
    warnings.warn(
        "Compiled loops cannot be cached: neither the folder of gnomon nor the user's cache folder "
        "is writable. They are compiled in every process, which takes about ten seconds. Set "
        "NUMBA_CACHE_DIR to a writable folder.",
        GnomonWarning,
        stacklevel=4,
    )
    try:
        folder = tempfile.mkdtemp(prefix="gnomon-")
    except OSError:
        return False
    atexit.register(_remove, folder, os.getpid())
    os.environ["NUMBA_CACHE_DIR"] = folder
    config.reload_config()
    return True


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)


def _has_no_home() -> bool:
    """Whether "~" cannot be expanded, as for users that are not in the user database."""
    return os.path.expanduser("~") == "~" and not os.environ.get("XDG_CACHE_HOME")


def _is_writable(folder: Path) -> bool:
    kept = folder / "__pycache__"
    return os.access(kept if kept.exists() else folder, os.W_OK) and not kept.is_file()


class _Compiling(event.Listener):
    """Log that a kernel is being compiled, which happens only if it is not in the cache."""

    def on_start(self, _: Any) -> None:
        LOGGER.info("compiling, once on this machine")

    def on_end(self, _: Any) -> None:
        pass


event.register("numba:compile", _Compiling())
