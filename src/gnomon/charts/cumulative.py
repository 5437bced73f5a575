"""Cumulative chart: share of the variance that the first components hold together."""

import numpy as np

from gnomon.charts import words
from gnomon.charts.axis import AxisScale, draw_share_axes
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, components_needed, known_shares
from gnomon.charts.theme import SIZES
from gnomon.typing import Array

__all__ = ["cumulative"]

MARKS = (0.80, 0.90, 0.95)
PLOT_HEIGHT = 300.0
# Margin on the right for "29 for 95 %".
MARGIN = 104.0
# Up to this many, all components are drawn; beyond, as far as the curve still rises.
MOST_COMPONENTS = 40


def cumulative(model: FittedPCA) -> Chart:
    """Plot the cumulative share of variance, with the components needed for 80, 90 and 95 %.

    Parameters
    ----------
    model : fitted PCA

    Returns
    -------
    Chart
    """
    shares = known_shares(model)
    kept = int(model.n_components_)
    sums = np.concatenate([[0.0], np.cumsum(shares).clip(0.0, 1.0)])
    needed = {mark: components_needed(shares, mark) for mark in MARKS}
    canvas = Canvas("Cumulative share of the variance", _subtitle(sums, needed, kept, _most(model)))

    shown = _shown(len(shares), kept, needed)
    top = canvas.top + 24
    x = AxisScale(0.0, shown, LEFT + 46, RIGHT - MARGIN)
    y = AxisScale(0.0, 1.0, top + PLOT_HEIGHT, top)
    draw_share_axes(canvas, x, y, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), "number of components")
    _draw_curve(canvas, x, y, sums[: shown + 1], kept)
    _draw_marks(canvas, x, y, sums, needed)

    end = y.start + 52
    remarks = []
    missing = [words.percent(mark) for mark, k in needed.items() if k is None]
    if missing and shares.any():
        remarks.append(
            f"{words.listing(missing)} {'needs' if len(missing) == 1 else 'need'} more than the "
            f"{words.count(len(shares), 'component')} known."
        )
    if shown < len(shares):
        remarks.append(f"The first {shown} of {words.count(len(shares), 'component')} are drawn.")
    if remarks:
        end = canvas.note(end + 16, " ".join(remarks))
    details = "; ".join(f"{k}: {words.percent(sums[k])}" for k in range(1, shown + 1))
    return canvas.finish(end + 16, f"Sums by number of components: {details}.")


def _most(model: FittedPCA) -> float:
    """Components that centred rows can have; no limit if their number is not known."""
    return getattr(model, "n_samples_", np.inf) - 1


def _subtitle(sums: Array, needed: dict[float, int | None], kept: int, most: float) -> str:
    if not sums.any():
        return "All columns are constant: there is no variance."
    known, k = int(min(len(sums) - 1, most)), needed[0.95]
    if k is None:
        together = f"{words.count(known, 'component')} {words.hold(known)}"
        return f"{together} {words.percent(sums[-1])} of the variance; 95\u00a0% needs more."
    of_all = f" of {known}" if k < known else ""
    sentence = f"{words.count(k, 'component')}{of_all} {words.hold(k)} 95\u00a0% of the variance."
    if kept != k and kept < known:
        sentence += f" The {kept} kept {words.hold(kept)} {words.percent(sums[kept])}."
    return sentence


def _shown(known: int, kept: int, needed: dict[float, int | None]) -> int:
    if known <= MOST_COMPONENTS:
        return known
    furthest = max([kept, *(k if k is not None else known for k in needed.values())])
    return min(known, max(MOST_COMPONENTS, int(1.2 * furthest)))


def _draw_curve(canvas: Canvas, x: AxisScale, y: AxisScale, sums: Array, kept: int) -> None:
    points = [(x(k), y(float(total))) for k, total in enumerate(sums)]
    area = [*points[: kept + 1], (points[min(kept, len(points) - 1)][0], y.start), points[0]]
    canvas.polyline(area, "accent area")
    if kept + 1 < len(points):
        canvas.polyline(points[kept:], "line thick line-quiet")
    canvas.polyline(points[: kept + 1], "line thick line-accent")
    # Dots closer than this would look like a second line.
    radius = 3.2 if x(1) - x(0) >= 14 else 0.0
    for k, (at_x, at_y) in enumerate(points[1:], start=1):
        tip = f"{words.count(k, 'component')}: {words.percent(float(sums[k]))}"
        style = "accent ring" if k <= kept else "quiet ring"
        if radius:
            canvas.circle(at_x, at_y, radius + 0.75, style, tip)


def _draw_marks(
    canvas: Canvas, x: AxisScale, y: AxisScale, sums: Array, needed: dict[float, int | None]
) -> None:
    """Draw a dot where each mark is reached, and lines to its label and to the axis."""
    label_at = float("inf")
    # From the lowest mark up, each label at least one line above the previous.
    for mark, k in sorted(needed.items()):
        if k is None:
            continue
        at_x, at_y = x(k), y(mark)
        label_at = min(at_y, label_at - SIZES["label"] - 5)
        canvas.line(at_x, y(float(sums[k])), at_x, y.start, "line line-soft dash")
        canvas.line(at_x, at_y, x.end, at_y, "line line-soft dash")
        canvas.line(x.end, at_y, x.end + 10, label_at, "line line-soft dash")
        canvas.circle(at_x, y(float(sums[k])), 5, "ink ring", f"{words.percent(mark)} by {k}")
        canvas.text(x.end + 16, label_at + 5, f"{k} for {words.percent(mark)}", "label ink bold")
