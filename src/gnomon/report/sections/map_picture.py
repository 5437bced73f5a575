"""Map: the sentences above the map, and its static pictures."""

from collections import Counter
from typing import Any

from numpy.typing import NDArray

from gnomon import charts
from gnomon.charts.scatter import REMARK
from gnomon.charts.words import count, percent
from gnomon.report.content import PageContent
from gnomon.report.section import Figures, Section, shown
from gnomon.report.sections.overview import PCA_REMARK, keeps
from gnomon.scores.map_verdict import verdict
from gnomon.scores.neighbor_labels import UNGROUPED

__all__ = ["map_section"]

ELSEWHERE = "Made elsewhere."
MOST_POINTS = 2_500  # points of the static picture, shown without scripts and in print

HELP = (
    "Each point is a row. The lines from the row you point at lead to its nearest rows in the "
    "data, not on the map: where they run far across it, the map has torn neighbours apart.",
    "Draw a lasso around points to compare them with all others. A difference is given in standard "
    "deviations of the column: 0.2 is small, 0.8 is large. It says how the rows differ, not why, "
    "and it is not a significance test, since you chose the rows by looking.",
)


def map_section(content: PageContent) -> Section:
    """Build the first section."""
    values = None if content.groups is None else content.groups[1]
    pictures = [] if content.Y is None else [(content.map_name, content.Y)]
    pictures.append(("PCA", content.pca_map))
    figures = Figures(
        tuple(
            charts.scatter(
                positions,
                values,
                title=way,
                most_points=MOST_POINTS,
                remark={"PCA": PCA_REMARK, "t-SNE": REMARK}.get(way, ELSEWHERE),
            )
            for way, positions in pictures
        )
    )
    mixed = (*_mixed(content), *_among(content))
    judged = () if content.quality is None else filter(None, [verdict(content.quality)])
    lead = (*judged, _maps(content), *_trust(content), *mixed, *_suggested(content))
    return Section("map", "Map", lead, (figures,), HELP)


def _maps(content: PageContent) -> str:
    rows = count(content.n, "row")
    if content.Y is None:
        return f"Each of the {rows} is a point, placed by its scores on the first two components."
    sides = ""
    if content.Y.shape[1] == 3:
        sides = " The map has three dimensions, of which two are seen at a time, from three sides."
    made = " The map was given, and is judged here." if content.made_elsewhere else ""
    return (
        f"Each point is one of the {rows}.{made}{sides} Switching to PCA keeps the orientation: "
        "its map is rotated to match."
    )


def _trust(content: PageContent) -> list[str]:
    """Summarise how far to trust the map, in one sentence."""
    if content.Y is None or content.trust is None:
        return []
    return [f"{keeps(content, float(content.trust.mean()))} ({percent(content.chance)} by chance)."]


def _suggested(content: PageContent) -> list[str]:
    """Describe the suggested groups."""
    if content.suggested is None:
        return []
    found = len({value for value in content.suggested.tolist() if value is not None})
    rest = sum(value is None for value in content.suggested.tolist())
    left = f" {count(rest, 'row')} belong to none." if rest else ""
    return [
        f"No column groups the rows, so {count(found, 'group')} are suggested: neighbours in the "
        "data that stay together when a fifth of the rows is left out. A name states what "
        f"distinguishes its group.{left}"
    ]


def _mixed(content: PageContent) -> list[str]:
    """How often the nearest row has another label, and which two labels mix most."""
    if not content.labels or not content.neighbors.shape[1]:
        return []
    name, values = content.labels[0]
    if values.dtype.kind != "O":
        return []
    pairs = [
        (str(mine), str(other))
        for mine, other in zip(values, values[content.neighbors[:, 0]], strict=True)
        if mine is not None and other is not None
    ]
    different = Counter(tuple(sorted(pair)) for pair in pairs if pair[0] != pair[1])
    if not pairs or len(set(values.tolist())) < 2:
        return []
    same = 1 - different.total() / len(pairs)
    said = (
        f"{percent(same)} of rows have the same {shown(name)} as their nearest row in the data "
        f"({percent(_by_chance(values))} by chance)."
    )
    if not different:
        return [said]
    (one, other), _ = different.most_common(1)[0]
    return [f"{said} The groups that mix most are {shown(one)} and {shown(other)}."]


def _among(content: PageContent) -> list[str]:
    """How many rows lie among another group on the map; the table is in the section on trust."""
    found = content.neighbor_labels
    if found is None or not (rows := found.on_map).size:
        return []
    alone = int(found.only_on_map[rows].sum())
    name, many = shown(content.labels[0][0]), rows.size
    lies = "row lies" if many == 1 else "rows lie"
    if found.many:
        return [f"{many:,} {lies} among another {name}: {UNGROUPED}."]
    if not alone:
        which = "in the data, too"
    elif alone == many:
        which = "on the map, not in the data"
    else:
        which = f"{alone:,} of them only on the map, {many - alone:,} in the data, too"
    return [f"{many:,} {lies} among another {name}, {which}; they are listed under trust."]


def _by_chance(values: NDArray[Any]) -> float:
    """Share of pairs of rows that have the same label."""
    sizes = list(Counter(str(value) for value in values if value is not None).values())
    n = sum(sizes)
    return sum(size * (size - 1) for size in sizes) / max(1, n * (n - 1))
