"""Histogram: number of rows by value."""

from typing import Any

import numpy as np

from gnomon.charts import colours, words
from gnomon.charts.axis import AxisScale, tick_text, ticks
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.errors import refuse

__all__ = ["histogram"]

PLOT_HEIGHT = 220.0


def histogram(
    values: Any,
    *,
    title: str,
    subtitle: str,
    axis: str,
    span: tuple[float, float] = (0.0, 1.0),
    bins: int = 16,
) -> Chart:
    """Plot the number of rows with a value in each of `bins` equal parts of `span`.

    Bars have the colours of the same values on a map.

    Parameters
    ----------
    values : array (n,)
        Numbers; those beyond `span` count in its first or last part.
    title, subtitle, axis : str
        Title, sentence below it, and name of the values.
    span : pair of float
    bins : int

    Returns
    -------
    Chart
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        refuse("values", "be a column of finite numbers", f"shape {array.shape}")
    low, high = span
    counts, edges = np.histogram(array.clip(low, high), bins=bins, range=span)
    canvas = Canvas(title, subtitle)
    top = canvas.top + 24
    x = AxisScale(low, high, LEFT + 56, RIGHT - 8)
    y = AxisScale(0.0, float(counts.max()), top + PLOT_HEIGHT, top)
    marks = [mark for mark in ticks(0.0, y.high, 4) if mark == round(mark)]
    for mark in marks:
        canvas.line(x.start, y(mark), x.end, y(mark), "grid" if mark else "axis")
        canvas.text(x.start - 8, y(mark) + 4, f"{mark:,.0f}", "tick soft", "end")
    steps = ticks(low, high, 5)
    for mark in steps:
        text = tick_text(mark, steps[1] - steps[0] if len(steps) > 1 else 1.0)
        canvas.text(x(mark), y.start + 20, text, "tick soft", "middle")
    canvas.text((x.start + x.end) / 2, y.start + 44, axis, "label soft", "middle")
    details = []
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        if not count:
            continue
        said = f"{words.number(float(left), 2)} to {words.number(float(right), 2)}"
        said += f": {words.count(int(count), 'row')}"
        step = colours.sequential(float((left + right) / 2), low, high)
        height = y.start - y(float(count))
        canvas.rect(
            x(left) + 1,
            y(float(count)),
            x(right) - x(left) - 2,
            height,
            f"v{step}",
            round=min(3.0, height / 2),
            tip=said,
        )
        details.append(said)
    return canvas.finish(y.start + 66, "; ".join(details) + ".")
