"""Leading eigenpairs from a few products with Σ: for large tables of which little is wanted.

Block Krylov iteration [Musco & Musco 2015] in its block Lanczos form, for a symmetric operator A
that is given by its products only:

1. Q₁ is an orthonormal random block.
2. W = A Q_j, one pass over the table. The next block is what is left of W after its parts along all
   former blocks are taken away, **twice**: without the second time a prototype "captured" 104.6 %
   of the variance. Columns that depend on the others are dropped.
3. T = QᵀAQ is read from the coefficients of step 2. Its leading eigenpairs (θ, y) are the
   estimates, and the residual of each is known without another product: the part of AQy outside Q.
4. Repeat until every wanted residual is below `tol`, or the number of blocks is reached.
5. One more product, on the columns' side, measures the residuals themselves for the certificate.

`gnomon.pca.operator` has the products.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gnomon.moments import column_moments
from gnomon.parallel import fold_blocks, map_blocks, one_blas_thread, row_blocks
from gnomon.pca.gram import orthonormal
from gnomon.pca.operator import operator_for
from gnomon.pca.problem import Matrix, Problem, Solution, Vector

OVERSAMPLING = 10  # columns of a block beyond those wanted
MOST_BLOCKS = 12
ROWS_AT_ONCE = 2048  # of the basis, when it is orthogonalised


def solve(problem: Problem) -> Solution:
    """The wanted components or, for a fraction of the variance, as many as it takes."""
    moments = column_moments(problem.rows, problem.weights, n_jobs=problem.n_jobs)
    scaling = problem.scaling(moments)
    rows = problem.rows.centred(moments.offset, scaling.factor, problem.root_weight)
    operator = operator_for(rows, problem.n_jobs)
    divisor = moments.divisor(problem.ddof)
    most = min(moments.n, rows.shape[1])
    k, passes = problem.request.first_guess(most), 1
    while True:
        found = leading(
            operator.apply,
            operator.side,
            k,
            block=k + OVERSAMPLING,
            tol=problem.tol,
            random=problem.random,
            step=problem.step,
            n_jobs=problem.n_jobs,
        )
        passes += found.products
        values = np.maximum(found.values, 0) / divisor
        if k == most or problem.request.enough(
            values[:k], total=scaling.total, n=moments.size, d=rows.shape[1]
        ):
            break
        k = min(2 * k, most)
    k = problem.count(values[:k], scaling.total, moments, whole=k == most)
    V = found.vectors[:, :k]
    if operator.side != rows.shape[1]:
        V = operator.transposed(V)
    V, kept, residuals = ritz(operator.apply_columns, orthonormal(V))
    return Solution(
        moments=moments,
        scaling=scaling,
        components=V.T.copy(),
        variances=np.maximum(kept, 0) / divisor,
        spectrum=np.concatenate([np.maximum(kept, 0) / divisor, values[k:most]]),
        whole=False,
        residuals=residuals / divisor,
        formation=float(np.finfo(rows.work).eps) * scaling.total,
        passes=passes + 1,
        converged=bool(residuals.max(initial=0) <= problem.tol * max(kept[0], 0)),
    )


@dataclass(frozen=True)
class Leading:
    """Leading eigenpairs of an operator, as far as they were found.

    `vectors` is (size, k); `values` are all estimates, more than k; `residuals` of the first k.
    """

    vectors: Matrix
    values: Vector
    residuals: Vector
    products: int
    converged: bool


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
    """The `k` largest eigenpairs of the symmetric operator `apply`, shape (size, size).

    Parameters
    ----------
    apply : callable
        (size, b) → (size, b).
    block : int
        Columns of a block.
    tol : float
        Largest residual allowed, relative to the largest eigenvalue.
    most_blocks : int
        Blocks after which to give up.
    against : array (size, m), optional
        Orthonormal columns that the answer must be orthogonal to.
    step : callable
        Told of every block; True asks to stop.
    """
    fixed = np.zeros((size, 0)) if against is None else against
    room = size - fixed.shape[1]
    block = min(block, room)
    basis = _Basis(fixed, min(room, block * most_blocks), n_jobs)
    basis.extend(random.standard_normal((size, block)))
    products = 0
    while True:
        start = basis.former
        W = apply(basis.last)
        products += 1
        R = basis.extend(W, into_T=True)
        values, Y = np.linalg.eigh(basis.T[: basis.former, : basis.former])
        values, Y = values[::-1], Y[:, ::-1]
        y = Y[:, : min(k, values.size)]
        residuals = np.linalg.norm(R @ y[start:], axis=0)
        small = residuals.max(initial=0) <= tol * max(values[0], 0)
        converged = bool(values.size >= k and small)
        full = basis.former >= basis.room or products >= most_blocks
        stop = step(residual=float(residuals.max(initial=0)), products=products)
        if converged or full or stop:
            break
        if basis.last.shape[1] == 0:  # an invariant subspace, smaller than what is wanted
            basis.extend(random.standard_normal((size, block)))
    vectors = basis.Q[:, : basis.former] @ y
    return Leading(vectors, values, residuals, products, converged)


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

    def extend(self, W: Matrix, *, into_T: bool = False) -> Matrix:
        """Append what is left of `W` beside the basis; returns R with that part = Q_new R."""
        W = self._project_out(self.fixed, W)[0]
        all_columns = self.Q[:, : self.size]
        W, first = self._project_out(all_columns, W)
        with one_blas_thread():
            Q, R = np.linalg.qr(W)
        Q = self._project_out(self.fixed, Q)[0]
        Q, second = self._project_out(all_columns, Q)
        if into_T:
            columns = slice(self.former, self.size)
            self.T[: self.size, columns] = first + second @ R
            self.T[columns, : self.size] = self.T[: self.size, columns].T
            self.former = self.size
        with one_blas_thread():
            Q, again = np.linalg.qr(Q)
        # A column that loses most of its length the second time was no new direction.
        new = np.abs(np.diagonal(again)) > 0.5
        new[self.room - self.size :] &= False
        Q = Q[:, new]
        self.Q[:, self.size : self.size + Q.shape[1]] = Q
        self.size += Q.shape[1]
        part: Matrix = (again @ R)[new]
        return part

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


def ritz(apply: Callable[[Matrix], Matrix], V: Matrix) -> tuple[Matrix, Vector, Vector]:
    """Best eigenpairs within the span of orthonormal `V`, and their measured residuals."""
    with one_blas_thread():
        image = apply(V)
        H = V.T @ image
        values, Y = np.linalg.eigh((H + H.T) / 2)
        values, Y = values[::-1], Y[:, ::-1]
        V, image = V @ Y, image @ Y
        return V, values, np.linalg.norm(image - V * values, axis=0)
