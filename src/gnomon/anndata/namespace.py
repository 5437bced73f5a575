"""``adata.gnomon``: the functions of `gnomon.anndata` as methods of every AnnData."""

from typing import Any

try:
    import anndata
except ImportError as error:
    raise ImportError(
        "gnomon.anndata takes the package anndata: pip install 'gnomon[anndata]'."
    ) from error

from gnomon.anndata import cell_page, embed, models
from gnomon.report.report import Report

__all__ = ["GnomonAccessor"]


@anndata.register_anndata_namespace("gnomon")
class GnomonAccessor:
    """PCA, t-SNE and pages of one AnnData; parameters are those of the functions."""

    def __init__(self, adata: anndata.AnnData) -> None:
        self._adata = adata

    def pca(self, *args: Any, **how: Any) -> Any:
        """See `gnomon.anndata.pca`."""
        return embed.pca(self._adata, *args, **how)

    def tsne(self, *args: Any, **how: Any) -> Any:
        """See `gnomon.anndata.tsne`."""
        return embed.tsne(self._adata, *args, **how)

    def map(self, *args: Any, **how: Any) -> models.CellMap:
        """See `gnomon.anndata.map`."""
        return embed.map(self._adata, *args, **how)

    def place(self, on: models.CellMap, **how: Any) -> None:
        """See `gnomon.anndata.place`."""
        models.place(self._adata, on, **how)

    def report(self, *args: Any, **how: Any) -> Report:
        """See `gnomon.anndata.report`."""
        return cell_page.report(self._adata, *args, **how)
