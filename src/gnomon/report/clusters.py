"""Suggested groups of rows, if there are no labels.

1. The graph: each row and its 15 nearest rows in the data, not on the map.
2. Groups: Louvain's method (Blondel and others 2008): rows move to the group of neighbours that
   raises modularity most; groups become nodes, and so on until nothing moves.
3. Only reproducible groups are kept: in five random samples of 80 % of the rows, grouped again, the
   most similar group overlaps by a Jaccard index of 0.75 or more on average. If less than four
   fifths of the rows are in such groups, larger ones (a lower resolution of modularity) and smaller
   ones (7 neighbours) are tried, and the grouping of most rows is used.
4. Names state what distinguishes a group: columns whose mean differs by 0.8 standard deviations or
   more from that of the other rows, or the words of a text column with the largest p·log(p/q),
   where p is the share of the group's rows that contain the word and q that of the other rows.
   If neither does, and rows are single words, a group is named after those of its rows that are
   nearest to most others of it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gnomon.compute.kernels import kernel

__all__ = [
    "LEAST_ROWS",
    "MOST_ROWS",
    "NEIGHBORS",
    "describe_groups",
    "louvain",
    "shared_neighbor_graph",
    "suggest_groups",
]

NEIGHBORS, FEWER_NEIGHBORS = 15, 7
# Neighbours of the graph and resolution: groups of the default size, larger ones, smaller ones.
TRIES = (NEIGHBORS, 1.0), (NEIGHBORS, 0.3), (FEWER_NEIGHBORS, 1.0)
# Shares of rows in groups: below the first nothing is suggested, and below
# the second other sizes of groups are tried.
LEAST_GROUPED, ENOUGH_GROUPED = 0.25, 0.8
LEAST_ROWS, MOST_ROWS = 60, 100_000
LEAST_GROUP = 8  # rows of the smallest group
SAMPLES, SHARE, OVERLAP = 5, 0.8, 0.75
MOST_SWEEPS, MOST_LEVELS = 20, 20
CLEARLY = 0.8  # standard deviations between means that name a group
MOST_NAMED = 2  # columns or words of a name
ADDRESS = re.compile(r"\w+://\S+")
WORD = re.compile(r"[^\W\d_]{3,}")
ONE_WORD = re.compile(r"[^\W\d_]+(['’-][^\W\d_]+)*")
NEARLY_ALL = 0.9  # share of rows that are single words
MOST_MEMBERS = 3  # rows that a group is named after
LEAST_WORDS = 3  # rows of a group that must contain a word
LEAST_SHARE = 0.2  # of a group's rows, below which a word is not one of the group

Ints = NDArray[np.int64]


def suggest_groups(near: NDArray[Any]) -> Ints | None:
    """Group of each row (n,), −1 for none; None if few rows are in stable groups.

    `near` (n, k) holds the nearest rows of each row. Groups are numbered by size.
    """
    n = len(near)
    if not LEAST_ROWS <= n <= MOST_ROWS or near.shape[1] < FEWER_NEIGHBORS:
        return None
    best: Ints = np.full(n, -1)
    for k, resolution in TRIES:
        found = _stable_groups(near[:, :k], resolution)
        best = max(best, found, key=lambda groups: int((groups >= 0).sum()))
        if (best >= 0).mean() >= ENOUGH_GROUPED:
            break
    return best if (best >= 0).mean() >= LEAST_GROUPED and best.max() >= 1 else None


def _stable_groups(near: NDArray[Any], resolution: float) -> Ints:
    """Groups that recur in samples, numbered by size; −1 for all other rows."""
    n = len(near)
    graph = shared_neighbor_graph(near)
    groups = louvain(graph, resolution)
    rng = np.random.default_rng(0)
    overlaps = np.zeros(int(groups.max()) + 1)
    for _ in range(SAMPLES):
        rows = np.sort(rng.choice(n, int(SHARE * n), replace=False))
        again = louvain(graph[rows][:, rows], resolution)
        overlaps += _best_overlap(groups[rows], again, len(overlaps))
    sizes = np.bincount(groups)
    kept = np.flatnonzero((overlaps / SAMPLES >= OVERLAP) & (sizes >= LEAST_GROUP))
    order = kept[np.argsort(-sizes[kept], kind="stable")]
    number = np.full(len(sizes), -1)
    number[order] = np.arange(len(order))
    return number[groups]


def shared_neighbor_graph(near: NDArray[Any]) -> Any:
    """Symmetric graph without loops; a pair of mutual neighbours weighs twice."""
    n, k = near.shape
    rows = np.repeat(np.arange(n), k)
    ones = sparse.csr_array((np.ones(n * k), (rows, near.ravel().astype(np.int64))), shape=(n, n))
    graph = (ones + ones.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def louvain(graph: Any, resolution: float) -> Ints:
    """Cluster the nodes of a weighted graph; groups are numbered from 0."""
    rng = np.random.default_rng(0)
    groups: Ints = np.arange(graph.shape[0])
    total = float(graph.sum())
    if total == 0:
        return groups
    level = graph
    for _ in range(MOST_LEVELS):
        m = level.shape[0]
        found = np.arange(m)
        strength = np.asarray(level.sum(axis=1)).ravel()
        order = rng.permutation(m)
        moved = _move(
            level.indptr.astype(np.int64),
            level.indices.astype(np.int64),
            level.data,
            strength,
            found,
            strength.copy(),
            order,
            total / resolution,
        )
        _, found = np.unique(found, return_inverse=True)
        groups = found[groups]
        if not moved:
            break
        into = sparse.csr_array((np.ones(m), (np.arange(m), found)))
        level = (into.T @ level @ into).tocsr()
    return groups


@kernel
def _move(
    indptr: Ints,
    indices: Ints,
    weights: NDArray[np.float64],
    strength: NDArray[np.float64],
    group: Ints,
    within: NDArray[np.float64],
    order: Ints,
    total: float,
) -> int:
    """Move nodes to neighbouring groups while that raises modularity; return how many moved.

    `within` is the strength of each group; both it and `group` are modified.
    """
    links = np.zeros(len(group))  # weight from the node to each group
    touched = np.empty(len(group), np.int64)
    moved_in_all = 0
    for _ in range(MOST_SWEEPS):
        moved = 0
        for node in order:
            own = group[node]
            count = 0
            for e in range(indptr[node], indptr[node + 1]):
                other = indices[e]
                if other == node:
                    continue
                g = group[other]
                if links[g] == 0.0:
                    touched[count] = g
                    count += 1
                links[g] += weights[e]
            within[own] -= strength[node]
            best, most = own, links[own] - strength[node] * within[own] / total
            for t in range(count):
                g = touched[t]
                gain = links[g] - strength[node] * within[g] / total
                if gain > most + 1e-12:
                    best, most = g, gain
            within[best] += strength[node]
            if best != own:
                group[node] = best
                moved += 1
            for t in range(count):
                links[touched[t]] = 0.0
        moved_in_all += moved
        if moved == 0:
            break
    return moved_in_all


def _best_overlap(groups: Ints, again: Ints, many: int) -> NDArray[np.float64]:
    """Jaccard index of each of `many` groups with the most similar of the others."""
    both = sparse.coo_array((np.ones(len(groups)), (groups, again)), shape=(many, again.max() + 1))
    both.sum_duplicates()
    sizes, others = np.bincount(groups, minlength=many), np.bincount(again)
    i, j = both.coords
    best = np.zeros(many)
    np.maximum.at(best, i, both.data / (sizes[i] + others[j] - both.data))
    return best


def describe_groups(
    groups: Ints,
    X: NDArray[Any] | None,
    names: Sequence[str],
    texts: Sequence[str] | None = None,
    *,
    words: Sequence[str] | None = None,
    near: NDArray[Any] | None = None,
) -> NDArray[np.object_]:
    """Name of each row's group (n,), None if it has none.

    `names` are the column names; `X` is None if they have no meaning, and then groups are numbered
    unless a text distinguishes them, or `words` (n,) are single words, one for each row, whose
    nearest rows are `near` (n, k).
    """
    many = int(groups.max()) + 1
    if texts is not None:
        said = _by_words(groups, texts, many)
    elif X is not None:
        said = _by_columns(groups, X, names, many)
    else:
        said = [""] * many
    if words is not None and near is not None and not all(said) and _are_words(words):
        members = _typical_members(groups, words, near, many)
        said = [name or member for name, member in zip(said, members, strict=True)]
    taken: Counter[str] = Counter()
    for group, name in enumerate(said):
        said[group] = name or f"group {group + 1}"
        taken[said[group]] += 1
        if taken[said[group]] > 1:
            said[group] += f" ({taken[said[group]]})"
    shown = np.empty(many + 1, dtype=object)
    shown[:many] = said
    return shown[groups]  # −1 selects the last


def _are_words(texts: Sequence[str]) -> bool:
    """Whether nearly all texts are single words, and not codes with digits."""
    return sum(ONE_WORD.fullmatch(text) is not None for text in texts) >= NEARLY_ALL * len(texts)


def _typical_members(
    groups: Ints, words: Sequence[str], near: NDArray[Any], many: int
) -> list[str]:
    """Name groups after the rows that are among the nearest of most rows of their group."""
    within = groups[near] == groups[:, None]
    often = np.bincount(near[within], minlength=len(groups))
    said = []
    for group in range(many):
        rows = np.flatnonzero(groups == group)
        first = rows[np.argsort(-often[rows], kind="stable")]
        named = [words[row] for row in first if ONE_WORD.fullmatch(words[row])]
        said.append(", ".join(list(dict.fromkeys(named))[:MOST_MEMBERS]))
    return said


def _by_columns(groups: Ints, X: NDArray[Any], names: Sequence[str], many: int) -> list[str]:
    """Name groups by columns, such as ``high alcohol, low hue``."""
    X = np.asarray(X, np.float64)
    spread = X.std(axis=0)
    total, n = X.sum(axis=0), len(X)
    said = []
    for group in range(many):
        own = groups == group
        here, size = X[own].sum(axis=0), int(own.sum())
        away = here / size - (total - here) / max(1, n - size)
        d = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
        first = [int(j) for j in np.argsort(-np.abs(d), kind="stable")[:MOST_NAMED]]
        parts = [
            f"{'high' if d[j] > 0 else 'low'} {names[j]}" for j in first if abs(d[j]) >= CLEARLY
        ]
        said.append(", ".join(parts))
    return said


def _by_words(groups: Ints, texts: Sequence[str], many: int) -> list[str]:
    """Name groups by the words that distinguish their texts most."""
    # Slow to import, and few tables have texts.
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    holds = [
        set(WORD.findall(ADDRESS.sub(" ", text.casefold()))) - ENGLISH_STOP_WORDS for text in texts
    ]
    everywhere = Counter(word for words in holds for word in words)
    said = []
    n = len(texts)
    for group in range(many):
        rows = np.flatnonzero(groups == group)
        here = Counter(word for row in rows for word in holds[row])
        m = len(rows)

        def strength(word: str, here: Counter[str] = here, m: int = m) -> float:
            # One more row outside, since a word that is nowhere else may only be rare.
            p, q = here[word] / m, (everywhere[word] - here[word] + 1) / (n - m + 1)
            return p * float(np.log(p / q))

        least = max(LEAST_WORDS, LEAST_SHARE * m)
        often = [word for word, many_rows in here.items() if many_rows >= least]
        ranked = sorted(often, key=lambda word: (-strength(word), word))
        said.append(", ".join(_unlike(ranked, MOST_NAMED)))
    return said


def _unlike(words: Sequence[str], most: int) -> list[str]:
    """First words of which none is a prefix of another, as "font" is of "fonts"."""
    chosen: list[str] = []
    for word in words:
        if len(chosen) == most:
            break
        if not any(word.startswith(other) or other.startswith(word) for other in chosen):
            chosen.append(word)
    return chosen
