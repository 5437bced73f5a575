"""
Images denoised
===============

The other motivation of [Derivation]: noise is spread over all directions alike, what the images
have in common over a few. Keeping those few leaves most of the noise behind.
"""

import images_of_digits
import numpy as np
from sketches import Sketch

from gnomon import PCA, charts, component_panel

X, digit, shape = images_of_digits.load(rows=10_000)
strength = 0.25 * X.max()
noisy = X + np.random.default_rng(0).normal(0, strength, X.shape).astype(X.dtype)
shown = [np.flatnonzero(digit == str(d))[0] for d in range(10)]

# %%
# The model sees noisy images only. How many components rise above the noise is a question with an
# answer: Gavish and Donoho's threshold, which is made for a table of low rank in noise of equal
# strength.

whole = PCA().fit(noisy)
best = component_panel(whole).counts["gavish-donoho"]
print("components above the noise:", best, "of", X.shape[1])

# %%
# Too few components blur the digits, too many let the noise in again.

counts = [max(best // 4, 1), best, X.shape[1] * 3 // 4]


def restore(k):
    """The noisy images, restored from k components."""
    pca = PCA(n_components=k).fit(noisy)
    return pca.inverse_transform(pca.transform(noisy))


def error(images):
    """Root mean square distance to the images without noise, per pixel, in units of the noise."""
    return np.sqrt(np.mean((images - X) ** 2)) / strength


pictures = {"without noise": X, f"with noise: error {error(noisy):.2f}": noisy}
for k in counts:
    images = restore(k)
    pictures[f"k = {k}: error {error(images):.2f}"] = images
charts.images(
    np.vstack([images[shown] for images in pictures.values()]),
    shape,
    names=list(pictures),
    limits=(0, X.max()),
    title="Digits with noise, and without again",
)

# %%
# The error for every number of components: it falls while components bring digits back, and rises
# once they bring noise.

scores, components, mean = whole.transform(noisy), whole.components_, whole.mean_
tried = np.unique([*np.geomspace(1, X.shape[1], 40).astype(int), best])
errors = [error(mean + scores[:, :k] @ components[:k]) for k in tried]
curve = np.column_stack([tried, errors])
sketch = Sketch(
    "Error by number of components",
    "1 is the error of the noisy images. The rule has not seen those without noise.",
    across=1,
)
panel = sketch.panel(
    "", np.vstack([curve, [0, 0]]), axes=("components", "error"), equal=False, ratio=0.45
)
panel.curve(curve)
at = [best, errors[tried.tolist().index(best)]]
panel.points(at, "c1", 5)
panel.text(at, f"Gavish–Donoho: {best}", up=-22)
sketch.finish()

# %%
# With the true images at hand one could have chosen the lowest point of the curve. The rule comes
# close without them.

lowest = np.argmin(errors)
print(f"lowest error {errors[lowest]:.3f} with {tried[lowest]} components; the rule's: {at[1]:.3f}")
