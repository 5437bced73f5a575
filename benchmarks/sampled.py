"""`gnomon map --sample`: many rows with known clusters, most of them placed on a map of some.

The command runs in a process of its own under ``--memory``, and must stay within it: its high-water
mark is what the kernel counts, pages of the mapped file included. Then, for rows that were placed
and for rows that made the map, the share of the 11 nearest mapped rows, on the map and without the
row itself, that are of its own cluster; beside it the same share in the data.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.record import Raw
from benchmarks.table import Report, Table, number, verdict

# Rows, rows of the sample, memory in bytes.
SIZES = {
    "100k": (100_000, 10_000, 1_000_000_000),
    "2m": (2_000_000, 100_000, 3_000_000_000),
}
ON_REQUEST = frozenset({"2m"})
COLUMNS, KINDS = 50, 20
APART = 0.2  # so near that some rows have neighbours of other clusters in the data too
NEAREST = 11
JUDGED = 20_000  # rows of each kind whose neighbours are looked at
CLOSE = 0.02  # how much less often placed rows may be among their own than mapped ones


def rows(settings: Settings) -> Any:
    """One row a size; the large ones only if they are asked for by name."""
    wanted = [
        name
        for name in SIZES
        if settings.wants(name) and (settings.only is not None or name not in ON_REQUEST)
    ]
    if not wanted:
        raise BenchmarkError(
            f"--only must be part of a row's name; got {settings.only}: {', '.join(SIZES)}"
        )
    for name in wanted:
        print(f"sampled: {name}", file=sys.stderr, flush=True)
        yield "sampled", {"name": name, **measure(*SIZES[name])}


def measure(n: int, sample: int, memory: int) -> dict[str, Any]:
    """Run the command on `n` generated rows, and look at what it wrote."""
    X, labels = data.clusters(n, COLUMNS, KINDS, APART)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "table.npy", X)
        command = [
            Path(sys.executable).parent / "gnomon",
            "map",
            "table.npy",
            "--sample",
            str(sample),
            "--memory",
            str(memory),
            "--threads",
            str(THREADS),
            "-o",
            "out",
        ]
        seconds, peak, said = run(command, folder)
        record = json.loads((folder / "out" / "run.json").read_text("utf-8"))
        shares = judge(X, labels, folder / "out" / "map.parquet")
    complaints = []
    if peak is not None and peak > memory:
        complaints.append(f"{peak / 1e9:.2f} GB is more than was allowed")
    if shares["placed"] < shares["mapped"] - CLOSE:
        complaints.append("placed rows are less often among their own")
    return {
        "shape": [n, COLUMNS],
        "sample": sample,
        "memory": memory,
        "seconds": seconds,
        "stages": record["seconds"],
        "peak_bytes": peak,
        "shares": shares,
        "words": said,
        "unusual": record["sampling"]["unusual"],
        "complaints": complaints,
    }


def run(command: list[Any], folder: Path) -> tuple[float, int | None, str]:
    """Seconds, high-water mark in bytes where the system keeps one, and what was said."""
    start, peak = time.perf_counter(), None
    with (folder / "words").open("w") as words:
        child = subprocess.Popen(command, cwd=folder, stderr=words)
        try:
            while child.poll() is None:
                peak = high_water(child.pid) or peak
                time.sleep(0.05)
        finally:
            child.kill()
    said = (folder / "words").read_text("utf-8")
    if child.returncode != 0:
        raise BenchmarkError(f"gnomon map ended with {child.returncode}: {said.strip()}")
    return time.perf_counter() - start, peak, said


def high_water(pid: int) -> int | None:
    """The most memory that a process has had, in bytes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def judge(X: Any, labels: Any, file: Path) -> dict[str, float]:
    """Shares of neighbours that are of a row's own cluster, on the map and in the data."""
    import pyarrow.parquet as pq

    from gnomon.neighbors.search import NeighborSearch

    found = pq.read_table(file)
    Y = np.column_stack([found[name].to_numpy() for name in ("tsne1", "tsne2")]).astype(float)
    placed = found["placed"].to_numpy()
    mapped = np.flatnonzero(~placed)
    generator = np.random.default_rng(data.SEED)
    shares = {}
    for space, Z in (("", Y), (" in the data", X)):
        search = NeighborSearch(Z[mapped], recall=0.99, n_jobs=THREADS)
        for kind, at in (("placed", np.flatnonzero(placed)), ("mapped", mapped)):
            chosen = generator.choice(at, min(JUDGED, at.size), replace=False)
            near = mapped[search.of(Z[chosen], NEAREST)[0]]
            others = near != chosen[:, None]  # a mapped row is its own nearest
            same = (labels[near] == labels[chosen][:, None]) & others
            shares[kind + space] = float(same.sum() / others.sum())
    return shares


def report(raw: Raw) -> Report:
    """The table of all rows."""
    lines = [
        [
            row["name"],
            f"{row['shape'][0]:,} × {row['shape'][1]}",
            f"{row['sample']:,}",
            number(row["seconds"]),
            *(number(row["stages"].get(stage)) for stage in ("pca", "tsne", "trust", "place")),
            number(None if row["peak_bytes"] is None else row["peak_bytes"] / 1e9),
            number(row["memory"] / 1e9),
            *(
                f"{row['shares'][kind]:.1%} ({row['shares'][f'{kind} in the data']:.1%})"
                for kind in ("placed", "mapped")
            ),
            f"{row['unusual']:,}",
            verdict(row["complaints"]),
        ]
        for row in raw.get("sampled", [])
    ]
    header = [
        "row",
        "data",
        "mapped",
        "s in all",
        "PCA, s",
        "t-SNE, s",
        "trust, s",
        "placing, s",
        "peak, GB",
        "allowed, GB",
        "own cluster: placed",
        "mapped",
        "unusual",
        "verdict",
    ]
    return Report("Maps of a sample", [Table(CAPTION, header, lines)], NOTES, raw)


CAPTION = (
    "`gnomon map table.npy --sample N --memory SIZE`. Own cluster: of the 11 nearest mapped rows, "
    "the row itself left out, the share of its own cluster, on the map and, in brackets, in the "
    "data."
)
NOTES = (
    "One run each of the whole command: imports, reading, PCA of all rows, the map of the sample, "
    "places of all others, files. Kernels were compiled before.",
    "Peak is the kernel's high-water mark of the process, pages of the mapped file included.",
    "The row 2m, some minutes long, is measured only with `--only 2m`, or `--only ''` for both.",
)
