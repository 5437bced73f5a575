"""How rows are shifted and scaled before anything is summed.

A row x of the user's table becomes, in this order,

    z = ((x − shift) · 2^−exponent − offset) · factor · √weight

- `shift` is close to the mean and has the table's own type, so that the difference is exact where
  the numbers are close together: squares of unshifted numbers lose everything to cancellation
  (float32 at mean 1,000 and spread 5 has no correct digit left), and long integers lose digits in
  the conversion itself.
- `exponent` brings very large or very small numbers into the range where squares exist; a power of
  two changes no digit.
- `offset` is the rest of the mean, known after the first pass; `factor` standardises and weighs
  columns. Both are optional.

`Scaling` is that formula, without a table. `Rows` is an array that it is applied to, block by
block; a whole table, in memory or not, is a `gnomon.numeric.view.View`. Arrays of any order, type
and byte order, memory maps and CSR arrays are all read into one C-ordered buffer of the working
type, so that the bits of a result depend only on the numbers. The whole array is never copied.
"""

import threading
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.engine.source import partition_rows
from gnomon.errors import DataError
from gnomon.inputs import is_sparse
from gnomon.typing import Floats, Table

# A block of this many bytes stays in a core's cache while it is shifted and multiplied:
# `benchmarks/pca.py` times fits.
BLOCK_BYTES = 1_500_000
# Numbers of a table in columns; below, loading a compiled loop costs more than it saves, by
# `benchmarks/crossovers.py`, "columns".
LONG_NUMBERS = 2**26
SAMPLE_ROWS = 1024  # rows that a shift is taken from; any shift near the data will do
SAMPLE_NUMBERS = 2**18  # fewer rows when they are long

__all__ = [
    "BLOCK_BYTES",
    "Rows",
    "Scaling",
    "ShiftSample",
    "amplitude",
    "choose_scaling",
    "evenly_spaced",
    "exponent_for",
    "sample_size",
    "scale_rows",
    "scratch",
    "working_type",
]


class ShiftSample(NamedTuple):
    """Evenly spaced rows (m, d) of a table, unscaled and in C order, with their weights if any."""

    X: NDArray[Any]
    weights: NDArray[np.float64] | None


