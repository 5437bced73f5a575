"""Mergeable second moments of one table, or of a pair of tables.

PCA and Procrustes are read from these sums; streaming, weights, merging and distribution are all
this one object. With the total weight W = Σw, the mean μ and M₂ = Σ w (x − μ)(x − μ)ᵀ:

1. A block of rows is shifted (`scaling.py`), multiplied while it is in the cache, in the table's
   own precision, and added over at most 4,096 rows.
2. Blocks are added in float64, in their order, whichever finishes first.
3. The sums about the shift s become sums about the mean: M₂ = S − W δδᵀ, with δ = μ − s small.
4. Two sets are merged by Chan's formula: M₂ = M₂ᵃ + M₂ᵇ + (WᵃWᵇ/W)(μᵇ − μᵃ)(μᵇ − μᵃ)ᵀ; one is
   taken out again by the same formula backwards.

Squares are always of shifted numbers. Without that the answer is silently wrong: at mean 1e8 and
spread 1 in float64, the plain sum of squares has eigenvalues off by 938, this one by 7.5e-13.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, map_blocks, quiet, row_blocks
from gnomon.errors import DataError, UnavailableError
from gnomon.inputs import as_table, check_weights
from gnomon.models.fields import EXPONENTS, Array, Real, RecordOf, UnfitError, Whole
from gnomon.numeric.roundoff import PRECISION, ROUNDINGS, largest_eigenvalue, relative_rounding
from gnomon.numeric.scaling import Rows, exponent_for, scratch
from gnomon.numeric.view import View, view_array
from gnomon.typing import Floats

__all__ = ["CrossMoments", "Moments", "check_cross", "column_moments", "moments_field"]

FLUSH_ROWS = 4096  # a sum in the table's own precision goes no further than this
MOST_WEIGHT = 1e300  # of a table in a model file
ROUNDED = 1.000001  # by how much Schwarz's inequality may be missed
RANGE_NUMBERS = 2**20  # what one thread takes at a time, when rows are short
SHORT_NUMBERS = 2**16  # of a table that is summed in float64 at once


@dataclass(frozen=True)
class Moments:
    """Count, weight, mean and second moments of a table's columns.

    Build it with `Moments.of`, add two with ``a + b``, take one out with ``a - b``. Merging gives
    the same answer in any grouping to rounding, and the same bits in the same order.

    Attributes
    ----------
    n : int
        Rows with a weight above 0.
    weight : float
        Σw, which is `n` without weights.
    shift : array (d,)
        What was subtracted from every row before anything else, in the table's own type.
    offset : array (d,), float64
        Mean of the shifted rows, in units of 2^`exponent`.
    scatter : array (d, d) or (d,), float64
        M₂ about the mean in units of 4^`exponent`; only its diagonal when 1-D.
    exponent : int
        See `gnomon.numeric.scaling`; 0 unless the numbers are extremely large or small.
    rounding : float
        Estimated error of `scatter` from rounding: a few times the working precision times the
        largest eigenvalue of the second moments about the shift (`roundoff`), and that of merging.

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
        """Moments of the rows of `X`, in one pass.

        Parameters
        ----------
        X : array or CSR array, shape (n, d)
        sample_weight : array (n,), optional
            Frequencies: an integer weight is that many copies, 0 is an absent row.
        shift : array (d,), optional
            A common shift for sets that will be merged; by default close to the mean.
        dtype : optional
            float32 or float64, the precision of products; by default the table's own.
        n_jobs : int, optional
            Threads; the result's bits do not depend on it.
        """
        table = as_table(X)
        weights = check_weights("sample_weight", sample_weight, table.shape[0], of="row")
        view = view_array(table, n_jobs, shift=shift, work=dtype, weights=weights)
        return moments_of(view, weights)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of every column, in the table's own units."""
        whole: NDArray[np.float64] = self.shift.astype(np.float64)
        return whole + np.ldexp(self.offset, self.exponent)

    def variance(self, ddof: int = 1) -> NDArray[np.float64]:
        """Variance of every column, in units of 4^`exponent`."""
        diagonal = self.scatter if self.scatter.ndim == 1 else np.diagonal(self.scatter)
        return diagonal / self.divisor(ddof)

    def covariance(self, ddof: int = 1) -> NDArray[np.float64]:
        """Covariance matrix, shape (d, d), in the table's own units."""
        if self.scatter.ndim == 1:
            raise UnavailableError("These moments hold variances only; no covariance was computed.")
        return np.ldexp(self.scatter / self.divisor(ddof), 2 * self.exponent)

    @property
    def size(self) -> int:
        """How many rows these count as: Σw for frequencies, never fewer than there are."""
        return max(self.n, int(self.weight))

    def divisor(self, ddof: int) -> float:
        """Σw − ddof."""
        if self.weight <= ddof:
            raise DataError(
                f"The total weight must be above ddof = {ddof}; got {self.weight:g} "
                f"({self.n} sample{'s' if self.n != 1 else ''}). Add rows, or use `ddof=0` for "
                "weights that sum to 1."
            )
        return self.weight - ddof

    def __add__(self, other: "Moments") -> "Moments":
        a, b = _one_exponent(self, other)
        delta = b.offset - a.offset + _distance(b.shift, a.shift, a.exponent)
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
        return _within_range(both)

    def __sub__(self, other: "Moments") -> "Moments":
        a, b = _one_exponent(self, other)
        weight = a.weight - b.weight
        if b.n > a.n or weight < 0 or (weight == 0 and a.n > b.n):
            raise DataError(f"Cannot take {b.n} rows out of {a.n}: they were never added.")
        if a.n == b.n:
            return replace(
                a, n=0, weight=0.0, offset=0 * a.offset, scatter=0 * a.scatter, rounding=0.0
            )
        # offset of what is left, from W μ = Wᵃ μᵃ − Wᵇ μᵇ taken about a's shift
        gap = _distance(b.shift, a.shift, a.exponent)
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


