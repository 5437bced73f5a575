"""NaN and infinite values: found, counted, and refused with their place."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import (
    DataError,
    MissingValueError,
    Remedy,
    Way,
)
from gnomon.inputs.csr import is_sparse
from gnomon.typing import Table

__all__ = [
    "NOTHING_BAD",
    "Found",
    "cell_place",
    "column_name",
    "find_bad_values",
    "refuse_bad_values",
    "refuse_found",
]


# Values that no sum can hold: test, name, error and way out.
_BAD: tuple[tuple[Any, str, type[DataError], Way], ...] = (
    (np.isinf, "infinite value (inf)", DataError, "Replace or drop it."),
    (np.isnan, "missing value (NaN)", MissingValueError, Remedy.FILL_GAPS),
)


def refuse_bad_values(
    X: Table, *, names: NDArray[Any] | None = None, nan: bool = True, table: str = "X"
) -> None:
    """Raise an error that names the first NaN (unless `nan` is False) or infinity in `X`.

    Returns None if there is none. `table` is the name of `X` in the message.
    """
    infinite, missing = find_bad_values(X)
    refuse_found([(infinite, missing if nan else NOTHING_BAD)], names=names, table=table)


class Found(NamedTuple):
    """Number of bad cells, and the row and column of the first."""

    many: int
    row: int
    column: int


NOTHING_BAD = Found(0, -1, -1)


def find_bad_values(X: Table) -> tuple[Found, Found]:
    """Find infinities and missing values of `X`."""
    if (X.data if is_sparse(X) else X).dtype.kind != "f":
        return NOTHING_BAD, NOTHING_BAD
    infinite, missing = (_first(X, bad) for bad, *_ in _BAD)
    return infinite, missing


def refuse_found(
    parts: Sequence[tuple[Found, Found]],
    *,
    names: NDArray[Any] | None = None,
    table: str = "X",
    origin: Callable[[int, int], tuple[str, int]] | None = None,
) -> None:
    """Raise the error about cells that `find_bad_values` found in the parts of a table, if any.

    ``origin(part, row)`` is the file of a row of a part, and its number in that file.
    """
    for kind, (_, what, error, way_out) in enumerate(_BAD):
        count = sum(found[kind].many for found in parts)
        if count:
            at = next(i for i, found in enumerate(parts) if found[kind].many)
            _, row, column = parts[at][kind]
            file, row = ("", row) if origin is None else origin(at, row)
            raise error(
                "{table} holds {count} {what}, the first {place}at row {row}, column {column} "
                "(rows count from 0).",
                way_out,
                table=table,
                count=count,
                what=what.replace(" (", "s (") if count > 1 else what,
                place=f"in {file} " if file else "",
                file=file,
                row=row,
                column=column_name(names, column),
            )


def _first(X: Table, bad: Any) -> Found:
    """Count bad cells and find the first, in blocks of rows."""
    if is_sparse(X):
        at = np.flatnonzero(bad(X.data))
        if at.size == 0:
            return NOTHING_BAD
        row = int(np.searchsorted(X.indptr, at[0], side="right")) - 1
        return Found(at.size, row, int(X.indices[at[0]]))
    count, row, column = 0, -1, -1
    step = max(1, 2**20 // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        hits = bad(X[start : start + step])
        found = int(np.count_nonzero(hits))
        if found and not count:
            first = np.argwhere(hits)[0]
            row, column = start + int(first[0]), int(first[1])
        count += found
    return Found(count, row, column)


def column_name(names: NDArray[Any] | None, index: int) -> str:
    """Column as a user would call it: its quoted name, or its number."""
    return f"'{names[index]}'" if names is not None else str(index)


def cell_place(row: int, column: Any) -> str:
    """Position of a bad value, for the end of a sentence."""
    return f", the first at row {row}, column {column} (rows count from 0)"
