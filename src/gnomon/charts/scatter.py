"""Scatter: a map's points by group or by value, without axes, which would have no meaning."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import words
from gnomon.charts.canvas import Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.groups import Group, draw_key, draw_points, drawn_rows, group_rows, name_groups
from gnomon.charts.plane import plane_around
from gnomon.charts.projection import read_positions, seen
from gnomon.inputs import check_integer
from gnomon.typing import Array

__all__ = ["ScatterData", "scatter", "scatter_data"]

MOST_POINTS = 20_000
REMARK = "Neighbours are alike; gaps mean little."  # true of t-SNE, not of all maps


@dataclass(frozen=True, eq=False)
class ScatterData:
    """What a scatter chart shows, whatever draws it.

    Attributes
    ----------
    points : array (m, 2)
        Places of the rows that are drawn, as they are seen, in the order in which they are drawn.
    centre : array (2,)
        The mean of all rows, as it is seen.
    rows : array (m,) of int
        Which rows they are.
    groups : list of Group
        By colour; the rows of a group are places in `points`.
    span : pair of float or None
        Range of the values, where the labels are a quantity.
    subtitle : str
    """

    points: Array
    centre: Array
    rows: NDArray[np.intp]
    groups: list[Group]
    span: tuple[float, float] | None
    subtitle: str


def scatter_data(
    positions: Any,
    labels: Any = None,
    *,
    turn: tuple[float, float] = (35.0, 25.0),
    most_points: int = MOST_POINTS,
    remark: str = REMARK,
) -> ScatterData:
    """Compute what the scatter chart of `positions` shows."""
    Y = read_positions(positions)
    total = len(Y)
    rows = drawn_rows(total, check_integer("most_points", most_points, 1))
    points, depth = seen(Y[rows], turn)
    mean = Y.mean(axis=0)
    # On a line the height is only for points to be seen.
    centre = np.array([mean[0], 0.0]) if len(mean) == 1 else seen(mean[None], turn)[0][0]
    # Nearer points later, so that they are drawn over the others.
    nearer_later = np.argsort(depth, kind="stable")
    rows, points = rows[nearer_later], points[nearer_later]
    groups, span = group_rows(labels, total, rows)
    return ScatterData(points, centre, rows, groups, span, _subtitle(Y, most_points, remark))


def scatter(
    positions: Any,
    labels: Any = None,
    *,
    title: str = "Map",
    turn: tuple[float, float] = (35.0, 25.0),
    most_points: int = MOST_POINTS,
    remark: str = REMARK,
) -> Chart:
    """Plot the points of a map in 1, 2 or 3 dimensions.

    Both directions have the same unit. Points on a line are spread over a strip to be visible, and
    points in space are projected along `turn`, the nearer ones over the farther.

    Parameters
    ----------
    positions : array (n, 1), (n, 2) or (n, 3), or a fitted model with `embedding_`
        With more than `most_points` rows, a sample of them (the same every time) is drawn.
    labels : array-like, shape (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers), for colour.
    title : str
    turn : pair of float
        For three dimensions: rotation about the vertical axis and elevation, in degrees.
    most_points : int
    remark : str
        How to read the chart, written below the title.

    Returns
    -------
    Chart
    """
    data = scatter_data(positions, labels, turn=turn, most_points=most_points, remark=remark)
    points, groups, span = data.points - data.centre, data.groups, data.span

    canvas = Canvas(title, data.subtitle)
    plane = plane_around(points, canvas.top + 16)
    end = plane.box.bottom
    at = [plane(point) for point in points]
    draw_points(canvas, at, groups)
    keyed = True
    if span is None:
        _, keyed = name_groups(canvas, at, groups, plane.box, avoid=[])
    if keyed:
        end = draw_key(canvas, end + 32, groups, span, name=getattr(labels, "name", None))
    details = [f"{g.name}: {words.count(g.rows.size, 'point')} drawn" for g in groups if g.name]
    return canvas.finish(end + 26, "; ".join(details) + "." if details else "")


def _subtitle(Y: Array, most_points: int, remark: str) -> str:
    total, dimensions = Y.shape
    rows = words.count(total, "row")
    if not np.ptp(Y, axis=0).any():
        return f"{rows}, all in one place: there is nothing to tell them apart by."
    rows = f"A sample of {most_points:,} of {rows}" if total > most_points else rows
    form = {1: "on a line", 2: "on a plane", 3: "in space"}[dimensions]
    return f"{rows} {form}. {remark}"
