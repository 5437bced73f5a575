"""Trust in the map of a run: row by row, and overall."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.numeric.apply import plain_transform
from gnomon.scores import MapScores, score_map
from gnomon.scores.few_rows import trusted
from gnomon.scores.neighbors_kept import neighbors_kept
from gnomon.tsne import TSNE

__all__ = ["measure_trust"]


def measure_trust(
    X: NDArray[Any], tsne: TSNE, labels: Any, n_jobs: int | None
) -> tuple[NDArray[np.float64], MapScores]:
    """Share of neighbours that each row keeps, and the scores of the whole map."""
    Z = X if tsne.pca_ is None else plain_transform(tsne.pca_, X)
    k = trusted(len(Z))
    assert tsne._search is not None  # the map was computed from a table
    kept = neighbors_kept(tsne._search.nearest(k, n_jobs), tsne.embedding_, n_jobs=n_jobs)
    sizes = sorted({size for size in (5, 15, 50) if 2 * size < len(Z)} or {1})
    scores = score_map(
        Z, tsne.embedding_, labels, n_neighbors=sizes, metric=tsne.metric, n_jobs=n_jobs
    )
    return kept, scores
