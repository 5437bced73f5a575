"""Right singular vectors of the centred table, λ = σ²/N (the notes' (40)–(43)).

The most accurate method for small variances: Σ is never formed, so nothing is squared.

- Rows ≥ columns: blocks of rows are reduced to triangles R by Householder QR, two triangles to
  one, in order; R has the singular values and right singular vectors of the whole table. No copy
  of the table is made.
- Columns > rows: LAPACK's SVD of the centred table. Its components take as much memory as the
  table, so a copy is in proportion; for a sparse table the copy is dense, and the plan says so.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.numeric.certificate import Measured
from gnomon.numeric.moments import Moments, column_moments, moments_of
from gnomon.numeric.roundoff import PRECISION, ROUNDINGS
from gnomon.numeric.scaling import Rows
from gnomon.numeric.view import View
from gnomon.pca.solvers.problem import Problem, Solution, following
from gnomon.typing import Floats, Matrix, Vector

KEEP_MOMENTS_COLUMNS = 1024  # most columns for which the d × d moments are kept, for merging

NEEDS_ARRAY = True  # parts of the table are not enough
PASSES = 2  # over the table


def solve(problem: Problem) -> Solution:
    """Compute all singular values and vectors; keep the requested ones."""
    problem = replace(problem, view=problem.view.scaled(work=np.dtype(np.float64)))
    n, d = problem.view.shape
    mergeable = n >= d and d <= KEEP_MOMENTS_COLUMNS
    find: Callable[..., Moments] = moments_of if mergeable else column_moments
    moments = find(problem.view, problem.weights)
    scaling = problem.scaling(moments)
    view = problem.centred_view(moments, scaling)
    with one_blas_thread():
        rows = view.array
        assert rows is not None  # the plan ensures it
        table = triangle(rows, problem.n_jobs) if n >= d else rows.read(0, n)
        U, sigma, Vt = np.linalg.svd(table, full_matrices=False)
    most = min(moments.n, d)
    divisor = moments.divisor(problem.ddof)
    spectrum = (sigma**2 / divisor)[:most]
    k = problem.count(spectrum, scaling.total, moments, whole=True)
    singular = _measured(table, U[:, :k], sigma[:most], Vt[:k].T, _rounding(view, sigma[0]))
    first = float(sigma[0])
    unit = np.sqrt(divisor)
    return Solution(
        moments=moments,
        scaling=scaling,
        components=Vt[:k].copy(),
        variances=spectrum[:k],
        spectrum=spectrum,
        whole=True,
        # Σv − λv = Zᵀ(Zv − σu) + σ(Zᵀu − σv)
        residuals=(first + singular.values) * singular.residuals / divisor,
        formation=(2 * first + singular.formation) * singular.formation / divisor,
        following=following(spectrum, k, d),
        passes=PASSES,
        singular=Measured(
            singular.values / unit,
            singular.residuals / unit,
            singular.formation / unit,
            singular.following / unit,
        ),
    )


def _rounding(view: View, largest: float) -> float:
    """Estimated rounding error of the centred table and of its triangle.

    The rows were centred in two steps, and the triangles of blocks were merged one by one.
    """
    (n, d), scaling = view.shape, view.scaling
    assert scaling.offset is not None
    far = scaling.offset if scaling.factor is None else scaling.offset * scaling.factor
    weight = n if view.roots is None else float(view.roots @ view.roots)
    blocks = max(1.0, n / svd_block_rows(d)) if n >= d else 1.0
    size = float(largest) + float(np.sqrt(weight)) * float(np.linalg.norm(far))
    return ROUNDINGS * PRECISION * float(np.sqrt(blocks)) * size


def _measured(table: Floats, U: Matrix, sigma: Vector, V: Matrix, rounding: float) -> Measured:
    """Residuals ‖(Zv − σu, Zᵀu − σv)‖ and the other bounds on the angles of singular vectors.

    The pairs (u, v) are eigenvectors of [0 Z; Zᵀ 0], whose eigenvalues are σ, −σ and 0: the angle
    of v is bounded as for those [Wedin 1972].
    """
    k, d = V.shape[1], V.shape[0]
    kept = sigma[:k]
    with one_blas_thread():
        right = np.linalg.norm(table @ V - U * kept, axis=0)
        left = np.linalg.norm(table.T @ U - V * kept, axis=0)
    measuring = PRECISION * np.sqrt(d) * float(sigma[0])
    after = following(sigma, k, d) if k < d else -float(kept[-1])
    return Measured(kept, np.hypot(left, right) + measuring, rounding, after)


def triangle(rows: Rows, n_jobs: int | None) -> Matrix:
    """Factor R of the QR factorisation of all rows, shape (d, d), from blocks in a fixed order."""
    n, d = rows.shape
    total: list[Matrix] = [np.zeros((0, d))]

    def reduce(start: int, stop: int) -> Matrix:
        return _upper(rows.read(start, stop))

    def add(R: Matrix) -> None:
        total[0] = _upper(np.vstack([total[0], R])) if total[0].size else R

    fold_blocks(reduce, row_blocks(n, svd_block_rows(d)), add, n_jobs=n_jobs)
    return total[0]


def svd_block_rows(d: int) -> int:
    """Number of rows that are reduced to one triangle at a time."""
    return max(4096, 2 * d)


def _upper(table: Floats) -> Matrix:
    R: Matrix = np.asarray(np.linalg.qr(table, mode="r"))
    return R
