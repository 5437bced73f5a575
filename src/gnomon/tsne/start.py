"""Where the points begin: PCA, random, an array, or a former map.

A start from PCA keeps the large distances of the data in view, which the descent alone loses; it
is scaled so that its first axis has a standard deviation of 1e-4, since points that begin far apart
are hardly moved by their neighbours.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.numeric.apply import plain_transform
from gnomon.pca import PCA
from gnomon.tsne.aligned import Shared, start_from
from gnomon.tsne.connect import Graph
from gnomon.typing import Floats64

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

SPREAD = 1e-4
FARTHEST = 1e6  # of a given start: beyond it a mesh in float32 cannot tell places apart

__all__ = ["choose_start", "given_start", "pca_start", "random_start"]


def choose_start(
    model: "TSNE",
    graph: Graph,
    shared: Shared | None,
    rng: np.random.Generator,
    weights: Floats64 | None,
) -> Floats64:
    """By the parameters of `model`: from the rows shared with a former map, if there is one."""
    n, k = graph.P.shape[0], int(model.n_components)
    if shared is not None:
        return start_from(shared, graph.P, rng)
    if not isinstance(model.init, str):
        return given_start(model.init, n, k)
    if model.init == "pca":
        known = _known_scores(model, graph, k, weights)
        return pca_start(known, graph.Z, k, rng, weights=weights, n_jobs=model.n_jobs)
    return random_start(n, k, rng)


def _known_scores(
    model: "TSNE", graph: Graph, k: int, weights: Floats64 | None
) -> NDArray[Any] | None:
    """Principal scores of the table, `k` of them or more, by a PCA that looked at it before."""
    if graph.pca is not None:
        return graph.Z
    known = None if graph.novelty is None else graph.novelty.auxiliary
    if known is None or model.metric == "cosine":
        return None
    if len(known.W) < k:  # one of few columns has nearly all of the variance
        more = PCA(min(k, *graph.Z.shape), n_jobs=model.n_jobs)
        more.partial_fit(graph.Z, sample_weight=weights)  # what `fit` warns of was said
        known = more._model()
    return known.scores(graph.Z, n_jobs=model.n_jobs)


def pca_start(
    scores: Floats64 | None,
    Z: Any,
    dimensions: int,
    rng: np.random.Generator,
    *,
    weights: Floats64 | None = None,
    n_jobs: int | None = None,
) -> Floats64:
    """The first principal scores, shape (n, dimensions), the first with a deviation of 1e-4.

    Axes that the data do not have get noise of a hundredth of that: without it the map would stay
    on a line.

    Parameters
    ----------
    scores : array (n, k) or None
        Principal scores, if they are known already.
    Z : array (n, d)
        The data, for when they are not.
    """
    n = Z.shape[0]
    if scores is None:
        k = min(dimensions, *Z.shape)
        scores = plain_transform(PCA(k, n_jobs=n_jobs).fit(Z, sample_weight=weights), Z)
    scores = np.asarray(scores[:, :dimensions], np.float64)
    w = np.ones(n) if weights is None else weights
    with np.errstate(over="ignore"):
        largest = np.abs(scores).max(initial=0.0)
    scores = scores / (largest if largest > 0 else 1.0)
    spread = float(np.sqrt(np.average(scores[:, 0] ** 2, weights=w)))
    start = np.zeros((n, dimensions))
    start[:, : scores.shape[1]] = scores * (SPREAD / spread) if spread > 0 else 0.0
    empty = np.abs(start).max(axis=0) < 1e-3 * SPREAD
    start[:, empty] = rng.standard_normal((n, int(empty.sum()))) * SPREAD * 1e-2
    return start


def random_start(n: int, dimensions: int, rng: np.random.Generator) -> Floats64:
    """Normal, with a standard deviation of 1e-4."""
    return rng.standard_normal((n, dimensions)) * SPREAD


def given_start(init: Any, n: int, dimensions: int) -> Floats64:
    """Positions given as an array or as a fitted map of the same rows, as they are."""
    array = np.asarray(getattr(init, "embedding_", init))
    must = f"be 'pca', 'random', or finite positions of shape ({n}, {dimensions})"
    if array.dtype.kind not in "biuf":
        refuse("init", must, init if isinstance(init, str) else f"dtype {array.dtype}")
    if array.shape != (n, dimensions):
        refuse("init", must, f"shape {array.shape}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        refuse("init", must, "NaN or infinity among them")
    farthest = float(np.abs(array - array.mean(axis=0)).max(initial=0.0))
    if farthest == 0:
        refuse(
            "init", "hold more than one place", "the same for all rows", "Use 'pca' or 'random'."
        )
    if farthest > FARTHEST:
        refuse("init", f"lie within {FARTHEST:g} of its mean", farthest, "Divide it by its spread.")
    return array
