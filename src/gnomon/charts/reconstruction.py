"""Reconstruction error of cells, by number of components."""

import numpy as np

from gnomon.charts import words
from gnomon.charts.axis import AxisScale, draw_share_axes
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, known_shares
from gnomon.typing import Array

__all__ = ["reconstruction", "relative_errors"]

PLOT_HEIGHT = 250.0
MOST_COMPONENTS = 60


def relative_errors(model: FittedPCA) -> Array:
    """Root mean square error of a cell reconstructed from 0, 1, 2 … components, relative to none.

    √(1 − Σλ/total): 1 if every cell is replaced by its column's mean, 0 if nothing is lost.
    """
    held = np.concatenate([[0.0], np.cumsum(known_shares(model))])
    errors: Array = np.sqrt((1.0 - held).clip(0.0, 1.0))
    # The whole spectrum holds everything, regardless of rounding.
    errors[errors < 1e-7] = 0.0
    return errors


def reconstruction(model: FittedPCA) -> Chart:
    """Plot the reconstruction error by number of components, relative to the columns' spread.

    Parameters
    ----------
    model : fitted PCA

    Returns
    -------
    Chart
    """
    errors = relative_errors(model)
    kept = int(model.n_components_)
    varies = bool(known_shares(model).any())
    canvas = Canvas("Reconstruction error", _subtitle(errors, kept, varies))
    known = len(errors) - 1
    shown = min(known, max(MOST_COMPONENTS, kept + 2))
    top = canvas.top + 24
    x = AxisScale(0.0, shown, LEFT + 46, RIGHT - 16)
    y = AxisScale(0.0, 1.0, top + PLOT_HEIGHT, top)
    draw_share_axes(canvas, x, y, (0.0, 0.25, 0.5, 0.75, 1.0), "components used")
    if varies:
        _draw_curve(canvas, x, y, errors[: shown + 1], kept)
    end = y.start + 52
    if shown < known:
        note = f"The first {shown} of {words.count(known, 'component')} are drawn."
        end = canvas.note(end + 16, note)
    details = "; ".join(f"{k}: {words.percent(float(errors[k]))}" for k in range(shown + 1))
    return canvas.finish(end + 16, f"Error by components used: {details}." if varies else "")


def _subtitle(errors: Array, kept: int, varies: bool) -> str:
    if not varies:
        return "All columns are constant: there is nothing to reconstruct."
    error = float(errors[kept])
    if error == 0:
        return f"From {words.count(kept, 'component')} every value is reconstructed exactly."
    return (
        f"From {words.count(kept, 'component')} a cell is reconstructed to within "
        f"{words.percent(error)} of the spread of the columns, root mean square."
    )


def _draw_curve(canvas: Canvas, x: AxisScale, y: AxisScale, errors: Array, kept: int) -> None:
    points = [(x(k), y(float(error))) for k, error in enumerate(errors)]
    if kept + 1 < len(points):
        canvas.polyline(points[kept:], "line thick line-quiet")
    canvas.polyline(points[: kept + 1], "line thick line-accent")
    at_x, at_y = points[kept]
    canvas.line(at_x, at_y, at_x, y.start, "line line-soft dash")
    tip = f"{words.count(kept, 'component')}: {words.percent(float(errors[kept]))}"
    canvas.circle(at_x, at_y, 5, "ink ring", tip)
    text = f"{kept} kept: {words.percent(float(errors[kept]))}"
    # The curve falls: there is room above it on the right, below it on the left.
    if at_x < (x.start + x.end) / 2 or at_y + 26 > y.start:
        end = at_x > x.end - 130
        canvas.text(
            at_x if end else at_x + 10,
            at_y - 12,
            text,
            "label ink bold halo",
            "end" if end else "start",
        )
    else:
        canvas.text(at_x - 10, at_y + 22, text, "label ink bold halo", "end")
