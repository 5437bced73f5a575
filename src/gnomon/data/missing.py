"""Missing values of a table: refused, dropped with their rows, or filled in.

`mean` fills in the column's mean. `em` fills in what the row's other values foretell, by the
iterated low-rank reconstruction of `gnomon.pca.impute`, and new rows by the same components.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.prepared import first_place
from gnomon.data.refusals import FileError, GapError, Way, quoted
from gnomon.data.spread import Spread
from gnomon.data.table import Table, count
from gnomon.engine import Engine, as_engine
from gnomon.pca import PCA
from gnomon.pca.impute import Imputation, fill_rows
from gnomon.typing import Vector

__all__ = ["CHOICES", "FilledGaps", "fill", "learn_filling", "refuse_gaps", "refuse_infinities"]


MOST_NAMED = 12  # columns with gaps that an error names
CHOICES = ("error", "drop", "mean", "em")

# Without noise the components foretell exactly, and a row of few values foretells nothing: a little
# of the penalty keeps its equations solvable.
LEAST_PENALTY = 1e-12


@dataclass(frozen=True, eq=False)
class FilledGaps:
    """What `em` learned, in the units of (x − centre) / unit.

    Attributes
    ----------
    centre, unit, mean : array (d,)
    components : array (q, d)
    penalty : array (q,)
    """

    centre: Vector
    unit: Vector
    mean: Vector
    components: NDArray[np.float64]
    penalty: Vector


def learn_filling(table: Table, spread: Spread, *, standardize: bool) -> tuple[FilledGaps, str]:
    """The components from which gaps are filled in, and a sentence about them."""
    X = table.X
    empty = np.flatnonzero(np.isnan(X).all(axis=1))
    if empty.size:
        raise GapError(
            f"{table.name}: {table.places.of(int(empty[0]))} has no value in any feature, so there "
            "is nothing to estimate its values from.",
            ("missing", "drop"),
            ("missing", "mean"),
            "Or remove that row.",
        )
    if standardize:
        unit = np.where(spread.std > 0, spread.std, 1.0)
    else:
        # A power of two: nothing is rounded, and no square is beyond the range of float64.
        largest = float(spread.std.max(initial=0.0))
        unit = np.full(X.shape[1], np.ldexp(1.0, int(np.frexp(largest)[1])) if largest else 1.0)
    Z = (X.astype(np.float64) - spread.mean) / unit
    pca = PCA(missing="em", random_state=0).fit(Z)
    how: Imputation = pca.missing_
    penalty = np.maximum(how.penalty, LEAST_PENALTY)
    return FilledGaps(spread.mean, unit, pca.mean_, how.components, penalty), how.title()


def fill(X: NDArray[Any], filling: FilledGaps) -> NDArray[Any]:
    """`X` with its gaps filled in, row by row; a copy, in which known values are untouched."""
    Z = (X.astype(np.float64) - filling.centre) / filling.unit
    how = Imputation(
        n_missing=0,
        n_cells=X.size,
        rank=filling.penalty.size,
        noise_variance=0.0,
        n_iter=0,
        moved=0.0,
        converged=True,
        components=filling.components,
        penalty=filling.penalty,
    )
    ones = np.ones(X.shape[1])
    Z = fill_rows(Z, how, mean=filling.mean, factor=ones, names=None)
    filled = np.array(X)
    gaps = np.isnan(X)
    filled[gaps] = (Z * filling.unit + filling.centre)[gaps]
    return filled


def refuse_gaps(
    table: Table, gaps: NDArray[np.int64], *ways: Way, engine: Engine | None = None
) -> None:
    """Raise an error that says how many values are missing and where the first is."""
    total = int(gaps.sum())
    if total == 0:
        return
    row, column, _ = first_place(table.X, np.isnan, as_engine(engine))
    columns = int(np.count_nonzero(gaps))
    where = f" in {count(columns, 'column')}" if columns > 1 else ""
    named = ""
    if 1 < columns <= MOST_NAMED:
        each = (f"{quoted(table.columns[j])} {gaps[j]:,}" for j in np.flatnonzero(gaps))
        named = f": {', '.join(each)}"
    raise GapError(
        f"{table.name}: {count(total, 'missing value')}{where}{named} (first: "
        f"{table.places.of(row)}, column {quoted(table.columns[column])}).",
        *ways,
    )


def refuse_infinities(table: Table, spread: Spread, engine: Engine | None = None) -> None:
    """Raise an error that says where the first infinite value is."""
    if not (np.isinf(spread.low).any() or np.isinf(spread.high).any()):
        return
    row, column, value = first_place(table.X, np.isinf, as_engine(engine))
    name = table.columns[column]
    raise FileError(
        f"{table.name}: column {quoted(name)} holds an infinite value at {table.places.of(row)}.",
        ("na", str(value)),
        ("drop", name),
    )
