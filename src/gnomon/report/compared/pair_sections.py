"""The sections of a comparison's page: sentences written from the numbers, and their tables."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import count, number, percent
from gnomon.procrustes.evidence import Figure
from gnomon.report.compared.pair_content import KEPT, ComparedContent
from gnomon.report.section import (
    Bullets,
    Code,
    Figures,
    Grid,
    RowLink,
    Section,
    Words,
    names,
    shown,
)

__all__ = ["compared_sections"]

MOST_ROWS = 25
MOST_BINS = 16
MOST_GROUPS = 20
NAMED = 3  # neighbours named in a cell
ENOUGH_RUNS = 19  # reruns for a significance of 5 %
DEFAULT_NEIGHBORS = 10
DISTANCES = {"euclidean": "Euclidean distance", "cosine": "cosine distance"}

MAP_HELP = (
    "Both maps are of the same rows, and the second is aligned to the first: rotated, reflected, "
    "shifted and scaled, which changes no neighbour. Point at a row on either map to see it on "
    "both; the lines lead to its nearest rows in the table of that map. Rows that you select leave "
    "arrows from where they were to where they are.",
    "The slider carries every point along a straight line from the first map to the second. Points "
    "that move together are groups that found another place, which in t-SNE means little; a point "
    "that leaves its group changed company.",
)
CHANGE_HELP = (
    "A row changed company if its former neighbours are no longer its neighbours: more rows lie "
    "between it and half of them than a limit, which is 5 % of all rows, or four times the value "
    "of the median row if everything moved. Both directions are measured and the smaller counts, "
    "so that a row is not blamed for what its neighbours did.",
    "“Moved” is the movement of a row less the median movement of its neighbours, in units of "
    "their mean distance: a group that moves as a whole is not a movement of its rows.",
)
ALIKE_HELP = (
    "Intervals (95 %) are estimates for other rows of the same kind; they are jackknifed over 20 "
    "groups of rows. p-values count shuffles of the rows that are at least as similar. Two maps of "
    "the same rows are always related: compare the values with those of reruns.",
)


def compared_sections(content: ComparedContent) -> tuple[Section, ...]:
    """List all sections in order; the map is the first."""
    return (_map(content), _changed(content), *_groups(content), _alike(content), _again(content))


def _map(content: ComparedContent) -> Section:
    values, unlabelled = content.company, KEPT
    if content.labels:
        values, unlabelled = content.labels[0][1], "no label"
    one, other = (shown(name, 40) for name in content.names)
    other = f"{other} (second)" if one == other else other
    both = dict(zip((one, other), content.maps, strict=True))
    chart = charts.maps(both, values, unlabelled=unlabelled, title="Both maps")
    verdict = [] if content.verdict is None else [content.verdict]
    lead = (*verdict, _sentence(content), *_trust(content), content.says)
    return Section("map", "Both maps", lead, (Figures((chart,)),), MAP_HELP)


def _sentence(content: ComparedContent) -> str:
    found = content.found
    return (
        f"Of each row's {found.n_neighbors} nearest rows by {DISTANCES[found.metric]}, "
        f"{percent(found.neighbor_overlap)} are the same in both "
        f"({percent(content.evidence.neighbors.chance)} by chance). {_changed_rows(content)}"
    )


def _changed_rows(content: ComparedContent) -> str:
    many = int(content.changed.sum())
    if not many:
        return "No row changed company."
    rows = "1 row" if many == 1 else f"{many:,} rows"
    return f"{rows} ({percent(many / content.n)}) changed company."


def _trust(content: ComparedContent) -> list[str]:
    if content.trust is None:
        return []
    (a, b), (one, other) = content.trust, (shown(name) for name in content.names)
    if content.same_data:
        return [
            f"Of each row's nearest rows in the data, {one} keeps {percent(a)} and {other} "
            f"{percent(b)}: the one that keeps more is the better map."
        ]
    return [
        f"Of each row's nearest rows in its own data, {one} keeps {percent(a)} and {other} "
        f"{percent(b)}. The data differ, so the shares do not say which map is better. On maps, "
        "rows also change company by chance: to see what changed in the data, compare the tables."
    ]


def _name(content: ComparedContent, row: int) -> str:
    return f"row {content.rows[row]}" if content.ids is None else shown(content.ids[1][row], 40)


def _changed(content: ComparedContent) -> Section:
    k = content.near[0].shape[1]
    order = np.lexsort((-content.moved, content.kept, -content.between))[:MOST_ROWS]
    rows = []
    for row in order.tolist():
        before, after = (each[row] for each in content.near)
        lost = [_name(content, each) for each in before if each not in set(after.tolist())]
        gained = [_name(content, each) for each in after if each not in set(before.tolist())]
        rows.append(
            (
                RowLink(row, _name(content, row)),
                f"{round(k * content.kept[row])} of {k}",
                percent(float(content.between[row])),
                _times(float(content.moved[row])),
                names(lost, NAMED) or "none",
                names(gained, NAMED) or "none",
            )
        )
    limit = percent(content.found.changes.limit)
    lead = (
        f"{_changed_rows(content)} More than {limit} of all rows lie between such a row and its "
        "former neighbours.",
        f"The median row keeps {percent(float(np.median(content.kept)))} of its neighbours. The "
        f"median movement is {number(float(np.median(content.moved)), 2)} times the mean distance "
        "of a row to its neighbours.",
    )
    whole = ""
    if content.changed.any():
        whole = (
            " The button below the maps selects all that changed company, and “Download CSV” saves "
            "them; gnomon compare --rows rows.csv writes every row with what it lost and gained."
        )
    grid = Grid(
        "Rows by how much they changed company",
        ("row", "neighbours kept", "rows between", "moved", "lost", "gained"),
        tuple(rows),
        frozenset({"row", "lost", "gained"}),
        f"The first {len(rows)} of {count(content.n, 'row')}. A row's name shows it on both "
        f"maps.{whole}",
    )
    charted = charts.histogram(
        content.kept,
        title="Neighbours kept, row by row",
        axis="share of neighbours kept",
        subtitle=f"{percent(float(content.kept.mean()))} on average.",
        span=(0.0, 1.0),
        bins=min(k + 1, MOST_BINS),  # one for each share that there can be
    )
    return Section("rows", "Which rows changed?", lead, (grid, Figures((charted,))), CHANGE_HELP)


def _groups(content: ComparedContent) -> list[Section]:
    found = content.groups
    if found is None:
        return []
    one, other = (shown(name) for name in content.names)
    lead = [f"No group of {one} split or merged in {other}."]
    if found.sentences:
        lead = [f"{count(len(found.sentences), 'change')} of groups, from {one} to {other}."]
    rows = tuple(
        (
            shown(group.name),
            f"{group.rows:,}",
            percent(group.kept),
            percent(group.changed),
            _times(group.moved),
        )
        for group in found.groups[:MOST_GROUPS]
    )
    grid = Grid(
        "Groups by how many of their rows changed company",
        (shown(found.by), "rows", "neighbours kept", "changed company", "moved"),
        rows,
        frozenset({shown(found.by)}),
        "Moved: the movement of the group's centre, in sizes of the group.",
    )
    bullets = (Bullets("Split, merged, moved", found.sentences),) if found.sentences else ()
    help_ = (
        "Splits and merges are of groups found in the neighbours of each table, not on the "
        "maps, and named after the labels of a fifth of their rows or more. If a group moved on "
        "a t-SNE map, check whether it kept its neighbours before you interpret it.",
    )
    return [Section("groups", "Which groups changed?", tuple(lead), (*bullets, grid), help_)]


def _alike(content: ComparedContent) -> Section:
    found, evidence = content.found, content.evidence
    figures = (
        (
            evidence.neighbors,
            [each.neighbor_overlap for each in content.reruns],
            f"Both tables agree on {percent(found.neighbor_overlap)} of each row's neighbours.",
        ),
        (
            evidence.disparity,
            [each.disparity for each in content.reruns],
            f"After the best rotation, {percent(found.disparity)} of the shape is unexplained.",
        ),
        (
            evidence.rv,
            [each.rv for each in content.reruns],
            "RV, the linear CKA: how far all distances agree; too large for many columns.",
        ),
        (
            evidence.cka,
            [each.unbiased_cka for each in content.reruns],
            "CKA without that bias: about 0 for tables with nothing in common.",
        ),
    )
    rows = [
        (
            figure.name,
            _decimals(figure.value),
            _interval(figure),
            number(figure.p_value, 2),
            "—" if np.isnan(figure.chance) else _decimals(figure.chance),
            _range(reruns),
            sentence,
        )
        for figure, reruns, sentence in figures
    ]
    changed = _range([each.changed for each in content.reruns])
    sentence = f"{percent(found.changed)} of the rows are far from their former neighbours now."
    rows.append(("changed company", _decimals(found.changed), "—", "—", "—", changed, sentence))
    grid = Grid(
        "How alike the two tables are",
        ("figure", "value", "95 % interval", "p", "by chance", "reruns", "what it says"),
        tuple(rows),
        frozenset({"figure", "what it says"}),
        f"p from {evidence.n_permutations:,} shuffles.",
    )
    lead = _reruns(content)
    if found.metric == "cosine":
        lead += ("Rows were divided by their lengths first: every figure is of those rows.",)
    return Section("alike", "How alike are they?", lead, (grid,), ALIKE_HELP)


def _reruns(content: ComparedContent) -> tuple[str, ...]:
    one, other = (shown(name) for name in content.names)
    value = content.found.neighbor_overlap
    if not content.reruns:
        share = f"{one} and {other} share {percent(value)} of the neighbours."
        if not content.are_maps:
            return (
                f"{share} To see whether that is much, compare two models that you know to be "
                "alike, or one model with itself at another date.",
            )
        return (
            f"{share} To see whether that is much, compare it with reruns of the same method with "
            "another seed (--reruns 3 for folders of gnomon map; reruns= in Python).",
        )
    shares = [each.neighbor_overlap for each in content.reruns]
    runs, lower = len(shares), sum(share <= value for share in shares)
    verdict = (
        f"{lower} of {count(runs, 'rerun')} as little or less: chance alone may explain it."
        if lower
        else "less than every rerun. By chance, one more rerun would be the lowest once in "
        f"{runs + 1} times, so "
        + ("something besides chance changed." if runs >= ENOUGH_RUNS else "make more to be sure.")
    )
    changed = [each.changed for each in content.reruns]
    return (
        f"Reruns of {one} with other seeds share {_percents(shares)} of its neighbours; {other} "
        f"shares {percent(value)}, {verdict}",
        f"In reruns, {_percents(changed)} of the rows change company by chance alone; in {other}, "
        f"{percent(content.found.changed)}.",
    )


def _percents(shares: list[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _range(values: list[float]) -> str:
    if not values:
        return "—"
    low, high = _decimals(min(values)), _decimals(max(values))
    return low if low == high else f"{low} to {high}"


def _interval(figure: Figure) -> str:
    if np.isnan(figure.low):
        return "too few rows"
    return f"{_decimals(figure.low)} to {_decimals(figure.high)}"


def _decimals(value: float) -> str:
    """Three decimals, so that figures stand below each other; digits of those that are smaller."""
    return number(value, 2) if 0 < abs(value) < 0.001 else f"{value:.3f}".replace("-", "−")


def _times(value: float) -> str:
    return f"{value:,.1f}×"


def _code(content: ComparedContent) -> str:
    """The comparison of two arrays `a` and `b`."""
    found = content.found
    given = ["a", "b"]
    rows = "rows in the same order"
    if found.ids is not None:
        given += ["ids_a", "ids_b"]
        rows = "ids_a, ids_b: the names of their rows"
    if found.metric != "euclidean":
        given.append(f'metric="{found.metric}"')
    if found.n_neighbors != DEFAULT_NEIGHBORS:
        given.append(f"n_neighbors={found.n_neighbors}")
    a, b = (shown(name) for name in content.names)
    return (
        f"from gnomon import compare\n\n# a: {a}, b: {b}; {rows}\n"
        f"found = compare({', '.join(given)})\nprint(found)\n"
        'found.report().save("comparison.html")'
    )


def _again(content: ComparedContent) -> Section:
    blocks: tuple[Code, ...] = ()
    if content.command:
        blocks = (Code("On the command line", content.command),)
    code = content.python or (None if content.command else _code(content))
    if code:
        blocks += (Code("In Python", code),)
    distance = "Euclidean distance"
    if content.found.metric == "cosine":
        distance = "cosine distance; rows were divided by their lengths for all figures"
    used = ", ".join(f"{name} {version}" for name, version in content.versions.items())
    methods = (
        f"The tables of {count(content.found.n, 'row')} were compared with Gnomon "
        f"{content.versions.get('gnomon', '')}: Procrustes disparity [Gower 1975] with a "
        "permutation test [Peres-Neto & Jackson 2001], RV [Robert & Escoufier 1976], unbiased CKA "
        "[Kornblith et al. 2019], and the "
        f"{content.found.n_neighbors} nearest neighbours that both share, by {distance}. Computed "
        f"with {used}."
    )
    return Section("reproduce", "Reproduce", (), (*blocks, Words(methods)))
