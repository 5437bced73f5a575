"""PCA of a file that is larger than the memory allowed: time, memory, error.

The table is generated into a temporary folder, block by block, as ``.npy`` and as Parquet, and
deleted afterwards: 100 columns of float32 about a mean of 100, with a decaying spectrum. Everything
is measured in fresh processes, which run ``python -m benchmarks.outofcore TASK FILE`` and print
seconds and the high-water mark of their resident memory; imports are not timed. Before each of them
the system is asked to forget the file, so that all of them read it from the disk: a file that is
larger than the memory allowed would not be in the cache.

A Parquet file as pyarrow writes it by default, with dictionaries and row groups of a million rows,
is measured beside them, without a target and without the peer.

The full rows take 24 GB of disk; ``--only "0.5 GB"`` measures small ones.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import Report, Table, number, verdict

COLUMNS = 100
COMPONENTS = 50
BLOCK = 2**21 // COLUMNS  # rows; what `gnomon.source` takes by itself
ROW_GROUP = 2**17  # rows of a Parquet row group
DEFAULT_GROUP = 2**20  # and of one of pyarrow's own
KINDS = ("npy", "parquet", "parquet by default")
GIGABYTES = {"8 GB": 8.0, "0.5 GB": 0.5}
BUDGET = "1GB"
MOST_MEMORY = 1.2e9  # bytes resident in all
MOST_READINGS = 2.0  # times reading the .npy file once with NumPy
LEAST_RATIO = 10.0  # IncrementalPCA's time over ours
STATUS = Path("/proc/self/status")


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Both kinds of file in one size after the other; small ones only when asked for."""
    names = {f"{kind} {size}": (kind, size) for size in GIGABYTES for kind in KINDS}
    wanted = [name for name in names if settings.wants(name)]
    if settings.only is None:
        wanted = [name for name in wanted if name.endswith(" 8 GB")]
    if not wanted:
        raise BenchmarkError(
            f"--only must be part of a row's name; got {settings.only}: {', '.join(names)}"
        )
    for size, gigabytes in GIGABYTES.items():
        kinds = [names[name][0] for name in wanted if names[name][1] == size]
        if not kinds:
            continue
        with tempfile.TemporaryDirectory() as folder:
            npy = write_npy(Path(folder) / "table.npy", gigabytes)
            exact = covariance(npy)
            for kind in kinds:
                file = npy if kind == "npy" else Path(folder) / "table.parquet"
                if kind != "npy":
                    write_parquet(file, npy, by_default=kind == KINDS[2])
                yield "rows", measure_row(f"{kind} {size}", npy, file, exact, settings)


