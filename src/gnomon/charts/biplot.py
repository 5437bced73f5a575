"""Biplot: rows as points and columns as arrows, in the plane of two components."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import words
from gnomon.charts.arrows import Arrow, draw_arrows, name_arrows, shafts
from gnomon.charts.canvas import Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, check_axes, column_names
from gnomon.charts.groups import Group, draw_key, draw_points, drawn_rows, group_rows, name_groups
from gnomon.charts.label_placement import Box
from gnomon.charts.plane import Plane, draw_plane, plane_around
from gnomon.errors import DataError
from gnomon.inputs import check_choice
from gnomon.typing import Array

__all__ = ["BiplotData", "biplot", "biplot_data"]

Scaling = Literal["rows", "columns", "symmetric"]

MOST_POINTS = 5000
MOST_ARROWS = 12
TITLE = "Biplot: rows and columns together"

_READS = {
    "rows": "distances between points are true here",
    "columns": "angles between arrows show correlations",
    "symmetric": "neither distances nor angles are true",
}
# Gabriel's α: points are scaled by the singular values to this power, arrows by the rest.
_POWER = {"rows": 1.0, "columns": 0.0, "symmetric": 0.5}


@dataclass(frozen=True, eq=False)
class BiplotData:
    """What a biplot shows, whatever draws it.

    Attributes
    ----------
    axes : pair of int
        Which components.
    points : array (m, 2)
        The rows that are drawn.
    rows : array (m,) of int
        Which rows they are.
    arrows : array (D, 2)
        The columns, before they are stretched.
    longest : list of int
        The columns that are drawn, the longest arrow first.
    stretch : float
        The one factor that arrows are drawn with.
    names : list of str
        The columns' names.
    groups : list of Group
        By colour; the rows of a group are places in `points`.
    span : pair of float or None
        Range of the values, where the labels are a quantity.
    subtitle : str
    """

    axes: tuple[int, int]
    points: Array
    rows: NDArray[np.intp]
    arrows: Array
    longest: list[int]
    stretch: float
    names: list[str]
    groups: list[Group]
    span: tuple[float, float] | None
    subtitle: str


def biplot_data(
    model: FittedPCA,
    X: Any = None,
    labels: Any = None,
    axes: tuple[int, int] = (0, 1),
    scaling: Scaling = "rows",
    *,
    scores: Any = None,
    most_points: int = MOST_POINTS,
) -> BiplotData:
    """Compute what the biplot of `model` and `X` shows."""
    pair = check_axes(model, axes)
    check_choice("scaling", scaling, tuple(_POWER))
    known = np.asarray(model.transform(X)) if scores is None else scores
    points, arrows = _coordinates(model, known, pair, _POWER[scaling])
    total = len(points)
    rows = drawn_rows(total, most_points)
    points = points[rows]
    groups, span = group_rows(labels, total, rows)
    stretch = _stretch(points, arrows)
    lengths = np.hypot(*arrows.T)
    longest = [int(d) for d in np.argsort(-lengths, kind="stable")[:MOST_ARROWS] if lengths[d] > 0]
    subtitle = _subtitle(model, pair, total, scaling, stretch, most_points)
    return BiplotData(
        pair, points, rows, arrows, longest, stretch, column_names(model), groups, span, subtitle
    )


def biplot(
    model: FittedPCA,
    X: Any = None,
    labels: Any = None,
    axes: tuple[int, int] = (0, 1),
    scaling: Scaling = "rows",
    *,
    scores: Any = None,
) -> Chart:
    """Plot rows of `X` as points and the table's columns as arrows.

    Up to the two components, the data are the products of points and arrows [Gabriel
    1971]: a point far along an arrow is a row with a large value in that column. The scaling
    decides what else can be read; with variances λ and n rows of scores Z, points are Z·λ^((α−1)/2)
    and arrows V·λ^((1−α)/2), where α is 1 for rows, 0 for columns and ½ for symmetric. Both axes
    have the same unit. Arrows are stretched by one common factor to be visible.

    Parameters
    ----------
    model : fitted PCA
    X : table that `model.transform` accepts, shape (n, D)
        With more than 5,000 rows, a sample of them (the same every time) is drawn.
    labels : array-like, shape (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers), for colour.
    axes : pair of int
        Components of the axes, counted from 0.
    scaling : {"rows", "columns", "symmetric"}
        What is exact: distances between points, angles between arrows, or neither.
    scores : array (n, k), optional
        Result of `model.transform`, if it is known; `X` is not needed then.

    Returns
    -------
    Chart
    """
    data = biplot_data(model, X, labels, axes, scaling, scores=scores)
    points, arrows, groups, span = data.points, data.arrows, data.groups, data.span

    canvas = Canvas(TITLE, data.subtitle)
    plane = plane_around(np.vstack([points, arrows * data.stretch]), canvas.top + 40)
    end = draw_plane(canvas, model, data.axes, plane)
    at = [plane(point) for point in points]
    draw_points(canvas, at, groups)
    origin, drawn = plane(np.zeros(2)), _drawn_arrows(data, plane)
    draw_arrows(canvas, origin, drawn)
    # A ramp needs its key; groups only if their names do not fit beside them.
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
        raise DataError("X has no rows to draw. Add at least one.")
    deviations = np.sqrt(np.asarray(model.explained_variance_, dtype=np.float64)[pair].clip(0.0))
    # A component without variance has no scale to divide by; its scores are zero anyway.
    safe = np.where(deviations > 0, deviations, 1.0)
    if getattr(model, "whiten", False):
        scores = scores * safe
    directions = np.asarray(model.components_, dtype=np.float64)[pair].T
    # It has no direction either, so nothing is shown along it.
    lengths = np.where(deviations > 0, deviations ** (1.0 - power), 0.0)
    return scores * safe ** (power - 1.0), directions * lengths


def _stretch(points: Array, arrows: Array) -> float:
    """Factor that makes the arrows reach about as far as the points."""
    reach, length = np.abs(points).max(axis=0), np.abs(arrows).max(axis=0)
    usable = (reach > 0) & (length > 0)
    return 0.8 * float((reach[usable] / length[usable]).min()) if usable.any() else 1.0


def _subtitle(
    model: FittedPCA,
    axes: tuple[int, int],
    total: int,
    scaling: str,
    stretch: float,
    most_points: int,
) -> str:
    share = float(np.nan_to_num(model.explained_variance_ratio_[list(axes)]).sum())
    both = f"PC{axes[0] + 1} and PC{axes[1] + 1}"
    rows = words.count(total, "row")
    if share == 0:
        return f"{rows} on {both}, which hold no variance: there is nothing to tell rows apart by."
    if total > most_points:
        rows = f"A sample of {most_points:,} of {rows}"
    return (
        f"{rows} on {both}, which hold {words.percent(share)} of the variance. "
        f"Scaling “{scaling}”: {_READS[scaling]}; arrows ×\u00a0{words.number(stretch, 2)}."
    )


def _drawn_arrows(data: BiplotData, plane: Plane) -> list[Arrow]:
    """The longest arrows as they are drawn, longest first."""
    drawn = []
    for d in data.longest:
        values = (
            f"PC{a + 1} {words.number(v, 2)}"
            for a, v in zip(data.axes, data.arrows[d], strict=True)
        )
        tip = f"{data.names[d]}: {', '.join(values)}"
        drawn.append(Arrow(*plane(data.arrows[d] * data.stretch), data.names[d], "ink", tip))
    return drawn
