"""Checking of tables and parameters, for every estimator.

A table is whatever scikit-learn's `validate_data` takes, and some more: masked arrays (a masked
cell is a missing value), object columns with None or NA, pyarrow tables, long integers. The
numbers keep their type here; `numeric/scaling.py` shifts them before it converts them.
"""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from gnomon.cells import as_floats, refuse_complex, refuse_type
from gnomon.engine.source import Source
from gnomon.errors import (
    DataError,
    DataTypeError,
    GnomonError,
    MissingValueError,
    Remedy,
    Way,
    refuse,
)
from gnomon.sparse import canonical_csr, is_sparse
from gnomon.typing import Table

__all__ = [
    "Found",
    "about_table",
    "as_numpy",
    "as_table",
    "check_choice",
    "check_integer",
    "check_real",
    "check_table",
    "check_weights",
    "column_name",
    "find_bad_values",
    "is_sparse",
    "random_generator",
    "refuse_bad_values",
    "refuse_found",
]


def check_table(
    estimator: Any, X: Any, *, reset: bool, min_rows: int = 1, sparse: bool = True
) -> Table:
    """Check `X` as data of `estimator` and return it as an array or a canonical CSR array.

    Numbers keep their type (booleans become 0 and 1). Values are not looked at: NaN and infinities
    show in the sums that every fit computes, and `refuse_bad_values` then finds their place.

    Parameters
    ----------
    estimator : BaseEstimator
        Receives or checks ``n_features_in_`` and ``feature_names_in_``.
    X : array-like, dataframe, pyarrow table or sparse matrix, shape (n, d)
    reset : bool
        True in `fit`; False where `X` must match what was fitted.
    min_rows : int
        The fewest rows that make sense.
    sparse : bool
        Whether sparse input is allowed.
    """
    _refuse_source(X)
    X = _numbers(_unmask(as_numpy(X)))
    if not is_sparse(X) and not _is_frame(X):
        _refuse_shape(_as_array(X))
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if sparse else False,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
        order=None,
    )
    if is_sparse(X):
        return X
    if X.dtype.kind not in "biuf":
        refuse_type(X.dtype)
    return X.view(np.uint8) if X.dtype.kind == "b" else X


