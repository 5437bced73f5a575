"""The push between all points, pair by pair in float32: the quick way where there are few points.

    Z = Σ_{i≠j} c_i c_j K(|y_i − y_j|²),   ∇φ(y_i) = −((α+1)/α) Σ_j c_j K w (y_i − y_j)

Each pair is met once and counts for both of its points. Points stand in tiles, an axis at a time,
and so do their sums: the inner loop runs over a tile with vector instructions, since the compiler
sees from the fixed length that what it writes is not what it reads. The sums are exact but for the
rounding of float32.
"""

from typing import Any

import numpy as np

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.typing import Floats32

TILE = 512  # points: its coordinates and sums, 4 to 12 KB, stay in a core's first cache
# Points up to which waking a second thread costs more than it does: `benchmarks/crossovers.py`,
# "push".
AT_ONCE = 3000

__all__ = ["direct_push"]


def direct_push(
    Y: Floats32, charges: Floats32 | None, dof: float, n_jobs: int | None = None
) -> tuple[Floats32, float]:
    """∇φ, shape (n, dimensions), and Z, both without what a point does to itself.

    `charges` are all 1 where there are none.
    """
    n, d = Y.shape
    tiles = -(-n // TILE)
    points = _tiled(Y if charges is None else np.column_stack([Y, charges]), tiles)
    work: Any = _cauchy[d] if dof == 1.0 else _any_dof
    charged = None if charges is None else True  # None: a loop of its own, without them
    sums, total = np.zeros((tiles, d * TILE), np.float32), 0.0

    def block(start: int, stop: int) -> tuple[Floats32, float]:
        """Tiles from the top, and as many from the bottom: all blocks have as many pairs."""
        part, z = np.zeros_like(sums), 0.0
        for k in range(start, stop):
            for tile in dict.fromkeys((k, tiles - 1 - k)):
                z += work(points, charged, dof, part, n, tile)
        return part, z

    def add(found: tuple[Floats32, float]) -> None:
        nonlocal total
        np.add(sums, found[0], out=sums)
        total += 2 * found[1]

    halves = (tiles + 1) // 2
    fold_blocks(block, row_blocks(halves, halves if n <= AT_ONCE else 1), add, n_jobs=n_jobs)
    by_point = sums.reshape(tiles, d, TILE).swapaxes(1, 2).reshape(-1, d)[:n]
    return by_point * np.float32(-(dof + 1) / dof), total


def _tiled(columns: Floats32, tiles: int) -> Floats32:
    """A tile in each row, and in it one column after the other; zeros after the last point."""
    n, d = columns.shape
    padded = np.zeros((tiles * TILE, d), np.float32)
    padded[:n] = columns
    return padded.reshape(tiles, TILE, d).swapaxes(1, 2).reshape(tiles, -1)


@kernel
def _cauchy1(points: Floats32, charged: Any, dof: float, sums: Floats32, n: int, a: int) -> float:
    """Add the pairs of the `a`-th tile with itself and with those after it; returns Σ c c K."""
    one, A, sums_a = np.float32(1), points[a], sums[a]
    total = 0.0
    for b in range(a, points.shape[0]):
        for i in range(min(TILE, n - a * TILE)):
            after = i + 1 if a == b else 0
            B, sums_b = points[b, after:], sums[b, after:]
            x = A[i]
            charge = one if charged is None else A[TILE + i]
            phi = push_x = np.float32(0)
            for j in range(min(TILE, n - b * TILE) - after):
                dx = x - B[j]
                w = one / (one + dx * dx)
                here, there = w, charge * w
                if charged is not None:
                    here *= B[TILE + j]
                phi += here
                here, there = here * w, there * w
                push_x += here * dx
                sums_b[j] -= there * dx
            total += float(charge * phi)
            sums_a[i] += push_x
    return total


@kernel
def _cauchy2(points: Floats32, charged: Any, dof: float, sums: Floats32, n: int, a: int) -> float:
    one, A, sums_a = np.float32(1), points[a], sums[a]
    total = 0.0
    for b in range(a, points.shape[0]):
        for i in range(min(TILE, n - a * TILE)):
            after = i + 1 if a == b else 0
            B, sums_b = points[b, after:], sums[b, after:]
            x, y = A[i], A[TILE + i]
            charge = one if charged is None else A[2 * TILE + i]
            phi = push_x = push_y = np.float32(0)
            for j in range(min(TILE, n - b * TILE) - after):
                dx, dy = x - B[j], y - B[TILE + j]
                w = one / (one + dx * dx + dy * dy)
                here, there = w, charge * w
                if charged is not None:
                    here *= B[2 * TILE + j]
                phi += here
                here, there = here * w, there * w
                push_x += here * dx
                sums_b[j] -= there * dx
                push_y += here * dy
                sums_b[TILE + j] -= there * dy
            total += float(charge * phi)
            sums_a[i] += push_x
            sums_a[TILE + i] += push_y
    return total


@kernel
def _cauchy3(points: Floats32, charged: Any, dof: float, sums: Floats32, n: int, a: int) -> float:
    one, A, sums_a = np.float32(1), points[a], sums[a]
    total = 0.0
    for b in range(a, points.shape[0]):
        for i in range(min(TILE, n - a * TILE)):
            after = i + 1 if a == b else 0
            B, sums_b = points[b, after:], sums[b, after:]
            x, y, z = A[i], A[TILE + i], A[2 * TILE + i]
            charge = one if charged is None else A[3 * TILE + i]
            phi = push_x = push_y = push_z = np.float32(0)
            for j in range(min(TILE, n - b * TILE) - after):
                dx, dy, dz = x - B[j], y - B[TILE + j], z - B[2 * TILE + j]
                w = one / (one + dx * dx + dy * dy + dz * dz)
                here, there = w, charge * w
                if charged is not None:
                    here *= B[3 * TILE + j]
                phi += here
                here, there = here * w, there * w
                push_x += here * dx
                sums_b[j] -= there * dx
                push_y += here * dy
                sums_b[TILE + j] -= there * dy
                push_z += here * dz
                sums_b[2 * TILE + j] -= there * dz
            total += float(charge * phi)
            sums_a[i] += push_x
            sums_a[TILE + i] += push_y
            sums_a[2 * TILE + i] += push_z
    return total


_cauchy: dict[int, Any] = {1: _cauchy1, 2: _cauchy2, 3: _cauchy3}


@kernel
def _any_dof(points: Floats32, charged: Any, dof: float, sums: Floats32, n: int, a: int) -> float:
    one, inverse = np.float32(1), np.float32(1 / dof)
    power = np.float32((dof + 1) / 2)
    A, sums_a, end = points[a], sums[a], sums.shape[1]
    total = 0.0
    for b in range(a, points.shape[0]):
        for i in range(min(TILE, n - a * TILE)):
            after = i + 1 if a == b else 0
            B, sums_b = points[b, after:], sums[b, after:]
            charge, phi = one if charged is None else A[end + i], np.float32(0)
            for j in range(min(TILE, n - b * TILE) - after):
                sq = np.float32(0)
                for c in range(0, end, TILE):
                    sq += (A[c + i] - B[c + j]) ** 2
                w = one / (one + sq * inverse)
                here = w**power
                there = charge * here
                if charged is not None:
                    here *= B[end + j]
                phi += here
                for c in range(0, end, TILE):
                    step = w * (A[c + i] - B[c + j])
                    sums_a[c + i] += here * step
                    sums_b[c + j] -= there * step
            total += float(charge * phi)
    return total
