"""What is settled before a run begins: whether the table has enough rows for a map or a PCA."""

import warnings

from gnomon.data.preparation import Prepared
from gnomon.data.refusals import FileError
from gnomon.data.table import count
from gnomon.errors import DataWarning
from gnomon.inputs import check_real
from gnomon.scores.few import few_rows

__all__ = [
    "check_rows",
    "check_run",
    "usual_perplexity",
    "warn_of_few_rows",
]

PERPLEXITY = 30.0
FIRST = 100  # rows that are looked at before all are


def usual_perplexity(n: int) -> float:
    """The perplexity of a map of `n` rows where none was asked for."""
    return min(PERPLEXITY, max(1.0, (n - 1) / 3))


def check_run(prepared: Prepared, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse what there is no map of, or no PCA if `perplexity` is None, before any work.

    `mapped` are the rows that the map is made of, if not all.
    """
    X, name = prepared.X, prepared.table.name
    check_rows(name, X.shape[0], perplexity, mapped)
    if perplexity is None or prepared.table.in_blocks:  # which TSNE refuses
        return
    if (X[:FIRST] == X[0]).all() and (X[FIRST:] == X[0]).all():
        raise FileError(
            f"{name}: all rows are the same in the columns in use, so there is nothing to map.",
            "Use other columns.",
        )


def check_rows(name: str, n: int, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse fewer rows than there is a map of, or a PCA if `perplexity` is None."""
    least, what = (2, "PCA") if perplexity is None else (3, "a map")
    if n < least:
        raise FileError(f"{name}: {count(n, 'row')}, where {what} needs {least} or more.")
    if perplexity is not None:
        check_real("perplexity", perplexity, 1.0, (n if mapped is None else mapped) - 1)


def warn_of_few_rows(n: int, *, mapped: bool) -> None:
    """Warn where `n` rows, those of a map or of a PCA alone, are too few to conclude from."""
    if said := few_rows(n, mapped=mapped):
        warnings.warn(said, DataWarning, stacklevel=3)
