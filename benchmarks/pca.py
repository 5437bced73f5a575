"""Our PCA against its fastest peer: time, error and memory of one fit.

Rows and targets are those of the PCA design. Peers run at their defaults with ``random_state=0``;
scikit-learn-intelex is imported directly, never patched in, and takes no sparse tables.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scipy import sparse

from benchmarks import data, pca_offset
from benchmarks.environment import OURS, THREADS, BenchmarkError, Settings, peer
from benchmarks.memory import Fit, peak_megabytes, save_table
from benchmarks.quality import reference
from benchmarks.table import FAILED, Report, Table, each, number, verdict
from benchmarks.timing import time_pairs

# Residuals of float32 components are rounding below this; larger ones count as errors.
EXACT = 1e-5
LARGER = 1.5


def fit_gnomon(X: Any, k: int) -> Any:
    return _read(_ours(k).fit(X))


def fit_sklearn(X: Any, k: int) -> Any:
    PCA = peer("sklearn.decomposition", "PCA", "scikit-learn")
    return _read(PCA(n_components=k, random_state=0).fit(X))


def fit_intelex(X: Any, k: int) -> Any:
    PCA = peer("sklearnex.decomposition", "PCA", "scikit-learn-intelex")
    return _read(PCA(n_components=k, random_state=0).fit(X))


def stream_gnomon(X: Any, k: int) -> Any:
    return _stream(_ours(k), X)


def stream_sklearn(X: Any, k: int) -> Any:
    IncrementalPCA = peer("sklearn.decomposition", "IncrementalPCA", "scikit-learn")
    return _stream(IncrementalPCA(n_components=k), X)


def _ours(k: int) -> Any:
    from gnomon import PCA

    return PCA(n_components=k, random_state=0, n_jobs=THREADS)


def _stream(model: Any, X: Any) -> Any:
    rows = 5 * X.shape[1]  # the batch that IncrementalPCA takes by default
    for start in range(0, X.shape[0], rows):
        model.partial_fit(X[start : start + rows])
    return _read(model)


def _read(model: Any) -> Any:
    """Ask for the result while the clock runs: a model may put work off until it is asked."""
    _ = model.components_, model.explained_variance_
    return model


DENSE: Mapping[str, Fit] = {
    OURS: fit_gnomon,
    "scikit-learn": fit_sklearn,
    "intelex": fit_intelex,
}
SPARSE: Mapping[str, Fit] = {OURS: fit_gnomon, "scikit-learn": fit_sklearn}
STREAM: Mapping[str, Fit] = {OURS: stream_gnomon, "scikit-learn": stream_sklearn}


@dataclass(frozen=True)
class Row:
    """One line of the table: the work, who does it, and what is to be reached."""

    name: str
    fits: Mapping[str, Fit]
    make: Callable[[Path | None], Any]
    k: int
    ratio: float
    exact: bool = False


def _generated(make: Callable[[int, int], Any], n: int, d: int) -> Callable[[Path | None], Any]:
    return lambda folder: make(n, d)


ROWS = (
    Row("images", DENSE, data.images, 50, 1.0),
    Row("tall-300", DENSE, _generated(data.decaying, 200_000, 300), 20, 1.0),
    Row("tall-100", DENSE, _generated(data.decaying, 1_000_000, 100), 10, 1.3),
    Row("wide", DENSE, _generated(data.decaying, 300, 20_000), 20, 3.3, exact=True),
    Row("square", DENSE, _generated(data.decaying, 2_000, 2_000), 20, 1.5),
    Row("decaying", DENSE, _generated(data.decaying, 20_000, 3_000), 50, 2.0),
    Row("flat", DENSE, _generated(data.flat, 20_000, 3_000), 50, 1.5),
    Row("sparse", SPARSE, data.counts, 50, 3.0),
    Row("stream", STREAM, _generated(data.decaying, 200_000, 500), 20, 10.0, exact=True),
)


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the section it belongs to."""
    for name, module in (("scikit-learn", "sklearn"), ("scikit-learn-intelex", "sklearnex")):
        peer(f"{module}.decomposition", "PCA", name)  # missing peers stop us before any work
    wanted = [row for row in ROWS if settings.wants(row.name)]
    cases = [case for case in pca_offset.CASES if settings.wants(case.name)]
    if not wanted and not cases:
        names = ", ".join(item.name for item in (*ROWS, *pca_offset.CASES))
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for row in wanted:
        yield "rows", measure(row, settings)
    for case in cases:
        yield "offsets", pca_offset.measure(case, DENSE, settings)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    results, offsets = raw.get("rows", ()), raw.get("offsets", ())
    tables = [speed_table(results)] if results else []
    tables += [pca_offset.offset_table(offsets, list(DENSE))] if offsets else []
    return Report("PCA against scikit-learn and scikit-learn-intelex", tables, NOTES)


def measure(row: Row, settings: Settings) -> dict[str, Any]:
    """All numbers of one row; an error stays in the table as a row that says so."""
    print(f"pca: {row.name}", file=sys.stderr, flush=True)
    result: dict[str, Any] = {"name": row.name, "k": row.k, "target_ratio": row.ratio}
    try:
        X = row.make(settings.data)
        result |= {"shape": list(X.shape), "dtype": str(X.dtype), "sparse": sparse.issparse(X)}
        result |= measure_fits(X, row.k, row.fits, settings.pairs)
        result["complaints"] = complaints(result, row)
    except BenchmarkError:
        raise
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
    return result


