"""Our Procrustes against SciPy's: time and agreement of a fit; and what it does to real vectors.

Rows and targets are those of the Procrustes design. SciPy's `spatial.procrustes` centres, scales
and rotates as we do; `orthogonal_procrustes` only rotates, while our fit also returns scale,
translation and residual sums.

With ``--data``, two more tables: known 300 × 300 alignments recovered from exact and from noisy
pairs, and words of one real set of vectors looked up in another.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import procrustes_words
from benchmarks.environment import OURS, THREADS, BenchmarkError, Settings, peer
from benchmarks.table import FAILED, Report, Table, number, verdict
from benchmarks.timing import time_pairs

SCIPY = "scipy"
SAME = 1e-10  # disparities further apart than this are not the same answer

Fit = Callable[[Any, Any], float]  # X, Y → disparity


def one_gnomon(X: Any, Y: Any) -> float:
    from gnomon import Procrustes

    model = Procrustes(scaling=True, n_jobs=THREADS).fit(X, Y)
    return float(model.disparity_)


def one_spatial(X: Any, Y: Any) -> float:
    procrustes = peer("scipy.spatial", "procrustes", "SciPy")
    return float(procrustes(Y, X)[2])  # SciPy moves its second argument


def one_orthogonal(X: Any, Y: Any) -> float:
    """Only the rotation, about the origin; its answer is compared on sets that are centred."""
    orthogonal_procrustes = peer("scipy.linalg", "orthogonal_procrustes", "SciPy")
    return float(orthogonal_procrustes(X, Y)[1])


def many_gnomon(X: Any, Y: Any) -> float:
    from gnomon import Procrustes

    return float(Procrustes(scaling=True, n_jobs=THREADS).fit_many(X, Y).disparity.mean())


def many_spatial(X: Any, Y: Any) -> float:
    procrustes = peer("scipy.spatial", "procrustes", "SciPy")
    return float(np.mean([procrustes(y, x)[2] for x, y in zip(X, Y, strict=True)]))


@dataclass(frozen=True)
class Row:
    """One line of the table: the work, SciPy's way to do it, and what is to be reached."""

    name: str
    shape: tuple[int, ...]
    ours: Fit
    theirs: Fit
    against: str
    ratio: float
    same_answer: bool = True


ROWS = (
    Row("plane", (1_000_000, 2), one_gnomon, one_spatial, "spatial.procrustes", 3.0),
    Row("space", (1_000_000, 3), one_gnomon, one_spatial, "spatial.procrustes", 3.0),
    # It returns a sum of singular values, not a disparity.
    Row("wide", (100_000, 300), one_gnomon, one_orthogonal, "orthogonal_procrustes", 1.0, False),
    Row("many", (5_000, 50, 2), many_gnomon, many_spatial, "spatial.procrustes", 30.0),
)


WAYS = ("loops", "BLAS")
WIDTHS = (2, 4, 6, 8, 10, 12, 16)
WIDTH_ROWS = 200_000


def measure_width(d: int, n: int = WIDTH_ROWS) -> dict[str, Any]:
    """Seconds for the moments of two tables (n, d) on one thread: by our loops, and by BLAS."""
    from gnomon.procrustes import row_pairs as pairs

    X, Y = make_pair((n, d))
    seconds, before = {}, pairs.WIDEST
    for name, widest in zip(WAYS, (d, d - 1), strict=True):
        pairs.WIDEST = widest
        try:
            seconds[name] = min(_seconds(lambda: pairs.view_arrays(X, Y, n_jobs=1).moments()))
        finally:
            pairs.WIDEST = before
    return {"name": f"width-{d}", "columns": d, "rows": n, "seconds": seconds}


