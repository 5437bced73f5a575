"""The push between all points from a tree, in three dimensions, where a mesh has too many nodes.

    φ(y_i) = Σ_j c_j K(|y_i − y_j|²),   ∇φ(y_i) = −((α+1)/α) Σ_j c_j K w (y_i − y_j)

A node far away acts nearly as one point at its centre of charge [Barnes & Hut 1986]. To let vector
instructions work, points are taken a leaf at a time:

1. Points are sorted along a Z-order curve, and each run of `LEAF` of them is a leaf. `ARITY`
   consecutive nodes have one parent, up to the root: no pointers, only numbers.
2. A node knows its charge, its centre of charge, and how far its points reach from that (a sphere
   that holds its box).
3. For each leaf, from the root down: a node whose reach is below θ √(r² + (width/2)²), r being its
   distance from the leaf's box and width that of K, is a source for all points of the leaf; others
   are opened, and leaves among them give their points.
4. Sources stand in a buffer that stays in the cache; the inner loop runs over it.

The sums of a leaf do not depend on who computes them: the same bits on any number of threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.tsne.convolve import kernel_width
from gnomon.typing import Floats32

# Time against force error: `benchmarks/tsne_space.py` has both.
LEAF = 32  # points
ARITY = 8  # nodes that have one parent
ANGLE = 0.5  # θ: force error of 0.1 % on a grown map of 20,000 points, 1 % on one held together
LEAVES = 16  # leaves that one task goes through
BUFFER = 1024  # sources at a time: 16 KB, half of a core's first cache
BITS = 10  # of each coordinate in the place on the curve

__all__ = ["ANGLE", "tree_push"]


def tree_push(
    Y: Floats32,
    charges: Floats32 | None,
    dof: float,
    n_jobs: int | None = None,
    angle: float = ANGLE,
) -> tuple[Floats32, Floats32]:
    """∇φ, shape (n, 3), and φ, shape (n,), both without what a point does to itself."""
    n = len(Y)
    low, high = Y.min(axis=0), Y.max(axis=0)
    places = np.empty(n, np.uint32)
    _places(Y, low, np.float32((2**BITS - 1) / max(float((high - low).max()), 1e-30)), places)
    order = np.argsort(places, kind="stable")
    leaves = -(-n // LEAF)
    points = np.zeros((4, leaves * LEAF), np.float32)  # x, y, z, charge; nothing after the last
    points[:3, :n] = Y[order].T
    points[:3, n:] = points[:3, n - 1 : n]
    points[3, :n] = 1 if charges is None else charges[order]
    starts = _level_starts(leaves)
    nodes = np.empty((11, starts[-1]), np.float32)
    _build(points, starts, nodes)
    sums = np.empty((4, leaves * LEAF), np.float32)
    sq_theta, flat = np.float32(angle**2), np.float32((kernel_width(dof) / 2) ** 2)

    def block(first: int, last: int) -> None:
        _push(points, starts, nodes, np.float32(dof), sq_theta, flat, sums, first, last)

    map_blocks(block, row_blocks(leaves, LEAVES), n_jobs=n_jobs)
    gradient, phi = np.empty((n, 3), np.float32), np.empty(n, np.float32)
    gradient[order] = sums[:3, :n].T * np.float32(-(dof + 1) / dof)
    phi[order] = sums[3, :n] - points[3, :n]  # K(0) = 1: the point itself
    return gradient, phi


def _level_starts(leaves: int) -> NDArray[np.int64]:
    """Where the nodes of each level begin, leaves first; last, how many nodes there are."""
    counts = [leaves]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // ARITY))
    return np.cumsum([0, *counts])


@kernel
def _places(Y: Floats32, low: Floats32, scale: Any, out: NDArray[np.uint32]) -> None:
    """The place of each point on a Z-order curve: the bits of x, y and z by turns."""
    for i in range(Y.shape[0]):
        place = np.uint32(0)
        for c in range(3):
            cell = np.uint32((Y[i, c] - low[c]) * scale)
            for bit in range(BITS):
                place |= ((cell >> np.uint32(bit)) & np.uint32(1)) << np.uint32(3 * bit + c)
        out[i] = place


@kernel
def _build(points: Floats32, starts: NDArray[np.int64], nodes: Floats32) -> None:
    """Centre (rows 0–2), charge (3), squared reach (4), box (5–7 low, 8–10 high) of each node."""
    for i in range(starts[1]):
        first = i * LEAF
        charge = np.float32(0)
        for c in range(3):
            nodes[c, i] = 0
            nodes[5 + c, i] = nodes[8 + c, i] = points[c, first]
        for j in range(first, first + LEAF):
            charge += points[3, j]
            for c in range(3):
                nodes[c, i] += points[3, j] * points[c, j]
                nodes[5 + c, i] = min(nodes[5 + c, i], points[c, j])
                nodes[8 + c, i] = max(nodes[8 + c, i], points[c, j])
        nodes[3, i] = charge
        for c in range(3):
            nodes[c, i] /= charge
    for level in range(1, starts.shape[0] - 1):
        for i in range(starts[level], starts[level + 1]):
            first = starts[level - 1] + (i - starts[level]) * ARITY
            last = min(first + ARITY, starts[level])
            charge = np.float32(0)
            for c in range(3):
                nodes[c, i] = 0
                nodes[5 + c, i], nodes[8 + c, i] = nodes[5 + c, first], nodes[8 + c, first]
            for child in range(first, last):
                charge += nodes[3, child]
                for c in range(3):
                    nodes[c, i] += nodes[3, child] * nodes[c, child]
                    nodes[5 + c, i] = min(nodes[5 + c, i], nodes[5 + c, child])
                    nodes[8 + c, i] = max(nodes[8 + c, i], nodes[8 + c, child])
            nodes[3, i] = charge
            for c in range(3):
                nodes[c, i] /= charge
    for i in range(starts[-1]):
        reach = np.float32(0)
        for c in range(3):
            away = max(nodes[c, i] - nodes[5 + c, i], nodes[8 + c, i] - nodes[c, i])
            reach += away * away
        nodes[4, i] = reach


@kernel
def _add_sources(
    points: Floats32, sources: Floats32, count: int, first: int, dof: Any, sums: Floats32
) -> None:
    """Add to a leaf's sums, rows ∇ (0–2) and φ (3), what `count` sources do to its points."""
    one, inverse, power = np.float32(1), np.float32(1) / dof, (dof + np.float32(1)) / np.float32(2)
    X, Y, Z, C = sources[0], sources[1], sources[2], sources[3]
    for i in range(first, first + LEAF):
        x, y, z = points[0, i], points[1, i], points[2, i]
        px = py = pz = phi = np.float32(0)
        if dof == one:
            for j in range(count):
                dx, dy, dz = x - X[j], y - Y[j], z - Z[j]
                w = one / (one + dx * dx + dy * dy + dz * dz)
                value = C[j] * w
                phi += value
                value *= w
                px += value * dx
                py += value * dy
                pz += value * dz
        else:
            for j in range(count):
                dx, dy, dz = x - X[j], y - Y[j], z - Z[j]
                w = one / (one + (dx * dx + dy * dy + dz * dz) * inverse)
                value = C[j] * w**power
                phi += value
                value *= w
                px += value * dx
                py += value * dy
                pz += value * dz
        sums[0, i] += px
        sums[1, i] += py
        sums[2, i] += pz
        sums[3, i] += phi


