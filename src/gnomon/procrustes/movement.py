"""Movement of each row relative to its neighbours, after one table is aligned to the other.

Y is laid on X by a robust similarity, which rows that truly moved do not drag along. Its scale is
the ratio of the sizes of both tables, Σ w|x − μₓ|² over Σ w|y − μᵧ|², rooted, and not that of least
squares, which is smaller by the correlation of the tables: it shrinks a map of the same rows by
another start (MNIST: by half) and lets every row seem to move inwards. A row's
displacement, less the median displacement of its nearest rows in X (what a whole group does is no
movement of its rows), is measured in the mean distance of those rows.
"""

import warnings
from typing import Any

import numpy as np

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.errors import GnomonWarning
from gnomon.procrustes.changes import Changes
from gnomon.procrustes.estimator import Procrustes
from gnomon.typing import Floats64

__all__ = ["find_moves", "lay_on", "move_against_neighbors"]

BLOCK = 512  # rows per block of neighbours' displacements


def lay_on(Y: Any, X: Any, n_jobs: int | None = None) -> Floats64:
    """Rotate, reflect, scale and shift Y (n, dy) onto X (n, dx); shape (n, max(dx, dy))."""
    with warnings.catch_warnings():  # about few rows: the quality of the fit is not used
        warnings.simplefilter("ignore", GnomonWarning)
        model = Procrustes(scaling=True, robust="tukey", n_jobs=n_jobs)
        laid = np.asarray(model.fit(Y, X).transform(Y), np.float64)
    # The scale of least squares is the ratio of sizes times the correlation √(1 − disparity).
    correlation = np.sqrt(1 - model.disparity_)
    if not correlation > 0:
        return laid
    centre = np.average(laid, axis=0, weights=model.weights_)
    return np.asarray(centre + (laid - centre) / correlation, np.float64)


def find_moves(X: Any, Y: Any, n_jobs: int | None = None) -> tuple[Floats64, Floats64]:
    """Positions of the rows in X, and their movement with Y aligned to it; (n, max(dx, dy))."""
    laid = lay_on(Y, X, n_jobs)
    there = np.zeros_like(laid)
    there[:, : np.shape(X)[1]] = X
    return there, laid - there


def move_against_neighbors(
    there: Floats64, moved: Floats64, changes: Changes, n_jobs: int | None = None
) -> Floats64:
    """Movement (m,) of the rows of `changes`, in distances of their neighbours in X."""

    def block(start: int, stop: int) -> Floats64:
        rows, near = changes.rows[start:stop], changes.near_x[start:stop]
        alone = moved[rows] - np.median(moved[near], axis=1)
        reach = np.linalg.norm(there[near] - there[rows][:, None], axis=2).mean(axis=1)
        length = np.linalg.norm(alone, axis=1)
        return np.asarray(length / np.where(reach > 0, reach, np.finfo(np.float64).tiny))

    found = map_blocks(block, row_blocks(len(changes.rows), BLOCK), n_jobs=n_jobs)
    return np.minimum(np.concatenate(found), 1e6)  # copies of a row have distance 0
