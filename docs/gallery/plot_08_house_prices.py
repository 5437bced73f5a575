"""
House prices, turned
====================

The idea of PCA in [Lecture]: five houses, the price and the area of each. Taking the means away and
turning the axes leaves one column that says all and one that says nothing.
"""

import numpy as np
from sketches import Sketch

from gnomon import PCA, samples

houses = samples.load("house-prices")
pca = PCA(n_components=2).fit(houses.X)
centred = houses.X - houses.X.mean(axis=0)
turned = pca.transform(houses.X)

# %%
# Panel (a): the table. (b): without its means, with the two components as new axes. (c): the same
# points in the new axes, where the second number of each is 0.

sketch = Sketch(
    "Price and area of five houses",
    "On the first component they are as far apart as before; on the second there is nothing.",
    across=3,
)
panel = sketch.panel("(a) Table", [[0, 0], [11, 11]], axes=("price", "area"), ratio=1.0)
panel.points(houses.X, "accent", 4.5, houses.ids)
for name, point in zip(houses.ids, houses.X, strict=True):
    panel.text(point, name, right=-7)

panel = sketch.panel("(b) Centred", [[-9, -9], [9, 9]], axes=("price", "area"), ratio=1.0)
panel.points(centred, "accent", 4.5, houses.ids)
for name, length, direction in zip(("first", "second"), (8, 6), pca.components_, strict=True):
    panel.arrow([0, 0], length * direction, "c1", name)

panel = sketch.panel("(c) Turned", [[-8, -8], [8, 8]], axes=("first", "second"), ratio=1.0)
panel.points(turned, "accent", 4.5, houses.ids)
for name, point in zip(houses.ids, turned, strict=True):
    panel.text(point, name, right=-1, up=9)
sketch.finish()

# %%
# The table of the notes (they have 2.82 for c; it is 2√2 = 2.83).

print("house  price  area    first  second")
for name, before, after in zip(houses.ids, centred, turned + 0.0, strict=True):
    print(f"{name:>5} {before[0]:6.0f} {before[1]:5.0f} {after[0]:8.2f} {abs(after[1]):7.2f}")
print(f"the first component holds {pca.explained_variance_ratio_[0]:.0%} of the variance")

# %%
# Real tables are not so neat, but often nearly so. Length and width of the petals of iris: turned
# to their components, (a), the flowers vary little in the second direction; with that number left
# out, (b), they lie on a line, and little is lost.

petals = samples.load("iris").X[:, 2:]
model = PCA(n_components=2).fit(petals)
z = model.transform(petals)
sketch = Sketch("Petals of iris", "Two numbers a flower, (a), and one, (b).")
lost = model.explained_variance_ratio_[1]
panel = sketch.panel("(a) Both coordinates", z, axes=("x₁", "x₂"), ratio=0.6)
panel.points(z)
panel = sketch.panel(
    "(b) The first alone", z, axes=("x₁", "x₂"), ratio=0.6, note=f"{lost:.1%} of the variance lost"
)
panel.points(np.column_stack([z[:, 0], np.zeros(len(z))]))
sketch.finish()
