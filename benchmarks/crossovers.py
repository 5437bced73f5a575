"""Which solver is fastest for which shape, and from which size on another way is worth its cost.

The constants of ``gnomon.pca.plan`` (what an eigenvalue costs, when krylov is worth its error), of
``gnomon.pca.solvers.krylov`` (columns of a block) and of ``gnomon.pca.null`` (when a few
eigenvalues of a null table are quicker than all, and how long they take) are read off these tables,
and so are the sizes in `CHOICES`: each is measured up to the constant and beyond it, both ways.
``python -m benchmarks.crossovers NAME SIZE LIMIT`` prints the processor seconds of one choice with
its constant set to LIMIT, for a process whose cache of compiled kernels is empty.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import decaying
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.table import Report, Table, number
from gnomon import PCA
from gnomon.pca import null
from gnomon.pca.plan import make_plan
from gnomon.pca.rank import Request
from gnomon.pca.solvers import krylov

SHAPES = [
    (2_000, 200, 10),
    (20_000, 200, 10),
    (5_000, 500, 20),
    (20_000, 800, 20),
    (2_000, 1_000, 10),
    (10_000, 1_000, 50),
    (3_000, 1_500, 20),
    (10_000, 1_500, 50),
    (2_000, 2_000, 20),
    (10_000, 2_000, 20),
    (20_000, 3_000, 50),
    (300, 20_000, 20),
    (1_000, 10_000, 20),
    (2_000, 10_000, 20),
]
BLOCKS = (8, 16, 24, 32, 60)
NULL_SHAPES = [
    (1_500, 500),
    (2_000, 1_001),
    (4_000, 2_000),
    (4_000, 3_000),
    (1_500, 4_000),
    (300, 20_000),
]
RUNS = 3
WAYS = (math.inf, 0.0)  # limits: everything is up to the one, and beyond the other


@dataclass(frozen=True)
class Choice:
    """Two ways to one result, and the constant up to which the first of them is taken.

    Attributes
    ----------
    constant
        Module of gnomon, and the name in it.
    unit
        Of the constant and of `sizes`.
    ways
        What is done up to the constant, and beyond it.
    work
        Prepares a problem of a size, and returns what is timed; that returns the standard error of
        its result, or None where the result is exact.
    compiles
        Whether the second way compiles kernels: processor seconds of the first call in a new
        process count then, instead of wall seconds of a later one.
    """

    constant: tuple[str, str]
    unit: str
    ways: tuple[str, str]
    sizes: tuple[int, ...]
    work: Callable[[int], Callable[[], float | None]]
    compiles: bool = False

    @property
    def value(self) -> float:
        """The constant."""
        module, name = self.constant
        return float(getattr(import_module(f"gnomon.{module}"), name))

    @contextmanager
    def limited(self, limit: float) -> Iterator[None]:
        """Set the constant to `limit` meanwhile: infinity is the first way, 0 the second."""
        module, name = self.constant
        where = import_module(f"gnomon.{module}")
        usual = getattr(where, name)
        setattr(where, name, limit)
        try:
            yield
        finally:
            setattr(where, name, usual)


def search_neighbors(n: int) -> Callable[[], None]:
    from gnomon.neighbors.search import find_neighbors

    X = decaying(n, 50)

    def work() -> None:
        find_neighbors(X, 90, n_jobs=THREADS)

    return work


def score_wide(numbers: int) -> Callable[[], None]:
    return score_ranks(2_000, numbers // 2_000)


def score_ranks(n: int, d: int = 50) -> Callable[[], None]:
    from gnomon.scores import trustworthiness

    X = decaying(n, d)

    def work() -> None:
        trustworthiness(X, X[:, :2], 15, sample="all", n_jobs=THREADS)

    return work


def sum_moments(numbers: int) -> Callable[[], None]:
    from gnomon.numeric.moments import Moments

    X = decaying(numbers // 32, 32)

    def work() -> None:
        Moments.of(X, n_jobs=THREADS)

    return work


def sum_columns(numbers: int) -> Callable[[], None]:
    from gnomon.numeric.moments import Moments

    X = np.asfortranarray(decaying(numbers // 32, 32))

    def work() -> None:
        Moments.of(X, n_jobs=THREADS)

    return work


def fit_narrow(n: int) -> Callable[[], None]:
    from gnomon import Procrustes

    X = decaying(n, 2, np.float64)

    def work() -> None:
        Procrustes(n_jobs=THREADS).fit(X, X[:, ::-1])

    return work


def score_sample(n: int) -> Callable[[], float]:
    from gnomon.scores import score_map

    X = decaying(n, 50)

    def work() -> float:
        found = score_map(X, X[:, :2], n_neighbors=15, n_jobs=THREADS)
        return float(found.trustworthiness.standard_error[0])

    return work


def compare_truncation(n: int) -> Callable[[], float]:
    from gnomon.neighbors.search import NeighborSearch
    from gnomon.tsne.affinities import gaussian_rows, joint
    from gnomon.tsne.truncation import learn_truncation

    X = decaying(n, 50)
    search = NeighborSearch(X, n_jobs=THREADS)
    near = search.among_themselves(90)
    kept = gaussian_rows(near, 30)
    P = joint(kept)
    Y = X[:, :2] * 10

    def work() -> float:
        found = learn_truncation(
            P, kept, near, search.between, [30.0], weights=None, seed=0, n_jobs=THREADS
        )
        return found.kl_change(Y, 1.0)[1]

    return work


def move_points(entries: int) -> Callable[[], None]:
    """Forces by a P whose rows have 50 entries each."""
    from scipy import sparse

    from gnomon.tsne.forces import OverMesh

    n = entries // 50
    apart = np.concatenate([np.arange(1, 26), n - np.arange(1, 26)])
    indices = (np.arange(n)[:, None] + apart) % n
    data = np.full(50 * n, 1 / (50 * n), np.float32)
    P = sparse.csr_array((data, indices.ravel(), np.arange(0, 50 * n + 1, 50)), (n, n))
    P.sort_indices()
    forces = OverMesh(P, 2, 1.0, 0.5, n_jobs=THREADS)
    Y = np.random.default_rng(0).random((n, 2), dtype=np.float32) * 50

    def work() -> None:
        forces.at(Y, np.zeros(2), np.full(2, 50.0))

    return work


def push_points(n: int) -> Callable[[], None]:
    from gnomon.tsne.direct import direct_push

    Y = np.random.default_rng(0).random((n, 2), dtype=np.float32) * 50

    def work() -> None:
        direct_push(Y, None, 1.0, THREADS)

    return work


CHOICES: Mapping[str, Choice] = {
    "neighbors": Choice(
        ("neighbors.search", "SMALL_UP_TO"),
        "rows of 50 columns",
        ("NumPy", "compiled loops"),
        (1_000, 2_500, 5_000),
        search_neighbors,
        compiles=True,
    ),
    "ranks": Choice(
        ("scores.ranks", "SMALL_UP_TO"),
        "rows of 50 columns",
        ("NumPy and SciPy", "compiled loops"),
        (1_000, 2_500, 5_000),
        score_ranks,
        compiles=True,
    ),
    "wide-ranks": Choice(
        ("scores.ranks", "SMALL_NUMBERS"),
        "numbers in 2,000 rows",
        ("SciPy", "compiled loops"),
        (2**16, 2**18, 2**20),
        score_wide,
        compiles=True,
    ),
    "sums": Choice(
        ("numeric.moments", "SHORT_NUMBERS"),
        "numbers in rows of 32",
        ("in float64", "in float32, compared"),
        (2**14, 2**16, 2**18),
        sum_moments,
    ),
    "columns": Choice(
        ("numeric.scaling", "LONG_NUMBERS"),
        "numbers in 32 columns",
        ("NumPy", "a compiled loop"),
        (2**24, 2**26),
        sum_columns,
        compiles=True,
    ),
    "narrow": Choice(
        ("procrustes.narrow", "SMALL_UP_TO"),
        "rows of 2 columns",
        ("NumPy", "compiled loops"),
        (1_000, 2_500, 16_000),
        fit_narrow,
        compiles=True,
    ),
    "lists": Choice(
        ("neighbors.search", "EXACT_UP_TO"),
        "rows of 50 columns",
        ("one list", "inverted lists"),
        (4_000, 8_000, 16_000),
        search_neighbors,
    ),
    "sample": Choice(
        ("scores.sample", "EXACT_UP_TO"),
        "rows of 50 columns",
        ("all rows", "a sample"),
        (2_500, 5_000, 10_000),
        score_sample,
    ),
    "exact-kl": Choice(
        ("tsne.truncation", "EXACT_UP_TO"),
        "rows",
        ("all rows", "a sample"),
        (200, 400, 800),
        compare_truncation,
    ),
    "pull": Choice(
        ("tsne.forces", "WORTH_WAKING"),
        "entries of P",
        ("one thread", "two threads"),
        (50_000, 150_000, 450_000),
        move_points,
    ),
    "push": Choice(
        ("tsne.direct", "AT_ONCE"),
        "points",
        ("one thread", "two threads"),
        (1_500, 3_000, 6_000),
        push_points,
    ),
}


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Shapes, widths of blocks, null tables and sizes, one row after the other."""
    shapes = [s for s in SHAPES if settings.wants(f"{s[0]}x{s[1]}")]
    tables = [s for s in NULL_SHAPES if settings.wants(f"null-{s[0]}x{s[1]}")]
    pairs = [(name, size) for name, choice in CHOICES.items() for size in choice.sizes]
    sizes = [pair for pair in pairs if settings.wants("{}-{}".format(*pair))]
    if not shapes and not tables and not sizes:
        known = [f"{n}x{d}" for n, d, _ in SHAPES] + [f"null-{n}x{d}" for n, d in NULL_SHAPES]
        known += [f"{name}-{size}" for name, size in pairs]
        names = ", ".join(known)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for shape in shapes:
        yield "rows", measure(*shape)
    for n, d, k in shapes:
        if row_is_large(n, d):
            yield "blocks", block_widths(n, d, k)
    for n, d in tables:
        yield "null", measure_null(n, d)
    for name, size in sizes:
        yield "sizes", measure_size(name, size)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    solvers = Table(
        "Seconds of one fit, float32, variances 1/j².",
        ["shape", "k", "covariance", "gram", "krylov", "plan", "plan / best"],
        [_cells(row) for row in raw.get("rows", ())],
    )
    widths = raw.get("blocks", ())
    blocks = Table(
        "Seconds of krylov by columns of a block.",
        ["shape", "k", *map(str, BLOCKS)],
        [[row["shape"], str(row["k"]), *(number(row[str(b)]) for b in BLOCKS)] for row in widths],
    )
    notes = (
        f"Best of {RUNS} runs: the least disturbed one, since only our own solvers are compared.",
        "The plan prefers an exact solver that takes less than about half a second, or less than "
        "three times as long as krylov.",
        "– : not measured, the square matrix would not pay.",
        "Sizes: wall seconds, the least of all runs within a second or two, which alternate; ways "
        "marked * in processor seconds of the first call of a new process that has no compiled "
        f"kernels, best of {RUNS}. Error: standard error of what a sample estimates.",
    )
    drawn = Table(
        "Seconds of one null table of Horn's rule, on one thread.",
        ["shape", "8 eigenvalues", "all", "expected"],
        [
            [row["shape"], *(number(row[key]) for key in ("leading", "all", "expected"))]
            for row in raw.get("null", ())
        ],
    )
    sizes = Table(
        "Seconds of two ways, and the constant that chooses between them by size.",
        ["constant", "size", "up to it", "seconds", "beyond it", "seconds", "error beyond it"],
        [_size_cells(row) for row in raw.get("sizes", ())],
    )
    tables = [table for table in (solvers, blocks, drawn, sizes) if table.rows]
    return Report("Crossovers", tables, notes)


