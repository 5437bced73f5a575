"""Checks of tables: two-dimensional, of numbers, with enough rows and columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from gnomon.engine.source import Source
from gnomon.errors import (
    DataTypeError,
    GnomonError,
)
from gnomon.inputs.cells import refuse_type
from gnomon.inputs.conversion import as_array, as_numbers, as_numpy, is_frame, refuse_shape, unmask
from gnomon.inputs.csr import is_sparse
from gnomon.typing import Table

__all__ = ["about_table", "as_table", "check_table"]


def check_table(
    estimator: Any, X: Any, *, reset: bool, min_rows: int = 1, sparse: bool = True
) -> Table:
    """Check `X` as data of `estimator` and return it as an array or a canonical CSR array.

    Numbers keep their type (booleans become 0 and 1). Values are not checked: NaN and infinities
    show in the sums that every fit computes, and `refuse_bad_values` then finds their position.

    Parameters
    ----------
    estimator : BaseEstimator
        Receives or checks ``n_features_in_`` and ``feature_names_in_``.
    X : array-like, dataframe, pyarrow table or sparse matrix, shape (n, d)
    reset : bool
        True in `fit`; False if `X` must match the fitted columns.
    min_rows : int
        Minimum number of rows.
    sparse : bool
        Whether sparse input is allowed.
    """
    _refuse_source(X)
    X = as_numbers(unmask(as_numpy(X)))
    if not is_sparse(X) and not is_frame(X):
        refuse_shape(as_array(X))
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
    """Convert `X` to an array of numbers or a canonical CSR array, without an estimator."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "iuf":
        return X
    _refuse_source(X)
    X = as_numbers(unmask(as_numpy(X)))
    if is_sparse(X):
        return X
    array = as_array(X)
    refuse_shape(array)
    if array.dtype.kind not in "biuf":
        refuse_type(array.dtype)
    return array.view(np.uint8) if array.dtype.kind == "b" else array


@contextmanager
def about_table(name: str) -> Iterator[None]:
    """Rename the table in errors within, which call it X, to `name`."""
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
            "{table} is a source, which is read in blocks, but this needs the whole table in "
            "memory. Use an array, or a file read by `gnomon.data.read`.",
            table="X",
        )
