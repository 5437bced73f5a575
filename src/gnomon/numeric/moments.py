"""Mergeable second moments of a table.

PCA is read from these sums; streaming, weights, merging and distribution are all this one object.
The sums of a pair of tables, which Procrustes is read from, are in `procrustes/cross_moments.py`.
 With the total weight W = Σw, the mean μ and M₂ = Σ w (x − μ)(x − μ)ᵀ:

1. A block of rows is shifted (`scaling.py`), multiplied while it is in the cache, in the table's
   own precision, and added over at most 4,096 rows.
2. Blocks are added in float64, in block order, whichever finishes first.
3. The sums about the shift s become sums about the mean: M₂ = S − W δδᵀ, with δ = μ − s small.
4. Two sets are merged by Chan's formula: M₂ = M₂ᵃ + M₂ᵇ + (WᵃWᵇ/W)(μᵇ − μᵃ)(μᵇ − μᵃ)ᵀ; the same
   formula backwards removes one.

Only shifted numbers are squared. Without the shift the answer is silently wrong: at mean 1e8 and
spread 1 in float64, the plain sum of squares has eigenvalues off by 938, this one by 7.5e-13.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.kernels import kernel
from gnomon.compute.threads import fold_blocks, map_blocks, quiet, row_blocks
from gnomon.errors import DataError, UnavailableError
from gnomon.inputs import as_table, check_weights
from gnomon.models.fields import LARGEST_EXPONENT, Array, Real, RecordOf, UnfitError, Whole
from gnomon.numeric.roundoff import PRECISION, ROUNDINGS, largest_eigenvalue, relative_rounding
from gnomon.numeric.scaling import Rows, exponent_for, scratch
from gnomon.numeric.view import View, view_array
from gnomon.typing import Floats

__all__ = [
    "Moments",
    "column_moments",
    "distance_between",
    "in_one_unit",
    "moments_field",
    "rescale",
]

# Rows: longest sum in the table's own precision (step 1). More round more, and fewer cost more
# additions of d × d sums; errors and times are in `benchmarks/pca.py`.
FLUSH_ROWS = 4096
MOST_WEIGHT = 1e300  # largest total weight accepted from a model file
ROUNDED = 1.000001  # tolerance of Schwarz's inequality, for rounding
RANGE_NUMBERS = 2**20  # numbers per thread and range, when rows are short
COLUMN_SUM_RANGES = 8  # ranges of rows of a sparse table, each with sums of its own
# Numbers of a table that is summed in float64 directly, since comparing the rounding of float32
# costs more than float32 saves there (`benchmarks/crossovers.py`, "sums").
SHORT_NUMBERS = 2**16


@dataclass(frozen=True)
class Moments:
    """Count, weight, mean and second moments of a table's columns.

    Create it with `Moments.of`, merge two with ``a + b``, remove one with ``a - b``. Merging gives
    the same answer in any grouping up to rounding, and the same bits in the same order.

    Attributes
    ----------
    n : int
        Rows with a weight above 0.
    weight : float
        Σw, which is `n` without weights.
    shift : array (d,)
        Vector subtracted from every row before anything else, in the table's own type.
    offset : array (d,), float64
        Mean of the shifted rows, in units of 2^`exponent`.
    scatter : array (d, d) or (d,), float64
        M₂ about the mean in units of 4^`exponent`; only its diagonal when 1-D.
    exponent : int
        Power of two of the unit (`gnomon.numeric.scaling`); 0 unless numbers are extreme.
    rounding : float
        Estimated rounding error of `scatter`: a few times the working precision times the
        largest eigenvalue of the second moments about the shift (`roundoff`), plus that of merging.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> both = Moments.of(X[:4]) + Moments.of(X[4:])
    >>> bool(np.allclose(both.covariance(), np.cov(X.T)))
    True
    """

    n: int
    weight: float
    shift: NDArray[Any]
    offset: NDArray[np.float64]
    scatter: NDArray[np.float64]
    exponent: int
    rounding: float

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        X: Any,
        sample_weight: Any = None,
        *,
        shift: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        n_jobs: int | None = None,
    ) -> "Moments":
        """Compute the moments of the rows of `X`, in one pass.

        Parameters
        ----------
        X : array or CSR array, shape (n, d)
        sample_weight : array (n,), optional
            Frequencies: an integer weight counts as that many copies, 0 as an absent row.
        shift : array (d,), optional
            A common shift for sets that will be merged; by default close to the mean.
        dtype : optional
            float32 or float64, the precision of products; by default the table's own.
        n_jobs : int, optional
            Threads; they do not change the bits of the result.
        """
        table = as_table(X)
        weights = check_weights("sample_weight", sample_weight, table.shape[0], of="row")
        view = view_array(table, n_jobs, shift=shift, work=dtype, weights=weights)
        return moments_of(view, weights)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of every column, in the units of the table."""
        whole: NDArray[np.float64] = self.shift.astype(np.float64)
        return whole + np.ldexp(self.offset, self.exponent)

    def variance(self, ddof: int = 1) -> NDArray[np.float64]:
        """Variance of every column, in units of 4^`exponent`."""
        diagonal = self.scatter if self.scatter.ndim == 1 else np.diagonal(self.scatter)
        return diagonal / self.divisor(ddof)

    def covariance(self, ddof: int = 1) -> NDArray[np.float64]:
        """Covariance matrix, shape (d, d), in the units of the table."""
        if self.scatter.ndim == 1:
            raise UnavailableError("These moments hold variances only; no covariance was computed.")
        return np.ldexp(self.scatter / self.divisor(ddof), 2 * self.exponent)

    @property
    def size(self) -> int:
        """Effective number of rows, Σw for frequencies, but at least `n`."""
        return max(self.n, int(self.weight))

    def divisor(self, ddof: int) -> float:
        """Divisor of a variance, Σw − ddof."""
        if self.weight <= ddof:
            raise DataError(
                f"The total weight must be above ddof = {ddof}; got {self.weight:g} "
                f"({self.n} sample{'s' if self.n != 1 else ''}). Add rows, or use `ddof=0` for "
                "weights that sum to 1."
            )
        return self.weight - ddof

    def __add__(self, other: "Moments") -> "Moments":
        a, b = in_one_unit(self, other)
        delta = b.offset - a.offset + distance_between(b.shift, a.shift, a.exponent)
        weight = a.weight + b.weight
        share = b.weight / weight if weight else 0.0
        both = replace(
            a,
            n=a.n + b.n,
            weight=weight,
            offset=a.offset + share * delta,
            scatter=a.scatter + b.scatter + a.weight * share * _square(delta, a.scatter.ndim),
            rounding=_merged_rounding(a, b, a.weight * share * float(delta @ delta)),
        )
        return within_range(both)

    def __sub__(self, other: "Moments") -> "Moments":
        a, b = in_one_unit(self, other)
        weight = a.weight - b.weight
        if b.n > a.n or weight < 0 or (weight == 0 and a.n > b.n):
            raise DataError(f"Cannot take {b.n} rows out of {a.n}: they were never added.")
        if a.n == b.n:
            return replace(
                a, n=0, weight=0.0, offset=0 * a.offset, scatter=0 * a.scatter, rounding=0.0
            )
        # offset of what is left, from W μ = Wᵃ μᵃ − Wᵇ μᵇ taken about a's shift
        gap = distance_between(b.shift, a.shift, a.exponent)
        offset = a.offset + (b.weight / weight) * (a.offset - b.offset - gap)
        delta = b.offset + gap - offset
        lost = weight * b.weight / a.weight * _square(delta, a.scatter.ndim)
        return replace(
            a,
            n=a.n - b.n,
            weight=weight,
            offset=offset,
            scatter=a.scatter - b.scatter - lost,
            rounding=_merged_rounding(a, b, weight * b.weight / a.weight * float(delta @ delta)),
        )


