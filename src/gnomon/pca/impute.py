"""Imputation of missing values by iterated, regularised low-rank reconstruction.

The iterative PCA of [Josse & Husson 2016], an expectation-maximisation for a low-rank signal in
noise:

1. Fill the gaps with the columns' means.
2. Fit q components to the filled table; the mean of the other variances is the noise σ².
3. Refill the gaps with the reconstruction x̂ = W S Wᵀ(x − μ) + μ, in which each component is shrunk
   by S = (λ − σ²)/λ. Without the shrinking, sparse tables are overfitted.
4. Repeat from 2 until the filled-in values move less than `MOVED` of the columns' spreads.

The effect of the gaps is estimated by hiding as many cells again (`angles_lost`). A new row is
filled in by the same fixed point, which has a closed form for a single row: with the
observed entries o, solve (W_oᵀW_o + σ²/(Λ − σ²)) z = W_oᵀ(x − μ)_o and fill the rest with Wz + μ.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs import column_name, refuse_bad_values
from gnomon.numeric.view import view_array
from gnomon.pca.rank import Request
from gnomon.pca.solvers import covariance, gram
from gnomon.pca.solvers.problem import ColumnFactors, Problem, Solution
from gnomon.records import Record
from gnomon.typing import Matrix, Table

MOVED = 1e-6  # of the columns' spreads
MOST_ITERATIONS = 1000  # then `NotConvergedWarning`
FREE_PENALTY = 1e-10  # negligible penalty, instead of 0
REFITS = 2  # refits with as many cells hidden again
REFIT_MOVED = 1e-3  # of a column's spread: an angle to a digit or two is enough
REFIT_ITERATIONS = 30
CHUNK_NUMBERS = 2**22  # numbers per chunk when new rows are filled in

__all__ = ["Filling", "Imputation", "angles_lost", "fill_rows", "impute"]


@dataclass(frozen=True, eq=False)
class Imputation(Record):
    """How missing values were filled in.

    Attributes
    ----------
    n_missing : int
        Number of missing cells, out of `n_cells`.
    rank : int
        Components used for filling in.
    noise_variance : float
        σ², in units of the working columns.
    n_iter, converged, moved
        Iterations; whether the values converged; the last movement, relative to the spreads.
    """

    n_missing: int
    n_cells: int
    rank: int
    noise_variance: float
    n_iter: int
    moved: float
    converged: bool
    components: Matrix = field(repr=False)
    penalty: NDArray[np.float64] = field(repr=False)

    def title(self) -> str:
        """One-line summary."""
        share = 100 * self.n_missing / self.n_cells
        state = "converged" if self.converged else "NOT converged"
        return (
            f"{self.n_missing:,} missing value{'s' * (self.n_missing != 1)} ({share:.2g} %) filled "
            f"in from {self.rank} component{'s' * (self.rank != 1)}; {state} after {self.n_iter} "
            f"iteration{'s' * (self.n_iter != 1)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Fields as a dictionary, without the arrays that only `transform` needs."""
        return {k: v for k, v in super().to_dict().items() if k not in ("components", "penalty")}


class Filling(NamedTuple):
    """Rows with their gaps filled in, and the fit that filled them.

    `table` is the problem of these rows; `fit` holds the components that filled the gaps.
    """

    X: Matrix
    holes: NDArray[np.bool_]
    table: Problem
    solve: Callable[[Problem], Solution]
    fit: Solution
    report: Imputation


def impute(problem: Problem) -> tuple[Matrix, Filling]:
    """Fill in the gaps in a copy of `X`; return it and the filling.

    Rows of weight 0 are ignored, and set to the mean in the copy.
    """
    n, weights = problem.view.shape[0], problem.weights
    present = np.arange(n) if weights is None else np.flatnonzero(weights)
    X, holes = _filled_with_means(problem, present)
    kept = None if weights is None else weights[present]
    table = replace(problem, view=view_array(X, problem.n_jobs), weights=kept)
    solve = covariance.solve if X.shape[0] >= X.shape[1] else gram.solve
    asked = replace(table, request=Request(_rank(table, solve)))
    fit, report = _settle_gaps(asked, solve, X, holes, MOVED, MOST_ITERATIONS)
    filling = Filling(X, holes, asked, solve, fit, report)
    if present.size == n:
        return X, filling
    whole = np.tile(fit.moments.mean, (n, 1))
    whole[present] = X
    return whole, filling


