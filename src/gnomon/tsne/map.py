"""The t-SNE model: a finished map as plain numbers, and how new rows are placed on it.

`TSNE` finds these numbers; workers, sampled maps and the command use them. Neither P nor anything
else of the descent is among them: of what a fit finds, placing needs the smaller part. A row's
place does not depend on the rows beside it, so arrays and parts of tables give the same bits.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.inputs import refuse_bad_values
from gnomon.neighbors.search import NeighborSearch
from gnomon.pca.components import Components
from gnomon.scores.few_rows import trusted
from gnomon.scores.neighbors_kept import share_kept
from gnomon.tsne.graph import nearest_given
from gnomon.tsne.novelty import Novelty, distance_ratios
from gnomon.tsne.place import NEIGHBORS, PERPLEXITY, Placement, PlacingField
from gnomon.typing import Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

MOST_AXES = 3  # of a mesh

__all__ = ["MOST_AXES", "Map", "make_map"]


@dataclass(frozen=True, eq=False)
class Map:
    """Where the rows of a table lie, and what new rows are compared with.

    What is built for placing (`placing_field`, `plane`, the index of `search`) is left out of
    pickles and built again, with the same bits, where it is needed.

    Attributes
    ----------
    positions : array (n, dimensions)
    dof : float
        Degrees of freedom of the kernel.
    spacing : float
        Of the mesh that the field is laid on.
    typical : array (n,)
        Mean distance of each row to its nearest ones.
    novelty : Novelty
        Limits beyond which new rows are unusual.
    search : NeighborSearch or None
        Over the rows as they were compared; None where new rows come as distances.
    metric : str
        Of the distances.
    weights : array (n,) or None
        How many copies each row stands for.
    components : Components or None
        What reduces rows before they are compared.
    whiten : bool
        Whether the scores are whitened.
    names : array (d,) of str or None
        Names of the columns, for error messages.
    """

    positions: NDArray[Any] = field(repr=False)
    dof: float
    spacing: float
    typical: Floats64 = field(repr=False)
    novelty: Novelty
    search: NeighborSearch | None = field(repr=False)
    metric: str = "euclidean"
    weights: Floats64 | None = field(default=None, repr=False)
    components: Components | None = field(default=None, repr=False)
    whiten: bool = False
    names: NDArray[Any] | None = field(default=None, repr=False)

    @one_blas_thread()
    def place(
        self, X: Table, *, n_jobs: int | None = None, perplexity: float = PERPLEXITY
    ) -> Placement:
        """Places of the rows of `X`, shape (m, d), and which of them are unlike the data."""
        positions, ratio, neighbors = self._find(X, n_jobs, perplexity)
        judge = self.novelty
        residual = judge.residuals(X, self.components, self.metric, n_jobs)
        return Placement(
            positions,
            ratio,
            residual,
            judge.distance_limit,
            judge.residual_limit,
            judge.reasons(ratio, residual),
            neighbors,
        )

    @one_blas_thread()
    def transform(
        self, X: Table, *, n_jobs: int | None = None, perplexity: float = PERPLEXITY
    ) -> NDArray[Any]:
        """The places alone, shape (m, dimensions)."""
        return self._find(X, n_jobs, perplexity)[0]

    def nearest(self, X: Table, n_jobs: int | None = None) -> tuple[NDArray[np.int32], Floats64]:
        """The rows of the map that the rows of `X` are placed by, and how far they are."""
        return self._nearest(X, self._neighbors, n_jobs)

    def places(
        self, indices: NDArray[np.int32], distances: Floats64, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Places of rows whose `nearest` rows of the map are known, shape (m, dimensions)."""
        placed = self.placing_field.place(indices, distances, n_jobs)
        return placed.astype(self.positions.dtype)

    def empty_placement(self, m: int) -> Placement:
        """A placement of `m` rows, to be filled in part by part."""
        k, dimensions = self._neighbors, self.positions.shape[1]
        return Placement(
            np.empty((m, dimensions), self.positions.dtype),
            np.empty(m),
            np.empty(m),
            self.novelty.distance_limit,
            self.novelty.residual_limit,
            np.empty(m, np.uint8),
            np.empty((m, k), np.int32),
        )

    def build(self, n_jobs: int | None = None) -> None:
        """Compute the field, once, before several threads ask for it."""
        self.placing_field.nodes(n_jobs)

    def trust(self, placed: Placement, *, n_jobs: int | None = None) -> Floats64:
        """Share of the mapped rows nearest to each row that are nearest to its place, shape (m,).

        Of 15 of them; of half of the map where that has fewer than 30 rows.
        """
        if not len(placed.positions):
            return np.empty(0)
        # any of the mapped rows may be nearest to a new row
        k = min(NEIGHBORS, trusted(len(self.positions) + 1))
        there, _ = self.plane.of(placed.positions.astype(np.float64), k, n_jobs)
        return share_kept(placed.neighbors[:, :k], there)

    @cached_property
    def placing_field(self) -> PlacingField:
        """What pushes and pulls new points on the map."""
        return PlacingField(self.positions, self.dof, self.spacing, self.weights)

    @cached_property
    def plane(self) -> NeighborSearch:
        """Search over the positions."""
        n_jobs = None if self.search is None else self.search.n_jobs
        return NeighborSearch(self.positions.astype(np.float64), n_jobs=n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def _neighbors(self) -> int:
        """How many rows of the map a new row is compared with."""
        return min(NEIGHBORS, len(self.positions))

    def _find(
        self, X: Table, n_jobs: int | None, perplexity: float
    ) -> tuple[NDArray[Any], Floats64, NDArray[np.int32]]:
        """Places of the rows of `X`, their distance ratios and their nearest rows of the map.

        They are placed by three times `perplexity` rows of the map.
        """
        if X.shape[0] == 0:
            empty = self.empty_placement(0)
            return empty.positions, empty.distance_ratio, empty.neighbors
        few, used = self._neighbors, min(int(np.ceil(3 * perplexity)), len(self.positions))
        indices, distances = self._nearest(X, max(few, used), n_jobs)
        ratio = distance_ratios(indices[:, :few], distances[:, :few], self.typical)
        places = self.placing_field.place(
            np.ascontiguousarray(indices[:, :used]),
            np.ascontiguousarray(distances[:, :used]),
            n_jobs,
            perplexity,
        )
        return places.astype(self.positions.dtype), ratio, indices[:, :few]

    def _nearest(self, X: Table, k: int, n_jobs: int | None) -> tuple[NDArray[np.int32], Floats64]:
        """The `k` rows of the map nearest to each row of `X`, and how far they are."""
        if self.search is None:
            return nearest_given(X, k)
        if self.components is not None:
            X = self.components.scores(X, whiten=self.whiten, n_jobs=n_jobs)
        else:
            refuse_bad_values(X, names=self.names)
        return self.search.of(X, k, n_jobs)


def make_map(model: "TSNE", positions: NDArray[Any], dof: float, spacing: float) -> Map | None:
    """What `model` found, with its rows at `positions`.

    None for affinities, which tell no distances that new rows could be compared with, and in more
    than three dimensions, where no mesh can hold the field.
    """
    if model._typical is None or model._novelty is None or positions.shape[1] > MOST_AXES:
        return None
    pca, names = model.pca_, getattr(model, "feature_names_in_", None)
    components = None if pca is None else pca._model()
    if components is not None and names is not None:
        components = replace(components, names=names)
    return Map(
        positions,
        dof,
        spacing,
        model._typical,
        model._novelty,
        model._search,
        model.metric,
        model._sample_weight,
        components,
        pca is not None and bool(pca.whiten),
        names,
    )
