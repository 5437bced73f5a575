"""The one decorator for compiled loops.

A kernel is a plain Python function over arrays and a range of rows. `kernel` compiles it with the
flags below, and `threads.py` runs it over blocks of rows on threads.

- ``nogil``: two blocks run at once. Never ``parallel=True``: Numba's threading layer aborts the
  process when two threads enter it together, which Dask and joblib do.
- ``cache``: compiling takes about half a second a kernel, once a machine. It is kept beside the
  package, or in the user's cache folder where the package is read-only; where neither can be
  written to, in a temporary folder for this process and its children. The cache does not see a
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
    """Compile a loop over rows; the signature and types of the Python function stay."""
    compiled = partial(njit, nogil=True, error_model="numpy", fastmath=set(FASTMATH))
    try:
        if _is_homeless() and not _is_writable(Path(function.__code__.co_filename).parent):
            raise RuntimeError  # Numba would make a folder called "~" in the working directory
        made = compiled(cache=True)(function)
    except RuntimeError:  # no folder for the cache
        made = compiled(cache=_keep_for_now())(function)
    return cast("Callable[P, R]", forgiving(made))


def forgiving(compiled: Any) -> Any:
    """Let a cache that is full or damaged cost time and no result.

    Numba raises what reading and writing raise: a full disk, or a file that lost its end when the
    machine stopped, would end every call of the kernel.
    """
    kept: Any = getattr(compiled, "_cache", None)
    if not hasattr(kept, "cache_path"):  # nothing is kept
        return compiled
    load, save = kept.load_overload, kept.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # whatever a pickle that is none raises
            with suppress(OSError):
                kept.flush()
            return None

    def save_overload(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    kept.load_overload, kept.save_overload = load_overload, save_overload
    return compiled


@cache
def _keep_for_now() -> bool:
    """Have Numba keep its cache in a temporary folder, and say so; False if there is none either.

    Only once: later kernels find a folder. Processes that this one starts are told by the
    environment.
    """
    warnings.warn(
        "Compiled loops cannot be kept: neither the folder of gnomon nor the user's cache folder "
        "can be written to. They are compiled in every process, which takes about ten seconds. Set "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
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


def _is_homeless() -> bool:
    """Whether "~" stands for no folder, as for users who are in no list of users."""
    return os.path.expanduser("~") == "~" and not os.environ.get("XDG_CACHE_HOME")


def _is_writable(folder: Path) -> bool:
    kept = folder / "__pycache__"
    return os.access(kept if kept.exists() else folder, os.W_OK) and not kept.is_file()


class _Compiling(event.Listener):
    """Log that a kernel is compiled, which does not happen where it is in the cache."""

    def on_start(self, _: Any) -> None:
        LOGGER.info("compiling, once on this machine")

    def on_end(self, _: Any) -> None:
        pass


event.register("numba:compile", _Compiling())
