"""Preparing a table: missing values first, then whether its columns should be standardised."""

from dataclasses import replace
from typing import Any

import numpy as np

from gnomon.budget import Budget, Memory
from gnomon.data.missing import CHOICES, FilledGaps, learn_filling, refuse_gaps, refuse_infinities
from gnomon.data.names import are_components
from gnomon.data.preparation import Preparation, Prepared
from gnomon.data.prepared import drop_gaps, measure, unmeasured
from gnomon.data.refusals import FileError, quoted
from gnomon.data.scale import FOLD, Scale, choose_scale
from gnomon.data.spread import Spread, measure_spread
from gnomon.data.table import Table
from gnomon.engine import Engine, as_engine
from gnomon.engine.arrays import hold
from gnomon.inputs import check_choice

__all__ = [
    "FOLD",
    "Preparation",
    "Prepared",
    "Scale",
    "choose_scale",
    "drop_empty_rows",
    "prepare",
]

SCALES = {"auto": None, "none": False, "standard": True}
EM_TIMES = 5  # the table in float64, and copies of it, while gaps are filled in


def prepare(
    table: Table,
    *,
    missing: str = "error",
    scale: str = "auto",
    engine: Any = None,
    memory: Memory = None,
) -> Prepared:
    """Make a table ready, and remember how.

    Parameters
    ----------
    table : Table
        From `gnomon.data.read` or `gnomon.data.open`; it is not changed.
    missing : {"error", "drop", "mean", "em"}
        What to do about missing values: refuse them, drop their rows, fill in the column's mean,
        or what the row's other values foretell (`gnomon.pca.impute`). "em" drops rows that have no
        value at all: nothing foretells these.
    scale : {"auto", "none", "standard"}
        Whether columns are divided by their standard deviations; "auto" decides by `choose_scale`.
    engine : Dask client or engine, optional
        What works through a table in blocks; by default threads of this machine.
    memory : int or str, optional
        Bytes, or a size such as "2GB", that "em" may use to hold a table in blocks.

    Returns
    -------
    Prepared
        With `X` of shape (m, d), the rows it was made of, and the `Preparation`. A table in blocks
        is read once, with "drop" twice; not at all if there is nothing to be found out, and its
        gaps are then refused when they are met.
    """
    check_choice("missing", missing, CHOICES)
    check_choice("scale", scale, tuple(SCALES))
    asked, engine = SCALES[scale], as_engine(engine)
    n, d = table.X.shape
    idle = table.in_blocks and asked is False and missing == "error"
    if missing == "em":
        table = drop_empty_rows(table)
    spread = unmeasured(d) if idle else measure(table.X, engine)
    refuse_infinities(table, spread, engine)
    gaps = spread.gaps
    if missing == "error":
        ways = ("missing", "drop"), ("missing", "mean"), ("missing", "em")
        refuse_gaps(table, gaps, *ways, engine=engine)
    empty = np.flatnonzero(gaps == table.n_rows)
    if empty.size:
        name = table.columns[empty[0]]
        raise FileError(f"{table.name}: column {quoted(name)} has no values.", ("drop", name))
    plain = Preparation(
        columns=table.columns,
        missing=missing,
        scale="none",
        why="",
        n_rows=n,
        n_missing=int(gaps.sum()),
        n_dropped=0,
        filled="",
        mean=spread.mean,
        std=spread.std,
    )
    if missing == "drop" and gaps.any():
        table, spread = _drop(table, plain, spread, engine)
        gaps = spread.gaps
    if asked is None and are_components(table.columns):
        chosen = Scale(False, "principal components, whose spreads say how much each holds")
    elif table.is_sparse:
        chosen = _choose_sparse(table, asked, missing, bool(gaps.any()))
    else:
        chosen = choose_scale(np.empty((0, d)), asked, names=table.columns, spread=spread)
    filling, filled = None, ""
    if missing == "em" and gaps.any():
        filling, filled = _learn(table, spread, chosen, engine, memory)
    preparation = replace(
        plain,
        scale="standard" if chosen.standardize else "none",
        why=chosen.why,
        n_dropped=n - table.n_rows,
        filled=filled,
        mean=np.zeros(d) if table.is_sparse and chosen.standardize else spread.mean,
        std=np.where(spread.std > 0, spread.std, 1.0),
        filling=filling,
    )
    ready = preparation.ready(table, gaps)
    kept = table.places.rows if preparation.n_dropped else None
    return replace(ready, kept=kept)


def drop_empty_rows(table: Table) -> Table:
    """The table without the rows that have no value at all; one in blocks as it is."""
    if table.in_blocks or table.is_sparse or table.X.dtype.kind != "f":
        return table
    empty = np.isnan(table.X).all(axis=1)
    return table.take(np.flatnonzero(~empty)) if empty.any() and not empty.all() else table


def _choose_sparse(table: Table, asked: bool | None, missing: str, gaps: bool) -> Scale:
    """The scale of a sparse table, which stays sparse: its zeros are neither filled nor moved."""
    if gaps and missing != "drop":
        raise FileError(
            f"{table.name} is a sparse matrix: filling in its missing values by {missing} would "
            "make it dense.",
            ("missing", "drop"),
        )
    if asked is None:
        return Scale(False, "a sparse matrix: its columns are taken to be of one kind")
    return Scale(asked, "as asked")


def _drop(table: Table, plain: Preparation, spread: Spread, engine: Engine) -> tuple[Table, Spread]:
    """The table without the rows that have gaps, and its spread."""
    if not table.in_blocks:
        table = plain.ready(table, spread.gaps).table
        return table, measure_spread(table.X)
    left, _, found = drop_gaps(table, plain, engine)
    if found is None:
        refuse_gaps(table, spread.gaps, ("missing", "mean"), "Every row has one.", engine=engine)
        raise AssertionError("gaps were counted and not found")
    return left, found


def _learn(
    table: Table, spread: Spread, chosen: Scale, engine: Engine, memory: Memory
) -> tuple[FilledGaps, str]:
    """What "em" fills in, learned from all rows at once: they are held while it learns."""
    n, d = table.X.shape
    if table.in_blocks:
        what = f"{table.name}: filling in the gaps of {n:,} × {d:,} numbers by em"
        Budget.from_memory(memory).check(what, EM_TIMES * 8 * n * d)
        table = replace(table, X=hold(table.X, engine).X)
    return learn_filling(table, spread, standardize=chosen.standardize)
