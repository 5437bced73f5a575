"""Warnings about a fit, each raised once."""

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataWarning, GnomonWarning, NotConvergedWarning, Remedy, Way, warn_caller
from gnomon.inputs import column_name
from gnomon.numeric.row_product import row_product
from gnomon.numeric.scaling import Rows
from gnomon.numeric.view import View
from gnomon.pca.solvers.problem import Solution

if TYPE_CHECKING:
    from gnomon.pca.estimator import PCA

# A first component with more than this share of the variance may be one column or one row.
DWARFED = 1 - 1e-6
# Parameters of scikit-learn's PCA that are accepted for compatibility, with their defaults.
NO_EFFECT = {"iterated_power": "auto", "n_oversamples": 10, "power_iteration_normalizer": "auto"}
TINY = float(np.finfo(np.float64).tiny)

log = logging.getLogger("gnomon")

__all__ = ["log_ignored_parameters", "warn_of_giants", "warn_of_solution"]


def log_ignored_parameters(model: "PCA") -> None:
    """Log which of scikit-learn's parameters were set and have no effect here."""
    for name, default in NO_EFFECT.items():
        if getattr(model, name) != default:
            log.info("`%s` has no effect: `tol` decides how exact the components are.", name)


def warn_of_solution(model: "PCA", solution: Solution) -> None:
    """Warn of zero variance, constant columns, and iterations that did not converge."""
    if model._total <= 0:
        _warn("All rows are the same: every variance is 0 and the components are arbitrary.")
    _warn_of_range(model)
    constant = solution.scaling.constant
    if constant.any() and not constant.all():
        _warn(
            "{many} constant column{s} (first: {column}) cannot be standardised and stay at 0. "
            "Drop them to avoid this warning.",
            many=constant.sum(),
            s="s" if constant.sum() > 1 else "",
            column=_column(model, int(np.flatnonzero(constant)[0])),
        )
    if "missing_" in model.__dict__ and not model.missing_.converged:
        _warn(
            f"Missing values were still moving by {model.missing_.moved:.0e} of a standard "
            f"deviation after {model.missing_.n_iter} iterations. Request fewer components.",
            kind=NotConvergedWarning,
        )
    certificate = model.certificate_
    if not certificate.converged:
        _warn(
            f"{model.solver_} stopped at a residual of {certificate.residuals.max():.0e}, above "
            f"tol = {certificate.tol:.0e}: the spectrum is nearly flat around component "
            f"{model.n_components_}.",
            Remedy.SEE_CERTIFICATE,
            kind=NotConvergedWarning,
        )


def _warn_of_range(model: "PCA") -> None:
    """Warn of variances that float64 cannot hold, though it holds the table."""
    largest, variances = model.total_variance_, model.explained_variance_
    if largest < np.inf and variances.min(initial=np.inf) >= TINY:
        return
    lost = (model._variances > 0) & (variances < TINY)
    if largest < np.inf and not lost.any():
        return
    what = (
        f"above the range of float64 ({np.finfo(np.float64).max:.1e}) and reported as infinity"
        if largest == np.inf
        else f"below the range of float64 ({TINY:.1e}), and {lost.sum()} of them lose digits or "
        "are reported as 0"
    )
    _warn(
        f"Variances are {what}; so are squared errors. Components, scores, ratios and singular "
        "values are not affected. Use other units (multiply X by a constant) to read variances."
    )


def warn_of_giants(model: "PCA", view: View, weights: NDArray[np.float64] | None) -> None:
    """Warn of one column or row that dominates all others; `view` holds the centred rows."""
    if model._total <= 0 or not (model.explained_variance_ratio_[:1] >= DWARFED).any():
        return
    column = int(np.argmax(np.abs(model.components_[0])))
    largest = model._working_variances[column]
    others = np.delete(model._working_variances, column)
    if others.size and largest > DWARFED * model._total:
        fold = np.sqrt(largest / max(others.max(), 1e-300))
        _warn(
            "Column {column} varies {fold:.0e} times as much as any other and alone decides "
            "distances and components.",
            Remedy.STANDARDIZE,
            column=_column(model, column),
            fold=fold,
        )
    total, most, row = _largest_energy(model, view, weights)
    # about the mean, a single outlier among n has (n − 1)/n of the sum
    n = view.shape[0]
    if n > 2 and most > 0.99 * (1 - 1 / n) * total:
        _warn(
            "{place} is so far from all others that it alone decides the components. Drop or "
            "check it.",
            place=f"Row {row}",
            row=row,
        )


def _largest_energy(
    model: "PCA", view: View, weights: NDArray[np.float64] | None
) -> tuple[float, float, int | str]:
    """Σ w z² of the first scores, the largest of them, and its row number, with file if any."""
    parts = view.collect(partial(_energy, components=model.components_[:1]), weights)
    at = int(np.argmax([most for _, most, _ in parts]))
    partition = view.table.partitions[at]
    row: int | str = partition.first + parts[at][2]
    if view.table.held_from is not None:
        number = partition.start + parts[at][2]
        partition = next(p for p in view.table.held_from.partitions if number < p.stop)
        row = f"{partition.first + number - partition.start} of {partition.file}"
    elif view.array is None:
        row = f"{row} of {partition.file}"
    return sum(total for total, _, _ in parts), parts[at][1], row


def _energy(
    rows: Rows,
    weights: NDArray[np.float64] | None,
    n_jobs: int | None,
    *,
    components: NDArray[np.float64],
) -> tuple[float, float, int]:
    first = row_product(rows, components.T, n_jobs=n_jobs)[:, 0]
    energy = first.astype(np.float64) ** 2 * (1.0 if weights is None else weights)
    row = int(np.argmax(energy))
    return float(energy.sum()), float(energy[row]), row


def _column(model: "PCA", index: int) -> int | str:
    """Quoted name of a column, or its number if it has none."""
    names = model._names()
    return index if names is None else column_name(names, index)


def _warn(text: str, *ways: Way, kind: type[GnomonWarning] = DataWarning, **fields: Any) -> None:
    """Warn, pointing at the user's line that called the fit."""
    warn_caller(kind(text, *ways, **fields))
