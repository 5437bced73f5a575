"""Groups that split, merged or moved between two tables of the same rows.

Groups are found in the graph of neighbours of each table (`report.clusters`), not on a map, and are
called after the label that most of their rows have, or by a number.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.words import count, number, percent
from gnomon.report.clusters import suggest_groups
from gnomon.report.section import names as listed
from gnomon.report.section import shown
from gnomon.typing import Floats64

__all__ = ["Group", "GroupChanges", "find_groups"]

PART = 0.2  # share of a group that is a part worth naming
WHOLE = 0.6  # share of a group that lies together
FAR = 1.0  # in sizes of a group: from where it moved
LEAST_ROWS, MOST_SAID = 5, 6
MOST_NAMED = 0.5  # share of rows with one label, from which a group is called after it


@dataclass(frozen=True)
class Group:
    """A group of the first table: its rows, and what became of them."""

    name: str
    rows: int
    kept: float
    changed: float
    moved: float  # of its middle, relative to its size


@dataclass(frozen=True)
class GroupChanges:
    """Groups of the first table, and sentences about those that split, merged or moved."""

    groups: tuple[Group, ...]
    sentences: tuple[str, ...]
    by: str


def find_groups(
    near: Sequence[NDArray[Any]],
    labels: tuple[str, NDArray[Any]] | None,
    kept: Floats64,
    changed: NDArray[np.bool_],
    moves: tuple[Floats64, Floats64],
) -> GroupChanges | None:
    """What became of groups; None where neither labels nor neighbours group the rows.

    `near` are the nearest rows (n, k) in both tables; `kept`, `changed` and `moves` (its place in
    the first table, and its way to the second) are of each row.
    """
    values = None if labels is None or labels[1].dtype.kind != "O" else labels[1]
    found = [suggest_groups(each) for each in near]
    sentences: list[str] = []
    if found[0] is not None and found[1] is not None:
        called = [_called(groups, values) for groups in found]
        table = _crossed(*found)
        sentences = [*_split(table, called), *_merged(table, called)]
    if values is not None and labels is not None:
        groups = _groups(values, kept, changed, moves)
        return GroupChanges(groups, (*sentences, *_moved(groups)), labels[0])
    if found[0] is None:
        return None
    names = np.array([*_called(found[0], None), None], object)[found[0]]
    groups = _groups(names, kept, changed, moves)
    return GroupChanges(groups, (*sentences, *_moved(groups)), "group")


def _groups(
    values: NDArray[Any],
    kept: Floats64,
    changed: NDArray[np.bool_],
    moves: tuple[Floats64, Floats64],
) -> tuple[Group, ...]:
    """Of each name, the largest change first."""
    found = []
    for name in dict.fromkeys(value for value in values.tolist() if value is not None):
        rows = values == name
        there, away = (each[rows] for each in moves)
        size = float(np.sqrt(np.square(there - there.mean(axis=0)).sum(axis=1).mean()))
        moved = float(np.linalg.norm(np.median(away, axis=0))) / size if size > 0 else 0.0
        found.append(Group(str(name), int(rows.sum()), float(kept[rows].mean()),
                           float(changed[rows].mean()), moved))  # fmt: skip
    return tuple(sorted(found, key=lambda group: (-group.changed, group.kept)))


def _moved(groups: tuple[Group, ...]) -> list[str]:
    return [
        f"{shown(group.name)} moved as a whole, by {number(group.moved, 2)} times its own size."
        for group in sorted(groups, key=lambda group: -group.moved)
        if group.moved > FAR and group.rows >= LEAST_ROWS
    ][:MOST_SAID]


def _called(groups: NDArray[np.int64], values: NDArray[Any] | None) -> list[str]:
    """A name for each group; those that would share one are numbered."""
    names = []
    for group in range(int(groups.max()) + 1):
        mine = [] if values is None else values[groups == group].tolist()
        (name, rows), = Counter(mine).most_common(1) or [(None, 0)]
        own = name is not None and rows > MOST_NAMED * len(mine)
        names.append(str(name) if own else f"group {group + 1}")
    often = Counter(names)
    return [f"{name} ({sum(other == name for other in names[:at]) + 1})" if often[name] > 1 else
            name for at, name in enumerate(names)]  # fmt: skip


def _crossed(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows (groups, others + 1) of each group of the first in those of the second, or in none."""
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 2), np.int64)
    both = first >= 0
    np.add.at(table, (first[both], second[both]), 1)  # −1 is the last
    return table


def _split(table: NDArray[np.int64], called: list[list[str]]) -> list[str]:
    said = []
    for group, row in enumerate(table):
        share = row[:-1] / row.sum()
        parts = np.flatnonzero(share >= PART)
        if len(parts) > 1:
            into = listed([f"{called[1][part]} ({percent(share[part])})" for part in parts], 6)
            said.append(f"{called[0][group]} ({count(int(row.sum()), 'row')}) split into {into}.")
    return said


def _merged(table: NDArray[np.int64], called: list[list[str]]) -> list[str]:
    share = table[:, :-1] / table.sum(axis=1, keepdims=True)
    said = []
    for other in range(share.shape[1]):
        parts = np.flatnonzero(share[:, other] >= WHOLE)
        if len(parts) > 1:
            names = listed([called[0][part] for part in parts], 6)
            said.append(f"{names} merged into {called[1][other]}.")
    return said
