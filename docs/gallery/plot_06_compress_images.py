"""
Images compressed
=================

The motivation of [Derivation]: fewer numbers, and yet one can see what the picture is about. Each
image is replaced by its scores on k components, and restored from them.
"""

import images_of_digits
import numpy as np

from gnomon import PCA, charts

X, digit, shape = images_of_digits.load(rows=10_000)
n, pixels = X.shape
counts = [2, 5, 10, 20, 40] if pixels < 100 else [5, 20, 50, 100, 300]
shown = [np.flatnonzero(digit == str(d))[0] for d in range(10)]  # one image of each digit

# %%
# Bytes are counted fairly: the scores, the components and the mean on one side, the pixels on the
# other, 4 bytes a number on both. The error is the root mean square over all pixels of all images,
# in per cent of the largest pixel.

pictures, captions = [X[shown]], [f"original: {n * pixels * 4:,} bytes for {n:,} images"]
for k in counts:
    pca = PCA(n_components=k).fit(X)
    restored = pca.inverse_transform(pca.transform(X))
    size = (n * k + k * pixels + pixels) * 4
    error = np.sqrt(np.mean((X - restored) ** 2)) / X.max()
    kept = pca.explained_variance_ratio_.sum()
    pictures.append(restored[shown])
    saved = 1 - size / (n * pixels * 4)
    captions.append(
        f"k = {k}: {saved:.0%} of bytes saved, {kept:.0%} of variance, error {error:.1%}"
    )
charts.images(
    np.vstack(pictures),
    shape,
    names=captions,
    limits=(0, X.max()),
    title="Digits restored from k components",
)

# %%
# A few components already say which digit it is. The error that is left is the sum of the lost
# eigenvalues, section 6 of [Derivation]: nothing has to be restored to know it.

pca = PCA(n_components=counts[2]).fit(X)
restored = pca.inverse_transform(pca.transform(X))
measured = ((X - restored).astype(float) ** 2).sum() / (n - 1)
print(f"k = {counts[2]}: measured {measured:.3f}, lost eigenvalues {pca.lost_variance_:.3f}")

# %%
# What the images are put together from: the mean, not shown, and the components. Each is a picture
# too, with parts to add (blue) and to take away (orange).

pca = PCA(n_components=20).fit(X)
charts.images(pca.components_, shape, signed=True, title="The first twenty components")
