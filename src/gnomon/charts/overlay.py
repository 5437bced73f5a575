"""Overlay: two sets of the same points in one frame, with a line between each pair."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import words
from gnomon.charts.canvas import LEFT, Canvas, coordinate
from gnomon.charts.chart import Chart
from gnomon.charts.groups import drawn_rows
from gnomon.charts.plane import plane_around
from gnomon.charts.projection import read_positions
from gnomon.charts.text import clean, shorten, width
from gnomon.charts.theme import SIZES
from gnomon.errors import refuse
from gnomon.typing import Array

__all__ = ["OverlayData", "overlay", "overlay_data"]

MOST_POINTS = 5_000
FEW_POINTS = 60  # up to this many, labels are written beside the points
COLOURS = ("c0", "c1")


@dataclass(frozen=True, eq=False)
class OverlayData:
    """What an overlay shows, whatever draws it.

    Attributes
    ----------
    X, Y : arrays (m, 2)
        Points of both sets that are drawn.
    rows : array (m,) of int
        Which rows they are.
    names : pair of str
        What the sets are.
    texts : list of str or None
        Names of the points, where they are few enough to be written.
    subtitle : str
    """

    X: Array
    Y: Array
    rows: NDArray[np.intp]
    names: tuple[str, str]
    texts: list[str] | None
    subtitle: str


def overlay_data(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    names: tuple[str, str] = ("X", "Y"),
    most_points: int = MOST_POINTS,
) -> OverlayData:
    """Compute what the overlay of `X` and `Y` shows."""
    X, Y = read_positions(X, "X"), read_positions(Y, "Y")
    for name, Z in (("X", X), ("Y", Y)):
        if Z.shape[1] != 2:
            refuse(name, "have shape (n, 2)", f"shape {Z.shape}")
    if len(X) != len(Y):
        refuse("Y", f"have {len(X)} rows, as many as X", len(Y), "Join them first: gnomon.align.")
    texts = None if labels is None else [clean(label) for label in np.asarray(labels).tolist()]
    if texts is not None and len(texts) != len(X):
        refuse("labels", f"hold one name for each of the {len(X)} rows", len(texts))
    rows = drawn_rows(len(X), most_points)
    called = clean(names[0]), clean(names[1])
    few = texts if len(X) <= FEW_POINTS else None
    return OverlayData(X[rows], Y[rows], rows, called, few, _subtitle(X, Y, called))


def overlay(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    names: tuple[str, str] = ("X", "Y"),
    title: str = "Two sets of points",
) -> Chart:
    """Plot points of `X` and of `Y` in one plane, with a line between each pair.

    Both directions have the same unit, so lengths of lines are exact. Draw the original sets,
    and again with ``found.aligned`` of `gnomon.align` instead of `X`, to see what a rotation
    can align and what it cannot.

    Parameters
    ----------
    X, Y : arrays (n, 2)
        Row i of both is the same point. With more than 5,000 rows, a sample of them (the same
        every time) is drawn.
    labels : array-like, shape (n,), optional
        Names of the points, written beside those of `Y` if there are at most 60.
    names : pair of str
        Names of the two sets.
    title : str

    Returns
    -------
    Chart

    Examples
    --------
    >>> from gnomon import align, charts, samples
    >>> X = samples.load("iris").X
    >>> found = align(X[:, :2], X[:, 2:])
    >>> charts.overlay(found.aligned, X[:, 2:], names=("sepals", "petals")).title
    'Two sets of points'
    """
    data = overlay_data(X, Y, labels, names=names)
    canvas = Canvas(title, data.subtitle)
    plane = plane_around(np.vstack([data.X, data.Y]), canvas.top + 12)
    at_x, at_y = [plane(x) for x in data.X], [plane(y) for y in data.Y]
    lines = "".join(
        f"M{coordinate(a)} {coordinate(b)}L{coordinate(c)} {coordinate(d)}"
        for (a, b), (c, d) in zip(at_x, at_y, strict=True)
    )
    canvas.path(lines, "line line-soft fine")
    few = len(at_x) <= FEW_POINTS
    for at, colour in ((at_y, COLOURS[1]), (at_x, COLOURS[0])):
        if few:
            for x, y in at:
                canvas.circle(x, y, 4.5, f"{colour} ring")
        else:
            d = "".join(f"M{coordinate(x)} {coordinate(y)}h0" for x, y in at)
            canvas.path(d, f"line-{colour} dots small")
    if data.texts is not None:
        for (x, y), text in zip(at_y, data.texts, strict=True):
            shown = shorten(text, 90, SIZES["tick"])
            canvas.text(x + 7, y - 6, shown, "tick ink halo", tip=text)
    end = _draw_names(canvas, plane.box.bottom + 26, data.names)
    return canvas.finish(end)


def _draw_names(canvas: Canvas, y: float, names: tuple[str, str]) -> float:
    x = LEFT
    for name, colour in zip(names, COLOURS, strict=True):
        shown = shorten(name, 220, SIZES["label"])
        canvas.circle(x + 5, y - 5, 4.5, f"{colour} ring")
        canvas.text(x + 16, y, shown, "label ink", tip=name)
        x += 16 + width(shown, SIZES["label"]) + 18
    return y + 20


def _subtitle(X: Array, Y: Array, names: tuple[str, str]) -> str:
    points = words.count(len(X), "point")
    spread = float(np.max(np.ptp(np.vstack([X, Y]), axis=0)))
    if spread == 0:
        return f"{points}, all in one place: there is nothing to tell them apart by."
    one, other = names
    # Scaled before it is squared: coordinates may be as large as floats go.
    apart = np.sqrt(np.mean(np.sum(((X - Y) / spread) ** 2, axis=1)))
    apart_in_words = words.number(float(apart) * spread)
    return f"{points} of {one} and of {other}, {apart_in_words} apart (root mean square)."