@dataclass(frozen=True)
class Scaling:
    """How every row is shifted and scaled (see the module); holds no table.

    Attributes
    ----------
    work : dtype
        The working type, float32 or float64.
    shift : array (d,)
    exponent : int
    offset, factor : array (d,) or None
        In units of 2^`exponent`; None means 0 and 1.
    """

    work: np.dtype[Any]
    shift: NDArray[Any]
    exponent: int = 0
    offset: NDArray[np.float64] | None = None
    factor: NDArray[np.float64] | None = None

    def apply(
        self,
        X: Any,
        *,
        columns: slice = slice(None),
        roots: NDArray[np.float64] | None = None,
        out: Floats | None = None,
        long: bool = False,
    ) -> Floats:
        """Shift and scale the rows of `X`, an array or CSR array of these `columns`.

        `roots` are √weight of the rows, `out` a buffer for the result; `long` enables the compiled
        loop.
        """
        if is_sparse(X):
            X = X.toarray()
        z = np.empty(X.shape, self.work) if out is None else _view(out, X.shape)
        shift = self.shift[columns]
        if long and _lies_in_columns(X, shift, z):
            _shift_and_turn(X.T, shift, z)
        else:
            _subtract(X, shift, z)
        if self.exponent:
            np.ldexp(z, -self.exponent, out=z)
        if self.offset is not None:
            z -= self.offset[columns].astype(self.work)
        if self.factor is not None:
            z *= self.factor[columns].astype(self.work)
        if roots is not None:
            z *= roots[:, None].astype(self.work)
        return z

    def as_they_are(self, dtype: np.dtype[Any]) -> "Scaling | None":
        """Scaling without a shift, for floats that are not scaled; otherwise None."""
        if dtype.kind != "f" or self.shift.dtype != self.work or self.factor is not None:
            return None
        return replace(self, shift=np.zeros_like(self.shift), offset=None)

    def about_rounded_mean(self) -> tuple["Scaling", NDArray[np.float64]]:
        """Scaling with one subtraction instead of two for centred rows, and its error δ.

        The offset is folded into the shift, as far as the working type can hold it. Rows then lie
        about the mean plus δ, in the units of the table; δ is returned.
        """
        assert self.offset is not None
        if self.shift.dtype != self.work:
            return self, np.zeros(self.shift.size)
        offset = np.ldexp(self.offset, self.exponent)
        shift = (self.shift + offset).astype(self.work)
        delta = np.ldexp((self.shift.astype(np.float64) - shift) + offset, -self.exponent)
        if self.factor is not None:
            delta *= self.factor
        return replace(self, shift=shift, offset=None), delta

    @property
    def mean(self) -> NDArray[np.float64]:
        """Total that is subtracted from a row, in units of 2^`exponent`."""
        shift = np.ldexp(self.shift.astype(np.float64), -self.exponent)
        return shift if self.offset is None else shift + self.offset

    def block_rows(self, most: int = 4096) -> int:
        """Number of rows in a block that stays in the cache."""
        return max(32, min(most, BLOCK_BYTES // max(1, self.work.itemsize * self.shift.size)))

    def range_rows(self, rows: int, longest: int) -> int:
        """Number of rows in a range of a part of `rows` rows; the sums of ranges are added.

        At most `longest` rows may be added in the working precision. A full part has two ranges
        where that allows it: every range ends in a sum in float64, and threads share the last part
        of a table. Otherwise a range is a whole number of blocks. A shorter part may be a whole
        table, which threads share: then at least 16 ranges, if they fit.
        """
        step = self.block_rows()
        full = rows >= partition_rows(self.shift.size)
        if full and rows <= longest:
            return -(-rows // 2)
        even = rows if full else -(-rows // 16)
        return min(max(step, longest // step * step), -(-even // step) * step)


@dataclass(frozen=True)
class Rows:
    """An array in memory, or a block of a table, and the scaling for reading it."""

    X: Table
    scaling: Scaling
    roots: NDArray[np.float64] | None = None  # √weight of every row
    names: NDArray[Any] | None = None  # column names, for error messages
    long: bool | None = None  # whether the table of this block is long; None for a whole table

    @property
    def work(self) -> np.dtype[Any]:
        """The working type."""
        return self.scaling.work

    @property
    def is_long(self) -> bool:
        """Whether compiled loops are faster."""
        return self.shape[0] * self.shape[1] >= LONG_NUMBERS if self.long is None else self.long

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the array."""
        n, d = self.X.shape
        return int(n), int(d)

    def range_rows(self, longest: int) -> int:
        """Number of rows in a range; see `Scaling.range_rows`."""
        return self.scaling.range_rows(self.shape[0], longest)

    def block_columns(self) -> int:
        """Number of columns in a block that stays in the cache when all rows are read."""
        return max(32, BLOCK_BYTES // max(1, self.work.itemsize * self.shape[0]))

    def read(self, start: int, stop: int, out: Floats | None = None) -> Floats:
        """Rows `start` to `stop`, shape (stop − start, d), in the buffer `out` if there is one."""
        roots = None if self.roots is None else self.roots[start:stop]
        return self.scaling.apply(self.X[start:stop], roots=roots, out=out, long=self.is_long)

    def read_columns(self, start: int, stop: int, out: Floats | None = None) -> Floats:
        """All rows of columns `start` to `stop`, shape (n, stop − start)."""
        part, at = self.X[:, start:stop], slice(start, stop)
        return self.scaling.apply(part, columns=at, roots=self.roots, out=out, long=self.is_long)

    def view(self, start: int, stop: int, out: Floats | None = None) -> Floats:
        """Unshifted rows: a view of the array where it has the layout of a block."""
        plain = not is_sparse(self.X) and self.X.flags.c_contiguous
        if plain and self.X.dtype == self.work and not self.scaling.exponent:
            own: Floats = self.X[start:stop]
            return own
        return self.read(start, stop, out)

    def scaled(self, **changes: Any) -> "Rows":
        """Copy with `changes` to the fields of its scaling."""
        return replace(self, scaling=replace(self.scaling, **changes))


class _Scratch(threading.local):
    """Buffers that a thread reuses: allocating memory costs as much as the arithmetic."""

    def __init__(self) -> None:
        self.bytes: dict[int, NDArray[np.uint8]] = {}


_scratch = _Scratch()


def scratch(shape: tuple[int, int], dtype: np.dtype[Any], slot: int = 0) -> Floats:
    """Uninitialised array of this thread, valid until the thread requests that slot again."""
    size = shape[0] * shape[1] * dtype.itemsize
    buffer = _scratch.bytes.get(slot)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        if size <= 4 * BLOCK_BYTES:  # larger ones are not kept
            _scratch.bytes[slot] = buffer
    return buffer[:size].view(dtype).reshape(shape)


def _view(buffer: Floats, shape: tuple[int, ...]) -> Floats:
    """A C-ordered view of `shape` at the beginning of `buffer`."""
    return buffer.ravel()[: shape[0] * shape[1]].reshape(shape)


def _subtract(part: NDArray[Any], shift: NDArray[Any], out: Floats) -> None:
    """``out = part − shift``, exactly where the type of `shift` allows it."""
    if shift.dtype.kind in "iu":
        _subtract_integers(part, shift, out)
    elif shift.dtype.itemsize > out.dtype.itemsize:
        # float32 rows, model fitted in float64: the difference needs float64
        out[...] = part.astype(shift.dtype) - shift
    else:
        np.subtract(part, shift, out=out, dtype=out.dtype, casting="unsafe")


def _lies_in_columns(part: NDArray[Any], shift: NDArray[Any], out: Floats) -> bool:
    """Whether the numbers are of the working type and lie column after column."""
    return bool(part.dtype == shift.dtype == out.dtype and part.strides[0] == part.itemsize)


@kernel
def _shift_and_turn(columns: Floats, shift: Floats, out: Floats) -> None:
    """out[i, j] = columns[j, i] − shift[j]: the same bits as NumPy in a third of the time."""
    d, m = columns.shape
    fours = d // 4 * 4
    for j in range(0, fours, 4):  # four columns fill a vector register
        a, b, c, e = shift[j], shift[j + 1], shift[j + 2], shift[j + 3]
        for i in range(m):
            out[i, j] = columns[j, i] - a
            out[i, j + 1] = columns[j + 1, i] - b
            out[i, j + 2] = columns[j + 2, i] - c
            out[i, j + 3] = columns[j + 3, i] - e
    for j in range(fours, d):
        for i in range(m):
            out[i, j] = columns[j, i] - shift[j]


def _subtract_integers(part: NDArray[Any], shift: NDArray[Any], out: Floats) -> None:
    """Subtract long integers before converting them, unless the difference would wrap around."""
    rough = part.astype(np.float64) - shift.astype(np.float64)
    out[...] = rough
    if part.dtype.kind == shift.dtype.kind and part.dtype.itemsize == shift.dtype.itemsize:
        near = np.abs(rough) < 2.0**62
        exact = (part.astype(shift.dtype) - shift).view(np.int64)
        out[near] = exact[near]


def working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for tables of float32 or float16, float64 for all others."""
    small = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def scale_rows(
    X: Table,
    *,
    shift: NDArray[Any] | None = None,
    work: DTypeLike | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Rows:
    """`X`, an array, with a shift and an exponent chosen from about a thousand evenly spaced rows.

    Evenly spaced, because the first rows may differ from the rest (blank lines before the data).
    The rows are copied to C order first: NumPy adds a Fortran-ordered array in another order. Rows
    of weight 0 are left out.
    """
    present = None if weights is None else np.flatnonzero(weights)
    n = int(X.shape[0]) if present is None else present.size
    if n == 0:
        raise DataError("There are no rows, or every weight is 0. Add rows or weights.")
    at = evenly_spaced(n, sample_size(X.shape[1]))
    at = at if present is None else present[at]
    rows = X[at].toarray() if is_sparse(X) else X[at]
    sample = ShiftSample(np.ascontiguousarray(rows), None if weights is None else weights[at])
    return Rows(X, choose_scaling(X.dtype, sample, shift, work, weights))


def evenly_spaced(n: int, few: int) -> NDArray[np.intp]:
    """At most `few` of the numbers from 0 to n − 1, the first and the last among them."""
    if n <= few:
        return np.arange(n)
    return np.linspace(0, n - 1, few).astype(np.intp)


def sample_size(columns: int) -> int:
    """Number of rows that are sampled to choose a shift."""
    return max(32, min(SAMPLE_ROWS, SAMPLE_NUMBERS // max(1, columns)))


def choose_scaling(
    dtype: np.dtype[Any],
    sample: ShiftSample,
    shift: NDArray[Any] | None = None,
    work: DTypeLike | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Scaling:
    """Working type, shift and exponent for a table of `dtype`, from a `sample` of its rows.

    `weights` are the weights of all rows.
    """
    work_type = working_type(dtype) if work is None else np.dtype(work)
    if weights is not None and not 1e-12 < weights.max(initial=0.0) < 1e12:
        work_type = np.dtype(np.float64)  # products of weights would leave the range of float32
    if shift is None:
        long = _needs_integers(sample.X)
        shift = _integer_shift(sample.X) if long else _float_shift(sample.X, work_type)
    scaling = Scaling(work_type, shift)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(scaling.apply(sample.X)).max(initial=0)
    return replace(scaling, exponent=exponent_for(float(largest), work_type))


def exponent_for(largest: float, work: np.dtype[Any]) -> int:
    """The power of two to divide by, so that squares of numbers up to `largest` can be added."""
    if not np.isfinite(largest) or largest == 0:
        return 0
    exponent = int(np.frexp(largest)[1])
    harmless = 40 if work.itemsize == 4 else 120  # squares of variances must be representable too
    return 0 if abs(exponent) <= harmless else exponent


def amplitude(rows: Rows, n_jobs: int | None) -> float:
    """Largest |x − shift| of the whole array: one pass, for tables whose sample was misleading."""
    scaling = rows.scaling
    plain = Rows(rows.X, Scaling(scaling.work, scaling.shift))

    def largest(start: int, stop: int) -> float:
        return float(np.abs(plain.read(start, stop)).max(initial=0))

    blocks = row_blocks(rows.shape[0], scaling.block_rows())
    return max(map_blocks(largest, blocks, n_jobs=n_jobs), default=0.0)


def _float_shift(sample: NDArray[Any], work: np.dtype[Any]) -> NDArray[Any]:
    # NaN and infinities are found, with their position, later. Dividing first cannot overflow.
    with np.errstate(invalid="ignore", over="ignore"):
        mean = (sample * (1.0 / len(sample))).sum(axis=0, dtype=np.float64)
        if work.itemsize == 4 and np.isfinite(mean).all():
            mean = _short(mean, sample.max(axis=0) - sample.min(axis=0))
    shift: NDArray[Any] = mean.astype(work)
    return shift


def _short(mean: NDArray[np.float64], spread: NDArray[Any]) -> NDArray[np.float64]:
    """Round `mean` to a hundredth of `spread` in binary.

    Whole numbers, and others with few digits, then keep few digits about the shift too, and their
    products and sums are exact in float32.
    """
    digits = np.frexp(spread.astype(np.float64))[1] - 7
    short: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(mean, -digits)), digits)
    return np.where((spread > 0) & np.isfinite(short), short, mean)


def _needs_integers(sample: NDArray[Any]) -> bool:
    """Whether 64-bit integers exceed 2^53, but lie within 2^62 of each other in every column."""
    if sample.dtype.kind not in "iu" or sample.dtype.itemsize < 8 or sample.size == 0:
        return False
    low, high = sample.min(axis=0).astype(object), sample.max(axis=0).astype(object)
    far = max(max(map(abs, low)), max(map(abs, high))) > 2**53
    return bool(far and max(high - low) < 2**62)


def _integer_shift(sample: NDArray[Any]) -> NDArray[Any]:
    """The sample's mean as integers of the table's own type, computed without overflow."""
    base = sample[0]
    away = (sample - base).view(np.int64).astype(np.float64).mean(axis=0)
    shift: NDArray[Any] = base + np.rint(away).astype(np.int64).view(base.dtype)
    return shift.astype(sample.dtype.newbyteorder("="))
