"""Where the points begin: PCA, the spectrum of P, random, an array, or a former map.

A start from PCA keeps the large distances of the data in view, which the descent alone loses; it
is scaled so that its first axis has a standard deviation of 1e-4, since points that begin far apart
are hardly moved by their neighbours.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.neighbors.rows import METRICS
from gnomon.numeric.apply import plain_transform
from gnomon.pca import PCA
from gnomon.pca.solvers.krylov import leading
from gnomon.tsne.aligned import Shared, start_from
from gnomon.tsne.connect import Graph
from gnomon.typing import Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

SPREAD = 1e-4  # standard deviation of the first axis: small beside the width of K, as above
FARTHEST = 1e6  # of a given start: beyond it a mesh in float32 cannot tell places apart

SPECTRAL_BLOCK = 8  # columns of its blocks beyond those wanted

__all__ = ["choose_start", "given_start", "pca_start", "random_start", "spectral_start"]


def choose_start(
    model: "TSNE",
    graph: Graph,
    shared: Shared | None,
    rng: np.random.Generator,
    weights: Floats64 | None,
    fitted: NDArray[np.intp] | None = None,
) -> Floats64:
    """By the parameters of `model`: from the rows shared with a former map, if there is one.

    A given start has a place for every row; `fitted` are the rows that have a part in the fit.
    """
    n, k = graph.P.shape[0], int(model.n_components)
    if shared is not None:
        return start_from(shared, graph.P, rng)
    if not isinstance(model.init, str):
        all_rows = len(model._keys)
        return given_start(model.init, all_rows, k, fitted=fitted, one_place=graph.identical)
    given = "precomputed" in (model.metric, model.affinity)  # there is no table
    if model.init == "spectral" or (model.init == "pca" and given):
        return spectral_start(graph.P, k, rng, model.n_jobs)
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
    if known is None or model.metric in METRICS[1:]:  # of rows that were changed
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
    if scores is None:
        k = min(dimensions, *Z.shape)
        scores = plain_transform(PCA(k, n_jobs=n_jobs).fit(Z, sample_weight=weights), Z)
    return _spread(np.asarray(scores[:, :dimensions], np.float64), dimensions, rng, weights)


def spectral_start(
    P: Table, dimensions: int, rng: np.random.Generator, n_jobs: int | None = None
) -> Floats64:
    """The slowest modes of a random walk over P, shape (n, dimensions): Laplacian eigenmaps.

    Eigenvectors of D^(−1/2) P D^(−1/2), D the row sums of P, divided by their square roots; the
    first, which is constant, is left out. They are found from a fixed block, to 1e-4: enough to
    begin with. Points of a part that nothing connects to the others are all in one place then, and
    noise of a hundredth of the spread lets them part.
    """
    n = P.shape[0]
    roots = np.sqrt(np.asarray(P.sum(axis=1), np.float64).ravel())
    S = P.astype(np.float64)

    def apply(V: Floats64) -> Floats64:  # eigenvalues from 0 to 2
        moved: Floats64 = V + (S @ (V / roots[:, None])) / roots[:, None]
        return moved

    trivial = (roots / np.linalg.norm(roots))[:, None]
    k = min(dimensions, n - 1)
    found = leading(
        apply,
        n,
        k,
        block=k + SPECTRAL_BLOCK,
        tol=1e-4,
        random=np.random.default_rng(0),
        against=trivial,
        n_jobs=n_jobs,
    )
    modes = found.vectors[:, :k] / roots[:, None]
    modes *= np.sign(modes[np.abs(modes).argmax(axis=0), np.arange(k)])
    start = _spread(modes / np.abs(modes).max(axis=0), dimensions, rng, None)
    return start + rng.standard_normal(start.shape) * SPREAD * 1e-2


def _spread(
    scores: Floats64, dimensions: int, rng: np.random.Generator, weights: Floats64 | None
) -> Floats64:
    """Scores scaled so that the first has a deviation of 1e-4, with noise on axes that lack."""
    n = len(scores)
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


def given_start(
    init: Any,
    n: int,
    dimensions: int,
    *,
    fitted: NDArray[np.intp] | None = None,
    one_place: bool = False,
) -> Floats64:
    """Positions given as an array or as a fitted map of the same `n` rows, as they are.

    They may all be the same only if `one_place`, when the rows are as well. Only those of the rows
    `fitted` are returned.
    """
    array = np.asarray(getattr(init, "embedding_", init))
    must = f"be 'pca', 'spectral', 'random', or finite positions of shape ({n}, {dimensions})"
    if array.dtype.kind not in "biuf":
        refuse("init", must, init if isinstance(init, str) else f"dtype {array.dtype}")
    if array.shape != (n, dimensions):
        refuse("init", must, f"shape {array.shape}")
    array = (array if fitted is None else array[fitted]).astype(np.float64)
    if not np.isfinite(array).all():
        refuse("init", must, "NaN or infinity among them")
    farthest = float(np.abs(array - array.mean(axis=0)).max(initial=0.0))
    if farthest == 0 and not one_place:
        refuse(
            "init", "hold more than one place", "the same for all rows", "Use 'pca' or 'random'."
        )
    if farthest > FARTHEST:
        refuse("init", f"lie within {FARTHEST:g} of its mean", farthest, "Divide it by its spread.")
    return array
