"""Rows unlike the data: near nothing that the map was made of, or outside its components.

A new row is unusual by the larger of two numbers, each over its limit:

- the distance ratio: its mean distance to the 15 nearest rows, over those rows' own to theirs, in
  the table that neighbours are searched in;
- the residual: its distance from the principal components, √ of `PCA.prediction_error`, in units of
  the median of rows left out.

Distances alone miss whatever PCA takes away before they are measured: of noise on 784 pixels that
become 50 scores none was flagged, the residual flags all of it. The components are those of the PCA
that reduced the table; where there was none, those of an auxiliary PCA of the table itself.
Positions never depend on any of this.

Both limits are of rows that had no part in what they are held against: ratios are those that a row
would have if the others alone were the data, residuals those from the components of all other rows
(`gnomon.pca.downdate`). They are set together, each with as many of those rows beyond it as the
other, so that about 1 % of new rows of the same kind are beyond one of them. Of fewer than 100 rows
both are the largest there is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.models.fields import Either, Field, Real, RecordOf
from gnomon.neighbors.rows import changed_rows
from gnomon.neighbors.search import Neighbors
from gnomon.pca import PCA
from gnomon.pca.components import Components
from gnomon.pca.downdate import SampledRows
from gnomon.pca.measure import measure_rows
from gnomon.tsne.graph import REDUCED, WIDE
from gnomon.typing import Floats64, Table

__all__ = [
    "REASONS",
    "Novelty",
    "count_reasons",
    "distance_ratios",
    "joint_limits",
    "learn_novelty",
    "left_out_ratios",
    "novelty_field",
    "unusual_words",
]


RARE = 0.01  # share of new rows of the same kind that are called unusual, by definition
# Share of the variance that an auxiliary PCA of a table of up to 100 columns keeps. With less, much
# of a usual row is outside as well; with more, little of an unusual one. At 0.9, 0.95, 0.98 and
# 0.99 the share flagged of digits with independent normal columns is 96, 96, 92 and 87 %, that of
# smooth curves on 30 columns with their columns shuffled 61, 84, 98 and 99.7 %. Other kinds of
# rows: `benchmarks/foreign.py`.
HELD = 0.98
# Residuals below this share of the table's spread are rounding: a new row may come as float32.
SMALLEST = 1e-5
# Rows that limits are drawn from: a quarter of the table within these bounds. Of m rows the share
# beyond a 1 % limit is known to 0.1/√m: 0.3 % of 1,000 rows, 0.14 % of 5,000.
LEAST_ROWS, MOST_ROWS = 1000, 5000
MOST_NUMBERS = 2**23  # of those rows, where they are long
LEAST_LONG = 300  # rows, however long they are

REASONS = ("", "near nothing", "outside the components")


@dataclass(frozen=True, eq=False)
class Novelty:
    """What new rows are held against.

    Attributes
    ----------
    distance_limit : float
    residual_limit : float or None
        None where residuals are not measured: of distances that were given there are none.
    residual_unit : float
        The median residual of rows left out, in units of 2^`_unit` of the PCA.
    auxiliary : Components or None
        What residuals are measured by, where no PCA reduced the table.
    """

    distance_limit: float
    residual_limit: float | None = None
    residual_unit: float = 1.0
    auxiliary: Components | None = None

    def residuals(
        self, X: Table, components: Components | None, metric: str, n_jobs: int | None = None
    ) -> Floats64:
        """Residual of each row of `X`, about 1 for rows like the data; NaN if not measured.

        `components` are those that reduced the table of the map, if any did.
        """
        if self.residual_limit is None:
            return np.full(X.shape[0], np.nan)
        model = components if self.auxiliary is None else self.auxiliary
        assert model is not None
        rows = changed_rows(X, metric)
        return np.sqrt(measure_rows(model, rows, n_jobs).sq_residuals) / self.residual_unit

    def reasons(self, ratio: Floats64, residual: Floats64) -> NDArray[np.uint8]:
        """Why each row is unusual, as a place in `REASONS`; 0 for rows that are not."""
        far = ratio > self.distance_limit
        if self.residual_limit is None:
            return far.astype(np.uint8)
        outside = residual > self.residual_limit
        with np.errstate(all="ignore"):
            more = residual / self.residual_limit >= ratio / self.distance_limit
        return np.where(outside & (more | ~far), 2, far).astype(np.uint8)


def learn_novelty(
    X: Table,
    pca: PCA | None,
    near: Neighbors,
    *,
    n_neighbors: int,
    metric: str,
    weights: Floats64 | None,
    seed: int,
    n_jobs: int | None,
) -> Novelty:
    """Limits from the rows of a map.

    Parameters
    ----------
    X : array or CSR array, shape (n, d)
    pca : PCA or None
        What reduced it.
    near : Neighbors
        Of the rows among themselves.
    n_neighbors : int
        How many of them new rows will be compared with.
    metric : str
        Of the distances; ``"precomputed"`` if `X` holds them.
    weights : array (n,), optional
        Copies that each row stands for.
    """
    (n, d), auxiliary = X.shape, None
    rows = changed_rows(X, metric)
    if pca is None and metric != "precomputed":
        k = min(REDUCED, n, d) if d > WIDE else HELD
        pca = auxiliary = PCA(k, n_jobs=n_jobs).fit(rows, sample_weight=weights)
    left_out = _choose_rows(n, d, seed)
    w = None if weights is None else weights[left_out]
    ratios = left_out_ratios(near, left_out, n_neighbors)
    if pca is None:
        return Novelty(joint_limits(ratios, np.zeros_like(ratios), w)[0])
    residuals = _left_out_residuals(pca, rows[left_out], n, w)
    unit = max(float(np.median(residuals)), SMALLEST * float(np.sqrt(pca._total))) or 1.0
    far, outside = joint_limits(ratios, residuals / unit, w)
    model = None if auxiliary is None else auxiliary._model()
    return Novelty(far, max(outside, 1.0), unit, model)


def _choose_rows(n: int, d: int, seed: int) -> NDArray[np.intp]:
    """Rows that limits are drawn from, at random: a table may be in any order."""
    few = min(MOST_ROWS, max(LEAST_ROWS, n // 4), max(LEAST_LONG, MOST_NUMBERS // d))
    return np.random.default_rng(seed).permutation(n)[:few]


def _left_out_residuals(pca: PCA, X: Table, n: int, weights: Floats64 | None) -> Floats64:
    """Residuals of rows `X`, of the `n` of the map, had they been left out of the PCA.

    A PCA of fewer rows than the map's was given, and knows none of them.
    """
    measured = pca._measure(X)
    sq_residuals = measured.sq_residuals
    if pca.n_samples_ >= n:
        sq_residuals = pca._left_out(SampledRows(measured.scores, sq_residuals, weights))
    residuals: Floats64 = np.sqrt(sq_residuals)
    return residuals


def distance_ratios(indices: NDArray[np.int32], distances: Floats64, typical: Floats64) -> Floats64:
    """Each row's mean distance to its neighbours, over the `typical` distance of those."""
    return _ratios(distances.mean(axis=1), typical[indices].mean(axis=1))


