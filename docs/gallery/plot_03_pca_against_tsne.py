"""
Where PCA overlaps
==================

Figure 3 of [Selitskii 2025]: the direction of the most variance need not be the one that tells
groups apart. Linear discriminant analysis finds that direction if it is told the groups; t-SNE is
not told, and keeps neighbours together.
"""

import numpy as np
from sketches import Sketch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gnomon import PCA, TSNE, charts, samples, scores

# Two long groups side by side: the most variance lies along them, not between them.
random = np.random.default_rng(0)
X = random.standard_normal((300, 2)) * [4.0, 0.45] + [0.0, 1.2]
X[150:] *= [1.0, -1.0]
X = X @ [[0.96, 0.28], [-0.28, 0.96]]  # turned by 16°
group = np.repeat(["upper", "lower"], 150)

pca = PCA(n_components=1).fit(X)
lda = LinearDiscriminantAnalysis(n_components=1).fit(X, group)

# %%
# The data with both directions; then the same points on one line, as each method has it.

sketch = Sketch("Two long groups", "PCA goes along the groups, discriminant analysis across.", 1)
panel = sketch.panel("", X, ratio=0.4)
panel.points(X[group == "lower"], "c0")
panel.points(X[group == "upper"], "c1")
across = lda.scalings_[:, 0] / np.linalg.norm(lda.scalings_[:, 0])
panel.arrow([0, 0], 6 * pca.components_[0] * np.sign(pca.components_[0, 0]), "ink", "PCA")
panel.arrow([0, 0], 3.4 * across * np.sign(across[1]), "ink", "LDA")
sketch.finish()

# %%
# On the first component the groups overlap: a point's neighbours are of either group, and their
# vote is right hardly more often than a coin. t-SNE tears both groups into pieces to lay them on a
# line: the neighbours of a point are of its group, but the order of the pieces means nothing.

lines = {
    "PCA, one component": pca.transform(X),
    "Linear discriminant analysis, which is told the groups": lda.transform(X),
    "t-SNE, one dimension": TSNE(1).fit(X).embedding_,
}
right = {name: scores.class_accuracy(Y, group) for name, Y in lines.items()}
notes = {name: [f"{share:.0%} of neighbours vote right"] for name, share in right.items()}
charts.maps(lines, group, notes=notes, title="The same points on one line")

# %%
# So it is with the digits: ten groups in 64 dimensions have no room on two straight axes.

digits = samples.load("digits")
maps = {
    "PCA, two components": PCA(n_components=2).fit_transform(digits.X),
    "t-SNE, two dimensions": TSNE().fit(digits.X).embedding_,
}
right = {name: scores.class_accuracy(Y, digits.labels) for name, Y in maps.items()}
notes = {name: [f"{share:.0%} of neighbours vote right"] for name, share in right.items()}
charts.maps(maps, digits.labels, notes=notes, title="Handwritten digits")

# %%
# What t-SNE pays for it: distances between groups, their sizes and their densities mean little on
# its map, while on PCA's they are the data's own, as far as two components hold them.

for name, Y in maps.items():
    kept = scores.rank_correlation(digits.X, Y)
    print(f"{name}: order of distances kept to {kept.value:.2f}")