def measure_size(name: str, size: int) -> dict[str, Any]:
    """Seconds of both ways for a problem of one size, and the error of the second."""
    choice = CHOICES[name]
    if choice.compiles:
        pairs = [[fresh_seconds(name, size, limit) for limit in WAYS] for _ in range(RUNS)]
        error = None
    else:
        pairs, error = alternate(choice, size)
    module, constant = choice.constant
    return {
        "name": f"{name}-{size}",
        "constant": f"{module}.{constant}",
        "value": choice.value,
        "size": size,
        "unit": choice.unit,
        "ways": choice.ways,
        "compiles": choice.compiles,
        "seconds": np.min(pairs, axis=0).tolist(),
        "error": error,
    }


def alternate(choice: Choice, size: int) -> tuple[list[list[float]], float | None]:
    """Wall seconds of both ways in turn, for at least a second, and the error of the second."""
    work, error, pairs = choice.work(size), None, []
    for limit in WAYS:  # untimed
        with choice.limited(limit):
            error = work()
    while len(pairs) < RUNS or sum(map(sum, pairs)) < 1.0:
        pair = []
        for limit in WAYS:
            with choice.limited(limit):
                start = time.perf_counter()
                work()
                pair.append(time.perf_counter() - start)
        pairs.append(pair)
    return pairs, error


