"""Eigenvectors of XXᵀ/N, lifted: for tables with more columns than rows.

If XXᵀu = Nλu then Σ(Xᵀu) = λ(Xᵀu): the same non-zero eigenvalues from an N × N matrix, and the
components are Xᵀu, normalised (section 7 of the derivation notes; 10.5 of the lecture). Centred
data have rank N − 1 at most, so the last lifted vector is pure rounding: vectors that cannot be
lifted are replaced by completing the orthonormal basis.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.numeric.moments import column_moments
from gnomon.numeric.scaling import SAMPLE_ROWS, Rows, evenly_spaced, scratch
from gnomon.pca.downdate import SampledRows
from gnomon.pca.solvers.eigen import Eigen
from gnomon.pca.solvers.operator import operator_for
from gnomon.pca.solvers.problem import Problem, Solution, following, product_error, residual_norms
from gnomon.typing import Matrix, Vector

NEEDS_ARRAY = True  # parts of the table are not enough
PASSES = 3  # over the table


def solve(problem: Problem) -> Solution:
    """Compute eigenvalues of the N × N matrix, then the requested eigenvectors, lifted."""
    moments = column_moments(problem.view, problem.weights, precise=problem.standardize)
    scaling = problem.scaling(moments)
    view = problem.centred_view(moments, scaling)
    divisor = moments.divisor(problem.ddof)
    rows = view.array
    assert rows is not None  # the plan ensures it
    G = gram_matrix(rows, problem.n_jobs)
    eigen = Eigen(G)
    spectrum = np.maximum(eigen.values[: min(moments.n, view.shape[1])], 0)
    k = problem.count(spectrum / divisor, scaling.total, moments, whole=True)
    U, values = eigen.vectors(k), spectrum[:k]
    operator = operator_for(view)
    rounding = product_error(view, spectrum[0] + operator.uncentred, wide=True)
    V = operator.transposed(U)
    lifted = values > rounding
    V[:, lifted] /= np.sqrt(values[lifted])
    V[:, ~lifted] = problem.random.standard_normal((V.shape[0], int((~lifted).sum())))
    V = orthonormal(V)
    return Solution(
        moments=moments,
        scaling=scaling,
        components=V.T.copy(),
        variances=values / divisor,
        spectrum=spectrum / divisor,
        whole=True,
        residuals=_residuals(G, U, values, lifted) / divisor,
        formation=rounding / divisor,
        following=following(spectrum, k, view.shape[1]) / divisor,
        passes=PASSES,
        sample=_sampled(G, U, values, problem.weights),
    )


def _residuals(G: Matrix, U: Matrix, values: Vector, lifted: NDArray[np.bool_]) -> Vector:
    """Bound on ‖ZᵀZv − θv‖ of the lifted and orthonormalised components, without another pass.

    For v = Zᵀu/σ it is Zᵀ(Gu − θu)/σ, which can be √(θ₁/θ) times the residual of u. But the
    amplified part lies along components of larger variance, and orthonormalising from the first
    component on removes it, as it removes the rounding of Zᵀu. The residuals of u and of
    all former vectors remain. Completed components are orthogonal to all lifted ones.
    """
    found = np.where(lifted, residual_norms(G, U, values), 0.0)
    bound: Vector = np.sqrt(np.cumsum(found**2)) + np.where(lifted, 0.0, 2 * values)
    return bound


def _sampled(G: Matrix, U: Matrix, values: Vector, weights: Vector | None) -> SampledRows:
    """Scores t = √θ u and squared errors ‖z‖² − ‖t‖² of evenly spaced rows, read from G."""
    present = np.arange(len(G)) if weights is None else np.flatnonzero(weights)
    at = present[evenly_spaced(present.size, SAMPLE_ROWS)]
    scores = U[at] * np.sqrt(values)
    sq_errors = np.maximum(G[at, at] - np.einsum("ij,ij->i", scores, scores), 0)
    if weights is None:
        return SampledRows(scores, sq_errors, None)
    return SampledRows(scores / np.sqrt(weights[at])[:, None], sq_errors / weights[at], weights[at])


def gram_matrix(rows: Rows, n_jobs: int | None) -> Matrix:
    """Σ over blocks of columns of C Cᵀ, shape (n, n), float64."""
    n, d = rows.shape
    G = np.zeros((n, n))

    def product(start: int, stop: int) -> Matrix:
        C = rows.read_columns(start, stop, scratch((n, stop - start), rows.work))
        return C @ C.T

    fold_blocks(product, row_blocks(d, rows.block_columns()), G.__iadd__, n_jobs=n_jobs)
    return G


def orthonormal(V: Matrix) -> Matrix:
    """Orthonormalise `V` from its first column on; each column keeps its direction."""
    with one_blas_thread():
        turn = orthonormal_turn(V.T @ V)
        if turn is not None:
            return V @ turn
        Q, R = np.linalg.qr(V)
    return Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)


def orthonormal_turn(gram: Matrix) -> Matrix | None:
    """The triangular C with VC orthonormal, given VᵀV; None if columns are not nearly orthogonal.

    If they are, Cholesky's method is as accurate as Householder's and far faster.
    """
    lengths = np.sqrt(np.diagonal(gram))
    if not lengths.all():
        return None
    cosines = gram / np.outer(lengths, lengths)
    if np.abs(cosines - np.eye(len(gram))).max(initial=0.0) >= 1e-2:
        return None
    with one_blas_thread():
        turn: Matrix = np.linalg.inv(np.linalg.cholesky(cosines)).T / lengths[:, None]
    return turn
