"""Eigenvalues of tables without correlation, the reference of parallel analysis.

A null table has normal, independent columns with given standard deviations. It is never formed:

1. Rows ≥ columns: its scatter is LLᵀ with L lower triangular, normal numbers below the diagonal and
   the roots of χ² with N − 1, N − 2, … degrees of freedom on it ([Bartlett 1933]): a cost free of
   N. Rows < columns: blocks of columns are drawn, and XXᵀ is added up.
2. Either is turned into a correlation matrix and given the columns' standard deviations.
3. Up to `EXACT_SIDE` rows and columns, all eigenvalues by LAPACK. Beyond, only the leading ones
   that are requested: block Krylov in float32, every block orthogonalised twice against all former
   ones, until residuals are below `TOL`. The error of an eigenvalue is far below its residual: 4e-4
   at most where it was measured, against 5e-3 from draw to draw.

Each table has its own seed, so threads may draw them in any order.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Array, Vector

Kind = type[np.float32] | type[np.float64]

EXACT_SIDE = 1000  # the shorter side up to which LAPACK is as quick (benchmarks/crossovers.py)
BLOCK = 16  # columns, as in `krylov`
TOL = 8e-3  # largest residual, relative to the eigenvalue
FAINT = 1e-4  # share of the largest eigenvalue below which float32 is too coarse
ROWS_AT_ONCE = 1024  # rows of L drawn together
NUMBERS_AT_ONCE = 2**21  # numbers of columns drawn together: 16 MB

__all__ = ["draw_seconds", "null_eigenvalues"]


def null_eigenvalues(
    spread: Vector, rows: int, seeds: Sequence[int], *, most: int, n_jobs: int | None
) -> NDArray[np.float64]:
    """Leading eigenvalues of one null covariance per seed, largest first.

    Parameters
    ----------
    spread : array (d,)
        Standard deviations of the columns, all above 0.
    rows : int
        Degrees of freedom, one less than the rows of a centred table.
    most : int
        Number of eigenvalues of each; where LAPACK computes all of them, all are returned.

    Returns
    -------
    array (len(seeds), m), m ≥ min(most, rows, d)
    """
    side = min(rows, spread.size)
    most = side if side <= EXACT_SIDE or 8 * most > side else most
    unit = float(spread.max())  # keeps squares in the range of float32

    def draw(start: int, stop: int) -> Vector:
        seed = seeds[start]
        if most < side:
            for dtype in (np.float32, np.float64):
                found = _leading(spread / unit, rows, seed, most, dtype)
                if found is not None:
                    return found * unit**2
        A, triangular = _factor(spread / unit, rows, np.random.default_rng(seed), np.float64)
        values: Vector = np.linalg.eigvalsh(A @ A.T if triangular else A)[::-1]
        return values[:most] * unit**2

    return np.array(map_blocks(draw, row_blocks(len(seeds), 1), n_jobs=n_jobs))


def draw_seconds(rows: int, columns: int) -> float:
    """Estimated seconds per null table on one thread, fitted by ``benchmarks/crossovers.py``."""
    side = min(rows, columns)
    numbers = columns * side / 2 if rows >= columns else columns * rows
    if side <= EXACT_SIDE:
        return 1.5e-10 * float(side) ** 3 + 6e-8 * numbers
    return 5.5e-8 * side**2 + (2e-8 + 1e-11 * side) * (numbers if rows < columns else 0)


def _factor(
    spread: Vector, rows: int, random: np.random.Generator, dtype: Kind
) -> tuple[Array, bool]:
    """Steps 1 and 2: L of LLᵀ and True, or for rows < columns XXᵀ itself and False."""
    d = spread.size
    if rows >= d:
        L = np.zeros((d, d), dtype)
        for start, stop in row_blocks(d, ROWS_AT_ONCE):
            part = random.standard_normal((stop - start, stop), dtype)
            L[start:stop, :stop] = np.tril(part, start - 1)
        np.fill_diagonal(L, np.sqrt(random.chisquare(rows - np.arange(d))))
        L *= _scale(L, spread)
        return L, True
    scatter = np.zeros((rows, rows), dtype)
    for start, stop in row_blocks(d, max(1, NUMBERS_AT_ONCE // rows)):
        columns = random.standard_normal((stop - start, rows), dtype)
        columns *= _scale(columns, spread[start:stop])
        scatter += columns.T @ columns
    return scatter, False


def _scale(lines: Array, spread: Vector) -> Array:
    """Factor that scales each line of numbers to length `spread`, shape (lines, 1)."""
    scale: Vector = spread / np.sqrt(np.einsum("ij,ij->i", lines, lines))
    return scale[:, None].astype(lines.dtype)


def _leading(spread: Vector, rows: int, seed: int, most: int, dtype: Kind) -> Vector | None:
    """Step 3 for large sides; None if float32 is too coarse, or half of a basis is not enough."""
    random = np.random.default_rng(seed)
    A, triangular = _factor(spread, rows, random, dtype)
    times: Callable[[Array], Array] = (lambda V: A @ (A.T @ V)) if triangular else (lambda V: A @ V)
    side = A.shape[0]
    values = np.zeros(most)
    T = np.zeros((0, 0))
    basis: list[Array] = []
    V = np.linalg.qr(random.standard_normal((side, BLOCK), dtype))[0]
    while 2 * len(basis) * BLOCK < side:
        basis.append(V)
        V, R = times(V), np.eye(BLOCK)
        new = np.zeros((len(basis) * BLOCK, BLOCK))
        for _ in range(2):  # V R: the new part of the product; `new`: its part in the basis
            for i, Q in enumerate(basis):
                overlap = Q.T @ V
                V -= Q @ overlap
                new[i * BLOCK : (i + 1) * BLOCK] += overlap @ R
            V, triangle = np.linalg.qr(V)
            R = triangle @ R
        T = np.block([[T, new[:-BLOCK]], [new.T]]) if T.size else new
        if T.shape[0] < most + BLOCK:
            continue
        found, S = np.linalg.eigh((T + T.T) / 2)
        values = found[::-1][:most]
        if dtype == np.float32 and values[-1] < FAINT * values[0]:
            return None
        residuals = np.linalg.norm(R @ S[-BLOCK:, ::-1][:, :most], axis=0)
        if (residuals <= TOL * values).all():
            return values
    return None
