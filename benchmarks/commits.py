"""Time one source tree against that of another commit: PCA and Procrustes, row by row.

``python -m benchmarks.commits OTHER/src [--only TEXT] [--pairs N]``, where OTHER is a checkout of
the other commit. Both run in the same environment, so that NumPy, Numba and BLAS are the same.

1. Two processes are started, one for each tree; each makes the same tables from the same seed.
2. A row's work is run in both until it is warm; the quicker one says how often it is repeated to
   take `LEAST_SECONDS`.
3. Both run in turn, and who goes first alternates. A pair's ratio is the other tree's time over
   ours: above 1 we are faster. A row's is the median of its pairs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environment import THREADS, hold_threads

ROOT = Path(__file__).parent.parent
PAIRS = 9
LEAST_SECONDS = 0.05
Work = Callable[[], object]


def pca_fit(make: str, k: int, n: int = 0, d: int = 0) -> Work:
    from benchmarks import data
    from gnomon import PCA

    X = data.counts(None) if make == "counts" else getattr(data, make)(n, d)
    return lambda: PCA(k, n_jobs=THREADS).fit(X).components_


def pca_batches(n: int, d: int, batch: int) -> Work:
    from benchmarks import data
    from gnomon import PCA

    X = data.decaying(n, d)

    def run() -> object:
        model = PCA(10, n_jobs=THREADS)
        for start in range(0, n, batch):
            model.partial_fit(X[start : start + batch])
        return model.components_

    return run


def pca_rows(n: int, d: int, *, back: bool = False, standardize: bool = False) -> Work:
    from benchmarks import data
    from gnomon import PCA

    X = data.decaying(n, d, "f8")
    model = PCA(min(10, d // 2), standardize=standardize, n_jobs=THREADS).fit(X)
    Z = model.transform(X)
    return (lambda: model.inverse_transform(Z)) if back else (lambda: model.transform(X))


def procrustes_fit(n: int, d: int, robust: bool | str = False) -> Work:
    from benchmarks.procrustes import make_pair
    from gnomon import Procrustes

    X, Y = make_pair((n, d))
    model = Procrustes(scaling=True, robust=robust, n_jobs=THREADS)
    return lambda: model.fit(X, Y).rotation_


def procrustes_rows(n: int, d: int, *, back: bool = False) -> Work:
    from benchmarks.procrustes import make_pair
    from gnomon import Procrustes

    X, Y = make_pair((n, d))
    model = Procrustes(scaling=True, n_jobs=THREADS).fit(X, Y)
    return (lambda: model.inverse_transform(Y)) if back else (lambda: model.transform(X))


ROWS: Mapping[str, Callable[[], Work]] = {
    "PCA fit, 150 × 4": lambda: pca_fit("decaying", 2, 150, 4),
    "PCA fit, 1,000 × 20": lambda: pca_fit("decaying", 5, 1_000, 20),
    "PCA fit, 200,000 × 50": lambda: pca_fit("decaying", 10, 200_000, 50),
    "PCA fit, 70,000 × 784": lambda: pca_fit("decaying", 50, 70_000, 784),
    "PCA fit, 300 × 20,000": lambda: pca_fit("decaying", 20, 300, 20_000),
    "PCA fit, 2,000 × 2,000": lambda: pca_fit("decaying", 20, 2_000, 2_000),
    "PCA fit, sparse 4,186 × 13,488": lambda: pca_fit("counts", 50),
    "PCA partial_fit, 20 batches of 100 × 20": lambda: pca_batches(2_000, 20, 100),
    "PCA partial_fit, 80 batches of 2,500 × 500": lambda: pca_batches(200_000, 500, 2_500),
    "PCA transform, 150 × 4": lambda: pca_rows(150, 4),
    "PCA transform, 200,000 × 50": lambda: pca_rows(200_000, 50),
    "PCA inverse_transform, 150 × 4": lambda: pca_rows(150, 4, back=True),
    "PCA inverse_transform, standardised 150 × 20": lambda: pca_rows(
        150, 20, back=True, standardize=True
    ),
    "PCA inverse_transform, 200,000 × 50": lambda: pca_rows(200_000, 50, back=True),
    "Procrustes fit, 10 × 2": lambda: procrustes_fit(10, 2),
    "Procrustes fit, robust 50 × 2": lambda: procrustes_fit(50, 2, "huber"),
    "Procrustes fit, robust 50 × 12": lambda: procrustes_fit(50, 12, "tukey"),
    "Procrustes fit, 1,000 × 3": lambda: procrustes_fit(1_000, 3),
    "Procrustes fit, 1,000,000 × 2": lambda: procrustes_fit(1_000_000, 2),
    "Procrustes fit, robust 200,000 × 2": lambda: procrustes_fit(200_000, 2, "huber"),
    "Procrustes fit, 50,000 × 100": lambda: procrustes_fit(50_000, 100),
    "Procrustes transform, 50 × 2": lambda: procrustes_rows(50, 2),
    "Procrustes inverse_transform, 50 × 2": lambda: procrustes_rows(50, 2, back=True),
}


def serve() -> None:
    """Answer on stdout what is asked on stdin: make a row, or run it so many times."""
    import warnings

    warnings.simplefilter("ignore")
    work: Work | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "row" in asked:
            work = None  # the tables of the row before
            work = ROWS[asked["row"]]()
            seconds = min(_time(work, 1) for _ in range(3))
        else:
            assert work is not None
            seconds = _time(work, asked["times"])
        print(json.dumps(seconds), flush=True)


def _time(work: Work, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


class Tree:
    """A process that works with the package of one source tree."""

    def __init__(self, source: Path) -> None:
        path = os.pathsep.join([str(source), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.commits", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def ask(self, **what: Any) -> float:
        """Seconds of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        return float(json.loads(self.process.stdout.readline()))


def compare(trees: Sequence[Tree], row: str, pairs: int) -> tuple[list[float], list[float]]:
    """Seconds of every run of `row`, of both trees."""
    quickest = min(tree.ask(row=row) for tree in trees)
    times = max(1, round(LEAST_SECONDS / quickest))
    for tree in trees:
        tree.ask(times=times)
    seconds: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            seconds[side].append(trees[side].ask(times=times))
    return seconds


def lines(trees: Sequence[Tree], rows: Sequence[str], pairs: int) -> Iterator[str]:
    """The table as Markdown, a line as soon as it is known."""
    import numpy as np

    yield "| row | before, ms | after, ms | before / after [quartiles] |"
    yield "|---|---|---|---|"
    for row in rows:
        seconds = compare(trees, row, pairs)
        before, after = (f"{1e3 * float(np.median(each)):.3g}" for each in seconds)
        low, middle, high = np.percentile(np.divide(*seconds), [25, 50, 75])
        yield f"| {row} | {before} | {after} | {middle:.2f} [{low:.2f}, {high:.2f}] |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("other", type=Path, nargs="?", help="src of the other commit's checkout")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.other is None or not (options.other / "gnomon").is_dir():
        parser.error(f"OTHER must be a folder that holds gnomon; got {options.other}")
    hold_threads()
    trees = Tree(options.other.resolve()), Tree(ROOT / "src")
    rows = [row for row in ROWS if options.only in row]
    try:
        for line in lines(trees, rows, options.pairs):
            print(line, flush=True)
    finally:
        for tree in trees:
            tree.process.terminate()
            tree.process.wait()


if __name__ == "__main__":
    main()
