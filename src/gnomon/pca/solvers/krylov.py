"""Leading eigenpairs from a few products with Σ: for large tables and few components.

Block Krylov iteration [Musco & Musco 2015] in its block Lanczos form, for a symmetric operator A
that is given by its products only:

1. Q₁ is an orthonormal random block.
2. W = A Q_j, one pass over the table. The next block is W after its projections on former blocks
   are subtracted, **twice**: without the second time a prototype "captured" 104.6 % of the
   variance. The first time only the last two blocks are needed, because A is symmetric; the second
   time, after W was orthonormalised, all of them. Directions that depend on the others are dropped.
3. T = QᵀAQ is read from the coefficients of step 2. Its leading eigenpairs (θ, y) are the
   estimates, and the residual of each is known without another product: the part of AQy outside Q.
4. Repeat until every requested residual is below `tol`, or the number of blocks is reached.
5. One more product, on the columns' side, measures the residuals themselves for the certificate.

The basis of a float32 table is float32, as its products are, unless `tol` is smaller than what such
a basis reaches. The components, their residuals and T are float64.

`gnomon.pca.solvers.operator` has the products.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, map_blocks, row_blocks
from gnomon.numeric.moments import column_moments
from gnomon.numeric.roundoff import PRECISION, ROUNDINGS
from gnomon.pca.solvers.eigen import Eigen
from gnomon.pca.solvers.gram import orthonormal, orthonormal_turn
from gnomon.pca.solvers.operator import operator_for
from gnomon.pca.solvers.problem import Problem, Solution, product_error
from gnomon.typing import Floats, Matrix, Vector

NEEDS_ARRAY = False  # parts of the table are enough
PASSES = 2  # over the table, beside one for each block

# Narrow blocks converge further for the same number of columns; found by benchmarks/crossovers.py.
BLOCK = 16  # columns
OVERSAMPLING = 10  # extra columns when few components are requested
MOST_BLOCKS = 40  # blocks: 640 columns of basis
ROWS_AT_ONCE = 2048  # rows of the basis per product when it is orthogonalised
SHORT_TOL = 1e-6  # smallest tolerance for which the basis of a float32 table is float32
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
    work = np.dtype(np.float64) if problem.tol < SHORT_TOL else view.work
    precision = ROUNDINGS * float(np.finfo(work).eps)
    while True:
        found = leading(
            operator.apply,
            operator.side,
            k,
            block=block_width(k, problem.passes),
            tol=problem.tol,
            most_blocks=block_count(k, problem.passes),
            work=work,
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
    V, kept, residuals = ritz(operator.apply_columns, V, problem.n_jobs)
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
        following=following_bound(
            values, found.residuals / divisor + precision * values[0], variances, scaling.total, d
        ),
        passes=passes + (1 if operator.side == d else 3),
    )


def following_bound(
    values: Vector, residuals: Vector, variances: Vector, total: float, d: int
) -> float:
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
    apply: Callable[[Any], Matrix],
    size: int,
    k: int,
    *,
    block: int,
    tol: float,
    random: np.random.Generator,
    most_blocks: int = MOST_BLOCKS,
    against: Matrix | None = None,
    work: DTypeLike = np.float64,
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
    work : dtype
        Precision of the basis. With float32, residuals of 1e-6 are reached.
    step : callable
        Callback after every block; True stops the iteration.
    """
    fixed = np.zeros((size, 0)) if against is None else against
    room = size - fixed.shape[1]
    block = min(block, room)
    basis = _Basis(fixed, min(room, block * most_blocks), work, n_jobs)
    basis.extend(random.standard_normal((size, block)))
    products, next_look, history, before, stopped = 0, 0, [np.inf], 0.0, False
    while True:
        R = basis.multiply(apply(basis.last))
        products += 1
        due = basis.columns >= k and products >= next_look
        look = due or basis.full or products == most_blocks
        if look:
            values, Y = basis.leading_pairs(k + 1)
            residuals = np.linalg.norm(R @ Y[-R.shape[1] :], axis=0)
            top = max(float(values[0]), 1e-300)
            residual = float(residuals[:k].max(initial=0)) / top if basis.columns >= k else np.inf
            next_look = products + _note(history, residual, products, tol, most_blocks)
        stopped = step(residual=history[-1], products=products)
        if stopped or basis.full:
            break
        if look and history[-1] <= tol:
            # An invariant subspace holds one copy of a repeated eigenvalue per column of the
            # first block: random columns find the others, until there are no more.
            captured = float(values[:k].sum())
            if captured <= before * (1 + tol) or np.linalg.norm(R, 2) > tol * top:
                break
            before, next_look = captured, products + 1
            basis.extend(random.standard_normal((size, block)))
        elif look and (products >= most_blocks or _will_not_converge(history, tol, most_blocks)):
            break
        elif basis.last.shape[1] == 0:  # an invariant subspace with too few dimensions
            basis.extend(random.standard_normal((size, block)))
    if not look:
        values, Y = basis.leading_pairs(k + 1)
        residuals = np.linalg.norm(R @ Y[-R.shape[1] :], axis=0)
    return Leading(basis.times(Y[:, :k]), values, residuals, products, history[-1] <= tol, stopped)


