"""PCA of data that lie far from the origin, where the first component can be lost.

A covariance formed from raw squares loses all digits when the mean is large against the spread;
nothing warns. Every column of a table is moved by the same mean here, and the first component is
compared with the one of a float64 solution that centres the moved table first.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from benchmarks import data
from benchmarks.environment import OURS, BenchmarkError, Settings
from benchmarks.memory import Fit
from benchmarks.quality import reference
from benchmarks.table import FAILED, Table, number, verdict

RIGHT_COSINE = 0.9999
RIGHT_RESIDUAL = 1e-5  # rounding of float32 components


@dataclass(frozen=True)
class Case:
    """A table, its dtype, and the mean added to every column."""

    name: str
    make: Callable[[Path | None], NDArray[Any]]
    dtype: DTypeLike
    mean: float
    k: int = 3


def _small(folder: Path | None) -> NDArray[Any]:
    """5,000 × 30, standard deviations from 5 down to 1."""
    return data.normal_table(5_000, np.linspace(5, 1, 30), np.float64)


CASES = (
    Case("offset-0", _small, np.float32, 0.0),
    Case("offset-1e3", _small, np.float32, 1e3),
    Case("offset-1e4", _small, np.float32, 1e4),
    Case("offset-1e8", _small, np.float64, 1e8),
    Case("offset-784", data.images, np.float32, 1e4),
    Case("offset-300", lambda folder: data.decaying(200_000, 300), np.float32, 1e4),
    Case("offset-100", lambda folder: data.decaying(1_000_000, 100), np.float32, 1e4),
)


def measure(case: Case, fits: Mapping[str, Fit], settings: Settings) -> dict[str, Any]:
    """Errors of every fit on the moved table."""
    print(f"pca: {case.name}", file=sys.stderr, flush=True)
    result: dict[str, Any] = {"name": case.name, "mean": case.mean, "k": case.k}
    try:
        X = case.make(settings.data)
        X = np.add(X, case.mean, out=X).astype(case.dtype, copy=False)
        truth = reference(X, case.k)
        result |= {"shape": list(X.shape), "dtype": str(X.dtype)}
        result["quality"] = {
            name: asdict(truth.judge(fit(X, case.k))) for name, fit in fits.items()
        }
        result["complaints"] = _complaints(result["quality"][OURS])
    except BenchmarkError:
        raise
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
    return result


def _complaints(ours: Mapping[str, float]) -> list[str]:
    found = []
    if not ours["cosine"] >= RIGHT_COSINE:
        found.append(f"cosine {ours['cosine']:.4f} below {RIGHT_COSINE}")
    if not ours["residual"] <= RIGHT_RESIDUAL:
        found.append(f"residual {ours['residual']:.1e} above {RIGHT_RESIDUAL:.0e}")
    return found


def offset_table(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """The cases as text."""
    header = ["row", "shape", "mean added", *(f"cosine {name}" for name in names)]
    header += [*(f"residual {name}" for name in names), "verdict"]
    caption = (
        "Far from the origin: |cos| between the first component and the true one, and the largest "
        f"relative residual. Ours must reach {RIGHT_COSINE} and {RIGHT_RESIDUAL:.0e}."
    )
    return Table(caption, header, [_cells(result, names) for result in results])


def _cells(result: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    mean = f"{result['mean']:.0e}" if result["mean"] else "0"
    if "error" in result:
        failure = f"{FAILED}: {' '.join(result['error'].split())}"
        return [result["name"], "–", mean, *["–"] * (2 * len(names)), failure]
    n, d = result["shape"]
    quality = [result["quality"][name] for name in names]
    return [
        result["name"],
        f"{n:,} × {d:,} {result['dtype']}",
        mean,
        *(number(each["cosine"], ".5f") for each in quality),
        *(number(each["residual"], ".1e") for each in quality),
        verdict(result["complaints"]),
    ]
