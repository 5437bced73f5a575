"""Rounding error of sums of products in the table's own precision.

Rounding errors mostly cancel: sums over flat, steep, one-sided and image data are off by 0.1 to
4 times eps · λ₁, and `ROUNDINGS` allows twice that. The exception is columns with few distinct
values, such as 0 and 0.3: equal products are added repeatedly, and every addition errs in the
same direction, up to 55 eps · λ₁.

- In float32, products of at most a thousand evenly spaced rows are compared with the same
  products in float64.
- In float64 there is no higher precision to compare with. Where a column has few values, that
  largest error is assumed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.numeric.scaling import Scaling, ShiftSample, evenly_spaced

# Measured as the head says.
ROUNDINGS = 8.0  # assumed error of a sum in units of eps · λ₁, at least
MARGIN = 2.5  # whole tables were off by up to 1.7 times the error of the rows compared
COMPARED_SIDE = 256  # columns or rows of the product that is compared
FEW_VALUES = 8  # distinct values in a column
FEW_VALUES_SIDE = 64  # rows, and columns, that are searched for few values
FEW_VALUES_FACTOR = 8.0  # factor of the error for columns of few values
PRECISION = 2.0**-52

__all__ = ["PRECISION", "ROUNDINGS", "largest_eigenvalue", "relative_rounding"]


def relative_rounding(scaling: Scaling, sample: ShiftSample | None, *, wide: bool = False) -> float:
    """Estimated error of ZᵀZ, or of ZZᵀ if `wide`, relative to its largest eigenvalue.

    `sample` holds some rows of the table.
    """
    least = ROUNDINGS * float(np.finfo(scaling.work).eps)
    if sample is None:
        return least
    X, weights = sample
    if scaling.work.itemsize > 4:
        return FEW_VALUES_FACTOR * least if _has_few_values(X) else least
    roots = None if weights is None else np.sqrt(weights)
    Z = Scaling(scaling.work, scaling.shift, scaling.exponent).apply(X, roots=roots)
    if wide:
        Z = np.ascontiguousarray(Z.T)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = np.einsum("ij,ij->j", Z, Z, dtype=np.float64)
        return max(least, MARGIN * _measured(Z[:, _some(energy)]))


def _has_few_values(X: NDArray[Any]) -> bool:
    """Whether one of the columns has more than one value, but not many."""
    n, d = X.shape
    rows, columns = evenly_spaced(n, FEW_VALUES_SIDE), evenly_spaced(d, FEW_VALUES_SIDE)
    part = np.sort(X[rows[:, None], columns], axis=0)
    values = 1 + np.count_nonzero(part[1:] != part[:-1], axis=0)
    few = min(FEW_VALUES, len(part) // 2)
    return bool(((values > 1) & (values <= few)).any())


def _some(energy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Columns to compare: those that hold most of the sum, and evenly spaced ones."""
    if energy.size <= COMPARED_SIDE:
        return np.flatnonzero(energy > 0)
    most = np.argpartition(-energy, COMPARED_SIDE // 2)[: COMPARED_SIDE // 2]
    others = np.setdiff1d(evenly_spaced(energy.size, COMPARED_SIDE), most)
    chosen = np.concatenate([most, others[:: max(1, -(-2 * others.size // COMPARED_SIDE))]])
    seen: NDArray[np.intp] = chosen[energy[chosen] > 0]
    return seen


def _measured(Z: NDArray[Any]) -> float:
    """Relative error of ZᵀZ in the precision of `Z`: as given, and with columns of equal size."""
    if not Z.size:
        return 0.0
    exact = Z.astype(np.float64)
    S = exact.T @ exact
    E = np.matmul(Z.T, Z) - S
    if not np.isfinite(E).all():  # out of range; the sums of the table will show it
        return 0.0
    length = np.sqrt(np.diagonal(S))
    scaled = np.outer(length, length)
    return max(
        largest_eigenvalue(E) / largest_eigenvalue(S),
        largest_eigenvalue(E / scaled) / largest_eigenvalue(S / scaled),
    )


def largest_eigenvalue(S: NDArray[np.float64]) -> float:
    """Estimate the largest absolute eigenvalue of a symmetric matrix by power iteration.

    Starts from the longest column; a lower bound of the right magnitude.
    """
    v = S[:, int(np.argmax(np.einsum("ij,ij->j", S, S)))] if S.size else np.zeros(0)
    size = 0.0
    for _ in range(8):
        size = float(np.linalg.norm(v))
        if not np.isfinite(size) or size == 0:
            return size
        v = S @ (v / size)
    return float(np.linalg.norm(v))
