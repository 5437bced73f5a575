"""
Compress faces
==============

How many numbers does a face need? Each image is replaced by its scores on k components, and
restored from them. With files: ``gnomon reduce faces.npz -k 0.95``, and ``gnomon restore`` for the
way back.
"""

import data_of_tasks
import numpy as np

from gnomon import PCA, charts

X, person, shape = data_of_tasks.faces()
shown = [int(np.flatnonzero(person == one)[0]) for one in np.unique(person)[:8]]
pictures, names = [X[shown]], [f"original: {X.shape[1]:,} numbers an image"]
for share in (0.7, 0.9, 0.95):
    pca = PCA(n_components=share).fit(X)
    pictures.append(pca.inverse_transform(pca.transform(X[shown])))
    names.append(f"{pca.n_components_} numbers: {share:.0%} of the variance")
gray = {"brightness": True, "limits": (0, X.max())}
charts.images(np.vstack(pictures), shape, across=8, names=names, **gray, title="Restored")

# %%
# Which image is restored worst? One that is unlike the others.

error = np.sqrt(np.mean((X - pca.inverse_transform(pca.transform(X))) ** 2, axis=1))
worst = np.argsort(-error)[:5]
print("worst images:", worst.tolist(), "of", person[worst].tolist())
charts.images(X[worst], shape, **gray, title="The images that lose most")
