"""Sparse matrices as canonical CSR arrays, with indices checked before compiled loops use them.

SciPy's compiled loops, and ours, do not check indices: one that is out of range crashes the
process. SciPy checks the ends of `indptr` when a matrix is created, and never the indices.
"""

from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs.cells import refuse_complex, refuse_type

__all__ = ["canonical_csr", "is_sparse", "stored_bytes"]

COMPRESSED = ("csr", "csc", "bsr")


def is_sparse(X: Any) -> bool:
    """Whether `X` is any of SciPy's sparse matrices or arrays."""
    return bool(sp.issparse(X))


def stored_bytes(X: Any) -> int:
    """Bytes of an array, or of the three arrays of a compressed sparse one."""
    if not is_sparse(X):
        return int(X.nbytes)
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def canonical_csr(X: Any) -> Any:
    """Convert `X` to a CSR array with sorted, summed entries, without changing `X`.

    Raises a DataError if its arrays do not describe a matrix of its shape.
    """
    if X.dtype.kind == "c":
        refuse_complex(X.dtype)
    if X.dtype.kind not in "biuf":
        refuse_type(X.dtype)
    refuse_broken(X)
    try:
        csr = sp.csr_array(X)  # does not copy SciPy's cached flags of X
    except (TypeError, ValueError, LookupError) as error:  # formats that check themselves
        raise _broken(X, str(error)) from None
    if csr is not X and X.format not in (*COMPRESSED, "coo"):
        refuse_broken(csr)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def refuse_broken(X: Any) -> None:
    """Raise a DataError if an index of a CSR, CSC, BSR or COO matrix is out of range."""
    what = ""
    if X.format in COMPRESSED:
        what = _broken_compressed(X)
    elif X.format == "coo":
        what = _broken_coordinates(X)
    if what:
        raise _broken(X, what)


def _broken(X: Any, what: str) -> DataError:
    shape = " × ".join(map(str, X.shape))
    return DataError(
        "{table} is a broken sparse matrix ({format}, {shape}): {what}. Build it again from "
        "rows, columns and values with scipy.sparse.coo_array.",
        table="X",
        format=X.format,
        shape=shape,
        what=what,
    )


def _broken_compressed(X: Any) -> str:
    """Error in `indptr`, `indices` or `data`; empty if there is none."""
    rows, columns = X.shape
    if X.format == "csc":
        ends, across, named = columns, rows, "rows"
    else:
        ends, across, named = rows, columns, "columns"
    if X.format == "bsr":
        ends, across, named = ends // X.blocksize[0], across // X.blocksize[1], "blocks of columns"
    indptr, indices = X.indptr, X.indices
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or indptr.size != ends + 1:
        return f"indptr must hold {ends + 1} whole numbers"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return "indptr must begin with 0 and never decrease"
    if indices.ndim != 1 or indptr[-1] > min(indices.size, len(X.data)):
        return (
            f"indptr ends at {indptr[-1]}, but there are {indices.size} indices and {len(X.data)} "
            "values"
        )
    return _outside(indices[: indptr[-1]], across, named)


def _broken_coordinates(X: Any) -> str:
    """Error in `coords` or `data`; empty if there is none."""
    for coords, size, named in zip(X.coords, X.shape, ("rows", "columns"), strict=True):
        if coords.shape != X.data.shape:
            return f"there are {coords.size} indices for {X.data.size} values"
        what = _outside(coords, size, named)
        if what:
            return what
    return ""


def _outside(indices: NDArray[Any], size: int, named: str) -> str:
    if indices.dtype.kind not in "iu":
        return f"its indices are {indices.dtype}, not whole numbers"
    for index in (indices.min(initial=0), indices.max(initial=0)):
        if not 0 <= index < max(1, size):
            return f"it has the index {index}, but {named} run from 0 to {size - 1}"
    return ""
