"""Preparing a table: missing values first, then whether its columns should be standardised."""

from dataclasses import replace

import numpy as np

from gnomon.data.missing import CHOICES, learn_filling, refuse_gaps, refuse_infinities
from gnomon.data.preparation import Preparation, Prepared
from gnomon.data.refusals import FileError, quoted
from gnomon.data.scale import FOLD, Scale, choose_scale
from gnomon.data.spread import measure_spread
from gnomon.data.table import Table
from gnomon.inputs import check_choice

__all__ = ["FOLD", "Preparation", "Prepared", "Scale", "choose_scale", "prepare"]

SCALES = {"auto": None, "none": False, "standard": True}


def prepare(table: Table, *, missing: str = "error", scale: str = "auto") -> Prepared:
    """Make a table ready, and remember how.

    Parameters
    ----------
    table : Table
        From `gnomon.data.read`; it is not changed.
    missing : {"error", "drop", "mean", "em"}
        What to do about missing values: refuse them, drop their rows, fill in the column's mean,
        or what the row's other values foretell (`gnomon.pca.impute`).
    scale : {"auto", "none", "standard"}
        Whether columns are divided by their standard deviations; "auto" decides by `choose_scale`.

    Returns
    -------
    Prepared
        With `X` of shape (m, d), the rows it was made of, and the `Preparation`.
    """
    check_choice("missing", missing, CHOICES)
    check_choice("scale", scale, tuple(SCALES))
    spread = measure_spread(table.X)
    refuse_infinities(table, spread)
    gaps = spread.gaps
    n = table.X.shape[0]
    if missing == "error":
        refuse_gaps(table, gaps, ("missing", "drop"), ("missing", "mean"), ("missing", "em"))
    empty = np.flatnonzero(gaps == n)
    if empty.size:
        name = table.columns[empty[0]]
        raise FileError(f"{table.name}: column {quoted(name)} has no values.", ("drop", name))
    plain = Preparation(
        columns=table.columns, missing=missing, scale="none", why="", n_rows=n,
        n_missing=int(gaps.sum()), n_dropped=0, filled="", mean=spread.mean, std=spread.std,
    )  # fmt: skip
    if missing == "drop" and gaps.any():
        table = plain.ready(table, gaps).table
        spread = measure_spread(table.X)
        gaps = spread.gaps
    chosen = choose_scale(table.X, SCALES[scale], names=table.columns, spread=spread)
    filling, filled = None, ""
    if missing == "em" and gaps.any():
        filling, filled = learn_filling(table, spread, standardize=chosen.standardize)
    preparation = replace(
        plain,
        scale="standard" if chosen.standardize else "none",
        why=chosen.why,
        n_dropped=n - table.X.shape[0],
        filled=filled,
        mean=spread.mean,
        std=np.where(spread.std > 0, spread.std, 1.0),
        filling=filling,
    )
    ready = preparation.ready(table, gaps)
    kept = table.places.rows if preparation.n_dropped else None
    return replace(ready, kept=kept)
