"""PCA and t-SNE of AnnData objects, under scanpy's names; ``adata.gnomon`` once this is imported.

``gnomon.anndata.pca(adata)`` and ``tsne(adata)`` take scanpy's parameters and write where scanpy
writes, so that ``sc.pl.tsne`` and whatever follows it find them. ``map`` does both and returns the
models, with which ``place`` puts new cells on the map; ``report`` is the page of any map that an
AnnData holds. Takes ``pip install 'gnomon[anndata]'``.
"""

from gnomon.anndata.cell_page import report as report
from gnomon.anndata.embed import map as map
from gnomon.anndata.embed import pca as pca
from gnomon.anndata.embed import tsne as tsne
from gnomon.anndata.models import CellMap as CellMap
from gnomon.anndata.models import place as place
from gnomon.anndata.namespace import GnomonAccessor as GnomonAccessor

__all__ = ["CellMap", "GnomonAccessor", "map", "pca", "place", "report", "tsne"]
