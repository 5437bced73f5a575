"""Arrows from the origin with their names: the columns of a biplot or a correlation circle."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gnomon.charts.canvas import Canvas, coordinate
from gnomon.charts.label_placement import Box, Wanted, beyond_tip, place
from gnomon.charts.text import shorten, width
from gnomon.charts.theme import SIZES

__all__ = ["Arrow", "draw_arrows", "name_arrows", "shafts"]

HEAD = 7.0
SHORTEST_NAME = 80.0


@dataclass(frozen=True)
class Arrow:
    """An arrow to (x, y) on the drawing, with its column's name, colour and tooltip."""

    x: float
    y: float
    name: str
    colour: str
    tip: str


def draw_arrows(canvas: Canvas, origin: tuple[float, float], arrows: Iterable[Arrow]) -> None:
    """Draw the arrows without their names."""
    for arrow in arrows:
        path = _arrow_path(*origin, arrow.x, arrow.y)
        canvas.path(path, f"line arrow line-{arrow.colour}", arrow.tip)


def name_arrows(
    canvas: Canvas,
    origin: tuple[float, float],
    arrows: list[Arrow],
    bounds: Box,
    *,
    longest: float,
    taken: Iterable[Box] = (),
) -> int:
    """Write the names that fit, in order of priority; return how many are left out.

    A name stays within `bounds`, off what is `taken`, and off other arrows if possible; one wider
    than `longest` is shortened.
    """
    x0, y0 = origin
    size = SIZES["label"]
    names = [shorten(a.name, _room(a, x0, bounds, longest), size) for a in arrows]
    wanted = [
        Wanted(width(name, size), size, beyond_tip(a.x, a.y, a.x - x0, a.y - y0, size))
        for a, name in zip(arrows, names, strict=True)
    ]
    spots = place(wanted, bounds, taken, avoid=shafts(origin, arrows))
    for arrow, name, label, spot in zip(arrows, names, wanted, spots, strict=True):
        if spot is not None:
            _draw_leader(canvas, arrow, spot.box(label.width, label.size))
            canvas.text(spot.x, spot.y, name, "label ink halo", spot.anchor, tip=arrow.tip)
    return spots.count(None)


def shafts(origin: tuple[float, float], arrows: Iterable[Arrow]) -> list[Box]:
    """Small boxes that cover the arrows, except near the origin where all of them meet."""
    return [box for arrow in arrows for box in _along(*origin, arrow.x, arrow.y)]


def _room(arrow: Arrow, x0: float, bounds: Box, longest: float) -> float:
    """Room beyond the arrow's tip, if a name shortened to it would still be recognisable."""
    beyond = bounds.right - arrow.x if arrow.x > x0 else arrow.x - bounds.left
    return min(longest, beyond - 14) if beyond - 14 >= SHORTEST_NAME else longest


def _along(x0: float, y0: float, x: float, y: float) -> list[Box]:
    steps = int(math.hypot(x - x0, y - y0) // 8)
    at = ((x0 + (x - x0) * i / steps, y0 + (y - y0) * i / steps) for i in range(1, steps + 1))
    return [Box(cx - 2, cy - 2, cx + 2, cy + 2) for cx, cy in at]


def _draw_leader(canvas: Canvas, arrow: Arrow, box: Box) -> None:
    """Draw a fine line from the tip to a name that was moved away from it."""
    x = min(max(arrow.x, box.left), box.right)
    y = min(max(arrow.y, box.top + 2), box.bottom - 2)
    if math.hypot(x - arrow.x, y - arrow.y) > 14:
        canvas.line(arrow.x, arrow.y, x, y, "line line-soft fine")


def _arrow_path(x0: float, y0: float, x: float, y: float) -> str:
    length = math.hypot(x - x0, y - y0)
    shaft = f"M{coordinate(x0)} {coordinate(y0)}L{coordinate(x)} {coordinate(y)}"
    if length < 1:
        return shaft
    head = min(HEAD, length / 2)
    cos, sin = (x - x0) / length, (y - y0) / length
    barbs = [
        (x - head * (cos - 0.5 * side * sin), y - head * (sin + 0.5 * side * cos))
        for side in (1, -1)
    ]
    (ax, ay), (bx, by) = barbs
    return (
        f"{shaft}M{coordinate(ax)} {coordinate(ay)}L{coordinate(x)} {coordinate(y)}"
        f"L{coordinate(bx)} {coordinate(by)}"
    )
