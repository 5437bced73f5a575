"""
A projection on a plane
=======================

Figure 1 of [Selitskii 2025]: the reconstruction of a point from two components is its orthogonal
projection on the plane that they span.

The points are wines, three measurements each, in units of their spread. Two components span the
plane that lies closest to all of them. Each wine is drawn with the foot of its perpendicular on the
plane; one of them carries the letters of the notes.
"""

import numpy as np
from sketches import Sketch

from gnomon import PCA, samples
from gnomon.charts.projection import seen

wine = samples.load("wine")
chosen = [wine.columns.index(name) for name in ("alcohol", "flavanoids", "color_intensity")]
X = wine.X[::4, chosen]
X = (X - X.mean(axis=0)) / X.std(axis=0)
pca = PCA(n_components=2).fit(X)
W = pca.components_.T  # (3, 2): the notes' matrix W
z = pca.transform(X)  # (n, 2), eq. (13)
restored = pca.inverse_transform(z)  # Wz, eq. (3)

# %%
# Seen from a little above the plane. The vector x is an orange arrow; Wz is its projection, and the
# residual x − Wz stands upright on the plane.

upright = np.cross(*W.T)


def look(points):
    """Points in space as they are drawn, the plane lying flat."""
    return seen(np.atleast_2d(points) @ np.column_stack([W, upright]), (28.0, 24.0))[0]


i = np.argmax((X - restored) @ upright)
corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * np.abs(z).max(axis=0) @ W.T
sketch = Sketch(
    "Projection on the plane of two components",
    "Wines (blue), their projections (grey) and residuals; W₁ and W₂ span the plane.",
    across=1,
)
panel = sketch.panel("", np.vstack([look(corners), look(X)]), ratio=0.6)
panel.curve(look(corners), "quiet", "thick")
panel.segments(look(X), look(restored), "soft")
panel.points(look(restored), "quiet", 3.0)
panel.points(look(X), "accent", 3.4)
origin = look(np.zeros(3))[0]
for k, name in enumerate(["W₁", "W₂"]):
    panel.arrow(origin, look(1.5 * W[:, k])[0], "ink", name)
panel.arrow(origin, look(X[i])[0], "c1")
panel.segments(look(X[i]), look(restored[i]), "c1", "thick")
panel.text(look(X[i])[0], "x")
panel.text(look(restored[i])[0], "Wz", up=-14)
sketch.finish()

# %%
# Equations (34) and (35): residuals are orthogonal to every component.

print("largest |residual · W|:", f"{np.abs((X - restored) @ W).max():.1e}")
print("variance in the plane: ", f"{pca.explained_variance_ratio_.sum():.1%}")
