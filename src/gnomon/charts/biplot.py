"""Biplot: rows as points and columns as arrows, in the plane of two components."""

from typing import Any, Literal

import numpy as np

from gnomon.charts import words
from gnomon.charts.arrows import Arrow, draw_arrows, name_arrows, shafts
from gnomon.charts.canvas import Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, check_axes, column_names
from gnomon.charts.groups import draw_key, draw_points, group_rows, name_groups
from gnomon.charts.labels import Box
from gnomon.charts.plane import Plane, draw_plane, plane_around
from gnomon.errors import DataError
from gnomon.inputs import check_choice
from gnomon.typing import Array

__all__ = ["biplot"]

Scaling = Literal["rows", "columns", "symmetric"]

MOST_POINTS = 5000
MOST_ARROWS = 12

_READS = {
    "rows": "distances between points are true here",
    "columns": "angles between arrows show correlations",
    "symmetric": "neither distances nor angles are true",
}
# Gabriel's α: points carry the singular values to this power, arrows what is left.
_POWER = {"rows": 1.0, "columns": 0.0, "symmetric": 0.5}


def biplot(
    model: FittedPCA,
    X: Any = None,
    labels: Any = None,
    axes: tuple[int, int] = (0, 1),
    scaling: Scaling = "rows",
    *,
    scores: Any = None,
) -> Chart:
    """Rows of `X` as points, the table's columns as arrows.

    The data are, as far as two components hold them, the products of points and arrows [Gabriel
    1971]: a point far along an arrow is a row with a large value in that column. The scaling says
    what else can be read; with variances λ and n rows of scores Z, points are Z·λ^((α−1)/2) and
    arrows V·λ^((1−α)/2), where α is 1 for rows, 0 for columns and ½ for symmetric. Both axes have
    the same unit. Arrows are stretched by one common factor to be seen.

    Parameters
    ----------
    model : fitted PCA
    X : table that `model.transform` takes, shape (n, D)
        With more than 5,000 rows, a sample of them (the same every time) is drawn.
    labels : array-like, shape (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers), for colour.
    axes : pair of int
        Which components, counted from 0.
    scaling : {"rows", "columns", "symmetric"}
        What is exact: distances between points, angles between arrows, or neither.
    scores : array (n, k), optional
        What `model.transform` gave, where it is known; `X` is not needed then.

    Returns
    -------
    Chart
    """
    pair = check_axes(model, axes)
    check_choice("scaling", scaling, tuple(_POWER))
    known = np.asarray(model.transform(X)) if scores is None else scores
    points, arrows = _coordinates(model, known, pair, _POWER[scaling])
    total = len(points)
    rows = np.arange(total)
    if total > MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(total, MOST_POINTS, replace=False))
        points = points[rows]
    groups, span = group_rows(labels, total, rows)

    stretch = _stretch(points, arrows)
    subtitle = _subtitle(model, pair, total, scaling, stretch)
    canvas = Canvas("Biplot: rows and columns together", subtitle)
    plane = plane_around(np.vstack([points, arrows * stretch]), canvas.top + 40)
    end = draw_plane(canvas, model, pair, plane)
    at = [plane(point) for point in points]
    draw_points(canvas, at, groups)
    origin, drawn = plane(np.zeros(2)), _longest(model, pair, arrows, stretch, plane)
    draw_arrows(canvas, origin, drawn)
    # A ramp needs its key; groups only where their names find no room beside them.
    taken: list[Box] = []
    keyed = True
    if span is None:
        taken, keyed = name_groups(canvas, at, groups, plane.box, avoid=shafts(origin, drawn))
    unnamed = name_arrows(canvas, origin, drawn, plane.box, longest=140, taken=taken)

    if keyed:
        end = draw_key(canvas, end + 32, groups, span, name=getattr(labels, "name", None))
    remarks = []
    if span is not None and groups[0].name:
        remarks.append(f"Grey: {words.count(groups[0].rows.size, 'row')} without a label.")
    if drawn and len(drawn) < len(arrows):
        remarks.append(f"Arrows: the {len(drawn)} longest of {words.count(len(arrows), 'column')}.")
    if unnamed:
        remarks.append(f"{words.count(unnamed, 'name')} left out for lack of room.")
    if remarks:
        end = canvas.note(end + 26, " ".join(remarks)) - 14
    details = [f"{g.name}: {words.count(g.rows.size, 'row')} drawn" for g in groups if g.name]
    details += [arrow.tip for arrow in drawn]
    return canvas.finish(end + 26, "; ".join(details) + "." if details else "")


def _coordinates(
    model: FittedPCA, known: Any, axes: tuple[int, int], power: float
) -> tuple[Array, Array]:
    """Points (n, 2) and arrows (D, 2) of the scaling with the given α."""
    pair = list(axes)
    scores = np.asarray(known, dtype=np.float64)[:, pair]
    if not len(scores):
        raise DataError("X has no rows to draw. Give at least one.")
    deviations = np.sqrt(np.asarray(model.explained_variance_, dtype=np.float64)[pair].clip(0.0))
    # A component without variance has no scale to divide by; its scores are zero anyway.
    safe = np.where(deviations > 0, deviations, 1.0)
    if getattr(model, "whiten", False):
        scores = scores * safe
    directions = np.asarray(model.components_, dtype=np.float64)[pair].T
    # Nor has it a direction of its own, so nothing is shown along it.
    lengths = np.where(deviations > 0, deviations ** (1.0 - power), 0.0)
    return scores * safe ** (power - 1.0), directions * lengths


def _stretch(points: Array, arrows: Array) -> float:
    """The factor that makes the arrows reach about as far as the points do."""
    reach, length = np.abs(points).max(axis=0), np.abs(arrows).max(axis=0)
    usable = (reach > 0) & (length > 0)
    return 0.8 * float((reach[usable] / length[usable]).min()) if usable.any() else 1.0


def _subtitle(
    model: FittedPCA, axes: tuple[int, int], total: int, scaling: str, stretch: float
) -> str:
    share = float(np.nan_to_num(model.explained_variance_ratio_[list(axes)]).sum())
    both = f"PC{axes[0] + 1} and PC{axes[1] + 1}"
    rows = words.count(total, "row")
    if share == 0:
        return f"{rows} on {both}, which hold no variance: there is nothing to tell rows apart by."
    if total > MOST_POINTS:
        rows = f"A sample of {MOST_POINTS:,} of {rows}"
    return (
        f"{rows} on {both}, which hold {words.percent(share)} of the variance. "
        f"Scaling “{scaling}”: {_READS[scaling]}; arrows ×\u00a0{words.number(stretch, 2)}."
    )


def _longest(
    model: FittedPCA, axes: tuple[int, int], arrows: Array, stretch: float, plane: Plane
) -> list[Arrow]:
    """The longest arrows that have a length at all, longest first."""
    lengths = np.hypot(*arrows.T)
    names = column_names(model)
    drawn = []
    for d in np.argsort(-lengths, kind="stable")[:MOST_ARROWS]:
        if lengths[d] > 0:
            values = (
                f"PC{a + 1} {words.number(v, 2)}" for a, v in zip(axes, arrows[d], strict=True)
            )
            tip = f"{names[d]}: {', '.join(values)}"
            drawn.append(Arrow(*plane(arrows[d] * stretch), names[d], "ink", tip))
    return drawn
