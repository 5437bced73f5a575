"""Tables whose KL is compared with the first edition's: of ``--data``, and generated ones.

Wide tables are given by 50 principal scores, as `TSNE` would reduce them. The generated ones are
hard in one way each: no neighbourhoods (noise), far outliers (Cauchy), copies, one dimension.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.tsne_programs import Points, digits, images

COLUMNS = 50
Load = Callable[[Path], Points]


def scores(X: Any, source: str) -> Points:
    """Principal scores of a wide table."""
    from gnomon import PCA

    return points(PCA(COLUMNS, random_state=0).fit_transform(X), source)


def points(X: NDArray[Any], source: str) -> Points:
    return Points(X, np.zeros(len(X), np.int64), source)


def archive(folder: Path, file: str, key: str = "X") -> NDArray[Any]:
    """One array of an .npz file."""
    with data.open_archive(folder, file) as arrays:
        found: NDArray[Any] = arrays[key]
    return found


def fashion(folder: Path) -> Points:
    rows = archive(folder, "fashion_mnist.npz", "x_train")[:20_000]
    return scores(rows.astype(np.float32), "Fashion-MNIST")


def words(folder: Path) -> Points:
    return points(archive(folder, "glove_100d_top20k.npz", "vectors"), "GloVe")


def objects(folder: Path) -> Points:
    return scores(archive(folder, "coil20.npz").astype(np.float32), "COIL-20")


def faces(folder: Path) -> Points:
    return scores(archive(folder, "olivetti_faces.npz").astype(np.float32), "faces")


def blood_cells(folder: Path) -> Points:
    return points(archive(folder, "pbmc68k_reduced.npz", "X_pca"), "single cells")


def neurons(folder: Path) -> Points:
    """Counts scaled to the median depth of a cell, as logarithms."""
    counts = data.counts(folder)
    depth = np.asarray(counts.sum(axis=1)).ravel()
    counts.data *= np.repeat(np.median(depth) / depth, np.diff(counts.indptr)).astype(np.float32)
    counts.data = np.log1p(counts.data)
    return scores(counts, "single cells")


def swiss_roll(rows: int = 10_000) -> NDArray[Any]:
    generator = np.random.default_rng(0)
    angle = 1.5 * np.pi * (1 + 2 * generator.random(rows))
    across = 21 * generator.random(rows)
    return np.column_stack([angle * np.cos(angle), across, angle * np.sin(angle)]).astype("f4")


def line(rows: int = 3_000) -> NDArray[Any]:
    """Points on a line in ten dimensions."""
    generator = np.random.default_rng(0)
    along = generator.random((rows, 1))
    return (along @ generator.standard_normal((1, 10))).astype(np.float32)


def cauchy(rows: int = 6_000) -> NDArray[Any]:
    return np.random.default_rng(0).standard_cauchy((rows, 10)).astype(np.float32)


def noise(rows: int = 6_000) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal((rows, COLUMNS)).astype(np.float32)


def duplicates() -> NDArray[Any]:
    """600 rows, five times each."""
    return np.tile(np.random.default_rng(0).standard_normal((600, 10)), (5, 1))


def copies() -> NDArray[Any]:
    """4,000 rows, five times each: so many that the descent follows a cut P and a wider mesh."""
    return np.tile(np.random.default_rng(0).standard_normal((4_000, 10)), (5, 1))


def two_blobs(rows: int = 2_000) -> NDArray[Any]:
    X = np.random.default_rng(0).standard_normal((rows, 10)).astype(np.float32)
    X[rows // 2 :, 0] += 20
    return X


REAL: Mapping[str, Load] = {
    "digits": digits,
    "faces": faces,
    "coil-20": objects,
    "blood cells": blood_cells,
    "worm neurons": neurons,
    "mnist-10k": partial(images, rows=10_000),
    "fashion-20k": fashion,
    "glove-20k": words,
    "mnist-70k": images,
}
GENERATED: Mapping[str, Callable[[], NDArray[Any]]] = {
    "swiss roll": swiss_roll,
    "line": line,
    "cauchy": cauchy,
    "noise": noise,
    "duplicates": duplicates,
    "copies": copies,
    "two blobs": two_blobs,
}
