"""What a map will cost, from rates that were measured: seconds to a factor of about two.

Rates are of two threads of an AMD EPYC with nothing else to do, in November 2026, kernels compiled.
Those of maps in the plane are read off ``benchmarks/tsne.py`` ("maps": 1,797 to 70,000 rows); those
of maps on a line and in space, and of scores, were measured with `gnomon.run` on clusters in 50
columns. ``benchmarks/map_cost.py`` holds all of them against what a machine takes. Memory is the
kernel's high-water mark above the table. The rate of PCA is what `gnomon.pca.plan` has of
``benchmarks/crossovers.py``; those of the page are read off ``benchmarks/page_cost.py``.
"""

from dataclasses import dataclass

from gnomon.pca.plan import SMALL, Plan
from gnomon.records import Record

__all__ = [
    "PAGE_BUDGET",
    "Cost",
    "about",
    "estimate",
    "map_bytes",
    "page_bytes",
    "page_memory",
    "page_seconds",
]

THREADS = 2  # of the measurements; half the time is assumed of twice as many
MOST_THREADS = 8  # more are not counted on
OPERATIONS = SMALL / 0.5  # of PCA, a second
SEARCH = 3e-7  # seconds a row and neighbour: search and affinities
ITERATION = 2.5e-4  # seconds an iteration, however few rows
PAIR = 1e-10  # an iteration and pair of rows, where these are summed
MESH = {1: 1.9e-3, 2: 1.2e-3, 3: 8e-3}  # an iteration, by dimensions, where they are more
POINT = {1: 9e-8, 2: 6e-8, 3: 6e-7}  # an iteration and row
EDGE = 3e-10  # an iteration, row and neighbour: attraction
SCORED, SCORE = 3_400, 3.5e-4  # rows that are scored at most, and seconds a row of these
TRUST = 4e-5  # seconds a row: its neighbours in the table and on the map
PLACE = 3.5e-5  # seconds a row: its place on a map of others, and how far to trust it
NEIGHBORS = 3  # times the perplexity
EDGE_BYTES = 80.0  # a row and neighbour: lists, affinities and their transpose
REST_BYTES = 2e7  # meshes and buffers
WIDE, REDUCED = 100, 50  # `TSNE` first reduces more columns to so many scores

# Of the page, by benchmarks/page_cost.py, on one thread.
PAGE_BUDGET = 3_000_000  # bytes, as `gnomon.report` has it
PAGE_SECONDS = 0.06  # charts and sentences, however few rows
PAGE_ROW_SECONDS = 4.5e-5
PAGE_VALUE_SECONDS = 7e-7  # a value that the page holds
PAGE_NUMBER_SECONDS = 7e-8  # a number of the table: what is rebuilt, and how well
PAGE_BYTES = 430_000  # script, style, charts and sentences
PAGE_ROW_BYTES = 80  # places on two maps, neighbours, trust and a label
PAGE_VALUE_BYTES = 2.3
PAGE_MEMORY = 8  # bytes for each byte of the page, while it is put together
SAMPLE_PAGE_ROWS = 200_000  # with more, the page of a map of a sample shows the sample alone
MOST_PAGE_ROWS = 1_000_000


@dataclass(frozen=True)
class Cost(Record):
    """About what a run takes.

    Attributes
    ----------
    pca_seconds, tsne_seconds, trust_seconds : float
    peak_bytes : int
        Beyond the table, of the most demanding stage.
    threads : int
    iterations : int
    place_seconds : float
        For rows that are placed on a map of others.
    page_seconds : float
        For the page, and for the maps that are made again where its stability was asked for.
    page_bytes : int
        Size of the page.
    """

    pca_seconds: float
    tsne_seconds: float
    trust_seconds: float
    peak_bytes: int
    threads: int
    iterations: int
    place_seconds: float = 0.0
    page_seconds: float = 0.0
    page_bytes: int = 0

    @property
    def seconds(self) -> float:
        """In all."""
        run = self.pca_seconds + self.tsne_seconds + self.trust_seconds + self.place_seconds
        return run + self.page_seconds


def estimate(
    plan: Plan,
    *,
    dimensions: int,
    perplexity: float,
    iterations: int,
    threads: int,
    copied: int = 0,
    beside: int = 0,
    mapped: int | None = None,
    page_budget: int = PAGE_BUDGET,
    stability: int = 0,
) -> Cost:
    """The cost of PCA by `plan`, of a map of the same table and of the page of both.

    `copied` bytes of the table are a copy. `mapped` rows make the map, if not all; the others are
    placed on it. `beside` are bytes that are kept beside the map, and not before. `stability` is
    how many times the map is made again for the page.
    """
    rows, d = plan.shape
    n = rows if mapped is None else mapped
    k = min(NEIGHBORS * perplexity, n - 1)
    faster = THREADS / min(threads, MOST_THREADS)
    repulsion = min(PAIR * n * n, MESH[dimensions])
    step = ITERATION + faster * (repulsion + n * (POINT[dimensions] + EDGE * k))
    reduces = d > WIDE
    again = plan.operations / OPERATIONS if reduces else 0.0
    tsne_seconds = faster * (again + SEARCH * n * k) + iterations * step
    shown = n if n < rows and rows > SAMPLE_PAGE_ROWS else min(rows, MOST_PAGE_ROWS)
    page = page_memory(shown, d, page_budget)
    peak = max(plan.peak_bytes, beside + map_bytes(n, d, perplexity), beside + page)
    return Cost(
        pca_seconds=faster * plan.operations / OPERATIONS,
        tsne_seconds=tsne_seconds,
        trust_seconds=faster * (SCORE * min(n, SCORED) + TRUST * n),
        peak_bytes=copied + peak,
        threads=threads,
        iterations=iterations,
        place_seconds=faster * PLACE * (rows - n),
        page_seconds=page_seconds(shown, d, page_budget) + stability * tsne_seconds,
        page_bytes=page_bytes(shown, d, page_budget),
    )


def page_seconds(n: int, d: int, budget: int = PAGE_BUDGET) -> float:
    """Seconds for the page of a map of `n` rows and `d` columns."""
    held = min(n * d, budget / PAGE_VALUE_BYTES)
    return (
        PAGE_SECONDS
        + PAGE_ROW_SECONDS * n
        + PAGE_VALUE_SECONDS * held
        + PAGE_NUMBER_SECONDS * n * d
    )


def page_bytes(n: int, d: int, budget: int = PAGE_BUDGET) -> int:
    """Size of that page; what does not fit into the budget is left out of it."""
    return int(min(budget, PAGE_BYTES + n * (PAGE_ROW_BYTES + PAGE_VALUE_BYTES * d)))


def page_memory(n: int, d: int, budget: int = PAGE_BUDGET) -> int:
    """Memory that building it takes beyond what the run holds."""
    return PAGE_MEMORY * page_bytes(n, d, budget)


def map_bytes(n: int, d: int, perplexity: float) -> int:
    """Memory that a map of an (n, d) table takes beyond it."""
    k = min(NEIGHBORS * perplexity, n - 1)
    scores = 8.0 * n * REDUCED if d > WIDE else 0.0
    return int(REST_BYTES + EDGE_BYTES * n * k + scores)


def about(seconds: float) -> str:
    """``"under a second"``, ``"about 12 s"``, ``"about 3 min"``, ``"about 2.5 h"``."""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
