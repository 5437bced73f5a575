"""Scree chart: share of the variance of each component."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gnomon.charts import words
from gnomon.charts.axis import AxisScale, tick_text, ticks
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, components_needed, known_shares
from gnomon.charts.label_placement import Box, Spot, Wanted, place
from gnomon.charts.text import clean, shorten, width
from gnomon.charts.theme import SIZES
from gnomon.errors import refuse
from gnomon.typing import Array

__all__ = ["RulePanel", "ScreeData", "scree", "scree_data"]

# Beyond is a flat tail; more bars than this would be too thin to read.
USUAL_BARS = 20
MOST_BARS = 60
PLOT_HEIGHT = 250.0
TITLE = "Scree: how much each component holds"


class RulePanel(Protocol):
    """Rules for the number of components, and how many each keeps; None if it cannot be applied."""

    @property
    def counts(self) -> Mapping[str, int | None]:
        """Number of components by rule."""


@dataclass(frozen=True, eq=False)
class ScreeData:
    """What a scree chart shows, whatever draws it.

    Attributes
    ----------
    shares : array (k,)
        Share of the variance of each component that is drawn.
    kept : int
        Components that the model keeps.
    rules : dict of int to list of str
        Rules by the number of components they keep, fewest first.
    subtitle : str
    remarks : tuple of str
    """

    shares: Array
    kept: int
    rules: dict[int, list[str]]
    subtitle: str
    remarks: tuple[str, ...]


def scree_data(
    model: FittedPCA, panel: RulePanel | Mapping[str, int | None] | None = None
) -> ScreeData:
    """Compute what the scree chart of `model` shows."""
    shares = known_shares(model)
    rules = _rules_by_count(panel)
    kept = int(model.n_components_)
    shown = min(len(shares), MOST_BARS, max([USUAL_BARS, kept + 2, *(k + 2 for k in rules)]))
    remarks = []
    if kept < len(shares):
        remarks.append(f"Colour: the {words.count(kept, 'component')} the model keeps.")
    if shown < len(shares):
        remarks.append(f"The first {shown} of {words.count(len(shares), 'component')} are drawn.")
    return ScreeData(shares[:shown], kept, rules, _subtitle(shares, rules), tuple(remarks))


def scree(model: FittedPCA, *, panel: RulePanel | Mapping[str, int | None] | None = None) -> Chart:
    """Plot bars of each component's share of the variance, largest first.

    Components that the model keeps are in colour; those it knows but does not keep are grey.

    Parameters
    ----------
    model : fitted PCA
    panel : mapping of str to int, or an object whose ``counts`` is one, optional
        Rules and how many components each keeps, from `component_panel`; each number of
        components is marked. Shares of the variance ("95 %") are left to `cumulative`.

    Returns
    -------
    Chart
    """
    data = scree_data(model, panel)
    shares, rules, shown = data.shares, data.rules, len(data.shares)
    canvas = Canvas(TITLE, data.subtitle)

    plot_top = canvas.top + 34 + 24 * len(rules)
    bottom = plot_top + PLOT_HEIGHT
    highest = float(shares.max(initial=0.0)) or 1.0
    x = AxisScale(0.5, shown + 0.5, LEFT + 44, RIGHT)
    y = AxisScale(0.0, highest, bottom, plot_top)
    _draw_axes(canvas, x, y, shown)
    boxes = _draw_bars(canvas, x, y, shares, data.kept, np.asarray(model.spectrum_))
    _draw_rules(canvas, x, rules, shown, top=canvas.top + 26, bottom=bottom)
    _draw_values(canvas, x, y, shares, boxes, bottom)

    end = bottom + 52
    if data.remarks:
        end = canvas.note(end + 16, " ".join(data.remarks))
    details = "; ".join(f"PC{i + 1} {words.percent(s)}" for i, s in enumerate(shares))
    said = [f"{k} by {words.listing(names)}" for k, names in rules.items()]
    rules_said = f" Components to keep: {'; '.join(said)}." if said else ""
    return canvas.finish(end + 16, f"Shares: {details}.{rules_said}")


def _rules_by_count(panel: Any) -> dict[int, list[str]]:
    """Rules grouped by the number of components they keep, fewest first."""
    counts = getattr(panel, "counts", panel)
    if counts is None:
        return {}
    if not isinstance(counts, Mapping):
        refuse("panel", "map rules to numbers of components", type(panel).__name__, kind=True)
    gathered = defaultdict(list)
    for rule, k in counts.items():
        if k is not None and not re.fullmatch(r"[\d.]+\s?%", str(rule)):
            gathered[int(k)].append(clean(rule))
    return dict(sorted(gathered.items()))


def _subtitle(shares: Array, rules: dict[int, list[str]]) -> str:
    if not shares.any():
        return "All columns are constant: there is no variance."
    sentence = f"The first component holds {words.percent(shares[0])} of the variance"
    needed = components_needed(shares, 0.95)
    if needed == 1:
        sentence += "; no other is needed for 95\u00a0%."
    elif needed is not None:
        sentence += f"; {words.count(needed, 'component')} together hold 95\u00a0%."
    elif len(shares) == 1:
        sentence += "; the others are not known."
    else:
        together = words.percent(float(shares.sum()))
        sentence += f"; the {len(shares)} known together hold {together}."
    if rules:
        least, most = min(rules), max(rules)
        many = f"{least} to {most} components" if least < most else words.count(least, "component")
        sentence += f" The rules marked say to keep {many}."
    return sentence


def _draw_axes(canvas: Canvas, x: AxisScale, y: AxisScale, shown: int) -> None:
    marks = [100 * share for share in ticks(0.0, y.high, 5)]
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    for mark in marks:
        at = y(mark / 100)
        canvas.line(x.start, at, x.end, at, "axis" if mark == 0 else "grid")
        text = tick_text(mark, step) + "\u00a0%"
        canvas.text(x.start - 8, at + 4, text, "tick soft", "end")
    every = next(n for n in (1, 2, 5, 10) if n * (x(2) - x(1)) >= 26 or n == 10)
    for component in range(1, shown + 1):
        # 1, 3, 5 … or 1, 5, 10 …
        if component == 1 or component % every == (1 if every == 2 else 0):
            canvas.text(x(component), y.start + 20, str(component), "tick soft", "middle")
    canvas.text((x.start + x.end) / 2, y.start + 44, "component", "label soft", "middle")


def _draw_bars(
    canvas: Canvas, x: AxisScale, y: AxisScale, shares: Array, kept: int, spectrum: Array
) -> list[Box]:
    breadth = min(0.72 * (x(2) - x(1)), 44.0)
    boxes = []
    for i, share in enumerate(map(float, shares)):
        left, top = x(i + 1) - breadth / 2, y(share)
        variance = f", variance {words.number(float(spectrum[i]))}" if i < len(spectrum) else ""
        tip = f"PC{i + 1}: {words.percent(share)}{variance}"
        height, style = y.start - top, "accent" if i < kept else "quiet"
        canvas.rect(left, top, breadth, height, style, round=min(3.0, height / 2), tip=tip)
        boxes.append(Box(left, top, left + breadth, y.start))
    return boxes


def _draw_values(
    canvas: Canvas, x: AxisScale, y: AxisScale, shares: Array, bars: list[Box], bottom: float
) -> None:
    """Write percentages on the bars from the first on, until one does not fit."""
    size = SIZES["label"]
    texts = [words.percent(float(share)) for share in shares]
    wanted = [
        Wanted(
            width(text, size),
            size,
            [Spot(x(i + 1), bars[i].top - 7, "middle"), Spot(bars[i].left, bars[i].top - 7)],
        )
        for i, text in enumerate(texts)
    ]
    bounds = Box(x.start - 6, 0, x.end + 20, bottom)
    for text, spot in zip(texts, place(wanted, bounds, bars), strict=True):
        if spot is None:
            break
        canvas.text(spot.x, spot.y, text, "label ink halo", spot.anchor)


def _draw_rules(
    canvas: Canvas, x: AxisScale, rules: dict[int, list[str]], shown: int, top: float, bottom: float
) -> None:
    """Mark the last component each rule keeps, with the rules' names at the top.

    The fewest components are highest, so that no mark crosses a later one's name.
    """
    size = SIZES["label"]
    for row, (k, names) in enumerate(rules.items()):
        head = top + 24 * row
        at = min(x(k + 0.5), x.end)
        many = f": {k}" + (" →" if k > shown else "")
        text = words.listing(names) + many
        longest = max(at - x.start, x.end - at) - 8
        fitting = shorten(words.listing(names), longest - width(many, size), size) + many
        to_the_right = at + 8 + width(fitting, size) <= x.end
        canvas.line(at, head - 10, at, bottom, "line line-soft dash")
        canvas.text(
            at + 8 if to_the_right else at - 8,
            head,
            fitting,
            "label ink halo",
            "start" if to_the_right else "end",
            tip=text,
        )
