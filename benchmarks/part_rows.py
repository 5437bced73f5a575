"""How many rows a part of a table should have: fits in parts of other lengths, in alternation.

The constants of ``gnomon.engine.source.partition_rows`` are read off this table. Shapes are narrow,
medium and wide dense tables, and a sparse one. Each is fitted from an array in memory, whose parts
threads share, with parts of a quarter of the rule's length up to four times its length; a ratio
above 1 says that the rule's length is the faster one.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.data import counts, decaying
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.table import Report, Table, number
from benchmarks.timing import time_pairs
from gnomon import PCA
from gnomon.engine.arrays import ArraySource
from gnomon.engine.source import partition_rows

SHAPES: dict[str, tuple[Callable[[Settings], Any], int, str]] = {
    "200,000 × 50": (lambda _: decaying(200_000, 50), 10, "covariance"),
    "20,000 × 2,000": (lambda _: decaying(20_000, 2_000), 20, "krylov"),
    "2,000 × 20,000": (lambda _: decaying(2_000, 20_000), 20, "krylov"),
    "sparse": (lambda settings: counts(settings.data), 20, "krylov"),
}
TIMES = (0.25, 0.5, 2.0, 4.0)  # lengths beside the rule's


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row for each shape."""
    wanted = [name for name in SHAPES if settings.wants(name)]
    if not wanted:
        known = ", ".join(SHAPES)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {known}")
    for name in wanted:
        yield "rows", measure(name, settings)


def measure(name: str, settings: Settings) -> dict[str, Any]:
    """Times of fits with the rule's parts and with other lengths."""
    make, k, solver = SHAPES[name]
    X = make(settings)
    rule = partition_rows(X.shape[1])

    def fit(length: int) -> Callable[[], object]:
        def run() -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PCA(k, svd_solver=solver, n_jobs=THREADS)
                return model.fit(ArraySource(X, length, checked=False))

        return run

    lengths = {times: max(1, round(times * rule)) for times in TIMES}
    runs = {str(times): fit(length) for times, length in lengths.items()}
    ours = ("1", fit(rule))
    for run in (ours[1], *runs.values()):
        run()
    timing = time_pairs(ours, runs, pairs=settings.pairs)
    mine = timing.median_seconds("1")
    return {
        "name": name,
        "shape": list(X.shape),
        "solver": solver,
        "rule": rule,
        "seconds": mine,
        "others": {times: timing.median_seconds(times) / mine for times in runs},
        "pairs": len(timing.ratios),
    }


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The table of the rows that there are."""
    table = Table(
        "Seconds of a fit with the rule's parts, and the time with parts of other lengths over it.",
        ["table", "solver", "rows of a part", "fit, s", *(f"× {times:g}" for times in TIMES)],
        [
            [
                row["name"],
                row["solver"],
                f"{row['rule']:,}",
                number(row["seconds"]),
                *(number(row["others"][str(times)]) for times in TIMES),
            ]
            for row in raw.get("rows", ())
        ],
    )
    notes = (
        f"{THREADS} threads, float32, medians of alternating fits.",
        "Above 1 the rule is faster. A table with fewer rows than a part has one part.",
    )
    return Report("How many rows should a part have?", [table], notes)
