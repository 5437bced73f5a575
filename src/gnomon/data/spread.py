"""Where columns stand and how far they spread, of a table or of blocks of one.

1. A block is seen twice: its range chooses each column's power of two, its mean what is taken off.
2. What is kept of it is a `Tally`: count, mean, squares about the mean, range.
3. Two tallies make that of both by Chan's formula. Means are kept as two numbers, a rounded one and
   the rest: far from zero, rounded means alone put blocks of equal numbers apart.

Tables in memory and sources are measured alike; the bits depend on the blocks and their order.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, quiet, row_blocks
from gnomon.engine import Block, Engine, Source, as_engine
from gnomon.inputs.csr import is_sparse
from gnomon.typing import Vector

__all__ = ["Spread", "Tally", "measure_spread"]


BLOCK_NUMBERS = 2**20  # fixed: sums in the same order for any number of threads
SPARSE_TIMES = 2**6  # rows of a sparse block share the cost of its sums of all columns
LARGE = 400  # squares of numbers beyond 2^±400 leave the range of float64
NOTHING = -5000  # exponent of a column of zeros or gaps: less than that of any number
EQUAL = 1e-12  # a spread of less than this, beside the largest number, is rounding


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

    @classmethod
    def unmeasured(cls, columns: int) -> "Spread":
        """What is said of columns that were not measured: as if there were no values at all."""
        zeros, nothing = np.zeros(columns), np.full(columns, np.nan)
        return cls(zeros, zeros, nothing, nothing, np.zeros(columns, np.int64), whole=False)


@dataclass(frozen=True, eq=False)
class Tally:
    """What some rows add up to; ``a + b`` is that of the rows of both.

    Attributes
    ----------
    rows : int
    count : array (d,)
        Values that are known.
    centre, rest : array (d,)
        Their sum is the mean, in units of 2^`exponent`.
    squares : array (d,)
        Σ (x − mean)² in units of 4^`exponent`.
    exponent : array of int (d,)
        0 unless the numbers of a column are extremely large or small.
    low, high, whole
        As in `Spread`.
    """

    rows: int
    count: Vector
    centre: Vector
    rest: Vector
    squares: Vector
    exponent: NDArray[np.intc]
    low: Vector
    high: Vector
    whole: bool

    @classmethod
    def of(cls, X: Any, n_jobs: int | None = None) -> "Tally":
        """That of the rows of `X`, an array or CSR array (n, d) with n > 0."""
        n, width = X.shape
        if is_sparse(X):  # a block of columns' sums, and as many entries again
            width = width // SPARSE_TIMES + int(X.nnz) // n
        tally = _tally_sparse if is_sparse(X) else _tally
        blocks = row_blocks(n, max(1, BLOCK_NUMBERS // max(1, width)))
        parts = map_blocks(quiet(lambda a, b: tally(X[a:b])), blocks, n_jobs=n_jobs)
        return reduce(cls.__add__, parts)

    def __add__(self, other: "Tally") -> "Tally":
        exponent = np.maximum(self.exponent, other.exponent)
        a, b = self._in_units(exponent), other._in_units(exponent)
        n = np.maximum(a.count + b.count, 1)
        centre = np.where(a.count > 0, a.centre, b.centre)
        with np.errstate(invalid="ignore"):  # infinities are the caller's to refuse
            apart = (b.centre - centre) + (b.rest - a.rest)
            rest = a.rest + apart * (b.count / n)
            squares = a.squares + b.squares + apart**2 * (a.count * b.count / n)
        return Tally(
            rows=a.rows + b.rows,
            count=a.count + b.count,
            centre=centre,
            rest=rest,
            squares=squares,
            exponent=exponent,
            low=np.fmin(a.low, b.low),
            high=np.fmax(a.high, b.high),
            whole=a.whole and b.whole,
        )

    def _in_units(self, exponent: NDArray[np.intc]) -> "Tally":
        """Convert to larger units; what underflows is negligible beside the other tally."""
        less = self.exponent - exponent
        if not less.any():
            return self
        return replace(
            self,
            centre=np.ldexp(self.centre, less),
            rest=np.ldexp(self.rest, less),
            squares=np.ldexp(self.squares, 2 * less),
            exponent=exponent,
        )

    def spread(self) -> Spread:
        """What it says of the columns."""
        constant = self.low == self.high  # exactly: its mean and squares are rounded
        with np.errstate(invalid="ignore"):
            std = np.sqrt(np.maximum(self.squares, 0.0) / np.maximum(self.count - 1, 1))
            least = EQUAL * np.ldexp(_largest(self.low, self.high), -self.exponent)
            mean = np.ldexp(self.centre + self.rest, self.exponent)
        return Spread(
            mean=np.where(constant, self.low, mean),
            std=np.where(constant | (std <= least), 0.0, np.ldexp(std, self.exponent)),
            low=self.low,
            high=self.high,
            gaps=self.rows - self.count.astype(np.int64),
            whole=self.whole,
        )


def measure_spread(X: Any, engine: Engine | None = None, *, n_jobs: int | None = None) -> Spread:
    """Measure the columns of `X`, an array or source (n, d); infinities show in `low` and `high`.

    A source is read once, by `engine`.
    """
    if isinstance(X, Source):
        tally: Tally = as_engine(engine).reduce(_tally_block, X, Tally.__add__)
        return tally.spread()
    return Tally.of(X, n_jobs).spread()


def _tally_block(block: Block) -> Tally:
    return Tally.of(block.X, n_jobs=1)


def _tally_sparse(X: Any) -> Tally:
    """Measure a CSR array from its stored entries; all others are zeros."""
    n, d = X.shape
    values, at = X.data.astype(np.float64), X.indices
    known = ~np.isnan(values)
    stored = np.bincount(at, minlength=d)
    gaps = np.bincount(at[~known], minlength=d)
    count = n - gaps
    some = np.where(known, values, 0.0)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    np.fmin.at(low, at[known], values[known])
    np.fmax.at(high, at[known], values[known])
    zeros = stored < n
    low[zeros], high[zeros] = np.minimum(low[zeros], 0.0), np.maximum(high[zeros], 0.0)
    low[count == 0] = high[count == 0] = np.nan
    largest = _largest(low, high)
    exponent = np.frexp(largest)[1]
    exponent[np.abs(exponent) < LARGE] = 0
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.ldexp(some, -exponent[at])
        mean = np.bincount(at, unit, d) / np.maximum(count, 1)
        away = np.where(known, unit - mean[at], 0.0)
        squares = np.bincount(at, away**2, d) + (n - stored) * mean**2
    return Tally(
        rows=n,
        count=count.astype(np.float64),
        centre=mean,
        rest=np.zeros(d),
        squares=squares,
        exponent=np.where(largest > 0, exponent, NOTHING).astype(np.intc),
        low=low,
        high=high,
        whole=X.dtype.kind != "f" or bool((~known | (np.rint(values) == values)).all()),
    )


def _tally(X: NDArray[Any]) -> Tally:
    """The tally of rows that are few enough to be copied."""
    low = np.fmin.reduce(X, axis=0).astype(np.float64)
    high = np.fmax.reduce(X, axis=0).astype(np.float64)
    largest = _largest(low, high)
    exponent = np.frexp(largest)[1]
    exponent[np.abs(exponent) < LARGE] = 0
    part = X.astype(np.float64)
    if exponent.any():
        part = np.ldexp(part, -exponent)
    known = ~np.isnan(part)
    count = known.sum(axis=0).astype(np.float64)
    full = bool(known.all())
    some = np.maximum(count, 1)
    centre = (part if full else np.where(known, part, 0.0)).sum(axis=0) / some
    part -= centre
    if not full:
        part[~known] = 0.0
    # The mean of a block is rounded; what is left of it is taken off the squares.
    rest = part.sum(axis=0) / some
    return Tally(
        rows=len(X),
        count=count,
        centre=centre,
        rest=rest,
        squares=np.einsum("ij,ij->j", part, part) - count * rest**2,
        exponent=np.where(largest > 0, exponent, NOTHING).astype(np.intc),
        low=low,
        high=high,
        whole=X.dtype.kind != "f" or bool((np.isnan(X) | (np.rint(X) == X)).all()),
    )


def _largest(low: Vector, high: Vector) -> Vector:
    """The largest |x| of every column, 0 where there is none, and 1 for infinities."""
    return np.nan_to_num(np.fmax(np.abs(low), np.abs(high)), posinf=1.0)
