"""`gnomon map` on a file of 70,000 × 784 numbers: the time of each stage, memory, files.

The command is a process of its own, as a user starts it. Times of stages are those of its
``run.json``; what is missing to the time in all is the start of Python and its libraries. Before it
is measured it maps a part of the same table, large enough to go the way of the whole, so that
nothing is left to be compiled. The row of a small sample shows what the command takes of time and
memory by itself.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.environment import THREADS, BenchmarkError, Settings
from benchmarks.sampled import run
from benchmarks.table import Report, Table, number, verdict

SMALL = "iris"
LABEL = "label"
WARM = 15_000  # rows of the run before; so many are mapped in the same way as all of them
# Stages of a run, and what the table calls them.
STAGES = {
    "read": "read",
    "prepare": "prepare",
    "pca": "PCA",
    "tsne": "t-SNE",
    "trust": "trust",
    "page": "page",
    "write": "write",
}
RESULTS = ("report.html", "map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """The small sample, then the same large table in each format."""
    names = [SMALL, *FORMATS]
    wanted = [name for name in names if settings.wants(name)]
    if not wanted:
        raise BenchmarkError(
            f"--only must be part of a row's name; got {settings.only}: {', '.join(names)}"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if SMALL in wanted:
            print(f"command: {SMALL}", file=sys.stderr, flush=True)
            map_file(SMALL, folder)
            yield "command", {"name": SMALL, "judged": False, **map_file(SMALL, folder)}
        large = [name for name in FORMATS if name in wanted]
        if not large:
            return
        X = data.images(settings.data)
        digits = None if settings.data is None else data.image_labels(settings.data)
        for name in large:
            print(f"command: {name}", file=sys.stderr, flush=True)
            file = folder / f"table.{name}"
            FORMATS[name](file, X[:WARM], None if digits is None else digits[:WARM])
            map_file(file.name, folder)
            FORMATS[name](file, X, digits)
            yield "command", {"name": name, "judged": True, **map_file(file.name, folder)}
            file.unlink()


def columns_of(X: NDArray[Any], labels: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Columns as a user's file has them: what groups the rows, and whole numbers as such."""
    whole = X.astype(np.int32) if np.array_equal(X, np.rint(X)) else X
    named = {} if labels is None else {LABEL: labels}
    return {**named, **{f"p{j}": column for j, column in enumerate(np.ascontiguousarray(whole.T))}}


def write_csv(file: Path, X: NDArray[Any], labels: NDArray[Any] | None) -> None:
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table(columns_of(X, labels)), file)


def write_parquet(file: Path, X: NDArray[Any], labels: NDArray[Any] | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns_of(X, labels)), file)


FORMATS: Mapping[str, Callable[[Path, NDArray[Any], NDArray[Any] | None], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
}


def map_file(name: str, folder: Path) -> dict[str, Any]:
    """Run the command on `name` in `folder`, and gather what it took."""
    command = Path(sys.executable).parent / "gnomon"
    if not command.exists():
        raise BenchmarkError(
            f"`gnomon` is not installed beside {sys.executable}: `make bench` does."
        )
    order = [command, "map", name, "--threads", str(THREADS), "-o", "out", "--force"]
    seconds, peak, said = run(order, folder)
    record = json.loads((folder / "out" / "run.json").read_text("utf-8"))
    sizes = {result: (folder / "out" / result).stat().st_size for result in RESULTS}
    data_file = folder / name
    return {
        "shape": [record["table"]["rows"], len(record["table"]["features"])],
        "file_bytes": data_file.stat().st_size if data_file.exists() else None,
        "seconds": seconds,
        "stages": record["seconds"],
        "tsne": record["tsne"]["seconds"],
        "peak_bytes": peak,
        "sizes": sizes,
        "words": said,
    }


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """Times, then files."""
    found = raw.get("command", ())
    header = ["row", "data", "s in all", *STAGES.values(), "start", "peak, MB", "verdict"]
    times = Table("Seconds of `gnomon map`, by stage.", header, [_times(row) for row in found])
    files = Table(
        "Files, in MB.",
        ["row", "data", *RESULTS],
        [
            [
                row["name"],
                _megabytes(row["file_bytes"]),
                *(_megabytes(row["sizes"][name]) for name in RESULTS),
            ]
            for row in found
        ],
    )
    notes = [
        "Stages are those of run.json; start is what is missing to the time in all: Python, its "
        "libraries, the end. Write is all files; page is its building.",
        "Peak: the most memory that was resident, libraries included; the file is mapped, and what "
        "the system keeps of it in memory counts.",
        "Target: reading is not the longest stage.",
    ]
    notes += [
        f"{row['name']}: of t-SNE, "
        + ", ".join(f"{stage} {took:.1f} s" for stage, took in row["tsne"].items())
        + "."
        for row in found
        if row["judged"]
    ]
    return Report("The command on a large file", [times, files], notes)


def _times(row: Mapping[str, Any]) -> list[str]:
    stages = row["stages"]
    longest = max(stages, key=lambda name: stages[name])
    late = [f"reading is the longest, {stages['read']:.1f} s"] if longest == "read" else []
    peak = row["peak_bytes"]
    return [
        row["name"],
        f"{row['shape'][0]:,} × {row['shape'][1]}",
        number(row["seconds"], ".1f"),
        *(number(stages[name], ".2f") for name in STAGES),
        number(row["seconds"] - sum(stages.values()), ".1f"),
        number(None if peak is None else peak / 1e6, ",.0f"),
        verdict(late) if row["judged"] else "–",
    ]


def _megabytes(count: int | None) -> str:
    return number(None if count is None else count / 1e6, ",.2f")
