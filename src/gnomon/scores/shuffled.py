"""Test of each row against noise: maps of tables with each column shuffled.

A shuffled table has the columns of the data, each with its own values, and no relation between
them: what its map preserves, a map preserves of noise. It is mapped by the same pipeline as the
data. Its scores, pooled over rows and tables, are the null distribution of a row's score:
p = (1 + #{null scores ≥ its own}) / (1 + number of null scores).

The test is withheld if maps preserve noise as well: for a table of up to three
columns, or if maps of shuffled tables score above `TOO_FAITHFUL` on average. It is also withheld if
the columns are uncorrelated by construction, as principal components are: the structure of such a
table is in the spreads of its columns, which shuffling keeps, so that the null says little. The
squared correlations r² of independent columns of n rows have (n − 1) Σ r² ~ χ² over the pairs of
columns; a sum below the quantile `BY_CHANCE` is less than independent columns would have.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gnomon.errors import DataError
from gnomon.scores.neighbourhoods import score_rows
from gnomon.scores.table_pair import read_pair
from gnomon.typing import Floats64, Indices

FEW_COLUMNS = 3  # a map of two or three dimensions preserves any such table
TOO_FAITHFUL = 0.95  # mean score of noise; `benchmarks/audit.py` has those of noise and of data
BY_CHANCE = 1e-3  # probability that independent columns are called uncorrelated by construction

# Maps a table to the space in which it is scored, and to its map.
Remake = Callable[[NDArray[Any]], tuple[Any, Any]]

__all__ = ["NoiseTest", "Remake", "noise_test", "remake_by_model", "remake_with", "space_of"]


class NoiseTest(NamedTuple):
    """Whether scores are higher than in maps of shuffled tables.

    Attributes
    ----------
    p_values : array (m,) or None
        None if the test is withheld.
    null_mean : float or None
        Mean score of the maps of shuffled tables; None if none was computed.
    withheld : str
        Why there are no p-values, as a sentence.
    """

    p_values: Floats64 | None
    null_mean: float | None
    withheld: str = ""


def noise_test(
    table: NDArray[Any],
    remake: Remake,
    own: Floats64,
    rows: Indices,
    k: int,
    *,
    metric: str,
    shuffles: int,
    generator: np.random.Generator,
    n_jobs: int | None = None,
) -> NoiseTest:
    """Compare the scores `own` (m,) of `rows` with those of `shuffles` shuffled tables.

    Parameters
    ----------
    table : array (n, d)
        Input of the map, before any reduction that is part of its computation.
    remake : callable
        Maps such a table to the space that is scored and to the map.
    k : int
        Size of the neighbourhoods.
    """
    d = table.shape[1]
    if d <= FEW_COLUMNS:
        said = f"withheld: a map keeps any table of {d} column{'s' * (d > 1)}, noise too"
        return NoiseTest(None, None, said)
    if _uncorrelated(table):
        said = (
            "withheld: this test does not work for a table of uncorrelated columns, such as "
            "principal components; audit the map with the columns that these were computed from"
        )
        return NoiseTest(None, None, said)
    null = np.concatenate(
        [
            _score(*remake(generator.permuted(table, axis=0)), rows, k, metric, n_jobs)
            for _ in range(shuffles)
        ]
    )
    mean = float(null.mean())
    if mean > TOO_FAITHFUL:
        said = f"withheld: maps of shuffled columns score {mean:.3f}, too much to tell them apart"
        return NoiseTest(None, mean, said)
    null.sort()
    at_least = null.size - np.searchsorted(null, own, side="left")
    return NoiseTest((1 + at_least) / (1 + null.size), mean)


def _uncorrelated(table: NDArray[Any]) -> bool:
    """Whether columns are less correlated than independent ones would be by chance."""
    from scipy.stats import chi2

    n = len(table)
    Z = np.asarray(table, np.float64) - table.mean(axis=0, dtype=np.float64)
    Z /= np.where(Z.any(axis=0), np.abs(Z).max(axis=0), 1.0)  # squares must not overflow
    length = np.sqrt((Z * Z).sum(axis=0))
    Z = Z[:, length > 0] / length[length > 0]
    d = Z.shape[1]
    # |ZᵀZ|² = |ZZᵀ|²: the smaller product of the two. Its diagonal sums to d.
    product = Z.T @ Z if d <= n else Z @ Z.T
    total = (float((product * product).sum()) - d) / 2
    pairs = d * (d - 1) // 2
    return bool(pairs > 0 and (n - 1) * total < chi2.ppf(BY_CHANCE, pairs))


def _score(
    space: Any, Y: Any, rows: Indices, k: int, metric: str, n_jobs: int | None
) -> NDArray[Any]:
    Z, W = read_pair(space, Y, metric)
    return score_rows(Z, W, rows, (k,), n_jobs=n_jobs).trustworthiness[:, 0]


def remake_with(refit: Callable[[NDArray[Any]], Any]) -> Remake:
    """Recompute maps by a function of the table, scored in the table itself."""

    def remake(table: NDArray[Any]) -> tuple[Any, Any]:
        Y = np.asarray(refit(table))
        if Y.ndim != 2 or len(Y) != len(table):
            raise DataError(
                f"`refit` must return a map of the {len(table)} rows that it is given; it returned "
                f"an array of shape {Y.shape}."
            )
        return table, Y

    return remake


def remake_by_model(model: Any) -> Remake:
    """Recompute maps with the parameters of a fitted t-SNE, scored in its reduced space."""

    def remake(table: NDArray[Any]) -> tuple[Any, Any]:
        again = clone(model).set_params(align_to=None).fit(table)
        return space_of(again, table), again.embedding_

    return remake


def space_of(model: Any, table: NDArray[Any]) -> Any:
    """Table in which a fitted t-SNE searched for neighbours."""
    return table if model.pca_ is None else model.pca_.transform(table)
