"""Peak memory above the input, measured in a fresh process.

A fresh process, since memory that an earlier run has given back stays with the process and would
hide the next one's. It runs ``python -m benchmarks.memory FUNCTION TABLE K``:

1. import everything by fitting a small cut of the table;
2. read the table from disk, which needs no more memory than the table;
3. set the kernel's high-water mark back to what is in use now, fit, and read the mark.

The mark is VmHWM of Linux. ``ru_maxrss`` will not do: a child inherits its parent's, and the parent
holds the data. Other systems are not measured.
"""

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

STATUS = Path("/proc/self/status")
SMALL = 200  # rows and columns of the cut that warms up

Fit = Callable[[Any, int], object]


def save_table(X: Any, folder: Path) -> Path:
    """Write a dense or CSR table where `peak_megabytes` can hand it to a fresh process."""
    table = folder / ("table.npz" if sparse.issparse(X) else "table.npy")
    if table.suffix == ".npz":
        sparse.save_npz(table, X, compressed=False)
    else:
        np.save(table, X)
    return table


def peak_megabytes(fit: Fit, table: Path, k: int) -> float | None:
    """Peak memory of ``fit(X, k)`` above the input, in units of 10⁶ bytes.

    Parameters
    ----------
    fit
        A function at the top of its module, so that the fresh process finds it by name.
    table
        What `save_table` returned.
    k
        Number of components, handed to `fit`.

    Returns
    -------
    float or None
        None where the system keeps no high-water mark that can be set back.
    """
    if not STATUS.exists():
        return None
    name = f"{fit.__module__}:{fit.__qualname__}"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", name, str(table), str(k)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"measuring the memory of {name} failed: {reason}")
    return float(done.stdout.split()[-1])


def measure(fit: Fit, table: Path, k: int) -> float:
    """Steps 1 to 3 of this module, in the process that is measured."""
    fit(_small_cut(table), 2)
    X = _load(table)
    return megabytes_of(lambda: fit(X, k))


def megabytes_of(work: Callable[[], object]) -> float:
    """Peak memory of `work` above what the process holds before it; Linux only."""
    Path("/proc/self/clear_refs").write_text("5")  # 5: set the high-water mark back
    before = _kilobytes("VmRSS")
    work()
    return (_kilobytes("VmHWM") - before) * 1024 / 1e6


def _load(table: Path) -> Any:
    return np.load(table) if table.suffix == ".npy" else sparse.load_npz(table)


def _small_cut(table: Path) -> Any:
    if table.suffix == ".npz":
        return _load(table)[:SMALL, :SMALL]
    return np.array(np.load(table, mmap_mode="r")[:SMALL, :SMALL])


def _kilobytes(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise LookupError(f"{STATUS} has no {field}")


if __name__ == "__main__":
    where, path, components = sys.argv[1:]
    module, _, function = where.partition(":")
    print(measure(getattr(import_module(module), function), Path(path), int(components)))
