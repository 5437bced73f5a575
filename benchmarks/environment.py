"""What a result must say about where it came from, and two threads for everybody."""

import importlib
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

OURS = "gnomon"
THREADS = 2
PACKAGES = (
    "gnomon",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "scikit-learn-intelex",
    "openTSNE",
    "umap-learn",
)
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Settings:
    """What the command line asked for.

    Attributes
    ----------
    data
        Folder with real tables, or None: generated ones.
    only
        Only rows whose name contains this text, or None: all rows.
    pairs
        Timed pairs a row, or None: what `timing.time_pairs` asks for.
    """

    data: Path | None = None
    only: str | None = None
    pairs: int | None = None

    def wants(self, name: str) -> bool:
        """Whether a row of this name is to be measured."""
        return self.only is None or self.only.lower() in name.lower()


class BenchmarkError(Exception):
    """Something the person who started the benchmark can put right."""


class MissingPeerError(BenchmarkError):
    """A library to compare with is not installed: an error, since a skipped peer flatters us."""


def peer(module: str, name: str, package: str) -> Any:
    """The object `name` of a peer's `module`; `package` is what its users install."""
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        message = (
            f"`{module}` of {package} could not be imported ({error}). "
            "`make bench` sets up an environment with all peers."
        )
        raise MissingPeerError(message) from error


def hold_threads(threads: int = THREADS) -> None:
    """Hold this process and its children to `threads` threads. Call before importing NumPy.

    Variables speak to BLAS, OpenMP and Numba. oneTBB, which scikit-learn-intelex uses, reads none
    of them but counts the CPUs that the process may use, so those are limited as well where the
    system allows it.
    """
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def describe() -> dict[str, Any]:
    """Machine, versions and commit, as JSON can hold them."""
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "threads": THREADS,
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **_package_versions()},
    }


def commit(root: Path = ROOT) -> str:
    """The commit that was measured, with "+dirty" when the tree has changes of its own.

    Results themselves do not count as a change: they are written by measuring.
    """
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return "no commit"
    changes = _git(root, "status", "--porcelain", "--", ".", ":(exclude)benchmarks/results")
    return head if changes == "" else f"{head}+dirty"


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _package_versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