def column_moments(
    view: View, weights: NDArray[np.float64] | None, *, precise: bool = False
) -> Moments:
    """Mean and variance of every column, without the d × d matrix, in one pass.

    A sparse table stays sparse, and a wide one in memory is read by columns, so that threads share
    it. `precise` adds squares in float64, for columns that will be divided by their spreads.
    """
    if precise:
        view = view.scaled(work=np.dtype(np.float64))
    rows, n_jobs = view.array, view.n_jobs
    n, d = view.shape
    if rows is None or (not view.is_sparse and n >= d):
        return moments_of(view, weights, diagonal=True)
    ones = np.ones(n) if weights is None else weights
    columns = _sparse_columns if view.is_sparse else _wide_columns
    found = columns(rows, ones, n_jobs)
    small = view.scaling.exponent == 0 and found.scatter.max(initial=0) < 1e-280
    if not np.isfinite(found.scatter).all() or (small and view.amplitude()):
        view.refuse_bad_values()
        exponent = exponent_for(view.amplitude(), view.work)
        found = columns(rows.scaled(exponent=exponent), ones, n_jobs)
    return within_range(found)


def _wide_columns(rows: Rows, ones: NDArray[np.float64], n_jobs: int | None) -> Moments:
    """Moments of a few columns at a time over all rows, each column about its own mean."""
    n, d = rows.shape
    total = float(ones.sum())
    root = np.sqrt(ones).astype(rows.work)[:, None]
    weighted = bool((ones != 1).any())
    offset, scatter = np.empty(d), np.empty(d)

    def block(start: int, stop: int) -> None:
        z = rows.read_columns(start, stop, scratch((n, stop - start), rows.work))
        offset[start:stop] = ones.astype(rows.work) @ z / total
        z -= offset[start:stop].astype(rows.work)
        if weighted:
            z *= root
        scatter[start:stop] = np.einsum("ij,ij->j", z, z)

    map_blocks(quiet(block), row_blocks(d, rows.block_columns()), n_jobs=n_jobs)
    rounding = ROUNDINGS * float(np.finfo(rows.work).eps) * float(scatter.max(initial=0.0))
    counted = int(np.count_nonzero(ones))
    scaling = rows.scaling
    return Moments(counted, total, scaling.shift, offset, scatter, scaling.exponent, rounding)


