"""
PCA in practice, step by step
=============================

Section 10.6 of [Lecture]: the steps from a table to its projection and back, for two measurements
of wines in very different units, alcohol in per cent and proline in milligrams a litre.
"""

import numpy as np
from sketches import Sketch, ellipse

from gnomon import PCA, samples

wine = samples.load("wine")
X = wine.X[:, [wine.columns.index("alcohol"), wine.columns.index("proline")]]

mean = X.mean(axis=0)
centred = X - mean  # step 1
deviation = X.std(axis=0)
standard = centred / deviation  # step 2
S = standard.T @ standard / len(X)  # step 3: the covariance matrix, 1/N as in the notes
values, vectors = np.linalg.eigh(S)
B = vectors[:, [-1]]  # the eigenvector of the largest eigenvalue
projected = standard @ B @ B.T  # step 4
back = projected * deviation + mean  # undone: in the units of the table again

# %%
# Without step 2 the first component would be proline alone, whose numbers are a thousand times
# larger. The ellipse in (d) is two standard deviations of the covariance; the arrows are its
# eigenvectors, as long as the roots of their eigenvalues.

sketch = Sketch("The key steps of PCA", "178 wines: alcohol across, proline upwards.")
panel = sketch.panel("(a) Original table", X, axes=("alcohol", "proline"), equal=False)
panel.points(X)

panel = sketch.panel(
    "(b) Step 1: means taken away", centred, axes=("alcohol", "proline"), equal=False
)
panel.points(centred)

frame = np.vstack([standard, [[-3, -3], [3, 3]]])
panel = sketch.panel("(c) Step 2: divided by deviations", frame, axes=("alcohol", "proline"))
panel.points(standard)

panel = sketch.panel("(d) Step 3: eigenvectors of S", frame, axes=("alcohol", "proline"))
panel.points(standard, "quiet")
panel.curve(ellipse(S), "accent", "thick")
for value, vector in zip(values, vectors.T, strict=True):
    panel.arrow([0, 0], 2 * np.sqrt(value) * vector * np.sign(vector[1]), "c1")

panel = sketch.panel("(e) Step 4: projected", frame, axes=("alcohol", "proline"))
panel.segments(standard, projected)
panel.points(standard, "quiet")
panel.points(projected, "accent", 2.4)

panel = sketch.panel(
    "(f) Back in the table's units", np.vstack([X, back]), axes=("alcohol", "proline"), equal=False
)
panel.points(X, "quiet")
panel.points(back, "accent", 2.4)
sketch.finish()

# %%
# The same in two lines; new rows would be standardised by the means and deviations of these.
# (Gnomon divides by n − 1 and not by n, which the projection does not notice.)

pca = PCA(n_components=1, standardize=True).fit(X)
restored = pca.inverse_transform(pca.transform(X))
print("the same as by hand:", np.allclose(restored, back))
print(f"one number instead of two holds {pca.explained_variance_ratio_[0]:.0%} of the variance")
