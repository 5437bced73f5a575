"""The models of a map of cells, and new cells placed on it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gnomon.anndata.backed import MatrixParts
from gnomon.anndata.matrices import Genes, read_matrix
from gnomon.data.refusals import listed
from gnomon.data.table import MOST_NAMED
from gnomon.errors import DataError
from gnomon.pca import PCA
from gnomon.report.report import Report, report
from gnomon.tsne import TSNE

__all__ = ["CellMap", "obs_columns", "place"]

MOST_COLOURS = 12  # columns of `obs` that a page takes unasked
MOST_MISSING = 3  # genes that an error names


@dataclass(frozen=True, eq=False)
class CellMap:
    """What `gnomon.anndata.map` fitted.

    Attributes
    ----------
    adata : AnnData
        The cells of the map.
    pca : PCA
        Of the chosen genes.
    tsne : TSNE
        Of ``obsm["X_pca"]``.
    genes : tuple of str
        Names of the genes that `pca` takes, in its order.
    layer : str or None
        Where their numbers are, instead of X.
    """

    adata: Any = field(repr=False)
    pca: PCA
    tsne: TSNE
    genes: tuple[str, ...] = field(repr=False)
    layer: str | None = None

    def report(self, color: Any = None, **how: Any) -> Report:
        """The page of the map, coloured by columns of `obs`.

        Parameters
        ----------
        color : str or list of str, optional
            Columns of `obs`, the first of which is shown first; by default those that group the
            cells or hold numbers.
        how
            ``title``, ``page_budget``, ``stability`` and others of `gnomon.report`.
        """
        scores = np.asarray(self.adata.obsm["X_pca"])
        return report(
            scores,
            tsne=self.tsne,
            labels=obs_columns(self.adata, color),
            ids=np.asarray(self.adata.obs_names.astype(str), dtype=object),
            names=[f"PC{j + 1}" for j in range(scores.shape[1])],
            **how,
        )


def place(adata: Any, on: CellMap, *, n_jobs: int | None = None) -> None:
    """Put new cells on the map of others.

    Parameters
    ----------
    adata : AnnData
        New cells, whose genes are found by name (`var_names`) and may be in any order; their
        numbers must be normalised as those of the map were.
    on : CellMap
        What `gnomon.anndata.map` returned.
    n_jobs : int, optional
        Threads.

    Notes
    -----
    Writes ``obsm["X_pca"]`` and ``obsm["X_tsne"]`` in the frame of the map, and ``obs`` columns
    ``"tsne_unusual"`` and ``"tsne_why"``: cells that are like none of the map's, and why.
    """
    if not isinstance(on, CellMap):
        raise DataError(
            f"`on` must be what gnomon.anndata.map returns; got a {type(on).__name__}. A map in "
            "`obsm` alone has no model to place cells with."
        )
    names = adata.var_names.astype(str)
    if not names.is_unique:
        raise DataError("The new cells have gene names twice. Run adata.var_names_make_unique().")
    at = names.get_indexer(on.genes)
    missing = [name for name, j in zip(on.genes, at, strict=True) if j < 0]
    if missing:
        some = ", ".join(missing[:MOST_MISSING])
        raise DataError(
            f"The new cells lack {len(missing)} of the {len(on.genes)} genes of the map ({some}"
            f"{', …' if len(missing) > MOST_MISSING else ''}). Give cells with the same genes."
        )
    matrix = read_matrix(adata, on.layer, Genes())
    matrix = matrix.columns_at(at) if isinstance(matrix, MatrixParts) else matrix[:, at]
    scores = np.asarray(on.pca.transform(matrix), np.float32)
    placed = on.tsne.place(scores)
    adata.obsm["X_pca"] = scores
    adata.obsm["X_tsne"] = np.asarray(placed.positions)
    adata.obs["tsne_unusual"] = np.asarray(placed.unusual)
    adata.obs["tsne_why"] = np.asarray(placed.why, dtype=str)


def obs_columns(adata: Any, color: Any) -> dict[str, Any]:
    """Columns of `obs` to colour by: those that `color` names, or those that group all cells."""
    obs = adata.obs
    if color is not None:
        asked = [color] if isinstance(color, str) else list(color)
        for name in asked:
            if name not in obs:
                known = listed([str(column) for column in obs.columns], MOST_NAMED) or "none"
                raise DataError(f"`color` '{name}' is no column of `adata.obs`; it has {known}.")
        return {name: obs[name] for name in asked}
    groups = [name for name in obs if not _is_number(obs[name]) and _groups(obs[name])]
    numbers = [name for name in obs if _is_number(obs[name])]
    return {str(name): obs[name] for name in [*groups, *numbers][:MOST_COLOURS]}


def _is_number(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") in "iuf"


def _groups(column: Any) -> bool:
    """Whether a column names groups, not single cells."""
    return bool(1 < column.nunique() <= max(2, len(column) // 2))
