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

BATCH = 64  # points whose weights are computed together
ROW = tuple(np.uint64(BATCH * row) for row in range(22))  # where the rows of a batch begin

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
    """Batches of points: weights and own parts in vector instructions, then the mesh.

    The second loop vectorises since it has one array only, so that none can overlap another:
    rows 0–3 and 4–7 are the weights and slopes along x, 8–11 and 12–15 those along y, 16–18 the
    own φ and its derivatives; 19–21 are the coordinates, in nodes, and the charge.
    """
    batch, one, two, three = np.uint64(BATCH), np.uint64(1), np.uint64(2), np.uint64(3)
    rows = np.zeros(22 * BATCH, np.float32)  # of a batch
    c = (
        (corner[0, 0], corner[0, 1], corner[0, 2], corner[0, 3]),
        (corner[1, 0], corner[1, 1], corner[1, 2], corner[1, 3]),
        (corner[2, 0], corner[2, 1], corner[2, 2], corner[2, 3]),
        (corner[3, 0], corner[3, 1], corner[3, 2], corner[3, 3]),
    )
    for begin in range(np.uint64(first), np.uint64(last), batch):
        count = min(batch, np.uint64(last) - begin)
        for e in range(count):
            i = begin + e
            rows[ROW[19] + e] = (Y[i, 0] - origin[0]) * inverse
            rows[ROW[20] + e] = (Y[i, 1] - origin[1]) * inverse
            rows[ROW[21] + e] = charges[i]
        for e in range(batch):
            x, y, charge = rows[ROW[19] + e], rows[ROW[20] + e], rows[ROW[21] + e]
            wx, sx = _spline(x - np.float32(np.int32(x)))
            wy, sy = _spline(y - np.float32(np.int32(y)))
            ox, dx = _own(wx, sx)
            oy, dy = _own(wy, sy)
            value = slope_x = slope_y = np.float32(0)
            for p in range(4):
                own = oy[0] * c[p][0] + oy[1] * c[p][1] + oy[2] * c[p][2] + oy[3] * c[p][3]
                own_y = dy[0] * c[p][0] + dy[1] * c[p][1] + dy[2] * c[p][2] + dy[3] * c[p][3]
                value += ox[p] * own
                slope_x += dx[p] * own
                slope_y += ox[p] * own_y
            for p in range(4):
                rows[ROW[p] + e], rows[ROW[4 + p] + e] = wx[p], sx[p]
                rows[ROW[8 + p] + e], rows[ROW[12 + p] + e] = wy[p], sy[p]
            rows[ROW[16] + e], rows[ROW[17] + e], rows[ROW[18] + e] = (
                value * charge,
                slope_x * charge,
                slope_y * charge,
            )
        for e in range(count):
            i, a, b = begin + e, _node(rows[ROW[19] + e]), _node(rows[ROW[20] + e])
            v0 = v1 = v2 = v3 = d0 = d1 = d2 = d3 = np.float32(0)
            for p in range(4):
                weight, slope = rows[ROW[p] + e], rows[ROW[4 + p] + e]
                n0, n1, n2, n3 = mesh[a, b], mesh[a, b + one], mesh[a, b + two], mesh[a, b + three]
                v0, d0 = v0 + weight * n0, d0 + slope * n0
                v1, d1 = v1 + weight * n1, d1 + slope * n1
                v2, d2 = v2 + weight * n2, d2 + slope * n2
                v3, d3 = v3 + weight * n3, d3 + slope * n3
                a += one
            w0, w1, w2, w3 = (
                rows[ROW[8] + e],
                rows[ROW[9] + e],
                rows[ROW[10] + e],
                rows[ROW[11] + e],
            )
            s0, s1, s2, s3 = (
                rows[ROW[12] + e],
                rows[ROW[13] + e],
                rows[ROW[14] + e],
                rows[ROW[15] + e],
            )
            value = w0 * v0 + w1 * v1 + w2 * v2 + w3 * v3
            slope_x = w0 * d0 + w1 * d1 + w2 * d2 + w3 * d3
            slope_y = s0 * v0 + s1 * v1 + s2 * v2 + s3 * v3
            phi[i] = value - rows[ROW[16] + e]
            gradient[i, 0] = (slope_x - rows[ROW[17] + e]) * inverse
            gradient[i, 1] = (slope_y - rows[ROW[18] + e]) * inverse


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
