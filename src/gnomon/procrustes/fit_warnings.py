"""Warnings about the data of a fitted map."""

import warnings

import numpy as np

from gnomon.errors import DataWarning, warn_caller
from gnomon.procrustes.similarity import Similarity
from gnomon.procrustes.verdict import warn_of_weak_verdict

__all__ = ["warn_of_similarity"]


def warn_of_similarity(found: Similarity) -> None:
    """Warn of tables that are one point, of few rows, and of sums beyond float64."""
    with np.errstate(over="ignore", under="ignore"):
        total = np.ldexp(found.residual_sum, 2 * found.unit)
    if np.isinf(total) or (found.residual_sum > 0 and total < np.finfo(np.float64).tiny):
        where = "above" if np.isinf(total) else "below"
        text = (
            f"The sum of squared residuals is {where} the range of float64 and `residual_sum_` is "
            f"{total:g}. Rotation, disparity and `rmsd_` are not affected. Use other units to "
            "read it."
        )
        warn_caller(DataWarning(text))
    if found.sq_x > 0 and found.sq_y > 0:
        rows, d = found.moments.x.n, min(found.moments.cross.shape)
        warn_of_weak_verdict(rows, d, centering=found.rules.centering, stacklevel=3)
        return
    name = "X" if found.sq_x == 0 else "Y"
    what = "are the same point" if found.rules.centering else "are zero"
    warnings.warn(
        f"All rows of {name} {what}: all rotations fit equally well, and the prior (by "
        "default the identity) is returned.",
        DataWarning,
        stacklevel=3,
    )
