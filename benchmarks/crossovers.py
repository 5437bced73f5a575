"""Which solver is fastest for which shape, and whether the plan chooses it.

The constants of ``gnomon.pca.plan`` (what an eigenvalue costs, when krylov is worth its error) and
of ``gnomon.pca.krylov`` (columns of a block) are read off these tables.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.data import decaying
from benchmarks.environment import Settings
from benchmarks.table import Report, Table, number
from gnomon import PCA
from gnomon.pca import krylov
from gnomon.pca.plan import make_plan
from gnomon.pca.rank import Request

SHAPES = [
    (2_000, 200, 10), (20_000, 200, 10), (5_000, 500, 20), (20_000, 800, 20), (2_000, 1_000, 10),
    (10_000, 1_000, 50), (3_000, 1_500, 20), (10_000, 1_500, 50), (2_000, 2_000, 20),
    (10_000, 2_000, 20), (20_000, 3_000, 50), (300, 20_000, 20), (1_000, 10_000, 20),
    (2_000, 10_000, 20),
]  # fmt: skip
BLOCKS = (8, 16, 24, 32, 60)
RUNS = 3


def run(settings: Settings) -> Report:
    shapes = [s for s in SHAPES if settings.only in (None, f"{s[0]}x{s[1]}")]
    rows = [measure(n, d, k) for n, d, k in shapes]
    solvers = Table(
        "Seconds of one fit, float32, variances 1/j².",
        ["shape", "k", "covariance", "gram", "krylov", "plan", "plan / best"],
        [_cells(row) for row in rows],
    )
    widths = [block_widths(n, d, k) for n, d, k in shapes if row_is_large(n, d)]
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
    tables = [solvers, blocks] if widths else [solvers]
    return Report("Crossovers of the PCA solvers", tables, notes, {"rows": rows, "blocks": widths})


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
        "shape": f"{n:,} × {d:,}",
        "k": k,
        **seconds,
        "plan": plan,
        "over_best": None if chosen is None else chosen / best,
    }


def block_widths(n: int, d: int, k: int) -> dict[str, Any]:
    X, usual = decaying(n, d), krylov.BLOCK
    row: dict[str, Any] = {"shape": f"{n:,} × {d:,}", "k": k}
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


def _cells(row: dict[str, Any]) -> list[str]:
    times = [("–" if row[s] is None else number(row[s])) for s in ("covariance", "gram", "krylov")]
    over = "–" if row["over_best"] is None else f"{row['over_best']:.2f}"
    return [row["shape"], str(row["k"]), *times, row["plan"], over]
