"""Similarity of two sets of paired points, by rotation-invariant measures.

With X and Y centred on their means, and the singular values σ of XᵀY:

- disparity 1 − (Σσ)² / (‖X‖²‖Y‖²), and the angle arccos(Σσ / ‖X‖‖Y‖), which is a distance between
  shapes [Kendall 1984];
- RV = ‖XᵀY‖² / (‖XᵀX‖‖YᵀY‖) [Robert & Escoufier 1976], equal to the linear centred kernel
  alignment CKA [Kornblith et al. 2019]. Both grow with the number of columns even if the sets
  are unrelated;
- the unbiased CKA, from an unbiased estimate of the kernels' covariance [Song et al. 2012], is
  about 0 then. With k = ‖x‖² and l = ‖y‖² of each row, that estimate is, up to a factor that
  cancels, ‖XᵀY‖² − Σkl·n/(n − 2) + ΣkΣl / ((n − 1)(n − 2)): linear kernels need no n × n matrix;
- the share of each row's nearest neighbours that are neighbours in both sets, and of rows that
  changed company (`changes`).

With ``metric="cosine"`` the rows of both sets are divided by their lengths first, and all of these
are computed from those rows: the chord between two of them grows with their angle.
"""

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.engine import as_engine
from gnomon.engine.arrays import as_source
from gnomon.errors import DataError, refuse
from gnomon.inputs import check_integer
from gnomon.late import late
from gnomon.procrustes.align import ids_or_index, join_ids
from gnomon.procrustes.changes import Changes, find_changes
from gnomon.procrustes.cross_moments import CrossMoments
from gnomon.procrustes.matched_tables import pair_tables, read_table
from gnomon.procrustes.row_pairs import Pair, Weights, draw_rows, pair_block_rows, view_pair
from gnomon.procrustes.similarity import Rules, Similarity, fit_similarity
from gnomon.procrustes.verdict import refuse_empty_verdict, warn_of_weak_verdict
from gnomon.records import Record, plain
from gnomon.typing import Array, Floats64

# Rows drawn for measures that cannot be added up: shares of them are then known to about 0.5 %.
SAMPLE_ROWS = 10_000
SAMPLE_SEED = 0

__all__ = [
    "SAMPLE_ROWS",
    "SAMPLE_SEED",
    "Comparison",
    "compare",
    "kernel_alignment",
    "kernels_of",
    "sampled_rows",
]


