"""How soon ``gnomon --help`` answers, and how long kernels compile at the first fit.

Compiling is measured in a fresh process whose cache of compiled kernels is empty, as on a machine
where Gnomon was just installed: ``python -m benchmarks.startup NAME`` runs the fit of that name
twice and prints both times. The second has everything compiled; the difference is what the user
waits for once. ``gnomon map digits`` is run twice as well, in processes of its own, and measured in
seconds of processor time, which other work on the machine changes less.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import Report, Table, number, verdict

RUNS = 11
TARGET_SECONDS = 0.3
FRESH_RUNS = 3
COMPILE_SECONDS = 10.0  # of all first fits together
MAP_COMPILE_SECONDS = 6.0  # of processor time, by the first `gnomon map digits`


def fit_pca() -> None:
    """Every PCA kernel: they multiply sparse tables, in float32 and in float64."""
    from scipy import sparse

    from gnomon import PCA

    table = sparse.random_array((400, 300), density=0.1, rng=np.random.default_rng(0), format="csr")
    for dtype in (np.float32, np.float64):
        PCA(5, solver="krylov", tol=0.5, n_jobs=1).fit(table.astype(dtype))


def fit_tsne() -> None:
    """What a map in the plane needs: neighbours, P, pairs and mesh, new rows."""
    from gnomon import TSNE

    table = np.random.default_rng(0).standard_normal((600, 8))
    for method in ("auto", "mesh"):
        TSNE(perplexity=10, max_iter=60, method=method, n_jobs=1).fit(table).transform(
            table[:20] + 1
        )


def fit_procrustes() -> None:
    """Narrow tables, which have compiled loops of their own beyond a few thousand rows."""
    from gnomon import Procrustes

    X = np.random.default_rng(0).standard_normal((3_000, 2))
    Procrustes(scaling=True).fit(X, X[:, ::-1]).transform(X)


# What compiles kernels, each once in a fresh process.
FIRST_FITS: Mapping[str, Callable[[], None]] = {
    "pca": fit_pca,
    "tsne": fit_tsne,
    "procrustes": fit_procrustes,
}


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One command or fit after the other."""
    command = Path(sys.executable).parent / "gnomon"
    if not command.exists():
        raise BenchmarkError(
            f"`gnomon` is not installed beside {sys.executable}: `make bench` does."
        )
    commands: dict[str, tuple[list[str], float | None]] = {
        "help": ([str(command), "--help"], TARGET_SECONDS),
        "bare python": ([sys.executable, "-c", "pass"], None),
    }
    fits = {f"first-{name}": name for name in FIRST_FITS}
    known = [*commands, "first-map", *fits]
    if not any(map(settings.wants, known)):
        names = ", ".join(known)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for name, (words, target) in commands.items():
        if settings.wants(name):
            yield "rows", measure(name, words, target)
    if settings.wants("first-map"):
        yield "first_map", measure_first_map(command)
    for name, fit in fits.items():
        if settings.wants(name):
            yield "first_fits", measure_first(name, fit)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    tables = []
    if commands := raw.get("rows"):
        header = ["row", "median, s [quartiles]", "target", "verdict"]
        cells = [_cells(row) for row in commands]
        tables.append(Table("Seconds from start to end.", header, cells))
    if maps := raw.get("first_map"):
        tables.append(_map_table(maps[0]))
    if fits := raw.get("first_fits"):
        tables.append(_compile_table(fits))
    notes = (
        f"Commands: median of {RUNS} runs after one untimed run.",
        "The bare interpreter is shown for comparison: no command can be faster.",
        f"First fits: median of {FRESH_RUNS} fresh processes, each with an empty NUMBA_CACHE_DIR; "
        "imports are not counted. Compiling is the first fit less the second.",
        f"`gnomon map digits`: median of {FRESH_RUNS} pairs of runs, user and system time of all "
        "threads, imports included.",
    )
    return Report("Start of the command line, and of kernels", tables, notes)


def measure(name: str, command: Sequence[str], target: float | None) -> dict[str, Any]:
    """Times of one command, the first run left out."""
    seconds = [_time(command) for _ in range(RUNS + 1)][1:]
    low, median, high = (float(value) for value in np.percentile(seconds, [25, 50, 75]))
    return {
        "name": name,
        "seconds": seconds,
        "median": median,
        "quartiles": [low, high],
        "target": target,
    }


