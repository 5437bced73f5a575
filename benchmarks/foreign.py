"""Which rows `TSNE.place` calls unusual: new ones of the same kind, and ones that are unlike it.

Each table is split at random: a map is made of one part, and the other part is what new rows of the
same kind are. Beside them noise, rows with shuffled columns, and images of something else. With PCA
before the map (``pca="auto"``) and without (``pca=None``).

Limits are drawn before the descent, so these maps have few iterations. What drawing them takes of a
whole fit is the second table.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.record import Raw
from benchmarks.table import Report, Table, number, verdict

FEW_ITERATIONS = 20
MOST_FOREIGN = 10_000  # rows of each kind that are placed on a map
LEAST = 0.99  # share to be flagged of noise and of rows with shuffled columns
ABOUT = (0.005, 0.015)  # share to be flagged of new rows of the same kind
MOST_OF_FIT = 0.05  # share of a fit's time that drawing the limits may take
SPREADS = 2.0  # standard deviations of a share that luck may explain


@dataclass(frozen=True)
class Set:
    """A table, how much of it is mapped, and how often it is split anew.

    `aimed` says whether noise and shuffled rows have a target: not where columns are so few, or so
    independent, that noise is like the data.
    """

    name: str
    mapped: int
    splits: int = 1
    pca: tuple[str | None, ...] = ("auto", None)
    aimed: bool = True
    fashion: bool = False
    real: bool = True


SETS = (
    Set("MNIST 60,000", 60_000, fashion=True),
    Set("MNIST 10,000", 10_000, splits=3, fashion=True),
    Set("COIL-20", 1_152, splits=20),
    Set("digits", 1_400, splits=20, pca=("auto",), aimed=False, real=False),
)
COSTS = {"digits": 5, "MNIST 10,000": 3, "MNIST 70,000": 1, "COIL-20": 5}  # fits of each


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row a table and PCA, then one a fit; the real tables only where there is a folder."""
    for one in SETS:
        for pca in one.pca:
            name = f"{one.name}, {'PCA first' if pca == 'auto' and one.real else 'no PCA'}"
            if settings.wants(name) and (settings.data is not None or not one.real):
                print(f"foreign: {name}", file=sys.stderr, flush=True)
                yield "flagged", {"name": name, **measure(one, pca, settings)}
    for name in COSTS:
        if settings.wants(f"cost {name}") and (settings.data is not None or name == "digits"):
            print(f"foreign: cost {name}", file=sys.stderr, flush=True)
            yield "cost", {"name": name, **measure_cost(name, settings)}


def table_of(name: str, settings: Settings) -> NDArray[np.float32]:
    """The rows of a table by its name, all of them or as many as the name says."""
    if name == "digits":
        from gnomon import samples

        return samples.load("digits").X.astype(np.float32)
    if settings.data is None:
        raise BenchmarkError(f"{name} needs --data.")
    if name == "COIL-20":
        return data.objects(settings.data)
    return data.images(settings.data)


def measure(one: Set, pca: str | None, settings: Settings) -> dict[str, Any]:
    """Shares flagged over all splits, by kind of row, and why."""
    X = table_of(one.name, settings)
    counts: dict[str, dict[str, int]] = {}
    for seed in range(one.splits):
        rng = np.random.default_rng([data.SEED, seed])
        order = rng.permutation(len(X))
        old, new = X[order[: one.mapped]], X[order[one.mapped :]][:MOST_FOREIGN]
        model = mapped(old, pca, seed)
        kinds = {name: make(rng, old, new) for name, make in KINDS.items()}
        if one.fashion:
            kinds["Fashion-MNIST"] = data.fashion(settings.data)[: len(new)]
        for kind, foreign in kinds.items():
            found = model.place(foreign)
            count = counts.setdefault(kind, dict.fromkeys(COUNTED, 0))
            for part, flags in zip(COUNTED, judged(found), strict=True):
                count[part] += int(np.count_nonzero(flags))
    return {
        "shape": list(X.shape),
        "mapped": one.mapped,
        "splits": one.splits,
        "pca": pca,
        "counts": counts,
        "complaints": complaints(one, counts),
    }


def mapped(X: NDArray[Any], pca: str | None, seed: int) -> Any:
    """A map of `X` for placing rows on."""
    from gnomon import TSNE

    return TSNE(pca=pca, max_iter=FEW_ITERATIONS, random_state=seed, n_jobs=THREADS).fit(X)


COUNTED = ("rows", "unusual", "near nothing", "outside the components", "far")


def judged(found: Any) -> list[Any]:
    """Of placed rows, in the order of `COUNTED`: all, unusual, why, and beyond the distances'."""
    return [
        np.ones(len(found.positions), bool),
        found.unusual,
        found.why == "near nothing",
        found.why == "outside the components",
        found.distance_ratio > found.distance_limit,
    ]


Kind = Callable[[np.random.Generator, NDArray[Any], NDArray[Any]], NDArray[Any]]