def fresh_seconds(name: str, size: int, limit: float) -> float:
    """Processor seconds of the first call in a new process without compiled kernels."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.crossovers", name, str(size), str(limit)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
        )
    if done.returncode != 0:
        raise BenchmarkError(f"{name} of {size} failed: {done.stderr.strip()[-300:]}")
    return float(done.stdout.splitlines()[-1])


def _size_cells(row: Mapping[str, Any]) -> list[str]:
    star = "*" if row["compiles"] else ""
    ways = [
        cell
        for way, seconds in zip(row["ways"], row["seconds"], strict=True)
        for cell in (way + star, number(seconds))
    ]
    error = "–" if row["error"] is None else number(row["error"], ".2g")
    constant = f"{row['constant']} = {row['value']:,g}"
    return [constant, f"{row['size']:,} {row['unit']}", *ways, error]


def measure_null(n: int, d: int) -> dict[str, Any]:
    """Seconds of a few, and of all, eigenvalues of one table without correlation."""
    spread, usual, seconds = np.linspace(1, 0.5, d), null.EXACT_SIDE, {}
    try:
        for key, exact in (("leading", 0), ("all", n * d)):
            null.EXACT_SIDE = exact
            times = []
            for _ in range(RUNS):
                start = time.perf_counter()
                null.null_eigenvalues(spread, n - 1, [0], most=8, n_jobs=1)
                times.append(time.perf_counter() - start)
            seconds[key] = float(np.min(times))
    finally:
        null.EXACT_SIDE = usual
    expected = null.draw_seconds(n - 1, d)
    return {"name": f"null-{n}x{d}", "shape": f"{n:,} × {d:,}", **seconds, "expected": expected}


def row_is_large(n: int, d: int) -> bool:
    return min(n, d) >= 1_500


def measure(n: int, d: int, k: int) -> dict[str, Any]:
    """Seconds of every solver that makes sense for the shape, and what the plan says."""
    X = decaying(n, d)
    seconds: dict[str, float | None] = {"covariance": None, "gram": None}
    for solver in ("covariance" if n >= d else "gram", "krylov"):
        seconds[solver] = _best(X, k, solver)
    plan = make_plan(n=n, d=d, request=Request(k), itemsize=4).solver
    best = min(value for value in seconds.values() if value is not None)
    chosen = seconds[plan]
    return {
        "name": f"{n}x{d}",
        "shape": f"{n:,} × {d:,}",
        "k": k,
        **seconds,
        "plan": plan,
        "over_best": None if chosen is None else chosen / best,
    }


def block_widths(n: int, d: int, k: int) -> dict[str, Any]:
    X, usual = decaying(n, d), krylov.BLOCK
    row: dict[str, Any] = {"name": f"{n}x{d}", "shape": f"{n:,} × {d:,}", "k": k}
    try:
        for width in BLOCKS:
            krylov.BLOCK = width
            row[str(width)] = _best(X, k, "krylov")
    finally:
        krylov.BLOCK = usual
    return row


def _best(X: Any, k: int, solver: str) -> float:
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            PCA(k, solver=solver, n_jobs=2).fit(X)
            times.append(time.perf_counter() - start)
    return float(np.min(times[1:]))


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = [("–" if row[s] is None else number(row[s])) for s in ("covariance", "gram", "krylov")]
    over = "–" if row["over_best"] is None else f"{row['over_best']:.2f}"
    return [row["shape"], str(row["k"]), *times, row["plan"], over]


def main(name: str, size: str, limit: str) -> None:
    """Print the processor seconds of one choice's first call, imports and data left out."""
    choice = CHOICES[name]
    with choice.limited(float(limit)):
        work = choice.work(int(size))
        start = time.process_time()
        work()
        print(time.process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
