"""Cubic B-splines: charges spread over the nodes around each point, and the field read back.

A point touches 4 nodes on each axis. The field's gradient is read with the derivatives of the
weights. `charges` times what a point did to itself is taken out again: a bilinear form of its own
weights with `corner`, the first 4 nodes on each axis of the mesh's Green function.

Each dimension has its own small unrolled loops. All that they index with is unsigned: it needs no
test for negative numbers.
"""

from typing import Any

import numpy as np

from gnomon.compute.kernels import kernel
from gnomon.typing import Floats32

__all__ = ["READ_KERNELS", "SPREAD_KERNELS"]


@kernel
def _weights(u: np.float32) -> Any:
    """Cubic B-spline weights of the nodes at −1, 0, 1, 2 for a point at u in [0, 1)."""
    v = np.float32(1) - u
    six = np.float32(1 / 6)
    u2, v2 = u * u, v * v
    return (
        v2 * v * six,
        (np.float32(4) - np.float32(3) * u2 * (np.float32(2) - u)) * six,
        (np.float32(4) - np.float32(3) * v2 * (np.float32(2) - v)) * six,
        u2 * u * six,
    )


@kernel
def _slopes(u: np.float32) -> Any:
    """Derivatives of the four cubic B-spline weights."""
    v = np.float32(1) - u
    half = np.float32(0.5)
    return (
        -v * v * half,
        u * (np.float32(3) * u - np.float32(4)) * half,
        -v * (np.float32(3) * v - np.float32(4)) * half,
        u * u * half,
    )


@kernel
def _spline(u: np.float32) -> Any:
    """Weights and their derivatives."""
    return _weights(u), _slopes(u)


@kernel
def _own(w: Any, s: Any) -> Any:
    """Autocorrelation of the weights at 0 … 3 (doubled beyond 0), and half of its derivative."""
    two = np.float32(2)
    return (
        w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3],
        two * (w[0] * w[1] + w[1] * w[2] + w[2] * w[3]),
        two * (w[0] * w[2] + w[1] * w[3]),
        two * (w[0] * w[3]),
    ), (
        w[0] * s[0] + w[1] * s[1] + w[2] * s[2] + w[3] * s[3],
        w[0] * s[1] + s[0] * w[1] + w[1] * s[2] + s[1] * w[2] + w[2] * s[3] + s[2] * w[3],
        w[0] * s[2] + s[0] * w[2] + w[1] * s[3] + s[1] * w[3],
        w[0] * s[3] + s[0] * w[3],
    )


@kernel
def _node(x: np.float32) -> Any:
    """The first of the four nodes that a point at x touches; unsigned, so it needs no test."""
    return np.uint64(x) - np.uint64(1)


@kernel
def _beyond(x: np.float32, node: Any) -> np.float32:
    """How far x lies beyond the second of its nodes, in [0, 1)."""
    return np.float32(x - np.float32(node) - np.float32(1))


@kernel
def _spread1(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x = (Y[i, 0] - origin[0]) * inverse
        a = _node(x)
        wx = _weights(_beyond(x, a))
        for p in range(4):
            mesh[a + np.uint64(p)] += charges[i] * wx[p]


@kernel
def _spread2(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = _node(x), _node(y)
        wx, wy = _weights(_beyond(x, a)), _weights(_beyond(y, b))
        for p in range(4):
            row = charges[i] * wx[p]
            for q in range(4):
                mesh[a + np.uint64(p), b + np.uint64(q)] += row * wy[q]


@kernel
def _spread3(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = _node(x), _node(y), _node(z)
        wx, wy = _weights(_beyond(x, a)), _weights(_beyond(y, b))
        wz = _weights(_beyond(z, c))
        for p in range(4):
            for q in range(4):
                row = charges[i] * wx[p] * wy[q]
                for r in range(4):
                    mesh[a + np.uint64(p), b + np.uint64(q), c + np.uint64(r)] += row * wz[r]


@kernel
def _read1(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    corner: Floats32,
    phi: Floats32,
    gradient: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x = (Y[i, 0] - origin[0]) * inverse
        a = _node(x)
        wx, sx = _spline(_beyond(x, a))
        ox, dx = _own(wx, sx)
        value = slope = np.float32(0)
        for p in range(4):
            node, own = mesh[a + np.uint64(p)], charges[i] * corner[p]
            value += wx[p] * node - ox[p] * own
            slope += sx[p] * node - dx[p] * own
        phi[i], gradient[i, 0] = value, slope * inverse


@kernel
def _read2(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    corner: Floats32,
    phi: Floats32,
    gradient: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = _node(x), _node(y)
        wx, sx = _spline(_beyond(x, a))
        wy, sy = _spline(_beyond(y, b))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        value = slope_x = slope_y = np.float32(0)
        for p in range(4):
            along = along_y = own = own_y = np.float32(0)
            for q in range(4):
                node = mesh[a + np.uint64(p), b + np.uint64(q)]
                along += wy[q] * node
                along_y += sy[q] * node
                own += oy[q] * corner[p, q]
                own_y += dy[q] * corner[p, q]
            own, own_y = charges[i] * own, charges[i] * own_y
            value += wx[p] * along - ox[p] * own
            slope_x += sx[p] * along - dx[p] * own
            slope_y += wx[p] * along_y - ox[p] * own_y
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse


@kernel
def _read3(
    Y: Floats32,
    charges: Floats32,
    origin: Floats32,
    inverse: np.float32,
    mesh: Floats32,
    corner: Floats32,
    phi: Floats32,
    gradient: Floats32,
    first: int,
    last: int,
) -> None:
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = _node(x), _node(y), _node(z)
        wx, sx = _spline(_beyond(x, a))
        wy, sy = _spline(_beyond(y, b))
        wz, sz = _spline(_beyond(z, c))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        oz, dz = _own(wz, sz)
        value = slope_x = slope_y = slope_z = np.float32(0)
        for p in range(4):
            for q in range(4):
                along = along_z = own = own_z = np.float32(0)
                for r in range(4):
                    node = mesh[a + np.uint64(p), b + np.uint64(q), c + np.uint64(r)]
                    along += wz[r] * node
                    along_z += sz[r] * node
                    own += oz[r] * corner[p, q, r]
                    own_z += dz[r] * corner[p, q, r]
                own, own_z = charges[i] * own, charges[i] * own_z
                value += wx[p] * wy[q] * along - ox[p] * oy[q] * own
                slope_x += sx[p] * wy[q] * along - dx[p] * oy[q] * own
                slope_y += wx[p] * sy[q] * along - ox[p] * dy[q] * own
                slope_z += wx[p] * wy[q] * along_z - ox[p] * oy[q] * own_z
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse
        gradient[i, 2] = slope_z * inverse


SPREAD_KERNELS: dict[int, Any] = {1: _spread1, 2: _spread2, 3: _spread3}
READ_KERNELS: dict[int, Any] = {1: _read1, 2: _read2, 3: _read3}
