"""Can I trust the map? What it preserves, what it does not, and for which rows."""

from collections import Counter

import numpy as np

from gnomon import charts
from gnomon.charts.distance_ranks import kept_in_order
from gnomon.charts.words import percent
from gnomon.report.content import PageContent
from gnomon.report.section import Block, Bullets, Figures, Grid, Section, Words, row_link, shown
from gnomon.scores import MapScores
from gnomon.scores.few_rows import FEW_ROWS
from gnomon.scores.map_verdict import FAR_IN_ORDER, FAR_IN_PART, verdict
from gnomon.typing import Array

__all__ = ["trust"]

LITTLE = 1 / 3  # share of neighbours kept, below which a row is out of place
MOST_ROWS = 8
MOST_GROUPS = 12
MOST_AMONG = 25  # rows among another group that are listed

HELP = (
    "A map in the plane cannot preserve everything in a table of many columns. A row's trust is "
    "the share of its nearest rows in the data that are also its nearest on the map: its "
    "neighbours kept. Trustworthiness is high when few strangers are among the neighbours on the "
    "map; continuity is high when few neighbours have been torn away. Both are 1 at best and about "
    "0.5 by chance.",
    "The picture of distances shows pairs of rows: across, from near to far in the data; up, from "
    "near to far on the map. If all lay on the dotted line, distances would keep their order.",
    "To see where the map can be trusted, choose trust under “Colour by”.",
)


def trust(content: PageContent) -> Section | None:
    """Build the sixth section; None without a map."""
    if content.Y is None:
        return None
    if content.trust is None:
        text = "The map was not scored: the run was interrupted."
        return Section("trust", "Can I trust the map?", (text,), (_cautions(content, None),))
    drawn = [_histogram(content.trust, content.trusted)]
    lead = [_sentence(content, content.trust)]
    blocks: list[Block] = []
    quality, pairs = content.quality, content.pairs
    far = content.far
    if quality is not None:
        lead = [*filter(None, [verdict(quality)]), *lead]
        drawn.insert(0, charts.neighborhoods(quality))
        blocks.append(_scores(quality))
        groups = [name for name, values in content.labels if values.dtype.kind == "O"]
        if quality.class_accuracy is not None and groups:
            lead.append(_classes(groups[0], content, quality))
    if pairs is not None and content.mapped >= FEW_ROWS:
        drawn.insert(1, charts.distance_ranks(*pairs))
        lead.append(_distances(far, *kept_in_order(*pairs)))
    blocks = [Figures(tuple(drawn), _cautions(content, far)), *blocks]
    by_group = _groups(content, content.trust)
    return Section(
        "trust",
        "Can I trust the map?",
        tuple(lead),
        (
            *blocks,
            *((by_group,) if by_group else ()),
            *_among(content),
            *_least(content, content.trust),
            *_audit(content),
        ),
        HELP,
    )


def _sentence(content: PageContent, kept: Array) -> str:
    k, chance, mean = content.trusted, content.chance, percent(float(kept.mean()))
    said = (
        f"Of a row's {k} nearest rows in the data, {mean} are among its {k} nearest on the map; "
        f"by chance it would be {percent(chance)}."
    )
    if k == 1:
        said = (
            f"The row nearest in the data is the nearest on the map for {mean} of the rows; by "
            f"chance it would be for {percent(chance)}."
        )
    lost = int((kept < LITTLE).sum())
    if not lost:  # not worth saying if chance keeps as much
        return f"{said} Every row keeps at least a third." if chance < LITTLE else said
    which = "row keeps" if lost == 1 else "rows keep"
    return f"{said} {lost:,} {which} fewer than a third ({percent(lost / content.n)} of all)."


def _classes(name: str, content: PageContent, quality: MapScores) -> str:
    assert quality.class_accuracy is not None
    assert quality.class_accuracy_in_data is not None
    at = int(np.argmin(np.abs(np.array(quality.n_neighbors) - content.trusted)))
    here = percent(float(quality.class_accuracy.mean[at]))
    there = percent(float(quality.class_accuracy_in_data.mean[at]))
    return (
        f"The neighbours on the map would guess the right {shown(name)} for {here} of the rows, "
        f"those in the data for {there}; the most frequent one is right for {_usual(content)} of "
        "them."
    )


def _usual(content: PageContent) -> str:
    """Share of the largest group among the rows that have a label."""
    values = next(values for _, values in content.labels if values.dtype.kind == "O")
    known = [str(value) for value in values.tolist() if value is not None]
    return percent(max(Counter(known).values()) / len(known))


def _distances(far: float | None, near_kept: float, far_kept: float) -> str:
    near = f"{percent(near_kept)} of the nearest fifth of all pairs"
    away = f"{percent(far_kept)} of the farthest fifth"
    if far is None:
        return f"{near[0].upper()}{near[1:]} stay near, {away} stay far."
    if far >= FAR_IN_ORDER:
        return f"The map keeps most of the order of distances: {near} stay near, {away} stay far."
    if far >= FAR_IN_PART:
        return (
            f"The map keeps distances only in part: {near} stay near, {away} stay far. Read from "
            "it which rows are alike, and be careful with which groups are."
        )
    return (
        f"The map does not keep distances: {near} stay near, {away} stay far. Do not read from it "
        "which groups are close to each other."
    )


def _cautions(content: PageContent, far: float | None) -> Bullets:
    """List what not to read from the map, with numbers if there are any."""
    k = content.Y.shape[1] if content.Y is not None else 2
    spreads = "many methods spread" if content.made_elsewhere else "t-SNE spreads"
    draws = "draw" if content.made_elsewhere else "draws"
    items = [
        f"The size of a group: {spreads} dense groups out and {draws} loose ones together, so a "
        "large patch is not a varied group.",
        _gaps(far),
        "The axes" if k > 1 else "The direction of the line",
    ]
    items[2] += ": they have no unit and no meaning, and the map could be rotated or mirrored."
    items.append(
        "A lone row or a thin bridge: check its neighbours in the data (click the row) and its "
        "trust before it becomes a finding."
    )
    return Bullets("What not to read from it", tuple(items))


