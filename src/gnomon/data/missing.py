"""Missing values of a table: refused, dropped with their rows, or filled in.

`mean` fills in the column's mean. `em` fills in what the row's other values foretell, by the
iterated low-rank reconstruction of `gnomon.pca.impute`, and new rows by the same components.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.refusals import FileError, GapError, Way, quoted
from gnomon.data.spread import Spread
from gnomon.data.table import Table, count
from gnomon.engine import Block, Engine, Source, as_engine
from gnomon.inputs.csr import is_sparse
from gnomon.pca import PCA
from gnomon.pca.impute import Imputation, fill_rows
from gnomon.typing import Vector

__all__ = [
    "CHOICES",
    "FilledGaps",
    "fill",
    "learn_filling",
    "refuse_gaps",
    "refuse_infinities",
    "rows_without_gaps",
]


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
    row, column, _ = _first_place(table.X, np.isnan, as_engine(engine))
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
    row, column, value = _first_place(table.X, np.isinf, as_engine(engine))
    name = table.columns[column]
    raise FileError(
        f"{table.name}: column {quoted(name)} holds an infinite value at {table.places.of(row)}.",
        ("na", str(value)),
        ("drop", name),
    )


def rows_without_gaps(X: Any) -> NDArray[np.bool_]:
    """Rows that have every value, as a mask (n,)."""
    if is_sparse(X):
        whole = np.ones(X.shape[0], bool)
        gaps = np.flatnonzero(np.isnan(X.data)) if X.dtype.kind == "f" else np.empty(0, np.intp)
        whole[np.searchsorted(X.indptr, gaps, "right") - 1] = False
        return whole
    if X.dtype.kind != "f":
        return np.ones(X.shape[0], bool)
    full: NDArray[np.bool_] = ~np.isnan(X).any(axis=1)
    return full


def _first_place(X: Any, bad: Any, engine: Engine) -> tuple[int, int, float]:
    """Row, column and value of the first cell for which the function `bad` is true."""
    if not isinstance(X, Source):
        row, column = (_first_stored if is_sparse(X) else _first)(X, bad) or (-1, -1)
        return row, column, X[row, column]
    places = engine.map(_FirstPlace(bad), X)
    return next(place for place in places if place is not None)


@dataclass(frozen=True)
class _FirstPlace:
    """Where the first bad cell of a block is, counted over the whole table."""

    bad: Any

    def __call__(self, block: Block) -> tuple[int, int, float] | None:
        found = (_first_stored if is_sparse(block.X) else _first)(block.X, self.bad)
        if found is None:
            return None
        return block.partition.start + found[0], found[1], float(block.X[found])


def _first_stored(X: Any, bad: Any) -> tuple[int, int] | None:
    """Row and column of the first bad entry of a CSR array."""
    hits = np.flatnonzero(bad(X.data))
    if not hits.size:
        return None
    return int(np.searchsorted(X.indptr, hits[0], "right")) - 1, int(X.indices[hits[0]])


def _first(X: NDArray[Any], bad: Any) -> tuple[int, int] | None:
    step = max(1, 2**20 // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        hits = np.argwhere(bad(X[start : start + step]))
        if hits.size:
            return start + int(hits[0, 0]), int(hits[0, 1])
    return None