def _settle_gaps(
    asked: Problem,
    solve: Callable[[Problem], Solution],
    X: Matrix,
    holes: NDArray[np.bool_],
    enough: float,
    most: int,
) -> tuple[Solution, Imputation]:
    """Run steps 2 to 4 on `X`, in place, until the gaps move by less than `enough`."""
    rank = asked.request.first_guess(min(X.shape))
    moved, n_iter, converged = np.inf, 0, not holes.any()
    while True:
        fit = solve(replace(asked, view=view_array(X, asked.n_jobs)))
        noise = max(0.0, fit.scaling.total - fit.variances.sum()) / max(1, min(X.shape) - rank)
        shrink = np.divide(
            fit.variances - noise, fit.variances, out=np.zeros(rank), where=fit.variances > noise
        )
        if converged or n_iter == most or asked.step(iteration=n_iter, moved=moved):
            break
        moved = _refill(X, holes, fit, shrink)
        n_iter += 1
        converged = moved <= enough
    report = Imputation(
        n_missing=int(holes.sum()),
        n_cells=holes.size,
        rank=rank,
        noise_variance=float(noise),
        n_iter=n_iter,
        moved=float(moved) if np.isfinite(moved) else 0.0,
        converged=bool(converged),
        components=fit.components[shrink > 0],
        penalty=noise / (fit.variances - noise)[shrink > 0],
    )
    return fit, report


def angles_lost(filling: Filling, components: Matrix) -> NDArray[np.float64]:
    """Estimate how far the gaps turned each of the `components`, in radians; shape (k,).

    Twice, the rows' patterns of gaps are assigned to other rows. The cells hidden by that
    are filled in from the others, the components are computed again, and the angles between both
    are measured. Squares of angles grow with the number of gaps.
    """
    X, holes, asked = filling.X, filling.holes, filling.table
    k, random = len(components), np.random.default_rng(0)
    total = np.zeros(k)
    for _ in range(REFITS):
        hidden = _hidden_too(holes, random)
        if not hidden.any():
            return np.zeros(k)
        again = _filled_once(np.where(hidden, np.nan, X), filling)
        _settle_gaps(asked, filling.solve, again, holes | hidden, REFIT_MOVED, REFIT_ITERATIONS)
        wanted = replace(asked, request=Request(k), view=view_array(again, asked.n_jobs))
        found = filling.solve(wanted).components
        cosines = np.einsum("ij,ij->i", components, found)
        sines = np.linalg.norm(components - cosines[:, None] * found, axis=1)
        total += np.arcsin(np.minimum(sines, 1.0)) ** 2 * (holes.sum() / hidden.sum())
    angles: NDArray[np.float64] = np.minimum(np.sqrt(total / REFITS), np.pi / 2)
    return angles