def as_table(X: Any) -> Table:
    """`X` as an array of numbers or a canonical CSR array, for code that is no estimator."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "iuf":
        return X
    _refuse_source(X)
    X = _numbers(_unmask(as_numpy(X)))
    if is_sparse(X):
        return X
    array = _as_array(X)
    _refuse_shape(array)
    if array.dtype.kind not in "biuf":
        refuse_type(array.dtype)
    return array.view(np.uint8) if array.dtype.kind == "b" else array


@contextmanager
def about_table(name: str) -> Iterator[None]:
    """Errors of checks inside, which are about a table called X, name the table `name`."""
    try:
        yield
    except GnomonError as error:
        raise error.replace(table=name) from None


def _refuse_source(X: Any) -> None:
    if type(X).__name__ == "AnnData":
        raise DataTypeError(
            "{table} is an AnnData. Use gnomon.anndata.pca(adata), .tsne(adata) or .map(adata), or "
            "give a table of it, such as adata.X or adata.obsm['X_pca'].",
            table="X",
        )
    if isinstance(X, Source):
        raise DataTypeError(
            "{table} is a source, which is read in blocks, and this needs the whole table in "
            "memory. Use an array, or a file read by `gnomon.data.read`.",
            table="X",
        )


def _refuse_shape(array: Table) -> None:
    if array.ndim != 2:
        raise DataError(
            "Expected 2D array of rows and columns; got shape {shape}. Reshape your data: "
            "{table}.reshape(-1, 1) makes one column of it, {table}.reshape(1, -1) one row.",
            table="X", shape=array.shape,
        )  # fmt: skip


# What no sum can hold: how it is found, what it is called, what is raised, and the way out.
_BAD: tuple[tuple[Any, str, type[DataError], Way], ...] = (
    (np.isinf, "infinite value (inf)", DataError, "Replace or drop it."),
    (np.isnan, "missing value (NaN)", MissingValueError, Remedy.FILL_GAPS),
)


def refuse_bad_values(
    X: Table, *, names: NDArray[Any] | None = None, nan: bool = True, table: str = "X"
) -> None:
    """Raise an error that names the first NaN (unless `nan` is False) or infinity in `X`.

    Returns quietly when there is none. `table` is the name of `X` in the message.
    """
    infinite, missing = find_bad_values(X)
    refuse_found(infinite, missing if nan else NOTHING_BAD, names=names, table=table)


class Found(NamedTuple):
    """How many cells are bad, and the row and column of the first."""

    many: int
    row: int
    column: int


NOTHING_BAD = Found(0, -1, -1)


def find_bad_values(X: Table) -> tuple[Found, Found]:
    """Infinities and missing values of `X`."""
    if (X.data if is_sparse(X) else X).dtype.kind != "f":
        return NOTHING_BAD, NOTHING_BAD
    infinite, missing = (_first(X, bad) for bad, *_ in _BAD)
    return infinite, missing


def refuse_found(
    infinite: Found,
    missing: Found,
    *,
    names: NDArray[Any] | None = None,
    file: str = "",
    table: str = "X",
) -> None:
    """Raise the sentence about cells that `find_bad_values` found, in a `file` if there is one."""
    for (_, what, error, way_out), (count, row, column) in zip(
        _BAD, (infinite, missing), strict=True
    ):
        if count:
            raise error(
                "{table} holds {count} {what}, the first {place}at row {row}, column {column} "
                "(rows count from 0).",
                way_out,
                table=table, count=count, what=what.replace(" (", "s (") if count > 1 else what,
                place=f"in {file} " if file else "", file=file, row=row,
                column=column_name(names, column),
            )  # fmt: skip


def _first(X: Table, bad: Any) -> Found:
    """How many cells are bad, and the row and column of the first, read in blocks of rows."""
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
    """The column as a user would call it: its quoted name, or its number."""
    return f"'{names[index]}'" if names is not None else str(index)


def check_integer(name: str, value: Any, low: int, high: int | None = None, way: str = "") -> int:
    """`value` as an int between `low` and `high`; True, 2.0 and "2" are not integers."""
    must = f"be an integer from {low} to {high}" if high is not None else f"be an integer ≥ {low}"
    if isinstance(value, (bool, np.bool_)):
        refuse(name, must, value, way, kind=True)
    try:
        number = operator.index(value)
    except TypeError:  # arrays have `__index__`, and raise
        refuse(name, must, value, way, kind=True)
    if number < low or (high is not None and number > high):
        refuse(name, must, value, way)
    return number


def check_real(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False
) -> float:
    """`value` as a float between `low` and `high`; NaN, True and "0.5" are refused."""
    must = f"be a number {'above' if open_low else 'from'} {low:g}"
    must += f" {'and below' if open_low else 'to'} {high:g}" if np.isfinite(high) else ""
    number_like = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, (bool, np.bool_)) or not number_like:
        refuse(name, must, value, kind=True)
    if not (low <= value <= high) or (open_low and value in (low, high)):
        refuse(name, must, value)
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """The one of `choices` that `value` is; NumPy's strings and booleans are Python's."""
    plain = value.item() if isinstance(value, (np.str_, np.bool_)) else value
    found = [choice for choice in choices if type(plain) is type(choice) and plain == choice]
    if not found:
        refuse(name, "be one of " + ", ".join(map(repr, choices)), value)
    return found[0]


def check_weights(
    name: str, weights: Any, size: int, *, of: str, positive: bool = False
) -> NDArray[np.float64] | None:
    """`weights` as `size` finite numbers, none negative (none zero when `positive`), or None."""
    if weights is None:
        return None
    sign = "positive" if positive else "non-negative"
    must = f"be {size} finite, {sign} numbers, one for each {of}"
    array = np.asarray(weights)
    if array.dtype.kind not in "biuf":
        refuse(name, must, f"dtype {array.dtype}", kind=True)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        refuse(name, must, f"shape {array.shape}")
    array = array.astype(np.float64)
    bad = ~np.isfinite(array) | (array <= 0 if positive else array < 0)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        refuse(name, must, float(array[at]), f"It stands at position {at}.")
    return array


def random_generator(random_state: Any) -> np.random.Generator:
    """One generator; None is a fixed seed, and scikit-learn's RandomState is drawn from."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        must = "be None, a non-negative integer or a NumPy generator"
        refuse("random_state", must, random_state, kind=True)


