"""Scatter: a map's points by group or by value. It has no axes: they would mean nothing."""

from typing import Any

import numpy as np

from gnomon.charts import words
from gnomon.charts.canvas import Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import Floats
from gnomon.charts.groups import draw_key, draw_points, group_rows, name_groups
from gnomon.charts.plane import plane_around
from gnomon.errors import refuse

__all__ = ["scatter"]

MOST_POINTS = 20_000
STRIP = 0.15  # height of the strip that points on a line are spread over, as a share of its length


def scatter(
    positions: Any,
    labels: Any = None,
    *,
    title: str = "Map",
    turn: tuple[float, float] = (35.0, 25.0),
) -> Chart:
    """Points of a map in 1, 2 or 3 dimensions.

    Both directions have the same unit. Points on a line are spread over a strip to be seen, and
    points in space are drawn as seen from `turn`, the nearer ones over the farther.

    Parameters
    ----------
    positions : array (n, 1), (n, 2) or (n, 3), or a fitted model with `embedding_`
        With more than 20,000 rows, a sample of them (the same every time) is drawn.
    labels : array-like, shape (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers), for colour.
    title : str
    turn : pair of float
        For three dimensions: degrees about the vertical axis, and upwards.

    Returns
    -------
    Chart
    """
    Y = np.asarray(getattr(positions, "embedding_", positions), dtype=np.float64)
    if Y.ndim != 2 or not 1 <= Y.shape[1] <= 3 or not len(Y):
        refuse("positions", "have shape (n, 1), (n, 2) or (n, 3) with n ≥ 1", f"shape {Y.shape}")
    if not np.isfinite(Y).all():
        refuse("positions", "be finite", "NaN or infinity among them")
    total = len(Y)
    rows = np.arange(total)
    if total > MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(total, MOST_POINTS, replace=False))
    points, depth = _seen(Y - Y.mean(axis=0), turn)
    # Nearer points later, so that they are drawn over the others.
    rows = rows[np.argsort(depth[rows], kind="stable")]
    points = points[rows]
    groups, span = group_rows(labels, total, rows)

    canvas = Canvas(title, _subtitle(total, Y.shape[1], float(np.ptp(Y, axis=0).max())))
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


def _seen(Y: Floats, turn: tuple[float, float]) -> tuple[Floats, Floats]:
    """Points on the drawing (n, 2), and how near each is."""
    n, d = Y.shape
    if d == 1:
        length = float(np.ptp(Y)) or 1.0
        spread = np.random.default_rng(0).uniform(-0.5, 0.5, n) * STRIP * length
        return np.column_stack([Y[:, 0], spread]), np.zeros(n)
    if d == 2:
        return Y, np.zeros(n)
    about, up = np.radians(turn)
    x = np.cos(about) * Y[:, 0] - np.sin(about) * Y[:, 1]
    away = np.sin(about) * Y[:, 0] + np.cos(about) * Y[:, 1]
    y = np.cos(up) * Y[:, 2] + np.sin(up) * away
    return np.column_stack([x, y]), np.sin(up) * Y[:, 2] - np.cos(up) * away


def _subtitle(total: int, dimensions: int, spread: float) -> str:
    rows = words.count(total, "row")
    if spread == 0:
        return f"{rows}, all in one place: there is nothing to tell them apart by."
    rows = f"A sample of {MOST_POINTS:,} of {rows}" if total > MOST_POINTS else rows
    form = {1: "on a line", 2: "on a plane", 3: "in space"}[dimensions]
    return f"{rows} {form}. Neighbours are alike; gaps mean little."
