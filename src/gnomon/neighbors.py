"""The k nearest neighbours of every row, exact or to a measured recall.

1. Columns are shifted by their medians and all is scaled by a power of two: float32 search on data
   far from zero is wrong (at mean/spread = 1,000 "exact" search finds half of the neighbours), and
   a mean would be dragged away by one wild row.
2. Few rows: exact search (faiss, flat). Many: an inverted file (faiss IVF), whose number of probed
   lists is raised until the recall asked for is **measured** on a few hundred rows, against
   distances in float64.
3. A row is taken out of its own list by its number, not by its place: copies may come first.
4. The distances of what was found are computed again as differences in float64, and lists are
   ordered by (distance, row number).

faiss is called on fixed blocks of queries, one OpenMP thread each, from `parallel.py`: its own
threads change the bits of exact search, hang in a forked child, and spin while they wait.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import check_integer, check_real
from gnomon.kernels import kernel
from gnomon.parallel import map_blocks, row_blocks
from gnomon.records import Record

Floats32 = NDArray[np.float32]
Floats64 = NDArray[np.float64]
Indices = NDArray[np.int64]

EXACT_UP_TO = 12_000  # rows for which exact search is as quick as building lists
QUERIES = 4096  # a block; below it the bits of flat search depend on the block
PROBE = 300  # rows whose true neighbours are found, to measure the recall

__all__ = ["Neighbors", "find_neighbors"]


@dataclass(frozen=True, eq=False)
class Neighbors(Record):
    """The nearest neighbours of every row, nearest first, the row itself left out.

    Attributes
    ----------
    indices : array (n, k), int32
    distances : array (n, k), float64
        In the data's own units; the angle in radians when the metric is cosine.
    recall : float
        Share of the true neighbours that were found, measured on `probed` rows.
    probed : int
    method : str
        How they were found.
    """

    indices: NDArray[np.int32] = field(repr=False)
    distances: Floats64 = field(repr=False)
    recall: float
    probed: int
    method: str

    def title(self) -> str:
        """One sentence."""
        n, k = self.indices.shape
        return f"{k} neighbours of {n:,} rows by {self.method}, recall {self.recall:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """Without the lists themselves."""
        n, k = self.indices.shape
        return {
            "n": n, "k": k, "recall": self.recall, "probed": self.probed, "method": self.method,
        }  # fmt: skip


def find_neighbors(
    X: NDArray[Any],
    k: int,
    *,
    metric: str = "euclidean",
    metric_params: dict[str, Any] | None = None,
    recall: float = 0.95,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Neighbors:
    """Nearest neighbours of the rows of `X`, shape (n, d), among themselves.

    Parameters
    ----------
    k : int
        How many, below n.
    metric : str
        ``"euclidean"`` or ``"cosine"`` (the angle between rows; scikit-learn's t-SNE squares
        1 − cos instead) by faiss; any other metric of scikit-learn's exactly, and slower.
    recall : float
        Share of true neighbours wanted; 1.0 searches exactly.
    seed : int
        For the lists' centres and the probed rows.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """
    n = X.shape[0]
    k = check_integer("k", k, 1, n - 1, f"The table has {n} rows.")
    recall = check_real("recall", recall, 0.0, 1.0)
    if metric not in ("euclidean", "cosine"):
        return _by_scikit_learn(X, k, metric, metric_params, n_jobs)
    Z = _unit_rows(X) if metric == "cosine" else np.asarray(X, np.float64)
    Z = _centred(Z)
    probe = _Probe(Z, k, seed, n_jobs)
    search = _Search(np.ascontiguousarray(Z, np.float32), seed, n_jobs)
    flat = n <= EXACT_UP_TO or recall == 1.0
    found, measured, method = search.reach(recall, k, probe, flat=flat)
    if flat and measured < 0.999:  # float32 cannot tell these rows apart
        return _by_scikit_learn(X, k, metric, metric_params, n_jobs)
    distances, order = _measure(Z, found, n_jobs)
    indices = np.take_along_axis(found, order, axis=1).astype(np.int32)
    if metric == "cosine":
        distances = 2 * np.arcsin(np.minimum(1.0, distances / 2))  # chord to angle
    else:
        distances = distances * _unit(np.asarray(X, np.float64))
    return Neighbors(indices, distances, measured, probe.rows.size, method)


