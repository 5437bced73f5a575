"""Rows transformed so that their Euclidean distances represent another metric.

====================  ===========================================  =================================
metric                rows                                         distance, from the Euclidean r
====================  ===========================================  =================================
``"euclidean"``       as they are                                  r
``"cosine"``          divided by their lengths                     the angle, 2 arcsin(r/2)
``"correlation"``     less their means, divided by their lengths   the angle, 2 arcsin(r/2)
``"hellinger"``       √(x/Σx) / √2                                 r
====================  ===========================================  =================================

So every Euclidean search finds neighbours by these metrics too.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import is_sparse
from gnomon.typing import Floats64, Table

METRICS = ("euclidean", "cosine", "correlation", "hellinger")
ANGLES = ("cosine", "correlation")

__all__ = ["ANGLES", "METRICS", "changed_rows", "unit_rows"]


def changed_rows(X: Table, metric: Any, numbers: NDArray[np.intp] | None = None) -> Any:
    """Transform the rows of `X` for `metric`; unchanged for Euclidean and scikit-learn's metrics.

    Errors name rows by `numbers`, if given. Sparse tables stay sparse.
    """
    if metric == "cosine":
        return unit_rows(X, numbers)
    if metric == "correlation":
        if is_sparse(X):
            refuse(
                "X",
                "be dense for metric='correlation'",
                "a sparse table",
                "Use metric='cosine', or X.toarray().",
            )
        Z = np.asarray(X, np.float64)
        return unit_rows(Z - Z.mean(axis=1, keepdims=True), numbers, "constant", "correlation")
    if metric == "hellinger":
        return _root_shares(X, numbers)
    return X


def unit_rows(
    X: Any,
    numbers: NDArray[np.intp] | None = None,
    what: str = "all 0",
    metric: str = "cosine",
) -> Any:
    """Divide rows by their lengths; rows of zeros are refused, named by `numbers` if given."""
    if is_sparse(X):
        largest = abs(X).max(axis=1).toarray()
        Z = _over(X, largest)
        norms = np.sqrt(Z.multiply(Z).sum(axis=1))
    else:
        Z = np.asarray(X, np.float64)
        Z = Z / np.maximum(np.abs(Z).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        norms = np.linalg.norm(Z, axis=1)
    zero = np.flatnonzero(norms == 0)
    if zero.size:
        row = _number(zero[0], numbers)
        raise DataError(f"Row {row} of X is {what} and has no direction; {metric} needs one.")
    return _over(Z, norms) if is_sparse(X) else np.asarray(Z / norms[:, None])


def _root_shares(X: Table, numbers: NDArray[np.intp] | None) -> Any:
    """√(x/Σx) / √2 of each row."""
    values = X.data if is_sparse(X) else np.asarray(X)
    if values.size and values.min() < 0:
        refuse("X", "hold no negative numbers for metric='hellinger'", float(values.min()))
    Z = sp.csr_array(X).astype(np.float64) if is_sparse(X) else np.asarray(X, np.float64)
    sums: Floats64 = np.asarray(Z.sum(axis=1))
    zero = np.flatnonzero(sums == 0)
    if zero.size:
        row = _number(zero[0], numbers)
        raise DataError(f"Row {row} of X is all 0 and has no shares; hellinger needs some.")
    if is_sparse(X):
        return _over(Z, 2 * sums).sqrt()
    return np.sqrt(np.asarray(Z) / (2 * sums)[:, None])


def _over(X: Any, divisors: Floats64) -> Any:
    """Divide the rows of a sparse table by their divisors; rows of zeros stay."""
    inverse = np.divide(1.0, divisors, out=np.zeros_like(divisors, float), where=divisors > 0)
    return sp.csr_array(sp.diags_array(inverse) @ X.astype(np.float64))


def _number(row: Any, numbers: NDArray[np.intp] | None) -> int:
    return int(row if numbers is None else numbers[row])
