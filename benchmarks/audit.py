"""What `gnomon.audit` says of maps by several programs, of noise, of clusters and of moved rows.

Three questions, each over ten seeds:

1. Shares of *placed*, *misplaced* and *unsupported* rows of maps of the same table by UMAP,
   scikit-learn's t-SNE, our t-SNE and the first two principal components.
2. The same of pure noise and of clear clusters in 50 columns, by our t-SNE.
3. Rows that are moved on purpose onto random points of a map: which of them are called misplaced
   or placed, which of the others, and how many moved rows are among those called placed. The last
   is the false discovery rate that Benjamini and Hochberg's procedure keeps.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environment import THREADS, Settings, peer
from benchmarks.record import Raw
from benchmarks.table import Report, Table, verdict

SEEDS = 10
ROWS, COLUMNS = 500, 50
MOVED = (0.01, 0.05, 0.1)  # shares of the rows
MOST_WRONG = 0.05  # moved rows among those called placed
MOST_MISPLACED = 0.02  # of clear clusters, where no row was moved
LEAST_FOUND = 0.4  # moved rows called misplaced; half of them, by the test's definition
LEAST_OF_NOISE, MOST_OF_CLUSTERS = 0.95, 0.15  # unsupported

Maker = Callable[[NDArray[Any], int], NDArray[Any]]


def by_gnomon(X: NDArray[Any], seed: int) -> NDArray[Any]:
    from gnomon import TSNE

    return TSNE(random_state=seed, n_jobs=THREADS).fit(X).embedding_


def by_sklearn(X: NDArray[Any], seed: int) -> NDArray[Any]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "openmp"):  # on a busy machine two threads wait for each other
        return TSNE(random_state=seed).fit_transform(X)


def by_umap(X: NDArray[Any], seed: int) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed leaves it one thread
        return peer("umap", "UMAP", "umap-learn")(random_state=seed).fit_transform(X)


def by_pca(X: NDArray[Any], seed: int) -> NDArray[Any]:
    from gnomon import PCA

    return PCA(2, random_state=seed).fit_transform(X)


MAKERS: dict[str, Maker] = {
    "UMAP": by_umap,
    "scikit-learn's t-SNE": by_sklearn,
    "our t-SNE": by_gnomon,
    "PCA": by_pca,
}


def digits(seed: int) -> NDArray[Any]:
    """500 of the 1,797 digits."""
    from gnomon import samples

    X = samples.load("digits").X
    return X[np.random.default_rng(seed).choice(len(X), ROWS, replace=False)]


def noise(seed: int) -> NDArray[Any]:
    """Independent normal columns."""
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS))


def clusters(count: int) -> Callable[[int], NDArray[Any]]:
    """Make tables of `count` groups of one spread, whose centres have twice that spread."""

    def make(seed: int) -> NDArray[Any]:
        rng = np.random.default_rng(seed)
        centres = 2 * rng.standard_normal((count, COLUMNS))
        return centres[rng.integers(count, size=ROWS)] + rng.standard_normal((ROWS, COLUMNS))

    return make


TABLES: dict[str, Callable[[int], NDArray[Any]]] = {
    "noise": noise,
    "5 clusters": clusters(5),
    "10 clusters": clusters(10),
    "digits": digits,
}


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row a table and program, then one a table and share of moved rows."""
    for table in TABLES:
        makers = MAKERS if table == "digits" else {"our t-SNE": by_gnomon}
        for program, make in makers.items():
            name = f"{table}, {program}"
            if settings.wants(name):
                print(f"audit: {name}", file=sys.stderr, flush=True)
                yield "maps", {"name": name, **measure(table, make)}
    for table in ("digits", "10 clusters", "5 clusters"):
        for share in MOVED:
            name = f"{table}, {share:.0%} moved"
            if settings.wants(name):
                print(f"audit: {name}", file=sys.stderr, flush=True)
                yield "moved", {"name": name, **measure_moved(table, share)}


def measure(table: str, make: Maker) -> dict[str, Any]:
    """Shares of misplaced and unsupported rows, one of each seed."""
    from gnomon import audit

    kept = ("placed", "misplaced", "at_random", "unsupported", "score", "null")
    found: dict[str, list[float]] = {name: [] for name in kept}
    for seed in range(SEEDS):
        X = TABLES[table](seed)
        judged = audit(
            X,
            make(X, seed),
            refit=lambda T, seed=seed: make(T, seed),
            random_state=seed,
            n_jobs=THREADS,
        )
        withheld = judged.unsupported is None
        found["placed"].append(float(judged.placed.mean()))
        found["misplaced"].append(float(judged.misplaced.mean()))
        found["at_random"].append(judged.at_random)
        found["unsupported"].append(np.nan if withheld else float(judged.unsupported.mean()))
        found["score"].append(float(judged.trustworthiness.mean()))
        found["null"].append(float(judged.null_mean))
    return {**found, "complaints": complaints(table, found)}


