"""Loadings: a heat map of the composition of each component."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gnomon.charts import colours, words
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, column_names
from gnomon.charts.text import shorten, width
from gnomon.charts.theme import SIZES
from gnomon.inputs import check_choice, check_integer
from gnomon.typing import Array

__all__ = ["LoadingsData", "loadings", "loadings_data"]

ROW = 28.0
GAP = 2.0
LONGEST_NAME = 176.0
WIDEST_CELL = 72.0
TITLES = {
    "loading": "Loadings: what components are made of",
    "correlation": "Correlations of columns and components",
}
Measure = Literal["loading", "correlation"]


@dataclass(frozen=True, eq=False)
class LoadingsData:
    """What a heat map of loadings shows, whatever draws it.

    Attributes
    ----------
    values : array (D, k)
        Of all columns on the components that are shown.
    order : list of int
        The columns that are shown, from top to bottom.
    names : list of str
        Names of all columns.
    texts : list of list of str
        What stands in each cell.
    largest : float
        The value at the end of the colours.
    heads : list of str
        Share of the variance of each component, in words.
    title, subtitle : str
    """

    values: Array
    order: list[int]
    names: list[str]
    texts: list[list[str]]
    largest: float
    heads: list[str]
    title: str
    subtitle: str


def loadings_data(
    model: FittedPCA, n_components: int = 6, n_columns: int = 20, *, measure: Measure = "loading"
) -> LoadingsData:
    """Compute what the heat map of `model` shows."""
    k = min(check_integer("n_components", n_components, 1), int(model.n_components_))
    check_choice("measure", measure, tuple(TITLES))
    parts = np.nan_to_num(np.asarray(model.loadings_, dtype=np.float64)[:, :k])
    values = parts
    if measure == "correlation":
        values = np.nan_to_num(np.asarray(model.correlations(), dtype=np.float64)[:, :k])
    names = column_names(model)
    order = _order(parts, check_integer("n_columns", n_columns, 1))
    largest = float(np.abs(values).max(initial=0.0)) if measure == "loading" else 1.0
    texts = [[_cell_text(values[d, j], largest) for j in range(k)] for d in order]
    shares = np.nan_to_num(model.explained_variance_ratio_)[:k]
    heads = [f"{100 * share:.0f}\u00a0%" for share in shares]
    subtitle = _subtitle(values, parts, names, len(order), measure)
    return LoadingsData(values, order, names, texts, largest, heads, TITLES[measure], subtitle)


def loadings(
    model: FittedPCA,
    n_components: int = 6,
    n_columns: int = 20,
    *,
    measure: Measure = "loading",
) -> Chart:
    """Plot a heat map of loadings, columns of the table down and components across.

    A loading is a component's entry times its standard deviation: the change of the column for one
    standard deviation along the component, in the column's units. Divided by the column's own
    standard deviation it is the correlation of column and component, so that for standardised
    columns both are the same. Columns are grouped by the component they load on most.

    Parameters
    ----------
    model : fitted PCA
    n_components : int
        Number of components to show; fewer if the model has fewer.
    n_columns : int
        Number of columns to show, those with the largest loadings; fewer if there are fewer.
    measure : {"loading", "correlation"}
        Values of the cells. Columns are chosen and ordered by their loadings either way: a column
        that hardly varies may correlate with a component without contributing to it.

    Returns
    -------
    Chart
    """
    data = loadings_data(model, n_components, n_columns, measure=measure)
    values, names, order, texts = data.values, data.names, data.order, data.texts
    k, largest = values.shape[1], data.largest
    canvas = Canvas(data.title, data.subtitle)

    size = SIZES["label"]
    # At least wide enough for the key's title.
    room = min(
        max(width(text, size) for text in [measure, *(names[d] for d in order)]), LONGEST_NAME
    )
    left = LEFT + room + 14
    cell = min((RIGHT - left) / k, WIDEST_CELL)
    top = canvas.top + 62
    _draw_header(canvas, model, data.heads, left, top, cell)
    fits = max(width(text, SIZES["cell"]) for row in texts for text in row) <= cell - 6
    for row, d in enumerate(order):
        y = top + ROW * row
        name = shorten(names[d], room, size)
        canvas.text(left - 12, y + ROW / 2 + 5, name, "label ink", "end", tip=names[d])
        for j in range(k):
            step = colours.diverging(values[d, j], largest)
            tip = f"{names[d]} on PC{j + 1}: {words.number(values[d, j])}"
            x = left + cell * j
            canvas.rect(x, y, cell - GAP, ROW - GAP, f"d{step}", round=min(4, cell / 5), tip=tip)
            if fits:
                middle = x + (cell - GAP) / 2
                canvas.text(middle, y + ROW / 2 + 4, texts[row][j], f"cell t{step}", "middle")

    end = top + ROW * len(order)
    if largest > 0:
        end = _draw_key(canvas, left, end + 24, largest, measure)
    return canvas.finish(end + 22, _details(values, names, order, measure))


def _order(values: Array, n_columns: int) -> list[int]:
    """Columns to show: the strongest, grouped by the component they load on most."""
    strongest = np.argsort(-np.abs(values).max(axis=1), kind="stable")[:n_columns]
    main = np.abs(values).argmax(axis=1)
    return sorted(map(int, strongest), key=lambda d: (main[d], -values[d, main[d]]))


def _subtitle(values: Array, parts: Array, names: list[str], shown: int, measure: str) -> str:
    if not values.any():
        return f"All {measure}s are zero: the columns are constant."
    said = []
    for j in range(min(2, values.shape[1])):
        d = int(np.abs(parts[:, j]).argmax())
        name = shorten(names[d], 2 * LONGEST_NAME, SIZES["sub"])
        said.append(f"PC{j + 1} is led by {name} ({measure} {_two_digits(values[d, j], measure)})")
    sentence = ", ".join(said) + "."
    if shown < len(names):
        sentence += (
            f" Shown: {shown} of {words.count(len(names), 'column')}, those that weigh most."
        )
    return sentence


def _two_digits(value: float, measure: str) -> str:
    """Two decimals for correlations, as in the page's sentences; loadings may have any size."""
    return f"{value:.2f}".replace("-", "−") if measure == "correlation" else words.number(value, 2)


