"""
Check a UMAP map
================

How far can a map be trusted that another program made? ``audit`` compares each row's place with
random places. The positions here were written by umap-learn 0.5.12 (``UMAP(random_state=0)``) for
the digits; with files, it is ``gnomon audit umap.csv --data cells.csv``.
"""

import data_of_tasks
import numpy as np

from gnomon import PCA, TSNE, audit, charts, samples

digits = samples.load("digits")
umap = data_of_tasks.umap_of_digits()
found = audit(digits.X, umap)
print(found)

# %%
# Rows that at least half of the places on the map would suit as well are misplaced; rows that the
# test shows neither way are undecided. Look at them before you conclude anything from their
# neighbours.

print("misplaced rows:", np.flatnonzero(found.misplaced)[:10].tolist())
charts.scatter(umap, found.p_misplaced, title="How likely a random place is as good")

# %%
# The same question for other maps of the same table.

for name, positions in {
    "UMAP": umap,
    "t-SNE": TSNE().fit(digits.X).embedding_,
    "two principal components": PCA(n_components=2).fit_transform(digits.X),
}.items():
    answers = audit(digits.X, positions)
    print(f"{name}: {answers.placed.mean():.0%} placed, {answers.misplaced.mean():.1%} misplaced")
