"""The push between all points, pair by pair in float32: the quick way where there are few points.

    φ(y_i) = Σ_{j≠i} c_j K(|y_i − y_j|²),   ∇φ(y_i) = −((α+1)/α) Σ_j c_j K w (y_i − y_j)

Coordinates are laid out an axis at a time, so that the inner loop runs over them with vector
instructions. Its sums are exact but for the rounding of float32.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.kernels import kernel
from gnomon.parallel import map_blocks, row_blocks

Floats = NDArray[np.float32]

ROWS = 128
AT_ONCE = 3000  # up to so many points, waking a second thread costs more than it does

__all__ = ["direct_field"]


def direct_field(
    Y: Floats,
    charges: Floats,
    dof: float,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """φ without the point itself, shape (n,), and ∇φ, shape (n, dimensions)."""
    axes = np.ascontiguousarray(Y.T)
    phi, gradient = np.empty(len(Y), np.float32), np.empty(Y.shape, np.float32)
    work: Any = _cauchy[Y.shape[1]] if dof == 1.0 else _any_dof
    slope = np.float32(-(dof + 1) / dof)

    def block(start: int, stop: int) -> None:
        work(axes, charges, dof, slope, phi, gradient, start, stop)

    map_blocks(block, row_blocks(len(Y), len(Y) if len(Y) <= AT_ONCE else ROWS), n_jobs=n_jobs)
    return phi, gradient


@kernel
def _cauchy1(
    axes: Floats, charges: Floats, dof: float, slope: np.float32, phi: Floats, gradient: Floats,
    start: int, stop: int,
) -> None:  # fmt: skip
    one = np.float32(1)
    for i in range(start, stop):
        x = axes[0, i]
        total = push_x = np.float32(0)
        for j in range(axes.shape[1]):
            dx = x - axes[0, j]
            w = one / (one + dx * dx)
            k = charges[j] * w
            total += k
            push_x += k * w * dx
        phi[i] = total - charges[i]
        gradient[i, 0] = slope * push_x


@kernel
def _cauchy2(
    axes: Floats, charges: Floats, dof: float, slope: np.float32, phi: Floats, gradient: Floats,
    start: int, stop: int,
) -> None:  # fmt: skip
    one = np.float32(1)
    for i in range(start, stop):
        x, y = axes[0, i], axes[1, i]
        total = push_x = push_y = np.float32(0)
        for j in range(axes.shape[1]):
            dx, dy = x - axes[0, j], y - axes[1, j]
            w = one / (one + dx * dx + dy * dy)
            k = charges[j] * w
            total += k
            push_x += k * w * dx
            push_y += k * w * dy
        phi[i] = total - charges[i]
        gradient[i, 0], gradient[i, 1] = slope * push_x, slope * push_y


@kernel
def _cauchy3(
    axes: Floats, charges: Floats, dof: float, slope: np.float32, phi: Floats, gradient: Floats,
    start: int, stop: int,
) -> None:  # fmt: skip
    one = np.float32(1)
    for i in range(start, stop):
        x, y, z = axes[0, i], axes[1, i], axes[2, i]
        total = push_x = push_y = push_z = np.float32(0)
        for j in range(axes.shape[1]):
            dx, dy, dz = x - axes[0, j], y - axes[1, j], z - axes[2, j]
            w = one / (one + dx * dx + dy * dy + dz * dz)
            k = charges[j] * w
            total += k
            push_x += k * w * dx
            push_y += k * w * dy
            push_z += k * w * dz
        phi[i] = total - charges[i]
        gradient[i, 0], gradient[i, 1] = slope * push_x, slope * push_y
        gradient[i, 2] = slope * push_z


_cauchy: dict[int, Any] = {1: _cauchy1, 2: _cauchy2, 3: _cauchy3}


@kernel
def _any_dof(
    axes: Floats, charges: Floats, dof: float, slope: np.float32, phi: Floats, gradient: Floats,
    start: int, stop: int,
) -> None:  # fmt: skip
    one, inverse = np.float32(1), np.float32(1 / dof)
    power = np.float32((dof + 1) / 2)
    d, n = axes.shape
    for i in range(start, stop):
        total = np.float32(0)
        for c in range(d):
            gradient[i, c] = 0
        for j in range(n):
            sq = np.float32(0)
            for c in range(d):
                step = axes[c, i] - axes[c, j]
                sq += step * step
            w = one / (one + sq * inverse)
            k = charges[j] * w**power
            total += k
            for c in range(d):
                gradient[i, c] += slope * k * w * (axes[c, i] - axes[c, j])
        phi[i] = total - charges[i]
