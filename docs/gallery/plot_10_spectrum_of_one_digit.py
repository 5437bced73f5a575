"""
The spectrum of one digit
=========================

The example of [Lecture] after section 10.2.2: the eigenvalues of the covariance matrix of all
images of the digit 8, and how much of the variance the first of them hold together.

On MNIST, when its folder is given (`make docs DATA=folder`); otherwise on the sample of digits.
"""

import images_of_digits
import numpy as np
from sketches import Sketch

from gnomon import PCA, charts

X, digit, shape = images_of_digits.load()
eights = X[digit == "8"]
pca = PCA().fit(eights)
print(f"{len(eights):,} images of an 8, {shape[0]} × {shape[1]} pixels each")
charts.images(eights[:20], shape, title="Images of the digit 8")

# %%
# The notes' figure (a): the largest eigenvalues, at most 200 of them. Only a few differ from 0 by
# much.

# sphinx_gallery_thumbnail_number = 2
largest = pca.spectrum_[:200]
curve = np.column_stack([np.arange(1, len(largest) + 1), largest])
sketch = Sketch(
    "Eigenvalues of the digit 8",
    f"{len(largest)} of {X.shape[1]}, largest first: the variance along each component.",
    across=1,
)
panel = sketch.panel(
    "", np.vstack([curve, [0, 0]]), axes=("index", "eigenvalue"), equal=False, ratio=0.45
)
panel.curve(curve, "quiet", "fine")
panel.points(curve, "accent", 2.4)
sketch.finish()

# %%
# The notes' figure (b): the variance that the first M components capture, V(M) / V(D).

charts.cumulative(pca)

# %%
# An image of an 8 needs far fewer numbers than it has pixels.

shares = np.cumsum(pca.explained_variance_ratio_)
for share in (0.5, 0.8, 0.9, 0.95):
    print(f"{share:.0%} of the variance: {np.searchsorted(shares, share) + 1} components")