def uniform(rng: np.random.Generator, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Numbers between the smallest and the largest of the table."""
    return rng.uniform(old.min(), old.max(), new.shape).astype(old.dtype)


def normal(rng: np.random.Generator, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Independent columns with the means and spreads of the table's."""
    noise = rng.standard_normal(new.shape)
    return (old.mean(axis=0) + old.std(axis=0) * noise).astype(old.dtype)


def shuffled(rng: np.random.Generator, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """New rows, each with its numbers in an order of its own."""
    return rng.permuted(new, axis=1)


def mixed(rng: np.random.Generator, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Each number from the same column of another new row."""
    return rng.permuted(new, axis=0)


KINDS: dict[str, Kind] = {
    "new": lambda rng, old, new: new,
    "uniform noise": uniform,
    "normal noise": normal,
    "shuffled": shuffled,
    "mixed": mixed,
}
AIMED = ("uniform noise", "normal noise", "shuffled")


def complaints(one: Set, counts: dict[str, dict[str, int]]) -> list[str]:
    """Which shares are not what they should be."""
    new = counts["new"]
    share = new["unusual"] / new["rows"]
    # Of the rows placed, and of the rows left out that the limits are drawn from.
    left_out = one.splits * min(one.mapped, 5000, max(1000, one.mapped // 4))
    luck = SPREADS * np.sqrt(0.01 * 0.99 * (1 / new["rows"] + 1 / left_out))
    found = []
    if not ABOUT[0] - luck <= share <= ABOUT[1] + luck:
        found.append(f"{share:.2%} of new rows")
    for kind in AIMED if one.aimed else ():
        share = counts[kind]["unusual"] / counts[kind]["rows"]
        if share < LEAST:
            found.append(f"{share:.1%} of {kind}")
    return found


def measure_cost(name: str, settings: Settings) -> dict[str, Any]:
    """Processor seconds of whole fits, and of the part of them that drew the limits.

    Not seconds by the clock: a neighbour on the machine may take those from either part.
    """
    from gnomon import TSNE
    from gnomon.tsne import connect

    X = table_of(name, settings)
    X = X[:10_000] if name == "MNIST 10,000" else X
    TSNE(max_iter=FEW_ITERATIONS, n_jobs=THREADS).fit(X[:2000])  # kernels are compiled
    learn, limits, fits = connect.learn_novelty, [], []

    def timed(*given: Any, **how: Any) -> Any:
        start = time.process_time()
        found = learn(*given, **how)
        limits.append(time.process_time() - start)
        return found

    with patch.object(connect, "learn_novelty", timed):
        for _ in range(COSTS[name]):
            start = time.process_time()
            TSNE(random_state=0, n_jobs=THREADS).fit(X)
            fits.append(time.process_time() - start)
    share = float(np.median(np.divide(limits, fits)))
    return {
        "shape": list(X.shape),
        "fits": fits,
        "limits": limits,
        "share": share,
        "complaints": [f"{share:.1%} of the fit"] if share > MOST_OF_FIT else [],
    }


def report(raw: Raw) -> Report:
    """Shares flagged, what distances alone would have flagged, and what the limits cost."""
    kinds = [*KINDS, "Fashion-MNIST"]
    header = ["data", "mapped × columns", "splits", *kinds, "target"]
    flagged, distances = [], []
    for row in raw.get("flagged", []):
        shape = f"{row['mapped']:,} × {row['shape'][1]}"
        front = [row["name"], shape, str(row["splits"])]
        counts = row["counts"]
        cells = [_share(counts.get(kind), "unusual") for kind in kinds]
        flagged.append([*front, *cells, verdict(row["complaints"])])
        distances.append([*front, *(_share(counts.get(kind), "far") for kind in kinds)])
    cost = [
        [
            row["name"],
            f"{row['shape'][0]:,} × {row['shape'][1]}",
            str(len(row["fits"])),
            number(float(np.median(row["fits"]))),
            number(float(np.median(row["limits"]))),
            f"{row['share']:.1%}",
            verdict(row["complaints"]),
        ]
        for row in raw.get("cost", [])
    ]
    tables = [
        Table("Share of rows that are flagged, by kind.", header, flagged),
        Table("Share beyond the limit of the distance ratio alone.", header[:-1], distances),
        Table(
            "Processor seconds of a whole fit, and of drawing the limits: medians.",
            ["data", "rows × columns", "fits", "fit, s", "limits, s", "share", "target"],
            cost,
        ),
    ]
    return Report("Rows unlike the data", tables, NOTES, raw)


def _share(count: dict[str, int] | None, part: str) -> str:
    if count is None:
        return "–"
    share = count[part] / count["rows"]
    return f"{share:.1%}" if share > 0.1 else f"{share:.2%}"


NOTES = (
    "Each table is split at random, a new map for each split. New: the rows that the map was not "
    "made of, at most 10,000. Uniform noise: between the smallest and the largest number of the "
    "table. Normal noise: independent columns with the means and spreads of the table's. Shuffled: "
    "each new row with its numbers in an order of its own. Mixed: each number from the same column "
    "of another new row.",
    f"To reach: at least {LEAST:.0%} of both kinds of noise and of shuffled rows (MNIST and "
    f"COIL-20), and {ABOUT[0]:.1%} to {ABOUT[1]:.1%} of new rows, give or take two standard "
    "deviations for the rows that are placed and those that the limits are drawn from; limits "
    f"within {MOST_OF_FIT:.0%} of the fit.",
    "Without PCA the residual is that of an auxiliary PCA. Digits have 64 columns, and are not "
    "reduced before the map.",
    f"Maps have {FEW_ITERATIONS} iterations: limits are drawn before the first. The fits that are "
    "timed are whole ones, with PCA first. The machine was not quiet, so processor seconds are "
    "counted, of both threads.",
)