class _Search:
    """faiss over prepared float32 rows."""

    def __init__(self, Z: Floats32, seed: int, n_jobs: int | None) -> None:
        self.Z, self.seed, self.n_jobs = Z, seed, n_jobs

    def reach(
        self, recall: float, k: int, probe: "_Probe", *, flat: bool
    ) -> tuple[Indices, float, str]:
        """Neighbours of all rows, the recall measured on `probe`, and how it was done."""
        if flat:
            found = self._all(self._flat(), k)
            return found, probe.recall(found[probe.rows]), "exact search"
        index = self._lists()
        n_lists, probes = index.nlist, 4
        while True:
            index.nprobe = min(probes, n_lists)
            measured = probe.recall(self._of(index, probe.rows, k))
            if measured >= recall or probes >= n_lists:
                break
            probes = probes * 3 // 2
        found = self._all(index, k)
        short = np.flatnonzero((found < 0).any(axis=1))
        if short.size:  # their lists held fewer than k rows
            found[short] = self._of(self._flat(), short, k)
        return found, measured, f"inverted lists ({index.nprobe} of {n_lists} probed)"

    def _flat(self) -> Any:
        import faiss

        index = faiss.IndexFlatL2(self.Z.shape[1])
        index.add(self.Z)
        return index

    def _lists(self) -> Any:
        import faiss

        n, d = self.Z.shape
        n_lists = int(2 ** np.round(np.log2(np.sqrt(n))))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, n_lists)
        index.cp.seed, index.cp.niter, index.cp.max_points_per_centroid = self.seed + 1, 10, 64
        with _one_openmp_thread():
            index.train(self.Z)
            index.add(self.Z)
        return index

    def _all(self, index: Any, k: int) -> Indices:
        n = self.Z.shape[0]
        found = np.empty((n, k), np.int64)

        def block(start: int, stop: int) -> None:
            found[start:stop] = self._of(index, np.arange(start, stop), k)

        map_blocks(block, row_blocks(n, QUERIES), n_jobs=self.n_jobs)
        return found

    def _of(self, index: Any, rows: Indices, k: int) -> Indices:
        """Neighbours of some rows, without themselves; −1 where there are too few."""
        with _one_openmp_thread():
            near = index.search(self.Z[rows], k + 1)[1]
        others = near != rows[:, None]
        others[others.all(axis=1), -1] = False  # copies filled the list: drop the farthest
        lists: Indices = near[others].reshape(len(rows), k)
        return lists