@dataclass(frozen=True)
class CrossMoments:
    """Moments of X and Y row by row, and Σ w (x − μₓ)(y − μᵧ)ᵀ: what Procrustes is read from.

    Attributes
    ----------
    x, y : Moments
        Each side's count, mean and column variances (1-D `scatter`).
    cross : array (dx, dy), float64
        Σ w (x − μₓ)(y − μᵧ)ᵀ in units of 2^(x.exponent + y.exponent).
    """

    x: Moments
    y: Moments
    cross: NDArray[np.float64]

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        *,
        shifts: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
        n_jobs: int | None = None,
    ) -> "CrossMoments":
        """Moments of paired rows, in one pass; parameters as in `Moments.of`."""
        tables = as_table(X), as_table(Y)
        n, m = (table.shape[0] for table in tables)
        if m != n:
            raise DataError(f"X and Y must have the same number of rows; got {n} and {m}.")
        weights = check_weights("sample_weight", sample_weight, n, of="row")
        views = [
            view_array(table, n_jobs, shift=shift, weights=weights)
            for table, shift in zip(tables, shifts, strict=True)
        ]
        x, y = (column_moments(view, weights) for view in views)
        scalings = [
            replace(view.scaling, exponent=side.exponent)
            for view, side in zip(views, (x, y), strict=True)
        ]
        left, right = (Rows(table, how) for table, how in zip(tables, scalings, strict=True))
        sums = _sums(left, right, weights, _crosswise, n_jobs)
        return cls(x, y, sums.second - x.weight * np.outer(x.offset, y.offset))

    def __add__(self, other: "CrossMoments") -> "CrossMoments":
        (ax, bx), (ay, by) = _one_exponent(self.x, other.x), _one_exponent(self.y, other.y)
        dx = bx.offset - ax.offset + _distance(bx.shift, ax.shift, ax.exponent)
        dy = by.offset - ay.offset + _distance(by.shift, ay.shift, ay.exponent)
        weight = ax.weight + bx.weight
        share = ax.weight * (bx.weight / weight) if weight else 0.0
        mine = _rescale(self.cross, self.x.exponent + self.y.exponent, ax.exponent + ay.exponent)
        yours = _rescale(
            other.cross, other.x.exponent + other.y.exponent, ax.exponent + ay.exponent
        )
        return CrossMoments(ax + bx, ay + by, mine + yours + share * np.outer(dx, dy))

    def __sub__(self, other: "CrossMoments") -> "CrossMoments":
        x, y = self.x - other.x, self.y - other.y
        if x.n == 0:
            return CrossMoments(x, y, 0 * self.cross)
        # Chan's formula backwards: what is left, merged with `other`, gives `self`
        unit = x.exponent + y.exponent
        left = CrossMoments(x, y, np.zeros_like(self.cross))
        none = replace(other, cross=np.zeros_like(other.cross))
        between = _rescale((left + none).cross, _units(left + none), unit)
        mine = _rescale(self.cross, _units(self), unit)
        yours = _rescale(other.cross, _units(other), unit)
        return CrossMoments(x, y, mine - yours - between)


