"""Scales from numbers to positions on the drawing, and round numbers for the ticks."""

import math
from dataclasses import dataclass

__all__ = ["AxisScale", "tick_text", "ticks"]


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