def _note(
    history: list[float], residual: float, products: int, tol: float, most_blocks: int
) -> int:
    """Append the residuals since the last look; return the number of blocks until the next.

    These are half of those needed at the rate since the last look, because convergence gets
    faster and solving T takes as long as a product. Halfway through the blocks it is decided
    whether the iteration goes on.
    """
    last, blocks = history[-1], products + 1 - len(history)
    if not 0 < residual < last < np.inf:
        history += [residual] * blocks
        return 1
    history += np.geomspace(last, residual, blocks + 1)[1:].tolist()
    needed = blocks * np.log(residual / tol) / np.log(last / residual)
    most = most_blocks // 2 - products if 2 * products < most_blocks else products // 8
    return max(1, min(most, int(needed / 2)))


def _will_not_converge(history: list[float], tol: float, most_blocks: int) -> bool:
    """Whether the residual, at its current rate, will not reach `tol` within `most_blocks`."""
    done = len(history) - 1
    far = max(1, done // 4)
    if 2 * done < most_blocks or not np.isfinite(history[-1 - far]):
        return False
    pace = np.log(max(history[-1 - far], 1e-300) / max(history[-1], 1e-300)) / far
    return bool(np.log(max(history[-1], 1e-300) / tol) > pace * (most_blocks - done))


class _Basis:
    """Orthonormal columns Q, and T = QᵀAQ of those that A was applied to.

    Columns before `first` are kept fixed, those before `former` have been multiplied by A, and the
    block after them is `last`. Products with Q are in the precision of Q, sums over rows in
    float64. Rows are processed in fixed blocks, on threads.
    """

    def __init__(self, fixed: Matrix, room: int, work: DTypeLike, n_jobs: int | None) -> None:
        n, first = fixed.shape
        self.first = int(first)
        self.Q: Floats = np.empty((n, self.first + room), work, order="F")
        self.Q[:, : self.first] = fixed
        self.T = np.zeros((self.first + room,) * 2)
        self.before = self.former = self.size = self.first
        self.rows, self.n_jobs = row_blocks(n, ROWS_AT_ONCE), n_jobs

    @property
    def columns(self) -> int:
        """Number of columns that A was applied to."""
        return self.former - self.first

    @property
    def last(self) -> Floats:
        """The block that A is applied to next."""
        return self.Q[:, self.former : self.size]

    @property
    def full(self) -> bool:
        """Whether there is no room for another block."""
        return bool(self.former == self.Q.shape[1])

    def extend(self, W: Matrix) -> None:
        """Append the part of `W` outside the basis."""
        self._append(W, [slice(0, self.size)])

    def multiply(self, W: Matrix) -> Matrix:
        """Add W = A · last to T and append its new part Q_new R; return R."""
        # A is symmetric: its product with a block lies in this block, the one before and the next.
        R, C = self._append(W, [slice(0, self.first), slice(self.before, self.size)])
        columns = slice(self.former, len(C))
        self.before, self.former = columns.start, columns.stop
        self.T[: columns.stop, columns] = C
        self.T[columns, : columns.stop] = C.T
        return R

    def leading_pairs(self, k: int) -> tuple[Vector, Matrix]:
        """All eigenvalues of T, largest first, and the vectors of the first k."""
        columns = slice(self.first, self.former)
        eigen = Eigen(self.T[columns, columns])
        return eigen.values, eigen.vectors(min(k, self.columns))

    def times(self, Y: Matrix) -> Matrix:
        """Product of the columns that A was applied to with `Y`."""
        Q = self.Q[:, self.first : self.former]
        return _times(Q, Y.astype(Q.dtype), self.n_jobs)

    def _append(self, W: Matrix, near: list[slice]) -> tuple[Matrix, Matrix]:
        """Append the part of `W` outside the basis; return R and C with W = Q_new R + QC.

        1. The columns `near` are projected out, which hold all of QQᵀW but roundings.
        2. The rest is orthonormalised, and projected on all columns: this leaves a rounding of
           each column, however little of it was left by step 1.
        3. It is orthonormalised again, without the directions that were lost in step 2.
        """
        W = np.array(W, np.float64)
        C = self._coefficients(W, near)
        turn, R = _factor(self._subtract(W, C, near), W)
        everything = [slice(0, self.size)]
        rest = self._coefficients(W, everything, turn)
        gram = self._subtract(W, rest, everything)
        with one_blas_thread():
            sq_lengths, directions = np.linalg.eigh(gram)
            # A direction that loses most of its length the second time is not new.
            new = sq_lengths > 0.25
            lengths, directions = np.sqrt(sq_lengths[new]), directions[:, new]
            free = self.Q[:, self.size : self.size + lengths.size]
            free[...] = (W @ (directions / lengths))[:, : free.shape[1]]
        self.size += free.shape[1]
        return (directions * lengths).T @ R, C + rest @ R

    def _coefficients(self, W: Matrix, near: list[slice], turn: Matrix | None = None) -> Matrix:
        """QᵀW for the columns `near`, 0 for all others; `W` is multiplied by `turn` before."""
        C = np.zeros((self.size, W.shape[1]))

        def inner(start: int, stop: int) -> list[Floats]:
            if turn is not None:
                W[start:stop] = W[start:stop] @ turn
            block = W[start:stop].astype(self.Q.dtype)
            return [self.Q[start:stop, columns].T @ block for columns in near]

        def add(found: list[Floats]) -> None:
            for columns, more in zip(near, found, strict=True):
                C[columns] += more

        fold_blocks(inner, self.rows, add, n_jobs=self.n_jobs)
        return C

    def _subtract(self, W: Matrix, C: Matrix, near: list[slice]) -> Matrix:
        """Subtract QC from `W`, where C is 0 except for the columns `near`; return WᵀW."""
        gram, coefficients = np.zeros((W.shape[1],) * 2), C.astype(self.Q.dtype)

        def subtract(start: int, stop: int) -> Matrix:
            rest = W[start:stop]
            for columns in near:
                rest -= self.Q[start:stop, columns] @ coefficients[columns]
            return rest.T @ rest

        fold_blocks(subtract, self.rows, gram.__iadd__, n_jobs=self.n_jobs)
        return gram


def _factor(gram: Matrix, W: Matrix) -> tuple[Matrix | None, Matrix]:
    """Factor W = QR, given WᵀW; return R⁻¹ and R, where Q = W R⁻¹.

    By Cholesky of WᵀW, in a fraction of the time of Householder's method, unless columns are so
    close to each other that it would be inaccurate. Then `W` is replaced by Q, and None is returned
    instead of R⁻¹.
    """
    lengths = np.sqrt(np.diagonal(gram))
    if W.size and lengths.all():
        with suppress(np.linalg.LinAlgError), one_blas_thread():
            L = np.linalg.cholesky(gram / np.outer(lengths, lengths))
            if np.diagonal(L).min() > APART:
                return np.linalg.inv(L).T / lengths[:, None], L.T * lengths
    with one_blas_thread():
        W[...], R = np.linalg.qr(W)
    return None, R


def _times(A: Floats, B: Floats, n_jobs: int | None) -> Matrix:
    """Product AB on threads, in fixed blocks of rows."""
    out = np.empty((A.shape[0], B.shape[1]))

    def product(start: int, stop: int) -> None:
        out[start:stop] = A[start:stop] @ B

    map_blocks(product, row_blocks(len(A), ROWS_AT_ONCE), n_jobs=n_jobs)
    return out


def ritz(
    apply: Callable[[Matrix], Matrix], V: Matrix, n_jobs: int | None = None
) -> tuple[Matrix, Vector, Vector]:
    """Best eigenpairs within the span of `V`, and their measured residuals.

    V is orthonormalised in the same products that turn it, if its columns are nearly orthogonal.
    """
    rows = row_blocks(len(V), ROWS_AT_ONCE)
    gram, H = np.zeros((V.shape[1],) * 2), np.zeros((V.shape[1],) * 2)
    fold_blocks(lambda a, b: V[a:b].T @ V[a:b], rows, gram.__iadd__, n_jobs=n_jobs)
    turn = orthonormal_turn(gram)
    if turn is None:
        V, turn = orthonormal(V), np.eye(V.shape[1])
    image = apply(V)
    fold_blocks(lambda a, b: V[a:b].T @ image[a:b], rows, H.__iadd__, n_jobs=n_jobs)
    with one_blas_thread():
        H = turn.T @ H @ turn
        values, Y = np.linalg.eigh((H + H.T) / 2)
        values, turn = values[::-1], turn @ Y[:, ::-1]
    turned, sq_norms = np.empty(V.shape), np.zeros(len(values))

    def measure(start: int, stop: int) -> Vector:
        turned[start:stop] = V[start:stop] @ turn
        left = image[start:stop] @ turn - turned[start:stop] * values
        norms: Vector = np.einsum("ij,ij->j", left, left)
        return norms

    fold_blocks(measure, rows, sq_norms.__iadd__, n_jobs=n_jobs)
    measuring = PRECISION * np.sqrt(len(V)) * float(np.abs(values).max(initial=0.0))
    return turned, values, np.sqrt(sq_norms) + measuring
