"""
Single cells
============

Which kinds of cells are there, and for which of them can the map be trusted? With an AnnData file
it is ``gnomon map cells.h5ad``, or ``gnomon.anndata.map(adata)`` in Python:
:doc:`/guide/single-cell`.
"""

import data_of_tasks
import numpy as np

from gnomon import TSNE, charts, scores

X, kind = data_of_tasks.cells()
tsne = TSNE().fit(X)
charts.scatter(tsne, kind, title=f"{len(X):,} cells by kind")

# %%
# How many of its 15 nearest cells does each cell keep, and how many of them are of its own kind?

kept = scores.score_map(X, tsne.embedding_, kind)
of_15 = list(kept.n_neighbors).index(15)
for name in np.unique(kind):
    cells = kind == name
    share = kept.recall.points[cells, of_15].mean()
    print(f"{name:28} {cells.sum():4} cells, {share:.0%} of neighbours kept")

# %%
# Coloured by that share: kinds that blend into each other are where to be careful.

charts.scatter(tsne, kept.recall.points[:, of_15], title="Share of neighbours that the map keeps")
