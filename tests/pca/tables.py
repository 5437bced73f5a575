"""Tables and comparisons that several tests of the diagnostics share."""

import numpy as np
from references.tables import read

from gnomon.pca import PCA


def correlated(n=60, d=6, seed=0):
    """Rows with every direction occupied, away from zero."""
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) @ random.normal(size=(d, d)) + 3.0


def assert_same_columns(got, want, *, signed=False):
    """Every column to 1e-8 of its norm; the sign of each is free unless `signed`."""
    signs = np.ones(want.shape[1]) if signed else np.sign((got * want).sum(axis=0))
    error = np.linalg.norm(got * signs - want, axis=0)
    assert (error <= 1e-8 * np.linalg.norm(want, axis=0)).all(), error


FACTOMINER = {"decathlon": True, "usarrests": True, "usarrests_unscaled": False}


def factominer(name):
    """The active columns, and the model with FactoMineR's divisor."""
    X = read(name.removesuffix("_unscaled"))[2]
    X = X[:, :10].astype(float) if name == "decathlon" else X
    return X, PCA(standardize=FACTOMINER[name], ddof=0).fit(X)
