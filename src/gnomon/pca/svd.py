"""Right singular vectors of the centred table, λ = σ²/N (the notes' (40)–(43)).

The most accurate way to small variances: Σ is never formed, so nothing is squared.

- Rows ≥ columns: blocks of rows are reduced to triangles R by Householder QR, two triangles to
  one, in order; R has the singular values and right singular vectors of the whole table. No copy
  of the table is made.
- Columns > rows: LAPACK's SVD of the centred table. Its components take as much room as the table,
  so a copy is in proportion; of a sparse table it is a dense one, and the plan says so.
"""

from dataclasses import replace

import numpy as np

from gnomon.blas import one_blas_thread
from gnomon.certificate import Measured
from gnomon.moments import Moments, column_moments, moments_of_rows
from gnomon.parallel import fold_blocks, row_blocks
from gnomon.pca.problem import Matrix, Problem, Solution, Vector, following
from gnomon.roundoff import PRECISION, ROUNDINGS
from gnomon.rows import Floats, Rows

KEEP_MOMENTS = 1024  # columns up to which the d × d moments are kept, for merging


def solve(problem: Problem) -> Solution:
    """All singular values and vectors, of which the wanted ones are kept."""
    rows, weights = replace(problem.rows, work=np.dtype(np.float64)), problem.weights
    n, d = rows.shape
    mergeable = n >= d and d <= KEEP_MOMENTS
    moments: Moments = (moments_of_rows if mergeable else column_moments)(
        rows, weights, n_jobs=problem.n_jobs
    )
    scaling = problem.scaling(moments)
    centred = replace(rows, exponent=moments.exponent).centred(
        moments.offset, scaling.factor, problem.root_weight
    )
    with one_blas_thread():
        table = triangle(centred, problem.n_jobs) if n >= d else centred.read(0, n)
        U, sigma, Vt = np.linalg.svd(table, full_matrices=False)
    most = min(moments.n, d)
    divisor = moments.divisor(problem.ddof)
    spectrum = (sigma**2 / divisor)[:most]
    k = problem.count(spectrum, scaling.total, moments, whole=True)
    singular = _measured(table, U[:, :k], sigma[:most], Vt[:k].T, _rounding(centred, sigma[0]))
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
        passes=2,
        singular=Measured(
            singular.values / unit,
            singular.residuals / unit,
            singular.formation / unit,
            singular.following / unit,
        ),
    )


def _rounding(rows: Rows, largest: float) -> float:
    """Estimated error of the centred table and of its triangle, by rounding.

    The rows were centred in two steps, and the triangles of blocks were added one to the other.
    """
    n, d = rows.shape
    assert rows.offset is not None
    far = rows.offset if rows.factor is None else rows.offset * rows.factor
    weight = n if rows.root_weight is None else float(rows.root_weight @ rows.root_weight)
    blocks = max(1.0, n / block_rows(d)) if n >= d else 1.0
    size = float(largest) + float(np.sqrt(weight)) * float(np.linalg.norm(far))
    return ROUNDINGS * PRECISION * float(np.sqrt(blocks)) * size


def _measured(table: Floats, U: Matrix, sigma: Vector, V: Matrix, rounding: float) -> Measured:
    """Residuals ‖(Zv − σu, Zᵀu − σv)‖ and what else bounds the angles of singular vectors.

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
    """R of the QR factorisation of all rows, shape (d, d), from blocks in a fixed order."""
    n, d = rows.shape
    total: list[Matrix] = [np.zeros((0, d))]

    def reduce(start: int, stop: int) -> Matrix:
        return _upper(rows.read(start, stop))

    def add(R: Matrix) -> None:
        total[0] = _upper(np.vstack([total[0], R])) if total[0].size else R

    fold_blocks(reduce, row_blocks(n, block_rows(d)), add, n_jobs=n_jobs)
    return total[0]


def block_rows(d: int) -> int:
    """Rows that are reduced to one triangle at a time."""
    return max(4096, 2 * d)


def _upper(table: Floats) -> Matrix:
    R: Matrix = np.asarray(np.linalg.qr(table, mode="r"))
    return R
