"""Correlation circle: the correlation of each column with two components."""

import numpy as np

from gnomon.charts import colours, words
from gnomon.charts.arrows import Arrow, draw_arrows, name_arrows
from gnomon.charts.canvas import LEFT, RIGHT, WIDTH, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, axis_title, check_axes, column_names
from gnomon.charts.label_placement import Box
from gnomon.charts.text import width
from gnomon.charts.theme import SIZES
from gnomon.typing import Array

__all__ = ["correlation_circle"]

RADIUS = 185.0
# More arrows than this would overlap; the other columns are dots.
MOST_ARROWS = 16


def correlation_circle(model: FittedPCA, axes: tuple[int, int] = (0, 1)) -> Chart:
    """Plot each column as an arrow to its correlations with two components.

    An arrow that reaches the circle is a column that the two components explain entirely. Among
    such arrows, the cosine of the angle between two is the correlation of the columns; the angle
    between short arrows has no meaning.

    Parameters
    ----------
    model : fitted PCA
    axes : pair of int
        Components of the axes, counted from 0.

    Returns
    -------
    Chart
    """
    first, second = check_axes(model, axes)
    pair = np.asarray(model.correlations(), dtype=np.float64)[:, [first, second]]
    names = column_names(model)
    # A constant column has no correlation with anything.
    defined = np.isfinite(pair).all(axis=1)
    pair[~defined] = 0.0
    quality = (pair**2).sum(axis=1).clip(0.0, 1.0)
    order = [int(d) for d in np.argsort(-quality, kind="stable") if quality[d] > 0]
    canvas = Canvas("Correlation circle of the columns", _subtitle(quality, first, second))

    x0, y0 = WIDTH / 2, canvas.top + 40 + RADIUS
    _draw_frame(canvas, model, (first, second), x0, y0)
    for d in order[MOST_ARROWS:]:
        colour = _colour(quality[d])
        at = x0 + RADIUS * pair[d, 0], y0 - RADIUS * pair[d, 1]
        canvas.circle(*at, 3, f"{colour} ring", _tip(names[d], pair[d], (first, second)))
    arrows = [
        Arrow(
            x0 + RADIUS * pair[d, 0],
            y0 - RADIUS * pair[d, 1],
            names[d],
            _colour(quality[d]),
            _tip(names[d], pair[d], (first, second)),
        )
        for d in order[:MOST_ARROWS]
    ]
    bounds = Box(LEFT - 10, y0 - RADIUS - 12, RIGHT + 10, y0 + RADIUS + 12)
    draw_arrows(canvas, (x0, y0), arrows)
    unnamed = name_arrows(canvas, (x0, y0), arrows, bounds, longest=150)

    end = _draw_key(canvas, y0 + RADIUS + 60)
    remarks = []
    if len(order) > MOST_ARROWS:
        remarks.append(f"The {MOST_ARROWS} best-held columns are arrows, the others dots.")
    if unnamed:
        remarks.append(f"{words.count(unnamed, 'name')} left out for lack of room.")
    zero = len(names) - len(order)
    if zero:
        remarks.append(f"{words.count(zero, 'column')} without correlation not drawn.")
    if remarks:
        end = canvas.note(end + 28, " ".join(remarks))
    details = "; ".join(_tip(names[d], pair[d], (first, second)) for d in order[:MOST_ARROWS])
    return canvas.finish(end + 18, f"Correlations: {details}." if details else "")


def _subtitle(quality: Array, first: int, second: int) -> str:
    both = f"PC{first + 1} and PC{second + 1}"
    if not quality.any():
        return f"No column correlates with {both}: the columns are constant."
    well = int((quality >= 0.5).sum())
    columns = words.count(len(quality), "column")
    if len(quality) == 1:
        return f"{both} hold {words.percent(float(quality[0]))} of the variance of the one column."
    return f"{both} hold at least half the variance of {well} of {columns}."


def _tip(name: str, pair: Array, axes: tuple[int, int]) -> str:
    values = (f"PC{axis + 1} {words.number(r, 2)}" for axis, r in zip(axes, pair, strict=True))
    return f"{name}: {', '.join(values)}"


def _colour(quality: float) -> str:
    return f"v{colours.sequential(float(quality), 0.0, 1.0)}"


def _draw_frame(
    canvas: Canvas, model: FittedPCA, axes: tuple[int, int], x0: float, y0: float
) -> None:
    """Draw circles, axes and their titles, which are in the corners outside the circle."""
    reach = RADIUS + 14
    canvas.circle(x0, y0, RADIUS / 2, "grid")
    canvas.line(x0 - reach, y0, x0 + reach, y0, "grid")
    canvas.line(x0, y0 - reach, x0, y0 + reach, "grid")
    canvas.circle(x0, y0, RADIUS, "axis")
    across, up = (axis_title(model, axis) for axis in axes)
    canvas.text(RIGHT, y0 + reach + 10, f"{across} →", "label soft bold", "end")
    canvas.text(LEFT, y0 - reach + 2, f"↑ {up}", "label soft bold")
    canvas.text(x0 + RADIUS / 2 + 3, y0 + 15, "0.5", "tick soft halo")
    canvas.text(x0 + RADIUS + 5, y0 + 15, "1", "tick soft halo")


def _draw_key(canvas: Canvas, y: float) -> float:
    swatch = 20.0
    label = "share of the column held (cos²)"
    canvas.text(LEFT, y + 9, label, "label soft")
    left = LEFT + width(label, SIZES["label"]) + 30
    canvas.text(left - 8, y + 9, "0", "tick soft", "end")
    for step in range(colours.SEQUENTIAL):
        canvas.rect(left + swatch * step, y, swatch - 1, 10, f"v{step}", round=1)
    canvas.text(left + swatch * colours.SEQUENTIAL + 8, y + 9, "1", "tick soft")
    return y + 10
