"""Rows of weight zero: they have no part in the fit, and are placed on the finished map.

Which rows of the fit are nearest to them is found once. Their places follow from that whenever the
map moves: when a run is resumed, too.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.inputs import is_sparse
from gnomon.tsne.map import MOST_AXES, Map
from gnomon.typing import Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

__all__ = ["LeftOutRows", "rows_of_fit", "split_rows"]


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """The rows that a fit left out, and the rows of the fit that they are placed by.

    Attributes
    ----------
    fitted : array (n,)
        The rows of the fit, by their numbers among all n + m rows.
    indices : array (m, k), int32
        The rows of the fit that are nearest to each of the others, by their numbers in the fit.
    distances : array (m, k)
    """

    fitted: NDArray[np.intp] = field(repr=False)
    indices: NDArray[np.int32] = field(repr=False)
    distances: Floats64 = field(repr=False)

    @classmethod
    def find(
        cls, X: Table, fitted: NDArray[np.intp], fixed: Map | None, n_jobs: int | None
    ) -> "LeftOutRows":
        """Search the rows of a map that are nearest to `X`, the rows that were left out."""
        assert fixed is not None  # `rows_of_fit` refused what places no rows
        return cls(fitted, *fixed.nearest(X, n_jobs))

    def all_positions(self, fixed: Map | None, n_jobs: int | None) -> NDArray[Any]:
        """Positions of all rows: those of the map, and the places of the rows that it lacks."""
        assert fixed is not None
        n = self.fitted.size + len(self.indices)
        found = np.empty((n, fixed.positions.shape[1]), fixed.positions.dtype)
        found[self.fitted] = fixed.positions
        found[_others(self.fitted, n)] = fixed.places(self.indices, self.distances, n_jobs)
        return found


def rows_of_fit(model: "TSNE", X: Table, weights: Floats64 | None) -> NDArray[np.intp] | None:
    """The rows with a weight above zero; None if these are all. Refuses what cannot be placed."""
    if weights is None or weights.all():
        return None
    must, why = "be above zero for every row", "zero for some"
    if model.affinity == "precomputed":
        refuse("sample_weight", "be None for precomputed affinities", "weights")
    if int(model.n_components) > MOST_AXES:
        most = f"Rows of weight zero are placed, in up to {MOST_AXES} dimensions."
        refuse("sample_weight", f"{must} of a map in more dimensions", why, most)
    if model.metric == "precomputed" and is_sparse(X):
        refuse("sample_weight", f"{must} of a graph", why, "Leave them out of the graph.")
    return np.flatnonzero(weights)


def split_rows(model: "TSNE", X: Table, fitted: NDArray[np.intp]) -> tuple[Table, Table]:
    """The rows of the fit, and the others as new rows; distances are those to rows of the fit."""
    others = _others(fitted, X.shape[0])
    if model.metric == "precomputed":
        X = X[:, fitted]
    return X[fitted], X[others]


def _others(fitted: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    mask = np.ones(n, bool)
    mask[fitted] = False
    return mask