@dataclass(frozen=True)
class Comparison(Record):
    """Similarity of two sets. Every number is symmetric in X and Y.

    Attributes
    ----------
    n : int
        Number of pairs of rows.
    disparity : float
        0 for the same shape, 1 for nothing in common.
    correlation : float
        Procrustes correlation, √(1 − disparity). For unrelated sets it is about 0.85 √(d / n) for
        many rows and above 0.7 for fewer than d + 2; `permutation_test` computes the chance level.
    angular_distance : float
        Radians, 0 to π/2: a metric between shapes.
    rmsd : float
        Root mean squared distance after the best rotation and translation, in the tables' units.
    rv : float
        RV coefficient, equal to the linear CKA: 0 to 1, biased upwards for many columns.
    unbiased_cka : float
        About 0 if the sets are unrelated, for any number of columns; may be negative. NaN
        for fewer than 4 rows.
    neighbor_overlap : float
        Mean share of the `n_neighbors` nearest neighbours that both sets agree on. The chance
        level is n_neighbors / (overlap_rows − 1).
    changed : float
        Share of rows that changed company: their former neighbours are far away now.
    n_neighbors : int
    overlap_rows : int
        Rows among which neighbours were searched: all, or a sample if the tables are read in
        blocks.
    metric : str
        ``"euclidean"``, or ``"cosine"``: every number is then of rows divided by their lengths.
    changes : Changes
        How the neighbours of each row changed.
    tables : pair of arrays
        X and Y as they were compared, or the sample of them whose neighbours were searched.
    ids : tuple or None
        Ids of the rows, in the order of X, where rows were joined by ids.
    """

    n: int
    disparity: float
    correlation: float
    angular_distance: float
    rmsd: float
    rv: float
    unbiased_cka: float
    neighbor_overlap: float
    changed: float
    n_neighbors: int
    overlap_rows: int
    metric: str
    changes: Changes = field(repr=False, compare=False)
    tables: tuple[Any, Any] = field(repr=False, compare=False)
    ids: tuple[Hashable, ...] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the metric, without rows and tables."""
        names = [each.name for each in dataclasses.fields(self) if each.repr]
        return {name: plain(getattr(self, name)) for name in names}

    def report(
        self,
        *,
        names: tuple[str, str] = ("a", "b"),
        ids: Any = None,
        labels: Any = None,
        title: str | None = None,
        reruns: Sequence[Any] = (),
        n_permutations: int = 999,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Any:
        """Build one offline page: both maps side by side, their changes and their similarity.

        Tables of more than two columns are compared by neighbours in the tables; maps are then
        computed for the page.

        Parameters
        ----------
        names : pair of str
            Names of the tables.
        ids : column, optional
            Names of the rows; by default the ids by which they were joined.
        labels : column, mapping of names to columns, or dataframe, optional
            Labels to colour by.
        title : str, optional
        reruns : sequence of arrays (n, k), optional
            The first table computed again with other seeds: the changes due to chance alone.
        n_permutations, random_state
            Number of shuffles for the p-values, and their seed.

        Returns
        -------
        gnomon.report.Report
            With `save`, `open`, and a preview in notebooks.

        Examples
        --------
        >>> from gnomon import PCA, compare, samples
        >>> wine = samples.load("wine")
        >>> raw = PCA(2).fit_transform(wine.X)
        >>> scaled = PCA(2, standardize=True).fit_transform(wine.X)
        >>> page = compare(raw, scaled).report(names=("raw", "standardised"), n_permutations=99)
        >>> page.html.startswith("<!doctype html>")
        True
        """
        return late("report_comparison")(
            self,
            names=names,
            ids=ids,
            labels=labels,
            title=title,
            reruns=reruns,
            n_permutations=n_permutations,
            random_state=random_state,
            n_jobs=n_jobs,
        )

    def _repr_html_(self) -> str:
        return str(late("comparison_card")(self).html())

    def title(self) -> str:
        """One-line summary."""
        return f"{self.n:,} pairs of rows, Procrustes correlation {self.correlation:.3f}"

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
        some = self.overlap_rows < self.n
        chance = self.n_neighbors / (self.overlap_rows - 1)
        among = f", among {self.overlap_rows:,} rows drawn at random" if some else ""
        how = "rows as they are" if self.metric == "euclidean" else "rows divided by their lengths"
        return [
            ("metric", f"{self.metric}: {how}"),
            ("disparity", f"{self.disparity:.4g} (0: same shape, 1: nothing in common)"),
            ("angular distance", f"{np.degrees(self.angular_distance):.3g}° of 90°"),
            ("rmsd", f"{self.rmsd:.4g} after the best rotation and translation"),
            ("RV, linear CKA", f"{self.rv:.4g}; unbiased {self.unbiased_cka:.4g}"),
            (
                "neighbours",
                f"{100 * self.neighbor_overlap:.1f} % of the {self.n_neighbors} nearest "
                f"rows in common, by chance {100 * chance:.2g} %{among}",
            ),
            ("changed company", f"{100 * self.changed:.1f} % of rows"),
        ]


@one_blas_thread()
def compare(
    X: Any,
    Y: Any,
    ids_x: Any = None,
    ids_y: Any = None,
    *,
    n_neighbors: int = 10,
    metric: str = "euclidean",
    n_jobs: int | None = None,
    id: str | None = None,
    engine: Any = None,
) -> Comparison:
    """Compare the rows that `X` (n, dx) and `Y` (k, dy) share; reflections are allowed.

    Two rows are refused, since any two points have the same shape; fewer than min(dx, dy) + 2
    raise a warning (see `gnomon.procrustes.verdict`).

    Parameters
    ----------
    X, Y : arrays, dataframes, sources, Dask arrays, or two paths
        Files, folders of runs and models are joined as by `gnomon compare`. Tables that are not in
        memory are read in blocks, in five passes; the overlap of neighbourhoods is then estimated
        from 10,000 rows drawn at random.
    ids_x, ids_y : sequences of n and k hashable ids, optional
        Rows with equal ids are partners, as in `align`; other rows are left out. By default the
        indexes of dataframes, if both have an explicit one; otherwise row i belongs to row i.
    n_neighbors : int
        Neighbours for the overlap of neighbourhoods; at most half of the other rows, since all
        other rows are the neighbours in both sets by construction.
    metric : {"euclidean", "cosine"}
        ``"cosine"``, for embeddings, divides all rows by their lengths first. Neighbours are then
        those with the smallest angle, and disparity, RV and CKA are those of the divided rows.
    id : str, optional
        The column of ids of two files; or a column of numbers, ascending in both tables, by which
        rows are paired in blocks. By default they are paired by position.
    engine : Dask client or engine, optional
        Engine that reads the tables; by default `n_jobs` threads of this process.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import compare
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = compare(X, 7 * X[:, ::-1])
    >>> round(found.correlation, 6), round(found.rv, 6), found.neighbor_overlap
    (1.0, 1.0, 1.0)
    >>> compare(X, X[5:], range(50), range(5, 50), metric="cosine").n
    45
    """
    k = check_integer("n_neighbors", n_neighbors, 1)
    workers = as_engine(engine, n_jobs=n_jobs)
    ids = None
    if isinstance(X, str | PathLike) and isinstance(Y, str | PathLike):
        X, Y, ids, id = late("opened_pair")(X, Y, id)
    elif id is None:
        X, Y, ids = _joined(X, Y, ids_x, ids_y)
    table = pair_tables(X, Y, id, workers, metric)
    n, d = table.rows, min(table.widths)
    refuse_empty_verdict(n, d)
    view = view_pair(table, workers).in_float64()
    found = fit_similarity(view.moments(), Rules())
    for name, sq in (("X", found.sq_x), ("Y", found.sq_y)):
        if sq == 0:
            raise DataError(f"{name} has norm 0 (all rows are the same point): it has no shape.")
    warn_of_weak_verdict(n, d, stacklevel=3)
    found, _ = found.with_rows(view, None, keep=False)
    left, right = view.some_or_all(SAMPLE_ROWS, SAMPLE_SEED)
    kernels = view.total(_KernelsOf(found.moments))
    alike = _comparison(found, kernels, left, right, k, metric, n_jobs)
    return dataclasses.replace(alike, ids=ids)


def _joined(X: Any, Y: Any, ids_x: Any, ids_y: Any) -> tuple[Any, Any, tuple[Hashable, ...] | None]:
    """The shared rows of both tables in the order of X, and their ids; as they are without ids."""
    ids_x, ids_y = ids_or_index(X, Y, ids_x, ids_y)
    if ids_x is None:
        return X, Y, None
    for name, Z in (("X", X), ("Y", Y)):
        if as_source(Z) is not None:
            refuse(name, "be in memory to be joined by `ids_x` and `ids_y`", type(Z).__name__)
    left, right = read_table(X, "X"), read_table(Y, "Y")
    shared, rows_x, rows_y, _, _ = join_ids(left, right, ids_x, ids_y)
    return left[rows_x], right[rows_y], shared


def sampled_rows(n: int) -> NDArray[np.intp]:
    """Rows of a pair of n that are sampled if the tables are read in blocks."""
    return draw_rows(n, SAMPLE_ROWS, SAMPLE_SEED)


@dataclass(frozen=True)
class Kernels:
    """Sums over rows x, y about the means: XᵀX, YᵀY, and sums of k = ‖x‖² and m = ‖y‖².

    `sums` are Σk, Σm, Σk², Σm², Σkm.
    """

    xx: Floats64
    yy: Floats64
    sums: Floats64

    def __add__(self, other: "Kernels") -> "Kernels":
        return Kernels(self.xx + other.xx, self.yy + other.yy, self.sums + other.sums)


def kernels_of(x: Array, y: Array) -> Kernels:
    """Sums over the rows of x (n, dx) and y (n, dy), which are centred on their means."""
    k, m = (np.einsum("ij,ij->i", z, z) for z in (x, y))
    sums = np.array([k.sum(), m.sum(), k @ k, m @ m, k @ m])
    return Kernels(x.T @ x, y.T @ y, sums)


@dataclass(frozen=True)
class _KernelsOf:
    """Sums for RV and the unbiased CKA, about the means of `moments`."""

    moments: CrossMoments

    def step(self, pair: Pair, _: int) -> int:
        return pair_block_rows(pair)

    def __call__(self, pair: Pair, _: Weights, start: int, stop: int) -> Kernels:
        x, y = (
            rows.scaled(exponent=m.exponent, offset=m.offset).read(start, stop)
            for rows, m in ((pair.left, self.moments.x), (pair.right, self.moments.y))
        )
        return kernels_of(x, y)


def _comparison(
    found: Similarity,
    kernels: Kernels,
    left: Any,
    right: Any,
    k: int,
    metric: str,
    n_jobs: int | None,
) -> Comparison:
    """Compute all numbers; `left` and `right` are the rows whose neighbours are searched."""
    n, k = found.moments.x.n, min(k, (len(left) - 1) // 2)
    changes = find_changes(left, right, k, n_jobs)
    rv, unbiased = kernel_alignment(kernels, found.cross, n)
    return Comparison(
        n=n,
        disparity=found.disparity,
        correlation=float(np.sqrt(1 - found.disparity)),
        # arcsin of the root of a small number is accurate where arccos near 1 is not
        angular_distance=float(np.arcsin(np.sqrt(found.disparity))),
        rmsd=float(np.ldexp(np.sqrt(found.residual_sum / n), found.unit)),
        rv=rv,
        unbiased_cka=unbiased,
        neighbor_overlap=float(changes.kept.mean()),
        changed=changes.share,
        n_neighbors=k,
        overlap_rows=len(left),
        metric=metric,
        changes=changes,
        tables=(left, right),
    )


def kernel_alignment(kernels: Kernels, cross: Floats64, n: int) -> tuple[float, float]:
    """RV and unbiased CKA, with each table in units of its own size."""
    tx, ty = float(np.trace(kernels.xx)), float(np.trace(kernels.yy))
    xx, yy = (float(np.sum((S / t) ** 2)) for S, t in ((kernels.xx, tx), (kernels.yy, ty)))
    xy = float(np.sum((cross / (np.sqrt(tx) * np.sqrt(ty))) ** 2))
    rv = min(1.0, xy / float(np.sqrt(xx * yy)))
    if n < 4:
        return rv, float("nan")
    k, m, kk, mm, km = kernels.sums / [tx, ty, tx, ty, tx] / [1, 1, tx, ty, ty]
    both = _unbiased(xy, k, m, km, n)
    of_x, of_y = _unbiased(xx, k, k, kk, n), _unbiased(yy, m, m, mm, n)
    if of_x <= 0 or of_y <= 0:
        return rv, float("nan")
    return rv, both / float(np.sqrt(of_x * of_y))


def _unbiased(product: float, k: float, m: float, km: float, n: int) -> float:
    """Unbiased estimate from Σk, Σm and Σkm."""
    return float(product - km * n / (n - 2) + k * m / ((n - 1) * (n - 2)))
