"""Trustworthiness, continuity and recall: whether neighbours in the map are those in the data.

For row i, with N(i) its k nearest in the data and M(i) its k nearest in the map, r(i, j) the rank
of j among the neighbours of i in the data and s(i, j) in the map, [Venna & Kaski 2001]:

    trustworthiness   1 − c Σ_{j ∈ M(i)} max(0, r(i, j) − k)    no far row comes near
    continuity        1 − c Σ_{j ∈ N(i)} max(0, s(i, j) − k)    no near row goes far
    recall            |N(i) ∩ M(i)| / k                         neighbours in both

with c = 2 / (k (2n − 3k − 1)), which keeps both between 0 and 1 as long as k < n/2. Each score of
the map is the mean over its rows; recall is the KNN of [Kobak & Berens 2019]. Rows at equal
distances in float64 are ordered by their row numbers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.errors import refuse
from gnomon.inputs import check_integer, random_generator
from gnomon.scores.classes import vote
from gnomon.scores.distances import order_within
from gnomon.scores.ranks import Ranks, rank_block_rows, rank_rows
from gnomon.scores.sample import choose_rows
from gnomon.scores.table_pair import GivenDistances, read_data_or_distances
from gnomon.typing import Floats64, Indices32

USUAL = (5, 15, 50)  # closest neighbours, the neighbourhood of most maps, and beyond

__all__ = [
    "RowScores",
    "check_sizes",
    "continuity",
    "recall",
    "recall_by_chance",
    "score_rows",
    "trustworthiness",
    "trustworthiness_by_chance",
]


class RowScores(NamedTuple):
    """Scores of m rows for several k; every array has shape (m, number of k)."""

    trustworthiness: Floats64
    continuity: Floats64
    recall: Floats64
    order: Floats64
    votes_in_map: Floats64
    votes_in_data: Floats64


def trustworthiness(
    X: Any,
    Y: Any,
    n_neighbors: int = 5,
    *,
    metric: str = "euclidean",
    sample: int | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Trustworthiness: whether neighbours in the map are neighbours in the data.

    1 if every neighbour in the map is one in the data; about a half for a random map. Equals
    scikit-learn's, without a matrix of all distances. For all scores at once, with their
    standard errors and the scores of every point, use `score_map`.

    Parameters
    ----------
    X : array-like (n, d)
        The data.
    Y : array-like (n, p)
        The map of the same rows.
    n_neighbors : int
        Size k of the neighbourhoods, below n/2.
    metric : str
        Metric of the data: ``"euclidean"``, ``"cosine"``, or ``"precomputed"`` if `X` holds
        distances (n, n). Distances in the map are Euclidean.
    sample : int, "all" or None
        Number of rows to score; None scores all of up to 5,000, and 1,000 of more.
    random_state : int, Generator or None
        Seed for the rows if not all are scored; None means 0.
    n_jobs : int, optional
        Threads; they do not change the result.

    Examples
    --------
    >>> from gnomon import PCA, samples, scores
    >>> X = samples.load("iris").X
    >>> Y = PCA(2).fit_transform(X)
    >>> round(scores.trustworthiness(X, Y), 3)
    0.979
    """
    found = _score(X, Y, n_neighbors, metric, sample, random_state, n_jobs)
    return float(found.trustworthiness.mean())


