"""How soon ``gnomon --help`` answers."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import Report, Table, number, verdict

RUNS = 11
TARGET_SECONDS = 0.3


def run(settings: Settings) -> Report:
    command = Path(sys.executable).parent / "gnomon"
    if not command.exists():
        raise BenchmarkError(
            f"`gnomon` is not installed beside {sys.executable}: `make bench` does."
        )
    rows = [
        measure("help", [str(command), "--help"], TARGET_SECONDS),
        measure("bare python", [sys.executable, "-c", "pass"], None),
    ]
    header = ["row", "median, s [quartiles]", "target", "verdict"]
    table = Table("Seconds from start to end.", header, [_cells(row) for row in rows])
    notes = (
        f"Median of {RUNS} runs after one untimed run.",
        "The bare interpreter is shown for comparison: no command can be faster.",
    )
    return Report("Start of the command line", [table], notes, {"rows": rows})


def measure(name: str, command: Sequence[str], target: float | None) -> dict[str, Any]:
    """Times of one command, the first run left out."""
    seconds = [_time(command) for _ in range(RUNS + 1)][1:]
    low, median, high = (float(value) for value in np.percentile(seconds, [25, 50, 75]))
    return {
        "name": name,
        "seconds": seconds,
        "median": median,
        "quartiles": [low, high],
        "target": target,
    }


def _time(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise BenchmarkError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
    return seconds


def _cells(row: dict[str, Any]) -> list[str]:
    low, high = row["quartiles"]
    spread = f"{number(row['median'], '.3f')} [{number(low, '.3f')}, {number(high, '.3f')}]"
    if row["target"] is None:
        return [row["name"], spread, "–", "–"]
    late = row["median"] > row["target"]
    complaints = [f"{row['median']:.3f} s above {row['target']} s"] if late else []
    return [row["name"], spread, f"≤ {row['target']}", verdict(complaints)]