def as_numpy(X: Any) -> Any:
    """Arrays of other libraries as NumPy's; those of a device that NumPy cannot read are refused.

    scikit-learn would compute with them in their own library if `array_api_dispatch` is set.
    """
    if isinstance(X, np.ndarray) or not hasattr(X, "__array_namespace__"):
        return X
    for read in (np.from_dlpack, np.asarray):
        try:
            array = read(X)
        except Exception:  # every library has errors of its own for its devices
            continue
        if array.dtype != object:
            return array
    kind = type(X)
    raise DataTypeError(
        "{table} is an array of {library} that NumPy cannot read, on device {device}. Move it to "
        "the memory of this process first: for PyTorch {table}.cpu(), for CuPy {table}.get().",
        table="X",
        library=kind.__module__.partition(".")[0],
        device=str(getattr(X, "device", "unknown")),
    )


def _unmask(X: Any) -> Any:
    """Masked cells become NaN: scikit-learn would read the numbers beneath the mask."""
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind not in "biuf":
            refuse_type(X.dtype)
        return np.ma.filled(X.astype(np.float64), np.nan) if np.ma.is_masked(X) else X.data
    return X


def _numbers(X: Any) -> Any:
    """`X` with objects turned into float64; complex numbers, text and dates are refused.

    Sparse matrices become canonical CSR arrays.
    """
    if is_sparse(X):
        _refuse_shape(X)
        return canonical_csr(X)
    if _is_frame(X):
        return _frame_of_numbers(X)
    array = _as_array(X)
    if array.dtype.kind == "c":
        refuse_complex(array.dtype)
    if array.dtype.kind in "mMUST":
        refuse_type(array.dtype)
    if array.dtype.kind != "O":
        return X
    _refuse_shape(array)

    def place(i: int) -> str:
        return _place(*divmod(i, array.shape[1]))

    return as_floats(array.flat, place).reshape(array.shape)


def _is_frame(X: Any) -> bool:
    # The question itself takes as long as the sums of a small table.
    return not isinstance(X, np.ndarray) and bool(nw.dependencies.is_into_dataframe(X))


def _frame_of_numbers(X: Any) -> Any:
    try:
        frame = nw.from_native(X)
        schema = frame.schema
    except Exception as error:  # narwhals has an error of its own for each library
        raise DataError(
            "{table} has column names that cannot be used: {why}", table="X", why=str(error)
        ) from None
    backend = nw.get_native_namespace(frame)
    objects = []
    for name, dtype in schema.items():
        if dtype.is_numeric() or dtype == nw.Boolean:
            continue
        column, called = frame.get_column(name), f"'{name}'" if isinstance(name, str) else str(name)
        if dtype == nw.Object:
            floats = as_floats(column, partial(_place, column=called))
            objects.append(nw.new_series(name, floats, nw.Float64, backend=backend))
            continue
        if dtype == nw.Unknown and column.to_numpy().dtype.kind == "c":
            refuse_complex(column.to_numpy().dtype, f" in column {called}")
        refuse_type(dtype, f" in column {called}")
    return frame.with_columns(*objects).to_native() if objects else X


def _place(row: int, column: Any) -> str:
    """What follows a bad value in a sentence."""
    return f", the first at row {row}, column {column} (rows count from 0)"


def _as_array(X: Any) -> NDArray[Any]:
    """Lists of lists as an array; ragged ones get a sentence instead of NumPy's."""
    try:
        return np.asarray(X)
    except ValueError as error:
        raise DataError(
            "{table} must be a table: every row needs the same number of columns. "
            "NumPy could not read it ({why}).",
            table="X", why=str(error),
        ) from None  # fmt: skip