def _units(moments: CrossMoments) -> int:
    return moments.x.exponent + moments.y.exponent


def column_moments(
    view: View, weights: NDArray[np.float64] | None, *, precise: bool = False
) -> Moments:
    """Mean and variance of every column, without the d × d matrix, in one pass.

    A sparse table stays sparse, and a wide one in memory is read by columns, so that threads share
    it. Squares are added in float64 if `precise`: where columns are divided by their spreads.
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
    return _within_range(found)


def _wide_columns(rows: Rows, ones: NDArray[np.float64], n_jobs: int | None) -> Moments:
    """All rows of a few columns at a time: each column about its own mean."""
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


def _sparse_columns(rows: Rows, ones: NDArray[np.float64], _: int | None) -> Moments:
    """Σ w (x − μ)² from the stored entries, and μ² for each of the others."""
    d = rows.shape[1]
    shift, exponent = rows.scaling.shift, rows.scaling.exponent
    total = float(ones.sum())
    X = rows.X
    data = np.ldexp(X.data.astype(np.float64), -exponent)
    each = np.repeat(ones, np.diff(X.indptr)) if (ones != 1).any() else None
    mean = np.bincount(X.indices, data if each is None else data * each, d) / total
    stored = np.bincount(X.indices, each, d)
    with np.errstate(over="ignore", invalid="ignore"):
        data -= mean[X.indices]
        data *= data
        squares = np.bincount(X.indices, data if each is None else data * each, d)
        scatter = squares + np.maximum(total - stored, 0) * mean**2
    offset = mean - np.ldexp(shift.astype(np.float64), -exponent)
    with np.errstate(over="ignore", invalid="ignore"):
        about_zero = float((scatter + total * mean**2).max(initial=0.0))
    rounding = ROUNDINGS * float(np.finfo(np.float64).eps) * about_zero
    counted = int(np.count_nonzero(ones))
    return Moments(counted, total, shift, offset, scatter, exponent, rounding)


def moments_of(
    view: View, weights: NDArray[np.float64] | None, *, diagonal: bool = False
) -> Moments:
    """`Moments.of` for a table that is already prepared for reading."""
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
    # too large or too small to square: once more, with the exponent that the whole table asks for
    view = view.scaled(exponent=exponent_for(largest, view.work))
    return _within_range(_sums_of(view, weights, product).about_the_mean(view))


def _within_range(moments: Moments) -> Moments:
    """`moments`, if they are numbers: a square that is one bounds every product with it."""
    scatter = moments.scatter
    if not np.isfinite(scatter if scatter.ndim == 1 else np.diagonal(scatter)).all():
        raise DataError(
            "Rows of X are further apart than the largest float, 1.8e308, so that no difference "
            "of theirs can be computed. Divide X by 1000."
        )
    return moments


def _sums_of(view: View, weights: NDArray[np.float64] | None, product: "Product") -> "_Sums":
    of = partial(_sums_of_rows, product=product)
    return view.total(of, _Sums.__add__, weights, grow=_Sums.grown)


def _sums_of_rows(
    rows: Rows, weights: NDArray[np.float64] | None, n_jobs: int | None, *, product: "Product"
) -> "_Sums":
    return _sums(rows, rows, weights, product, n_jobs)


Product = Callable[[Floats, Floats, Floats], None]


def _symmetric(a: Floats, _: Floats, out: Floats) -> None:
    np.matmul(a.T, a, out=out)  # NumPy sees the same array twice and does half the work


def _crosswise(a: Floats, b: Floats, out: Floats) -> None:
    np.matmul(a.T, b, out=out)


def _diagonal(a: Floats, _: Floats, out: Floats) -> None:
    np.einsum("ij,ij->j", a, a, out=out)


@dataclass(frozen=True)
class _Sums:
    """Σ w x and Σ w x yᵀ of some rows about the shift (steps 1 and 2 of the module)."""

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
        """Step 3 of the module; the sums themselves are used up."""
        scaling = view.scaling
        offset = self.left / self.weight
        # what came from another process cannot be written to
        scatter = self.second if self.second.flags.writeable else self.second.copy()
        size = largest_eigenvalue(scatter) if scatter.ndim == 2 else scatter.max(initial=0.0)
        rounding = relative_rounding(scaling, view.sample) * float(size)
        scatter -= self.weight * _square(offset, scatter.ndim)
        diagonal = scatter if scatter.ndim == 1 else np.einsum("ii->i", scatter)
        np.maximum(diagonal, 0, out=diagonal)
        exponent = scaling.exponent
        return Moments(self.n, self.weight, scaling.shift, offset, scatter, exponent, rounding)


def _sums(
    rows: Rows,
    other: Rows,
    weights: NDArray[np.float64] | None,
    product: Product,
    n_jobs: int | None,
) -> _Sums:
    """One thread's shares, in the table's own precision, added in float64 in their order."""
    roots = None if weights is None else np.sqrt(weights)
    n, d = rows.shape
    shape = (d,) if product is _diagonal else (d, other.shape[1])
    total: list[NDArray[np.float64]] = []  # of the left, and of the products

    def share(start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Blocks that stay in the cache."""
        step = min(rows.scaling.block_rows(), other.scaling.block_rows())
        ours = scratch((step, d), rows.work)
        theirs = ours if other is rows else scratch((step, other.shape[1]), other.work, slot=1)
        work = np.result_type(rows.work, other.work)
        precise = np.float64 if stop - start > FLUSH_ROWS else work
        left, second = np.zeros(d), np.zeros(shape, precise)
        squares = np.empty(shape, work)
        for at in range(start, stop, step):
            end = min(at + step, stop)
            a = rows.read(at, end, ours)
            b = a if other is rows else other.read(at, end, theirs)
            ones = np.ones(end - at, rows.work)
            if roots is not None:
                ones = roots[at:end].astype(rows.work)
                a *= ones[:, None]
                if b is not a:
                    b *= ones[:, None]
            left += ones @ a
            product(a, b, squares)
            second += squares
        return left, second

    def add(part: tuple[NDArray[np.float64], NDArray[Any]]) -> None:
        if total:
            for one, more in zip(total, part, strict=True):
                one += more
        else:
            total.extend(each.astype(np.float64, copy=False) for each in part)

    # Short rows: more of them at a time, added in float64 within the range.
    longest = FLUSH_ROWS * max(1, -(-RANGE_NUMBERS // (FLUSH_ROWS * max(1, d))))
    at_once = min(rows.range_rows(longest), other.range_rows(longest))
    fold_blocks(quiet(share), row_blocks(n, at_once), add, n_jobs=n_jobs)
    counted = n if weights is None else int(np.count_nonzero(weights))
    weight = float(n) if weights is None else float(weights.sum())
    return _Sums(counted, weight, *(total or (np.zeros(d), np.zeros(shape))))


def _square(delta: NDArray[np.float64], ndim: int) -> NDArray[np.float64]:
    return delta * delta if ndim == 1 else np.outer(delta, delta)


def _merged_rounding(a: Moments, b: Moments, between: float) -> float:
    """Error of a merged scatter, `between` being the part of it that comes from the two means.

    The means themselves are off by a rounding of the rows' spread about them: with the relative
    error r of a side, its mean holds r · `rounding` of the squares. That enters times the distance
    of the means, as the root of the product of both.
    """
    means = sum(_relative(m) * m.rounding for m in (a, b))
    own = ROUNDINGS * PRECISION * between
    return a.rounding + b.rounding + own + 2 * float(np.sqrt(between * means))


def _relative(m: Moments) -> float:
    """Relative rounding of sums, at most; λ₁ is no less than the largest of the diagonal."""
    diagonal = m.scatter if m.scatter.ndim == 1 else np.diagonal(m.scatter)
    largest = float(diagonal.max(initial=0.0))
    return min(m.rounding / largest, 1.0) if largest > 0 else 0.0


def _distance(b: NDArray[Any], a: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    """From a to b, in units of 2^exponent; exact for integers."""
    if b.shape != a.shape:
        raise DataError(f"The two tables have {a.size} and {b.size} columns; they must agree.")
    if b.dtype.kind in "iu" and a.dtype == b.dtype:
        away: NDArray[Any] = (b - a).view(np.int64)
    else:
        away = b.astype(np.float64) - a.astype(np.float64)
    return np.ldexp(away.astype(np.float64), -exponent)


def _rescale(values: NDArray[np.float64], old: int, new: int) -> NDArray[np.float64]:
    return values if old == new else np.ldexp(values, old - new)


def _one_exponent(a: Moments, b: Moments) -> tuple[Moments, Moments]:
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
            offset=_rescale(m.offset, m.exponent, new),
            scatter=_rescale(m.scatter, 2 * m.exponent, 2 * new),
            rounding=float(np.ldexp(m.rounding, 2 * (m.exponent - new))),
            exponent=new,
        )

    return to(a), to(b)


def moments_field(columns: str, *, square: bool) -> RecordOf:
    """How a model file holds moments: of a table with `columns`, a named size."""
    return RecordOf(
        Moments,
        {
            "n": Whole(),
            "weight": Real(0.0, MOST_WEIGHT),
            "shift": Array("f4 f8 i8 u8", columns),
            "offset": Array("f8", columns),
            "scatter": Array("f8", columns, columns) if square else Array("f8", columns),
            "exponent": Whole(-EXPONENTS, EXPONENTS),
            "rounding": Real(),
        },
        check=_check_scatter,
    )


def _check_scatter(moments: Moments) -> None:
    """Refuse what is no matrix of second moments; LAPACK finds no eigenvectors of some."""
    scatter = moments.scatter
    square = scatter.ndim == 2
    largest = (np.diagonal(scatter) if square else scatter).max(initial=0.0)
    if (np.abs(scatter) > ROUNDED * largest).any() or (
        square and not np.allclose(scatter, scatter.T)
    ):
        raise UnfitError("its moments are those of no table")


def check_cross(moments: CrossMoments) -> None:
    """Refuse cross moments of no pair of tables: products are at most the roots of squares."""
    roots = [np.sqrt(part.scatter.max(initial=0.0)) for part in (moments.x, moments.y)]
    if (np.abs(moments.cross) > ROUNDED * roots[0] * roots[1]).any():
        raise UnfitError("its moments are those of no pair of tables")