@contextmanager
def _one_openmp_thread() -> Iterator[None]:
    """Hold faiss to one thread in the calling thread, whose setting it is."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _centred(Z: Floats64) -> Floats64:
    """Columns about their medians, all divided by a power of two."""
    Z = Z - np.median(Z, axis=0)
    return np.asarray(np.ldexp(Z, -_exponent(Z)))


def _exponent(Z: Floats64) -> int:
    """Of the typical size, so that neither a wild row nor the units matter."""
    size = float(np.quantile(np.abs(Z), 0.99)) or float(np.abs(Z).max(initial=0.0))
    return int(np.frexp(size)[1]) if size > 0 else 0


def _unit(X: Floats64) -> float:
    return float(np.ldexp(1.0, _exponent(X - np.median(X, axis=0))))


def _unit_rows(X: NDArray[Any]) -> Floats64:
    Z = np.asarray(X, np.float64)
    Z = Z / np.maximum(np.abs(Z).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    zero = np.flatnonzero(norms[:, 0] == 0)
    if zero.size:
        raise DataError(f"Row {zero[0]} of X is all 0 and has no direction; cosine needs one.")
    return np.asarray(Z / norms)


class _Probe:
    """A few hundred rows whose true neighbours are known, by differences in float64."""

    def __init__(self, Z: Floats64, k: int, seed: int, n_jobs: int | None) -> None:
        n = Z.shape[0]
        self.Z = Z
        self.rows = np.sort(np.random.default_rng(seed).choice(n, min(n, PROBE), replace=False))
        self.sq_radius = np.empty(self.rows.size)  # of the k-th neighbour

        def block(start: int, stop: int) -> None:
            sq = np.empty(n)
            for i in range(start, stop):
                _sq_distances(Z, self.rows[i], sq)
                sq[self.rows[i]] = np.inf
                self.sq_radius[i] = np.partition(sq, k - 1)[k - 1]

        map_blocks(block, row_blocks(self.rows.size, 16), n_jobs=n_jobs)

    def recall(self, found: Indices) -> float:
        """Share of the neighbours found for these rows that are as near as the true ones.

        Rows at the same distance are as good as each other, so copies do not count as missed.
        """
        away = self.Z[np.maximum(found, 0)] - self.Z[self.rows][:, None]
        near = np.einsum("ijk,ijk->ij", away, away) <= self.sq_radius[:, None] * (1 + 1e-12)
        return float(np.mean(near & (found >= 0)))


@kernel
def _sq_distances(Z: Floats64, row: int, out: Floats64) -> None:
    """out[i] = |Z[i] − Z[row]|²."""
    for i in range(Z.shape[0]):
        total = 0.0
        for c in range(Z.shape[1]):
            step = Z[i, c] - Z[row, c]
            total += step * step
        out[i] = total


def _measure(Z: Floats64, found: Indices, n_jobs: int | None) -> tuple[Floats64, Indices]:
    """Distances by differences, sorted, and the order of each list."""
    distances, order = np.empty(found.shape), np.empty(found.shape, np.int64)

    def block(start: int, stop: int) -> None:
        _distances(Z, found, distances, start, stop)
        part = slice(start, stop)
        order[part] = np.lexsort((found[part], distances[part]), axis=1)
        distances[part] = np.take_along_axis(distances[part], order[part], axis=1)

    map_blocks(block, row_blocks(Z.shape[0], 1024), n_jobs=n_jobs)
    return distances, order


@kernel
def _distances(Z: Floats64, found: Indices, out: Floats64, start: int, stop: int) -> None:
    """out[i, j] = |Z[i] − Z[found[i, j]]|."""
    for i in range(start, stop):
        for j in range(found.shape[1]):
            other, total = found[i, j], 0.0
            for c in range(Z.shape[1]):
                step = Z[i, c] - Z[other, c]
                total += step * step
            out[i, j] = np.sqrt(total)


def _by_scikit_learn(
    X: NDArray[Any], k: int, metric: str, params: dict[str, Any] | None, n_jobs: int | None
) -> Neighbors:
    """Exact neighbours by any of scikit-learn's metrics, in float64."""
    from sklearn.neighbors import NearestNeighbors

    Z = np.asarray(X, np.float64)
    if metric == "euclidean":
        Z = _centred(Z)
    try:
        model = NearestNeighbors(n_neighbors=k, metric=metric, metric_params=params, n_jobs=n_jobs)
        distances, indices = model.fit(Z).kneighbors()
    except ValueError as error:
        if "metric" in str(error).lower():
            refuse("metric", "be one of scikit-learn's metrics", metric)
        raise
    if metric == "euclidean":
        distances = distances * _unit(np.asarray(X, np.float64))
    return Neighbors(
        indices.astype(np.int32), distances, 1.0, X.shape[0], f"exact search ({metric})"
    )
