"""One component after the other, each from the residuals of the former ones.

The notes' second algorithm, (36)–(37): the first component is the direction of largest variance,
λ₁ = max wᵀΣw over ‖w‖ = 1; the next is that of the residuals x̃ = x − w wᵀx, whose covariance
is Σ̃ = Σ − λ₁ w wᵀ; and so on. Slower than solving for all at once; kept for comparison.

Rounding in Σ̃ turns later components back to former ones, the more the smaller they are: each is
orthogonalised against all former ones, twice. One more component than requested is computed,
because the accuracy of the last one depends on the variance after it.
"""

import numpy as np

from gnomon.numeric.moments import moments_of
from gnomon.pca.solvers.covariance import covariance_matrix, formation_error
from gnomon.pca.solvers.krylov import leading
from gnomon.pca.solvers.problem import Problem, Solution, following, residual_norms
from gnomon.typing import Matrix

NEEDS_ARRAY = False  # parts of the table are enough
PASSES = 1  # over the table


def solve(problem: Problem) -> Solution:
    """Find components in order of variance until the request is met."""
    moments = moments_of(problem.view, problem.weights)
    sigma, scaling = covariance_matrix(problem, moments)
    d, most = sigma.shape[0], min(moments.n, sigma.shape[0])
    left = sigma.copy()
    vectors, values = np.zeros((d, 0)), np.zeros(0)
    one_more = False
    while values.size < most and not one_more:
        one_more = problem.request.enough(values, total=scaling.total, n=moments.size, d=d)
        w, variance = _largest_variance(left, vectors, problem.random)
        vectors = np.column_stack([vectors, w])
        values = np.append(values, variance)
        left -= variance * np.outer(w, w)
    order = np.argsort(-values, kind="stable")  # tied variances may come out of order by rounding
    vectors, values = vectors[:, order], values[order]
    k = problem.count(values, scaling.total, moments, whole=values.size == most)
    residuals = residual_norms(sigma, vectors, values)
    vectors, kept = vectors[:, :k], values[:k]
    return Solution(
        moments=moments,
        scaling=scaling,
        components=vectors.T.copy(),
        variances=kept,
        spectrum=values,
        whole=values.size == most,
        residuals=residuals[:k],
        formation=formation_error(moments, float(values[0])),
        following=following(values, k, d) + float(residuals[k:].max(initial=0.0)),
        passes=PASSES,
    )


def _largest_variance(
    left: Matrix, former: Matrix, random: np.random.Generator
) -> tuple[Matrix, float]:
    """Direction of largest remaining variance, orthogonal to all `former` ones."""

    def apply(Q: Matrix) -> Matrix:
        return left @ Q

    found = leading(
        apply, left.shape[0], 1, block=4, tol=1e-14, random=random, most_blocks=60, against=former
    )
    w = found.vectors[:, 0]
    for _ in range(2):
        w = w - former @ (w @ former)
        w /= np.linalg.norm(w)
    return w, max(0.0, float(w @ left @ w))
