"""Where columns stand and how far they spread, in one pass after a look at their range."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.parallel import map_blocks, row_blocks

__all__ = ["Spread", "measure_spread"]

Vector = NDArray[np.float64]

BLOCK_NUMBERS = 2**20  # fixed: sums in the same order for any number of threads
LARGE = 400  # squares of numbers beyond 2^±400 leave the range of float64


@dataclass(frozen=True, eq=False)
class Spread:
    """What is known of every column; missing values are passed over.

    Attributes
    ----------
    mean, std : array (d,)
        The standard deviation is that of a sample, divided by n − 1. It is 0 where a column is
        constant up to rounding. Both are 0 where there is no value at all.
    low, high : array (d,)
        NaN where there is no value at all.
    gaps : array of int (d,)
        Missing values.
    whole : bool
        Whether all values are whole numbers.
    """

    mean: Vector
    std: Vector
    low: Vector
    high: Vector
    gaps: NDArray[np.int64]
    whole: bool


def measure_spread(X: NDArray[Any], n_jobs: int | None = None) -> Spread:
    """Measure the columns of `X`, shape (n, d); infinities show in `low` and `high`."""
    n, d = X.shape
    blocks = row_blocks(n, max(1, BLOCK_NUMBERS // max(1, d)))

    def see(start: int, stop: int) -> tuple[Vector, Vector, bool]:
        part = X[start:stop]
        whole = part.dtype.kind != "f" or bool((np.isnan(part) | (np.rint(part) == part)).all())
        low, high = np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)
        return low.astype(np.float64), high.astype(np.float64), whole

    seen = map_blocks(see, blocks, n_jobs=n_jobs)
    low = np.fmin.reduce([part[0] for part in seen], axis=0)
    high = np.fmax.reduce([part[1] for part in seen], axis=0)
    largest = np.nan_to_num(np.fmax(np.abs(low), np.abs(high)), posinf=0.0)
    exponent = np.frexp(largest)[1]
    exponent[np.abs(exponent) < LARGE] = 0

    def sums(start: int, stop: int) -> tuple[Vector, Vector, Vector]:
        part = X[start:stop].astype(np.float64)
        if exponent.any():
            part = np.ldexp(part, -exponent)
        known = ~np.isnan(part)
        count = known.sum(axis=0).astype(np.float64)
        whole = bool(known.all())
        mean = (part if whole else np.where(known, part, 0.0)).sum(axis=0) / np.maximum(count, 1)
        part -= mean
        if not whole:
            part[~known] = 0.0
        # The mean of a block is rounded; what is left of it is taken off the squares.
        rest = part.sum(axis=0) / np.maximum(count, 1)
        return count, mean + rest, np.einsum("ij,ij->j", part, part) - count * rest**2

    count, mean, squares = (np.zeros(d) for _ in range(3))
    with np.errstate(invalid="ignore"):  # infinities are the caller's to refuse
        for more, centre, scatter in map_blocks(sums, blocks, n_jobs=n_jobs):
            total = np.maximum(count + more, 1)
            apart = centre - mean
            mean = mean + apart * more / total
            squares = squares + scatter + apart**2 * count * more / total
            count = count + more
        std = np.sqrt(np.maximum(squares, 0.0) / np.maximum(count - 1, 1))
        std = np.where(std <= 1e-12 * np.ldexp(largest, -exponent), 0.0, std)
    return Spread(
        mean=np.ldexp(mean, exponent),
        std=np.ldexp(std, exponent),
        low=low,
        high=high,
        gaps=n - count.astype(np.int64),
        whole=all(part[2] for part in seen),
    )
