"""Checks before a run: enough rows for a map or a PCA, and a name of its own for each row."""

import warnings
from typing import Any

import numpy as np

from gnomon.data.preparation import Prepared
from gnomon.data.refusals import FileError, quoted
from gnomon.data.table import Table, count
from gnomon.errors import DataWarning, refuse
from gnomon.inputs import check_real
from gnomon.inputs.csr import is_sparse
from gnomon.scores.few_rows import few_rows_warning

__all__ = [
    "check_row_count",
    "check_run",
    "usual_perplexity",
    "warn_of_few_rows",
]

PERPLEXITY = 30.0
FIRST = 100  # rows that are compared before all are


def usual_perplexity(n: int) -> float:
    """Default perplexity of a map of `n` rows."""
    return min(PERPLEXITY, max(1.0, (n - 1) / 3))


def check_run(
    prepared: Prepared,
    perplexity: float | None,
    mapped: int | None = None,
    metric: Any = "euclidean",
) -> None:
    """Refuse a table without a map, or without a PCA if `perplexity` is None, before any work.

    `mapped` is the number of rows of the map, if not all.
    """
    X, name = prepared.X, prepared.table.name
    check_row_count(name, X.shape[0], perplexity, mapped)
    if perplexity is not None and prepared.table.is_sparse and metric != "euclidean":
        way_out = "Reduce it to components first, and map these."
        refuse("metric", "be 'euclidean' for a sparse table", metric, way_out)
    if perplexity is None or prepared.table.in_blocks:  # TSNE refuses equal rows itself
        return
    if mapped in (None, X.shape[0]):
        _check_ids(prepared.table)
    if _are_equal(X):
        raise FileError(
            f"{name}: all rows are the same in the columns in use, so there is no map.",
            "Use other columns.",
        )


def _check_ids(table: Table) -> None:
    """Refuse names that several rows of a map share."""
    if table.ids is None:
        return
    first: dict[str, int] = {}
    for row, name in enumerate(table.ids.tolist()):
        if first.setdefault(name, row) != row:
            raise FileError(
                "{file}: column {column} names two rows {value}: {place} and {again}, and a map "
                "takes a name for each.",
                ("text", str(table.id_name)),
                "Another column may name the rows.",
                file=table.name,
                column=quoted(str(table.id_name)),
                value=quoted(name),
                place=table.places.of(first[name]),
                again=table.places.of(row),
            )


def _are_equal(X: Any) -> bool:
    """Whether all rows are the same; of a CSR array, whether they store the same entries."""
    if not is_sparse(X):
        return bool((X[:FIRST] == X[0]).all() and (X[FIRST:] == X[0]).all())
    n, per_row = X.shape[0], int(X.indptr[1])
    if (np.diff(X.indptr) != per_row).any():
        return False
    parts = (X.indices.reshape(n, per_row), X.data.reshape(n, per_row))
    return all(bool((part == part[0]).all()) for part in parts)


def check_row_count(name: str, n: int, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse too few rows for a map, or for a PCA if `perplexity` is None."""
    least, what = (2, "PCA") if perplexity is None else (3, "a map")
    if n < least:
        raise FileError(f"{name}: {count(n, 'row')}, but {what} needs {least} or more.")
    if perplexity is not None:
        check_real("perplexity", perplexity, 1.0, (n if mapped is None else mapped) - 1)


def warn_of_few_rows(n: int, *, mapped: bool) -> None:
    """Warn if `n` rows, of a map or of a PCA alone, are too few for conclusions."""
    if said := few_rows_warning(n, mapped=mapped):
        warnings.warn(said, DataWarning, stacklevel=3)
