"""
Find outliers
=============

Which rows are unlike all others? Principal components tell two kinds apart: rows that lie far out
within the components (T²), and rows that the components cannot describe (reconstruction error).
"""

import numpy as np

from gnomon import PCA, TSNE, charts, samples

wine = samples.load("wine")
X = wine.X.copy()
X[7] = X[7][::-1]  # a row whose cells are in the wrong columns
pca = PCA(n_components=5, standardize=True).fit(X)
far, unfit = pca.hotelling_t2(X), pca.prediction_error(X)
for name, values, limit in (
    ("T²", far, pca.t2_limit()),
    ("reconstruction error", unfit, pca.prediction_error_limit(new=False)),
):
    print(f"{name}: rows {np.flatnonzero(values > limit).tolist()} are above the limit {limit:.3g}")
print("The row with the shifted cells is the worst:", int(np.argmax(far / pca.t2_limit())) == 7)

# %%
# Where are they on the map? A pale point is like the others.

tsne = TSNE().fit((X - X.mean(axis=0)) / X.std(axis=0))
outlying = np.maximum(far / pca.t2_limit(), unfit / pca.prediction_error_limit(new=False))
charts.scatter(tsne, np.log(outlying), title="How far beyond the limits, by logarithm")

# %%
# New rows are judged by ``place``: near none of the map's rows, or outside its components. On the
# command line, ``gnomon place new.csv -m wines_map`` adds the columns ``unusual`` and ``why``.

digits = samples.load("digits")
first = TSNE().fit(digits.X[:1500])
mixed = np.random.default_rng(0).permuted(digits.X[1500:], axis=1)  # pixels in another order
print(f"new digits: {first.place(digits.X[1500:]).title()}")
print(f"shuffled pixels: {first.place(mixed).title()}")
