"""The programs that make maps, the tables they are given, and the KL they are judged by.

Peers run at their defaults with ``random_state=0`` and two threads; scikit-learn-intelex is
imported directly, never patched in. KL is exact, over all pairs and over one P for everybody
(perplexity 30, exact neighbours): nobody is fast by being worse.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.environment import OURS, THREADS, peer
from benchmarks.memory import Fit

PERPLEXITY = 30.0  # everybody's default
COLUMNS = 50
NOISE_OF_STARTS = 1e-5
SMALL = 1_000  # rows that wake a peer's threads
REAL, GENERATED = "MNIST", "generated clusters"

PEERS: Mapping[str, tuple[str, str, str]] = {
    "scikit-learn": ("sklearn.manifold", "TSNE", "scikit-learn"),
    "intelex": ("sklearnex.manifold", "TSNE", "scikit-learn-intelex"),
    "openTSNE": ("openTSNE", "TSNE", "openTSNE"),
}


def fit_gnomon(X: Any, k: int) -> Any:
    return ours(k).fit(X)


def fit_sklearn(X: Any, k: int) -> Any:
    return _like_sklearn("scikit-learn", X, k)


def fit_intelex(X: Any, k: int) -> Any:
    return _like_sklearn("intelex", X, k)


def fit_opentsne(X: Any, k: int) -> Any:
    TSNE = peer(*PEERS["openTSNE"])
    return TSNE(n_components=k, random_state=0, n_jobs=THREADS).fit(X)


def _like_sklearn(name: str, X: Any, k: int) -> Any:
    TSNE = peer(*PEERS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of defaults that will change
        return TSNE(n_components=k, random_state=0, n_jobs=THREADS).fit(X)


def ours(k: int = 2, **parameters: Any) -> Any:
    """Our estimator at its defaults, but for `parameters`."""
    from gnomon import TSNE

    return TSNE(k, random_state=0, n_jobs=THREADS, **parameters)


FITS: Mapping[str, Fit] = {
    OURS: fit_gnomon,
    "intelex": fit_intelex,
    "openTSNE": fit_opentsne,
    "scikit-learn": fit_sklearn,
}


def positions(result: Any) -> NDArray[np.float64]:
    """The map of whatever a program gave back."""
    return np.array(getattr(result, "embedding_", result), dtype=np.float64)


@dataclass(frozen=True)
class Points:
    """A table to map: rows (n, d), their labels, and where they are from."""

    X: NDArray[Any]
    labels: NDArray[Any]
    source: str

    @property
    def real(self) -> bool:
        """Whether targets that belong to these very rows hold."""
        return self.source != GENERATED

    def describe(self) -> dict[str, Any]:
        """For a row's raw numbers."""
        return {"shape": list(self.X.shape), "dtype": str(self.X.dtype), "source": self.source}


def digits(folder: Path | None) -> Points:
    """1,797 pictures of 8 × 8 pixels, which come with Gnomon."""
    from gnomon import samples

    sample = samples.load("digits")
    return Points(np.asarray(sample.X), np.asarray(sample.labels), "digits")


def images(folder: Path | None, rows: int = 70_000, of: int = 70_000) -> Points:
    """The first `rows` of MNIST in 50 principal components of its first `of`; or clusters."""
    if folder is None:
        return Points(*data.clusters(rows, COLUMNS), GENERATED)
    from gnomon import PCA

    X, labels = data.images(folder), data.image_labels(folder)
    model = PCA(COLUMNS, random_state=0, n_jobs=THREADS).fit(X[:of])
    return Points(model.transform(X[:rows]), labels[:rows], REAL)


def exact_affinities(X: Any) -> Any:
    """P of exact neighbours: what every map's KL is measured against."""
    from gnomon.neighbors.search import find_neighbors
    from gnomon.tsne.affinities import gaussian_rows, joint

    near = find_neighbors(X, min(len(X) - 1, int(3 * PERPLEXITY)), recall=1.0, n_jobs=THREADS)
    return joint(gaussian_rows(near, PERPLEXITY, n_jobs=THREADS), n_jobs=THREADS)


def exact_kl(P: Any, result: Any) -> float:
    """KL(P‖Q) over all pairs, float64."""
    from gnomon.tsne.reference import kl_divergence

    return kl_divergence(P, positions(result), n_jobs=THREADS)


def other_start(X: Any, seed: int) -> NDArray[np.float64]:
    """Our default start with every coordinate changed by about one part in 100,000."""
    from gnomon.tsne.start import pca_start

    start = pca_start(None, X, 2, np.random.default_rng(0), n_jobs=THREADS)
    noise = np.random.default_rng(seed).standard_normal(start.shape)
    return start * (1 + NOISE_OF_STARTS * noise)


@lru_cache
def warm_up(k: int = 2) -> None:
    """Load our kernels: those of few points (all pairs) and of many (lists, mesh)."""
    for rows in (SMALL, 12_500):
        ours(k, max_iter=60).fit(data.clusters(rows, COLUMNS)[0])


def seconds_of(work: Callable[[], object]) -> tuple[float, Any]:
    """Seconds of one call, and what it gave back."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def stages(timings: Mapping[str, float]) -> str:
    """Seconds by stage in one cell, those that round to nothing left out."""
    return ", ".join(f"{name} {value:.2f}" for name, value in timings.items() if value >= 0.005)


def shape_cell(result: Mapping[str, Any]) -> str:
    n, d = result["shape"]
    return f"{n:,} × {d} {result['source']}"
