"""Anything array-like as a NumPy array of numbers: dataframes, masked arrays, object columns."""

from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.errors import (
    DataError,
    DataTypeError,
)
from gnomon.inputs.bad_values import cell_place
from gnomon.inputs.cells import as_floats, refuse_complex, refuse_type
from gnomon.inputs.csr import canonical_csr, is_sparse
from gnomon.typing import Table

__all__ = ["as_array", "as_numbers", "as_numpy", "is_frame", "refuse_shape", "unmask"]


def as_numpy(X: Any) -> Any:
    """Convert arrays of other libraries to NumPy; arrays on a device are refused.

    scikit-learn would compute with them in their own library if `array_api_dispatch` is set.
    """
    if isinstance(X, np.ndarray) or not hasattr(X, "__array_namespace__"):
        return X
    for read in (np.from_dlpack, np.asarray):
        try:
            array = read(X)
        except Exception:  # every library has its own errors for its devices
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


def unmask(X: Any) -> Any:
    """Replace masked cells by NaN: scikit-learn would read the numbers beneath the mask."""
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind not in "biuf":
            refuse_type(X.dtype)
        return np.ma.filled(X.astype(np.float64), np.nan) if np.ma.is_masked(X) else X.data
    return X


def as_numbers(X: Any) -> Any:
    """Convert objects of `X` to float64; complex numbers, text and dates are refused.

    Sparse matrices become canonical CSR arrays.
    """
    if is_sparse(X):
        refuse_shape(X)
        return canonical_csr(X)
    if is_frame(X):
        return _frame_of_numbers(X)
    array = as_array(X)
    if array.dtype.kind == "c":
        refuse_complex(array.dtype)
    if array.dtype.kind in "mMUST":
        refuse_type(array.dtype)
    if array.dtype.kind != "O":
        return X
    refuse_shape(array)

    def place(i: int) -> str:
        return cell_place(*divmod(i, array.shape[1]))

    return as_floats(array.flat, place).reshape(array.shape)


def is_frame(X: Any) -> bool:
    """Whether `X` is a dataframe of any library."""
    # The check itself takes as long as the sums of a small table.
    return not isinstance(X, np.ndarray) and bool(nw.dependencies.is_into_dataframe(X))


def _frame_of_numbers(X: Any) -> Any:
    try:
        frame = nw.from_native(X)
        schema = frame.schema
    except Exception as error:  # narwhals has a different error for each library
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
            floats = as_floats(column, partial(cell_place, column=called))
            objects.append(nw.new_series(name, floats, nw.Float64, backend=backend))
            continue
        if dtype == nw.Unknown and column.to_numpy().dtype.kind == "c":
            refuse_complex(column.to_numpy().dtype, f" in column {called}")
        refuse_type(dtype, f" in column {called}")
    return frame.with_columns(*objects).to_native() if objects else X


def as_array(X: Any) -> NDArray[Any]:
    """Convert lists of lists to an array; ragged ones raise a clear error."""
    try:
        return np.asarray(X)
    except ValueError as error:
        raise DataError(
            "{table} must be a table: every row needs the same number of columns. "
            "NumPy could not read it ({why}).",
            table="X",
            why=str(error),
        ) from None


def refuse_shape(array: Table) -> None:
    """Refuse what is not two-dimensional."""
    if array.ndim != 2:
        raise DataError(
            "Expected 2D array of rows and columns; got shape {shape}. Reshape your data: "
            "{table}.reshape(-1, 1) makes one column of it, {table}.reshape(1, -1) one row.",
            table="X",
            shape=array.shape,
        )