def left_out_ratios(near: Neighbors, rows: NDArray[np.intp], n_neighbors: int) -> Floats64:
    """Distance ratios of some rows of the data, as if the others alone were the data.

    A row is no neighbour of its neighbours then: the next one takes its place, where it is known.
    """
    k = min(n_neighbors, near.distances.shape[1])
    theirs = near.indices[rows, :k]
    typical = near.distances[:, :k].mean(axis=1)[theirs]
    if near.distances.shape[1] > k:
        mutual = (near.indices[theirs, :k] == rows[:, None, None]).any(axis=2)
        gained = near.distances[theirs, k] - near.distances[rows, :k]
        typical += np.where(mutual, gained / k, 0.0)
    return _ratios(near.distances[rows, :k].mean(axis=1), typical.mean(axis=1))


def _ratios(mine: Floats64, theirs: Floats64) -> Floats64:
    """The quotients; where theirs is 0, infinite, or 1 if mine is 0 too."""
    ratios: Floats64 = np.where(mine > 0, np.inf, 1.0)
    np.divide(mine, theirs, out=ratios, where=theirs > 0)
    return ratios


def joint_limits(a: Floats64, b: Floats64, weights: Floats64 | None = None) -> tuple[float, float]:
    """A limit for each of two numbers, that about `RARE` of new rows are beyond at least one.

    Both are the t-th largest of the rows at hand, for the largest t for which no more than `RARE`
    of the rows would be beyond the limits that the others alone give: those of which a number is
    above the (t + 1)-th largest. At least t = 1, the largest themselves.
    """
    m = a.size
    w = np.ones(m) if weights is None else weights
    most = RARE * (float(w.sum()) + 1)
    first, second = np.sort(a)[::-1], np.sort(b)[::-1]
    t = 1
    while t + 1 < m and t + 1 <= most:
        if w[(a > first[t + 1]) | (b > second[t + 1])].sum() > most:
            break
        t += 1
    return float(first[t - 1]), float(second[t - 1])


def count_reasons(reason: NDArray[np.uint8]) -> dict[str, int]:
    """How many rows are unusual for each reason."""
    counts = np.bincount(reason, minlength=len(REASONS))
    return {why: int(count) for why, count in zip(REASONS[1:], counts[1:], strict=True)}


def unusual_words(reason: NDArray[np.uint8], called: str = "unusual") -> str:
    """How many rows are unusual and why: "3 of them unusual (1 near nothing, …)"."""
    whys = [f"{count:,} {why}" for why, count in count_reasons(reason).items() if count]
    said = f"{np.count_nonzero(reason):,} of them {called}"
    return f"{said} ({', '.join(whys)})" if whys else said


def novelty_field(auxiliary: Field) -> RecordOf:
    """How a model file holds it; `auxiliary` checks the components."""
    return RecordOf(
        Novelty,
        {
            "distance_limit": Real(),
            "residual_limit": Either.none_or(Real(1.0, np.inf)),
            "residual_unit": Real(5e-324, 1e308),
            "auxiliary": auxiliary,
        },
    )
