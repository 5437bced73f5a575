"""Leading eigenpairs from a few products with Σ: for large tables and few components.

Block Krylov iteration [Musco & Musco 2015] in its block Lanczos form, for a symmetric operator A
that is given by its products only:

1. Q₁ is an orthonormal random block.
2. W = A Q_j, one pass over the table. The next block is W after its projections on all
   former blocks are subtracted, **twice**: without the second time a prototype "captured" 104.6 %
   of the variance. Columns that depend on the others are dropped.
3. T = QᵀAQ is read from the coefficients of step 2. Its leading eigenpairs (θ, y) are the
   estimates, and the residual of each is known without another product: the part of AQy outside Q.
4. Repeat until every requested residual is below `tol`, or the number of blocks is reached.
5. One more product, on the columns' side, measures the residuals themselves for the certificate.

`gnomon.pca.solvers.operator` has the products.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, map_blocks, row_blocks
from gnomon.numeric.moments import column_moments
from gnomon.numeric.roundoff import PRECISION
from gnomon.pca.solvers.eigen import Eigen
from gnomon.pca.solvers.gram import orthonormal
from gnomon.pca.solvers.operator import operator_for
from gnomon.pca.solvers.problem import Problem, Solution, product_error
from gnomon.typing import Matrix, Vector

NEEDS_ARRAY = False  # parts of the table are enough
PASSES = 2  # over the table, beside one for each block

# Narrow blocks converge further for the same number of columns; found by benchmarks/crossovers.py.
BLOCK = 16
OVERSAMPLING = 10  # extra columns when few components are requested
MOST_BLOCKS = 40
ROWS_AT_ONCE = 2048  # rows of the basis per product when it is orthogonalised
APART = 1e-3  # least distance of a column from those before it, relative to its length


def solve(problem: Problem) -> Solution:
    """Find the requested components or, for a fraction of the variance, as many as needed."""
    moments = column_moments(problem.view, problem.weights, precise=problem.standardize)
    scaling = problem.scaling(moments)
    view = problem.centred_view(moments, scaling)
    divisor = moments.divisor(problem.ddof)
    operator = operator_for(view, scaling.total * divisor)
    most, d = min(moments.n, view.shape[1]), view.shape[1]
    k, passes = problem.request.first_guess(most), 1
    while True:
        found = leading(
            operator.apply,
            operator.side,
            k,
            block=block_width(k, problem.passes),
            tol=problem.tol,
            most_blocks=block_count(k, problem.passes),
            random=problem.random,
            step=problem.step,
            n_jobs=problem.n_jobs,
        )
        passes += found.products
        values = np.maximum(found.values, 0) / divisor
        if (
            k == most
            or found.stopped
            or problem.request.enough(values[:k], total=scaling.total, n=moments.size, d=d)
        ):
            break
        k = min(2 * k, most)
    k = problem.count(values[:k], scaling.total, moments, whole=k == most)
    V = found.vectors[:, :k]
    if operator.side != d:
        V = operator.transposed(V)
    V, kept, residuals = ritz(operator.apply_columns, orthonormal(V))
    variances = np.maximum(kept, 0) / divisor
    return Solution(
        moments=moments,
        scaling=scaling,
        components=V.T.copy(),
        variances=variances,
        spectrum=np.concatenate([variances, values[k:most]]),
        whole=False,
        residuals=residuals / divisor,
        formation=product_error(view, (kept[0] + operator.uncentred) / divisor),
        following=following(values, found.residuals / divisor, variances, scaling.total, d),
        passes=passes + (1 if operator.side == d else 3),
    )


def following(values: Vector, residuals: Vector, variances: Vector, total: float, d: int) -> float:
    """Upper bound of the variance after those kept, unless the iteration missed it altogether.

    An estimate is below its variance by about its residual at most, and no variance is larger than
    the remainder of the total after those kept.
    """
    k = variances.size
    if k == d:
        return -np.inf
    left = max(0.0, total - float(variances.sum()))
    if k >= residuals.size:
        return left
    return min(left, float(values[k] + residuals[k]))


def block_width(k: int, passes: int | None) -> int:
    """Columns of a block: wide ones if passes over the table are expensive."""
    return min(BLOCK, k + OVERSAMPLING) if passes is None else k + OVERSAMPLING


def block_count(k: int, passes: int | None) -> int:
    """Maximum number of blocks."""
    return max(MOST_BLOCKS, 4 * k // BLOCK) if passes is None else passes


@dataclass(frozen=True)
class Leading:
    """Leading eigenpairs of an operator that were found so far.

    `vectors` is (size, k); `values` are all estimates, more than k; `residuals` are those of the
    first k + 1 of them, if there are so many.
    """

    vectors: Matrix
    values: Vector
    residuals: Vector
    products: int
    converged: bool
    stopped: bool


def leading(
    apply: Callable[[Matrix], Matrix],
    size: int,
    k: int,
    *,
    block: int,
    tol: float,
    random: np.random.Generator,
    most_blocks: int = MOST_BLOCKS,
    against: Matrix | None = None,
    step: Callable[..., bool] = lambda **_: False,
    n_jobs: int | None = None,
) -> Leading:
    """Find the `k` largest eigenpairs of the symmetric operator `apply`, shape (size, size).

    Parameters
    ----------
    apply : callable
        Product with a block, (size, b) → (size, b).
    block : int
        Columns of a block.
    tol : float
        Largest residual allowed, relative to the largest eigenvalue.
    most_blocks : int
        Maximum number of blocks; half of them if the convergence rate shows that it will not do.
    against : array (size, m), optional
        Orthonormal columns that the answer must be orthogonal to.
    step : callable
        Callback after every block; True stops the iteration.
    """
    fixed = np.zeros((size, 0)) if against is None else against
    room = size - fixed.shape[1]
    block = min(block, room)
    basis = _Basis(fixed, min(room, block * most_blocks), n_jobs)
    basis.extend(random.standard_normal((size, block)))
    products, next_look, history, before, stopped = 0, k, [np.inf], 0.0, False
    while True:
        R = basis.multiply(apply(basis.last))
        products += 1
        look = basis.former >= next_look or basis.full or products == most_blocks
        if look:
            values, Y = basis.leading_pairs(k + 1)
            residuals = np.linalg.norm(R @ Y[-R.shape[1] :], axis=0)
            top = max(float(values[0]), 1e-300)
            history += [float(residuals[:k].max(initial=0)) / top] * (products - len(history) + 1)
            if basis.former < k:
                history[-1] = np.inf
            next_look = basis.former * 9 // 8
        stopped = step(residual=history[-1], products=products)
        if stopped or basis.full:
            break
        if look and history[-1] <= tol:
            # An invariant subspace holds one copy of a repeated eigenvalue per column of the
            # first block: random columns find the others, until there are no more.
            captured = float(values[:k].sum())
            if captured <= before * (1 + tol) or np.linalg.norm(R, 2) > tol * top:
                break
            before, next_look = captured, basis.former + 1
            basis.extend(random.standard_normal((size, block)))
        elif look and (products >= most_blocks or _will_not_converge(history, tol, most_blocks)):
            break
        elif basis.last.shape[1] == 0:  # an invariant subspace with too few dimensions
            basis.extend(random.standard_normal((size, block)))
    if not look:
        values, Y = basis.leading_pairs(k + 1)
        residuals = np.linalg.norm(R @ Y[-R.shape[1] :], axis=0)
    vectors = basis.Q[:, : basis.former] @ Y[:, :k]
    return Leading(vectors, values, residuals, products, history[-1] <= tol, stopped)


def _will_not_converge(history: list[float], tol: float, most_blocks: int) -> bool:
    """Whether the residual, at its current rate, will not reach `tol` within `most_blocks`."""
    done = len(history) - 1
    far = max(1, done // 4)
    if 2 * done < most_blocks or not np.isfinite(history[-1 - far]):
        return False
    pace = np.log(max(history[-1 - far], 1e-300) / max(history[-1], 1e-300)) / far
    return bool(np.log(max(history[-1], 1e-300) / tol) > pace * (most_blocks - done))


class _Basis:
    """Orthonormal blocks Q, and T = QᵀAQ of those that A was applied to.

    `former` columns have been multiplied by A; `last` is the block after them.
    """

    def __init__(self, fixed: Matrix, room: int, n_jobs: int | None) -> None:
        self.fixed, self.room, self.n_jobs = fixed, room, n_jobs
        self.Q = np.empty((fixed.shape[0], room), order="F")
        self.T = np.zeros((room, room))
        self.former = self.size = 0

    @property
    def last(self) -> Matrix:
        return self.Q[:, self.former : self.size]

    @property
    def full(self) -> bool:
        return self.former == self.room

    def extend(self, W: Matrix) -> Matrix:
        """Append the part of `W` outside the basis; return R with that part = Q_new R."""
        W = self._project_out(self.fixed, W)[0]
        return self._append(self._project_out(self.Q[:, : self.size], W)[0])[0]

    def multiply(self, W: Matrix) -> Matrix:
        """Add W = A · last to T and append its new part; return R as `extend` does."""
        W = self._project_out(self.fixed, W)[0]
        W, first = self._project_out(self.Q[:, : self.size], W)
        columns = slice(self.former, self.size)
        R, second = self._append(W)
        self.T[: columns.stop, columns] = first + second
        self.T[columns, : columns.stop] = self.T[: columns.stop, columns].T
        self.former = columns.stop
        return R

    def _append(self, W: Matrix) -> tuple[Matrix, Matrix]:
        """Orthonormalise `W`, project it a second time, and keep the columns that are new."""
        Q, R = _factored(W)
        Q = self._project_out(self.fixed, Q)[0]
        Q, second = self._project_out(self.Q[:, : self.size], Q)
        lengths = np.linalg.norm(Q, axis=0)
        # A column that loses most of its length the second time is not a new direction.
        new = lengths > 0.5
        left = orthonormal(Q[:, new])
        fits = min(left.shape[1], self.room - self.size)
        self.Q[:, self.size : self.size + fits] = left[:, :fits]
        self.size += fits
        return R[new], second @ R

    def leading_pairs(self, k: int) -> tuple[Vector, Matrix]:
        """All eigenvalues of T, largest first, and the vectors of the first k."""
        eigen = Eigen(self.T[: self.former, : self.former])
        return eigen.values, eigen.vectors(min(k, self.former))

    def _project_out(self, basis: Matrix, W: Matrix) -> tuple[Matrix, Matrix]:
        """W − QQᵀW and QᵀW, on threads, in fixed blocks of rows."""
        blocks = row_blocks(W.shape[0], ROWS_AT_ONCE)
        C = np.zeros((basis.shape[1], W.shape[1]))
        if not C.size:
            return W, C

        def inner(start: int, stop: int) -> Matrix:
            return basis[start:stop].T @ W[start:stop]

        def subtract(start: int, stop: int) -> Matrix:
            return W[start:stop] - basis[start:stop] @ C

        fold_blocks(inner, blocks, C.__iadd__, n_jobs=self.n_jobs)
        return np.concatenate(map_blocks(subtract, blocks, n_jobs=self.n_jobs)), C


def _factored(W: Matrix) -> tuple[Matrix, Matrix]:
    """Factor W = QR with nearly orthonormal columns Q, orthonormalised later.

    By Cholesky of WᵀW, in a fraction of the time of Householder's method, unless columns are so
    close to each other that it would be inaccurate.
    """
    with one_blas_thread():
        gram = W.T @ W
        lengths = np.sqrt(np.diagonal(gram))
        if W.size and lengths.all():
            with suppress(np.linalg.LinAlgError):
                L = np.linalg.cholesky(gram / np.outer(lengths, lengths))
                if np.diagonal(L).min() > APART:
                    return (W / lengths) @ np.linalg.inv(L).T, L.T * lengths
        Q, R = np.linalg.qr(W)
        return Q, R


def ritz(apply: Callable[[Matrix], Matrix], V: Matrix) -> tuple[Matrix, Vector, Vector]:
    """Best eigenpairs within the span of orthonormal `V`, and their measured residuals."""
    with one_blas_thread():
        image = apply(V)
        H = V.T @ image
        values, Y = np.linalg.eigh((H + H.T) / 2)
        values, Y = values[::-1], Y[:, ::-1]
        V, image = V @ Y, image @ Y
        measuring = PRECISION * np.sqrt(len(V)) * float(np.abs(values).max(initial=0.0))
        return V, values, np.linalg.norm(image - V * values, axis=0) + measuring
