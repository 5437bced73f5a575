"""One step of all points, and the bounds of the new map for the next mesh, in one pass.

g_i = F (ex · pull_i) + 2 ∇φ_i / Z        [Selitskii 2025], eq. (59); F = 2(α+1)/α
v_i ← μ v_i − r_i g_i,                    r_i = min(r / deg_i, largest); shortened to 5
y_i ← y_i + v_i
"""

from dataclasses import dataclass

import numpy as np

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats, Floats64

ROWS = 16_384  # points at a time
LONGEST_STEP = 5.0  # in units of the map: chosen, not fitted
HUGE = 1e15  # of a step before it is shortened, so that its square exists

__all__ = ["Factors", "Moved", "update"]


@dataclass(frozen=True)
class Factors:
    """What the terms of an update are multiplied by: see the module."""

    pull: float
    push: float
    step_of_degree: float
    largest_step: float
    momentum: float


@dataclass(frozen=True)
class Moved:
    """The bounds of the new map, Σ|g|² and Σ|v|²."""

    low: Floats64
    high: Floats64
    sq_gradient: float
    sq_step: float


def update(
    at: tuple[Floats, Floats],
    forces: tuple[Floats, Floats, Floats],
    factors: Factors,
    to: tuple[Floats, Floats],
    n_jobs: int | None,
) -> Moved:
    """Move the points `at` (positions, velocities) and write both into `to`.

    `forces` are pull (n, dimensions), degree (n,) and ∇φ (n, dimensions).
    """
    Y, pull, gradient = at[0], forces[0].reshape(-1), forces[2].reshape(-1)
    d, blocks = Y.shape[1], row_blocks(len(Y), ROWS)
    sums = np.empty((len(blocks), 2 * d + 2))
    # In the type of the arrays: a float64 constant would make everything float64.
    numbers = np.array(
        [
            factors.pull,
            factors.push,
            factors.step_of_degree,
            factors.largest_step,
            factors.momentum,
            LONGEST_STEP,
            HUGE,
        ],
        Y.dtype,
    )
    old_Y, old_velocity, new_Y, new_velocity = (array.reshape(-1) for array in (*at, *to))

    def block(start: int, stop: int) -> None:
        _update(
            old_Y,
            old_velocity,
            pull,
            forces[1],
            gradient,
            numbers,
            new_Y,
            new_velocity,
            sums[start // ROWS],
            d,
            start,
            stop,
        )

    map_blocks(block, blocks, n_jobs=n_jobs)
    low, high = sums[:, :d].min(axis=0), sums[:, d : 2 * d].max(axis=0)
    sq_gradient, sq_step = sums[:, 2 * d :].sum(axis=0)
    return Moved(low, high, float(sq_gradient), float(sq_step))


@kernel
def _update(
    Y: Floats,
    velocity: Floats,
    pull: Floats,
    degree: Floats,
    gradient: Floats,
    factors: Floats,
    new_Y: Floats,
    new_velocity: Floats,
    sums: Floats64,
    dimensions: int,
    start: int,
    stop: int,
) -> None:
    """Some points of flat arrays; `sums` receives the bounds, Σ|g|² and Σ|v|²."""
    d, one = np.uint64(dimensions), np.uint64(1)
    pull_factor, push_factor, of_degree = factors[0], factors[1], factors[2]
    largest, momentum, longest, huge = factors[3], factors[4], factors[5], factors[6]
    sq_gradient = sq_step = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        rate = min(of_degree / degree[i], largest)
        sq_length, sq_force = longest * 0, longest * 0
        for at in range(i * d, i * d + d):
            g = pull_factor * pull[at] + push_factor * gradient[at]
            v = min(max(momentum * velocity[at] - rate * g, -huge), huge)
            new_velocity[at] = v
            sq_length += v * v
            sq_force += g * g
        if sq_length > longest * longest:
            shorten = longest / np.sqrt(sq_length)
            for at in range(i * d, i * d + d):
                new_velocity[at] *= shorten
            sq_length = longest * longest
        for at in range(i * d, i * d + d):
            new_Y[at] = Y[at] + new_velocity[at]
        sq_gradient += np.float64(sq_force)
        sq_step += np.float64(sq_length)
    first, last = np.uint64(start) * d, np.uint64(stop) * d
    for c in range(d):
        low = high = new_Y[first + c]
        for at in range(first + c, last, d):
            low, high = min(low, new_Y[at]), max(high, new_Y[at])
        sums[c], sums[d + c] = low, high
    sums[d + d], sums[d + d + one] = sq_gradient, sq_step
