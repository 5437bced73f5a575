"""A stand-in for a fitted PCA: exactly what `charts` asks of a model, from one SVD."""

from xml.etree import ElementTree

import numpy as np
import pytest

SVG = "{http://www.w3.org/2000/svg}"


class Fitted:
    def __init__(self, X, names=None, n_components=None, standardize=True, whole=True):
        X = np.asarray(X, dtype=float)
        spread = X.std(axis=0, ddof=1)
        self.mean = X.mean(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0) if standardize else np.ones_like(spread)
        Z = (X - self.mean) / self.scale
        _, singular, V = np.linalg.svd(Z, full_matrices=False)
        variances = singular**2 / (len(X) - 1)
        k = n_components or len(variances)
        self.total_variance_ = float(variances.sum())
        self.spectrum_ = variances if whole else variances[:k]
        self.explained_variance_ = variances[:k]
        self.explained_variance_ratio_ = variances[:k] / (self.total_variance_ or 1.0)
        self.components_ = V[:k]
        self.loadings_ = (V[:k] * np.sqrt(variances[:k])[:, None]).T
        self.n_features_in_ = X.shape[1]
        self.n_components_ = k
        self.deviations = Z.std(axis=0, ddof=1)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def correlations(self):
        with np.errstate(invalid="ignore"):
            return self.loadings_ / self.deviations[:, None]

    def transform(self, X):
        return (np.asarray(X) - self.mean) / self.scale @ self.components_.T


@pytest.fixture
def fit():
    return Fitted


@pytest.fixture
def table():
    """60 rows of 6 correlated columns with names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6))
    return X, ["height", "weight", "arm span", "age", "pulse", "shoe size"]


class Drawing:
    """The SVG of a chart as a tree, with what the tests look for."""

    def __init__(self, chart):
        self.root = ElementTree.fromstring(chart.svg)

    def all(self, tag, style=""):
        """Elements with this tag whose classes include all of `style`."""
        wanted = {f"gn-{name}" for name in style.split()}
        found = self.root.iter(SVG + tag)
        return [e for e in found if wanted <= set(e.get("class", "").split())]

    def texts(self, style=""):
        """The visible words, in the order drawn."""
        return [element.text or "" for element in self.all("text", style)]

    def tips(self):
        """The words shown on hovering."""
        return [title.text for parent in self.root for title in parent.iter(SVG + "title")]


@pytest.fixture
def read():
    return Drawing
