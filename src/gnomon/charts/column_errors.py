"""Column errors: the share of each column's variance that the kept components lose."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import words
from gnomon.charts.axis import AxisScale
from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart
from gnomon.charts.fitted import FittedPCA, column_names
from gnomon.charts.text import shorten, width
from gnomon.charts.theme import SIZES
from gnomon.inputs import check_integer, check_weights
from gnomon.typing import Array

__all__ = ["column_errors", "lost_shares", "varying"]

ROW = 26.0
LONGEST_NAME = 190.0
NAMED = 3  # columns that hardly vary, named in the subtitle
HARDLY = 0.1  # share of the columns' mean variance below which a column hardly varies
BADLY = 0.5  # share of its variance that a passed-over column loses if it is named


def lost_shares(model: FittedPCA, variances: Any = None) -> Array:
    """Share of each column's variance that the components do not explain, shape (D,).

    1 − Σr² over the correlations with the components; NaN for a constant column, which has no
    variance to lose. Without `variances` (D,), a column uncorrelated with all counts as constant.
    """
    r = np.asarray(model.correlations(), dtype=np.float64)
    lost: Array = (1.0 - (np.nan_to_num(r) ** 2).sum(axis=1)).clip(0.0, 1.0)
    lost[lost < 1e-12] = 0.0
    weights = check_weights("variances", variances, len(lost), of="column")
    constant = ~np.isfinite(r).all(axis=1) | ~r.any(axis=1) if weights is None else weights == 0
    return np.where(constant, np.nan, lost)


def varying(variances: Any) -> NDArray[np.bool_]:
    """Mark columns that vary at least a tenth as much as the average one."""
    known = np.asarray(variances, dtype=np.float64)
    return np.asarray(known >= HARDLY * known.mean())


def column_errors(model: FittedPCA, n_columns: int = 12, *, variances: Any = None) -> Chart:
    """Plot bars of the columns with the largest reconstruction error.

    Parameters
    ----------
    model : fitted PCA
    n_columns : int
        Number of columns to show; fewer if there are fewer.
    variances : array (D,), optional
        Variances of the columns; with them, columns that hardly vary (less than a tenth of the
        average) are skipped: losing them is no loss.

    Returns
    -------
    Chart
    """
    lost = lost_shares(model, variances)
    names = column_names(model)
    known = np.flatnonzero(np.isfinite(lost))
    if variances is not None:
        known = known[varying(variances)[known]]
    order = known[np.argsort(-lost[known], kind="stable")]
    shown = [int(d) for d in order[: check_integer("n_columns", n_columns, 1)]]
    missing = [] if variances is None else _passed_over(lost, variances, names)
    canvas = Canvas(
        "Columns with the largest error",
        _subtitle(lost, names, shown, model, missing),
    )
    size = SIZES["label"]
    room = min(max([width(names[d], size) for d in shown], default=0.0), LONGEST_NAME)
    left = LEFT + room + 14
    top = canvas.top + 24
    x = AxisScale(0.0, 1.0, left, RIGHT - 56)
    bottom = top + ROW * len(shown)
    if shown:
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            canvas.line(x(share), top - 8, x(share), bottom, "grid" if share else "axis")
            if share in (0.0, 0.5, 1.0):
                canvas.text(x(share), bottom + 20, words.percent(share), "tick soft", "middle")
    for row, d in enumerate(shown):
        y = top + ROW * row
        text = words.percent(float(lost[d]))
        name = shorten(names[d], room, size)
        canvas.text(left - 12, y + ROW / 2 + 3, name, "label ink", "end", tip=names[d])
        long = x(float(lost[d])) - left
        canvas.rect(
            left,
            y + 2,
            long,
            ROW - 8,
            "accent",
            round=min(3.0, long / 2),
            tip=f"{names[d]}: {text} lost",
        )
        canvas.text(left + long + 8, y + ROW / 2 + 3, text, "label ink halo")
    end = bottom + 20 if shown else canvas.top
    details = "; ".join(f"{names[d]} {words.percent(float(lost[d]))}" for d in shown)
    return canvas.finish(end + 22, f"Variance lost: {details}." if details else "")


def _passed_over(lost: Array, variances: Any, names: list[str]) -> list[str]:
    """Names of columns that hardly vary and are badly lost, with their loss, largest first."""
    badly = np.nan_to_num(lost) >= BADLY
    left = np.flatnonzero(badly & ~varying(variances))
    order = left[np.argsort(-lost[left], kind="stable")]
    return [f"{shorten(names[d], 120.0, SIZES['label'])} {words.percent(lost[d])}" for d in order]


def _subtitle(
    lost: Array, names: list[str], shown: list[int], model: FittedPCA, missing: list[str]
) -> str:
    if not shown:
        return "All columns are constant: there is no variance to lose."
    k = int(model.n_components_)
    kept = words.count(k, "component")
    if np.nanmax(lost) == 0:
        return f"{kept} {words.hold(k)} every column entirely."
    some = ""
    if len(shown) + len(missing) < len(names):
        some = f" The {len(shown)} worst of {len(names):,} columns are shown."
    if missing:
        # Named, so that the column with the largest loss is never left out in silence.
        rest = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
        some += (
            f" Below {words.percent(HARDLY)} of the average variance, and not shown: "
            f"{', '.join(missing[:NAMED])}{rest}."
        )
    middle = words.percent(float(np.nanmedian(lost)))
    return (
        f"Share of each column's variance that {kept} "
        f"{'does' if k == 1 else 'do'} not hold; {middle} for the median column."
        f"{some}"
    )
