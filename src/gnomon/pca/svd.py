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
from gnomon.moments import Moments, column_moments, moments_of_rows
from gnomon.parallel import fold_blocks, row_blocks
from gnomon.pca.problem import Matrix, Problem, Solution, product_error
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
        _, sigma, Vt = np.linalg.svd(table, full_matrices=False)
    most = min(moments.n, d)
    divisor = moments.divisor(problem.ddof)
    spectrum = (sigma**2 / divisor)[:most]
    k = problem.count(spectrum, scaling.total, moments, whole=True)
    Z = table / np.sqrt(divisor)
    norms = np.linalg.norm(Z.T @ (Z @ Vt[:k].T) - Vt[:k].T * spectrum[:k], axis=0)
    return Solution(
        moments=moments,
        scaling=scaling,
        components=Vt[:k].copy(),
        variances=spectrum[:k],
        spectrum=spectrum,
        whole=True,
        residuals=norms,
        formation=product_error(rows, spectrum[0]),
        passes=2,
    )


def triangle(rows: Rows, n_jobs: int | None) -> Matrix:
    """R of the QR factorisation of all rows, shape (d, d), from blocks in a fixed order."""
    n, d = rows.shape
    total: list[Matrix] = [np.zeros((0, d))]

    def reduce(start: int, stop: int) -> Matrix:
        return _upper(rows.read(start, stop))

    def add(R: Matrix) -> None:
        total[0] = _upper(np.vstack([total[0], R])) if total[0].size else R

    fold_blocks(reduce, row_blocks(n, max(4096, 2 * d)), add, n_jobs=n_jobs)
    return total[0]


def _upper(table: Floats) -> Matrix:
    R: Matrix = np.asarray(np.linalg.qr(table, mode="r"))
    return R
