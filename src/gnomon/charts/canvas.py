"""A drawing in progress: its title and subtitle, then marks, then a finished `Chart`.

All text enters the SVG through `Canvas.text` or a mark's `tip`, which escape it; everything else
is numbers and class names of our own.
"""

from collections.abc import Sequence
from typing import Literal

from gnomon.charts import text as texts
from gnomon.charts.chart import Chart
from gnomon.charts.theme import SIZES, STYLE, WIDEST

__all__ = ["LEFT", "RIGHT", "WIDTH", "Anchor", "Canvas", "coordinate"]

Anchor = Literal["start", "middle", "end"]

# Narrow enough that its text is readable at a width of 400 pixels.
WIDTH = 600.0
LEFT = 28.0
RIGHT = WIDTH - 28.0
# Room for the tooltips of all marks in one description.
_LONGEST_DESCRIPTION = 10_000


def coordinate(value: float) -> str:
    """`value` to a tenth of a unit, in the shortest form."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


class Canvas:
    """Marks in the order they are drawn.

    Parameters
    ----------
    title : str
        Name of the chart, in a few words.
    subtitle : str
        What it shows: plain sentences, broken into as many lines as they need.

    Attributes
    ----------
    top : float
        Bottom of the title and subtitle, where the chart may begin.
    """

    def __init__(self, title: str, subtitle: str) -> None:
        self.title = title
        self.subtitle = subtitle
        self._marks: list[str] = []
        self.text(LEFT, 40, title, "title ink")
        lines = texts.wrap(subtitle, RIGHT - LEFT, SIZES["sub"])
        for i, line in enumerate(lines):
            self.text(LEFT, 65 + 21 * i, line, "sub soft")
        self.top = 65 + 21 * len(lines)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: str,
        anchor: Anchor = "start",
        *,
        tip: str | None = None,
    ) -> None:
        """Add a line of text whose baseline is at `y`; `tip` is its full form if shortened."""
        where = f'x="{coordinate(x)}" y="{coordinate(y)}"'
        if anchor != "start":
            where += f' text-anchor="{anchor}"'
        inside = texts.escape(text) + (_tip(tip) if tip is not None and tip != text else "")
        self._marks.append(f'<text {where} class="{_classes(style)}">{inside}</text>')

    def line(
        self, x1: float, y1: float, x2: float, y2: float, style: str, tip: str | None = None
    ) -> None:
        """Add a straight line."""
        self.path(
            f"M{coordinate(x1)} {coordinate(y1)}L{coordinate(x2)} {coordinate(y2)}", style, tip
        )

    def polyline(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """Add a line through `points`."""
        self.path("M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points), style)

    def path(self, d: str, style: str, tip: str | None = None) -> None:
        """Add any path; `d` contains only numbers."""
        self._mark("path", f'd="{d}"', style, tip)

    def circle(self, x: float, y: float, r: float, style: str, tip: str | None = None) -> None:
        """Add a circle around (x, y)."""
        at = f'cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(r)}"'
        self._mark("circle", at, style, tip)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        style: str,
        *,
        round: float = 0.0,
        tip: str | None = None,
    ) -> None:
        """Add a rectangle with its upper left corner at (x, y)."""
        at = f'x="{coordinate(x)}" y="{coordinate(y)}"'
        at += f' width="{coordinate(max(width, 0))}" height="{coordinate(max(height, 0))}"'
        at += f' rx="{coordinate(round)}"' if round else ""
        self._mark("rect", at, style, tip)

    def note(self, y: float, text: str) -> float:
        """Add a remark below the chart, from `y` on; return its bottom."""
        lines = texts.wrap(text, RIGHT - LEFT, SIZES["tick"])
        for i, line in enumerate(lines):
            self.text(LEFT, y + 19 * i, line, "tick soft")
        return y + 19 * len(lines)

    def finish(self, height: float, details: str = "") -> Chart:
        """Finish the chart; the subtitle and `details` together are its description."""
        description = texts.clean(f"{self.subtitle} {details}", longest=_LONGEST_DESCRIPTION)
        box, grown = f"{coordinate(WIDTH)} {coordinate(height)}", WIDEST / WIDTH
        own = f'width="{coordinate(WIDEST)}" height="{coordinate(height * grown)}"'
        svg = "\n".join(
            [
                '<svg xmlns="http://www.w3.org/2000/svg" class="gn-chart" role="img" '
                f'viewBox="0 0 {box}" {own}>',
                f"<title>{texts.escape(self.title)}</title>",
                f"<desc>{texts.escape(description, longest=_LONGEST_DESCRIPTION)}</desc>",
                f"<style>{STYLE}</style>",
                '<rect width="100%" height="100%" rx="12" class="gn-surface"/>',
                *self._marks,
                "</svg>",
            ]
        )
        return Chart(svg, self.title, description, WIDTH, height)

    def _mark(self, tag: str, attributes: str, style: str, tip: str | None) -> None:
        opening = f'<{tag} {attributes} class="{_classes(style)}"'
        ending = "/>" if tip is None else f">{_tip(tip)}</{tag}>"
        self._marks.append(opening + ending)


def _tip(text: str) -> str:
    return f"<title>{texts.escape(text)}</title>"


def _classes(style: str) -> str:
    return " ".join(f"gn-{name}" for name in style.split())
