"""Names, ids and labels that the caller of `report` passes, in the forms that a page needs."""

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.charts.groups import MOST_NUMBERS
from gnomon.errors import refuse
from gnomon.pca.labels import holds_labels
from gnomon.pca.labels import read_labels as read_groups

__all__ = ["as_label", "given_ids", "given_names", "read_labels", "read_texts"]


def given_names(names: Any, X: Any, model: Any) -> tuple[str, ...]:
    """Column names as given, or of the dataframe, or of the model, or x1, x2, …."""
    d = int(model.n_features_in_)
    if names is None and nw.dependencies.is_into_dataframe(X):
        names = nw.from_native(X).columns
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{j + 1}" for j in range(d))
    called = tuple(str(name) for name in names)
    if len(called) != d:
        refuse("names", f"name each of the {d} columns", f"{len(called)} names")
    return called


def given_ids(ids: Any, X: Any, n: int) -> tuple[str, NDArray[np.object_]] | None:
    """Names of the rows: as given, or the explicit index of a dataframe."""
    if ids is None:
        ids = getattr(X, "index", None)
        if ids is None or callable(ids) or type(ids).__name__ == "RangeIndex":
            return None
    array = np.asarray(ids, dtype=object)
    if array.shape != (n,):
        refuse("ids", f"hold one value for each of the {n} rows", f"shape {array.shape}")
    return _name_of(ids, "id"), _objects([str(value) for value in array.tolist()])


def read_texts(
    option: str, values: Any, n: int, *, missing: str | None = ""
) -> tuple[str, NDArray[np.object_]]:
    """A column of texts (n,) under its name; bytes stay bytes, and gaps become `missing`."""
    array = list(values)
    if len(array) != n:
        refuse(option, f"hold one value for each of the {n} rows", f"{len(array)} values")
    known = [
        missing if v is None or v != v else v if isinstance(v, (bytes, dict)) else str(v)
        for v in array
    ]
    return _name_of(values, option), _objects(known)


def read_labels(labels: Any, n: int) -> tuple[tuple[str, NDArray[Any]], ...]:
    """Columns to colour by: one, several by name, or a dataframe of them."""
    if labels is None:
        return ()
    if nw.dependencies.is_into_dataframe(labels):
        frame = nw.from_native(labels)
        columns = {name: frame.get_column(name).to_native() for name in frame.columns}
    elif isinstance(labels, Mapping):
        columns = dict(labels)
    else:
        columns = {_name_of(labels, "label"): labels}
    return tuple((str(name), as_label(values, n)) for name, values in columns.items())


def as_label(values: Any, n: int) -> NDArray[Any]:
    """Convert labels: text as objects with None, numbers as float64 with NaN for missing.

    A few distinct numbers are names of groups, as in the charts.
    """
    if holds_labels(values):
        (found,) = read_groups(values, n)
        named = _objects([*found.levels, None])  # −1, for none, selects the last
        return named[found.codes]
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (n,):
        refuse("labels", f"hold one value for each of the {n} rows", f"shape {numbers.shape}")
    known = np.isfinite(numbers)
    levels, codes = np.unique(numbers[known], return_inverse=True)
    if len(levels) > MOST_NUMBERS:
        return numbers
    names = np.full(n, None, dtype=object)
    names[known] = _objects([_as_name(level) for level in levels.tolist()])[codes]
    return names


def _as_name(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else repr(value)


def _name_of(column: Any, usual: str) -> str:
    name = getattr(column, "name", None)
    return usual if name is None else str(name)


def _objects(values: list[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
