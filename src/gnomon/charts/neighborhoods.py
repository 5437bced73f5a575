"""Neighbourhoods: share of neighbours that a map preserves, by number of neighbours."""

import math
from typing import Any, Protocol

import numpy as np

from gnomon.charts import words
from gnomon.charts.axis import AxisScale
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.theme import SIZES
from gnomon.typing import Array

__all__ = ["MeanScores", "ScoredMap", "neighborhoods"]

PLOT_HEIGHT = 260.0
MARGIN = 128.0  # margin on the right, for "trustworthiness"


class MeanScores(Protocol):
    """One score for several sizes of neighbourhood."""

    @property
    def mean(self) -> Any:
        """Mean over the points for each size."""


class ScoredMap(Protocol):
    """Scores of a map, as `gnomon.scores.score_map` gives them."""

    @property
    def n(self) -> int:
        """Rows."""

    @property
    def n_neighbors(self) -> tuple[int, ...]:
        """Sizes of neighbourhoods."""

    @property
    def recall(self) -> MeanScores:
        """Share of neighbours kept."""

    @property
    def trustworthiness(self) -> MeanScores:
        """Whether neighbours on the map are neighbours in the data."""

    @property
    def continuity(self) -> MeanScores:
        """Whether neighbours in the data are neighbours on the map."""


def neighborhoods(scores: ScoredMap) -> Chart:
    """Plot neighbours kept, trustworthiness and continuity by size of neighbourhood.

    Parameters
    ----------
    scores : MapScores
        From `gnomon.scores.score_map`, preferably for several sizes.

    Returns
    -------
    Chart
    """
    sizes = [int(k) for k in scores.n_neighbors]
    lines = {
        "neighbours kept": (np.asarray(scores.recall.mean), "accent"),
        "trustworthiness": (np.asarray(scores.trustworthiness.mean), "c9"),
        "continuity": (np.asarray(scores.continuity.mean), "c8"),
    }
    chance = np.array([k / (scores.n - 1) for k in sizes])
    canvas = Canvas("Neighbours kept, near and far", _subtitle(sizes, lines["neighbours kept"][0]))
    top = canvas.top + 24
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    x = AxisScale(low, high, LEFT + 60, RIGHT - MARGIN)
    y = AxisScale(0.0, 1.0, top + PLOT_HEIGHT, top)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        canvas.line(LEFT + 46, y(share), x.end, y(share), "grid" if share else "axis")
        canvas.text(LEFT + 36, y(share) + 4, f"{share:g}", "tick soft", "end")
    for k in sizes:
        canvas.text(x(math.log(k)), y.start + 20, str(k), "tick soft", "middle")
    middle = (x.start + x.end) / 2
    canvas.text(middle, y.start + 44, "number of neighbours", "label soft", "middle")
    _draw_line(canvas, x, y, sizes, chance, "line line-soft dash", None)
    for name, (values, colour) in lines.items():
        _draw_line(canvas, x, y, sizes, values, f"line thick line-{colour}", (name, colour))
    _name_lines(
        canvas,
        x.end + 12,
        y,
        {
            **{name: (float(values[-1]), colour) for name, (values, colour) in lines.items()},
            "by chance": (float(chance[-1]), "soft"),
        },
    )
    details = "; ".join(
        f"{name} {', '.join(f'{k}: {v:.3f}' for k, v in zip(sizes, values, strict=True))}"
        for name, (values, _) in lines.items()
    )
    return canvas.finish(y.start + 66, f"By number of neighbours: {details}.")


def _subtitle(sizes: list[int], kept: Array) -> str:
    share = words.percent(float(kept[0]))
    sentence = f"Of the {sizes[0]} nearest rows the map keeps {share}"
    if sizes[0] == 1:
        sentence = f"The nearest row stays the nearest for {share} of the rows"
    if len(sizes) > 1:
        sentence += f", of the {sizes[-1]} nearest {words.percent(float(kept[-1]))}"
    return sentence + "."


def _draw_line(
    canvas: Canvas,
    x: AxisScale,
    y: AxisScale,
    sizes: list[int],
    values: Array,
    style: str,
    named: tuple[str, str] | None,
) -> None:
    points = [(x(math.log(k)), y(float(v))) for k, v in zip(sizes, values, strict=True)]
    canvas.polyline(points, style)
    if named is None:
        return
    name, colour = named
    for (at_x, at_y), k, value in zip(points, sizes, values, strict=True):
        canvas.circle(at_x, at_y, 4, f"{colour} ring", f"{name}, {k}: {value:.3f}")


def _name_lines(
    canvas: Canvas, left: float, y: AxisScale, ends: dict[str, tuple[float, str]]
) -> None:
    """Write names at the ends of the lines, from the highest down, one line apart."""
    step = SIZES["label"] + 4.0
    at = -math.inf
    lowest = y.start + 4
    order = sorted(ends.items(), key=lambda item: -item[1][0])
    places = []
    for _, (value, _) in order:
        at = max(y(value) + 4, at + step)
        places.append(at)
    for i in reversed(range(len(places))):  # and back up from the axis
        places[i] = min(places[i], lowest - step * (len(places) - 1 - i))
    for (name, (_, colour)), place in zip(order, places, strict=True):
        canvas.text(left, place, name, f"label {colour} bold")
