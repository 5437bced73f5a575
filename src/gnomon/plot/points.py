"""Plots of points: a map, and two sets laid on each other."""

from typing import Any

import numpy as np

from gnomon.charts.colours import LIGHT
from gnomon.charts.overlay import COLOURS, overlay_data
from gnomon.charts.scatter import scatter_data
from gnomon.errors import DataError, refuse
from gnomon.plot.axes import MANY_POINTS, draw_head, draw_key, draw_points, find_axes

__all__ = ["map", "overlay"]


def map(
    positions: Any,
    color: Any = None,
    *,
    ax: Any = None,
    title: str | None = None,
    turn: tuple[float, float] = (35.0, 25.0),
) -> Any:
    """Points of a map in 1, 2 or 3 dimensions, as `charts.scatter` draws them.

    All rows are drawn. Both directions have the same unit, and there are no axes: they would mean
    nothing.

    Parameters
    ----------
    positions : fitted TSNE, Result, or array (n, 1), (n, 2) or (n, 3)
    color : array-like (n,), or str, optional
        Groups (text, or a few distinct numbers), which get a legend, or values (other numbers),
        which get a colour bar. Of a result, the name of one of its columns, or ``"trust"``; by
        default its label.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    title : str, optional
    turn : pair of float
        For three dimensions: degrees about the vertical axis, and upwards.

    Returns
    -------
    matplotlib Axes
    """
    Y, values, name = _read_map(positions, color)
    data = scatter_data(Y, values, turn=turn, most_points=max(1, len(Y)))
    ax = find_axes(ax)
    drawn = None if values is None else np.asarray(values)[data.rows]
    ramp = draw_points(ax, data.points, data.groups, data.span, drawn)
    draw_key(ax, data.groups, ramp, name)
    draw_head(ax, "Map" if title is None else title, data.subtitle)
    _without_axes(ax)
    return ax


def _read_map(positions: Any, color: Any) -> tuple[Any, Any, object]:
    """Positions, what colours the rows, and what that is called."""
    Y, values, name = positions, color, getattr(color, "name", None)
    if hasattr(positions, "prepared"):  # of `gnomon.run`
        Y = positions.positions
        if Y is None:
            raise DataError("The result has no map. Run it with a map, or plot its PCA.")
        if color is None or isinstance(color, str):
            values, name = _column(positions, color)
        there = np.isfinite(Y).all(axis=1)  # a run that was cut short left the others out
        if not there.all():
            Y = Y[there]
            values = None if values is None else np.asarray(values)[there]
    elif isinstance(color, str):
        refuse("color", "hold one value a row where the map is no Result", color)
    return np.asarray(getattr(Y, "embedding_", Y)), values, name


def _column(result: Any, name: str | None) -> tuple[Any, str | None]:
    """A column of a result that rows are coloured by; its label where `name` is None."""
    from gnomon.report.run_page import labels_of

    columns = dict(labels_of(result.prepared.table))
    if result.trust is not None:
        columns.setdefault("trust", result.trust)
    table = result.prepared.table
    if name is None:
        label = table.label_name
        return (None, None) if table.labels is None else (columns[str(label)], label)
    if name not in columns and name in table.columns and not table.in_blocks:
        return np.asarray(table.X)[:, table.columns.index(name)], name
    if name not in columns:
        known = ", ".join([*columns, *table.columns[:5]])
        refuse("color", f"be a column of the result ({known} …)", name)
    return columns[name], name


def overlay(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    names: tuple[str, str] = ("X", "Y"),
    ax: Any = None,
    title: str = "Two sets of points",
) -> Any:
    """Points of `X` and of `Y` in one plane, with a line from each to its other.

    As `charts.overlay` draws them, but for all rows.

    Parameters
    ----------
    X, Y : arrays (n, 2), or fitted models with `embedding_`
        Row i of both is the same point.
    labels : array-like (n,), optional
        Names of the points, written beside those of `Y` if there are at most 60.
    names : pair of str
        What the two sets are, for the legend.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    title : str

    Returns
    -------
    matplotlib Axes
    """
    n = max(1, len(np.asarray(getattr(X, "embedding_", X))))
    data = overlay_data(X, Y, labels, names=names, most_points=n)
    ax = find_axes(ax)
    from matplotlib.collections import LineCollection

    many = n > MANY_POINTS
    lines = np.stack([data.X, data.Y], axis=1)
    ax.add_collection(
        LineCollection(list(lines), colors=LIGHT["soft"], linewidths=0.5, rasterized=many)
    )
    size = 28 if n <= 250 else 6
    for Z, name, colour, above in (
        (data.X, data.names[0], COLOURS[0], 3),
        (data.Y, data.names[1], COLOURS[1], 2),
    ):
        ax.scatter(
            *Z.T,
            s=size,
            color=LIGHT[colour],
            label=name,
            zorder=above,
            rasterized=many,
        )
    for place, text in zip(data.Y, data.texts or (), strict=False):
        ax.annotate(text, place, xytext=(5, 4), textcoords="offset points", fontsize="small")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.2)
    draw_head(ax, title, data.subtitle)
    _without_axes(ax)
    return ax


def _without_axes(ax: Any) -> None:
    """One unit for both directions, and neither ticks nor frame."""
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_visible(False)
