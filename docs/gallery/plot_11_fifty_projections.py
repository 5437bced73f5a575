"""
The loss of fifty projections
=============================

Sections 10.3.1 and 10.3.2 of [Lecture]: a point is to be replaced by a point on a line. Of fifty
candidates, the one at the least distance is the orthogonal projection, where the difference stands
upright on the line.
"""

import numpy as np
from sketches import Sketch

from gnomon import PCA, samples

petals = samples.load("iris").X[:, 2:]
X = petals - petals.mean(axis=0)
b = PCA(n_components=1).fit(X).components_[0]  # spans the subspace U
x = np.array([0.4, 1.5])  # the point

coordinates = np.linspace(-2.5, 2.5, 50)
candidates = np.outer(coordinates, b)  # x̃ = z b
distances = np.linalg.norm(x - candidates, axis=1)
best = x @ b  # z = bᵀx

# %%
# Panel (a): the point and the line. (b): its differences to fifty points of the line. (c): their
# lengths, a curve with one lowest point. (d): there, the difference is orthogonal to the line.

frame = np.array([[-2.6, -1.4], [2.6, 1.8]])
sketch = Sketch("Where to put a point on a line", "The orthogonal projection is the nearest.")


def draw(name):
    """A panel with the line U and the point x."""
    panel = sketch.panel(name, frame, axes=("x₁", "x₂"))
    panel.line([0, 0], b, "accent", "thick")
    panel.cross(x)
    panel.text(x, "x", right=10)
    return panel


draw("(a) A point and a line").text(2.0 * b, "U", right=-4, up=10)
panel = draw("(b) 50 differences")
panel.segments(x, candidates, "c1")
panel.points(candidates, "accent", 2.2)

curve = np.column_stack([coordinates, distances])
panel = sketch.panel(
    "(c) Their lengths", np.vstack([curve, [0, 0]]), axes=("z", "‖x − x̃‖"), equal=False
)
panel.points(curve, "accent", 2.6)
panel.points([best, np.linalg.norm(x - best * b)], "c1", 5)

panel = draw("(d) The nearest")
panel.segments([x], [best * b], "c1", "thick")
panel.points(best * b, "c1", 4.5)
panel.text(best * b, "x̃", right=4, up=-18)
sketch.finish()

# %%
# It is the orthogonal one, and its coordinate is bᵀx.

print("difference · b at the nearest:", f"{abs((x - best * b) @ b):.1e}")
print("bᵀx:", f"{best:.3f}", " nearest of the fifty:", f"{coordinates[distances.argmin()]:.3f}")

# %%
# So it is for all points at once (section 10.3.3): projections lie in U, differences in its
# orthogonal complement, and the mean squared difference is the eigenvalue that was left out.

restored = np.outer(X @ b, b)
sketch = Sketch("Petals of iris on their first component", "Points, projections, differences.", 1)
panel = sketch.panel("", X, axes=("petal length", "petal width"), ratio=0.5)
panel.line([0, 0], b, "accent", "fine")
panel.segments(X, restored)
panel.points(X, "quiet")
panel.points(restored, "c4", 2.6)
sketch.finish()

# %%

loss = np.mean(((X - restored) ** 2).sum(axis=1))
eigenvalue = np.linalg.eigvalsh(X.T @ X / len(X))[0]
print(f"J = {loss:.6f}, eigenvalue left out = {eigenvalue:.6f}")
