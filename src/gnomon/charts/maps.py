"""Maps: several maps of the same rows side by side, each in its own frame."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnomon.charts import words
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.groups import draw_key, draw_points, drawn_rows, group_rows
from gnomon.charts.projection import read_positions, seen
from gnomon.charts.text import clean, shorten
from gnomon.charts.theme import SIZES
from gnomon.errors import refuse
from gnomon.typing import Array

__all__ = ["maps"]

MOST_POINTS = 5_000  # points in each panel
MOST_MAPS = 12
GAP = 16.0


def maps(
    positions: Mapping[str, Any],
    labels: Any = None,
    *,
    notes: Mapping[str, Sequence[object]] | None = None,
    unlabelled: str = "no label",
    title: str = "Maps side by side",
    turn: tuple[float, float] = (35.0, 25.0),
) -> Chart:
    """Draw maps of the same rows by several methods, settings or starts.

    Every map fills its own panel: sizes and directions cannot be compared between panels, the
    neighbours of a point can.

    Parameters
    ----------
    positions : mapping from name to array (n, 1), (n, 2) or (n, 3), or to a fitted model
        Up to 12 maps of the same n rows. With more than 5,000 rows, a sample of them (the same
        every time) is drawn.
    labels : array-like, shape (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers), for colour.
    notes : mapping from name to lines of text, optional
        Text below a map, such as its scores.
    unlabelled : str
        Name of the rows without a label, which are grey.
    title : str
    turn : pair of float
        For three dimensions: rotation about the vertical axis and elevation, in degrees.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from gnomon import PCA, TSNE, charts, samples
    >>> iris = samples.load("iris")
    >>> both = {"PCA": PCA(2).fit_transform(iris.X), "t-SNE": TSNE(max_iter=300).fit(iris.X)}
    >>> charts.maps(both, iris.labels).title
    'Maps side by side'
    """
    if not isinstance(positions, Mapping) or not 1 <= len(positions) <= MOST_MAPS:
        must = f"be a mapping from 1 to {MOST_MAPS} names to maps"
        got = len(positions) if isinstance(positions, Mapping) else positions
        refuse("positions", must, got, kind=not isinstance(positions, Mapping))
    tables = {name: read_positions(Y, f"positions[{name!r}]") for name, Y in positions.items()}
    sizes = {len(Y) for Y in tables.values()}
    if len(sizes) > 1:
        refuse("positions", "all hold the same rows", f"{sorted(sizes)} rows")
    (total,) = sizes
    rows = drawn_rows(total, MOST_POINTS)
    groups, span = group_rows(labels, total, rows, unlabelled)
    said = {name: [clean(line) for line in (notes or {}).get(name, ())] for name in tables}

    canvas = Canvas(title, _subtitle(tables, total))
    across, ratio = _layout(tables)
    side = (RIGHT - LEFT - GAP * (across - 1)) / across
    height = ratio * side
    lines = max(len(text) for text in said.values())
    top = canvas.top + 10
    step = 26 + height + 18 * lines + GAP
    for i, (name, Y) in enumerate(tables.items()):
        left, y = LEFT + (side + GAP) * (i % across), top + step * (i // across)
        label = clean(name)
        shown = shorten(label, side, SIZES["label"], bold=True)
        canvas.text(left, y + 14, shown, "label ink bold", tip=label)
        canvas.rect(left, y + 24, side, height, "grid", round=6)
        points = _into(seen(Y, turn)[0][rows], left, y + 24, side, height)
        draw_points(canvas, points, groups, small=True)
        for j, text in enumerate(said[name]):
            line = shorten(text, side, SIZES["tick"])
            canvas.text(left, y + 24 + height + 18 * (j + 1), line, "tick soft", tip=text)
    end = top + step * -(-len(tables) // across)
    if span is not None or any(group.name for group in groups):
        end = draw_key(canvas, end + 14, groups, span, name=getattr(labels, "name", None))
    details = [": ".join(filter(None, [clean(name), ", ".join(said[name])])) for name in tables]
    return canvas.finish(end + 14, "; ".join(details) + ".")


def _layout(tables: dict[str, Array]) -> tuple[int, float]:
    """Number of panels side by side, and their height as a share of their width."""
    if all(Y.shape[1] == 1 for Y in tables.values()):
        return 1, 0.14  # lines, one below the other
    if len(tables) == 1:
        return 1, 0.8
    return (2, 1.0) if len(tables) in (2, 4) else (3, 1.0)


def _into(
    points: Array, left: float, top: float, across: float, down: float
) -> list[tuple[float, float]]:
    """Scale and centre `points` to fill a panel."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, span = low / 2 + high / 2, high / 2 - low / 2  # halves: sums may overflow
    room = np.array([across, down]) / 2 * 0.94
    unit = float(np.max(span / room)) or 1.0
    at = (points - middle) / unit * [1, -1] + [left + across / 2, top + down / 2]
    return [(float(x), float(y)) for x, y in at]


def _subtitle(tables: dict[str, Array], total: int) -> str:
    rows = words.count(total, "row")
    if all(float(np.ptp(Y, axis=0).max()) == 0 for Y in tables.values()):
        return f"{rows}, all in one place: there is nothing to tell them apart by."
    rows = f"A sample of {MOST_POINTS:,} of {rows}" if total > MOST_POINTS else rows
    many = words.count(len(tables), "map")
    return f"{rows} on {many}, each in its own frame: compare neighbours, not sizes or directions."