def continuity(
    X: Any,
    Y: Any,
    n_neighbors: int = 5,
    *,
    metric: str = "euclidean",
    sample: int | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Continuity: whether neighbours in the data are still neighbours in the map.

    Equals the trustworthiness with data and map exchanged; see `trustworthiness` for the
    parameters.
    """
    found = _score(X, Y, n_neighbors, metric, sample, random_state, n_jobs)
    return float(found.continuity.mean())


def recall(
    X: Any,
    Y: Any,
    n_neighbors: int = 5,
    *,
    metric: str = "euclidean",
    sample: int | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Share of the neighbours in the data that are neighbours in the map.

    k/(n − 1) by chance; see `trustworthiness` for the parameters.
    """
    found = _score(X, Y, n_neighbors, metric, sample, random_state, n_jobs)
    return float(found.recall.mean())


def _score(
    X: Any, Y: Any, k: int, metric: str, sample: Any, random_state: Any, n_jobs: int | None
) -> RowScores:
    Z, W = read_data_or_distances(X, Y, metric)
    sizes = check_sizes(check_integer("n_neighbors", k, 1), len(Z))
    rows = choose_rows(len(Z), sample, random_generator(random_state))
    return score_rows(Z, W, rows, sizes, n_jobs=n_jobs)


def check_sizes(n_neighbors: int | Sequence[int] | None, n: int) -> tuple[int, ...]:
    """Check the sizes k: ascending, without duplicates; None means those of 5, 15, 50 below n/2."""
    most = (n - 1) // 2
    if n_neighbors is None:
        return tuple(k for k in USUAL if k <= most) or (most,)
    way = f"It must be below n/2; there are {n} rows."
    if isinstance(n_neighbors, str) or not np.iterable(n_neighbors):
        return (check_integer("n_neighbors", n_neighbors, 1, most, way),)
    if any(np.ndim(k) for k in n_neighbors):
        refuse("n_neighbors", "be one integer or a flat list of them", n_neighbors, kind=True)
    sizes = {check_integer("n_neighbors", k, 1, most, way) for k in n_neighbors}
    if not sizes:
        refuse("n_neighbors", f"hold at least one integer from 1 to {most}", n_neighbors)
    return tuple(sorted(sizes))


def score_rows(
    Z: NDArray[Any] | GivenDistances,
    W: NDArray[Any],
    rows: NDArray[np.int64],
    sizes: tuple[int, ...],
    codes: Indices32 | None = None,
    *,
    n_jobs: int | None = None,
) -> RowScores:
    """Compute all neighbourhood scores of `rows`, in prepared tables (see `table_pair.read_pair`).

    With `codes`, one label code for each of the n rows, also the votes of the neighbours.
    """
    shape = len(rows), len(sizes)
    scores = RowScores(*(np.full(shape, np.nan) for _ in RowScores._fields))

    def block(start: int, stop: int) -> None:
        part, here = slice(start, stop), rows[start:stop]
        ranks = rank_rows(Z, W, here, sizes[-1])
        for column, k in enumerate(sizes):
            _score_block(scores, ranks, part, column, k, len(Z))
            if codes is not None:
                scores.votes_in_map[part, column] = vote(codes, here, ranks.near_y[:, :k])
                scores.votes_in_data[part, column] = vote(codes, here, ranks.near_x[:, :k])

    map_blocks(block, row_blocks(len(rows), rank_block_rows(len(Z))), n_jobs=n_jobs)
    return scores


def _score_block(scores: RowScores, ranks: Ranks, part: slice, column: int, k: int, n: int) -> None:
    rank_x, rank_y = ranks.rank_x[:, :k], ranks.rank_y[:, :k]
    scores.trustworthiness[part, column] = _kept(rank_x, k, n)
    scores.continuity[part, column] = _kept(rank_y, k, n)
    scores.recall[part, column] = (rank_x <= k).mean(axis=1)
    scores.order[part, column] = order_within(ranks.sq_x[:, :k], ranks.sq_y[:, :k])


def _kept(rank: Indices32, k: int, n: int) -> Floats64:
    """1 − c Σ max(0, rank − k), over the k neighbours of each row."""
    too_far = np.maximum(rank.astype(np.int64) - k, 0).sum(axis=1)
    kept: Floats64 = 1 - too_far * (2 / (k * (2 * n - 3 * k - 1)))
    return kept


def recall_by_chance(k: int, n: int) -> float:
    """Expected recall of a map that is unrelated to the data."""
    return k / (n - 1)


def trustworthiness_by_chance(k: int, n: int) -> float:
    """Expected trustworthiness and continuity of such a map: every rank equally likely."""
    return 1 - (n - 1 - k) * (n - k) / ((n - 1) * (2 * n - 3 * k - 1))
