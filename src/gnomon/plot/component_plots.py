"""Plots of a fitted PCA: how much each component holds, what it is made of, rows and columns."""

from typing import Any

import numpy as np

from gnomon.charts import words
from gnomon.charts.biplot import TITLE as BIPLOT_TITLE
from gnomon.charts.biplot import Scaling, biplot_data
from gnomon.charts.colours import DIVERGING, LIGHT, diverging
from gnomon.charts.fitted import axis_title
from gnomon.charts.loadings import Measure, loadings_data
from gnomon.charts.scree import TITLE as SCREE_TITLE
from gnomon.charts.scree import scree_data
from gnomon.plot.axes import draw_head, draw_key, draw_points, find_axes

__all__ = ["biplot", "loadings", "scree"]

FEW_CELLS = 240  # of a heat map, up to which their numbers are written


def scree(pca: Any, *, panel: Any = None, ax: Any = None) -> Any:
    """Bars of the variance's share along each component, largest first, as `charts.scree`.

    Parameters
    ----------
    pca : fitted PCA, or Result
    panel : mapping of str to int, or an object whose ``counts`` is one, optional
        Rules and how many components each keeps, as `component_panel` gives them.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
    """
    data = scree_data(_model(pca), panel)
    ax = find_axes(ax)
    at = np.arange(1, len(data.shares) + 1)
    colours = [LIGHT["accent" if i <= data.kept else "quiet"] for i in at]
    bars = ax.bar(at, 100 * data.shares, width=0.72, color=colours)
    if len(at) <= 10:
        texts = [words.percent(float(share)) for share in data.shares]
        ax.bar_label(bars, texts, fontsize="small", padding=2)
    for row, (k, names) in enumerate(data.rules.items()):
        ax.axvline(k + 0.5, color=LIGHT["soft"], linestyle=":", linewidth=1)
        ax.annotate(
            f" {words.listing(names)}: {k}",
            (k + 0.5, 0.97 - 0.07 * row),
            fontsize="small",
            xycoords=("data", "axes fraction"),
            va="top",
        )
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance (%)")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _plain(ax)
    draw_head(ax, SCREE_TITLE, " ".join([data.subtitle, *data.remarks]))
    return ax


def loadings(
    pca: Any,
    n_components: int = 6,
    n_columns: int = 20,
    *,
    measure: Measure = "loading",
    ax: Any = None,
) -> Any:
    """Heat map of what components are made of, as `charts.loadings`.

    Parameters
    ----------
    pca : fitted PCA, or Result
    n_components, n_columns : int
        The first so many components, and the so many columns with the largest loadings on them.
    measure : {"loading", "correlation"}
        What the cells hold.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
    """
    data = loadings_data(_model(pca), n_components, n_columns, measure=measure)
    ax = find_axes(ax)
    from matplotlib.colors import ListedColormap

    shown, reach = data.values[data.order], data.largest or 1.0
    colours = ListedColormap([LIGHT[f"d{step}"] for step in range(DIVERGING)], "gnomon")
    # Steps are rounded to the nearest, so that those at the ends are half as wide.
    edge = reach * DIVERGING / (DIVERGING - 1)
    image = ax.imshow(shown, cmap=colours, vmin=-edge, vmax=edge, aspect="auto")
    if shown.size <= FEW_CELLS:
        for row, texts in enumerate(data.texts):
            for j, text in enumerate(texts):
                ink = LIGHT[f"t{diverging(shown[row, j], data.largest)}"]
                ax.text(j, row, text, ha="center", va="center", color=ink, fontsize="small")
    heads = [f"PC{j + 1}\n{head}" for j, head in enumerate(data.heads)]
    ax.set_xticks(range(len(heads)), heads)
    ax.set_yticks(range(len(data.order)), [data.names[d] for d in data.order])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, ticks=[-reach, 0, reach])
    bar.set_label(measure)
    bar.outline.set_visible(False)
    draw_head(ax, data.title, data.subtitle)
    return ax


def biplot(
    pca: Any,
    X: Any = None,
    color: Any = None,
    axes: tuple[int, int] = (0, 1),
    scaling: Scaling = "rows",
    *,
    scores: Any = None,
    ax: Any = None,
) -> Any:
    """Rows of `X` as points, the table's columns as arrows, as `charts.biplot`.

    All rows are drawn, and the longest arrows.

    Parameters
    ----------
    pca : fitted PCA, or Result
        A result brings its own scores.
    X : table that `pca.transform` takes, shape (n, D)
    color : array-like (n,), optional
        Groups (text, or a few distinct numbers) or values (other numbers).
    axes : pair of int
        Which components, counted from 0.
    scaling : {"rows", "columns", "symmetric"}
        What is exact: distances between points, angles between arrows, or neither.
    scores : array (n, k), optional
        What `pca.transform` gave, where it is known; `X` is not needed then.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
    """
    model = _model(pca)
    if X is None and scores is None:
        scores = getattr(pca, "components", None)
    n = len(scores) if scores is not None else np.shape(X)[0]
    data = biplot_data(model, X, color, axes, scaling, scores=scores, most_points=max(1, n))
    ax = find_axes(ax)
    values = None if color is None else np.asarray(color)[data.rows]
    ramp = draw_points(ax, data.points, data.groups, data.span, values)
    for d in data.longest:
        tip = data.arrows[d] * data.stretch
        ax.annotate(
            "",
            tip,
            (0, 0),
            arrowprops={"arrowstyle": "->", "color": LIGHT["ink"], "shrinkA": 0, "shrinkB": 0},
        )
        side = "left" if tip[0] >= 0 else "right"
        ax.annotate(data.names[d], tip, ha=side, fontsize="small", color=LIGHT["ink"])
    # Annotations do not move the limits of the axes.
    ax.update_datalim(data.arrows[data.longest] * data.stretch if data.longest else [(0, 0)])
    ax.autoscale_view()
    draw_key(ax, data.groups, ramp, getattr(color, "name", None))
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(axis_title(model, data.axes[0]))
    ax.set_ylabel(axis_title(model, data.axes[1]))
    for line in (ax.axhline, ax.axvline):
        line(0, color=LIGHT["axis"], linewidth=0.8, zorder=0)
    _plain(ax)
    draw_head(ax, BIPLOT_TITLE, data.subtitle)
    return ax


def _model(pca: Any) -> Any:
    """A fitted PCA, of which a result of `gnomon.run` has one, under the table's own names."""
    if not hasattr(pca, "prepared"):
        return pca
    from gnomon.report.content import NamedPCA

    return NamedPCA(pca.pca, np.array(pca.prepared.table.columns, dtype=object))


def _plain(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
