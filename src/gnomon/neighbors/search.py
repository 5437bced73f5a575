"""The k nearest neighbours of every row, exact or to a measured recall.

1. Columns are shifted by their medians and scaled by a power of two: float32 search on data
   far from zero is wrong (at mean/spread = 1,000 "exact" search finds half of the neighbours), and
   a mean would be moved by one outlier.
2. Rows are in inverted lists (`inverted_lists`): up to 8,000 in one list, which is exact search,
   even where float32 cannot separate rows (up to 2,500 are searched by `brute_force`,
   which compiles nothing); more rows around centres (`k_means`), of which as many are
   probed as the requested recall needs, **measured** on a few hundred rows whose neighbours are
   searched exactly: in all lists. New rows need fewer neighbours, which fewer lists hold to
   the same recall.
3. A row is removed from its own list by its number, not by its position: copies may come first.
4. The distances of the result are recomputed as differences in float64, and lists are
   sorted by (distance, row number). If more rows are as far away as the last one, exact
   search, and that for new rows, keep those with the lowest numbers.
5. A search caches the nearest 15 of each row: scores and the page need them again.

The result of a new row does not depend on other new rows, and nothing on the number of threads.
"""

from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks, thread_count
from gnomon.errors import DataError, refuse
from gnomon.inputs import check_integer, check_real, is_sparse
from gnomon.models.fields import (
    LARGEST_EXPONENT,
    Anything,
    Array,
    Csr,
    DictOf,
    Either,
    Field,
    Fields,
    Flag,
    Nothing,
    Real,
    Sizes,
    Text,
    UnfitError,
    Whole,
)
from gnomon.neighbors.brute_force import BruteForce
from gnomon.neighbors.inverted_lists import WILDEST as WILDEST_32
from gnomon.neighbors.inverted_lists import InvertedLists
from gnomon.neighbors.k_means import find_centres
from gnomon.neighbors.rows import ANGLES, METRICS, changed_rows
from gnomon.numeric.scaling import Scaling, scale_rows
from gnomon.records import Record
from gnomon.typing import Floats32, Floats64, Indices

# Rows up to which compiling kernels, 2.5 s of processor time on a new machine, costs more than it
# saves (`benchmarks/crossovers.py`, "neighbors" and "ranks").
SMALL_UP_TO = 2_500
# Rows; of 8,000 inverted lists would save 0.15 s of processor time, and lose up to 5 % of
# neighbours (`benchmarks/crossovers.py`, "lists").
EXACT_UP_TO = 8_000
FEW = 15  # neighbours that fewer lists hold to the same recall
PROBE = 300  # rows searched exactly to measure the recall
SAMPLE = 4096  # rows sampled for the medians
HALF_DIGITS = 1e-8  # of float64
WILDEST = 1e150  # squares of differences must not overflow

__all__ = ["NeighborSearch", "Neighbors", "SearchField", "find_neighbors"]


