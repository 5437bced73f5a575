"""Tables that some tasks work on: real ones from the folder GNOMON_DATA, or stand-ins."""

import os
from pathlib import Path

import numpy as np

from gnomon import samples

HERE = Path(__file__).parent


def _open(name):
    """Arrays of a file in the folder of data, or None where there is no such file."""
    path = Path(os.environ.get("GNOMON_DATA") or "") / name
    return np.load(path, allow_pickle=False) if path.is_file() else None


def umap_of_digits():
    """Positions (1797, 2) of the digits by umap-learn 0.5.12, ``UMAP(random_state=0)``."""
    return np.loadtxt(HERE / "umap_of_digits.csv", delimiter=",", skiprows=1)


def faces():
    """Images (n, pixels), the person of each, and the pictures' shape; digits without the file."""
    file = _open("olivetti_faces.npz")
    if file is None:
        digits = samples.load("digits")
        return digits.X[:400], digits.labels[:400], (8, 8)
    return file["X"].astype(np.float32), file["y"].astype(str), (64, 64)


def cells():
    """Principal components or log counts of cells (n, d), and the kind of each cell.

    Without the file: 700 cells of five kinds, each with 20 marker genes among 300, as Poisson
    counts that are scaled to one sum and logarithmized.
    """
    file = _open("pbmc68k_reduced.npz")
    if file is not None:
        return file["X_pca"], file["bulk_labels"]
    random = np.random.default_rng(0)
    kind = random.integers(5, size=700)
    rates = np.tile(random.gamma(0.4, 1.0, 300), (5, 1))
    for i in range(5):
        rates[i, 20 * i : 20 * i + 20] += 4
    counts = random.poisson(rates[kind] * random.gamma(4, 0.25, (700, 1)))
    logs = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    return logs, np.array([f"kind {i + 1}" for i in kind])
