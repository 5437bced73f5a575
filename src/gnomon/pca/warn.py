"""What the reader of a result should know, said once, as a warning."""

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataWarning, GnomonWarning, NotConvergedWarning
from gnomon.inputs import column_name
from gnomon.pca.problem import Solution
from gnomon.pca.project import project
from gnomon.rows import Rows
from gnomon.streams import Stream

if TYPE_CHECKING:
    from gnomon.pca.estimator import PCA

# A first component with more than this share of the variance may be one column or one row.
DWARFED = 1 - 1e-6

_INSIDE = ("gnomon.", "sklearn.", "contextlib")

__all__ = ["warn_of_giants", "warn_of_solution"]


def warn_of_solution(model: "PCA", solution: Solution) -> None:
    """No variance at all, constant columns, and iterations that did not converge."""
    if model._total <= 0:
        _say("All rows are the same: every variance is 0 and the components are arbitrary.")
    constant = solution.scaling.constant
    if constant.any() and not constant.all():
        first = column_name(model._names(), int(np.flatnonzero(constant)[0]))
        _say(
            f"{constant.sum()} constant column{'s' if constant.sum() > 1 else ''} (first: {first}) "
            "cannot be standardised and stay at 0. Drop them to be rid of this."
        )
    if "missing_" in model.__dict__ and not model.missing_.converged:
        _say(
            f"Missing values were still moving by {model.missing_.moved:.0e} of a standard "
            f"deviation after {model.missing_.n_iter} iterations. Ask for fewer components.",
            NotConvergedWarning,
        )
    certificate = model.certificate_
    if not certificate.converged:
        _say(
            f"{model.solver_} stopped at a residual of {certificate.residuals.max():.0e}, above "
            f"tol = {certificate.tol:.0e}: the spectrum is nearly flat around component "
            f"{model.n_components_}. `certificate_` says how far each component can be off; "
            "`solver='covariance'` or 'gram' is exact.",
            NotConvergedWarning,
        )


def warn_of_giants(model: "PCA", rows: Rows, weights: NDArray[np.float64] | None) -> None:
    """One column or one row so large that nothing else is seen; `rows` are the model's, centred."""
    if model._total <= 0 or model.explained_variance_ratio_[0] < DWARFED:
        return
    column = int(np.argmax(np.abs(model.components_[0])))
    largest = model._working_variances[column]
    others = np.delete(model._working_variances, column)
    if others.size and largest > DWARFED * model._total:
        fold = np.sqrt(largest / max(others.max(), 1e-300))
        _say(
            f"Column {column_name(model._names(), column)} varies {fold:.0e} times as much as any "
            "other and alone decides distances and components. Standardise the columns "
            "(`PCA(standardize=True)`) or use other units."
        )
    total, most, row = _largest_energy(model, rows, weights)
    # about the mean, a single wild row among n has (n − 1)/n of the sum
    n = rows.shape[0]
    if n > 2 and most > 0.99 * (1 - 1 / n) * total:
        _say(
            f"Row {row} is so far from all others that it alone decides the components. Drop or "
            "check it."
        )


def _largest_energy(
    model: "PCA", rows: Rows, weights: NDArray[np.float64] | None
) -> tuple[float, float, str]:
    """Σ w z² of the first scores, the largest of them, and what its row is called."""
    components = model.components_[:1]
    if not isinstance(rows, Stream):
        total, most, row = _energy(rows, weights, components, model.n_jobs)
        return total, most, str(row)
    parts = rows.map(partial(_energy, components=components), weights)
    at = int(np.argmax([most for _, most, _ in parts]))
    partition = rows.X.partitions[at]
    called = f"{partition.first + parts[at][2]} of {partition.file}"
    return sum(total for total, _, _ in parts), parts[at][1], called


def _energy(
    rows: Rows,
    weights: NDArray[np.float64] | None,
    components: NDArray[np.float64],
    n_jobs: int | None = 1,
) -> tuple[float, float, int]:
    first = project(rows, components, n_jobs=n_jobs)[:, 0]
    energy = first.astype(np.float64) ** 2 * (1.0 if weights is None else weights)
    row = int(np.argmax(energy))
    return float(energy.sum()), float(energy[row]), row


def _say(text: str, kind: type[GnomonWarning] = DataWarning) -> None:
    """Warn, pointing at the line outside Gnomon and scikit-learn that asked for the fit."""
    import sys

    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)