def complaints(table: str, found: dict[str, list[float]]) -> list[str]:
    """Whether noise is called noise and clear clusters are not, over all seeds."""
    least, most = min(found["unsupported"]), max(found["unsupported"])
    if table == "noise" and not least >= LEAST_OF_NOISE:
        return [f"{least:.1%} of a table of noise unsupported"]
    if table != "10 clusters":
        return []
    said = [] if most <= MOST_OF_CLUSTERS else [f"{most:.1%} unsupported"]
    wrong = max(found["misplaced"])
    return said if wrong <= MOST_MISPLACED else [*said, f"{wrong:.1%} misplaced"]


def measure_moved(table: str, share: float) -> dict[str, Any]:
    """Rows moved onto random points of our map, and what is said of them and of the others."""
    from gnomon import audit

    kept = ("moved", "moved_placed", "others", "others_placed", "placed", "right")
    found: dict[str, list[float]] = {name: [] for name in kept}
    for seed in range(SEEDS):
        X, rng = TABLES[table](seed), np.random.default_rng([seed, 1])
        Y = by_gnomon(X, seed)
        moved = np.zeros(len(X), bool)
        moved[rng.choice(len(X), round(share * len(X)), replace=False)] = True
        places = Y.copy()
        # Beside the point and not onto it, so that no two rows are at one place.
        near = 1e-3 * rng.standard_normal((moved.sum(), 2))
        places[moved] = Y[rng.integers(len(X), size=moved.sum())] + near
        judged = audit(X, places, random_state=seed, n_jobs=THREADS)
        misplaced, placed = judged.misplaced, judged.placed
        found["moved"].append(float(misplaced[moved].mean()))
        found["moved_placed"].append(float(placed[moved].mean()))
        found["others"].append(float(misplaced[~moved].mean()))
        found["others_placed"].append(float(placed[~moved].mean()))
        found["placed"].append(float(placed.mean()))
        found["right"].append(float(moved[placed].mean()) if placed.any() else 0.0)
    wrong, seen = float(np.mean(found["right"])), float(np.mean(found["moved"]))
    said = [f"{wrong:.1%} moved"] if wrong > MOST_WRONG else []
    said += [f"{seen:.1%} found"] if seen < LEAST_FOUND else []
    return {**found, "complaints": said}


def report(raw: Raw) -> Report:
    """Shares of rows by table and program, and of moved rows."""
    maps = [
        [
            row["name"],
            span(row["score"], "{:.3f}"),
            span(row["null"], "{:.3f}"),
            span(row["placed"]),
            span(row["misplaced"]),
            span(row["at_random"]),
            span(row["unsupported"]),
            verdict(row["complaints"]),
        ]
        for row in raw.get("maps", [])
    ]
    moved = [
        [
            row["name"],
            *(
                span(row[part])
                for part in ("moved", "moved_placed", "others", "others_placed", "right")
            ),
            verdict(row["complaints"]),
        ]
        for row in raw.get("moved", [])
    ]
    tables = [
        Table(
            "Maps of 500 rows: median over ten seeds, and from the least to the most.",
            [
                "map",
                "trustworthiness",
                "of shuffled tables",
                "placed",
                "misplaced",
                "as if at random (estimate)",
                "unsupported",
                "target",
            ],
            maps,
        ),
        Table(
            "Rows of our t-SNE maps that were moved onto random points.",
            [
                "map",
                "moved rows called misplaced",
                "moved rows called placed",
                "other rows called misplaced",
                "other rows called placed",
                "moved rows among those called placed",
                "target",
            ],
            moved,
        ),
    ]
    return Report("Audit of maps", tables, NOTES, raw)


def span(values: list[float], form: str = "{:.1%}") -> str:
    """Median, and from the least to the most; a dash where the test was withheld."""
    known = [value for value in values if value is not None and value == value]
    if not known:
        return "withheld"
    middle, least, most = (form.format(f(known)) for f in (np.median, np.min, np.max))
    withheld = f", withheld {len(values) - len(known)} times" if len(known) < len(values) else ""
    return f"{middle} ({least} to {most}{withheld})"


NOTES = (
    "Noise: independent normal columns. Clusters: groups of one spread in 50 columns, their "
    "centres drawn with twice that spread. Digits: 500 of 1,797. Unsupported: each program makes "
    "three maps of tables with shuffled columns.",
    f"To reach: at least {LEAST_OF_NOISE:.0%} of noise unsupported, and at most "
    f"{MOST_OF_CLUSTERS:.0%} of ten clear clusters unsupported and {MOST_MISPLACED:.0%} misplaced, "
    f"in each seed; at most {MOST_WRONG:.0%} moved rows among those called placed and at least "
    f"{LEAST_FOUND:.0%} of them called misplaced, on the average.",
    "Placed: better than at random, at a false discovery rate of 5 %. Misplaced: at least half of "
    "the places on the map suit the row as well as its own, which is true of half of the randomly "
    "placed rows; twice the share of misplaced rows estimates how many lie as if at random. Rows "
    "that are neither are undecided: where groups are few and have no order within, a random place "
    "is in the right group one time in five or ten, and moved rows are strangers to the rows that "
    "they come to lie among.",
)
