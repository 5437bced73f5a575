"""What a map and its scores cost, beside what ``gnomon inspect`` expects.

The constants of ``gnomon.pipeline.estimate`` about maps are read off this table: they should be
within a factor of two. Tables are generated clusters, and MNIST with ``--data``. Kernels are
compiled; a row is the median of `RUNS` runs on two threads, and needs a quiet machine.
"""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.table import Report, Table, number, verdict

RUNS = 3
FACTOR = 2.0  # that the estimate may be off by
MEASURED = ("seconds", "trust")


@dataclass(frozen=True)
class Case:
    """A table of `n` rows and `d` columns, and how it is mapped."""

    n: int
    d: int = 50
    dimensions: int = 2
    perplexity: float = 30.0
    real: bool = False

    @property
    def name(self) -> str:
        """How the row is called."""
        return f"{self.n}x{self.d} {self.dimensions}-D perplexity {self.perplexity:g}"


CASES = (
    Case(300),
    Case(1_000),
    Case(3_000),
    Case(10_000),
    Case(30_000),
    Case(10_000, perplexity=100),
    Case(10_000, dimensions=1),
    Case(300, dimensions=3),
    Case(3_000, dimensions=3),
    Case(10_000, dimensions=3),
    Case(20_000, 300),
    Case(70_000, 784, real=True),
)


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One table after the other."""
    cases = [case for case in CASES if settings.wants(case.name)]
    if not cases:
        known = ", ".join(case.name for case in CASES)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {known}")
    for case in cases:
        if settings.data is not None or not case.real:
            yield "rows", measure(case, settings)


def measure(case: Case, settings: Settings) -> dict[str, Any]:
    """Seconds of the map and of its scores, and both as they are expected."""
    from gnomon.pca import PCA
    from gnomon.pipeline.estimate import estimate
    from gnomon.pipeline.row_trust import measure_trust
    from gnomon.tsne import TSNE

    X = data.images(settings.data) if case.real else data.clusters(case.n, case.d)[0]
    tsne, seconds, trust = TSNE(case.dimensions, perplexity=case.perplexity, n_jobs=THREADS), [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in range(RUNS + 1):  # the first one compiles
            begun = time.perf_counter()
            tsne.fit(X)
            mapped = time.perf_counter()
            measure_trust(X, tsne, None, THREADS)
            if run:
                seconds.append(mapped - begun)
                trust.append(time.perf_counter() - mapped)
    expected = estimate(
        PCA(min(50, case.d)).plan(X),
        dimensions=case.dimensions,
        perplexity=case.perplexity,
        iterations=tsne.n_iter_,
        threads=THREADS,
    )
    return {
        "name": case.name,
        "shape": f"{case.n:,} × {case.d:,}",
        "iterations": tsne.n_iter_,
        "dimensions": case.dimensions,
        "perplexity": case.perplexity,
        "seconds": float(np.median(seconds)),
        "expected_seconds": expected.tsne_seconds,
        "trust": float(np.median(trust)),
        "expected_trust": expected.trust_seconds,
    }


def complaints(row: Mapping[str, Any]) -> list[str]:
    """What is expected far beside what was measured, in words."""
    ratios = {key: row[key] / row[f"expected_{key}"] for key in MEASURED}
    return [
        f"{key} are {ratio:.2f} times what is expected"
        for key, ratio in ratios.items()
        if not 1 / FACTOR <= ratio <= FACTOR
    ]


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """Measured beside expected."""
    cells = [
        [
            *(str(row[key]) for key in ("shape", "dimensions", "perplexity", "iterations")),
            *(f"{number(row[key])} ({number(row['expected_' + key])})" for key in MEASURED),
            verdict(complaints(row)),
        ]
        for row in raw.get("rows", ())
    ]
    table = Table(
        "Seconds, and in brackets what `gnomon inspect` expects.",
        ["table", "dimensions", "perplexity", "iterations", "map", "its scores", "verdict"],
        cells,
    )
    notes = (
        f"Two threads; kernels are compiled; medians of {RUNS} runs. 70,000 × 784 is MNIST, the "
        "others generated clusters. The iterations are those of the run: `gnomon inspect` expects "
        "the usual number for so many rows. Reached: within a factor of two.",
    )
    return Report("What a map costs", [table], notes)
