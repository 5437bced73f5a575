"""Which solver is fastest for which shape, and whether the plan chooses it.

The constants of ``gnomon.pca.plan`` (what an eigenvalue costs, when krylov is worth its error), of
``gnomon.pca.solvers.krylov`` (columns of a block) and of ``gnomon.pca.null`` (when a few
eigenvalues of a null table are quicker than all, and how long they take) are read off these tables.
"""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.data import decaying
from benchmarks.environment import BenchmarkError, Settings
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


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Shapes, then widths of blocks, one row after the other."""
    shapes = [s for s in SHAPES if settings.wants(f"{s[0]}x{s[1]}")]
    tables = [s for s in NULL_SHAPES if settings.wants(f"null-{s[0]}x{s[1]}")]
    if not shapes and not tables:
        known = [f"{n}x{d}" for n, d, _ in SHAPES] + [f"null-{n}x{d}" for n, d in NULL_SHAPES]
        names = ", ".join(known)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for shape in shapes:
        yield "rows", measure(*shape)
    for n, d, k in shapes:
        if row_is_large(n, d):
            yield "blocks", block_widths(n, d, k)
    for n, d in tables:
        yield "null", measure_null(n, d)


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
    )
    drawn = Table(
        "Seconds of one null table of Horn's rule, on one thread.",
        ["shape", "8 eigenvalues", "all", "expected"],
        [
            [row["shape"], *(number(row[key]) for key in ("leading", "all", "expected"))]
            for row in raw.get("null", ())
        ],
    )
    tables = [table for table in (solvers, blocks, drawn) if table.rows]
    return Report("Crossovers of the PCA solvers", tables, notes)


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
