"""Our trustworthiness against scikit-learn's, and the time of all scores at 70,000 points.

scikit-learn needs several matrices of all pairs of rows, so it is measured up to the size where
they fit; ours scores all rows there as well, and must give the same number. Beyond that nobody else
is measured: rows are scored on the default sample, and the table says what its standard error is.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.environment import OURS, THREADS, BenchmarkError, Settings, peer
from benchmarks.memory import Fit, peak_megabytes, save_table
from benchmarks.table import Report, Table, each, number, verdict
from benchmarks.timing import time_pairs

# Sums of ranks are whole numbers and exact; what is left is the rounding of a mean of n scores.
SAME = 1e-12
SIZES = (2_000, 5_000, 10_000)
COLUMNS = 50
K = 15
LARGE = {"70000x50": 50, "70000x784": None}
RUNS = 3


def trust_gnomon(X: Any, k: int) -> Any:
    from gnomon import scores

    return scores.trustworthiness(X, _map(X), k, sample="all", n_jobs=THREADS)


def trust_sklearn(X: Any, k: int) -> Any:
    trustworthiness = peer("sklearn.manifold", "trustworthiness", "scikit-learn")
    return trustworthiness(X, _map(X), n_neighbors=k)


def _map(X: Any) -> Any:
    """The first two columns: a map that is neither perfect nor random, and costs nothing."""
    return np.ascontiguousarray(X[:, :2])


FITS: Mapping[str, Fit] = {OURS: trust_gnomon, "scikit-learn": trust_sklearn}


def run(settings: Settings) -> Report:
    peer("sklearn.manifold", "trustworthiness", "scikit-learn")
    sizes = [n for n in SIZES if settings.wants(f"{n}x{COLUMNS}")]
    large = [name for name in LARGE if settings.wants(name)]
    if not sizes and not large:
        names = ", ".join([*(f"{n}x{COLUMNS}" for n in SIZES), *LARGE])
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    against = [measure(n, settings.pairs) for n in sizes]
    alone = [measure_large(name, settings) for name in large]
    tables = [peer_table(against)] if against else []
    tables += [large_table(alone)] if alone else []
    raw = {"against_scikit_learn": against, "large": alone}
    return Report("Scores of maps", tables, NOTES, raw)


def measure(n: int, pairs: int | None) -> dict[str, Any]:
    """Time, value and memory of ours and scikit-learn's trustworthiness of all n rows."""
    print(f"scores: {n} rows", file=sys.stderr, flush=True)
    # float64, since scikit-learn's distances of float32 rows are rounded to float32: other ranks.
    X = data.decaying(n, COLUMNS, np.float64)
    # These first runs are the warm-up as well.
    values = {name: float(fit(X, K)) for name, fit in FITS.items()}
    runs = {name: partial(fit, X, K) for name, fit in FITS.items()}
    timing = time_pairs((OURS, runs.pop(OURS)), runs, pairs=pairs)
    with tempfile.TemporaryDirectory() as folder:
        table = save_table(X, Path(folder))
        memory = {name: peak_megabytes(fit, table, K) for name, fit in FITS.items()}
    away = abs(values[OURS] - values["scikit-learn"])
    return {
        "shape": [n, COLUMNS],
        "k": K,
        "values": values,
        "complaints": [] if away <= SAME else [f"values differ by {away:.1e}"],
        "timing": timing.to_dict(),
        "median_seconds": {name: timing.median_seconds(name) for name in FITS},
        "peak_megabytes": memory,
    }


def measure_large(name: str, settings: Settings) -> dict[str, Any]:
    """Seconds of `score_map` on its default sample, and how sure its numbers are."""
    print(f"scores: {name}", file=sys.stderr, flush=True)
    from gnomon import PCA, scores

    X = data.images(settings.data)
    plane = PCA(2, random_state=0).fit_transform(X)
    columns = LARGE[name]
    if columns is not None:
        X = PCA(columns, random_state=0).fit_transform(X)
    labels = np.arange(len(X)) % 10  # any labels: counting votes takes as long
    score = partial(scores.score_map, X, plane, labels, n_jobs=THREADS)
    found = score()
    seconds = []
    for _ in range(settings.pairs or RUNS):
        start = time.perf_counter()
        score()
        seconds.append(time.perf_counter() - start)
    return {
        "shape": list(X.shape),
        "dtype": str(X.dtype),
        "seconds": seconds,
        "median_seconds": float(np.median(seconds)),
        "scores": found.to_dict(),
    }


def peer_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Ours against scikit-learn, as text."""
    header = ["shape", "k", *(f"{name}, s" for name in FITS), "ratio [quartiles]", "same value"]
    header += [f"peak MB above input {' / '.join(FITS)}", "pairs (discarded)"]
    rows = []
    for result in results:
        (n, d), timing = result["shape"], result["timing"]
        low, high = timing["quartiles"]
        rows.append(
            [
                f"{n:,} × {d} float64",
                str(result["k"]),
                *(number(result["median_seconds"][name]) for name in FITS),
                f"{number(timing['ratio'], '.2f')} [{number(low, '.2f')}, {number(high, '.2f')}]",
                verdict(result["complaints"]),
                each([result["peak_megabytes"][name] for name in FITS], ".0f"),
                f"{len(timing['ratios'])} of {timing['pairs_wanted']} "
                f"({timing['pairs_discarded']})",
            ]
        )
    return Table("Trustworthiness of all rows.", header, rows)


def large_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """All scores of large tables, as text."""
    names = ("trustworthiness", "continuity", "recall")
    header = ["shape", "rows scored", "seconds", *(f"{name}, k = {K}" for name in names)]
    rows = []
    for result in results:
        (n, d), found = result["shape"], result["scores"]
        at = found["n_neighbors"].index(K)
        cells = [
            f"{found[name]['mean'][at]:.4f} ± {found[name]['standard_error'][at]:.4f}"
            for name in names
        ]
        seconds = number(result["median_seconds"])
        rows.append(
            [f"{n:,} × {d} {result['dtype']}", f"{found['rows_scored']:,}", seconds, *cells]
        )
    return Table("All scores at once (`score_map`), of a plane of two components.", header, rows)


NOTES = (
    "Seconds are medians. The ratio is the median over pairs of scikit-learn's time over ours, "
    "with its quartiles; above 1 we are faster. Runs alternate, and who goes first alternates.",
    "Everybody runs once untimed before, so that compiling and starting threads is not counted.",
    "Both use two threads and float64, and score all rows of the first table.",
    "Same value: to 1e-12; both count the same ranks.",
    "Peak MB (10⁶ bytes) above the input, measured in a fresh process after its imports.",
    "The second table is MNIST with --data, and a generated table of that shape without; scores "
    "are for 5, 15 and 50 neighbours, with labels, and 500,000 pairs of distances.",
)
