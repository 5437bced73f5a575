"""Rank correlation of distances: whether points that are far apart are so in the map.

Spearman's ρ between the distances in the data and those in the map, equal distances sharing the
mean of their ranks:

- over pairs of all points: the large scale, clusters and the gaps between them (the CPD of
  [Kobak & Berens 2019]);
- over the neighbours of one point, from that point: whether the nearer of two is also the nearer
  in the map.

Pairs are all pairs, or a sample with replacement; then the standard error is estimated from the
scatter of ρ over `GROUPS` equal parts of the sample [Wolter 2007].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.inputs import check_integer, random_generator
from gnomon.records import Record
from gnomon.scores.sample import none_if_nan, say
from gnomon.scores.table_pair import GivenDistances, read_data_or_distances
from gnomon.typing import Floats64, Indices

# Pairs: all of 1,000 rows; of more rows a sample with an error of about 0.002, which
# `benchmarks/scores.py` times.
PAIRS = 500_000
GROUPS = 20  # parts; a standard error from 20 of them is itself known to about 16 %: 1/√(2 · 19)
LEAST_PAIRS = 10 * GROUPS
BLOCK = 8192  # pairs at a time

__all__ = ["PAIRS", "RankCorrelation", "correlate_pairs", "order_within", "rank_correlation"]


@dataclass(frozen=True)
class RankCorrelation(Record):
    """Spearman's ρ between the distances of pairs of points in two tables.

    Attributes
    ----------
    value : float
        1 if distances are in the same order, about 0 by chance; NaN if all distances in one of
        the tables are equal, since they have no order.
    standard_error : float
        Standard error of `value` as an estimate of ρ over all pairs; 0 if all were compared.
    pairs, of : int
        Number of pairs compared, and of all pairs.
    """

    value: float
    standard_error: float
    pairs: int
    of: int

    def title(self) -> str:
        """One-line summary."""
        exact = self.pairs == self.of
        sampled = "all" if exact else f"{self.pairs:,} of"
        value = say(self.value, None if exact else self.standard_error)
        return f"Rank correlation of distances {value}, over {sampled} {self.of:,} pairs"

    def lines(self) -> list[tuple[str, str]]:
        """Further lines of the summary: none."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Fields as a dictionary, with None for NaN."""
        return {
            "value": none_if_nan(self.value),
            "standard_error": none_if_nan(self.standard_error),
            "pairs": self.pairs,
            "of": self.of,
        }


def rank_correlation(
    X: Any,
    Y: Any,
    *,
    metric: str = "euclidean",
    pairs: int = PAIRS,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> RankCorrelation:
    """Compute Spearman's ρ of distances in the data `X`, shape (n, d), and in the map `Y`, (n, p).

    Parameters
    ----------
    metric : str
        Metric of the data: ``"euclidean"``, ``"cosine"``, or ``"precomputed"`` if `X` holds
        distances (n, n). Distances in the map are Euclidean.
    pairs : int
        Maximum number of pairs to compare; if there are more, a sample is drawn.
    random_state : int, Generator or None
        Seed for the pairs; None means 0.
    n_jobs : int, optional
        Threads; they do not change the result.
    """
    Z, W = read_data_or_distances(X, Y, metric)
    return correlate_pairs(Z, W, pairs, random_generator(random_state), n_jobs=n_jobs)


def correlate_pairs(
    Z: NDArray[Any] | GivenDistances,
    W: NDArray[Any],
    pairs: int,
    generator: np.random.Generator,
    *,
    n_jobs: int | None = None,
) -> RankCorrelation:
    """Compare distances of prepared tables (see `tables.read_pair`)."""
    pairs = check_integer("pairs", pairs, LEAST_PAIRS)
    n = len(Z)
    every = n * (n - 1) // 2
    i, j = _all_pairs(n) if every <= pairs else _draw_pairs(n, pairs, generator)
    sq_x, sq_y = np.empty(i.size), np.empty(i.size)

    def block(start: int, stop: int) -> None:
        if isinstance(Z, GivenDistances):
            sq_x[start:stop] = Z.sq[i[start:stop], j[start:stop]]
        else:
            _pair_sq_distances(Z, i, j, sq_x, start, stop)
        _pair_sq_distances(W, i, j, sq_y, start, stop)

    map_blocks(block, row_blocks(i.size, BLOCK), n_jobs=n_jobs)
    value = float(order_within(sq_x[None], sq_y[None])[0])
    if every <= pairs:
        return RankCorrelation(value, 0.0 if np.isfinite(value) else np.nan, every, every)
    size = pairs // GROUPS
    parts = order_within(
        sq_x[: size * GROUPS].reshape(GROUPS, size), sq_y[: size * GROUPS].reshape(GROUPS, size)
    )
    error = float(np.std(parts, ddof=1) / np.sqrt(GROUPS))
    return RankCorrelation(value, error, pairs, every)


def order_within(a: Floats64, b: Floats64) -> Floats64:
    """Spearman's ρ between the rows of `a` and of `b`, both (m, k); NaN if one is constant."""
    from scipy.stats import rankdata

    middle = (a.shape[1] + 1) / 2  # exact mean of ranks, with or without ties
    u, v = rankdata(a, axis=1) - middle, rankdata(b, axis=1) - middle
    spread = np.sqrt((u * u).sum(axis=1) * (v * v).sum(axis=1))
    defined = spread > 0
    rho = (u * v).sum(axis=1) / np.where(defined, spread, 1.0)
    return np.where(defined, np.clip(rho, -1, 1), np.nan)


def _all_pairs(n: int) -> tuple[Indices, Indices]:
    i, j = np.triu_indices(n, 1)
    return i.astype(np.int64), j.astype(np.int64)


def _draw_pairs(n: int, pairs: int, generator: np.random.Generator) -> tuple[Indices, Indices]:
    i = generator.integers(n, size=pairs)
    j = generator.integers(n - 1, size=pairs)
    return i, j + (j >= i)  # skip i, so that every other row is equally likely


@kernel
def _pair_sq_distances(
    Z: NDArray[Any], i: Indices, j: Indices, out: Floats64, start: int, stop: int
) -> None:
    """out[p] = |Z[i[p]] − Z[j[p]]|²."""
    for p in range(start, stop):
        here, there = Z[i[p]], Z[j[p]]
        total = 0.0
        for c in range(Z.shape[1]):
            step = np.float64(here[c]) - np.float64(there[c])
            total += step * step
        out[p] = total
