"""From what the user gives to P: a table, distances, a graph of neighbours, or affinities.

table (n, d)                → PCA if it is wide or sparse → neighbours → affinities
metric="precomputed"        distances (n, n), dense, or sparse with a row's neighbours only;
                            or neighbours as (indices, distances), each (n, k)
affinity="precomputed"      non-negative affinities (n, n), made symmetric and to sum to 1
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import DataError, DataWarning, Remedy, refuse, warn_caller
from gnomon.inputs import check_integer, check_real, is_sparse, refuse_bad_values
from gnomon.neighbors.search import Neighbors, NeighborSearch
from gnomon.numeric.apply import plain_transform
from gnomon.pca import PCA
from gnomon.tsne.affinities import Conditional, gaussian_rows, uniform_rows
from gnomon.typing import Floats64, Table

WIDE = 100  # columns; more than this go through PCA
REDUCED = 50  # columns that they become: a convention of the field, not fitted
UNIFORM_NEIGHBORS = 15  # of `affinity="uniform"`, by definition
IDENTICAL = "All rows are identical: there is nothing to tell apart. Check how X was read."

__all__ = [
    "IDENTICAL",
    "Affinity",
    "Reduction",
    "all_identical",
    "given_affinities",
    "given_neighbors",
    "nearest_given",
    "neighbor_graph",
    "reduce",
    "search_table",
]


@dataclass(frozen=True)
class Affinity:
    """Which neighbours count, and how much.

    Attributes
    ----------
    kind : {"gaussian", "uniform", "multiscale"}
    perplexities : tuple of floats
    n_neighbors : int
        Rows.
    copies : float
        The same, counted in copies where rows have weights.
    """

    kind: str
    perplexities: tuple[float, ...]
    n_neighbors: int
    copies: float

    @classmethod
    def parse(
        cls, kind: str, perplexity: Any, n_neighbors: Any, n: int, mass: float, exact: bool
    ) -> "Affinity":
        """Check the parameters against the number of rows, or the sum of their weights."""
        most = mass - 1
        several = isinstance(perplexity, (Sequence, np.ndarray)) and not isinstance(perplexity, str)
        if kind == "uniform":
            asked = min(UNIFORM_NEIGHBORS, int(most)) if n_neighbors is None else n_neighbors
            k = check_integer("n_neighbors", asked, 1, int(most), f"The table has {n} rows.")
            return cls(kind, (), min(k, n - 1), k)
        if kind == "multiscale" and not several:
            refuse("perplexity", "be a list of numbers for affinity='multiscale'", perplexity)
        if kind == "gaussian" and several:
            refuse("perplexity", "be a number; a list goes with affinity='multiscale'", perplexity)
        scales = tuple(
            _perplexity(value, most) for value in (perplexity if several else [perplexity])
        )
        if not scales:
            refuse("perplexity", "hold at least one number", perplexity)
        if exact:
            return cls(kind, scales, n - 1, most)
        if n_neighbors is None:
            counted = min(most, float(np.ceil(3 * max(scales))))
        else:
            least = min(int(np.ceil(max(scales))), int(most))
            counted = check_integer("n_neighbors", n_neighbors, least, int(most))
        return cls(kind, scales, min(n - 1, int(np.ceil(counted))), counted)

    def rows(
        self, neighbors: Neighbors, weights: Floats64 | None, n_jobs: int | None
    ) -> Conditional:
        """Conditional probabilities of every row."""
        if self.kind == "uniform":
            return uniform_rows(neighbors, weights, self.copies)
        return gaussian_rows(
            neighbors, self.perplexities, weights=weights, copies=self.copies, n_jobs=n_jobs
        )


def _perplexity(value: Any, most: float) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and value > most:
        refuse(
            "perplexity",
            f"be from 1 to {most:g}, one less than the rows",
            value,
            Remedy.LOWER_PERPLEXITY,
        )
    return check_real("perplexity", value, 1.0, most)


@dataclass(frozen=True, eq=False)
class Reduction:
    """The table that neighbours are searched in.

    Attributes
    ----------
    Z : array (n, k)
    pca : PCA or None
        What made it of the user's table.
    note : str
        What was done, in words.
    """

    Z: NDArray[Any] = field(repr=False)
    pca: PCA | None
    note: str


def reduce(
    X: Table,
    pca: Any,
    metric: Any,
    *,
    names: NDArray[Any] | None,
    weights: Floats64 | None,
    n_jobs: int | None,
) -> Reduction:
    """`X` itself, or its principal scores where it has more than a hundred columns or is sparse.

    A fitted `pca` is used as it is: that of all rows, of which `X` is a sample.
    """
    n, d = X.shape
    most = min(n, d)
    if isinstance(pca, PCA):
        check_is_fitted(pca)
        if metric == "euclidean":
            return _reduced(X, pca, "a PCA that was given")
    elif pca not in (None, "auto") or isinstance(pca, bool):
        k = check_integer("pca", pca, 1, most, "Or 'auto', or None for the table as it is.")
    else:
        k = min(REDUCED, most)
    if pca not in (None, "auto") and metric != "euclidean":
        refuse(
            "pca",
            "be 'auto' or None unless the metric is euclidean",
            pca,
            "Principal scores are centred, which changes all other distances.",
        )
    wanted = pca not in (None, "auto") or (pca == "auto" and metric == "euclidean" and d > WIDE)
    wanted = wanted or (is_sparse(X) and pca == "auto" and metric == "euclidean")
    if not wanted:
        refuse_bad_values(X, names=names)
        return Reduction(X, None, "")
    return _reduced(X, PCA(k, n_jobs=n_jobs).fit(X, sample_weight=weights), "PCA")


def _reduced(X: Table, model: PCA, by: str) -> Reduction:
    kept = float(model.explained_variance_ratio_.sum())
    d, k = X.shape[1], model.n_components_
    note = f"{d:,} columns to {k} by {by}, which keep {kept:.1%} of the variance"
    return Reduction(plain_transform(model, X), model, note)


def neighbor_graph(X: Any) -> Any:
    """The sparse graph of neighbours that are given as ``(indices, distances)``, each (n, k)."""
    if not (isinstance(X, tuple) and len(X) == 2):
        return X
    indices, distances = np.asarray(X[0]), np.asarray(X[1])
    if indices.ndim != 2 or indices.shape != distances.shape or indices.dtype.kind not in "iu":
        refuse(
            "X",
            "be (indices, distances) of neighbours, two arrays of shape (n, k)",
            f"shapes {indices.shape} and {distances.shape}, indices of {indices.dtype}",
        )
    n, k = indices.shape
    starts = np.arange(0, n * k + 1, k) if k else np.zeros(n + 1, int)
    return sp.csr_array((distances.ravel(), indices.ravel(), starts), shape=(n, n))


def given_neighbors(X: Table, affinity: Affinity, *, same: bool = False) -> Neighbors:
    """Neighbours from distances: a square array, or a sparse graph with some in each row.

    All distances may be 0 only if the rows may be the `same`.
    """
    n, k = _square(X, "distances"), affinity.n_neighbors
    if is_sparse(X):
        return _from_graph(X, affinity, n)
    D = np.asarray(X, np.float64).copy()
    refuse_bad_values(D)
    if (D < 0).any():
        refuse("X", "hold distances, none of them negative", float(D.min()))
    if not D.any() and not same:
        raise DataError(IDENTICAL)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]  # equal distances by row number
    distances = np.take_along_axis(D, order, axis=1)
    return Neighbors(order.astype(np.int32), distances, 1.0, n, "distances that were given")


def nearest_given(X: Table, k: int) -> tuple[NDArray[np.int32], Floats64]:
    """The nearest rows of a map, from the distances (m, n) of new rows to all of them."""
    if is_sparse(X):
        refuse("X", "be a dense table of distances to the rows of the map", "a sparse table")
    refuse_bad_values(X)
    if (X < 0).any():
        refuse("X", "hold distances, none of them negative", float(X.min()))
    order = np.argsort(X, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(X, order, axis=1).astype(np.float64)


def _from_graph(X: Table, affinity: Affinity, n: int) -> Neighbors:
    graph = sp.csr_array(X)
    refuse_bad_values(graph)
    if (graph.data < 0).any():
        refuse("X", "hold distances, none of them negative", float(graph.data.min()))
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    keep = rows != graph.indices
    rows, columns, values = rows[keep], graph.indices[keep], graph.data[keep].astype(np.float64)
    counts = np.bincount(rows, minlength=n)
    k = _carried(counts, affinity)
    order = np.lexsort((columns, values, rows))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    take = order[starts[:, None] + np.arange(k)]
    return Neighbors(columns[take].astype(np.int32), values[take], 1.0, n, "a graph that was given")


def _carried(counts: NDArray[np.intp], affinity: Affinity) -> int:
    """How many neighbours of each row are used: as many as wanted, or as the shortest list has."""
    row, wanted = int(np.argmin(counts)), affinity.n_neighbors
    least = int(counts[row])
    if least >= wanted:
        return wanted
    scale = max(affinity.perplexities, default=float(wanted))
    if least < scale:
        carries = "none" if least == 0 else f"a perplexity of {least} at most"
        raise DataError(
            f"Row {row} of the graph has {least} neighbours, which carry {carries}; {wanted} are "
            "wanted. Add neighbours or lower `perplexity` or `n_neighbors`."
        )
    warn_caller(
        DataWarning(
            f"The graph has rows of {least} neighbours, and all use that many; perplexity "
            f"{scale:g} wants {wanted}. So few carry a perplexity of {max(1, least // 3)} well."
        )
    )
    return least


def given_affinities(X: Table) -> Table:
    """P from the user's affinities: symmetric, without a diagonal, summing to 1, CSR float32."""
    _square(X, "affinities")
    W = sp.csr_array(X).astype(np.float64)
    refuse_bad_values(W)
    if W.nnz and W.data.min() < 0:
        refuse("X", "hold affinities, none of them negative", float(W.data.min()))
    W = sp.csr_array(W + W.T)
    W.setdiag(0)
    W.eliminate_zeros()
    W.sort_indices()
    total = float(W.data.sum())
    lonely = np.flatnonzero(np.diff(W.indptr) == 0)
    if total <= 0 or lonely.size:
        first = f" (first: {lonely[0]})" if lonely.size else ""
        raise DataError(
            f"Rows of the affinities without a neighbour: {lonely.size}{first}. Give every row one."
        )
    P = sp.csr_array(((W.data / total).astype(np.float32), W.indices, W.indptr), shape=W.shape)
    if P.nnz < 2**31:
        P.indices, P.indptr = P.indices.astype(np.int32), P.indptr.astype(np.int32)
    return P


def _square(X: Table, what: str) -> int:
    n, m = X.shape
    if n != m:
        refuse("X", f"be a square table of {what}", f"shape {X.shape}")
    return int(n)


def all_identical(Z: Table) -> bool:
    """Whether all rows are the same."""
    if is_sparse(Z):
        return bool((Z.max(axis=0) != Z.min(axis=0)).nnz == 0)
    return not (Z[:1] != Z).any()


def search_table(
    reduction: Reduction,
    metric: Any,
    params: dict[str, Any] | None,
    recall: float,
    seed: int,
    n_jobs: int | None,
) -> NeighborSearch:
    """Neighbour search over the reduced table."""
    Z = reduction.Z
    return NeighborSearch(
        Z, metric=metric, metric_params=params, recall=recall, seed=seed, n_jobs=n_jobs
    )
