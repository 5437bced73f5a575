"""The sample of rows that are scored, and the standard error of its mean.

Scores of a row are always exact: it is ranked against all n rows. Only the mean is sampled, if
there are more rows than `EXACT_UP_TO`: over m rows drawn without replacement, with the standard
error s/√m · √(1 − m/n) [Cochran 1977]; it is 0 if all rows are scored.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.inputs import check_integer
from gnomon.records import Record
from gnomon.typing import Floats64

# Time against a standard error. Scoring all of 5,000 rows takes two or three times as long as a
# sample (`benchmarks/crossovers.py`, "sample"); all rows of 5,000 are as many distances as 1,000
# rows of 25,000. A sample of 1,000 rows gives any share a standard error of at most 0.5/√1000 =
# 0.016.
EXACT_UP_TO = 5_000  # rows
SAMPLE = 1_000  # rows

__all__ = ["EXACT_UP_TO", "SAMPLE", "PointScores", "choose_rows"]


@dataclass(frozen=True, eq=False)
class PointScores(Record):
    """One score of m points, for several sizes of neighbourhood.

    Attributes
    ----------
    n_neighbors : tuple of int
        The sizes k.
    points : array (m, len(n_neighbors))
        Score of each point; NaN if it has none.
    n : int
        Number of rows of the table, of which m were scored.
    """

    n_neighbors: tuple[int, ...]
    points: Floats64 = field(repr=False)
    n: int

    @property
    def mean(self) -> Floats64:
        """Mean over the scored points that have a score, for each k; NaN if none has."""
        known = np.isfinite(self.points)
        with np.errstate(invalid="ignore"):
            means: Floats64 = np.where(known, self.points, 0.0).sum(axis=0) / known.sum(axis=0)
        return means

    @property
    def standard_error(self) -> Floats64:
        """Standard error of `mean` as an estimate of the mean over all rows, for each k."""
        known = np.isfinite(self.points)
        counts = known.sum(axis=0)
        if len(self.points) == self.n:
            return np.where(counts > 0, 0.0, np.nan)
        away = np.where(known, self.points - self.mean, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            variances = (away**2).sum(axis=0) / (counts - 1) / counts
        return np.asarray(np.sqrt(variances * (1 - len(self.points) / self.n)))

    def title(self) -> str:
        """One-line summary."""
        return f"Mean of {len(self.points):,} of {self.n:,} rows, by number of neighbours"

    def lines(self) -> list[tuple[str, str]]:
        """One line for each k."""
        return [(str(k), text) for k, text in zip(self.n_neighbors, self.cells(), strict=True)]

    def cells(self) -> list[str]:
        """Mean and standard error for each k, as text."""
        exact = len(self.points) == self.n
        pairs = zip(self.mean, self.standard_error, strict=True)
        return [say(value, None if exact else error) for value, error in pairs]

    def to_dict(self) -> dict[str, Any]:
        """Means and standard errors by k, without the points."""
        return {
            "n_neighbors": list(self.n_neighbors),
            "mean": [none_if_nan(value) for value in self.mean],
            "standard_error": [none_if_nan(value) for value in self.standard_error],
        }


def say(value: float, error: float | None = None) -> str:
    """Format a score; a dash if it is NaN."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {error:.4f}"


def none_if_nan(value: float) -> float | None:
    """Return `value`, or None for NaN, which JSON does not support."""
    return float(value) if np.isfinite(value) else None


def choose_rows(n: int, sample: Any, generator: np.random.Generator) -> NDArray[np.int64]:
    """Choose the rows to score, ascending: all, or `sample` of them, drawn by `generator`."""
    if isinstance(sample, str) and sample == "all":
        size = n
    elif isinstance(sample, str):
        refuse("sample", f"be 'all', None or an integer from 2 to {n}", sample)
    elif sample is None:
        size = n if n <= EXACT_UP_TO else SAMPLE
    else:
        size = check_integer("sample", sample, 2, n, "'all' scores every row.")
    if size == n:
        return np.arange(n, dtype=np.int64)
    return np.sort(generator.choice(n, size, replace=False)).astype(np.int64)
