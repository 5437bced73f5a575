"""Small problems that several tests share: P with weights and with copies, and its gradient."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.neighbors.search import Neighbors, find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint, uniform_rows

rng = np.random.default_rng(0)
ROWS = rng.standard_normal((40, 4))
WEIGHTS = rng.integers(1, 5, 40).astype(float)
COPIES = np.repeat(np.arange(40), WEIGHTS.astype(int))  # the row that each copy is one of
MASS = int(WEIGHTS.sum())


def all_neighbors(table: NDArray[Any]) -> Neighbors:
    return find_neighbors(table, len(table) - 1)


def affinities(kind: str, table: NDArray[Any], weights: NDArray[Any] | None = None) -> Any:
    """P over all neighbours; of several perplexities for "multiscale"."""
    near = all_neighbors(table)
    counted = None if weights is None else weights.sum() - 1
    if kind == "uniform":
        rows = uniform_rows(near, weights, counted)
    else:
        scales = [5, 12] if kind == "multiscale" else 12
        rows = gaussian_rows(near, scales, weights=weights, copies=counted)
    return joint(rows, weights=weights)


def gradient(forces: Any, Y: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """∂KL/∂y of one copy of each point, and Z, from what the descent asks of its forces."""
    low, high = Y.min(axis=0).astype(float), Y.max(axis=0).astype(float)
    pull, _, slope, total = forces.at(Y, low, high)
    dof = forces.dof
    return 2 * (dof + 1) / dof * np.asarray(pull, float) + 2 / total * np.asarray(
        slope, float
    ), total
