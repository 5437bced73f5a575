"""Maps of the two compared tables: the tables themselves, or maps computed from them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.pca import PCA
from gnomon.procrustes.movement import lay_on
from gnomon.tsne import TSNE
from gnomon.typing import Floats64

__all__ = ["draw_maps", "is_map"]

WIDEST_MAP = 2  # columns; wider tables are embeddings, for which a map is computed
MOST_MAPPED = 20_000  # rows up to which the page computes t-SNE; for more, PCA
LEAST_MAPPED = 20
LEADING = 50  # components that t-SNE is computed from


def is_map(table: NDArray[Any]) -> bool:
    """Whether a table is a map, by its number of columns."""
    return bool(table.shape[1] <= WIDEST_MAP)


def draw_maps(
    X: NDArray[Any], Y: NDArray[Any], n_jobs: int | None = None
) -> tuple[Floats64, Floats64, str]:
    """Positions (n, 2) of the rows in both tables, in one frame, and a sentence about them."""
    if is_map(X) and is_map(Y):
        first, second = _flat(X), _flat(Y)
        said = "Both tables are maps, and are shown unchanged."
    elif LEAST_MAPPED <= len(X) <= MOST_MAPPED:
        first, model = _by_tsne(X, None, n_jobs)
        second, _ = _by_tsne(Y, None if is_map(Y) else model, n_jobs)
        said = (
            "The tables have more than two columns, so the maps are computed for this page by "
            "t-SNE, the second in the frame of the first. Changes are measured by neighbours in "
            "the tables, not on these maps."
        )
    else:
        first, second = (_flat(Z if is_map(Z) else _scores(Z, 2, n_jobs)) for Z in (X, Y))
        said = (
            "The tables have more than two columns, so their first two principal components are "
            "shown. Changes are measured by neighbours in the tables, not on these maps."
        )
    return first, lay_on(second, first, n_jobs), said


def _flat(Z: NDArray[Any]) -> Floats64:
    """Two columns, the second 0 if there is only one."""
    flat = np.zeros((len(Z), 2))
    flat[:, : Z.shape[1]] = Z
    return flat


def _by_tsne(
    Z: NDArray[Any], former: TSNE | None, n_jobs: int | None
) -> tuple[Floats64, TSNE | None]:
    if is_map(Z):
        return _flat(Z), None
    model = TSNE(
        random_state=0, align_to=former, n_jobs=n_jobs, perplexity=min(30.0, (len(Z) - 1) / 3)
    )
    scores = _scores(Z, LEADING, n_jobs) if Z.shape[1] > LEADING else Z
    model.fit(scores, ids=np.arange(len(Z)))
    return _flat(model.embedding_), model


def _scores(Z: NDArray[Any], most: int, n_jobs: int | None) -> Floats64:
    k = min(most, *Z.shape)
    return np.asarray(PCA(k, random_state=0, n_jobs=n_jobs).fit_transform(Z), np.float64)
