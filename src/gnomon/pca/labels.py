"""Labels of rows from lists, arrays, series and tables of any kind."""

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse

__all__ = ["Labels", "holds_labels", "read_labels"]


class Labels(NamedTuple):
    """One column of labels: its name, its levels, and the level of each row (−1 for missing)."""

    variable: str
    levels: tuple[str, ...]
    codes: NDArray[np.intp]


def holds_labels(Z: Any) -> bool:
    """Whether `Z` holds labels rather than numbers; a table of both is refused."""
    if nw.dependencies.is_into_dataframe(Z):
        kinds = {dtype.is_numeric() for dtype in nw.from_native(Z).schema.dtypes()}
        if len(kinds) > 1:
            refuse(
                "Z", "hold numbers or labels", "a table of both", "Give each kind in its own call."
            )
        return kinds == {False}
    if nw.dependencies.is_into_series(Z):
        return not nw.from_native(Z, series_only=True).dtype.is_numeric()
    if _is_categorical(Z):
        return True
    return np.asarray(Z).dtype.kind in "OUSTb"


def read_labels(labels: Any, n: int) -> list[Labels]:
    """Parse and check the columns of `labels`."""
    if nw.dependencies.is_into_dataframe(labels):
        columns = [_of_series(series) for series in nw.from_native(labels).iter_columns()]
    elif nw.dependencies.is_into_series(labels):
        columns = [_of_series(nw.from_native(labels, series_only=True))]
    elif _is_categorical(labels):
        columns = [_of_values("", list(labels), list(labels.categories))]
    else:
        if np.ma.isMaskedArray(labels):
            labels = np.ma.filled(labels.astype(object), None)
        # Lists as objects: NumPy would convert a NaN among strings to the text 'nan'.
        array = labels if isinstance(labels, np.ndarray) else np.asarray(labels, dtype=object)
        table = array[:, None] if array.ndim == 1 else array
        if table.ndim != 2 or table.shape[1] == 0:
            refuse("labels", f"be one column or several of {n} labels", f"shape {array.shape}")
        one = table.shape[1] == 1
        columns = [
            _of_values("" if one else str(j), table[:, j].tolist()) for j in range(table.shape[1])
        ]
    for column in columns:
        if column.codes.size != n:
            refuse("labels", f"have {n} rows, as many as `X`", column.codes.size)
    return columns


def _is_categorical(labels: Any) -> bool:
    """Whether `labels` is a ``pandas.Categorical`` outside of a series."""
    return hasattr(labels, "categories") and hasattr(labels, "codes")


def _of_series(series: Any) -> Labels:
    ordered = series.dtype in (nw.Categorical, nw.Enum)
    order = series.cat.get_categories().to_list() if ordered else None
    return _of_values(str(series.name or ""), series.to_list(), order)


def _of_values(variable: str, values: list[Any], order: list[Any] | None = None) -> Labels:
    found = {value for value in values if not _is_missing(value)}
    if order is None:
        try:
            order = sorted(found)
        except TypeError:  # labels of several types
            order = sorted(found, key=lambda value: (type(value).__name__, str(value)))
    levels = [level for level in order if level in found]
    place = {level: i for i, level in enumerate(levels)}
    codes = [-1 if _is_missing(value) else place[value] for value in values]
    return Labels(variable, tuple(map(str, levels)), np.array(codes, dtype=np.intp))


def _is_missing(value: object) -> bool:
    # By name, because pandas need not be installed: its NA refuses to be compared.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
