"""Cost of a map, from measured rates: seconds within a factor of about two.

Rates are for two threads of an otherwise idle AMD EPYC, in November 2026, kernels compiled.
Rates of maps in the plane come from ``benchmarks/tsne.py`` ("maps": 1,797 to 70,000 rows); those
of maps on a line and in space, and of scores, were measured with `gnomon.run` on clusters in 50
columns. ``benchmarks/map_cost.py`` compares all of them with the times of a machine. Memory is the
kernel's high-water mark above the table. The rate of PCA is that of `gnomon.pca.plan`, from
``benchmarks/crossovers.py``; those of the page come from ``benchmarks/page_cost.py``.
"""

from dataclasses import dataclass

from gnomon.pca.plan import SMALL_OPERATIONS, Plan
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

# Rates of the map and its scores, from benchmarks/map_cost.py.
THREADS = 2  # threads of the measurements; twice as many are assumed to take half the time
MOST_THREADS = 8  # more are assumed not to help
OPERATIONS_PER_SECOND = SMALL_OPERATIONS / 0.5  # operations of PCA per second
SEARCH_SECONDS = 3e-7  # seconds per row and neighbour: search and affinities
ITERATION_SECONDS = 2.5e-4  # seconds per iteration, independent of rows
PAIR_SECONDS = 1e-10  # seconds per iteration and pair of rows, if all pairs are summed
MESH_SECONDS = {1: 1.9e-3, 2: 1.2e-3, 3: 8e-3}  # seconds per iteration on a mesh, by dimensions
POINT_SECONDS = {1: 9e-8, 2: 6e-8, 3: 6e-7}  # seconds per iteration and row, by dimensions
EDGE_SECONDS = 3e-10  # seconds per iteration, row and neighbour: attraction
SCORED_ROWS, SCORE_SECONDS = 3_400, 3.5e-4  # most rows that are scored, and seconds per scored row
TRUST_SECONDS = 4e-5  # seconds per row: neighbours in the table and on the map
PLACE_SECONDS = 3.5e-5  # seconds per row that is placed on a map of others, with its trust
NEIGHBORS_PER_PERPLEXITY = 3  # neighbours per unit of perplexity
EDGE_BYTES = 80.0  # bytes per row and neighbour: lists, affinities and their transpose
REST_BYTES = 2e7  # bytes of meshes and buffers
WIDE_COLUMNS, REDUCED_COLUMNS = 100, 50  # `TSNE` reduces more than 100 columns to 50 scores

# Rates of the page on one thread, from benchmarks/page_cost.py.
PAGE_BUDGET = 3_000_000  # bytes, the default of `gnomon.report`
PAGE_SECONDS = 0.06  # charts and sentences, independent of rows
PAGE_ROW_SECONDS = 4.5e-5
PAGE_VALUE_SECONDS = 7e-7  # seconds per value in the page
PAGE_NUMBER_SECONDS = 7e-8  # seconds per number of the table: its reconstruction and error
PAGE_BYTES = 430_000  # script, style, charts and sentences
PAGE_ROW_BYTES = 80  # bytes per row: positions on two maps, neighbours, trust and a label
PAGE_VALUE_BYTES = 2.3
PAGE_MEMORY = 8  # bytes of memory per byte of the page while it is built
SAMPLE_PAGE_ROWS = 200_000  # rows; of more, a page with a sampled map shows only the sample
MOST_PAGE_ROWS = 1_000_000


@dataclass(frozen=True)
class Cost(Record):
    """Estimated cost of a run.

    Attributes
    ----------
    pca_seconds, tsne_seconds, trust_seconds : float
    peak_bytes : int
        Memory beyond the table, in the most demanding stage.
    threads : int
    iterations : int
    place_seconds : float
        Seconds for rows that are placed on a map of others.
    page_seconds : float
        Seconds for the page, and for the repeated maps if stability was requested.
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
        """Total seconds."""
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
    """Estimate the cost of PCA by `plan`, of a map of the same table and of the page of both.

    `copied` is the size of a copy of the table in bytes. `mapped` is the number of rows of the map,
    if not all; the others are placed on it. `beside` is memory in bytes that is held during the
    map, but not before. `stability` is the number of repeated maps for the page.
    """
    rows, d = plan.shape
    n = rows if mapped is None else mapped
    k = min(NEIGHBORS_PER_PERPLEXITY * perplexity, n - 1)
    faster = THREADS / min(threads, MOST_THREADS)
    repulsion = min(PAIR_SECONDS * n * n, MESH_SECONDS[dimensions])
    step = ITERATION_SECONDS + faster * (
        repulsion + n * (POINT_SECONDS[dimensions] + EDGE_SECONDS * k)
    )
    reduces = d > WIDE_COLUMNS
    again = plan.operations / OPERATIONS_PER_SECOND if reduces else 0.0
    tsne_seconds = faster * (again + SEARCH_SECONDS * n * k) + iterations * step
    shown = n if n < rows and rows > SAMPLE_PAGE_ROWS else min(rows, MOST_PAGE_ROWS)
    page = page_memory(shown, d, page_budget)
    peak = max(plan.peak_bytes, beside + map_bytes(n, d, perplexity), beside + page)
    return Cost(
        pca_seconds=faster * plan.operations / OPERATIONS_PER_SECOND,
        tsne_seconds=tsne_seconds,
        trust_seconds=faster * (SCORE_SECONDS * min(n, SCORED_ROWS) + TRUST_SECONDS * n),
        peak_bytes=copied + peak,
        threads=threads,
        iterations=iterations,
        place_seconds=faster * PLACE_SECONDS * (rows - n),
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
    """Size of the page of a map in bytes; data beyond the budget are left out."""
    return int(min(budget, PAGE_BYTES + n * (PAGE_ROW_BYTES + PAGE_VALUE_BYTES * d)))


def page_memory(n: int, d: int, budget: int = PAGE_BUDGET) -> int:
    """Memory for building the page, beyond what the run holds."""
    return PAGE_MEMORY * page_bytes(n, d, budget)


def map_bytes(n: int, d: int, perplexity: float) -> int:
    """Memory of a map of an (n, d) table, beyond the table."""
    k = min(NEIGHBORS_PER_PERPLEXITY * perplexity, n - 1)
    scores = 8.0 * n * REDUCED_COLUMNS if d > WIDE_COLUMNS else 0.0
    return int(REST_BYTES + EDGE_BYTES * n * k + scores)


def about(seconds: float) -> str:
    """Format seconds: ``"under a second"``, ``"about 12 s"``, ``"about 3 min"``, …."""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
