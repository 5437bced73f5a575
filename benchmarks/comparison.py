"""How long `compare` takes: maps of 70,000 and 1,000,000 rows, and an embedding of 50 columns.

Every part is timed on its own: the whole of `compare`, of which neighbours are most, and what the
page adds (intervals, p-values from 99 shuffles, movement). Rows are drawn around ten centres, as in
maps of groups; the second table is the first with noise.
"""

import time
from typing import Any

import numpy as np

from benchmarks.environment import THREADS, Settings
from benchmarks.table import Report, Table, number

ROWS = (("70,000 × 2", 70_000, 2), ("70,000 × 50", 70_000, 50), ("1,000,000 × 2", 1_000_000, 2))
SHUFFLES = 99
PARTS = ("compare", "evidence", "movement")


def tables(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    centres = 10 * rng.normal(size=(10, d))
    X = centres[rng.integers(10, size=n)] + rng.normal(size=(n, d))
    return X, X + 0.1 * rng.normal(size=X.shape)


def timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def measure(n: int, d: int) -> dict[str, Any]:
    """Seconds of every part of a comparison of two tables (n, d)."""
    from gnomon import compare
    from gnomon.procrustes.evidence import find_evidence
    from gnomon.procrustes.movement import find_moves, move_against_neighbors

    X, Y = tables(n, d)
    compare(X[:13_000], Y[:13_000], n_jobs=THREADS)  # compiles what is compiled
    whole, found = timed(lambda: compare(X, Y, n_jobs=THREADS))
    evidence, _ = timed(lambda: find_evidence(found, n_permutations=SHUFFLES, n_jobs=THREADS))
    movement, _ = timed(
        lambda: move_against_neighbors(*find_moves(X, Y, THREADS), found.changes, THREADS)
    )
    return {
        "shape": [n, d],
        "compare_seconds": whole,
        "evidence_seconds": evidence,
        "movement_seconds": movement,
        "rows_searched": len(found.changes.rows),
        "neighbor_overlap": found.neighbor_overlap,
    }


def run(settings: Settings) -> Report:
    """Measure every row of `ROWS` whose name was asked for."""
    chosen = [(n, d) for name, n, d in ROWS if settings.only is None or settings.only in name]
    results = [measure(n, d) for n, d in chosen]
    header = ["tables", "compare, s", "evidence, s", "movement, s", "rows searched", "overlap"]
    rows = [
        [
            f"{n:,} × {d}",
            *(number(each[f"{part}_seconds"]) for part in PARTS),
            f"{each['rows_searched']:,}",
            number(each["neighbor_overlap"], ".3f"),
        ]
        for each in results
        for n, d in [each["shape"]]
    ]
    table = Table("One run each, after a smaller one that compiles.", header, rows)
    return Report("How long does a comparison take?", [table], NOTES, {"rows": results})


NOTES = (
    "compare: all figures, neighbours in both tables, and rows that changed company. evidence: "
    "intervals, and p-values from 99 shuffles. movement: the robust alignment, and every row's way "
    "against its neighbours. The page needs all three.",
    "Beyond 100,000 rows, neighbours among all rows are searched for 50,000 of them.",
    "Two threads, float64; groups around ten centres, and the same rows with noise.",
)
