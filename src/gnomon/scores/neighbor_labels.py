"""Rows among another group: what labels the nearest rows bear, in the data and on the map.

A row is among another group where fewer than half of its k nearest rows bear its own label. Rows
that are so in the data, too, are unusual for their group; rows that are so on the map alone were
put there by the map. Rows without a label are not judged, and nearest rows without one bear no
label, neither the row's own nor another.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.typing import Floats64

FEW_SAME = 0.5  # share of the nearest rows with the row's label, below which it is among others

MANY = 0.25  # share of such rows from which the label does not group the rows
BLOCK = 8192  # rows whose labels are counted at a time
UNGROUPED = "near rows often differ in it, so it does not group these rows"

Objects = NDArray[np.object_]

__all__ = ["UNGROUPED", "NeighborLabels", "find_neighbor_labels"]


@dataclass(frozen=True, eq=False)
class NeighborLabels:
    """Labels of each row's nearest rows; all arrays are (n,).

    Attributes
    ----------
    same_in_data, same_on_map : array of float
        Share of the nearest rows that bear the row's own label; NaN for rows without a label.
    other_in_data, other_on_map : array of str
        The most frequent other label among the nearest rows, for rows among another group; None
        for all others.
    """

    same_in_data: Floats64
    same_on_map: Floats64
    other_in_data: Objects
    other_on_map: Objects

    @property
    def on_map(self) -> NDArray[np.intp]:
        """Rows among another group on the map, the fewest of their own label first."""
        return _sorted(self.other_on_map, self.same_on_map)

    @property
    def only_on_map(self) -> NDArray[np.bool_]:
        """Whether a row is among another group on the map, and not in the data."""
        return _there(self.other_on_map) & ~_there(self.other_in_data)

    @property
    def many(self) -> bool:
        """Whether so many rows are among others that the label does not group the rows."""
        return self.on_map.size > MANY * float(np.isfinite(self.same_on_map).sum())

    def take(self, rows: NDArray[np.integer[Any]]) -> "NeighborLabels":
        """Answers for some rows, in their order."""
        return NeighborLabels(
            self.same_in_data[rows],
            self.same_on_map[rows],
            self.other_in_data[rows],
            self.other_on_map[rows],
        )

    def columns(self) -> dict[str, Objects]:
        """Columns for a table: the other group on the map, and in the data."""
        return {"among": self.other_on_map, "among_in_data": self.other_in_data}


def find_neighbor_labels(
    labels: NDArray[Any], in_data: NDArray[np.integer[Any]], on_map: NDArray[np.integer[Any]]
) -> NeighborLabels:
    """Compare each row's label with those of its nearest rows.

    Parameters
    ----------
    labels : array (n,) of str
        None where there is none.
    in_data, on_map : array (n, k)
        Numbers of the nearest rows.
    """
    known = np.array([value is not None for value in labels.tolist()], dtype=bool)
    names, codes = np.unique(labels[known].astype(str), return_inverse=True)
    own = np.full(len(labels), -1, np.intp)
    own[known] = codes
    data, there = (_compare(own, names, near) for near in (in_data, on_map))
    return NeighborLabels(data[0], there[0], data[1], there[1])


def _compare(
    own: NDArray[np.intp], names: NDArray[Any], near: NDArray[np.integer[Any]]
) -> tuple[Floats64, Objects]:
    same = np.where(own >= 0, (own[near] == own[:, None]).mean(axis=1), np.nan)
    other = np.full(len(own), None, dtype=object)
    among = np.flatnonzero(same < FEW_SAME)
    for start, stop in row_blocks(among.size, BLOCK):
        rows = among[start:stop]
        theirs = own[near[rows]]
        counts = (theirs[:, :, None] == theirs[:, None, :]).sum(axis=2)
        counts[(theirs < 0) | (theirs == own[rows, None])] = 0
        # The most frequent, and of equally frequent ones the first by name.
        first = (counts * (len(names) + 1) - theirs).argmax(axis=1)
        at = np.arange(rows.size), first
        other[rows] = np.where(counts[at] > 0, names[theirs[at]].astype(object), None)
    return same, other


def _there(texts: Objects) -> NDArray[np.bool_]:
    return np.array([text is not None for text in texts.tolist()], dtype=bool)


def _sorted(others: Objects, same: Floats64) -> NDArray[np.intp]:
    rows = np.flatnonzero(_there(others))
    return rows[np.argsort(same[rows], kind="stable")]
