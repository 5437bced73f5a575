"""One pass of PCA by threads and by Dask workers: the time of each, and whether the bytes are same.

The table is generated into a temporary ``.npy`` file, which stays in the system's memory: what is
measured is the work and its handing out, not the disk. Each row fits once before it is timed, so
that processes have started and imported everything.
"""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import Report, Table, number, verdict

ROWS, COLUMNS, COMPONENTS = 2_000_000, 50, 10
REPEATS = 3
ENGINES = {
    "1 thread": ("threads", 1),
    "2 threads": ("threads", 2),
    "an array": ("array", 2),
    "1 worker": ("workers", 1),
    "2 workers": ("workers", 2),
    "4 workers": ("workers", 4),
}


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row an engine."""
    wanted = [name for name in ENGINES if settings.wants(name)]
    if not wanted:
        raise BenchmarkError(
            f"--only must be part of a row's name; got {settings.only}: {', '.join(ENGINES)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder) / "table.npy", ROWS)
        for name in wanted:
            yield "rows", {"name": name, **measure(file, *ENGINES[name], settings.pairs or REPEATS)}


def write(path: Path, n: int) -> Path:
    """Normal numbers about means of their own, of spreads from 1 to 50."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, COLUMNS), np.float32)
    X *= np.arange(1, COLUMNS + 1, dtype=np.float32)
    np.save(path, X + 100)
    return path


def engine_of(kind: str, count: int) -> AbstractContextManager[Any]:
    """Threads of this process, or processes of this machine."""
    if kind != "workers":
        from gnomon.engine import LocalEngine

        return nullcontext(LocalEngine(count))
    from gnomon.engine.cluster import local_cluster

    return local_cluster(count)


def measure(file: Path, kind: str, count: int, repeats: int) -> dict[str, Any]:
    """Seconds of each fit but the first, and a digest of all that was found."""
    import gnomon

    seconds = []
    with engine_of(kind, count) as engine:
        for _ in range(repeats + 1):
            source = gnomon.source(np.load(file) if kind == "array" else file)
            start = time.perf_counter()
            model = gnomon.PCA(COMPONENTS).fit(source, engine=engine)
            seconds.append(time.perf_counter() - start)
    found = (model.components_, model.explained_variance_, model.mean_)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()
    return {"seconds": seconds[1:], "blocks": len(source.partitions), "digest": digest}


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The table of the rows that there are."""
    found = raw.get("rows", ())
    alone = next((row for row in found if row["name"] == "1 thread"), None)
    table = Table(
        f"PCA of {ROWS:,} × {COLUMNS} float32, k = {COMPONENTS}, from a file in memory.",
        ["row", "s", "ms a block", "bytes of the result", "verdict"],
        [_cells(row, alone) for row in found],
    )
    blocks = found[0]["blocks"] if found else 0
    notes = [
        f"Medians of {REPEATS} fits after one that is not counted, {blocks} blocks each.",
        "Workers are processes of this machine, of one thread each. Four of them share its CPUs: "
        "that row is here for its bytes.",
        "An array: the same table in memory, in blocks of as many rows, on two threads.",
        "Bytes: the beginning of a digest of components, variances and means.",
        "Target: every row has the bytes of one thread.",
    ]
    return Report("The same by threads and by Dask workers", [table], notes)


def _cells(row: Mapping[str, Any], alone: Mapping[str, Any] | None) -> list[str]:
    seconds = float(np.median(row["seconds"]))
    same = alone is None or row["digest"] == alone["digest"]
    return [
        row["name"],
        number(seconds, ".2f"),
        number(1000 * seconds / row["blocks"], ".1f"),
        row["digest"][:12],
        verdict([] if same else ["other bytes"]),
    ]