def _cell_text(value: float, largest: float) -> str:
    if 0.01 <= largest < 100:
        text = f"{value:.2f}".replace("-", "−")
        return text.removeprefix("−") if text.strip("−0.") == "" else text
    return words.number(value, 2)


def _draw_header(
    canvas: Canvas, model: FittedPCA, heads: list[str], left: float, top: float, cell: float
) -> None:
    shares = np.nan_to_num(model.explained_variance_ratio_)
    every = int(np.ceil(40 / cell))
    for j in range(0, len(heads), every):
        middle = left + cell * j + (cell - GAP) / 2
        canvas.text(middle, top - 30, f"PC{j + 1}", "label ink bold", "middle")
        tip = words.percent(shares[j])
        canvas.text(middle, top - 12, heads[j], "tick soft", "middle", tip=tip)


def _draw_key(canvas: Canvas, left: float, top: float, largest: float, measure: str) -> float:
    """Draw the ramp with numbers at its ends and middle; return its bottom."""
    swatch = 11.0
    for step in range(colours.DIVERGING):
        canvas.rect(left + swatch * step, top, swatch - 1, 10, f"d{step}", round=1)
    middle = left + swatch * (colours.DIVERGING / 2) - 0.5
    reach = swatch * (colours.DIVERGING // 2)
    for at, value in ((middle - reach, -largest), (middle, 0.0), (middle + reach, largest)):
        canvas.text(at, top + 28, words.number(value, 2), "tick soft", "middle")
    canvas.text(left - 12, top + 10, measure, "label soft", "end")
    return top + 28


def _details(values: Array, names: list[str], order: list[int], measure: str) -> str:
    rows = []
    for d in order:
        entries = ", ".join(
            f"PC{j + 1} {words.number(value, 2)}" for j, value in enumerate(values[d])
        )
        rows.append(f"{shorten(names[d], LONGEST_NAME, SIZES['label'])}: {entries}")
    return f"{measure.capitalize()}s: {'; '.join(rows)}."