@dataclass(frozen=True, eq=False)
class Neighbors(Record):
    """Nearest neighbours of every row, nearest first, the row itself excluded.

    Attributes
    ----------
    indices : array (n, k), int32
    distances : array (n, k), float64
        In the data's own units; the angle in radians for cosine and correlation.
    recall : float
        Share of the true neighbours that were found, measured on `probed` rows.
    probed : int
    method : str
        Search method.
    """

    indices: NDArray[np.int32] = field(repr=False)
    distances: Floats64 = field(repr=False)
    recall: float
    probed: int
    method: str

    def title(self) -> str:
        """One-line summary."""
        n, k = self.indices.shape
        return f"{k} neighbours of {n:,} rows by {self.method}, recall {self.recall:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """Fields as a dictionary, without the neighbours."""
        n, k = self.indices.shape
        return {
            "n": n,
            "k": k,
            "recall": self.recall,
            "probed": self.probed,
            "method": self.method,
        }


def find_neighbors(
    X: NDArray[Any],
    k: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    recall: float = 0.95,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Neighbors:
    """Nearest neighbours of the rows of `X`, shape (n, d), among themselves.

    Parameters
    ----------
    k : int
        Number of neighbours, below n.
    metric : str
        ``"euclidean"``, ``"cosine"`` and ``"correlation"`` (the angle between rows, or between
        rows less their means; scikit-learn's t-SNE squares 1 − cos instead) or ``"hellinger"``;
        any other metric of scikit-learn, or a function of two rows, exactly, but slower.
    recall : float
        Requested share of true neighbours; 1.0 searches exactly.
    seed : int
        Seed of the lists' centres and the probed rows.
    n_jobs : int, optional
        Threads; they do not change the result.
    """
    n = X.shape[0]
    k = check_integer("k", k, 1, n - 1, f"The table has {n} rows.")
    search = NeighborSearch(
        X, metric=metric, metric_params=metric_params, recall=recall, seed=seed, n_jobs=n_jobs
    )
    return search.among_themselves(k)


class NeighborSearch:
    """Index of a table for finding neighbours of its own rows or of new rows.

    Parameters as for `find_neighbors`. The index and the cached neighbours are left out of pickles;
    the index is built again, with the same bits, when it is needed.
    """

    def __init__(
        self,
        X: NDArray[Any],
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        recall: float = 0.95,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric, self.metric_params = metric, metric_params
        self.recall, self.seed, self.n_jobs = check_real("recall", recall, 0.0, 1.0), seed, n_jobs
        self.n_probes = self.few_probes = 4  # lists probed, and for few neighbours
        self._index: InvertedLists | BruteForce | None = None
        self._known: NDArray[np.int32] | None = None  # cached nearest rows of each row
        self._centres: Floats32 | None = None  # centres of the lists, once computed
        if self._by_library(X):
            rows = changed_rows(X, metric)
            self.exact, self.Z = True, rows if is_sparse(rows) else np.asarray(rows, np.float64)
            return
        self.exact = X.shape[0] <= EXACT_UP_TO or recall == 1.0
        self._shift_by(X)
        self.Z = self._prepared(X)

    def among_themselves(self, k: int, rows: Indices | None = None) -> Neighbors:
        """Find the `k` nearest neighbours of every row of the table, or of its `rows`."""
        n = self.Z.shape[0]
        if rows is not None and len(rows) < n:
            return self._search_all(k, rows)
        found = self._search_all(k, np.arange(n))
        self._known = np.ascontiguousarray(found.indices[:, :FEW])
        return found

    def nearest(self, k: int, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the `k` nearest rows of every row, shape (n, k), from the cache if possible.

        If more are requested than cached, a copy searches, probing no more lists than these
        neighbours need: the number of lists probed for new rows does not change.
        """
        if self._known is None or self._known.shape[1] < k:
            again = copy(self)
            again.n_probes, again.n_jobs = 1, n_jobs
            return again.among_themselves(k).indices
        return self._known[:, :k]

    def _search_all(self, k: int, rows: Indices) -> Neighbors:
        """Search for `among_themselves`."""
        if self._by_library(self.Z):
            return self._by_scikit_learn(k, rows)
        index, Z = self._built(), self.Z if len(rows) == len(self.Z) else self.Z[rows]
        measured, probed, method = 1.0, len(rows), "exact search"
        found: NDArray[Any]
        if isinstance(index, BruteForce):
            found, distances = index.search(Z, k, own=rows, n_jobs=self.n_jobs)
        elif self.exact:
            found, distances = index.search(Z, k, 1, own=rows, alone=True, n_jobs=self.n_jobs)
        else:
            probe = _Probe(index, k, self.seed, self.n_jobs)
            found, distances, measured, method = self._reach(index, k, probe, rows)
            probed = probe.rows.size
        return Neighbors(
            found.astype(np.int32, copy=False),
            self._in_units(distances),
            measured,
            probed,
            method,
        )

    def of(
        self, X: NDArray[Any], k: int, n_jobs: int | None = None
    ) -> tuple[NDArray[np.int32], Floats64]:
        """Find the `k` rows of the table nearest to each row of `X`, and their distances."""
        if self._by_library(self.Z):
            model = self._scikit_learn(k, n_jobs).fit(self.Z)
            Q = changed_rows(X, self.metric)
            distances, indices = model.kneighbors(Q if is_sparse(Q) else np.asarray(Q, np.float64))
            self._refuse_undefined(distances)
            return indices.astype(np.int32), self._in_units(distances)
        Q, index = self._prepared(X), self._built()
        if isinstance(index, BruteForce):
            numbers, distances = index.search(Q, k, n_jobs=n_jobs)
            return numbers.astype(np.int32), self._in_units(distances)
        probes = self.few_probes if k <= FEW else self.n_probes
        found, distances = index.search(Q, k, probes, alone=True, n_jobs=n_jobs)
        short = np.flatnonzero(found[:, -1] < 0)
        if short.size:  # their lists held fewer than k rows
            found[short], distances[short] = self._whole().search(
                Q[short], k, 1, alone=True, n_jobs=n_jobs
            )
        return found, self._in_units(distances)

    def distances(self, rows: Indices, near: NDArray[np.int32]) -> Floats64:
        """Distances from m rows to rows `near` (m, k), euclidean or cosine, as differences."""
        gaps = self.Z[near] - self.Z[rows][:, None]
        return self._in_units(np.sqrt(np.einsum("ikc,ikc->ik", gaps, gaps)))

    def between(self, rows: Indices, columns: Indices | slice, fine: Floats64) -> Floats64:
        """Distances from m rows of the table to c of its rows, or to a slice, shape (m, c).

        By products of matrices, which lose digits of small distances; as differences for rows
        whose distances of the size `fine`, shape (m,), would lose more than half of their digits.
        """
        if self._by_library(self.Z):
            some = self.Z[columns]
            model = self._scikit_learn(some.shape[0], self.n_jobs).fit(some)
            distances, indices = model.kneighbors(self.Z[rows])
            distances = self._in_units(distances)
            out = np.empty_like(distances)
            np.put_along_axis(out, indices.astype(np.int64), distances, axis=1)
            return out
        Q, Z = self.Z[rows], self.Z[columns]
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            lengths = np.einsum("ij,ij->i", Q, Q)
            sq = (-2 * Q) @ Z.T
            sq += np.einsum("ij,ij->i", Z, Z)
            sq += lengths[:, None]
            rough = ~(np.ldexp(fine, -self.exponent) ** 2 > HALF_DIGITS * lengths)
        for at in np.flatnonzero(rough):
            sq[at] = np.square(Z - Q[at]).sum(axis=1)
        return self._in_units(np.sqrt(np.maximum(sq, 0.0, out=sq), out=sq))

    def table(self) -> Any:
        """Rows with the distances of the table that is searched, up to rounding.

        They are shifted for Euclidean distances, of unit length for angles, and shares for
        Hellinger's, so that the metric applied to them again finds the same.
        """
        known = self._by_library(self.Z)
        rows = self.Z if known else np.ldexp(self.Z, self.exponent) + self.median
        return rows**2 if self.metric == "hellinger" else rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None, "_known": None}

    def _shift_by(self, X: NDArray[Any]) -> None:
        """Find the medians and the scale, from evenly spaced rows in C order."""
        self.shift = scale_rows(X, work="f8").scaling.shift
        at = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], SAMPLE)).astype(np.intp))
        self.median, self.exponent = np.zeros(X.shape[1]), 0
        if self.metric != "euclidean":
            sample = changed_rows(np.ascontiguousarray(X[at]), self.metric, at)
            self.median = np.median(sample, axis=0)
            return
        sample = self._shifted(np.ascontiguousarray(X[at]))
        self.median = np.median(sample, axis=0)
        sizes = np.abs(sample - self.median)
        size = float(np.quantile(sizes, 0.99)) or float(sizes.max(initial=0.0))
        if size == 0:  # the sample is constant
            size = float(np.abs(self._shifted(X) - self.median).max(initial=0.0))
        self.exponent = int(np.frexp(size)[1]) if size > 0 else 0

    def _shifted(self, X: NDArray[Any]) -> Floats64:
        """Subtract a shift of the table's own type: long integers would lose digits otherwise."""
        return np.asarray(Scaling(np.dtype(np.float64), self.shift).apply(X), np.float64)

    def _prepared(self, X: NDArray[Any]) -> Floats64:
        """Rows relative to the medians, divided by a power of two; transformed for the metric."""
        plain = self.metric == "euclidean"
        Z = self._shifted(X) if plain else changed_rows(X, self.metric)
        Z = np.asarray(Z - self.median)
        np.ldexp(Z, -self.exponent, out=Z)
        return np.clip(Z, -WILDEST, WILDEST, out=Z)

    def _in_units(self, distances: Floats64) -> Floats64:
        if self.metric in ANGLES:
            return np.asarray(2 * np.arcsin(np.minimum(1.0, distances / 2)))  # chord to angle
        if self._by_library(self.Z) or self.exponent == 0:
            return distances
        return np.ldexp(distances, self.exponent, out=distances)  # fresh memory costs more

    def _by_library(self, X: Any) -> bool:
        """Whether scikit-learn searches: for one of its metrics, or in a sparse table."""
        return is_sparse(X) or not isinstance(self.metric, str) or self.metric not in METRICS

    @property
    def _metric_name(self) -> str:
        return str(getattr(self.metric, "__name__", self.metric))

    def _reach(
        self, lists: InvertedLists, k: int, probe: "_Probe", rows: Indices
    ) -> tuple[NDArray[np.int32], Floats64, float, str]:
        """Neighbours of `rows`, the recall measured on `probe`, and the method."""
        search = partial(lists.search, n_jobs=self.n_jobs)
        n_lists, enough = len(lists.centres), 0.0
        while True:
            near = search(self.Z[probe.rows], k, self.n_probes, own=probe.rows)[0]
            measured = probe.recall(near)
            if enough < self.recall:
                self.few_probes, enough = self.n_probes, probe.recall(near[:, :FEW])
            if measured >= self.recall or self.n_probes >= n_lists:
                break
            self.n_probes += max(1, self.n_probes // 8)
        Z = self.Z if len(rows) == len(self.Z) else self.Z[rows]
        found, distances = search(Z, k, self.n_probes, own=rows)
        short = np.flatnonzero(found[:, -1] < 0)
        if short.size:  # their lists held fewer than k rows
            found[short], distances[short] = self._whole().search(
                Z[short], k, 1, own=rows[short], alone=True, n_jobs=self.n_jobs
            )
        probed = min(self.n_probes, n_lists)
        return found, distances, measured, f"inverted lists ({probed} of {n_lists} probed)"

    def _built(self) -> InvertedLists | BruteForce:
        """Return the index, building it on first use."""
        if self._index is None and self.exact and len(self.Z) <= SMALL_UP_TO:
            self._index = BruteForce(self.Z)
        elif self._index is None:
            self._index = self._whole() if self.exact else self._lists()
        return self._index

    def _whole(self) -> InvertedLists:
        """Index with all rows in one list, around the medians."""
        return InvertedLists(self.Z, np.zeros((1, self.Z.shape[1]), np.float32), self.n_jobs)

    def _lists(self) -> InvertedLists:
        if self._centres is None:
            count = _list_count(len(self.Z))
            self._centres = find_centres(
                self.Z, count, largest=float(WILDEST_32), seed=self.seed, n_jobs=self.n_jobs
            )
        return InvertedLists(self.Z, self._centres, self.n_jobs)

    def _by_scikit_learn(self, k: int, rows: Indices) -> Neighbors:
        """Exact neighbours by any of scikit-learn's metrics, in float64."""
        distances, indices = self._scikit_learn(k, self.n_jobs).fit(self.Z).kneighbors()
        if len(rows) < len(indices):
            distances, indices = distances[rows], indices[rows]
        self._refuse_undefined(distances)
        method = f"exact search ({self._metric_name})"
        distances = self._in_units(distances)
        return Neighbors(indices.astype(np.int32), distances, 1.0, self.Z.shape[0], method)

    def _scikit_learn(self, k: int, n_jobs: int | None) -> Any:
        from sklearn.neighbors import VALID_METRICS, NearestNeighbors

        # for a sparse table whose rows were transformed for one of our metrics
        metric = "euclidean" if self.metric in METRICS else self.metric
        if not callable(metric) and not any(metric in known for known in VALID_METRICS.values()):
            refuse("metric", "be one of scikit-learn's metrics", metric)
        params = dict(self.metric_params or {})
        if self.metric == "mahalanobis":
            params = _with_inverse(params)
        p = params.pop("p", 2)  # scikit-learn takes it as a separate parameter
        return NearestNeighbors(
            n_neighbors=k,
            metric=metric,
            p=p,
            metric_params=params,
            n_jobs=None if n_jobs is None else thread_count(n_jobs),
        )

    def _refuse_undefined(self, distances: Floats64) -> None:
        undefined = np.count_nonzero(~np.isfinite(distances), axis=1)
        if undefined.any():
            raise DataError(
                f"Row {np.argmax(undefined)} of X has no {self._metric_name} distance to others: "
                "NaN or infinity. Drop such rows, or use another metric."
            )


def _with_inverse(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of Mahalanobis' distance with the inverse covariance, which every search uses."""
    if not params.keys() & {"V", "VI"}:
        refuse(
            "metric_params",
            "hold V, a covariance, or VI, its inverse, for metric='mahalanobis'",
            params,
            "Use {'V': numpy.cov(X.T)}.",
        )
    return params if "VI" in params else {"VI": np.linalg.inv(np.asarray(params["V"], float))}


def _list_count(n: int) -> int:
    return int(2 ** np.round(np.log2(np.sqrt(n))))


class SearchField(Field):
    """Model-file field of a search: its rows and the centres of its lists, as plain arrays.

    The index is built again from them, with the same bits, for the first new row.

    Parameters
    ----------
    rows, columns : str
        Named sizes.
    """

    def __init__(self, rows: str, columns: str) -> None:
        self.always = {
            "metric": Text(),
            "metric_params": Either.none_or(DictOf(Anything())),
            "recall": Real(0.0, 1.0),
            "seed": Whole(0, 2**31),
            "n_jobs": Either((Nothing(), Whole(1), Whole(-(2**31), -1))),
            "n_probes": Whole(1),
            "few_probes": Whole(1),
            "exact": Flag(),
            "Z": Array("f8", rows, columns),
        }
        self.sparse = {**self.always, "Z": Csr(rows, columns)}
        self.prepared = {
            "shift": Array("f4 f8 i8 u8", columns),
            "median": Array("f8", columns, finite=True),
            "exponent": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
            "_centres": Either.none_or(Array("f4", "lists", columns, finite=True)),
        }

    def pack(self, value: Any) -> Any:
        """Pack everything except the index."""
        table = self.sparse if is_sparse(value.Z) else self.always
        return Fields({**table, **self.prepared}).pack(vars(value))

    def unpack(self, value: Any, sizes: Sizes) -> NeighborSearch:
        """Restore the search; its index is built on first use."""
        ours = isinstance(value, dict) and "shift" in value and value.get("metric") in METRICS
        sparse = isinstance(value, dict) and isinstance(value.get("Z"), dict)
        always = self.sparse if sparse else self.always
        table = {**always, **(self.prepared if ours else {"_centres": Nothing()})}
        found = Fields(table).unpack(value, sizes)
        search: NeighborSearch = object.__new__(NeighborSearch)
        search.__dict__.update(found, _index=None, _known=None)
        centred = ours and found["_centres"] is not None
        if centred and sizes["lists"] != _list_count(len(search.Z)):
            raise UnfitError("its search has the wrong number of lists")
        return search


class _Probe:
    """A few hundred rows whose true neighbours are known from probing all lists."""

    def __init__(self, lists: InvertedLists, k: int, seed: int, n_jobs: int | None) -> None:
        n = len(lists.Z)
        self.Z, self.n_jobs = lists.Z, n_jobs
        self.rows = np.sort(np.random.default_rng(seed).choice(n, min(n, PROBE), replace=False))
        _, distances = lists.search(
            self.Z[self.rows], k, len(lists.centres), own=self.rows, alone=True, n_jobs=n_jobs
        )
        # of the k-th neighbour
        self.sq_radius = {count: distances[:, count - 1] ** 2 for count in (min(k, FEW), k)}

    def recall(self, found: NDArray[np.int32]) -> float:
        """Share of the neighbours found for these rows that are as near as the true ones.

        Rows at the same distance are equivalent, so copies do not count as missed.
        """
        found = np.ascontiguousarray(found)
        sq_radius = self.sq_radius[found.shape[1]] * (1 + 1e-12)

        def block(start: int, stop: int) -> int:
            return _count_within(self.Z, self.rows, found, sq_radius, start, stop)

        counts = map_blocks(block, row_blocks(self.rows.size, 16), n_jobs=self.n_jobs)
        return float(sum(counts) / found.size)


@kernel
def _count_within(
    Z: Floats64, rows: Indices, found: Any, sq_radius: Floats64, start: int, stop: int
) -> int:
    """Count the rows found for some of `rows` that are within the radius."""
    count = 0
    for i in range(start, stop):
        for j in range(found.shape[1]):
            total = 0.0
            for c in range(Z.shape[1]):
                step = Z[found[i, j], c] - Z[rows[i], c]
                total += step * step
            count += found[i, j] >= 0 and total <= sq_radius[i]
    return count
