"""Share of its neighbours that each row keeps on the map, for all rows of any table.

The same share as `recall`, which uses exact neighbours and samples rows of large tables;
here all rows are scored, by neighbours of a measured recall (`gnomon.neighbors.search`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.neighbors.search import find_neighbors

__all__ = ["nearest_on_map", "neighbors_kept", "share_kept"]

BLOCK = 8192  # rows compared at a time


def neighbors_kept(
    near: NDArray[np.int32], Y: NDArray[Any], *, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Share of each row's neighbours that are among its nearest on the map.

    Parameters
    ----------
    near : array (n, k)
        Nearest k rows of each row in the data.
    Y : array (n, p)
        Positions on the map.

    Returns
    -------
    array (n,)
        From 0 to 1.
    """
    return share_kept(near, nearest_on_map(Y, near.shape[1], n_jobs=n_jobs))


def nearest_on_map(Y: NDArray[Any], k: int, *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """Nearest `k` rows of each row on the map, (n, k)."""
    return find_neighbors(Y.astype(np.float64), k, n_jobs=n_jobs).indices


def share_kept(near: NDArray[np.int32], there: NDArray[np.int32]) -> NDArray[np.float64]:
    """Share of `near` that `there` also contains, for each row; both are (n, k)."""
    n, k = near.shape
    kept = np.empty(n)
    for start, stop in row_blocks(n, BLOCK):
        same = near[start:stop, :, None] == there[start:stop, None, :]
        kept[start:stop] = same.any(axis=2).sum(axis=1) / k
    return kept
