"""
One component after the other
=============================

Figure 2 of [Selitskii 2025]: the first component is the direction along which the data vary most;
the second is the direction along which what is left varies most; and so on.

Two lengths of the iris flowers, so that every direction is one angle.
"""

import numpy as np
from sketches import Sketch

from gnomon import PCA, samples

X = samples.load("iris").X[:, [0, 2]]  # sepal length, petal length
X = X - X.mean(axis=0)
covariance = X.T @ X / len(X)  # eq. (18)

angles = np.linspace(0, np.pi, 181)
directions = np.column_stack([np.cos(angles), np.sin(angles)])
variances = np.einsum("ij,jk,ik->i", directions, covariance, directions)  # WᵀΣW
best = variances.argmax()

pca = PCA(n_components=2, solver="deflation").fit(X)
W1, W2 = pca.components_
first = np.outer(X @ W1, W1)  # what the first component restores
left = X - first  # the residuals, of which the second is made

# %%
# Panel (a): the data. (b): the variance along every direction, eq. (36), has one highest point, the
# first component. (c): the data projected on it. (d): the residuals. In two dimensions all of them
# lie on one line, which is the second component, eq. (37).

sketch = Sketch(
    "Sequential PCA of two lengths of iris",
    "The first component has the most variance; the second has the most of what is left.",
)
names = ("sepal length", "petal length")
panel = sketch.panel("(a) Data", X, axes=names)
panel.points(X)

degrees = np.degrees(angles)
curve = np.column_stack([degrees, variances])
panel = sketch.panel(
    "(b) Variance along each direction",
    np.vstack([curve, [0, 0]]),
    axes=("angle in degrees", "variance"),
    equal=False,
)
panel.curve(curve)
panel.points([degrees[best], variances[best]], "c1", 5)
panel.text([degrees[best], variances[best]], f"W₁ at {degrees[best]:.0f}°", right=10, up=-2)

panel = sketch.panel("(c) On the first component", X, axes=names)
panel.segments(X, first)
panel.points(X, "quiet")
panel.points(first, "accent", 2.2)
panel.arrow([0, 0], 3.6 * W1, "c1", "W₁")

panel = sketch.panel("(d) Residuals and second", X, axes=names)
panel.line([0, 0], W1, "quiet")
panel.points(left)
panel.arrow([0, 0], 1.3 * W2, "c1", "W₂")
sketch.finish()

# %%
# Deflation, which goes one component after the other as the notes do, and the eigenvectors of the
# covariance, all at once, are the same.

at_once = PCA(n_components=2, solver="covariance").fit(X)
difference = np.abs(pca.components_ - at_once.components_).max()
print("largest difference of a component:", f"{difference:.0e}")
print("angle of the first component:     ", f"{np.degrees(np.arctan2(W1[1], W1[0])):.2f}°")
print("highest point of the curve:       ", f"{degrees[best]:.0f}°")
