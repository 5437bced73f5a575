"""PCA and t-SNE of an AnnData, with scanpy's parameters and in scanpy's slots."""

import sys
from importlib.metadata import version
from typing import Any

import numpy as np

from gnomon.anndata.backed import MatrixParts
from gnomon.anndata.matrices import N_PCS, choose_genes, read_matrix, representation, warn_of_counts
from gnomon.anndata.models import CellMap
from gnomon.errors import DataWarning, refuse, warn_caller
from gnomon.numeric.scaling import working_type
from gnomon.pca import PCA
from gnomon.pca.plan import make_plan
from gnomon.pca.rank import Request
from gnomon.scores.few_rows import trusted
from gnomon.scores.neighbors_kept import neighbors_kept
from gnomon.tsne import TSNE

__all__ = ["map", "pca", "tsne"]


def pca(
    adata: Any,
    n_comps: int | None = None,
    *,
    layer: str | None = None,
    mask_var: Any = "auto",
    random_state: int = 0,
    dtype: Any = "float32",
    key_added: str | None = None,
    n_jobs: int | None = None,
    copy: bool = False,
) -> Any:
    """Principal components of the cells, where ``scanpy.pp.pca`` writes them.

    Parameters
    ----------
    adata : AnnData
        X dense or sparse; a sparse one is never made dense. Backed by a file or by Dask, X is read
        in parts, with the same bits. It is held where the solver reads it many times and it fits.
    n_comps : int, optional
        By default 50, or one less than there are cells or genes.
    layer : str, optional
        Instead of X.
    mask_var : str, array of bool or None
        Genes to use. By default ``var["highly_variable"]`` where there is such a column; None uses
        all.
    random_state : int
    dtype : str
        Of ``obsm["X_pca"]``.
    key_added : str, optional
        Key of `obsm`, `varm` and `uns` instead of ``"X_pca"``, ``"PCs"`` and ``"pca"``.
    n_jobs : int, optional
        Threads; the bits of the result do not depend on it.
    copy : bool
        Return a copy with the components instead of writing into `adata`.

    Returns
    -------
    AnnData or None
        ``obsm["X_pca"]``, ``varm["PCs"]``, ``uns["pca"]`` with ``"variance"``,
        ``"variance_ratio"`` and ``"params"``. An ``X_pca`` that another program computed is
        replaced, with a warning.
    """
    adata = adata.copy() if copy else adata
    _write_pca(adata, n_comps, layer, mask_var, random_state, dtype, key_added, n_jobs)
    return adata if copy else None


def _write_pca(
    adata: Any,
    n_comps: int | None,
    layer: str | None,
    mask_var: Any,
    random_state: int,
    dtype: Any,
    key_added: str | None,
    n_jobs: int | None,
) -> PCA:
    """Fit, write, and return the model."""
    genes = choose_genes(adata, mask_var)
    matrix = read_matrix(adata, layer, genes)
    warn_of_counts(matrix, "X" if layer is None else f"layers['{layer}']")
    if n_comps is None:
        n_comps = min(N_PCS, min(matrix.shape) - 1)
    solver = _solver(matrix, n_comps) if isinstance(matrix, MatrixParts) else "auto"
    model = PCA(n_comps, solver=solver, random_state=random_state, n_jobs=n_jobs)
    scores = model.fit_transform(matrix)
    loadings = np.zeros((adata.n_vars, len(model.components_)))
    used = slice(None) if genes.mask is None else genes.mask
    loadings[used] = model.components_.T
    _warn_of_replaced(adata, key_added)
    adata.obsm[key_added or "X_pca"] = np.asarray(scores, dtype)
    adata.varm[key_added or "PCs"] = loadings
    params: dict[str, Any] = {
        "zero_center": True,
        "use_highly_variable": genes.name == "highly_variable",
        "mask_var": genes.name,
        "gnomon": version("gnomon"),
    }
    if layer is not None:
        params["layer"] = layer
    adata.uns[key_added or "pca"] = {
        "params": params,
        "variance": np.asarray(model.explained_variance_),
        "variance_ratio": np.asarray(model.explained_variance_ratio_),
    }
    return model


def _warn_of_replaced(adata: Any, key_added: str | None) -> None:
    """Warn where components that another program computed are replaced."""
    key, params = key_added or "X_pca", adata.uns.get(key_added or "pca", {}).get("params", {})
    if key in adata.obsm and "gnomon" not in params:
        warn_caller(
            DataWarning(
                "obsm['{key}'] was computed by another program and is replaced: what was made from "
                "it, such as a UMAP, is from now on judged beside other components.",
                "Give `pca` a `key_added`, or make the map from it: gnomon.anndata.tsne(adata).",
                key=key,
            )
        )


def _solver(matrix: MatrixParts, n_comps: int) -> str:
    """The solver that the matrix would be given in memory, for the same bits."""
    n, d = matrix.shape
    request, itemsize = Request.parse(n_comps, n, d), working_type(matrix.dtype).itemsize
    plan = make_plan(
        n=n, d=d, request=request, itemsize=itemsize, stored=matrix.stored, memory=sys.maxsize
    )
    return plan.solver


