"""Panels for teaching figures: points, arrows, lines and curves on planes side by side.

The scripts of this gallery share it. Charts of results are in ``gnomon.charts``; this draws what
lecture notes draw, in the same style.
"""

import numpy as np

from gnomon.charts.arrows import Arrow, draw_arrows
from gnomon.charts.axis import AxisScale, tick_text, ticks
from gnomon.charts.canvas import LEFT, RIGHT, Canvas, coordinate
from gnomon.charts.text import wrap
from gnomon.charts.theme import SIZES

GAP = 26.0


class Sketch:
    """A figure of panels: `across` in a line, as many lines as needed.

    Parameters
    ----------
    title, words : str
        What it is, and what one sees.
    across : int
        Panels side by side.
    """

    def __init__(self, title, words, across=2):
        self.canvas = Canvas(title, words)
        self.across = across
        self.width = (RIGHT - LEFT - GAP * (across - 1)) / across
        self.count = 0
        self.top = self.canvas.top + 8
        self.end = self.top

    def panel(self, name, around, *, note="", axes=None, equal=True, ratio=0.8):
        """The next panel, large enough for the points `around` (n, 2).

        `axes` are names of the two directions, for a panel with numbers; without them it has none.
        With `equal`, both directions have the same unit, so that angles are true.
        """
        column = self.count % self.across
        if column == 0:
            self.top = self.end + (GAP if self.count else 0)
        self.count += 1
        left, y = LEFT + (self.width + GAP) * column, self.top + 14
        for line in wrap(name, self.width, SIZES["label"]) if name else []:
            self.canvas.text(left, y, line, "label ink bold")
            y += 18
        inset = 34 if axes else 0
        y += 14 if axes else 0
        box = (left + inset, y, self.width - inset, ratio * self.width)
        panel = Panel(self.canvas, box, np.asarray(around, dtype=float), equal, axes)
        y += ratio * self.width + (42 if axes else 20)
        for line in wrap(note, self.width, SIZES["tick"]) if note else []:
            self.canvas.text(left, y, line, "tick soft")
            y += 17
        self.end = max(self.end, y)
        return panel

    def finish(self):
        """The chart."""
        return self.canvas.finish(self.end + 12)


class Panel:
    """One plane of a sketch; all its methods take points in the plane's own units."""

    def __init__(self, canvas, box, around, equal, axes):
        self.canvas = canvas
        left, top, across, down = box
        low, high = around.min(axis=0), around.max(axis=0)
        middle, half = (low + high) / 2, np.maximum(high - low, 1e-12) / 2 * 1.12
        if equal:
            half = np.array([across, down]) * np.max(half / [across, down])
        self.low, self.high = middle - half, middle + half
        self.x = AxisScale(self.low[0], self.high[0], left, left + across)
        self.y = AxisScale(self.low[1], self.high[1], top + down, top)
        canvas.rect(left, top, across, down, "grid", round=4)
        if axes:
            self._draw_axes(axes)

    def _draw_axes(self, axes):
        x, y = self.x, self.y
        for scale, across in ((x, True), (y, False)):
            marks = ticks(scale.low, scale.high, 4)
            step = marks[1] - marks[0] if len(marks) > 1 else 1.0
            for mark in marks:
                at, style = scale(mark), "axis" if mark == 0 else "grid"
                ends = (at, y.start, at, y.end) if across else (x.start, at, x.end, at)
                self.canvas.line(*ends, style)
                where = (at, y.start + 15) if across else (x.start - 5, at + 4)
                anchor = "middle" if across else "end"
                self.canvas.text(*where, tick_text(mark, step), "tick soft", anchor)
        self.canvas.text(x.end, y.start + 32, f"{axes[0]} →", "tick soft", "end")
        self.canvas.text(x.start, y.end - 7, f"↑ {axes[1]}", "tick soft")

    def at(self, point):
        """Where a point lies on the drawing."""
        return self.x(float(point[0])), self.y(float(point[1]))

    def points(self, points, colour="accent", size=3.0, tips=None):
        """Dots."""
        for i, point in enumerate(np.atleast_2d(points)):
            tip = None if tips is None else str(tips[i])
            self.canvas.circle(*self.at(point), size, f"{colour} point", tip)

    def cross(self, point, colour="c1", size=6.0):
        """A cross."""
        x, y = self.at(point)
        for side in (-1, 1):
            ends = (x - size, y - side * size, x + size, y + side * size)
            self.canvas.line(*ends, f"line thick line-{colour}")

    def segments(self, starts, ends, colour="soft", style="fine"):
        """Lines from each start to its end."""
        d = ""
        for start, end in zip(*np.broadcast_arrays(starts, ends), strict=True):
            (x1, y1), (x2, y2) = self.at(start), self.at(end)
            d += f"M{coordinate(x1)} {coordinate(y1)}L{coordinate(x2)} {coordinate(y2)}"
        self.canvas.path(d, f"line line-{colour} {style}")

    def curve(self, points, colour="accent", style="thick"):
        """A line through the points."""
        self.canvas.polyline([self.at(point) for point in points], f"line line-{colour} {style}")

    def line(self, through, direction, colour="soft", style="fine"):
        """The whole line through a point, from edge to edge of the panel."""
        through, direction = np.asarray(through, float), np.asarray(direction, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (self.low - through) / direction, (self.high - through) / direction
        start = np.nanmax(np.minimum(one, other))
        end = np.nanmin(np.maximum(one, other))
        if start < end:
            self.curve([through + start * direction, through + end * direction], colour, style)

    def arrow(self, start, end, colour="ink", name=""):
        """An arrow, with its name beyond the tip."""
        (x0, y0), (x, y) = self.at(start), self.at(end)
        draw_arrows(self.canvas, (x0, y0), [Arrow(x, y, name, colour, name)])
        if name:
            length = np.hypot(x - x0, y - y0) or 1.0
            right, down = (x - x0) / length, (y - y0) / length
            spot = (x + 13 * right, y + 13 * down + 4)
            self.canvas.text(*spot, name, "label ink halo bold", "middle")

    def text(self, point, text, *, right=8.0, up=6.0):
        """Words beside a point."""
        x, y = self.at(point)
        self.canvas.text(x + right, y - up, text, "tick ink halo", "start" if right >= 0 else "end")


def ellipse(covariance, middle=(0.0, 0.0), deviations=2.0):
    """Points on the ellipse that many standard deviations around the middle."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0, 2 * np.pi, 80)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(middle) + deviations * circle * np.sqrt(values) @ vectors.T