def _gaps(far: float | None) -> str:
    if far is None:
        return "The width of a gap: groups side by side need not be more alike than others."
    rho = f"rank correlation of distances {far:.2f}"
    if far >= FAR_IN_ORDER:
        return (
            f"The width of a gap: the map keeps most of the order of distances ({rho}), not their "
            "size."
        )
    return (
        f"The width of a gap ({rho}): two groups side by side need not be more alike than two that "
        "are far apart."
    )


def _histogram(kept: Array, k: int) -> charts.Chart:
    half = float(np.median(kept))
    some = "all" if half == 1 else f"{percent(half)} or more"
    return charts.histogram(
        kept,
        title="Trust, row by row",
        subtitle=f"At least half of the rows keep {some} of their neighbours.",
        axis="trust: share of the nearest row kept"
        if k == 1
        else f"trust: share of {k} neighbours",
    )


def _scores(quality: MapScores) -> Grid:
    scores = {
        "neighbours kept": quality.recall,
        "trustworthiness": quality.trustworthiness,
        "continuity": quality.continuity,
        "order of neighbours": quality.order,
    }
    rows = tuple(
        (name, *(f"{v:.3f}" if np.isfinite(v) else "–" for v in score.mean))
        for name, score in scores.items()
    )
    note = (
        ""
        if quality.exact
        else (
            f"Means over {len(quality.rows):,} rows drawn at random, each compared with all rows; "
            f"standard errors up to {float(np.nanmax(quality.recall.standard_error)):.3f}."
        )
    )
    head = ("neighbours", *(str(k) for k in quality.n_neighbors))
    words = frozenset({"neighbours"})
    return Grid("Scores by size of neighbourhood", head, rows, words, note)


def _groups(content: PageContent, kept: Array) -> Grid | None:
    """Mean trust of each group, lowest first."""
    found = next(((n, v) for n, v in content.labels if v.dtype.kind == "O"), None)
    if found is None:
        return None
    name, values = found[0], np.array([_text(v) for v in found[1].tolist()], dtype=object)
    groups = {group: kept[values == group] for group in dict.fromkeys(values.tolist())}
    if not 2 <= len(groups) <= content.n // 2:
        return None
    order = sorted(groups, key=lambda group: float(groups[group].mean()))
    some = f"; {MOST_GROUPS} of {len(order):,} groups" if len(order) > MOST_GROUPS else ""
    rows = tuple(
        (
            shown(group),
            f"{groups[group].size:,}",
            percent(float(groups[group].mean())),
            percent(float((groups[group] < LITTLE).mean())),
        )
        for group in order[:MOST_GROUPS]
    )
    first = shown(name, 32)
    return Grid(
        f"Trust by {first}, lowest first{some}",
        (first, "rows", "mean trust", "rows below a third"),
        rows,
        frozenset({first}),
    )


def _among(content: PageContent) -> tuple[Grid, ...]:
    """List rows whose neighbours bear another label, those that only the map puts there first."""
    found = content.neighbor_labels
    if found is None or not (rows := found.on_map).size:
        return ()
    name, values = content.labels[0]
    alone = found.only_on_map[rows]
    order = np.concatenate([rows[alone], rows[~alone]])
    cells = tuple(
        (
            row_link(content, int(row)),
            shown(values[row], 24),
            shown(found.other_on_map[row], 24),
            percent(float(found.same_on_map[row])),
            percent(float(found.same_in_data[row])),
            "only on the map" if found.only_on_map[row] else "in the data, too",
        )
        for row in order[:MOST_AMONG]
    )
    first = shown(name, 32)
    listed = f"{len(cells)} of {rows.size:,} rows. " if rows.size > len(cells) else ""
    note = (
        f"{listed}Fewer than half of these rows' {content.trusted} nearest rows on the map have "
        "their label. In the data, too: an unusual row of its group, or a wrong label. Only on the "
        "map: the map put it there."
    )
    head = ("row", first, "neighbours", "own label on the map", "in the data", "among others")
    words = frozenset({"row", first, "neighbours", "among others"})
    return (Grid(f"Rows among another {first}", head, cells, words, note),)


def _least(content: PageContent, kept: Array) -> tuple[Grid, ...]:
    """List the rows with the lowest trust."""
    order = np.argsort(kept, kind="stable")[:MOST_ROWS]
    order = order[kept[order] < LITTLE]
    if not order.size:
        return ()
    lost = int((kept < LITTLE).sum())
    rows = []
    for row in map(int, order):
        near = content.neighbors[row, :1]
        nearest = row_link(content, int(near[0])) if near.size else "–"
        rows.append((row_link(content, row), percent(float(kept[row])), nearest))
    note = f"{len(rows)} of the {lost:,} rows whose trust is below a third."
    head = ("row", "trust", "nearest in the data")
    words = frozenset({"row", "nearest in the data"})
    caption = "Rows with the lowest trust"
    return (Grid(caption, head, tuple(rows), words, note if lost > len(rows) else ""),)


def _audit(content: PageContent) -> tuple[Words, ...]:
    """Point to the test of each row, where the page has none."""
    if content.audit is not None:
        return ()
    how = "gnomon audit and the folder of this run" if content.command else "gnomon.audit(X, tsne)"
    return (Words(f"Is each row placed better than at random? {how} tests it."),)


def _text(value: object) -> str:
    return "no label" if value is None else str(value)
