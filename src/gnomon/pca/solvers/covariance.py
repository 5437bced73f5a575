"""Eigenvectors of Σ from the moments, in one pass: for tables with more rows than columns.

Exact, mergeable, and accurate at any distance of the data from zero. The notes' (18) and (24).
"""

import numpy as np

from gnomon.numeric.moments import Moments, moments_of
from gnomon.numeric.roundoff import largest_eigenvalue
from gnomon.pca.solvers.eigen import Eigen
from gnomon.pca.solvers.problem import (
    ColumnFactors,
    Problem,
    Question,
    Solution,
    following,
    residual_norms,
)
from gnomon.typing import Matrix

NEEDS_ARRAY = False  # parts of the table are enough
PASSES = 1  # over the table


def solve(problem: Problem) -> Solution:
    """Compute all eigenvalues of Σ, then the requested eigenvectors."""
    return solve_moments(problem, moments_of(problem.view, problem.weights))


def solve_moments(problem: Question, moments: Moments) -> Solution:
    """Solve from existing moments, as after `partial_fit` and `merge`."""
    sigma, scaling = covariance_matrix(problem, moments)
    eigen = Eigen(sigma)
    most = min(moments.n, sigma.shape[0])
    spectrum = np.maximum(eigen.values[:most], 0)
    k = problem.count(spectrum, scaling.total, moments, whole=True)
    vectors = eigen.vectors(k)
    return Solution(
        moments=moments,
        scaling=scaling,
        components=vectors.T.copy(),
        variances=spectrum[:k],
        spectrum=spectrum,
        whole=True,
        residuals=residual_norms(sigma, vectors, spectrum[:k]),
        formation=formation_error(moments, float(spectrum[0])),
        following=following(spectrum, k, sigma.shape[0]),
        passes=PASSES,
    )


def covariance_matrix(problem: Question, moments: Moments) -> tuple[Matrix, ColumnFactors]:
    """Σ of the working columns, shape (d, d)."""
    scaling = problem.scaling(moments)
    sigma = moments.scatter / moments.divisor(problem.ddof)
    if scaling.factor is not None:
        sigma *= scaling.factor
        sigma *= scaling.factor[:, None]
    return sigma, scaling


def formation_error(moments: Moments, largest: float) -> float:
    """Estimated norm of the rounding error of Σ; `largest` is its first eigenvalue.

    Rounding errors of a product grow with the columns they come from, so scaled columns have the
    raw columns' error in proportion.
    """
    raw = largest_eigenvalue(moments.scatter)
    return moments.rounding / raw * largest if raw > 0 else 0.0