def tsne(
    adata: Any,
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    perplexity: float = 30,
    metric: str = "euclidean",
    early_exaggeration: float = 12,
    random_state: int = 0,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    n_jobs: int | None = None,
    copy: bool = False,
) -> Any:
    """t-SNE of the cells, where ``scanpy.tl.tsne`` writes it.

    Parameters
    ----------
    adata : AnnData
    n_pcs : int, optional
        Columns of the representation to use; 0 uses X itself.
    use_rep : str, optional
        ``"X"`` or a key of `obsm`. By default ``"X_pca"``, or X where there are at most 50 genes.
    perplexity, metric, early_exaggeration, random_state
        As in `gnomon.TSNE`.
    neighbors_key : str, optional
        Use the graph that ``scanpy.pp.neighbors`` wrote under this key (``"neighbors"``) for the
        affinities, instead of searching neighbours; `perplexity` and `metric` have no effect then.
    key_added : str, optional
        Key of `obsm` and `uns` instead of ``"X_tsne"`` and ``"tsne"``.
    n_jobs : int, optional
        Threads; the bits of the map do not depend on it.
    copy : bool
        Return a copy with the map instead of writing into `adata`.

    Returns
    -------
    AnnData or None
        ``obsm["X_tsne"]`` and ``uns["tsne"]["params"]``.
    """
    adata = adata.copy() if copy else adata
    Z, used = representation(adata, use_rep, n_pcs)
    model = TSNE(
        perplexity=perplexity,
        metric=metric,
        early_exaggeration=early_exaggeration,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if neighbors_key is not None:
        graph = _graph(adata, neighbors_key)
        start = PCA(2, random_state=random_state, n_jobs=n_jobs).fit_transform(Z)
        start = 1e-4 * start / np.std(start[:, 0])
        model.set_params(affinity="precomputed", init=start, metric="euclidean")
        model.fit(graph)
    else:
        model.fit(Z)
    _write_map(adata, model, key_added, use_rep=used, neighbors_key=neighbors_key)
    return adata if copy else None


def _write_map(adata: Any, model: TSNE, key_added: str | None, **used: Any) -> None:
    params = {
        name: getattr(model, name)
        for name in ("perplexity", "metric", "early_exaggeration", "random_state")
    }
    adata.obsm[key_added or "X_tsne"] = np.asarray(model.embedding_)
    known = {name: value for name, value in used.items() if value is not None}
    adata.uns[key_added or "tsne"] = {"params": params | known | {"gnomon": version("gnomon")}}


def _graph(adata: Any, key: str) -> Any:
    """The connectivities that scanpy's neighbours were stored as."""
    stored = adata.uns.get(key, {})
    graph = stored.get("connectivities_key", "connectivities")  # old files have the name unsaid
    if key not in adata.uns or graph not in adata.obsp:
        refuse(
            "neighbors_key",
            "be a key that scanpy.pp.neighbors wrote",
            key,
            "Run sc.pp.neighbors(adata) first.",
        )
    return adata.obsp[graph]


def map(
    adata: Any,
    n_comps: int | None = None,
    *,
    layer: str | None = None,
    mask_var: Any = "auto",
    perplexity: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> CellMap:
    """PCA, t-SNE and how far to trust it: the whole job, written into `adata`.

    Parameters
    ----------
    adata, n_comps, layer, mask_var, random_state, n_jobs
        As in `pca`, which is computed anew: new cells are placed by its genes. An ``X_pca`` that
        another program computed is replaced, with a warning; `tsne` makes a map from it.
    perplexity : float, optional
        By default 30, or a third of the cells where there are fewer than 91.

    Returns
    -------
    CellMap
        The models: for new cells (`place`) and for a page (``.report()``). Beside the slots of
        `pca` and `tsne`, ``obs["tsne_trust"]`` has the share of each cell's 15 nearest neighbours
        that are among its 15 nearest on the map.
    """
    model = _write_pca(adata, n_comps, layer, mask_var, random_state, "float32", None, n_jobs)
    Z = np.asarray(adata.obsm["X_pca"])
    usual = min(30.0, (len(Z) - 1) / 3) if perplexity is None else perplexity
    tsne = TSNE(perplexity=usual, random_state=random_state, n_jobs=n_jobs).fit(Z)
    _write_map(adata, tsne, None, use_rep="X_pca")
    assert tsne._search is not None
    near = tsne._search.nearest(trusted(len(Z)), n_jobs)
    trust = neighbors_kept(near, tsne.embedding_, n_jobs=n_jobs)
    adata.obs["tsne_trust"] = trust
    genes = choose_genes(adata, mask_var)
    names = np.asarray(adata.var_names.astype(str))
    return CellMap(
        adata, model, tsne, tuple(names if genes.mask is None else names[genes.mask]), layer
    )
