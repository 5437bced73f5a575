"""Permutation test of each row against random positions on the map.

The null hypothesis of row i: its position on the map is unrelated to its numbers. All other
points stay, and row i is moved to the point of another row j, drawn at random. Its k nearest there
are j and the k − 1 nearest of j, without i.

1. Ranks r(i, ·) of all rows by distance from row i in the data: one sort, O(n log n).
2. For its own position and for each placement the total excess of ranks of its neighbours,
   L = Σ max(0, r(i, m) − k) over the k nearest m: an integer; trustworthiness is
   1 − c L (`gnomon.scores.neighbourhoods`).
3. p = (1 + #{placements with L ≤ the row's own}) / (1 + placements).

Every other row is a placement if there are at most `MOST_PLACEMENTS`; otherwise that many are
drawn, the same for all rows. Cost: O(n d + n log n + k placements) per row.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.neighbors.search import find_neighbors
from gnomon.scores.ranks import find_nearest, rank_block_rows, sq_distances_from
from gnomon.typing import Floats64, Indices, Indices32

# Positions per row. The smallest p-value is then 1/20,001: the 5 % limit of the best of 1,000
# sampled rows.
MOST_PLACEMENTS = 20_000

__all__ = ["MOST_PLACEMENTS", "placement_p_values"]


def placement_p_values(
    Z: NDArray[Any],
    W: NDArray[Any],
    rows: Indices,
    k: int,
    generator: np.random.Generator,
    *,
    n_jobs: int | None = None,
) -> Floats64:
    """Probability (m,) that a random position of each of `rows` scores at least as well.

    Parameters
    ----------
    Z, W : array (n, d), array (n, p)
        The data and the map, prepared (`tables.read_pair`).
    rows : array (m,)
        Rows to test.
    k : int
        Size of the neighbourhoods.
    """
    n = len(Z)
    near = find_neighbors(np.asarray(W), k, n_jobs=n_jobs).indices
    spots = np.arange(n, dtype=np.int32)
    if n - 1 > MOST_PLACEMENTS:
        spots = np.sort(generator.choice(spots, MOST_PLACEMENTS, replace=False))
    there = np.ascontiguousarray(near[spots])
    p_values = np.empty(len(rows))

    def block(start: int, stop: int) -> None:
        here = rows[start:stop]
        order = np.argsort(sq_distances_from(Z, here), axis=1, kind="stable")
        _p_values(order, here, find_nearest(W, here, k), spots, there, p_values[start:stop])

    map_blocks(block, row_blocks(len(rows), rank_block_rows(n)), n_jobs=n_jobs)
    return p_values


@kernel
def _p_values(
    order: Indices, rows: Indices, own: Indices32, spots: Indices32, near: Indices32, out: Floats64
) -> None:
    """Compute out[q] of rows[q]; order[q] are its neighbours in the data, nearest first."""
    n, k = order.shape[1], own.shape[1]
    too_far = np.empty(n, np.int64)
    for q in range(rows.size):
        row = rows[q]
        for place in range(n):
            too_far[order[q, place]] = max(0, place + 1 - k)
        mine = 0
        for m in own[q]:
            mine += too_far[m]
        placements, as_good = 0, 0
        for s in range(spots.size):
            if spots[s] == row:
                continue
            loss, taken = too_far[spots[s]], 1
            for m in near[s]:
                if taken == k or loss > mine:
                    break
                if m != row:
                    loss += too_far[m]
                    taken += 1
            placements += 1
            as_good += loss <= mine
        out[q] = (1 + as_good) / (1 + placements)
