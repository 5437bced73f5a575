"""Two tables of the same rows, checked and ready for distances by differences.

A distance is computed as √Σ(a − b)² in float64, one difference at a time. Far from zero that is as
accurate as the numbers themselves without a shift, since a − b is rounded once; copies are at
distance exactly 0. Differences need care for:

- Range. Squares of numbers beyond about 1e±150 overflow or underflow, so such tables are divided by
  a power of two, which changes no digit. float32 numbers never get there.
- Long integers, which float64 cannot represent: their columns are shifted before conversion.

A C-ordered float32 or float64 table needs neither and is not copied.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import about_table, as_table, check_choice, is_sparse, refuse_bad_values

METRICS = ("euclidean", "cosine")
LEAST_ROWS = 3  # fewest rows for which one neighbour is less than half of them

SAFE_EXPONENT = 200  # exponent up to which squares of differences neither overflow nor underflow
LARGEST_EXPONENT = 1020  # exponent: differences of numbers up to 2^1020 are finite
SAMPLE_ROWS = 1024  # rows, or up to twice as many, that medians are taken of
EXACT_INTEGERS = 2**53  # float64 represents all integers up to this

__all__ = ["METRICS", "GivenDistances", "read_data_or_distances", "read_pair", "read_points"]


class GivenDistances:
    """Precomputed distances between n rows, instead of a table.

    Attributes
    ----------
    sq : array (n, n)
        Squared distances, relative to the largest.
    shape : tuple
        Rows and columns as of a table, both n.
    """

    def __init__(self, D: NDArray[Any]) -> None:
        largest = float(D.max(initial=0.0))
        self.sq = np.square(np.asarray(D, np.float64) / (largest if largest > 0 else 1.0))
        self.shape = self.sq.shape

    def __len__(self) -> int:
        return len(self.sq)


def read_data_or_distances(
    X: Any, Y: Any, metric: str
) -> tuple[NDArray[Any] | GivenDistances, NDArray[Any]]:
    """Read a pair as `read_pair`; `X` holds distances if `metric` is ``"precomputed"``."""
    check_choice("metric", metric, (*METRICS, "precomputed"))
    if metric != "precomputed":
        return read_pair(X, Y, metric)
    D, W = _read_both(X, Y)
    if D.shape[0] != D.shape[1]:
        refuse("X", "be a square table of distances for metric='precomputed'", f"shape {D.shape}")
    if (D < 0).any():
        refuse("X", "hold distances, none of them negative", float(D.min()))
    return GivenDistances(D), W


def read_pair(X: Any, Y: Any, metric: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the data `X`, shape (n, d), for `metric` and its Euclidean map `Y`, shape (n, p).

    Returns C-ordered, read-only arrays, the data float32 or float64 and the map float64, whose
    differences give the distances (for cosine: chords between rows of length 1, which are
    ordered like the angles).
    """
    check_choice("metric", metric, METRICS)
    data, points = _read_both(X, Y)
    return _read_only(_unit_rows(data) if metric == "cosine" else _ready(data)), points


def _read_both(X: Any, Y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check both tables; the map is ready for distances."""
    data, points = _read("X", X), _read("Y", Y)
    if data.shape[0] != points.shape[0]:
        refuse(
            "Y",
            f"have {data.shape[0]} rows, as many as `X`",
            points.shape[0],
            "Row i of both must be the same point.",
        )
    return data, _as_map(points)


def read_points(Y: Any) -> NDArray[Any]:
    """Read a map `Y`, shape (n, p), alone."""
    return _as_map(_read("Y", Y))


def _as_map(points: NDArray[Any]) -> NDArray[Any]:
    """Convert to float64: maps are narrow, and every kernel is compiled for one type less."""
    return _read_only(_ready(points).astype(np.float64, copy=False))


def _read_only(table: NDArray[Any]) -> NDArray[Any]:
    """Read-only view: Numba would compile a kernel twice for read-only and writable arrays."""
    table = table.view()
    table.flags.writeable = False
    return table


def _read(name: str, X: Any) -> NDArray[Any]:
    if is_sparse(X):
        refuse(
            name,
            "be dense: all distances from a row are needed, and those are not sparse",
            f"a sparse matrix of shape {X.shape}",
            "Give the reduced table, such as gnomon.PCA(50).fit_transform(X), or X.toarray().",
            kind=True,
        )
    with about_table(name):
        table = as_table(X)
    refuse_bad_values(table, table=name)
    if table.shape[0] < LEAST_ROWS or table.shape[1] < 1:
        refuse(name, f"have at least {LEAST_ROWS} rows and 1 column", f"shape {table.shape}")
    return np.asarray(table)


def _ready(A: NDArray[Any]) -> NDArray[Any]:
    if A.dtype.kind in "iu" and A.dtype.itemsize > 4:
        A = _shifted_integers(A)
    if np.can_cast(A.dtype, np.float32):
        return np.ascontiguousarray(A, np.float32)
    Z = np.ascontiguousarray(A, np.float64)
    exponent = _exponent(Z)
    return np.ldexp(Z, -exponent) if exponent else Z


def _shifted_integers(A: NDArray[Any]) -> NDArray[Any]:
    """Subtract the least of each column from long integers that float64 would round."""
    if max(int(A.max()), -int(A.min())) < EXACT_INTEGERS:
        return A
    # The difference may overflow a signed integer; modulo 2^64 it is right as an unsigned one.
    return np.asarray(A.astype(np.uint64) - A.min(axis=0).astype(np.uint64))


def _exponent(Z: NDArray[np.float64]) -> int:
    """Power of two to divide by; 0 if no square overflows or underflows.

    It is that of the median deviation from the columns' medians, so that neither one outlier nor
    the distance from zero decides what underflows. A row more than 1e150 times as far out is then
    infinitely far from all others, and has them in the order of their numbers; but all numbers
    stay finite, since ∞ − ∞ is undefined.
    """
    some = np.ldexp(Z[:: -(-Z.shape[0] // SAMPLE_ROWS)], -2)  # so that sums of two do not overflow
    sizes = np.abs(some - np.median(some, axis=0))
    sizes = sizes[sizes > 0]
    top = int(np.frexp(max(float(Z.max()), -float(Z.min())))[1])
    usual = int(np.frexp(np.median(sizes))[1]) + 2 if sizes.size else top
    if abs(usual) < SAFE_EXPONENT:
        return 0
    return max(usual, top - LARGEST_EXPONENT)


def _unit_rows(A: NDArray[Any]) -> NDArray[np.float64]:
    """Divide rows by their lengths."""
    Z = np.array(A, np.float64, order="C")
    largest = np.maximum(Z.max(axis=1), -Z.min(axis=1))
    zero = np.flatnonzero(largest == 0)
    if zero.size:
        raise DataError(
            f"Row {zero[0]} of X is all 0 and has no direction; `metric='cosine'` needs one. "
            "Drop that row or use 'euclidean'."
        )
    np.ldexp(Z, -np.frexp(largest)[1][:, None], out=Z)  # lengths neither overflow nor underflow
    Z /= np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
    return Z
