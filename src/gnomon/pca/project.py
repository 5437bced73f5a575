"""Scores and reconstructions; a row's do not depend on the rows beside it (`gnomon.carry`)."""

import numpy as np
from numpy.typing import NDArray

from gnomon.carry import carry
from gnomon.rows import Floats, Rows

__all__ = ["project", "restore"]


def project(rows: Rows, components: NDArray[np.float64], *, n_jobs: int | None) -> Floats:
    """Z Wᵀ for the prepared rows Z (n, d) and the components W (k, d), shape (n, k)."""
    return carry(rows, components.T, n_jobs=n_jobs)


def restore(
    scores: Floats,
    components: NDArray[np.float64],
    factor: NDArray[np.float64],
    mean: NDArray[np.float64],
    *,
    exponent: int,
    n_jobs: int | None,
) -> Floats:
    """(Z W) / factor · 2^exponent + mean for scores Z (n, k), shape (n, d).

    A column whose factor is 0 (constant, standardised) is restored by its mean.
    """
    W = np.where(factor == 0, 0.0, components / np.where(factor == 0, 1.0, factor))
    rows = Rows(scores, scores.dtype, np.zeros(scores.shape[1], scores.dtype))
    return carry(rows, W, exponent=exponent, centre=mean, n_jobs=n_jobs)
