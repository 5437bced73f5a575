"""Distance ranks: whether pairs that are near or far in the data are so on the map."""

from typing import Any

import numpy as np

from gnomon.charts import colours, words
from gnomon.charts.axis import AxisScale
from gnomon.charts.canvas import LEFT, Canvas
from gnomon.charts.chart import Chart
from gnomon.errors import refuse
from gnomon.typing import Array

__all__ = ["distance_ranks", "kept_in_order"]

SIDE = 330.0
MOST_CELLS, LEAST_IN_CELL = 20, 4
FIFTH = 0.2


def kept_in_order(in_data: Array, in_map: Array) -> tuple[float, float]:
    """Shares of the nearest and of the farthest fifth of pairs that are so on the map too."""
    a, b = _ranks(in_data), _ranks(in_map)
    near, far = a < FIFTH, a >= 1 - FIFTH
    return float(np.mean(b[near] < FIFTH)), float(np.mean(b[far] >= 1 - FIFTH))


def distance_ranks(in_data: Any, in_map: Any) -> Chart:
    """Plot pairs of points by the ranks of their distances in the data and on the map.

    A map that preserves the order of all distances has its pairs on the diagonal.

    Parameters
    ----------
    in_data, in_map : array (m,)
        Distances of the same pairs, m ≥ 10.

    Returns
    -------
    Chart
    """
    a, b = np.asarray(in_data, np.float64), np.asarray(in_map, np.float64)
    if a.ndim != 1 or a.shape != b.shape or a.size < 10:
        refuse("in_map", "hold a distance for each of at least 10 pairs", f"shape {b.shape}")
    cells = int(np.clip(np.sqrt(a.size / LEAST_IN_CELL), 5, MOST_CELLS))
    counts = np.histogram2d(_ranks(a), _ranks(b), bins=cells, range=[[0, 1], [0, 1]])[0]
    near, far = kept_in_order(a, b)
    subtitle = (
        f"Of the nearest fifth of pairs in the data {words.percent(near)} are in the nearest fifth "
        f"on the map, of the farthest fifth {words.percent(far)} in the farthest."
    )
    canvas = Canvas("Distances in order", subtitle)
    top, left = canvas.top + 44, LEFT + 100
    x = AxisScale(0.0, 1.0, left, left + SIDE)
    y = AxisScale(0.0, 1.0, top + SIDE, top)
    step = SIDE / cells
    high = float(np.quantile(counts, 0.99)) or 1.0
    for i, j in zip(*np.nonzero(counts), strict=True):
        colour = colours.sequential(float(counts[i, j]), 0.0, high)
        canvas.rect(
            x.start + step * i, y.start - step * (j + 1), step - 0.5, step - 0.5, f"v{colour}"
        )
    canvas.line(x.start, y.start, x.end, y.end, "line line-ink dash")
    canvas.path(_frame(x, y), "axis")
    for at, anchor, text in ((x.start, "start", "nearest"), (x.end, "end", "farthest")):
        canvas.text(at, y.start + 20, text, "tick soft", "start" if anchor == "start" else "end")
    canvas.text(x.start - 10, y.start, "nearest", "tick soft", "end")
    canvas.text(x.start - 10, y.end + 10, "farthest", "tick soft", "end")
    canvas.text(
        (x.start + x.end) / 2, y.start + 44, "pairs by distance in the data", "label soft", "middle"
    )
    canvas.text(LEFT, top - 16, "↑ pairs by distance on the map", "label soft")
    return canvas.finish(y.start + 66, f"Drawn from {a.size:,} pairs.")


def _frame(x: AxisScale, y: AxisScale) -> str:
    corners = [(x.start, y.start), (x.end, y.start), (x.end, y.end), (x.start, y.end)]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in corners) + "z"


def _ranks(values: Array) -> Array:
    """Ranks from 0 to below 1; ties in their original order."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size) / values.size
    return ranks
