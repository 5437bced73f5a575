"""Trust in the map of a run: row by row, and overall."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.numeric.apply import plain_transform
from gnomon.scores import MapScores, score_map
from gnomon.scores.few_rows import trusted
from gnomon.scores.neighbor_labels import NeighborLabels, find_neighbor_labels
from gnomon.scores.neighbors_kept import nearest_on_map, share_kept
from gnomon.tsne import TSNE

__all__ = ["measure_trust"]


def measure_trust(
    X: NDArray[Any], tsne: TSNE, labels: Any, n_jobs: int | None
) -> tuple[NDArray[np.float64], MapScores, NeighborLabels | None]:
    """Share of neighbours that each row keeps, the scores of the whole map, and mixed labels."""
    Z = X if tsne.pca_ is None else plain_transform(tsne.pca_, X)
    k = trusted(len(Z))
    assert tsne._search is not None  # the map was computed from a table
    near = tsne._search.nearest(k, n_jobs)
    there = nearest_on_map(tsne.embedding_, k, n_jobs=n_jobs)
    kept, groups = share_kept(near, there), _groups(labels)
    mixed = None if groups is None else find_neighbor_labels(groups, near, there)
    sizes = sorted({size for size in (5, 15, 50) if 2 * size < len(Z)} or {1})
    scores = score_map(
        Z, tsne.embedding_, labels, n_neighbors=sizes, metric=tsne.metric, n_jobs=n_jobs
    )
    return kept, scores, mixed


def _groups(labels: Any) -> NDArray[np.object_] | None:
    """Labels that name groups; None for numbers that are amounts."""
    if labels is None:
        return None
    from gnomon.report.run_page import read_label

    read = read_label(np.asarray(labels, dtype=object))
    return read if read.dtype.kind == "O" else None
