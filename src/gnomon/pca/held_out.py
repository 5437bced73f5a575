"""Residuals of rows as if they had had no part in the fit, without a second fit.

The rows of a fit lie nearer to its components than new rows do: on 2,000 images of 784 pixels the
residual that 1 % of the fitted rows exceed is exceeded by 2.7 % of new ones, on 300 rows of noise
by all of them. So some rows are held out, a fold f at a time, and their moments are taken out of
those of the table. With the working rows z about the mean, the scatter S of all rows, its
components W (k, d) and S Wᵀ = Wᵀ diag(σ), σ = (Σw − ddof) λ:

1. The scatter of the other rows about their own mean δ, applied to the components, needs the rows
   of the fold alone: Y = S₋ Wᵀ = Wᵀ diag(σ) − Σ_f w z (W z)ᵀ − W₋ δ (W δ)ᵀ, with W₋ the weight of
   the others and δ = −Σ_f w z / W₋. Each row's own part in each component is out of it.
2. The eigenvalues θ of W Y, about those that the others give to their own components. A direction
   that the others give less than the first component left out (σ at k + 1, by their share) is
   one that a few rows of the fold made for themselves: it is dropped.
3. Q, an orthonormal basis of what is left of Y: one step of subspace iteration on S₋ from Wᵀ. The
   squared residual of a row of the fold is ‖z − δ‖² − ‖Qᵀ(z − δ)‖².

No d × d matrix, so it serves every solver, sparse tables, and models of which the moments were not
kept. With folds of a third of the rows it agrees with components that were computed from
`Moments` of all rows minus those of the fold: 0.8 to 1.3 % of new rows lie beyond the limit that
1 % of held-out rows exceed, on images, cells, noise and heavy tails, flat spectra among them.
Smaller folds remember more of their rows (2.6 % of new rows for tenths of 3,000 × 200 noise).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gnomon.blas import one_blas_thread
from gnomon.inputs import Table, is_sparse
from gnomon.parallel import map_blocks, quiet
from gnomon.pca.measure import EPS, Matrix, Vector
from gnomon.pca.operator import SparseOperator
from gnomon.rows import Rows

if TYPE_CHECKING:
    from gnomon.pca.estimator import PCA

__all__ = ["choose_folds", "held_out_residuals"]

Rowset = NDArray[np.intp]

MOST_ROWS = 5000  # held out in all: the share beyond a 1 % limit is then known to 0.14 %
MOST_NUMBERS = 2**24  # of all rows held out, a fold of which is held in memory as float64
LEAST_ROWS = 300  # however long they are
FOLDS = 3


def choose_folds(n: int, d: int, of: int, seed: int) -> list[Rowset]:
    """Which of `n` rows of `d` columns are held out, and together: at most 5,000, at random.

    Each fold has a third, at most, of the `of` rows that the components were computed from.
    """
    few = min(MOST_ROWS, max(LEAST_ROWS, MOST_NUMBERS // max(1, d)))
    rows = np.random.default_rng(seed).permutation(n)[:few]
    count = max(1, -(-FOLDS * rows.size // max(1, of)))
    return np.array_split(rows, min(count, rows.size))


@one_blas_thread()
def held_out_residuals(
    model: "PCA", X: Table, folds: Sequence[Rowset], weights: Vector | None = None
) -> Vector:
    """Squared prediction errors of the rows of `folds` under the components of all other rows.

    One fold after the other, in units of 4^`_unit` (see `gnomon.pca.measure`). Beside squares of
    rows that are 1e8 times larger they are rounding.

    Parameters
    ----------
    model : PCA
        Fitted on rows among which those of `X` are. If it was fitted on fewer rows than `X` has,
        none are taken for its own: what is returned is their prediction error.
    X : array or CSR array, shape (n, d)
    folds : sequence of arrays of int
        Rows of `X`.
    weights : array (n,), optional
        As in the fit.
    """
    if model.n_samples_ < X.shape[0]:
        return np.concatenate([model._measure(X[fold]).sq_residuals for fold in folds])

    def of_fold(at: int, _: int) -> Vector:
        fold = folds[at]
        w = np.ones(fold.size) if weights is None else weights[fold]
        return _residuals(model, _Fold(model._rows(X[fold])), w)

    ranges = [(at, at + 1) for at in range(len(folds))]
    return np.concatenate(map_blocks(quiet(of_fold), ranges, n_jobs=model.n_jobs))


def _residuals(model: "PCA", fold: "_Fold", w: Vector) -> Vector:
    """Squared residuals of the rows of a fold, which have the weights `w`."""
    basis, delta = _components_without(model, fold, w)
    inside = fold.times(np.column_stack([basis, delta]))
    scores, along = inside[:, :-1] - delta @ basis, inside[:, -1]
    sq_norms = fold.sq_norms() - 2 * along + delta @ delta
    sq_residuals: Vector = np.maximum(sq_norms - np.einsum("ij,ij->i", scores, scores), 0.0)
    return sq_residuals


def _components_without(model: "PCA", fold: "_Fold", w: Vector) -> tuple[Matrix, Vector]:
    """Components of the others as columns (d, k or fewer), and their mean δ (d,)."""
    W, divisor = model.components_, model._divisor()
    sigma, total = divisor * model._variances, divisor + int(model.ddof)
    left = max(total - float(w.sum()), 0.0)
    taken = fold.sums(np.column_stack([fold.times(W.T) * w[:, None], w]))
    delta = -taken[-1] / left if left > 0 else np.zeros(W.shape[1])
    Y = sigma[:, None] * W  # transposed: rows are quicker to add up than columns
    Y -= taken[:-1]
    Y -= left * np.outer(W @ delta, delta)
    B = Y @ W.T
    theta, V = np.linalg.eigh((B + B.T) / 2)
    floor = max(_first_left_out(model) * divisor * left / total, EPS * W.shape[1] * sigma[0])
    kept = theta > floor
    return np.linalg.qr(((V[:, kept] / theta[kept]).T @ Y).T)[0], delta


def _first_left_out(model: "PCA") -> float:
    """Variance of the first component that was not kept; the mean of all those if unknown."""
    k = model.components_.shape[0]
    return float(model._spectrum[k]) if model._spectrum.size > k else float(model._noise)


class _Fold:
    """Products with the working rows Z (m, d) of a fold; a sparse one stays sparse."""

    def __init__(self, rows: Rows) -> None:
        self.sparse = SparseOperator(rows, 1) if is_sparse(rows.X) else None
        self.Z = np.empty((0, 0)) if self.sparse else rows.read(0, rows.shape[0])

    def times(self, A: Matrix) -> Matrix:
        """Z A."""
        return self.sparse.forward(A) if self.sparse else self.Z @ A

    def sums(self, U: Matrix) -> Matrix:
        """Uᵀ Z."""
        return self.sparse.transposed(U).T if self.sparse else U.T @ self.Z

    def sq_norms(self) -> Vector:
        """‖z‖² of every row."""
        if self.sparse is None:
            return np.asarray(np.einsum("ij,ij->i", self.Z, self.Z))
        # z = x − μ with few numbers in x: ‖x‖² − 2 x·μ + ‖μ‖², and z·μ = x·μ − ‖μ‖² is known
        mean = self.sparse.mean
        stored = self.sparse.by_rows
        sq = np.add.reduceat(np.append(stored.data**2, 0.0), stored.indptr[:-1].astype(np.intp))
        sq[np.diff(stored.indptr) == 0] = 0.0
        sq_norms: Vector = sq - 2 * self.times(mean[:, None])[:, 0] - mean @ mean
        return sq_norms
