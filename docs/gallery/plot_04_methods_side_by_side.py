"""
Methods side by side
====================

Figure 4 of [Selitskii 2025]: handwritten digits as different methods show them. With each map goes
how far it can be trusted and how long it took; colours are the digits, which only discriminant
analysis was told.

On MNIST, when its folder is given (`make docs DATA=folder`); otherwise on the sample of 1,797
digits that comes along.
"""

import time
from importlib.util import find_spec

import images_of_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gnomon import PCA, TSNE, charts, scores

X, digit, shape = images_of_digits.load(rows=10_000)
print(f"{len(X):,} images of {shape[0]} × {shape[1]} pixels")

# %%
# t-SNE in four ways: affinities that are Gaussian, as most programs have them, eq. (49), or uniform
# over nearest neighbours, eq. (44); and a start from PCA or at random. UMAP joins in where
# umap-learn is installed.

TSNE(max_iter=1).fit(X[:200])  # compiles its loops, so that no method below pays for it
methods = {
    "PCA": PCA(n_components=2),
    "LDA (told the digits)": LinearDiscriminantAnalysis(n_components=2),
    "t-SNE": TSNE(),
    "t-SNE, uniform": TSNE(affinity="uniform"),
    "t-SNE, random start": TSNE(init="random"),
    "uniform, random": TSNE(affinity="uniform", init="random"),
}
if find_spec("umap"):
    from umap import UMAP

    UMAP(n_jobs=1, random_state=0).fit(X[:200])
    methods["UMAP"] = UMAP(n_jobs=1, random_state=0)

maps, notes = {}, {}
for name, method in methods.items():
    told = digit if name.startswith("LDA") else None
    start = time.perf_counter()
    maps[name] = method.fit_transform(X, told)
    seconds = time.perf_counter() - start
    score = scores.score_map(X, maps[name], digit, n_neighbors=15)
    notes[name] = [
        f"trust {score.trustworthiness.mean[0]:.3f} · {seconds:.1f} s",
        f"distances {score.distances.value:.2f}",
        f"votes right {score.class_accuracy.mean[0]:.1%}",
    ]

# %%
# *Trust* is trustworthiness with 15 neighbours: 1 if all neighbours on the map are neighbours among
# the images. *Distances* is the rank correlation of all distances, near and far. *Votes right* is
# the share of points whose neighbours on the map have the same digit.

charts.maps(maps, digit, notes=notes, title="Handwritten digits by several methods")

# %%
# What one sees: on two straight axes the digits overlap, whether the axes were told the digits or
# not. PCA keeps the order of large distances best, and t-SNE the neighbourhoods. Uniform affinities
# give much the same map as Gaussian ones. From a random start the groups are as pure as from PCA's,
# but where they lie with respect to each other is more a matter of chance, and their distances have
# less to do with those among the images.
