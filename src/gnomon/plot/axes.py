"""What all plots share: axes, words above them, groups of points and their key.

matplotlib is imported when something is drawn, so that ``import gnomon`` does not need it.
"""

import textwrap
from typing import Any

import numpy as np

from gnomon.charts.colours import LIGHT, SEQUENTIAL
from gnomon.charts.groups import Group
from gnomon.charts.text import clean
from gnomon.typing import Array

__all__ = ["draw_head", "draw_key", "draw_points", "find_axes"]

LINE = 72  # letters of a line of words above the axes
MANY_POINTS = 20_000  # beyond, a PDF holds the points as one picture
MARKERS = {"round": "o", "open": "o", "triangle": "^"}
MOST_LINES = 12  # of a key, before it goes into another column


def find_axes(ax: Any) -> Any:
    """`ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "gnomon.plot draws with matplotlib: pip install 'gnomon[plot]'. The SVG charts of "
            "gnomon.charts need nothing."
        ) from error
    return plt.subplots(layout="constrained")[1]


def draw_head(ax: Any, title: str, subtitle: str) -> None:
    """Write the title, and below it a sentence in smaller letters."""
    lines = textwrap.wrap(subtitle, LINE)
    ax.set_title(title, loc="left", pad=8 + 11 * len(lines), color=LIGHT["ink"])
    ax.annotate(
        "\n".join(lines),
        (0, 1),
        xytext=(0, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        va="bottom",
        fontsize=8,
        color=LIGHT["soft"],
    )


def draw_points(
    ax: Any, points: Array, groups: list[Group], span: tuple[float, float] | None, values: Any
) -> Any:
    """Draw the groups of `points` (m, 2); returns what a colour bar is made from, or None.

    Where the labels are a quantity (`span`), `values` (m,) are its numbers.
    """
    style = {
        "s": 28 if len(points) <= 250 else 14 if len(points) <= 1500 else 4,
        "rasterized": len(points) > MANY_POINTS,
    }
    if span is not None:
        return _draw_quantity(ax, points, groups, span, values, style)
    for group in groups:
        hollow = group.shape == "open"
        ax.scatter(
            *points[group.rows].T,
            label=group.name or None,
            marker=MARKERS[group.shape],
            facecolors="none" if hollow else LIGHT[group.colour],
            alpha=0.85,
            edgecolors=LIGHT[group.colour] if hollow else "none",
            **style,
        )
    return None


def _draw_quantity(
    ax: Any,
    points: Array,
    groups: list[Group],
    span: tuple[float, float],
    values: Any,
    style: dict[str, Any],
) -> Any:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    unknown = [group for group in groups if group.name]
    for group in unknown:
        colour = LIGHT[group.colour]
        ax.scatter(*points[group.rows].T, label=group.name, color=colour, **style)
    known = np.sort(np.concatenate([group.rows for group in groups if not group.name]))
    ramp = ListedColormap([LIGHT[f"v{step}"] for step in range(SEQUENTIAL)], "gnomon")
    low, high = span
    norm = BoundaryNorm(np.linspace(low, high, SEQUENTIAL + 1), SEQUENTIAL)
    numbers = np.asarray(values)[known].astype(np.float64)
    return ax.scatter(*points[known].T, c=numbers, cmap=ramp, norm=norm, alpha=0.85, **style)


def draw_key(ax: Any, groups: list[Group], ramp: Any, name: object) -> None:
    """A colour bar of the ramp, or a legend of the groups that have names."""
    named = [group for group in groups if group.name]
    if ramp is not None:
        bar = ax.figure.colorbar(ramp, ax=ax, shrink=0.6)
        bar.set_label(clean("label" if name is None else name))
        bar.outline.set_visible(False)
    if named:
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(0, 0) if ramp is not None else (1, 1),
            frameon=False,
            fontsize="small",
            markerscale=1.5,
            borderaxespad=0.2,
            ncols=-(-len(named) // MOST_LINES),
        )