def measure_fits(X: Any, k: int, fits: Mapping[str, Fit], pairs: int | None) -> dict[str, Any]:
    """Quality, time and memory of every fit of one table."""
    truth = reference(X, k)
    # These first fits are the warm-up as well.
    quality = {name: asdict(truth.judge(fit(X, k))) for name, fit in fits.items()}
    del truth
    runs = {name: partial(fit, X, k) for name, fit in fits.items()}
    timing = time_pairs((OURS, runs.pop(OURS)), runs, pairs=pairs)
    with tempfile.TemporaryDirectory() as folder:
        table = save_table(X, Path(folder))
        memory = {name: peak_megabytes(fit, table, k) for name, fit in fits.items()}
    return {
        "quality": quality,
        "timing": timing.to_dict(),
        "median_seconds": {name: timing.median_seconds(name) for name in fits},
        "fastest_peer": timing.fastest_peer,
        "peak_megabytes": memory,
        "peak_megabytes_allowed": allowed_megabytes(X),
    }


def allowed_megabytes(X: Any) -> float:
    """64 MB, three square matrices of doubles of the smaller side, and one for each thread."""
    smaller: int = min(X.shape)
    return 64 + (3 + THREADS) * 8 * smaller**2 / 1e6


def complaints(result: Mapping[str, Any], row: Row) -> list[str]:
    """Every target that was missed, in words; empty when all were reached."""
    found = []
    ratio = result["timing"]["ratio"]
    if not ratio >= row.ratio:  # NaN, when no pair was quiet, is not reached either
        found.append(f"ratio {number(ratio, '.2f')} below {row.ratio}")
    residual = result["quality"][OURS]["residual"]
    rival = result["fastest_peer"]
    limit = max(EXACT, LARGER * result["quality"][rival]["residual"])
    if not residual <= limit:
        found.append(f"residual {residual:.1e} larger than that of {rival}")
    elif row.exact and not residual <= EXACT:
        found.append(f"residual {residual:.1e} is not exact")
    peak, allowed = result["peak_megabytes"][OURS], result["peak_megabytes_allowed"]
    if peak is not None and peak > allowed:
        found.append(f"peak memory {peak:.0f} MB above {allowed:.0f}")
    return found


def speed_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """The rows as text."""
    names = list(DENSE)
    header = ["row", "shape", "k", *(f"{name}, s" for name in names), "ratio [quartiles]"]
    header += ["target", "verdict", f"residual {' / '.join(names)}", "variance deficit"]
    header += ["peak MB above input (allowed)", "pairs (discarded)"]
    rows = [_cells(result, names, len(header)) for result in results]
    return Table("Time, error and memory of one fit.", header, rows)


def _cells(result: Mapping[str, Any], names: Sequence[str], width: int) -> list[str]:
    target = f"≥ {result['target_ratio']}"
    if "error" in result:
        cells = [result["name"], "–", str(result["k"]), *("–" for _ in names), "–", target]
        cells.append(f"{FAILED}: {' '.join(result['error'].split())}")
        return cells + ["–"] * (width - len(cells))
    n, d = result["shape"]
    kind = f"{'sparse ' if result['sparse'] else ''}{result['dtype']}"
    timing = result["timing"]
    low, high = timing["quartiles"]
    errors = [result["quality"].get(name, {}) for name in names]
    peaks = each([result["peak_megabytes"].get(name) for name in names], ".0f")
    kept = len(timing["ratios"])
    return [
        result["name"],
        f"{n:,} × {d:,} {kind}",
        str(result["k"]),
        *(number(result["median_seconds"].get(name)) for name in names),
        f"{number(timing['ratio'], '.2f')} [{number(low, '.2f')}, {number(high, '.2f')}]",
        target,
        verdict(result["complaints"]),
        each([error.get("residual") for error in errors], ".1e"),
        each([error.get("deficit") for error in errors], ".1e"),
        f"{peaks} ({result['peak_megabytes_allowed']:.0f})",
        f"{kept} of {timing['pairs_wanted']} ({timing['pairs_discarded']})",
    ]


NOTES = (
    "Seconds are medians. The ratio is the median over pairs of the fastest peer's time over ours, "
    "with its quartiles; above 1 we are faster. Runs alternate, and who goes first alternates.",
    "Everybody runs once untimed before, so that compiling and starting threads is not counted.",
    "A fixed matrix product is timed before and after each pair; pairs where it moved more than "
    "1.5-fold are discarded, counted and repeated.",
    "Everybody uses two threads and the same dtype, with default settings and random_state=0.",
    "Where scikit-learn's default is its randomized solver, intelex runs scikit-learn's own code.",
    "Residual: the largest ‖Σv − λv‖/λ₁ over the k components, with Σ in float64 from the same "
    "data. Below 1e-5 it is rounding; above, ours may be at most 1.5 times the fastest peer's.",
    "Variance deficit: the largest |1 − captured / best| over the first 1, …, k components.",
    "Peak MB (10⁶ bytes) above the input, measured in a fresh process after its imports. Allowed: "
    "64 MB, three squares of the smaller side in doubles, and one for each thread.",
    "Row stream: partial_fit of both in blocks of 5 rows a column, against IncrementalPCA.",
    "Rows images and sparse are MNIST and counts of genes in worm neurons with --data, and "
    "generated tables of the same shape without.",
    "Images is a draw: nearly all of it is one product of the table with itself, at the pace of "
    "the BLAS that everybody uses.",
    "Sparse: products with the table are a third of our time, orthogonalising a quarter, small "
    "eigenproblems and the last Ritz step an eighth each. The matrix of products of rows is no "
    "shorter way: it has 22 times as many entries as the table.",
)
