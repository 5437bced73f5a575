"""Pairs of tables from any input of the user: checked, named for errors, paired."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gnomon.engine import Engine, Source
from gnomon.engine.arrays import ArraySource, as_source, names_of
from gnomon.engine.paired_tables import PairedSource, called, pair_by_id, pair_by_row
from gnomon.errors import DataError
from gnomon.inputs import about_table, as_numpy, as_table, check_choice, check_table, is_sparse
from gnomon.procrustes.unit_rows import UnitRows
from gnomon.typing import Table

METRICS = ("euclidean", "cosine")

__all__ = ["METRICS", "open_matched", "pair_tables", "read_table"]


def pair_tables(
    X: Any, Y: Any, id: str | None, engine: Engine, metric: str = "euclidean"
) -> PairedSource:
    """Pair two tables: by row position, or by the ascending column `id`.

    For ``metric="cosine"`` their rows are divided by their lengths.
    """
    check_choice("metric", metric, METRICS)
    sides = [(name, open_matched(Z, name, id is not None)) for Z, name in ((X, "X"), (Y, "Y"))]
    if metric == "cosine":
        sides = [(name, UnitRows(source, name, id)) for name, source in sides]
    left, right = (source for _, source in sides)
    return pair_by_row(left, right) if id is None else pair_by_id(left, right, id, engine)


def open_matched(Z: Any, name: str, named: bool = False) -> Source:
    """Open `Z` as a table with rows; `named` keeps the column names of a dataframe."""
    source = as_source(Z)
    if source is None:
        return ArraySource(read_table(Z, name), names=names_of(Z) if named else None, checked=False)
    if source.rows == 0:
        raise DataError(f"{called(source, name)} has 0 rows; at least 1 is needed. Add rows.")
    return source


def read_table(Z: Any, name: str) -> Table:
    """Read `Z` as a dense table of numbers with at least one row and column; 1-D is one column."""
    if is_sparse(Z):
        raise DataError(
            f"{name} is a sparse matrix; a rotation mixes all columns. Give {name}.toarray(), or "
            "reduce it by PCA first."
        )
    with about_table(name):
        Z = as_numpy(Z)
    framed = hasattr(Z, "columns")
    if not framed and not isinstance(Z, np.ndarray):  # a list, a series
        Z = _as_array(Z, name)
    if isinstance(Z, np.ndarray) and Z.ndim == 1:
        Z = Z.reshape(-1, 1)
    with about_table(name):  # scikit-learn converts nullable columns
        table = check_table(_Reader(), Z, reset=True) if framed else as_table(Z)
    n, d = table.shape
    if n == 0 or d == 0:
        raise DataError(
            f"{name} must have at least one row and one column; got {n} sample(s) and "
            f"{d} feature(s) (shape {table.shape})."
        )
    return table


class _Reader(BaseEstimator):
    """A stand-in estimator that reads the column names of a dataframe."""


def _as_array(Z: Any, name: str) -> Any:
    try:
        return np.asarray(Z)
    except ValueError as error:
        raise DataError(
            f"{name} must be a table: every row needs the same number of columns. "
            f"NumPy could not read it ({error})."
        ) from None
