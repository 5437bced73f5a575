"""How good everybody's maps are beside their KL: nobody is fast by being worse.

On every set with labels, by the same code for everybody, in the table that was mapped:

- trustworthiness at 15 neighbours (`gnomon.scores`, the same number as scikit-learn's);
- kept: share of a row's 10 and 30 nearest rows that are among its 10 and 30 nearest on the map;
- class: share of rows whose 10 nearest on the map vote for the row's own label;
- centroids: Spearman's correlation of the distances between the means of the classes, in the data
  and on the map: whether classes that are far apart are drawn far apart.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.spatial.distance import pdist

from benchmarks import data
from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import each
from benchmarks.tsne_programs import (
    COLUMNS,
    FITS,
    THREADS,
    Points,
    digits,
    exact_affinities,
    exact_kl,
    images,
    positions,
    shape_cell,
)
from benchmarks.tsne_section import Section

SCORED = 5_000  # rows, where there are more
SLOW = {"scikit-learn": 25_000}  # rows beyond which a program is left out

Load = Callable[[Path | None], Points]


def archive(
    name: str, rows: str, labels: str, folder: Path | None, *, first: int | None = None
) -> Points:
    """A table of one of the archives of ``--data`` in 50 principal components, and its labels."""
    if folder is None:
        raise BenchmarkError(f"The quality of {name} needs --data.")
    from gnomon import PCA

    with data.open_archive(folder, f"{name}.npz") as file:
        X, y = np.asarray(file[rows], np.float32), np.asarray(file[labels])
    X, y = X[:first], y[:first]
    model = PCA(COLUMNS, random_state=0, n_jobs=THREADS)
    return Points(model.fit_transform(X.reshape(len(X), -1)), y, name)


def worm_neurons(folder: Path | None) -> Points:
    """Cells of a worm: counts to 10,000 a cell, log(1 + x), in 50 principal components."""
    if folder is None:
        raise BenchmarkError("The quality of worm_neurons needs --data.")
    from gnomon import PCA

    counts = data.counts(folder)
    size = np.asarray(counts.sum(axis=1)).ravel()
    scaled = sparse.csr_array(sparse.diags_array(10_000 / size) @ counts).log1p()
    with data.open_archive(folder, "worm_neurons_counts_csr.npz") as file:
        labels = np.asarray(file["y"])
    model = PCA(COLUMNS, random_state=0, n_jobs=THREADS)
    return Points(model.fit_transform(scaled.astype(np.float32)), labels, "worm_neurons")


SETS: Mapping[str, Load] = {
    "digits": digits,
    "faces": partial(archive, "olivetti_faces", "X", "y"),
    "coil-20": partial(archive, "coil20", "X", "y"),
    "cells": partial(archive, "pbmc68k_reduced", "X", "bulk_labels"),
    "neurons": worm_neurons,
    "mnist-10k": partial(images, rows=10_000),
    "fashion-20k": partial(archive, "fashion_mnist", "x_train", "y_train", first=20_000),
    "mnist-70k": images,
}


def measure(load: Load, settings: Settings) -> dict[str, Any]:
    """Scores of everybody's map of one set."""
    points = load(settings.data)
    P = exact_affinities(points.X)
    found: dict[str, Any] = {}
    for name, fit in FITS.items():
        if len(points.X) > SLOW.get(name, np.inf):
            continue
        result = fit(points.X, 2)
        found[name] = {"kl": exact_kl(P, result), **judge(points, positions(result))}
    return {**points.describe(), "programs": found}


def judge(points: Points, Y: NDArray[np.float64]) -> dict[str, float]:
    """What the module says, of one map `Y` (n, 2)."""
    from gnomon import scores

    found = scores.score_map(
        points.X,
        Y,
        points.labels,
        n_neighbors=(10, 15, 30),
        sample=min(SCORED, len(Y)),
        random_state=0,
        n_jobs=THREADS,
    )
    assert found.class_accuracy is not None
    return {
        "trustworthiness": float(found.trustworthiness.mean[1]),
        "kept_10": float(found.recall.mean[0]),
        "kept_30": float(found.recall.mean[2]),
        "class": float(found.class_accuracy.mean[0]),
        "centroids": order_of_centroids(points.X, Y, points.labels),
    }


def order_of_centroids(X: NDArray[Any], Y: NDArray[Any], labels: NDArray[Any]) -> float:
    """Spearman's correlation of distances between the means of classes, in data and map."""
    kinds = np.unique(labels)
    far = [pdist(np.array([T[labels == kind].mean(axis=0) for kind in kinds])) for T in (X, Y)]
    return float(stats.spearmanr(*far).statistic)


SCORES = ("kl", "trustworthiness", "kept_10", "kept_30", "class", "centroids")


def lines(result: Mapping[str, Any]) -> list[list[str]]:
    """The one line of a set."""
    programs = result["programs"]
    cells = [
        each([programs[name][score] if name in programs else None for name in FITS], ".3f")
        for score in SCORES
    ]
    return [[shape_cell(result), *cells]]


SECTION = Section(
    name="quality",
    caption=f"scores of whole maps, {' / '.join(FITS)}.",
    header=["row", "data", "KL", "trustworthiness", "kept 10", "kept 30", "class", "centroids"],
    rows={name: partial(measure, load) for name, load in SETS.items()},
    lines=lines,
    notes=(
        "quality: tables are in 50 principal components but for digits; scores are over 5,000 rows "
        "drawn with one seed where there are more, each ranked against all. trustworthiness: at 15 "
        "neighbours. kept: share of the 10 and 30 nearest rows kept. class: rows whose 10 nearest "
        "on the map vote for their own label. centroids: rank correlation of the distances between "
        "the classes' means. scikit-learn is left out at 70,000 rows.",
    ),
    peers=("intelex", "openTSNE", "scikit-learn"),
)
