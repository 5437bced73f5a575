"""The page of any map that an AnnData holds: ours, scanpy's UMAP, or another."""

from typing import Any

import numpy as np

from gnomon.anndata.matrices import representation
from gnomon.anndata.models import obs_columns
from gnomon.errors import refuse
from gnomon.inputs import is_sparse
from gnomon.report.report import Report
from gnomon.report.report import report as make_report

__all__ = ["report"]


def report(
    adata: Any,
    basis: str = "X_tsne",
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    metric: str = "euclidean",
    color: Any = None,
    **how: Any,
) -> Report:
    """Page of a map in `obsm`: what it shows, and how far it can be trusted.

    The map is audited (`gnomon.audit`) in the representation that it was made from.

    Parameters
    ----------
    adata : AnnData
    basis : str
        Key of `obsm`, such as ``"X_tsne"`` or ``"X_umap"``; the ``X_`` may be left out.
    use_rep, n_pcs
        What the map was made from, as in `tsne`.
    metric : str
        By which it was made: ``"euclidean"`` or ``"cosine"``.
    color : str or list of str, optional
        Columns of `obs` to colour by.
    how
        ``title``, ``page_budget`` and others of `gnomon.report`.
    """
    key = basis if basis in adata.obsm else f"X_{basis}"
    if key not in adata.obsm:
        known = ", ".join(map(str, adata.obsm)) or "nothing"
        refuse("basis", "be a key of `adata.obsm`", basis, f"It has {known}.")
    Z, used = representation(adata, use_rep, n_pcs)
    if is_sparse(Z):
        Z = Z.toarray()  # at most 50 genes, or named by `use_rep`
    names = adata.var_names.astype(str) if used == "X" else None
    if names is None:
        stem = "PC" if used == "X_pca" else f"{used.removeprefix('X_')} "
        names = [f"{stem}{j + 1}" for j in range(Z.shape[1])]
    return make_report(
        np.asarray(Z),
        map=np.asarray(adata.obsm[key]),
        metric=metric,
        labels=obs_columns(adata, color),
        ids=np.asarray(adata.obs_names.astype(str), dtype=object),
        names=list(names),
        **how,
    )