def _sparse_columns(rows: Rows, ones: NDArray[np.float64], n_jobs: int | None) -> Moments:
    """Σ w (x − μ)² from the stored entries, and μ² for each of the others."""
    n, d = rows.shape
    shift, exponent = rows.scaling.shift, rows.scaling.exponent
    total = float(ones.sum())
    X = rows.X
    data = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    if exponent:
        data = np.ldexp(data.astype(np.float64), -exponent)
    ranges = row_blocks(n, max(1, -(-n // COLUMN_SUM_RANGES)))

    def sums(mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ w, Σ w (x − mean) and Σ w (x − mean)² of the stored entries of every column."""
        found = np.zeros((3, d))

        def part(start: int, stop: int) -> NDArray[np.float64]:
            out = np.zeros((3, d))
            _add_columns(X.indptr, X.indices, data, ones, mean, out, start, stop)
            return out

        fold_blocks(part, ranges, found.__iadd__, n_jobs=n_jobs)
        return found

    mean = sums(np.zeros(d))[1] / total
    with np.errstate(over="ignore", invalid="ignore"):
        stored, _, squares = sums(mean)
        scatter = squares + np.maximum(total - stored, 0) * mean**2
    offset = mean - np.ldexp(shift.astype(np.float64), -exponent)
    with np.errstate(over="ignore", invalid="ignore"):
        about_zero = float((scatter + total * mean**2).max(initial=0.0))
    rounding = ROUNDINGS * float(np.finfo(np.float64).eps) * about_zero
    counted = int(np.count_nonzero(ones))
    return Moments(counted, total, shift, offset, scatter, exponent, rounding)


@kernel
def _add_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: Floats,
    weights: NDArray[np.float64],
    mean: NDArray[np.float64],
    out: NDArray[np.float64],
    start: int,
    stop: int,
) -> None:
    """Add w, w (x − mean) and w (x − mean)² of the entries in CSR of some rows, by column."""
    for i in range(start, stop):
        w = weights[i]
        for entry in range(indptr[i], indptr[i + 1]):
            column = indices[entry]
            away = data[entry] - mean[column]
            out[0, column] += w
            out[1, column] += w * away
            out[2, column] += w * away * away


def moments_of(
    view: View, weights: NDArray[np.float64] | None, *, diagonal: bool = False
) -> Moments:
    """Compute `Moments.of` for a table that is already prepared for reading."""
    product = _diagonal if diagonal else _symmetric
    if view.shape[0] * view.shape[1] <= SHORT_NUMBERS:
        view = view.scaled(work=np.dtype(np.float64))
    total = _sums_of(view, weights, product)
    if not np.isfinite(total.left).all() or not np.isfinite(total.second).all():
        view.refuse_bad_values()
    elif view.scaling.exponent != 0 or np.max(total.trace, initial=0) >= 1e-280:
        return total.about_the_mean(view)
    largest = view.amplitude()
    if not largest:
        return total.about_the_mean(view)
    # too large or too small to square: repeat with an exponent chosen from the whole table
    view = view.scaled(exponent=exponent_for(largest, view.work))
    return within_range(_sums_of(view, weights, product).about_the_mean(view))


def within_range(moments: Moments) -> Moments:
    """Return `moments` if they are finite; a finite square bounds every product with it."""
    scatter = moments.scatter
    if not np.isfinite(scatter if scatter.ndim == 1 else np.diagonal(scatter)).all():
        raise DataError(
            "Rows of X are further apart than the largest float, 1.8e308: their differences "
            "overflow. Divide X by 1000."
        )
    return moments


def _sums_of(view: View, weights: NDArray[np.float64] | None, product: "Product") -> "_Sums":
    of = partial(_sums, product=product)
    return view.total(of, _Sums.__add__, weights, grow=_Sums.grown)


Product = Callable[[Floats, Floats], None]
# Named here: annotations of inner functions are evaluated in every call, once for each part.
RangeSums = tuple[NDArray[np.float64], NDArray[Any]]  # of the rows, and of their products


def _symmetric(a: Floats, out: Floats) -> None:
    np.matmul(a.T, a, out=out)  # NumPy sees the same array twice and does half the work


def _diagonal(a: Floats, out: Floats) -> None:
    np.einsum("ij,ij->j", a, a, out=out)


@dataclass(frozen=True)
class _Sums:
    """Σ w x and Σ w x xᵀ of some rows about the shift (steps 1 and 2 of the module)."""

    n: int
    weight: float
    left: NDArray[np.float64]
    second: NDArray[np.float64]

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.n + other.n,
            self.weight + other.weight,
            self.left + other.left,
            self.second + other.second,
        )

    def grown(self, other: "_Sums") -> "_Sums":
        """Add `other` to `self` in the memory of `self`."""
        left, second = self.left, self.second
        left += other.left
        second += other.second
        return _Sums(self.n + other.n, self.weight + other.weight, left, second)

    @property
    def trace(self) -> NDArray[np.float64]:
        """Second moment of each column about the shift."""
        return self.second if self.second.ndim == 1 else np.diagonal(self.second)

    def about_the_mean(self, view: View) -> Moments:
        """Convert to moments about the mean (step 3 of the module); consumes the sums."""
        scaling = view.scaling
        offset = self.left / self.weight
        # arrays from another process are read-only
        scatter = self.second if self.second.flags.writeable else self.second.copy()
        size = largest_eigenvalue(scatter) if scatter.ndim == 2 else scatter.max(initial=0.0)
        rounding = relative_rounding(scaling, view.sample) * float(size)
        scatter -= self.weight * _square(offset, scatter.ndim)
        diagonal = scatter if scatter.ndim == 1 else np.einsum("ii->i", scatter)
        np.maximum(diagonal, 0, out=diagonal)
        exponent = scaling.exponent
        return Moments(self.n, self.weight, scaling.shift, offset, scatter, exponent, rounding)


def _sums(
    rows: Rows, weights: NDArray[np.float64] | None, n_jobs: int | None, *, product: Product
) -> _Sums:
    """Sums of one thread's ranges in the table's own precision, added in float64 in order."""
    roots = None if weights is None else np.sqrt(weights)
    n, d = rows.shape
    shape = (d,) if product is _diagonal else (d, d)
    total: list[NDArray[np.float64]] = []  # of the left, and of the products

    def share(start: int, stop: int) -> RangeSums:
        """Blocks that stay in the cache."""
        step = rows.scaling.block_rows()
        ours = scratch((step, d), rows.work)
        equal = np.ones(step, rows.work)
        precise = np.float64 if stop - start > FLUSH_ROWS else rows.work
        left, second = np.zeros(d), np.zeros(shape, precise)
        squares = np.empty(shape, rows.work)
        for at in range(start, stop, step):
            end = min(at + step, stop)
            a = rows.read(at, end, ours)
            ones = equal[: end - at]
            if roots is not None:
                ones = roots[at:end].astype(rows.work)
                a *= ones[:, None]
            left += ones @ a
            product(a, squares)
            second += squares
        return left, second

    def add(part: RangeSums) -> None:
        if total:
            for one, more in zip(total, part, strict=True):
                one += more
        else:
            total.extend(each.astype(np.float64, copy=False) for each in part)

    # Short rows: longer ranges, added in float64 within the range.
    longest = FLUSH_ROWS * max(1, -(-RANGE_NUMBERS // (FLUSH_ROWS * max(1, d))))
    ranges = row_blocks(n, rows.range_rows(longest))
    fold_blocks(quiet(share), ranges, add, n_jobs=n_jobs)
    counted = n if weights is None else int(np.count_nonzero(weights))
    weight = float(n) if weights is None else float(weights.sum())
    return _Sums(counted, weight, *(total or (np.zeros(d), np.zeros(shape))))


def _square(delta: NDArray[np.float64], ndim: int) -> NDArray[np.float64]:
    return delta * delta if ndim == 1 else np.outer(delta, delta)


def _merged_rounding(a: Moments, b: Moments, between: float) -> float:
    """Rounding error of a merged scatter; `between` is the contribution of the two means.

    The means themselves are off by a rounding of the rows' spread about them: with the relative
    error r of a side, its mean holds r · `rounding` of the squares. It enters times the distance
    of the means, as the root of the product of both.
    """
    means = sum(_relative(m) * m.rounding for m in (a, b))
    own = ROUNDINGS * PRECISION * between
    return a.rounding + b.rounding + own + 2 * float(np.sqrt(between * means))


def _relative(m: Moments) -> float:
    """Upper bound of the relative rounding of sums; λ₁ is at least the largest diagonal entry."""
    diagonal = m.scatter if m.scatter.ndim == 1 else np.diagonal(m.scatter)
    largest = float(diagonal.max(initial=0.0))
    return min(m.rounding / largest, 1.0) if largest > 0 else 0.0


def distance_between(b: NDArray[Any], a: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    """From a to b, in units of 2^exponent; exact for integers."""
    if b.shape != a.shape:
        raise DataError(f"The two tables have {a.size} and {b.size} columns; they must agree.")
    if b.dtype.kind in "iu" and a.dtype == b.dtype:
        away: NDArray[Any] = (b - a).view(np.int64)
    else:
        away = b.astype(np.float64) - a.astype(np.float64)
    return np.ldexp(away.astype(np.float64), -exponent)


def rescale(values: NDArray[np.float64], old: int, new: int) -> NDArray[np.float64]:
    """Values in units of 2^old in units of 2^new."""
    return values if old == new else np.ldexp(values, old - new)


def in_one_unit(a: Moments, b: Moments) -> tuple[Moments, Moments]:
    """Both in units of the larger exponent."""
    if a.scatter.shape != b.scatter.shape:
        raise DataError(
            f"The two sets of moments have shapes {a.scatter.shape} and {b.scatter.shape}; "
            "they must be of the same columns."
        )
    if a.exponent == b.exponent:
        return a, b
    new = max((m.exponent for m in (a, b) if m.n), default=0)

    def to(m: Moments) -> Moments:
        return replace(
            m,
            offset=rescale(m.offset, m.exponent, new),
            scatter=rescale(m.scatter, 2 * m.exponent, 2 * new),
            rounding=float(np.ldexp(m.rounding, 2 * (m.exponent - new))),
            exponent=new,
        )

    return to(a), to(b)


def moments_field(columns: str, *, square: bool) -> RecordOf:
    """Model-file field of the moments of a table with `columns`, a named size."""
    return RecordOf(
        Moments,
        {
            "n": Whole(),
            "weight": Real(0.0, MOST_WEIGHT),
            "shift": Array("f4 f8 i8 u8", columns),
            "offset": Array("f8", columns),
            "scatter": Array("f8", columns, columns) if square else Array("f8", columns),
            "exponent": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
            "rounding": Real(),
        },
        check=_check_scatter,
    )


def _check_scatter(moments: Moments) -> None:
    """Refuse matrices that are not second moments; LAPACK finds no eigenvectors of some."""
    scatter = moments.scatter
    square = scatter.ndim == 2
    largest = (np.diagonal(scatter) if square else scatter).max(initial=0.0)
    if (np.abs(scatter) > ROUNDED * largest).any() or (
        square and not np.allclose(scatter, scatter.T)
    ):
        raise UnfitError("its moments cannot come from a table")