def measure_row(
    name: str, npy: Path, file: Path, exact: np.ndarray, settings: Settings
) -> dict[str, Any]:
    """Reading, fitting, and the peer's fitting in turn; the medians of their times."""
    tasks = [("read", npy, None), ("ours", file, exact)]
    if not name.startswith(KINDS[2]):
        tasks.append(("incremental", file, exact))
    measure("ours", file, exact)  # untimed: kernels compile, once a machine, and the disk settles
    runs = [[measure(*task) for task in tasks] for _ in range(settings.pairs or 3)]
    times = np.array([[each["seconds"] for each in run] for run in runs])
    seconds = np.median(times, axis=0).tolist()
    arrow = None if file is npy else measure("arrow", file)["seconds"]
    ours = [run[1] for run in runs]
    row = {
        "name": name,
        "shape": list(shape_of(npy)),
        "runs": runs,
        "times": float(np.median(times[:, 1] / times[:, 0])),
        "reading": seconds[0],
        "arrow": arrow,
        "seconds": seconds[1],
        "resident": max(fit["resident"] for fit in ours),
        "plan": ours[0]["plan"],
        "error": ours[0]["error"],
        "ratio": None,
        "peer_seconds": None,
        "peer_error": None,
    }
    if len(tasks) == 2:
        return row
    return row | {
        "ratio": float(np.median(times[:, 2] / times[:, 1])),
        "peer_seconds": seconds[2],
        "peer_error": runs[0][2]["error"],
    }


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The table of the rows that there are."""
    header = [
        "row",
        "fit, s",
        "reading once, s",
        "times reading",
        "peak resident, MB",
        "error",
        "IncrementalPCA: s",
        "its error",
        "ratio",
        "verdict",
    ]
    found = raw.get("rows", ())
    table = Table(
        f"PCA of a file, k = {COMPONENTS}, {BUDGET} of memory allowed.",
        header,
        [_cells(row) for row in found],
    )
    notes = [
        f"{COLUMNS} columns of float32 about a mean of 100; everybody reads from the disk, in "
        "fresh processes, imports not counted. All three are measured in turn, as a rule three "
        "times, after one fit that is not timed (kernels compile once a machine, and the disk is "
        "done with what was written); times and ratios are medians. Gnomon reads past the system's "
        "cache, which is what makes it quicker than reading with NumPy (decision 0021).",
        f"Reading once: the `.npy` file by `numpy.fromfile` in blocks of {BLOCK:,} rows. "
        f"IncrementalPCA(n_components={COMPONENTS}) was given blocks of as many rows of each file, "
        "those of Parquet as pyarrow decodes them on two threads.",
        f"Parquet: pyarrow's defaults (Snappy) but for row groups of {ROW_GROUP:,} rows and no "
        "dictionaries, which numbers that do not repeat have no use for. By default: with them, "
        f"and row groups of {DEFAULT_GROUP:,} rows, which are too large to be decoded at once.",
        "Error: largest ‖Σv − λv‖ / λ₁ of a component, with Σ computed in float64 about the exact "
        "mean.",
        f"Targets: at most {MOST_READINGS:g} times reading, below {MOST_MEMORY / 1e6:,.0f} MB "
        f"resident in all, {LEAST_RATIO:g} times faster than IncrementalPCA and no less exact.",
    ]
    notes += [
        f"{row['name']}: {row['shape'][0]:,} × {row['shape'][1]}; {row['plan']}." for row in found
    ]
    notes += [
        f"{row['name']}: pyarrow alone decodes the file in {row['arrow']:.1f} s on two threads."
        for row in found
        if row["arrow"] is not None
    ]
    if any(row["arrow"] is not None for row in found):
        notes.append(
            "Parquet costs what decoding does, in pyarrow: a second of processor time and more for "
            "1 GB, beside what the `.npy` row shows."
        )
    return Report("Larger than memory: PCA of files in blocks", [table], notes)


def _cells(row: Mapping[str, Any]) -> list[str]:
    times, ratio = row["times"], row["ratio"]
    complaints = []
    if ratio is None:
        return [*_numbers(row), "–"]
    if times > MOST_READINGS:
        complaints.append(f"{times:.1f} times reading")
    if row["resident"] > MOST_MEMORY:
        complaints.append(f"{row['resident'] / 1e6:,.0f} MB resident")
    if ratio < LEAST_RATIO:
        complaints.append(f"{ratio:.1f} times IncrementalPCA")
    if row["error"] > row["peer_error"]:
        complaints.append("less exact than IncrementalPCA")
    return [*_numbers(row), verdict(complaints)]


def _numbers(row: Mapping[str, Any]) -> list[str]:
    return [
        row["name"],
        number(row["seconds"], ".1f"),
        number(row["reading"], ".1f"),
        number(row["times"], ".2f"),
        number(row["resident"] / 1e6, ",.0f"),
        number(row["error"], ".1e"),
        number(row["peer_seconds"], ".1f"),
        number(row["peer_error"], ".1e"),
        number(row["ratio"], ".1f"),
    ]


def write_npy(path: Path, gigabytes: float) -> Path:
    """Blocks of normal rows with variances that fall from 25 to 0.25, rotated, about 100."""
    from gnomon.engine.sink import writing_blocks

    n = int(gigabytes * 1e9 / (4 * COLUMNS))
    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.standard_normal((COLUMNS, COLUMNS)))[0]
    frame = (turn * np.geomspace(5, 0.5, COLUMNS)[:, None]).astype(np.float32)
    with writing_blocks(path, n, [""] * COLUMNS) as add:
        for start in range(0, n, BLOCK):
            rows = min(BLOCK, n - start)
            block = random.standard_normal((rows, COLUMNS), np.float32) @ frame
            add(block + np.float32(100))
    return path


def write_parquet(path: Path, npy: Path, *, by_default: bool = False) -> Path:
    """The same numbers, with pyarrow's defaults; as a rule but for what does not help."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.load(npy, mmap_mode="r")
    names = [f"c{j}" for j in range(COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    group = DEFAULT_GROUP if by_default else ROW_GROUP
    with pq.ParquetWriter(path, schema, use_dictionary=by_default) as writer:
        for start in range(0, X.shape[0], group):
            columns = np.ascontiguousarray(X[start : start + group].T)
            writer.write_table(pa.Table.from_arrays(list(map(pa.array, columns)), names))
    return path


def shape_of(npy: Path) -> tuple[int, int]:
    n, d = np.load(npy, mmap_mode="r").shape
    return int(n), int(d)


def covariance(npy: Path) -> np.ndarray:
    """Σ in float64 about the exact mean, in two passes."""
    n, d = shape_of(npy)
    total = np.zeros(d)
    for block in read_blocks(npy):
        total += block.sum(axis=0, dtype=np.float64)
    mean, sigma = total / n, np.zeros((d, d))
    for block in read_blocks(npy):
        centred = block - mean
        sigma += centred.T @ centred
    return sigma / (n - 1)


def read_blocks(npy: Path) -> Iterator[np.ndarray]:
    """The file as NumPy reads it, in blocks."""
    n, d = shape_of(npy)
    with npy.open("rb") as file:
        file.seek(npy.stat().st_size - 4 * n * d)
        for start in range(0, n, BLOCK):
            rows = min(BLOCK, n - start)
            yield np.fromfile(file, np.float32, rows * d).reshape(rows, d)


def measure(task: str, file: Path, exact: np.ndarray | None = None) -> dict[str, Any]:
    """One task in a fresh process, on a file that must be read from the disk."""
    forget(file)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.outofcore", task, str(file)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"{task} of {file.name} failed: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if exact is not None:
        V, values = np.array(found.pop("components")).T, np.array(found.pop("variances"))
        top = np.linalg.eigvalsh(exact)[-1]
        found["error"] = float(np.linalg.norm(exact @ V - V * values, axis=0).max() / top)
    return found


def forget(file: Path) -> None:
    """Have the system drop what it keeps of a file in memory, where it can be asked to."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fit_ours(file: Path) -> dict[str, Any]:
    import gnomon

    gnomon.PCA(2).fit(np.random.default_rng(0).standard_normal((50, 5)))  # everything imported
    gnomon.source(np.zeros((2, 2)))
    start = time.perf_counter()
    model = gnomon.PCA(COMPONENTS).fit(gnomon.source(file), memory=BUDGET)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "plan": model.plan_.why, **_answer(model)}


def fit_incremental(file: Path) -> dict[str, Any]:
    from sklearn.decomposition import IncrementalPCA

    start = time.perf_counter()
    model = IncrementalPCA(COMPONENTS)
    for block in read_blocks(file) if file.suffix == ".npy" else decoded_blocks(file):
        if len(block) > COMPONENTS:  # it takes no fewer rows than components
            model.partial_fit(block)
    return {"seconds": time.perf_counter() - start, **_answer(model)}


def _answer(model: Any) -> dict[str, Any]:
    return {
        "components": model.components_.tolist(),
        "variances": model.explained_variance_.tolist(),
    }


def read_once(file: Path) -> dict[str, Any]:
    start = time.perf_counter()
    rows = sum(len(block) for block in read_blocks(file))
    return {"seconds": time.perf_counter() - start, "rows": rows}


def decode_once(file: Path) -> dict[str, Any]:
    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in decoded_batches(file))
    return {"seconds": time.perf_counter() - start, "rows": rows}


def decoded_blocks(parquet: Path) -> Iterator[np.ndarray]:
    """The batches as rows."""
    for batch in decoded_batches(parquet):
        block = np.empty((batch.num_rows, batch.num_columns), np.float32)
        for j, column in enumerate(batch.columns):
            block[:, j] = column.to_numpy()
        yield block


def decoded_batches(parquet: Path) -> Iterator[Any]:
    """The file as pyarrow reads it, in blocks."""
    import pyarrow.parquet as pq

    found = pq.ParquetFile(parquet, pre_buffer=False)  # which is quicker here than with it
    yield from found.iter_batches(batch_size=BLOCK, use_threads=True)


TASKS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "ours": fit_ours,
    "incremental": fit_incremental,
    "read": read_once,
    "arrow": decode_once,
}


def resident_bytes() -> float:
    """The high-water mark of this process; NaN where the system keeps none."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024.0
    return float("nan")


if __name__ == "__main__":
    answer = TASKS[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps({**answer, "resident": resident_bytes()}))
