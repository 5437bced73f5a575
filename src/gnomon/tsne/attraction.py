"""The pull of each point's neighbours, over the rows of P.

    Σ_j p_ij w_ij (y_i − y_j),   w_ij = 1/(1 + |y_i − y_j|²/α)

and, in the same loop, the degree Σ_j p_ij w_ij, which the point's step is divided by.

P is CSR with uint32 indices and float32 values; the loop runs at the speed of memory, since all
that it indexes with is unsigned (signed numbers may be negative, which is tested: twice the time).
In the plane the two coordinates of a neighbour are fetched as one number of 64 bits: three quarters
of the time. A second loop adds up Σ p_ij log(1 + d_ij/α), from which KL follows, when it is asked
for.

With weights, p_ij is the mass between the w_i copies of i and the w_j copies of j, and the pull is
that on one copy: p_ij / w_i. The diagonal holds what copies of a point give each other, and counts
in the degree.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats32, Floats64, Table

ROWS = 2048  # of P at a time
# Where the first and the second coordinate lie within the 64 bits of a point in the plane.
X_BITS, Y_BITS = (np.uint64(at) for at in ((0, 32) if sys.byteorder == "little" else (32, 0)))

__all__ = ["Attraction", "log_masses"]


class Attraction:
    """P, laid out for the descent.

    Parameters
    ----------
    P : CSR array (n, n)
        Symmetric, summing to 1.
    dof : float
        α.
    weights : array (n,), optional
        How many copies each point stands for.
    """

    def __init__(
        self, P: Table, dof: float, n_jobs: int | None = None, weights: Floats64 | None = None
    ) -> None:
        self.indptr = P.indptr.astype(np.uint64)
        short = P.indices.itemsize == 4
        self.indices = P.indices.view(np.uint32) if short else P.indices.astype(np.uint32)
        self.values = P.data.astype(np.float32, copy=False)
        self.weights = np.ones(P.shape[0]) if weights is None else weights
        self.weighted = bool(self.weights.max(initial=1) > 1)
        self.dof, self.n_jobs = dof, n_jobs
        self.negative_entropy = log_masses(P, weights, n_jobs)

    def pull(self, Y: Floats32) -> tuple[Floats32, Floats32]:
        """Pull on one copy of every point, shape (n, dimensions), and its degree, shape (n,)."""
        out, degree, block = self.pull_by_blocks(Y)
        map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=self.n_jobs)
        return out, degree

    def pull_by_blocks(self, Y: Floats32) -> tuple[Floats32, Floats32, Callable[[int, int], None]]:
        """Arrays for pull and degree, and a function that computes them for a range of rows."""
        out, degree = np.empty(Y.shape, np.float32), np.empty(len(Y), np.float32)
        inverse, points = np.float32(1 / self.dof), _points(Y)
        work = _PULL[Y.shape[1]]

        def block(start: int, stop: int) -> None:
            work(self.indptr, self.indices, self.values, points, inverse, out, degree, start, stop)
            if self.weighted:
                out[start:stop] /= self.weights[start:stop, None]
                degree[start:stop] /= self.weights[start:stop]

        return out, degree, block

    def kl(self, Y: Floats32, total: float) -> float:
        """KL(P‖Q) = Σ p log p + (α+1)/2 Σ p log(1 + d/α) + log Z, with Z = `total`."""
        inverse, points = np.float32(1 / self.dof), _points(Y)
        work = _LOG_SUM[Y.shape[1]]

        def block(start: int, stop: int) -> float:
            return float(work(self.indptr, self.indices, self.values, points, inverse, start, stop))

        parts = map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=self.n_jobs)
        return float(self.negative_entropy + (self.dof + 1) / 2 * sum(parts) + np.log(total))

    def reordered(self, order: NDArray[np.intp]) -> "Attraction":
        """Renumber the points: the new i-th point is the old `order[i]`."""
        new = object.__new__(Attraction)
        new.dof, new.n_jobs, new.negative_entropy = self.dof, self.n_jobs, self.negative_entropy
        new.weights, new.weighted = self.weights[order], self.weighted
        place = np.empty(order.size, np.uint32)
        place[order] = np.arange(order.size, dtype=np.uint32)
        lengths = np.diff(self.indptr)[order]
        new.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
        new.indices, new.values = np.empty_like(self.indices), np.empty_like(self.values)

        def block(start: int, stop: int) -> None:
            _permute(
                self.indptr,
                self.indices,
                self.values,
                order,
                place,
                new.indptr,
                new.indices,
                new.values,
                start,
                stop,
            )

        map_blocks(block, row_blocks(order.size, ROWS), n_jobs=self.n_jobs)
        return new


def _points(Y: Floats32) -> NDArray[Any]:
    """What the loops read positions from: `Y` itself, or in the plane 64 bits a point (n,)."""
    if Y.shape[1] != 2:
        return Y
    return np.ascontiguousarray(Y, np.float32).view(np.uint64).reshape(-1)


def log_masses(P: Table, weights: Floats64 | None = None, n_jobs: int | None = None) -> float:
    """Σ p log p over copies: a pair of points with masses w_i, w_j is w_i·w_j pairs of copies.

    A point and itself are w_i (w_i − 1) pairs.
    """

    def block(start: int, stop: int) -> float:
        entries = slice(P.indptr[start], P.indptr[stop])
        p = P.data[entries].astype(np.float64)
        pairs: Any = 1.0
        if weights is not None:
            i = np.repeat(np.arange(start, stop), np.diff(P.indptr[start : stop + 1]))
            j = P.indices[entries]
            pairs = np.maximum(weights[i] * np.where(i == j, weights[i] - 1, weights[j]), 1e-300)
        return float(p @ np.log(np.where(p > 0, p / pairs, 1.0)))

    return float(sum(map_blocks(block, row_blocks(P.shape[0], ROWS), n_jobs=n_jobs)))


@kernel
def _permute(
    indptr: Any,
    indices: Any,
    values: Floats32,
    order: Any,
    place: Any,
    to_indptr: Any,
    to_indices: Any,
    to_values: Floats32,
    start: int,
    stop: int,
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        shift = to_indptr[i] - indptr[order[i]]
        for at in range(indptr[order[i]], indptr[order[i] + 1]):
            to_indices[at + shift] = place[indices[at]]
            to_values[at + shift] = values[at]


@kernel
def _pull1(
    indptr: Any,
    indices: Any,
    values: Floats32,
    Y: Floats32,
    inverse: Any,
    out: Floats32,
    degree: Floats32,
    start: int,
    stop: int,
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        x = Y[i, 0]
        px = total = np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            dx = x - Y[indices[at], 0]
            f = values[at] / (np.float32(1) + dx * dx * inverse)
            px += f * dx
            total += f
        out[i, 0], degree[i] = px, total


@kernel
def _pull2(
    indptr: Any,
    indices: Any,
    values: Floats32,
    points: Any,
    inverse: Any,
    out: Floats32,
    degree: Floats32,
    start: int,
    stop: int,
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        x = np.uint32(points[i] >> X_BITS).view(np.float32)
        y = np.uint32(points[i] >> Y_BITS).view(np.float32)
        px = py = total = np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            point = points[indices[at]]
            dx = x - np.uint32(point >> X_BITS).view(np.float32)
            dy = y - np.uint32(point >> Y_BITS).view(np.float32)
            f = values[at] / (np.float32(1) + (dx * dx + dy * dy) * inverse)
            px += f * dx
            py += f * dy
            total += f
        out[i, 0], out[i, 1], degree[i] = px, py, total


@kernel
def _pull3(
    indptr: Any,
    indices: Any,
    values: Floats32,
    Y: Floats32,
    inverse: Any,
    out: Floats32,
    degree: Floats32,
    start: int,
    stop: int,
) -> None:
    for i in range(np.uint64(start), np.uint64(stop)):
        x, y, z = Y[i, 0], Y[i, 1], Y[i, 2]
        px = py = pz = total = np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            dx, dy, dz = x - Y[j, 0], y - Y[j, 1], z - Y[j, 2]
            f = values[at] / (np.float32(1) + (dx * dx + dy * dy + dz * dz) * inverse)
            px += f * dx
            py += f * dy
            pz += f * dz
            total += f
        out[i, 0], out[i, 1], out[i, 2], degree[i] = px, py, pz, total


_PULL: dict[int, Any] = {1: _pull1, 2: _pull2, 3: _pull3}


@kernel
def _log(u: Any) -> Any:
    """The logarithm of a float32 ≥ 1 to 2e-7, in steps that vectorise: log u = e log 2 + log m.

    With m in [√½, √2) and s = (m − 1)/(m + 1), log m = 2 (s + s³/3 + s⁵/5 + s⁷/7 + …).
    """
    bits = np.int32(np.float32(u).view(np.int32) - 0x3F3504F3)  # of √½
    e = np.int32(bits >> 23)
    m = np.int32((bits & 0x7FFFFF) + 0x3F3504F3).view(np.float32)
    s = (m - np.float32(1)) / (m + np.float32(1))
    q = s * s
    tail = q * (np.float32(1 / 7) + q * np.float32(1 / 9))
    series = np.float32(1) + q * (np.float32(1 / 3) + q * (np.float32(1 / 5) + tail))
    return np.float32(e) * np.float32(0.6931472) + np.float32(2) * s * series


@kernel
def _log_sum1(
    indptr: Any, indices: Any, values: Floats32, Y: Floats32, inverse: Any, start: int, stop: int
) -> float:
    """Σ p log(1 + d/α) over some rows."""
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        x, row = Y[i, 0], np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            dx = x - Y[indices[at], 0]
            row += values[at] * _log(np.float32(1) + dx * dx * inverse)
        total += float(row)
    return total


@kernel
def _log_sum2(
    indptr: Any, indices: Any, values: Floats32, points: Any, inverse: Any, start: int, stop: int
) -> float:
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        x = np.uint32(points[i] >> X_BITS).view(np.float32)
        y = np.uint32(points[i] >> Y_BITS).view(np.float32)
        row = np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            point = points[indices[at]]
            dx = x - np.uint32(point >> X_BITS).view(np.float32)
            dy = y - np.uint32(point >> Y_BITS).view(np.float32)
            row += values[at] * _log(np.float32(1) + (dx * dx + dy * dy) * inverse)
        total += float(row)
    return total


@kernel
def _log_sum3(
    indptr: Any, indices: Any, values: Floats32, Y: Floats32, inverse: Any, start: int, stop: int
) -> float:
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        x, y, z, row = Y[i, 0], Y[i, 1], Y[i, 2], np.float32(0)
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            dx, dy, dz = x - Y[j, 0], y - Y[j, 1], z - Y[j, 2]
            row += values[at] * _log(np.float32(1) + (dx * dx + dy * dy + dz * dz) * inverse)
        total += float(row)
    return total


_LOG_SUM: dict[int, Any] = {1: _log_sum1, 2: _log_sum2, 3: _log_sum3}
