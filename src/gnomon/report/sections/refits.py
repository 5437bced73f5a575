"""Stability: which points stay in place when the map is computed again."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import number, percent
from gnomon.procrustes.stability import Stability
from gnomon.report.content import PageContent
from gnomon.report.section import Facts, Figures, Grid, Section, row_link
from gnomon.scores.few_rows import FEW_ROWS

__all__ = ["refits"]

MOST_POINTS = 4_000
MOST_ROWS = 8
MOVES, SHAKY = 1.0, 2.0  # of neighbour distances: a point that moves, one that jumps

VARIED = {
    "rows": "with other rows left out each time",
    "start": "from a random start each time",
}
HELP = (
    "The map was computed several times, all maps were aligned by Procrustes, and each "
    "point's distance from its mean place was compared with that of its nearest neighbours. "
    "Below 1 a point stays among its neighbours.",
    "A point may move with its neighbours, when a whole group finds another place, or alone, when "
    "the data do not determine its place. Do not name groups whose points move alone.",
)


def refits(content: PageContent) -> Section | None:
    """Build the seventh section; None unless it was requested."""
    found = content.stability
    if found is None:
        return None
    kinds = np.where(
        found.spread < MOVES, "stays", np.where(found.spread < SHAKY, "moves", "jumps")
    )
    mapped = charts.scatter(
        found.mean,
        kinds.astype(object),
        title="Mean of all maps, by stability",
        most_points=MOST_POINTS,
    )
    histogram = charts.histogram(
        found.spread,
        title="Movement, row by row",
        subtitle=f"Half of the rows move by {number(float(np.median(found.spread)), 2)} of the "
        "distance of their neighbours or less.",
        axis="movement in distances of neighbours",
        span=(0.0, max(SHAKY, float(np.quantile(found.spread, 0.99)))),
    )
    return Section(
        "stability",
        "Is it stable?",
        (*_verdict(found), _sentence(found), _together(found)),
        (Figures((mapped, histogram)), Facts(tuple(found.lines())), _worst(content, found)),
        HELP,
    )


def _verdict(found: Stability) -> list[str]:
    return [] if len(found.mean) < FEW_ROWS else [found.verdict()]


def _sentence(found: Stability) -> str:
    n = len(found.mean)
    some = (
        f"Of only {n} points, {percent(found.score)}"
        if n < FEW_ROWS
        else (f"{percent(found.score)} of the points")
    )
    return (
        f"{some} stay among their neighbours when the map is computed {len(found.runs)} times, "
        f"{VARIED.get(found.vary, found.vary)}."
    )


def _together(found: Stability) -> str:
    """Describe how the other points move."""
    moving = found.spread >= MOVES
    many = int(moving.sum())
    if not many:
        return "No point moves farther than its neighbours are away."
    together, alone = (
        float(np.median(part[moving])) for part in (found.moved_with, found.moved_alone)
    )
    who = "The other point moves" if many == 1 else f"The other {many:,} points move"
    if together <= alone:
        return f"{who}, mostly alone: the data do not determine their places."
    if found.far:
        return f"{who}, mostly with their neighbours: whole groups change places."
    return f"{who}, mostly with their neighbours: patches shift a little as a whole."


def _worst(content: PageContent, found: Stability) -> Grid:
    rows = tuple(
        (
            row_link(content, int(row)),
            f"{number(float(found.spread[row]), 2)}×",
            f"{number(float(found.moved_with[row]), 2)}×",
            f"{number(float(found.moved_alone[row]), 2)}×",
        )
        for row in np.argsort(-found.spread, kind="stable")[:MOST_ROWS]
    )
    return Grid(
        "Rows that move most, in distances of neighbours",
        ("row", "in all", "with neighbours", "alone"),
        rows,
        frozenset({"row"}),
    )
