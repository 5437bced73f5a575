"""Intervals and p-values of the figures of a comparison.

- Intervals (95 %) are jackknifed: rows are assigned to `GROUPS` groups at random, the figure is
  computed with each group left out, and the spread of those values gives the standard error
  [Efron & Tibshirani 1993]. With more than `MOST_ROWS` rows a sample is used, and its error scaled
  to the number of rows. The overlap of neighbourhoods is a mean over rows, with its standard error.
- p-values count shuffles of the rows that are at least as similar (`permute`). For neighbourhoods
  the rows of Y are renumbered by each shuffle, and shared neighbours of `COUNTED` rows are counted.

A p-value tests whether two tables are related at all, which two maps of the same rows always are.
Whether they differ more than two runs of the same method is answered by reruns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.procrustes.changes import Changes
from gnomon.procrustes.compare import Comparison, kernel_alignment, kernels_of
from gnomon.procrustes.permute import PermutationTest, permutation_test, seed_of, shuffled_rows
from gnomon.records import Record
from gnomon.typing import Floats64

__all__ = ["Evidence", "Figure", "find_evidence"]

GROUPS = 20
MOST_ROWS = 20_000
COUNTED = 2_000


@dataclass(frozen=True)
class Figure(Record):
    """A figure with its 95 % interval, its p-value, and its value for unrelated tables.

    `low` and `high` are NaN if there are too few rows for an interval.
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float
    chance: float


@dataclass(frozen=True)
class Evidence(Record):
    """The figures of a comparison: disparity, RV, unbiased CKA and shared neighbours."""

    disparity: Figure
    rv: Figure
    cka: Figure
    neighbors: Figure
    n_permutations: int


def find_evidence(
    found: Comparison,
    *,
    test: PermutationTest | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Evidence:
    """Intervals and p-values of a comparison; `test` is computed if it is not given."""
    x, y = (np.asarray(Z, np.float64) for Z in found.tables)
    if test is None:
        test = permutation_test(x, y, n_permutations, random_state=random_state, n_jobs=n_jobs)
    errors = _jackknife(x, y) * np.sqrt(len(x) / found.n)
    low_of: dict[str, float] = {"disparity": 0.0, "RV": 0.0, "unbiased CKA": -1.0}
    chance = float(1 - np.median(test.null) ** 2), float("nan"), 0.0
    values = found.disparity, found.rv, found.unbiased_cka
    p_values = test.p_value, test.rv_p_value, test.cka_p_value
    disparity, rv, cka = (
        Figure(name, value, *_interval(value, error, least), p, by_chance)
        for (name, least), value, error, p, by_chance in zip(
            low_of.items(), values, errors, p_values, chance, strict=True
        )
    )
    near = _neighbors(found, n_permutations, random_state, n_jobs)
    return Evidence(disparity, rv, cka, near, test.n_permutations)


@one_blas_thread()
def _jackknife(x: Floats64, y: Floats64) -> Floats64:
    """Half widths of the intervals of disparity, RV and unbiased CKA, for the rows given."""
    n, groups = len(x), min(GROUPS, len(x) // 4)
    if groups < 2:
        return np.full(3, np.nan)
    rng = np.random.default_rng(0)
    order = rng.permutation(n)[:MOST_ROWS]
    group = np.arange(len(order)) % groups
    left_out = np.array([_shapes(*(z[order[group != g]] for z in (x, y))) for g in range(groups)])
    spread = np.square(left_out - left_out.mean(axis=0)).sum(axis=0) * (groups - 1) / groups
    width: Floats64 = stdtrit(groups - 1, 0.975) * np.sqrt(spread * len(order) / n)
    return width


def _shapes(x: Floats64, y: Floats64) -> Floats64:
    """Disparity, RV and unbiased CKA of two sets of rows in memory."""
    x, y = (z - z.mean(axis=0) for z in (x, y))
    x, y = (z / (np.linalg.norm(z) or 1.0) for z in (x, y))
    M = x.T @ y
    total = float(np.linalg.svd(M, compute_uv=False).sum())
    rv, cka = kernel_alignment(kernels_of(x, y), M, len(x))
    return np.array([1 - total**2, rv, cka])


def _neighbors(found: Comparison, count: int, random_state: Any, n_jobs: int | None) -> Figure:
    """The mean share of neighbours that both tables have."""
    changes, k = found.changes, found.n_neighbors
    m = len(changes.kept)
    error = 1.96 * float(changes.kept.std(ddof=1)) / np.sqrt(m) if m > 3 else float("nan")
    value, chance = found.neighbor_overlap, k / (found.overlap_rows - 1)
    as_large = _as_large(changes, found.overlap_rows, count, random_state, n_jobs)
    p_value = (1 + as_large) / (1 + count)
    return Figure("shared neighbours", value, *_interval(value, error, 0.0), p_value, chance)


def _interval(value: float, error: float, least: float) -> tuple[float, float]:
    """Both ends, clipped to the range of the figure; NaN if the error is NaN."""
    low, high = np.clip([value - error, value + error], least, 1.0).tolist()
    return low, high


def _as_large(changes: Changes, n: int, count: int, random_state: Any, n_jobs: int | None) -> int:
    """Count shuffles of the rows of Y that share at least as many neighbours with X."""
    seed, m = seed_of(random_state), len(changes.rows)
    some = np.arange(m)[:: max(1, m // COUNTED)]
    place = np.zeros(n, np.intp)
    place[changes.rows] = np.arange(m)
    near_x = changes.near_x[some]
    true = int(np.count_nonzero(near_x[:, :, None] == changes.near_y[some][:, None]))

    def block(start: int, stop: int) -> int:
        as_large = 0
        for at in range(start, stop):
            # Row i of X is paired with row `order[i]` of Y; its neighbours use the inverse order.
            order = changes.rows[shuffled_rows(seed, at, m)]
            back = np.arange(n)  # rows that were not examined stay in place
            back[order] = changes.rows
            near_y = back[changes.near_y[place[order[some]]]]
            same = np.count_nonzero(near_x[:, :, None] == near_y[:, None])
            as_large += int(same) >= true
        return as_large

    return sum(map_blocks(block, row_blocks(count, 8), n_jobs=n_jobs))
