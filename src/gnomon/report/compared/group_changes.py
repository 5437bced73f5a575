"""Groups that split, merged or moved between two tables of the same rows.

1. Groups are found in the graph of neighbours of each table (`report.clusters`), not on a map, by
   Louvain's method, among at most `ISLAND_ROWS` rows, drawn with a seed: in more rows, clumps of a
   few hundred rows count as groups (MNIST: 158 of 70,000 rows, 7 to 9 of 2,000). Every other row
   belongs to the group of the nearest drawn row. A crowd without gaps falls into several groups, at
   borders that mean nothing.
2. So groups are joined that are linked: of the links of their rows to both, more than `LINKED`
   times as many lead to the other as in a mixture of both. What is left are islands.
3. An island split where two or more islands of the other table hold a fifth of it each. It merged
   with others where the same is true the other way round.

Islands are named after the labels of a fifth of their rows or more ("3 + 5"); others are numbered
in the first table, and have no name in the second, where the numbers would mean other rows.

A group moved as a whole if the median movement of its rows is above `FAR` of its size, and three
quarters of them went half as far in that direction: half of a group that split did not move.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gnomon.charts.words import count, number
from gnomon.neighbors.search import NeighborSearch
from gnomon.report.clusters import LEAST_ROWS, Ints, louvain, shared_neighbor_graph
from gnomon.report.section import names as listed
from gnomon.report.section import shown
from gnomon.typing import Floats64

__all__ = ["GroupChange", "GroupChanges", "find_groups", "find_islands"]

PART = 0.2  # smallest share of an island that is named as a part
LINKED = 0.03  # share of the links of a mixture; borders within one cluster have 0.04 to 0.16
FAR = 1.0  # movement from which a group moved, in units of its size
LEAST_ROWS_NAMED, MOST_SAID = 8, 6
NEAR = 10  # nearest rows of each, in the graph
ISLAND_ROWS = 2_000  # rows among which groups are found
MOST_CHANGES = 8  # sentences about splits, and about merges
UNNAMED = "a group"  # of the second table


@dataclass(frozen=True)
class GroupChange:
    """A group of the first table: its rows, and how they changed."""

    name: str
    rows: int
    kept: float
    changed: float
    moved: float  # movement of its centre, relative to its size
    as_whole: bool  # whether most of its rows moved with the centre


@dataclass(frozen=True)
class GroupChanges:
    """Groups of the first table, and sentences about those that split, merged or moved."""

    groups: tuple[GroupChange, ...]
    sentences: tuple[str, ...]
    by: str


def find_groups(
    tables: Sequence[NDArray[Any]],
    labels: tuple[str, NDArray[Any]] | None,
    kept: Floats64,
    changed: NDArray[np.bool_],
    moves: tuple[Floats64, Floats64],
    n_jobs: int | None = None,
) -> GroupChanges | None:
    """Find how groups changed; None if neither labels nor neighbours group the rows.

    `tables` are both tables (n, dx) and (n, dy); `kept`, `changed` and `moves` (its place in the
    first table, and its way to the second) are of each row.
    """
    values = None if labels is None or labels[1].dtype.kind != "O" else labels[1]
    first, second = (find_islands(each, n_jobs) for each in tables)
    sentences: list[str] = []
    if first is not None and second is not None:
        one, other = _called(first, values), _called(second, values, UNNAMED)
        sentences = [
            *_crossed(first, second, one, other, "{whole} split into {parts}", "went to"),
            *_crossed(second, first, other, one, "{parts} merged into {whole}", "came from"),
        ]
    if values is not None and labels is not None:
        groups = _groups(values, kept, changed, moves)
        return GroupChanges(groups, (*sentences, *_moved(groups)), labels[0])
    if first is None or not (first.max() or sentences):  # all rows are one cluster
        return None
    names = np.array(_called(first, None), object)[first]
    groups = _groups(names, kept, changed, moves)
    return GroupChanges(groups, (*sentences, *_moved(groups)), "group")


def _groups(
    values: NDArray[Any],
    kept: Floats64,
    changed: NDArray[np.bool_],
    moves: tuple[Floats64, Floats64],
) -> tuple[GroupChange, ...]:
    """One group for each name, the largest change first."""
    found = []
    for name in dict.fromkeys(value for value in values.tolist() if value is not None):
        rows = values == name
        there, away = (each[rows] for each in moves)
        size = float(np.sqrt(np.square(there - there.mean(axis=0)).sum(axis=1).mean()))
        middle = np.median(away, axis=0)
        along, way = away @ middle, float(np.linalg.norm(middle))
        found.append(
            GroupChange(
                str(name),
                int(rows.sum()),
                float(kept[rows].mean()),
                float(changed[rows].mean()),
                way / size if size > 0 else 0.0,
                bool(np.quantile(along, 0.25) > way**2 / 2),
            )
        )
    return tuple(sorted(found, key=lambda group: (-group.changed, group.kept)))


def _moved(groups: tuple[GroupChange, ...]) -> list[str]:
    large = [group for group in groups if group.rows >= LEAST_ROWS_NAMED]
    moved = [group for group in large if group.moved > FAR and group.as_whole]
    moved.sort(key=lambda group: -group.moved)
    if len(moved) > max(1, len(large) / 2):  # no group is the frame of the others
        return [
            f"{len(moved):,} of {count(len(large), 'group')} moved as a whole, by up to "
            f"{number(moved[0].moved, 2)} times their own size: the tables arrange their groups "
            "differently."
        ]
    return [
        f"{shown(group.name)} moved as a whole, by {number(group.moved, 2)} times its own size."
        for group in moved
    ][:MOST_SAID]


def _called(
    groups: Ints, values: NDArray[Any] | None, unnamed: str = "group {number}"
) -> list[str]:
    """Name of each group; groups with the same name are numbered."""
    names = []
    for group in range(int(groups.max()) + 1):
        mine = [] if values is None else values[groups == group].tolist()
        own = [
            str(name)
            for name, rows in Counter(mine).most_common()
            if name is not None and rows >= PART * len(mine)
        ]
        names.append(" + ".join(own) or unnamed.format(number=group + 1))
    often = Counter(names)
    return [
        f"{name}, part {names[:at].count(name) + 1}"
        if often[name] > 1 and name != unnamed
        else name
        for at, name in enumerate(names)
    ]


def _crossed(
    wholes: Ints, parts: Ints, called: list[str], called_parts: list[str], said: str, way: str
) -> list[str]:
    """Sentences about islands `wholes` (n,) that are several islands of `parts` (n,)."""
    found: list[tuple[int, str]] = []
    for island in range(int(wholes.max()) + 1):
        rows = parts[wholes == island]
        sizes = np.bincount(rows, minlength=int(parts.max()) + 1)
        held = np.flatnonzero(sizes >= max(LEAST_ROWS_NAMED, PART * len(rows)))
        if len(held) > 1:
            named = [f"{called_parts[part]} ({count(int(sizes[part]), 'row')})" for part in held]
            whole = f"{called[island]} ({count(len(rows), 'row')})"
            others = len(rows) - int(sizes[held].sum())
            rest = f"; {count(others, 'row')} {way} other groups" if others else ""
            sentence = said.format(whole=whole, parts=listed(named, MOST_SAID))
            found.append((len(rows), f"{sentence}{rest}."))
    found.sort(key=lambda change: -change[0])
    sentences = [sentence for _, sentence in found[:MOST_CHANGES]]
    if len(found) > MOST_CHANGES:
        more = count(len(found) - MOST_CHANGES, "smaller group")
        sentences.append(f"{more} {'split' if 'split' in said else 'came of a merger'} too.")
    return sentences


def find_islands(X: NDArray[Any], n_jobs: int | None = None) -> Ints | None:
    """An island for each row of `X` (n, d), numbered by size; None of very few rows."""
    n = len(X)
    if n < LEAST_ROWS:
        return None
    drawn = np.arange(n)
    if n > ISLAND_ROWS:
        drawn = np.sort(np.random.default_rng(0).choice(n, ISLAND_ROWS, replace=False))
    search = NeighborSearch(np.ascontiguousarray(X[drawn]), recall=1.0, n_jobs=n_jobs)
    near = search.nearest(min(NEAR, len(drawn) - 1), n_jobs)
    groups = louvain(shared_neighbor_graph(near), 1.0)
    links = _links(groups, near)
    _, island = connected_components(np.maximum(links, links.T) > LINKED, directed=False)
    joined = island[groups]
    if n > len(drawn):
        joined = joined[search.of(X, 1, n_jobs)[0][:, 0]]
    order = np.argsort(-np.bincount(joined), kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[joined]


def _links(groups: Ints, near: NDArray[Any]) -> Floats64:
    """Links from each group to each other, relative to those in a mixture of the two."""
    sizes = np.bincount(groups).astype(np.float64)
    links = np.zeros((len(sizes), len(sizes)))
    np.add.at(links, (np.repeat(groups, near.shape[1]), groups[near.ravel()]), 1)
    own = np.diag(links)[:, None]
    share = links / np.maximum(own + links, 1)
    return np.asarray(share / (sizes / (sizes + sizes[:, None])))