def _seconds(work: Callable[[], object], runs: int = 5) -> list[float]:
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the section it belongs to."""
    peer("scipy.spatial", "procrustes", "SciPy")
    wanted = [row for row in ROWS if settings.wants(row.name)]
    widths = [d for d in WIDTHS if settings.wants(f"width-{d}")]
    vectors = procrustes_words.cases(settings)
    if not wanted and not widths and not vectors:
        names = ", ".join([*(row.name for row in ROWS), "width", *procrustes_words.NAMES])
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for row in wanted:
        yield "rows", measure(row, settings.pairs)
    for d in widths:
        yield "widths", measure_width(d)
    for section, case in vectors:
        yield section, case()


def measure(row: Row, pairs: int | None) -> dict[str, Any]:
    """Times and answers of one row; an error stays in the table as a row that says so."""
    print(f"procrustes: {row.name}", file=sys.stderr, flush=True)
    result: dict[str, Any] = {
        "name": row.name,
        "shape": list(row.shape),
        "against": row.against,
        "target_ratio": row.ratio,
    }
    try:
        X, Y = make_pair(row.shape)
        answers = {OURS: row.ours(X, Y), SCIPY: row.theirs(X, Y)}  # the warm-up as well
        timing = time_pairs(
            (OURS, partial(row.ours, X, Y)), {SCIPY: partial(row.theirs, X, Y)}, pairs=pairs
        )
        result |= {
            "answers": answers,
            "timing": timing.to_dict(),
            "median_seconds": {name: timing.median_seconds(name) for name in answers},
        }
        result["complaints"] = complaints(result, row)
    except BenchmarkError:
        raise
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
    return result


def make_pair(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Normal points, and the same turned, scaled, shifted and with noise of a tenth; centred."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal(shape)
    R, _ = np.linalg.qr(generator.standard_normal((shape[-1], shape[-1])))
    Y = 3 * X @ R + 0.3 * generator.standard_normal(shape)
    return X - X.mean(axis=-2, keepdims=True), Y - Y.mean(axis=-2, keepdims=True)


def complaints(result: Mapping[str, Any], row: Row) -> list[str]:
    """Every target that was missed, in words; empty when all were reached."""
    found = []
    ratio = result["timing"]["ratio"]
    if not ratio >= row.ratio:  # NaN, when no pair was quiet, is not reached either
        found.append(f"ratio {number(ratio, '.2f')} below {row.ratio:g}")
    ours, theirs = result["answers"][OURS], result["answers"][SCIPY]
    if row.same_answer and not abs(ours - theirs) <= SAME:
        found.append(f"disparity {ours:.12g} is not SciPy's {theirs:.12g}")
    return found


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    tables = [speed_table(raw["rows"])] if raw.get("rows") else []
    tables += [width_table(raw["widths"])] if raw.get("widths") else []
    tables += procrustes_words.tables(raw)
    return Report("Procrustes against SciPy, and on real vectors", tables, NOTES)


def speed_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Times as text."""
    header = ["row", "shape", "against", f"{OURS}, s", f"{SCIPY}, s", "ratio [quartiles]"]
    header += ["target", "verdict", "disparity", "pairs (discarded)"]
    return Table("Time of one fit.", header, [_cells(result) for result in results])


def width_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Which way of adding up is quicker for which width."""
    lines = [
        [str(row["columns"]), *(number(1e3 * row["seconds"][way], ".1f") for way in WAYS)]
        for row in results
    ]
    caption = f"Moments of {results[0]['rows']:,} pairs of rows on one thread, ms, best of 5."
    return Table(caption, ["columns", *WAYS], lines)


def _cells(result: Mapping[str, Any]) -> list[str]:
    shape = " × ".join(f"{size:,}" for size in result["shape"])
    start = [result["name"], shape, result["against"]]
    target = f"≥ {result['target_ratio']:g}"
    if "error" in result:
        return [*start, "–", "–", "–", target, f"{FAILED}: {result['error']}", "–", "–"]
    timing = result["timing"]
    low, high = timing["quartiles"]
    kept = len(timing["ratios"])
    return [
        *start,
        *(number(result["median_seconds"][name]) for name in (OURS, SCIPY)),
        f"{number(timing['ratio'], '.2f')} [{number(low, '.2f')}, {number(high, '.2f')}]",
        target,
        verdict(result["complaints"]),
        number(result["answers"][OURS], ".6f"),
        f"{kept} of {timing['pairs_wanted']} ({timing['pairs_discarded']})",
    ]


NOTES = (
    "Seconds are medians. The ratio is the median over pairs of SciPy's time over ours, with its "
    "quartiles; above 1 we are faster. Runs alternate, and who goes first alternates.",
    "Everybody runs once untimed before, so that compiling and starting threads is not counted; "
    "everybody uses two threads and float64.",
    "`spatial.procrustes` centres, scales and rotates; `orthogonal_procrustes` only rotates, while "
    "our fit also finds scale, translation and residual sums.",
    "Row many: 5,000 problems of 50 × 2, ours by `fit_many`, SciPy's one after the other.",
    *procrustes_words.NOTES,
)
