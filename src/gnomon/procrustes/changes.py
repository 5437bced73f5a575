"""Rows that changed company between two tables of the same rows.

1. Each row's `k` nearest rows are found in both tables. Rows that are among them in both are kept;
   the others were lost, and as many gained.
2. Lost neighbours may still be close by. How far away they went is measured in rows, not
   in distances, whose units differ between the tables: `between` is the share of all rows that
   now lie nearer than the median of a row's former neighbours. It is measured both ways, against
   `REFERENCE_ROWS` rows drawn at random, and the smaller share counts.
3. A row changed company if `between` is above `FAR`, and above `TIMES` times that of the median
   row: where everything moved, only rows that moved more than the others are named.

Among 3,000 rows in ten groups with noise, of which 3 to 20 % were put into another group, this
finds the moved rows with precision and recall of 0.94 or more (`tests/procrustes/test_changes.py`).

Beyond `MOST_SEARCHED` rows, neighbours are searched, among all rows, for `SEARCHED` rows drawn at
random.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.neighbors.search import EXACT_UP_TO, NeighborSearch
from gnomon.records import Record
from gnomon.typing import Floats64

__all__ = ["Changes", "find_changes"]

REFERENCE_ROWS = 1_000
FAR = 0.05
TIMES = 4.0
MOST_SEARCHED, SEARCHED = 100_000, 50_000
RECALL = 0.999  # recall of neighbours where exact search is too slow
BLOCK = 256  # rows per block of distances to all reference rows


@dataclass(frozen=True, eq=False)
class Changes(Record):
    """How the neighbours of each row changed.

    Attributes
    ----------
    rows : array (m,)
        Rows that were examined, ascending: all, or a sample of very many.
    near_x, near_y : array (m, k)
        Nearest rows of those rows in both tables, nearest first.
    kept : array (m,)
        Share of the neighbours in X that are neighbours in Y.
    between : array (m,)
        Share of all rows that lie nearer than the median of a row's neighbours in the other table.
    limit : float
        `between` above which a row changed company.
    """

    rows: NDArray[np.intp] = field(repr=False)
    near_x: NDArray[np.int32] = field(repr=False)
    near_y: NDArray[np.int32] = field(repr=False)
    kept: Floats64 = field(repr=False)
    between: Floats64 = field(repr=False)
    limit: float

    @cached_property
    def changed(self) -> NDArray[np.intp]:
        """Rows that changed company, the most changed first."""
        found = np.flatnonzero(self.between > self.limit)
        order = np.lexsort((found, self.kept[found], -self.between[found]))
        return self.rows[found[order]]

    @property
    def share(self) -> float:
        """Share of rows that changed company."""
        return float(np.mean(self.between > self.limit))

    def title(self) -> str:
        """One-line summary."""
        return f"{len(self.changed):,} of {len(self.rows):,} rows changed company"

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
        k = self.near_x.shape[1]
        return [
            ("kept", f"{100 * self.kept.mean():.1f} % of the {k} nearest rows, on average"),
            (
                "changed",
                f"rows with more than {100 * self.limit:.3g} % of all rows between them and "
                "their former neighbours",
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Fields as a dictionary, without the lists of neighbours."""
        return {
            "n": len(self.rows),
            "share": self.share,
            "limit": self.limit,
            "changed": self.changed.tolist(),
        }


def find_changes(X: Any, Y: Any, k: int, n_jobs: int | None = None) -> Changes:
    """Find how the `k` nearest rows of each row changed from X (n, dx) to Y (n, dy)."""
    n = len(X)
    rows = np.arange(n)
    if n > MOST_SEARCHED:
        rows = np.sort(np.random.default_rng(0).choice(n, SEARCHED, replace=False))
    recall = 1.0 if n <= EXACT_UP_TO else RECALL
    searches = [NeighborSearch(np.asarray(Z), recall=recall, n_jobs=n_jobs) for Z in (X, Y)]
    near_x, near_y = (search.among_themselves(k, rows).indices for search in searches)
    between = np.minimum(
        _between(searches[1], rows, near_x, n_jobs), _between(searches[0], rows, near_y, n_jobs)
    )
    limit = max(FAR, TIMES * float(np.median(between)))
    return Changes(rows, near_x, near_y, _kept(near_x, near_y, n_jobs), between, limit)


def _kept(a: NDArray[np.int32], b: NDArray[np.int32], n_jobs: int | None) -> Floats64:
    """Share of the neighbours `a` (m, k) that are among `b` (m, k), row by row."""

    def block(start: int, stop: int) -> Floats64:
        same = a[start:stop, :, None] == b[start:stop, None, :]
        return np.asarray(np.count_nonzero(same, axis=(1, 2)) / a.shape[1])

    return np.concatenate(map_blocks(block, row_blocks(len(a), 1024), n_jobs=n_jobs))


def _between(
    search: NeighborSearch, rows: NDArray[np.intp], near: NDArray[np.int32], n_jobs: int | None
) -> Floats64:
    """Share of all rows that lie nearer to each row than the median of its rows `near`."""
    n, k = len(search.Z), near.shape[1]
    some = min(n, REFERENCE_ROWS)
    reference = np.sort(np.random.default_rng(1).choice(n, some, replace=False))

    def block(start: int, stop: int) -> Floats64:
        mine = rows[start:stop]
        away = search.distances(mine, near[start:stop])
        middle = np.sort(away, axis=1)[:, (k - 1) // 2]
        others = search.between(mine, reference, middle)
        nearer = np.count_nonzero(others < middle[:, None], axis=1)
        own = np.isin(mine, reference) & (middle > 0)  # a row is at distance 0 from itself
        return np.asarray((nearer - own) / (some - own))

    return np.concatenate(map_blocks(block, row_blocks(len(rows), BLOCK), n_jobs=n_jobs))
