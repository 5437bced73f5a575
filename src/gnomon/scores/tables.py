"""Two tables of the same rows, checked and ready for distances by differences.

A distance is computed as √Σ(a − b)² in float64, one difference at a time. Far from zero that is as
right as the numbers themselves, and no shift is needed, since a − b is rounded once; copies are at
distance exactly 0. What differences do need:

- Range. Squares of numbers beyond about 1e±150 overflow or vanish, so such tables are divided by a
  power of two, which changes no digit. Numbers of float32 never get there.
- Long integers, which float64 cannot hold: their columns are shifted before they are converted.

A float32 or float64 table that lies in C order needs neither and is not copied.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import about_table, as_table, check_choice, is_sparse, refuse_bad_values

METRICS = ("euclidean", "cosine")
LEAST_ROWS = 3  # the fewest for which one neighbour is less than half of the rows

SAFE = 200  # differences of 2^±200 have squares, and so have those a hundred decades smaller
LARGEST = 1020  # the difference of two numbers of 2^1020 is finite
SAMPLE_ROWS = 1024
EXACT_INTEGERS = 2**53  # beyond it float64 has gaps

__all__ = ["METRICS", "GivenDistances", "read_data_or_distances", "read_pair", "read_points"]


class GivenDistances:
    """Distances between n rows that were computed elsewhere, in the place of a table.

    Attributes
    ----------
    sq : array (n, n)
        Their squares, relative to the largest.
    shape : tuple
        Rows and columns, as a table has them; there are as many columns as rows.
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
    """As `read_pair`; `X` holds distances (n, n) if `metric` is ``"precomputed"``."""
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
    """The data `X`, shape (n, d), by `metric` and its map `Y`, shape (n, p), by Euclid's.

    C-ordered, read-only arrays, the data of float32 or float64 and the map of float64, between
    whose rows the differences give the distances (by cosine: chords between rows of length 1, which
    are ordered as the angles are).
    """
    check_choice("metric", metric, METRICS)
    data, points = _read_both(X, Y)
    return _locked(_unit_rows(data) if metric == "cosine" else _ready(data)), points


def _read_both(X: Any, Y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both tables as they are given, the map ready for distances."""
    data, points = _read("X", X), _read("Y", Y)
    if data.shape[0] != points.shape[0]:
        refuse(
            "Y", f"have {data.shape[0]} rows, as many as `X`", points.shape[0],
            "Row i of both must be the same point.",
        )  # fmt: skip
    return data, _as_map(points)


def read_points(Y: Any) -> NDArray[Any]:
    """A map `Y`, shape (n, p), alone."""
    return _as_map(_read("Y", Y))


def _as_map(points: NDArray[Any]) -> NDArray[Any]:
    """In float64: maps are narrow, and every kernel is compiled for one kind of number less."""
    return _locked(_ready(points).astype(np.float64, copy=False))


def _locked(table: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: Numba compiles a kernel twice for arrays that are and are not."""
    table = table.view()
    table.flags.writeable = False
    return table


def _read(name: str, X: Any) -> NDArray[Any]:
    if is_sparse(X):
        refuse(
            name, "be dense: all distances from a row are needed, and those are not sparse",
            f"a sparse matrix of shape {X.shape}",
            "Give the reduced table, such as gnomon.PCA(50).fit_transform(X), or X.toarray().",
            kind=True,
        )  # fmt: skip
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
    """Long integers less the least of their column, where float64 would round them."""
    if max(int(A.max()), -int(A.min())) < EXACT_INTEGERS:
        return A
    # The difference may not fit into a signed number; modulo 2^64 it is right as an unsigned one.
    return np.asarray(A.astype(np.uint64) - A.min(axis=0).astype(np.uint64))


def _exponent(Z: NDArray[np.float64]) -> int:
    """The power of two to divide by; 0 where all squares exist anyway.

    It is that of the median deviation from the columns' medians, so that neither one wild row nor
    the distance from zero decides what vanishes. A row more than 1e150 times as far out is then
    infinitely far from all others, and has these in the order of their numbers; but all numbers
    stay finite, since ∞ − ∞ would be no distance at all.
    """
    some = np.ldexp(Z[:: -(-Z.shape[0] // SAMPLE_ROWS)], -2)  # so that sums of two exist
    sizes = np.abs(some - np.median(some, axis=0))
    sizes = sizes[sizes > 0]
    top = int(np.frexp(max(float(Z.max()), -float(Z.min())))[1])
    usual = int(np.frexp(np.median(sizes))[1]) + 2 if sizes.size else top
    if abs(usual) < SAFE:
        return 0
    return max(usual, top - LARGEST)


def _unit_rows(A: NDArray[Any]) -> NDArray[np.float64]:
    """Rows divided by their lengths."""
    Z = np.array(A, np.float64, order="C")
    largest = np.maximum(Z.max(axis=1), -Z.min(axis=1))
    zero = np.flatnonzero(largest == 0)
    if zero.size:
        raise DataError(
            f"Row {zero[0]} of X is all 0 and has no direction; `metric='cosine'` needs one. "
            "Drop that row or use 'euclidean'."
        )
    np.ldexp(Z, -np.frexp(largest)[1][:, None], out=Z)  # lengths exist at any scale
    Z /= np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
    return Z
