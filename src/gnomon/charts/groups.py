"""Points by group or by value: the colour and shape of each row, and the key."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import colours, words
from gnomon.charts.canvas import LEFT, RIGHT, Canvas, coordinate
from gnomon.charts.label_placement import Box, Wanted, around_point, place
from gnomon.charts.text import clean, shorten, shorten_apart, width
from gnomon.charts.theme import SIZES
from gnomon.errors import refuse

__all__ = [
    "Group",
    "draw_key",
    "draw_points",
    "drawn_rows",
    "group_rows",
    "name_groups",
    "natural",
]

SHAPES = ("round", "open", "triangle")
# Each has its own colour, and each shade of the hues a shape; rarer groups share a muted mark.
MOST_GROUPS = colours.GROUPS
# Numbers with more distinct values than this are a quantity, not group names.
MOST_NUMBERS = 12
# Up to this many, every point is a separate mark with a fine edge; beyond, one path per group.
FEW_POINTS = 1500
# Groups with their name beside them; more would cover the points, so a key is drawn instead.
MOST_NAMED_GROUPS = 12

Point = tuple[float, float]


@dataclass(frozen=True)
class Group:
    """Rows of the same colour and shape.

    Attributes
    ----------
    name : str
        Text of the key or label; empty for a step of a ramp.
    rows : array of int
        Indices of the rows.
    colour : str
        Name of a colour of the theme.
    shape : str
        One of `SHAPES`.
    """

    name: str
    rows: NDArray[np.intp]
    colour: str
    shape: str = "round"


def drawn_rows(total: int, most: int) -> NDArray[np.intp]:
    """Rows that are drawn, in order: all, or `most` of them at random, the same every time."""
    if total <= most:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).choice(total, most, replace=False))


def group_rows(
    labels: Any, n: int, chosen: NDArray[np.intp], unlabelled: str = "no label"
) -> tuple[list[Group], tuple[float, float] | None]:
    """Group the `chosen` of `n` rows; also return the range if the labels are a quantity.

    A group's rows are indices into `chosen`; its colour is that of the group among all rows.

    Text, booleans and a few distinct numbers are groups, in the order of their names. Other
    numbers are a quantity, and its groups are the steps of a ramp. Rows without a label (None,
    NaN, masked) come first, as a separate muted group called `unlabelled`.
    """
    if labels is None:
        return [Group("", np.arange(chosen.size), "accent")], None
    array = np.asarray(labels)
    if array.shape != (n,):
        refuse("labels", f"hold one value for each of the {n} rows", f"shape {array.shape}")
    if array.dtype.kind in "mM":
        absent = np.isnat(array)
        array = array.astype(str).astype(object)
        array[absent] = None
    missing = np.array([_is_missing(value) for value in array.tolist()], dtype=bool)
    if isinstance(labels, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(labels)
    known = np.flatnonzero(~missing[chosen])
    lost = np.flatnonzero(missing[chosen])
    muted = [Group(unlabelled, lost, "quiet")] if lost.size else []
    if array.dtype.kind in "iuf" and len(np.unique(array[~missing])) > MOST_NUMBERS:
        low, high = float(array[~missing].min()), float(array[~missing].max())
        values = array[chosen][known].tolist()
        steps = np.array([colours.sequential(float(value), low, high) for value in values])
        ramp = [Group("", known[steps == s], f"v{s}") for s in range(colours.SEQUENTIAL)]
        return [*muted, *(group for group in ramp if group.rows.size)], (low, high)
    counts = Counter(clean(value) for value in array[~missing].tolist())
    texts = [clean(value) for value in array[chosen][known].tolist()]
    return [*muted, *_categories(counts, texts, known)], None


def _is_missing(value: object) -> bool:
    # By name, because pandas need not be installed: its NA refuses to be compared.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and not math.isfinite(value)


def _categories(counts: Counter[str], texts: list[str], rows: NDArray[np.intp]) -> list[Group]:
    """Groups of the rows that are drawn; `counts` counts all rows."""
    # Colours are assigned by name, not by size, and over all rows, not only those drawn, so that
    # a group has one colour in every chart of a table; web/src/colouring.ts has the same rule.
    most = MOST_GROUPS if len(counts) <= MOST_GROUPS else MOST_GROUPS - 1
    frequent = sorted(counts, key=lambda name: (-counts[name], natural(name)))[:most]
    own = sorted(frequent, key=natural)
    codes = {name: i for i, name in enumerate(own)}
    of_row = np.array([codes.get(text, -1) for text in texts], dtype=np.intp)
    groups = [
        Group(name, rows[of_row == i], f"c{i}", SHAPES[i // colours.CATEGORIES])
        for i, name in enumerate(own)
    ]
    groups = [group for group in groups if group.rows.size]
    if len(own) < len(counts):
        name = words.count(len(counts) - len(own), "other group")
        groups.insert(0, Group(name, rows[of_row == -1], "quiet"))
    return groups


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that orders "class 2" before "class 10"."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part[:18]), "") if part.isdecimal() else (-1, part) for part in parts]


def draw_points(
    canvas: Canvas, points: Sequence[Point], groups: list[Group], *, small: bool = False
) -> None:
    """Draw all points; one path per group if there are many, which keeps the file small."""
    radius = 4.0 if len(points) <= 250 else 3.2 if len(points) <= FEW_POINTS else 2.2
    dots = "dots"
    if small:
        dots, radius = ("dots small", 1.3) if len(points) > 500 else ("dots", 2.2)
    for group in groups:
        at = [points[row] for row in group.rows]
        if len(points) <= FEW_POINTS and not small:
            for x, y in at:
                draw_mark(canvas, x, y, radius, group)
        elif group.shape == "triangle":
            canvas.path("".join(_triangle(x, y, radius) for x, y in at), f"{group.colour} many")
        else:
            # A line of zero length with a round cap is a dot as wide as the line.
            d = "".join(f"M{coordinate(x)} {coordinate(y)}h0" for x, y in at)
            canvas.path(d, f"line-{group.colour} {dots}")
            if group.shape == "open":
                canvas.path(d, f"{dots} hole")


def draw_mark(canvas: Canvas, x: float, y: float, radius: float, group: Group) -> None:
    """Draw one point of a group as a separate mark."""
    if group.shape == "round":
        canvas.circle(x, y, radius, f"{group.colour} point")
    elif group.shape == "open":
        canvas.circle(x, y, radius - 0.75, f"line-{group.colour} open")
    else:
        canvas.path(_triangle(x, y, radius), f"{group.colour} point")


def name_groups(
    canvas: Canvas, points: Sequence[Point], groups: list[Group], bounds: Box, avoid: Sequence[Box]
) -> tuple[list[Box], bool]:
    """Write each group's name at its centre; return the boxes taken and whether a key is needed.

    A key is needed if not every name fits: a name that stands nearer to the centre of another group
    would name that one.
    """
    named = [group for group in groups if group.name and group.rows.size]
    if not named or len(named) > MOST_NAMED_GROUPS:
        return [], bool(named)
    size = SIZES["label"]
    texts = shorten_apart([group.name for group in named], 130, size, bold=True)
    centres = np.array([np.median([points[row] for row in group.rows], axis=0) for group in named])
    wanted = []
    for i, text in enumerate(texts):
        room = width(text, size, bold=True) + 16
        spots = around_point(float(centres[i, 0]), float(centres[i, 1]), size)
        own = [spot for spot in spots if _nearest(centres, spot.box(room, size)) == i]
        wanted.append(Wanted(room, size, own))
    boxes = []
    for label, spot in zip(wanted, place(wanted, bounds, avoid=avoid), strict=True):
        if spot is None:
            return [], True
        boxes.append(spot.box(label.width, size))
    for group, text, box in zip(named, texts, boxes, strict=True):
        across, down = box.right - box.left, box.bottom - box.top
        canvas.rect(box.left - 3, box.top - 1, across + 6, down + 2, "plate", round=9)
        draw_mark(canvas, box.left + 7, (box.top + box.bottom) / 2, 4.5, group)
        baseline = box.bottom - 0.25 * size - 1
        canvas.text(box.left + 16, baseline, text, "label ink bold", tip=group.name)
    return boxes, False


def _nearest(centres: NDArray[np.float64], box: Box) -> int:
    """Group whose centre is nearest to the middle of a box."""
    middle = ((box.left + box.right) / 2, (box.top + box.bottom) / 2)
    return int(np.hypot(*(centres - middle).T).argmin())


def draw_key(
    canvas: Canvas,
    y: float,
    groups: list[Group],
    span: tuple[float, float] | None,
    name: object = None,
) -> float:
    """Draw a key below the chart: the ramp with its range, or the groups' names; return its end.

    `name` is the quantity of the ramp.
    """
    if span is not None:
        title = clean("label" if name is None else name)
        size = SIZES["label"]
        shown = shorten(title, 200, size)
        canvas.text(LEFT, y, shown, "label soft", tip=title)
        left = LEFT + width(shown, size) + 14
        for step in range(colours.SEQUENTIAL):
            canvas.rect(left + 22 * step, y - 9, 21, 10, f"v{step}", round=1)
        canvas.text(left, y + 19, words.number(span[0]), "tick soft")
        right = left + 22 * colours.SEQUENTIAL
        canvas.text(right, y + 19, words.number(span[1]), "tick soft", "end")
        return y + 20
    x, size = LEFT, SIZES["label"]
    names = shorten_apart([group.name for group in groups], 230, size)
    for group, name in zip(groups, names, strict=True):
        if x > LEFT and x + 16 + width(name, size) > RIGHT:
            x, y = LEFT, y + 22
        draw_mark(canvas, x + 5, y - 5, 4.5, group)
        canvas.text(x + 16, y, name, "label ink", tip=group.name)
        x += 16 + width(name, size) + 18
    return y + 8


def _triangle(x: float, y: float, radius: float) -> str:
    half = 1.1 * radius
    up, base = coordinate(-1.9 * radius), coordinate(2 * half)
    return (
        f"M{coordinate(x - half)} {coordinate(y + 0.9 * radius)}h{base}l{coordinate(-half)} {up}z"
    )