@kernel
def _push(
    points: Floats32,
    starts: NDArray[np.int64],
    nodes: Floats32,
    dof: Any,
    sq_theta: Any,
    flat: Any,
    sums: Floats32,
    first: int,
    last: int,
) -> None:
    """Steps 3 and 4 for the leaves from `first` to `last`."""
    levels = starts.shape[0] - 1
    stack = np.empty((levels * ARITY + 1, 2), np.int64)  # level and number of nodes to look at
    sources = np.empty((4, BUFFER), np.float32)
    zero = np.float32(0)
    for leaf in range(first, last):
        begin, count = leaf * LEAF, 0
        sums[:, begin : begin + LEAF] = 0
        stack[0, 0], stack[0, 1], depth = levels - 1, starts[levels - 1], 1
        while depth > 0:
            depth -= 1
            level, node = stack[depth, 0], stack[depth, 1]
            sq = zero
            for c in range(3):
                away = max(nodes[5 + c, leaf] - nodes[c, node], nodes[c, node] - nodes[8 + c, leaf])
                away = max(away, zero)
                sq += away * away
            if nodes[4, node] < sq_theta * (sq + flat):
                for c in range(4):
                    sources[c, count] = nodes[c, node]
                count += 1
            elif level == 0:
                if count + LEAF > BUFFER:
                    _add_sources(points, sources, count, begin, dof, sums)
                    count = 0
                for j in range(node * LEAF, node * LEAF + LEAF):
                    for c in range(4):
                        sources[c, count] = points[c, j]
                    count += 1
            else:
                child = starts[level - 1] + (node - starts[level]) * ARITY
                for other in range(child, min(child + ARITY, starts[level])):
                    stack[depth, 0], stack[depth, 1] = level - 1, other
                    depth += 1
            if count == BUFFER:
                _add_sources(points, sources, count, begin, dof, sums)
                count = 0
        _add_sources(points, sources, count, begin, dof, sums)
