"""The second table of a pair, and tables given to functions: checked like X, and called by name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gnomon.errors import DataError, GnomonError
from gnomon.inputs import Table, as_table, check_table, is_sparse

__all__ = ["read_table", "speaking_of"]


@contextmanager
def speaking_of(name: str) -> Iterator[None]:
    """Errors of the checks inside, which all speak of X, speak of `name`."""
    try:
        yield
    except GnomonError as error:
        raise type(error)(re.sub(r"\bX\b", name, str(error))) from None


def read_table(Z: Any, name: str) -> Table:
    """`Z` as a dense table of numbers with at least one row and column; 1-D is one column."""
    if is_sparse(Z):
        raise DataError(
            f"{name} is a sparse matrix; a rotation mixes all columns. Give {name}.toarray(), or "
            "reduce it by PCA first."
        )
    framed = hasattr(Z, "columns")
    if not framed and not isinstance(Z, np.ndarray):  # a list, a series
        Z = _as_array(Z, name)
    if isinstance(Z, np.ndarray) and Z.ndim == 1:
        Z = Z.reshape(-1, 1)
    with speaking_of(name):  # scikit-learn knows how nullable columns are read
        table = check_table(_Reader(), Z, reset=True) if framed else as_table(Z)
    n, d = table.shape
    if n == 0 or d == 0:
        raise DataError(
            f"{name} must have at least one row and one column; got {n} sample(s) and "
            f"{d} feature(s) (shape {table.shape})."
        )
    return table


class _Reader(BaseEstimator):
    """Whoever reads a dataframe: keeps its column names, and is forgotten."""


def _as_array(Z: Any, name: str) -> Any:
    try:
        return np.asarray(Z)
    except ValueError as error:
        raise DataError(
            f"{name} must be a table: every row needs the same number of columns. "
            f"NumPy could not read it ({error})."
        ) from None