def measure_first(name: str, fit: str) -> dict[str, Any]:
    """Seconds of the first and the second fit, in fresh processes without compiled kernels."""
    pairs = [_fresh_pair(fit) for _ in range(FRESH_RUNS)]
    first, second = (float(np.median([pair[i] for pair in pairs])) for i in (0, 1))
    compiling = float(np.median([pair[0] - pair[1] for pair in pairs]))
    return {"name": name, "pairs": pairs, "first": first, "second": second, "compiling": compiling}


def measure_first_map(command: Path) -> dict[str, Any]:
    """Processor seconds of the first and the second ``gnomon map digits``, from an empty cache."""
    pairs = []
    for _ in range(FRESH_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/cache"}
            words = [str(command), "map", "digits", "--force", "-o", f"{folder}/digits_map"]
            pairs.append([_processor_seconds(words, env) for _ in range(2)])
    first, second = (float(np.median([pair[i] for pair in pairs])) for i in (0, 1))
    compiling = float(np.median([pair[0] - pair[1] for pair in pairs]))
    return {"pairs": pairs, "first": first, "second": second, "compiling": compiling}


def _processor_seconds(command: Sequence[str], env: Mapping[str, str]) -> float:
    """User and system time of a command on all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise BenchmarkError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _fresh_pair(fit: str) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.startup", fit],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
        )
        if done.returncode != 0:
            raise BenchmarkError(f"the first {fit} fit failed: {done.stderr.strip()[-300:]}")
        if not any(Path(cache).rglob("*.nbi")):
            raise BenchmarkError(f"the first {fit} fit compiled no kernel: nothing was measured")
    first, second = json.loads(done.stdout.splitlines()[-1])
    return [float(first), float(second)]


def time_twice(fit: Callable[[], None]) -> list[float]:
    """Seconds of two calls, the imports left out; in the fresh process."""
    import sklearn.neighbors  # noqa: F401

    import gnomon.tsne  # noqa: F401  (brings PCA and Procrustes)

    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - start)
    return seconds


def _map_table(row: Mapping[str, Any]) -> Table:
    """The first map of a new installation, in processor time."""
    header = ["first run, s", "second run, s", "compiling, s", "target", "verdict"]
    total = row["compiling"]
    late = [f"{total:.1f} s above {MAP_COMPILE_SECONDS:g} s"] if total > MAP_COMPILE_SECONDS else []
    cells = [number(row[key], ".2f") for key in ("first", "second", "compiling")]
    cells += [f"≤ {MAP_COMPILE_SECONDS:g}", verdict(late)]
    return Table("Processor seconds of `gnomon map digits`, once a machine.", header, [cells])


def _compile_table(fits: Sequence[Mapping[str, Any]]) -> Table:
    """Each first fit, and the sum that has a limit."""
    header = ["row", "first fit, s", "second fit, s", "compiling, s", "target", "verdict"]
    keys = ("first", "second", "compiling")
    cells = [[row["name"], *(number(row[key], ".2f") for key in keys), "–", "–"] for row in fits]
    total = sum(row["compiling"] for row in fits)
    late = [f"{total:.1f} s above {COMPILE_SECONDS:g} s"] if total >= COMPILE_SECONDS else []
    cells.append(["all", "–", "–", number(total, ".2f"), f"< {COMPILE_SECONDS:g}", verdict(late)])
    return Table("Seconds that kernels compile, once a machine.", header, cells)


def _time(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise BenchmarkError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
    return seconds


def _cells(row: Mapping[str, Any]) -> list[str]:
    low, high = row["quartiles"]
    spread = f"{number(row['median'], '.3f')} [{number(low, '.3f')}, {number(high, '.3f')}]"
    if row["target"] is None:
        return [row["name"], spread, "–", "–"]
    late = row["median"] > row["target"]
    complaints = [f"{row['median']:.3f} s above {row['target']} s"] if late else []
    return [row["name"], spread, f"≤ {row['target']}", verdict(complaints)]


if __name__ == "__main__":
    print(json.dumps(time_twice(FIRST_FITS[sys.argv[1]])))
