"""Sparse matrices as canonical CSR arrays, their indices checked before a loop follows them.

SciPy's compiled loops, and ours, go wherever the indices point: one that is out of range ends the
process. SciPy looks at the ends of `indptr` when a matrix is made, and never at the indices.
"""

from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.cells import refuse_complex, refuse_type
from gnomon.errors import DataError

__all__ = ["canonical_csr", "is_sparse"]

COMPRESSED = ("csr", "csc", "bsr")


def is_sparse(X: Any) -> bool:
    """Whether `X` is any of SciPy's sparse matrices or arrays."""
    return bool(sp.issparse(X))


def canonical_csr(X: Any) -> Any:
    """`X` as a CSR array with sorted, summed entries; the user's own matrix is left alone.

    Raises a DataError if its arrays do not describe a matrix of its shape.
    """
    if X.dtype.kind == "c":
        refuse_complex(X.dtype)
    if X.dtype.kind not in "biuf":
        refuse_type(X.dtype)
    refuse_broken(X)
    try:
        csr = sp.csr_array(X)  # flags that SciPy remembers of X are not copied
    except (TypeError, ValueError, LookupError) as error:  # a format whose own check finds it
        raise _broken(X, str(error)) from None
    if csr is not X and X.format not in (*COMPRESSED, "coo"):
        refuse_broken(csr)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def refuse_broken(X: Any) -> None:
    """Raise a DataError if an index of a CSR, CSC, BSR or COO matrix points out of it."""
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
        "{table} is a broken sparse matrix ({format}, {shape}): {what}. Build the matrix anew from "
        "rows, columns and values with scipy.sparse.coo_array.",
        table="X", format=X.format, shape=shape, what=what,
    )  # fmt: skip


def _broken_compressed(X: Any) -> str:
    """What is wrong with `indptr`, `indices` and `data`; "" if nothing is."""
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
            f"indptr ends at {indptr[-1]}, and there are {indices.size} indices and {len(X.data)} "
            "values"
        )
    return _outside(indices[: indptr[-1]], across, named)


def _broken_coordinates(X: Any) -> str:
    """What is wrong with `coords` and `data`; "" if nothing is."""
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
            return f"it has the index {index}, where {named} run from 0 to {size - 1}"
    return ""
