"""A plane of two components: both axes have the same unit, so distances and angles are exact."""

from dataclasses import dataclass

import numpy as np

from gnomon.charts.axis import AxisScale, tick_text, ticks
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.fitted import FittedPCA, axis_title
from gnomon.charts.label_placement import Box
from gnomon.typing import Array

__all__ = ["Plane", "draw_plane", "plane_around"]

# Height of the plot as a share of its width: that of the data, within these limits.
FLATTEST, TALLEST = 0.5, 0.95


@dataclass(frozen=True)
class Plane:
    """The plot's rectangle, and the positions of numbers in it."""

    x: AxisScale
    y: AxisScale

    @property
    def box(self) -> Box:
        """Rectangle of the plot."""
        return Box(self.x.start, self.y.end, self.x.end, self.y.start)

    def __call__(self, point: Array) -> tuple[float, float]:
        """Position of a point of two numbers on the drawing."""
        return self.x(float(point[0])), self.y(float(point[1]))


def plane_around(points: Array, top: float) -> Plane:
    """Plane, from `top` down, that holds all `points` (n, 2) and the origin."""
    everything = np.vstack([points, np.zeros((1, 2))])
    low, high = everything.min(axis=0), everything.max(axis=0)
    span = float((high - low).max()) or 1.0
    low, high = low - 0.06 * span, high + 0.06 * span
    left = LEFT + 36
    across = RIGHT - left
    ratio = float(np.clip((high[1] - low[1]) / (high[0] - low[0]), FLATTEST, TALLEST))
    unit = max((high[0] - low[0]) / across, (high[1] - low[1]) / (across * ratio))
    middle, half = (low + high) / 2, unit * across / 2
    return Plane(
        AxisScale(middle[0] - half, middle[0] + half, left, RIGHT),
        AxisScale(middle[1] - half * ratio, middle[1] + half * ratio, top + across * ratio, top),
    )


def draw_plane(canvas: Canvas, model: FittedPCA, axes: tuple[int, int], plane: Plane) -> float:
    """Draw the grid, the axes through the origin and their titles; return their bottom."""
    x, y = plane.x, plane.y
    marks = ticks(x.low, x.high, 6)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    for mark in marks:
        canvas.line(x(mark), y.start, x(mark), y.end, "grid" if mark else "axis")
        canvas.text(x(mark), y.start + 20, tick_text(mark, step), "tick soft", "middle")
    for i in range(int(np.ceil(y.low / step)), int(np.floor(y.high / step)) + 1):
        mark = i * step
        canvas.line(x.start, y(mark), x.end, y(mark), "grid" if mark else "axis")
        canvas.text(x.start - 8, y(mark) + 4, tick_text(mark, step), "tick soft", "end")
    across, up = (axis_title(model, axis) for axis in axes)
    canvas.text(x.end, y.start + 44, f"{across} →", "label soft bold", "end")
    canvas.text(LEFT, y.end - 14, f"↑ {up}", "label soft bold")
    return y.start + 44
