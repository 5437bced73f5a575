"""What is learned of the rows before the first iteration: neighbours, P, limits for new rows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import is_sparse
from gnomon.neighbors.search import Neighbors, NeighborSearch
from gnomon.pca import PCA
from gnomon.tsne.affinities import Conditional, joint
from gnomon.tsne.graph import (
    IDENTICAL,
    Affinity,
    Reduction,
    all_identical,
    given_affinities,
    given_neighbors,
    reduce,
    search_table,
)
from gnomon.tsne.novelty import Novelty, learn_novelty
from gnomon.tsne.place import NEIGHBORS
from gnomon.tsne.truncation import Truncation, learn_truncation
from gnomon.typing import Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

Stage = Callable[[str], AbstractContextManager[None]]

__all__ = ["Graph", "connect"]


@dataclass(frozen=True, eq=False)
class Graph:
    """P of a table, and how it was found.

    Attributes
    ----------
    P : CSR array (n, n)
    Z : array (n, k)
        The table that neighbours were searched in.
    found : tuple of str, float and int
        How neighbours were found, their recall, and the rows on which it was measured.
    truncation : Truncation or None
        How P over all pairs differs; None where the distances of other rows are not known.
    pca : PCA or None
        What reduced the table to `Z`, and `reduced` says how, in words.
    search : NeighborSearch or None
        None where distances or affinities were given.
    typical : array (n,) or None
        Mean distance of each row to its nearest ones. None for affinities, which tell no distance.
    novelty : Novelty or None
        Limits for new rows; None for affinities.
    identical : bool
        Whether all rows are the same, which only a given start makes a map of.
    """

    P: Any = field(repr=False)
    Z: NDArray[Any] = field(repr=False)
    found: tuple[str, float, int]
    truncation: Truncation | None = field(repr=False)
    pca: PCA | None = None
    reduced: str = ""
    search: NeighborSearch | None = None
    typical: Floats64 | None = field(default=None, repr=False)
    novelty: Novelty | None = None
    identical: bool = False


def connect(model: "TSNE", X: Table, weights: Floats64 | None, seed: int, stage: Stage) -> Graph:
    """Neighbours and P of the rows of `X` by the parameters of `model`; `stage` times the steps."""
    n = X.shape[0]
    if model.affinity == "precomputed":
        if weights is not None:
            refuse("sample_weight", "be None for precomputed affinities", "weights")
        found = ("affinities that were given", 1.0, 0)
        return Graph(given_affinities(X), X, found, Truncation.none(n))
    exact, n_jobs = model.method == "exact", model.n_jobs
    mass = float(n if weights is None else weights.sum())
    affinity = Affinity.parse(model.affinity, model.perplexity, model.n_neighbors, n, mass, exact)
    search, given = None, not isinstance(model.init, str)
    if model.metric == "precomputed":
        reduction = Reduction(X, None, "")
        with stage("neighbors"):
            near = given_neighbors(X, affinity, same=given)
            identical = not near.distances.any()
    else:
        with stage("pca"):
            reduction = reduce(
                X,
                model.pca,
                model.metric,
                names=getattr(model, "feature_names_in_", None),
                weights=weights,
                n_jobs=n_jobs,
            )
        identical = all_identical(reduction.Z)
        if identical and not given:
            raise DataError(IDENTICAL)
        with stage("neighbors"):
            recall = 1.0 if exact else model.recall
            search = search_table(
                reduction, model.metric, model.metric_params, recall, seed, n_jobs
            )
            near = search.among_themselves(affinity.n_neighbors)
    with stage("affinities"):
        conditional = affinity.rows(near, weights, n_jobs)
        P = joint(conditional, weights=weights, n_jobs=n_jobs)
    with stage("certificate"):
        truncation = _compare_rows(X, P, conditional, near, search, affinity, weights, seed, n_jobs)
    with stage("limits"):
        novelty = learn_novelty(
            X,
            reduction.pca,
            near,
            n_neighbors=NEIGHBORS,
            metric=model.metric,
            weights=weights,
            seed=seed,
            n_jobs=n_jobs,
        )
    return Graph(
        P,
        reduction.Z,
        (near.method, near.recall, near.probed),
        truncation,
        reduction.pca,
        reduction.note,
        search,
        near.distances[:, :NEIGHBORS].mean(axis=1),
        novelty,
        identical,
    )


def _compare_rows(
    X: Table,
    P: Any,
    kept: Conditional,
    near: Neighbors,
    search: NeighborSearch | None,
    affinity: Affinity,
    weights: Floats64 | None,
    seed: int,
    n_jobs: int | None,
) -> Truncation | None:
    """How P over all pairs differs; None where the distances of other rows are not known."""
    if affinity.kind == "uniform":
        return Truncation.none(X.shape[0])
    if search is None and is_sparse(X):
        return None

    def given(rows: Any, columns: Any, _: Floats64) -> Floats64:
        return np.asarray(X[rows][:, columns], np.float64)

    return learn_truncation(
        P,
        kept,
        near,
        given if search is None else search.between,
        affinity.perplexities,
        weights=weights,
        seed=seed,
        n_jobs=n_jobs,
    )
