"""What of an AnnData is computed with: X or a layer, a choice of genes, a representation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.anndata.backed import MatrixParts, as_parts
from gnomon.engine import LocalEngine
from gnomon.engine.arrays import hold
from gnomon.errors import DataError, DataWarning, refuse, warn_caller
from gnomon.inputs import is_sparse

N_PCS = 50  # as `scanpy.settings.N_PCS`: wider tables are represented by so many components
HIGHLY_VARIABLE = "highly_variable"
MANY_CELLS = 1_000  # whose numbers are looked at for whole ones

__all__ = ["N_PCS", "Genes", "choose_genes", "read_matrix", "representation", "warn_of_counts"]


@dataclass(frozen=True, eq=False)
class Genes:
    """Which columns of a matrix are used.

    Attributes
    ----------
    mask : array (n_vars,) of bool, or None
        None for all.
    name : str or None
        The column of `var` that says so.
    """

    mask: NDArray[np.bool_] | None = None
    name: str | None = None


def choose_genes(adata: Any, mask_var: Any) -> Genes:
    """Genes by a column of `var`, by an array, or all; "auto" is `highly_variable` if it is there.

    The same default as scanpy's.
    """
    if mask_var is None:
        return Genes()
    if isinstance(mask_var, str) and mask_var == "auto":
        if HIGHLY_VARIABLE not in adata.var:
            return Genes()
        mask_var = HIGHLY_VARIABLE
    name = mask_var if isinstance(mask_var, str) else None
    if name is not None and name not in adata.var:
        refuse("mask_var", "name a column of `adata.var`", name, f"It has {_some(adata.var)}.")
    mask = np.asarray(adata.var[name] if name is not None else mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        refuse(
            "mask_var",
            f"hold True or False for each of the {adata.n_vars} genes",
            f"{mask.dtype} of shape {mask.shape}",
        )
    if not mask.any():
        refuse("mask_var", "choose at least one gene", "none")
    return Genes(mask, name)


def read_matrix(adata: Any, layer: str | None, genes: Genes) -> Any:
    """X or a layer with the chosen genes alone; sparse matrices stay sparse.

    One that is backed by a file or by Dask is a `MatrixParts`, but for one stored by columns.
    """
    if layer is not None and layer not in adata.layers:
        refuse("layer", "be one of `adata.layers`", layer, f"It has {_some(adata.layers)}.")
    matrix = adata.X if layer is None else adata.layers[layer]
    what = "X" if layer is None else f"layers['{layer}']"
    if matrix is None:
        raise DataError(
            f"The AnnData has no {what}. Give `layer`, or a representation (`use_rep`)."
        )
    if np.dtype(matrix.dtype).kind not in "biuf":
        raise DataError(f"{what} holds {matrix.dtype}, not numbers. Give `layer` with numbers.")
    at = None if genes.mask is None else np.flatnonzero(genes.mask)
    parts = as_parts(matrix)
    if parts is not None:
        return parts if at is None else parts.columns_at(at)
    if hasattr(matrix, "to_memory"):
        warn_caller(
            DataWarning(
                f"{what} is stored by columns (CSC): it is brought into memory and turned into "
                "rows, which takes a copy. Store it by rows: adata.X = adata.X.tocsr()."
            )
        )
        matrix = matrix.to_memory()
    elif not isinstance(matrix, np.ndarray) and not is_sparse(matrix):
        matrix = np.asarray(matrix)
    return matrix if at is None else matrix[:, at]


def in_memory(matrix: Any) -> Any:
    """The whole of a matrix in parts; any other as it is."""
    return hold(matrix, LocalEngine()).X if isinstance(matrix, MatrixParts) else matrix


def warn_of_counts(matrix: Any, what: str) -> None:
    """Warn where numbers are whole and none is negative: counts that were not normalised."""
    if isinstance(matrix, MatrixParts):
        matrix = matrix.read(matrix.partitions[0])
    some = matrix[:MANY_CELLS]
    values = some.data if is_sparse(some) else np.asarray(some).ravel()
    if not values.size or values.min() < 0 or values.max() <= 1:
        return
    if np.array_equal(values, np.rint(values)):
        warn_caller(
            DataWarning(
                f"{what} holds whole numbers only, as raw counts do: the largest counts decide "
                "everything. Normalise first: sc.pp.normalize_total(adata); sc.pp.log1p(adata)."
            )
        )


def representation(adata: Any, use_rep: str | None, n_pcs: int | None) -> tuple[Any, str]:
    """The table that a map is made from, and what it is called, by scanpy's rule.

    Without `use_rep`: X where there are at most 50 genes or `n_pcs` is 0, otherwise ``X_pca``.
    """
    if use_rep is None:
        use_rep = "X" if n_pcs == 0 or adata.n_vars <= N_PCS else "X_pca"
    if use_rep == "X":
        return in_memory(read_matrix(adata, None, Genes())), "X"
    if use_rep not in adata.obsm:
        way = (
            "Run gnomon.anndata.pca(adata) first."
            if use_rep == "X_pca"
            else (f"It has {_some(adata.obsm)}.")
        )
        refuse("use_rep", "be 'X' or a key of `adata.obsm`", use_rep, way)
    Z = np.asarray(adata.obsm[use_rep])
    if n_pcs is not None and n_pcs > Z.shape[1]:
        refuse("n_pcs", f"be at most {Z.shape[1]}, the columns of `{use_rep}`", n_pcs)
    return (Z if n_pcs in (None, 0) else Z[:, :n_pcs]), use_rep


def _some(keys: Any) -> str:
    names = [str(key) for key in keys]
    shown = ", ".join(names[:5]) or "none"
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
