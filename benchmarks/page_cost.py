"""What the page of a run costs: time, memory above what the run holds, and bytes on disk.

The constants of ``gnomon.pipeline.estimate`` about the page (``PAGE_…``) are read off this table.
Tables are noise in so many columns with a label of ten groups; where points lie does not matter for
the cost, so their maps are made in few iterations. Each row is a fresh process, whose high-water
mark of memory is set back before the page is built.

Seconds are CPU seconds of one thread: other work on the machine does not count, and building a page
is hardly divided among threads.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import Report, Table, number
from gnomon.pipeline.estimate import page_bytes, page_memory, page_seconds

SHAPES = [
    (300, 10),
    (3_000, 10),
    (3_000, 300),
    (10_000, 50),
    (30_000, 50),
    (30_000, 784),
    (100_000, 20),
]
BUDGET = 3_000_000


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One shape after the other."""
    shapes = [(n, d) for n, d in SHAPES if settings.wants(f"{n}x{d}")]
    if not shapes:
        known = ", ".join(f"{n}x{d}" for n, d in SHAPES)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {known}")
    for n, d in shapes:
        yield "rows", measure(n, d)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """Measured beside expected."""
    cells = [
        [
            row["shape"],
            *(
                f"{number(row[key])} ({number(row['expected ' + key])})"
                for key in ("seconds", "megabytes", "page")
            ),
        ]
        for row in raw.get("rows", ())
    ]
    table = Table(
        "Building a page of at most 3 MB, and in brackets what `gnomon inspect` expects.",
        ["shape", "CPU seconds", "MB of memory", "MB of the page"],
        cells,
    )
    return Report("What a page costs", [table], ("One thread; kernels are compiled.",))


def measure(n: int, d: int) -> dict[str, Any]:
    """A page in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.page_cost", str(n), str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{n} × {d}: {done.stderr.strip().splitlines()[-1]}")
    return {
        "name": f"{n}x{d}",
        "shape": f"{n:,} × {d:,}",
        **json.loads(done.stdout),
        "expected seconds": page_seconds(n, d),
        "expected megabytes": page_memory(n, d, BUDGET) / 1e6,
        "expected page": page_bytes(n, d, BUDGET) / 1e6,
    }


def build(n: int, d: int) -> dict[str, float]:
    """Seconds, megabytes and size of the page of a table of this shape."""
    from benchmarks.memory import megabytes_of
    from gnomon.data.preparation import prepare
    from gnomon.data.table import Table as Data
    from gnomon.pca import PCA
    from gnomon.pipeline.row_trust import measure_trust
    from gnomon.report.report import build_report
    from gnomon.report.run_page import gather_run
    from gnomon.tsne import TSNE

    def page(n: int, d: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d)).astype(np.float32)
        groups = rng.integers(10, size=n).astype(str).astype(object)
        table = Data("t.csv", X, tuple(f"x{j}" for j in range(d)), groups, "kind", n_columns=d + 1)
        ready = prepare(table, scale="none")
        pca = PCA(min(50, d), n_jobs=1)
        scores = pca.fit_transform(ready.X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tsne = TSNE(perplexity=10, max_iter=60, n_jobs=1).fit(ready.X)
        kept, quality = measure_trust(ready.X, tsne, groups, 1)
        known = {"scores": scores, "trust": kept, "quality": quality, "Y": tsne.embedding_}
        return known, lambda: build_report(
            gather_run(table, ready, pca, tsne, n_jobs=1, **known), BUDGET
        )

    page(200, d)[1]()  # imports and compiles
    _, make = page(n, d)
    start = time.process_time()
    made: list[Any] = []
    megabytes = megabytes_of(lambda: made.append(make()))
    seconds = time.process_time() - start
    size = len(made[0].html.encode())
    return {"seconds": seconds, "megabytes": megabytes, "page": size / 1e6}


if __name__ == "__main__":
    print(json.dumps(build(int(sys.argv[1]), int(sys.argv[2]))))
