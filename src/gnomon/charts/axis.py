"""Scales from numbers to positions on the drawing, round numbers for the ticks, and axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gnomon.charts import words
from gnomon.charts.canvas import Canvas

__all__ = ["AxisScale", "draw_share_axes", "tick_text", "ticks"]


@dataclass(frozen=True)
class AxisScale:
    """Linear map that takes `low` to `start` and `high` to `end`.

    `start` may be larger than `end`: on a drawing, y grows downwards.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Position of `value` on the drawing."""
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between `low` and `high`, roughly `about` of them, 1, 2 or 5 apart (× 10ᵏ)."""
    if not high > low:
        return [low]
    step = _round_step((high - low) / max(about, 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * i for i in range(first, last + 1)]


def draw_share_axes(
    canvas: Canvas, x: AxisScale, y: AxisScale, shares: Sequence[float], label: str
) -> None:
    """Draw a line for each of the `shares` up the y axis, and whole numbers along the x axis."""
    for share in shares:
        canvas.line(x.start, y(share), x.end, y(share), "grid" if share else "axis")
        canvas.text(x.start - 10, y(share) + 4, words.percent(share), "tick soft", "end")
    for mark in ticks(0, x.high, 6):
        if mark == round(mark):
            canvas.text(x(mark), y.start + 20, f"{mark:.0f}", "tick soft", "middle")
    canvas.text((x.start + x.end) / 2, y.start + 44, label, "label soft", "middle")


def tick_text(value: float, step: float) -> str:
    """`value` with as many decimals as ticks `step` apart need."""
    if value == 0:
        return "0"
    if not 1e-4 < abs(step) < 1e7:
        return f"{value:.3g}".replace("-", "−").replace("e+", "e")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}".replace("-", "−")


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if m * power >= rough * 0.999), 10 * power)
