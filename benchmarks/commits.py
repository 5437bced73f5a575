"""Time one source tree against that of another commit: fits, files and whole commands.

``python -m benchmarks.commits OTHER/src [--only TEXT] [--pairs N]``, where OTHER is a checkout of
the other commit. Both run in the same environment, so that NumPy, Numba and BLAS are the same.

1. Two processes are started, one for each tree; each makes the same tables from the same seed.
2. A row's work is run in both until it is warm; the quicker one says how often it is repeated to
   take `LEAST_SECONDS`.
3. Both run in turn, and who goes first alternates. A pair's ratio is the other tree's time over
   ours: above 1 we are faster. A row's is the median of its pairs.

Commands are processes of their own, whose peak memory is shown too. Files are written into a
temporary folder, once for both trees.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environment import THREADS, hold_threads

ROOT = Path(__file__).parent.parent
PAIRS = 9
LEAST_SECONDS = 0.05
FILES = "GNOMON_BENCH_FILES"  # the folder of the files, for the processes of both trees
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


def comparison(part: str, n: int, d: int) -> Work:
    from benchmarks.comparison import SHUFFLES, tables
    from gnomon import compare
    from gnomon.procrustes.evidence import find_evidence
    from gnomon.procrustes.movement import find_moves, move_against_neighbors

    X, Y = tables(n, d)
    if part == "compare":
        return lambda: compare(X, Y, n_jobs=THREADS)
    found = compare(X, Y, n_jobs=THREADS)
    if part == "evidence":
        return lambda: find_evidence(found, n_permutations=SHUFFLES, n_jobs=THREADS)
    return lambda: move_against_neighbors(*find_moves(X, Y, THREADS), found.changes, THREADS)


def table_file(kind: str, n: int, d: int) -> Path:
    """A generated table as a file, written where there is none yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from benchmarks import data

    path = Path(os.environ[FILES]) / f"{n}x{d}.{kind}"
    if path.exists():
        return path
    import numpy as np

    X = data.decaying(n, d)
    if kind == "npy":
        np.save(path, X)
        return path
    table = pa.table({f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(d)})
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2**17, use_dictionary=False)
    else:
        csv.write_csv(table, path)
    return path


def pca_of_file(kind: str, n: int, d: int) -> Work:
    import gnomon

    file = table_file(kind, n, d)
    return lambda: gnomon.PCA(10, n_jobs=THREADS).fit(gnomon.source(file)).components_


def command(verb: str, kind: str, n: int, d: int, *options: str) -> Work:
    """A command on a generated file; it returns the peak memory of its process, in bytes."""
    file = table_file(kind, n, d)
    folder = Path(os.environ[FILES]) / "out"
    start = [sys.executable, "-c", "from gnomon.cli import main; main()"]  # older trees have no -m
    order = [*start, verb, str(file), "-o", str(folder), "--force", "-q"]
    return partial(_peak_of, [*order, *options])


def _peak_of(order: Sequence[str]) -> int:
    process = subprocess.Popen(order, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(order)} failed: {said.decode(errors='replace')}")
    return 1024 * usage.ru_maxrss


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
    "compare, 70,000 × 50": lambda: comparison("compare", 70_000, 50),
    "compare, evidence of 70,000 × 50": lambda: comparison("evidence", 70_000, 50),
    "compare, movement of 70,000 × 50": lambda: comparison("movement", 70_000, 50),
    "compare, 1,000,000 × 2": lambda: comparison("compare", 1_000_000, 2),
    "compare, evidence of 1,000,000 × 2": lambda: comparison("evidence", 1_000_000, 2),
    "compare, movement of 1,000,000 × 2": lambda: comparison("movement", 1_000_000, 2),
    "file: PCA of .npy, 1,000,000 × 100": lambda: pca_of_file("npy", 1_000_000, 100),
    "file: PCA of Parquet, 1,000,000 × 100": lambda: pca_of_file("parquet", 1_000_000, 100),
    "file: PCA of CSV, 100,000 × 50": lambda: pca_of_file("csv", 100_000, 50),
    "command: map, .npy 150 × 4": lambda: command("map", "npy", 150, 4),
    "command: map, Parquet 10,000 × 50": lambda: command("map", "parquet", 10_000, 50),
    "command: map, a sample of 10,000 of 100,000 × 50": lambda: command(
        "map", "npy", 100_000, 50, "--sample", "10000", "--memory", "1GB"
    ),
    "command: reduce, CSV 100,000 × 50": lambda: command("reduce", "csv", 100_000, 50),
    "command: reduce in blocks, .npy 1,000,000 × 100": lambda: command(
        "reduce", "npy", 1_000_000, 100, "--memory", "1GB"
    ),
    "command: reduce by 2 workers, .npy 1,000,000 × 100": lambda: command(
        "reduce", "npy", 1_000_000, 100, "--workers", "2", "--memory", "4GB"
    ),
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
            answer = min(_time(work, 1) for _ in range(2 if "command" in asked["row"] else 3))
        else:
            assert work is not None
            answer = _time(work, asked["times"])
        print(json.dumps(answer), flush=True)


def _time(work: Work, times: int) -> tuple[float, int]:
    """Seconds of one run, and the peak memory of the last one if it was a command."""
    found: object = 0
    start = time.perf_counter()
    for _ in range(times):
        found = work()
    seconds = (time.perf_counter() - start) / times
    return seconds, found if isinstance(found, int) else 0


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

    def ask(self, **what: Any) -> tuple[float, int]:
        """Seconds of one run, and its peak memory where that is known."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        seconds, peak = json.loads(self.process.stdout.readline())
        return float(seconds), int(peak)


Runs = list[tuple[float, int]]  # seconds and peak memory of each


def compare(trees: Sequence[Tree], row: str, pairs: int) -> tuple[Runs, Runs]:
    """All runs of `row`, of both trees."""
    quickest = min(tree.ask(row=row)[0] for tree in trees)
    times = max(1, round(LEAST_SECONDS / quickest))
    for tree in trees:
        tree.ask(times=times)
    runs: tuple[Runs, Runs] = ([], [])
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            runs[side].append(trees[side].ask(times=times))
    return runs


def lines(trees: Sequence[Tree], rows: Sequence[str], pairs: int) -> Iterator[str]:
    """The table as Markdown, a line as soon as it is known."""
    import numpy as np

    yield "| row | before, ms | after, ms | before / after [quartiles] | peak, MB: before, after |"
    yield "|---|---|---|---|---|"
    for row in rows:
        seconds, peaks = np.moveaxis(np.array(compare(trees, row, pairs)), 2, 0)
        before, after = (f"{1e3 * float(np.median(each)):.4g}" for each in seconds)
        low, middle, high = np.percentile(np.divide(*seconds), [25, 50, 75])
        memory = (
            ", ".join(f"{np.median(each) / 1e6:,.0f}" for each in peaks) if peaks.any() else "–"
        )
        ratio = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
        yield f"| {row} | {before} | {after} | {ratio} | {memory} |"


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
    rows = [row for row in ROWS if options.only in row]
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FILES] = folder
        trees = Tree(options.other.resolve()), Tree(ROOT / "src")
        try:
            for line in lines(trees, rows, options.pairs):
                print(line, flush=True)
        finally:
            for tree in trees:
                tree.process.terminate()
                tree.process.wait()


if __name__ == "__main__":
    main()