def _hidden_too(holes: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    """Known cells to hide: where other rows have gaps, but without emptying a row or column."""
    hidden = holes[random.permutation(len(holes))] & ~holes
    if not hidden.any():  # a single gap may be assigned to its own row
        hidden = ~holes & (random.random(holes.shape) < holes.mean())
    known = np.count_nonzero(~holes, axis=0)
    for column in np.flatnonzero(2 * hidden.sum(axis=0) > known):
        rows = np.flatnonzero(hidden[:, column])
        hidden[random.permutation(rows)[known[column] // 2 :], column] = False
    hidden[(hidden | holes).all(axis=1)] = False
    return hidden


def _filled_once(X: Matrix, filling: Filling) -> Matrix:
    """Fill in the gaps of `X` once from the current components."""
    e = filling.fit.moments.exponent
    unit = np.ldexp(X, -e) if e else X
    filled: Matrix = fill_rows(
        unit,
        filling.report,
        mean=np.ldexp(filling.fit.moments.mean, -e),
        factor=_factor(filling.fit.scaling),
        names=None,
    )
    return np.ldexp(filled, e) if e else filled


def _filled_with_means(
    problem: Problem, present: NDArray[np.intp]
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Run step 1 on a float64 copy of the rows with a weight; also return where the gaps are."""
    rows = problem.view.array
    assert rows is not None  # `fit` has read the table into memory
    refuse_bad_values(rows.X, names=rows.names, nan=False)
    some = present.size < rows.shape[0]
    X = (rows.X[present] if some else rows.X).astype(np.float64, order="C", copy=not some)
    holes = np.isnan(X)
    empty = holes.all(axis=0)
    if empty.any():
        name = column_name(rows.names, int(np.flatnonzero(empty)[0]))
        where = " in the rows of weight above 0" if some else ""
        raise DataError(f"Column {name} of X has no value at all{where}. Drop it.")
    if holes.all(axis=1).any():
        row = int(present[np.flatnonzero(holes.all(axis=1))[0]])
        raise DataError(f"Row {row} of X has no value at all. Drop it.")
    weights = np.ones(X.shape[0]) if problem.weights is None else problem.weights[present]
    known = np.where(holes, 0.0, weights[:, None])
    means = np.where(holes, 0.0, X).T @ weights / np.maximum(known.sum(axis=0), 1e-300)
    X[holes] = np.broadcast_to(means, X.shape)[holes]
    return X, holes


def _rank(problem: Problem, solve: Callable[[Problem], Solution]) -> int:
    """Number of components to fill in from: the requested number, but always fewer than all."""
    most = min(problem.view.shape) - 1
    request = problem.request
    if isinstance(request.asked, int):
        return max(1, min(request.asked, most))
    request = Request("parallel") if request.asked is None else request
    fit = solve(replace(problem, request=request))
    return max(1, min(fit.variances.size, most))


def _refill(X: Matrix, holes: NDArray[np.bool_], fit: Solution, shrink: Matrix) -> float:
    """Run step 3 in place; return the movement, relative to the spread of the filled columns."""
    factor = _factor(fit.scaling)
    mean, rows = fit.moments.mean, np.flatnonzero(holes.any(axis=1))
    unit = np.ldexp(1.0, fit.moments.exponent)
    factor = factor / unit if fit.scaling.factor is not None else factor
    scores = ((X[rows] - mean) * factor) @ fit.components.T
    restored = (scores * shrink) @ fit.components / factor + mean
    gaps = holes[rows]
    change = np.where(gaps, restored - X[rows], 0.0)
    # A nearly constant column has converged if it moves little compared to the other spreads.
    spread = np.sqrt(fit.moments.variance(0)) * unit
    relative = change / np.maximum(spread, 1e-3 * max(spread.max(), np.finfo(float).tiny))
    X[rows] += change
    return float(np.sqrt((relative**2).sum() / max(1, gaps.sum())))


def _factor(scaling: ColumnFactors) -> Matrix:
    """Column factors without zeros (constant columns are restored from their mean)."""
    if scaling.factor is None:
        return np.ones_like(scaling.scale)
    return np.where(scaling.factor == 0, 1.0, scaling.factor)


def fill_rows(
    X: Table, how: Imputation, *, mean: Matrix, factor: Matrix, names: NDArray[Any] | None
) -> Table:
    """Fill in the gaps of new rows, each row on its own; copies only if there are gaps."""
    if hasattr(X, "nnz") or X.dtype.kind != "f":
        return X
    refuse_bad_values(X, names=names, nan=False)
    at = np.flatnonzero(np.isnan(X).any(axis=1))
    if not at.size:
        return X
    W, filled = how.components, X.copy()
    step = max(1, CHUNK_NUMBERS // max(1, W.size))
    for start in range(0, at.size, step):
        rows = at[start : start + step]
        part = X[rows].astype(np.float64)
        seen = ~np.isnan(part)
        working = np.where(seen, (np.where(seen, part, 0.0) - mean) * factor, 0.0)
        observed = W * seen[:, None, :]  # stacked matrices: one small system for every row
        left = observed @ W.T + np.diag(how.penalty)
        right = observed @ working[:, :, None]
        # Without noise, the known cells may leave directions undetermined: take the shortest z.
        free = how.penalty.min(initial=1.0) < FREE_PENALTY
        z = (
            np.linalg.pinv(left, FREE_PENALTY, hermitian=True) @ right
            if free
            else np.linalg.solve(left, right)
        )
        restored = (z.transpose(0, 2, 1) @ W)[:, 0] / factor + mean
        filled[rows] = np.where(seen, part, restored)
    return filled
