"""Rows with missing values that were dropped: which they were, and what they are called."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.data.refusals import as_seen
from gnomon.data.table import Table

__all__ = ["Dropped"]

MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class Dropped:
    """Rows that were dropped.

    Attributes
    ----------
    rows : array of int (m,)
        Their numbers in the table that was given, from 0.
    first : tuple of str
        Names of the first few: ID, number and line of the file, as far as there are any.
    """

    rows: NDArray[np.int64]
    first: tuple[str, ...]

    @classmethod
    def between(cls, table: Table, kept: NDArray[np.int64] | None) -> "Dropped | None":
        """The rows of `table` that are not among the rows `kept`; None if all are."""
        if kept is None or len(kept) == table.n_rows:
            return None
        rows = np.setdiff1d(np.arange(table.n_rows), kept, assume_unique=True)
        return cls(rows, tuple(_name(table, int(row)) for row in rows[:MOST_NAMED]))

    @property
    def more(self) -> int:
        """How many rows `first` does not name."""
        return len(self.rows) - len(self.first)

    def __str__(self) -> str:
        return ", ".join(self.first) + (f" and {self.more:,} more" if self.more else "")


def _name(table: Table, row: int) -> str:
    """``N2A2 (row 3, line 5)``, or ``row 3 (line 5)`` if rows have no IDs."""
    place = table.places.of(row)
    names = [f"row {row}", *([place] if place.startswith("line") else [])]
    if table.ids is not None:
        names.insert(0, as_seen(str(table.ids[row])))
    return names[0] + (f" ({', '.join(names[1:])})" if names[1:] else "")
