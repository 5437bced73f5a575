"""
Orthogonal alignment
====================

Figure 5 of [Selitskii 2025]: two sets of the same points, and the rotation or reflection that lays
one on the other.

The sets are the middles of the ten digits on two maps by t-SNE: one of the images, one of the same
images with noise in every pixel. The second map is then turned over and round, as a map made by
another program, or on another day, might be.
"""

import numpy as np

from gnomon import TSNE, align, charts, samples

digits = samples.load("digits")
random = np.random.default_rng(0)
noisy = digits.X + random.normal(0, 2.0, digits.X.shape)

one = TSNE().fit(digits.X).embedding_
other = TSNE().fit(noisy).embedding_ @ [[-0.6, 0.8], [0.8, 0.6]]  # a reflection, det = −1


def middles(positions):
    """Median place of every digit, shape (10, 2), around zero."""
    places = np.array([np.median(positions[digits.labels == d], axis=0) for d in names])
    return places - places.mean(axis=0)


names = np.unique(digits.labels)
Y, X = middles(one), middles(other)
charts.overlay(X, Y, names, names=("X, as it came", "Y"), title="Before")

# %%
# The best orthogonal matrix is W* = VUᵀ from the singular vectors of XᵀY, eqs. (60) to (66); rows
# being points here, X is multiplied by its transpose. What is left is what moved.

found = align(X, Y)
charts.overlay(found.aligned, Y, names, names=("X, aligned", "Y"), title="After")

# %%
# The reflection is recognised, and no other orthogonal matrix does better: the trace reaches the
# bound Tr(Σ) of eq. (64).

U, S, Vt = np.linalg.svd(X.T @ Y)
W = found.model.rotation_.T  # the notes multiply columns from the left
print("turned over:  ", found.reflected)
print("W is VUᵀ:     ", np.allclose(W, Vt.T @ U.T))
print("Tr(W XᵀY):    ", f"{np.trace(W @ X.T @ Y):.1f}")
print("bound Tr(Σ):  ", f"{S.sum():.1f}")
print("root mean square distance, before and after:", end=" ")
print(*(f"{np.sqrt(((Z - Y) ** 2).sum(1).mean()):.1f}" for Z in (X, found.aligned)))
