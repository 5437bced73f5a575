"""The interface of a fitted PCA for charts, and numbers that several charts share."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gnomon.charts.text import clean
from gnomon.charts.words import percent
from gnomon.errors import refuse
from gnomon.inputs import check_integer
from gnomon.typing import Array

__all__ = ["FittedPCA", "check_axes", "column_names", "components_needed", "known_shares"]


class FittedPCA(Protocol):
    """A fitted PCA with k components of D columns; `gnomon.PCA` is one.

    ``feature_names_in_`` (D names) is used where it exists; otherwise columns are x1, x2, ….
    """

    @property
    def explained_variance_(self) -> Array:
        """Variance along each kept component, shape (k,)."""

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the total variance of each kept component, shape (k,)."""

    @property
    def spectrum_(self) -> Array:
        """All variances known, largest first: at least the k kept ones."""

    @property
    def total_variance_(self) -> float:
        """Sum of all variances, known or not."""

    @property
    def components_(self) -> Array:
        """Orthonormal directions, shape (k, D)."""

    @property
    def loadings_(self) -> Array:
        """Components times their standard deviations, shape (D, k)."""

    @property
    def n_features_in_(self) -> int:
        """Number of columns, D."""

    @property
    def n_components_(self) -> int:
        """Number of kept components, k."""

    def correlations(self) -> Array:
        """Correlation of each column with each component, shape (D, k)."""

    def transform(self, X: Any) -> Any:
        """Scores of the rows of `X`, shape (n, k)."""


def column_names(model: FittedPCA) -> list[str]:
    """Column names, cleaned; x1, x2, … if the model was fitted without names."""
    names: Sequence[object] | None = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{i + 1}" for i in range(model.n_features_in_)]
    return [clean(name) for name in names]


def known_shares(model: FittedPCA) -> Array:
    """Share of the total variance of every known component; all zero if there is no variance."""
    spectrum = np.asarray(model.spectrum_, dtype=np.float64)
    total = float(model.total_variance_)
    if spectrum.size and 0 < total < np.inf and np.isfinite(spectrum).all():
        # Rounding may leave the last variances slightly below zero.
        return (spectrum / total).clip(0.0, 1.0)
    # Variances may overflow although their shares do not.
    return np.nan_to_num(np.asarray(model.explained_variance_ratio_, dtype=np.float64))


def components_needed(shares: Array, wanted: float) -> int | None:
    """Number of components with `wanted` of the variance; None if the known ones have less."""
    # Tolerance for rounding of the sum.
    reached = np.flatnonzero(np.cumsum(shares) >= wanted - 1e-12)
    return int(reached[0]) + 1 if reached.size else None


def check_axes(model: FittedPCA, axes: tuple[int, int]) -> tuple[int, int]:
    """Check `axes`: two different components of the model, counted from 0."""
    k = int(model.n_components_)
    if k < 2:
        refuse(
            "axes",
            "be two components, but the model has one",
            axes,
            "Fit with n_components=2 or more.",
        )
    must = f"be two different components from 0 to {k - 1}"
    if not isinstance(axes, Sequence) or isinstance(axes, str) or len(axes) != 2:
        refuse("axes", must, axes, kind=True)
    first, second = (check_integer("axes", axis, 0, k - 1) for axis in axes)
    if first == second:
        refuse("axes", must, axes)
    return first, second


def axis_title(model: FittedPCA, axis: int) -> str:
    """Name and share of a component: "PC1 · 36.2 %"."""
    share = float(np.nan_to_num(model.explained_variance_ratio_[axis]))
    return f"PC{axis + 1} · {percent(share)}"
