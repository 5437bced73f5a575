"""Random problems for PCA's certificate: spectra, tables and ways to fit them, from one seed."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from gnomon import PCA

SOLVERS = ("auto", "covariance", "gram", "svd", "deflation", "krylov")


def decaying(rng, d):
    """Every variance a fraction of the one before."""
    return rng.uniform(0.1, 0.9) ** np.arange(d)


def flat(rng, d):
    """All variances nearly the same, or as close as those of random rows are."""
    return 1 + 10.0 ** rng.uniform(-12, -0.5) * np.sort(rng.random(d))[::-1]


def near_ties(rng, d):
    """Pairs whose difference is between rounding and a thousandth."""
    values = np.repeat(0.6 ** np.arange(-(-d // 2)), 2)[:d]
    values[1::2] *= 1 - 10.0 ** rng.uniform(-17, -3, values[1::2].size)
    return values


def graded(rng, d):
    """Down to far below the rounding of the first."""
    return 10.0 ** np.linspace(0, -rng.uniform(4, 30), d)


def rank_deficient(rng, d):
    """Zero from some component on."""
    rank = int(rng.integers(1, max(2, d)))
    return np.where(np.arange(d) < rank, rng.uniform(0.2, 0.9) ** np.arange(d), 0.0)


def clustered(rng, d):
    """Groups of exactly equal variances."""
    return np.sort(rng.choice(10.0 ** rng.uniform(-6, 0, 3), d))[::-1]


SPECTRA = (decaying, flat, near_ties, graded, rank_deficient, clustered)


@dataclass(frozen=True)
class CertificateProblem:
    """A table, how it is fitted, and what the exact PCA must be told of it.

    `parts` are batches for `partial_fit` or `merge`; `complete` is the table before cells of it
    went missing.
    """

    name: str
    X: np.ndarray
    how: dict
    weights: np.ndarray | None = None
    parts: tuple = ()
    merged: bool = False
    complete: np.ndarray | None = None

    def fit(self):
        """The model."""
        if not self.parts:
            return PCA(**self.how).fit(self.X, sample_weight=self.weights)
        if self.merged:
            model, *others = (PCA(**self.how).fit(self.X[part]) for part in self.parts)
            for other in others:
                model = model.merge(other)
            return model
        model = PCA(**self.how)
        for part in self.parts:
            w = None if self.weights is None else self.weights[part]
            model.partial_fit(self.X[part], sample_weight=w)
        return model


FORMS = (
    "plain",
    "float32",
    "float32 with a mean",
    "weights",
    "partial_fit",
    "merge",
    "standardize",
    "few values",
    "blank rows",
    "loose",
    "sparse",
    "missing",
)


def make_problem(form, number):
    """A problem: solvers and spectra in turn, everything else at random."""
    rng = np.random.default_rng([2026, FORMS.index(form), number])
    solver = SOLVERS[number % 6]
    spectrum = SPECTRA[(number // 6 + number) % 6]
    d = int(rng.integers(2, 15))
    n = int(rng.integers(3, 80))
    if form == "loose" and rng.random() < 0.5:  # so long that krylov can end before its space
        d, n = int(rng.integers(30, 60)), int(rng.integers(30, 120))
    X = _table(rng, n, spectrum(rng, d))
    k = int(rng.integers(1, min(n, d) + 1))
    how = {"n_components": k, "solver": solver, "ddof": int(rng.integers(0, 2))}
    name = f"{form} {number}: {spectrum.__name__}, {solver}, {n} × {d}, k = {k}"
    given = _FORMS[form](rng, X, how)
    return CertificateProblem(**{"name": name, "X": X, "how": how, **given})


def _table(rng, n, values):
    """Rows whose covariance has the eigenvalues `values`, up to rounding, at a random mean."""
    d = values.size
    rank = min(n - 1, d)
    U = rng.standard_normal((n, rank))
    U = np.linalg.qr(U - U.mean(axis=0))[0]
    V = np.eye(d) if rng.random() < 0.1 else np.linalg.qr(rng.standard_normal((d, d)))[0]
    unit = 10.0 ** rng.integers(-3, 4)
    X = unit * (U * np.sqrt(values[:rank] * (n - 1))) @ V[:, :rank].T
    return X + unit * rng.choice([0.0, 1.0, 1e3]) * rng.standard_normal(d)


def _cut(rng, n):
    """One to three slices of at least two rows that cover all `n`."""
    inner = [int(cut) for cut in np.unique(rng.integers(0, n + 1, 2)) if 2 <= cut <= n - 2]
    edges = [0, *inner, n]
    if len(edges) == 4 and edges[2] - edges[1] < 2:
        edges.pop(1)
    return tuple(slice(a, b) for a, b in pairwise(edges))


def _plain(rng, X, how):
    return {}


def _float32(rng, X, how):
    return {"X": X.astype(np.float32)}


def _float32_with_a_mean(rng, X, how):
    return {"X": (X + 10.0 ** rng.uniform(1, 5) * X.std()).astype(np.float32)}


def _weights(rng, X, how):
    weights = 10.0 ** rng.uniform(-rng.choice([0, 1, 6]), 1, len(X)) * len(X)
    if rng.random() < 0.3:
        weights = rng.integers(1, 5, len(X)).astype(float)
    if rng.random() < 0.3 and len(X) > 4:
        weights[rng.integers(0, len(X))] = 0.0
        how["n_components"] = min(how["n_components"], len(X) - 1)
    weights *= max(1.0, 3 / weights.sum())
    X = X.astype(np.float32) if rng.random() < 0.3 else X
    return {"X": X, "weights": weights}


def _batches(rng, X, how):
    X = X.copy()
    if rng.random() < 0.5:  # batches far from each other
        X[: len(X) // 2] += 10.0 ** rng.uniform(0, 9) * X.std()
    how["solver"] = "covariance"
    return {"X": X.astype(np.float32) if rng.random() < 0.3 else X, "parts": _cut(rng, len(X))}


def _merge(rng, X, how):
    given = _batches(rng, X, how)
    least = min(part.stop - part.start for part in given["parts"])
    how["n_components"] = min(how["n_components"], least)
    return {**given, "merged": True}


def _standardize(rng, X, how):
    how["standardize"] = True
    X = X * 10.0 ** rng.uniform(-4, 4, X.shape[1])
    if rng.random() < 0.3:
        how["feature_weight"] = rng.uniform(0.1, 10, X.shape[1])
    return {"X": X.astype(np.float32) if rng.random() < 0.3 else X}


def _few_values(rng, X, how):
    """Cells of two or three values in float32: their rounding errors all go the same way."""
    n = int(rng.choice([60, 700] if how["solver"] == "gram" else [60, 700, 5_000, 20_000]))
    d = min(X.shape[1], 8)
    levels = np.sort(rng.random(int(rng.integers(2, 4)))) * rng.choice([0.3, 0.7, 1.0])
    shares = rng.dirichlet(np.full(levels.size, 0.5), d)
    X = np.stack([rng.choice(levels, n, p=p) for p in shares], axis=1)
    if rng.random() < 0.3:
        X = X[np.argsort(X[:, 0], kind="stable")]
    how["n_components"] = min(how["n_components"], d)
    return {"X": X.astype(np.float32)}


def _blank_rows(rng, X, how):
    """A few rows of zeros, and all others far away."""
    X = X + 10.0 ** rng.uniform(2, 8) * X.std()
    X[: int(rng.integers(1, 3))] = 0.0
    parts = (slice(0, 1), slice(1, len(X))) if rng.random() < 0.5 else ()
    if parts:
        how["solver"] = "covariance"
    return {"X": X, "parts": parts}


def _loose(rng, X, how):
    how["n_components"] = min(how["n_components"], int(rng.integers(1, 6)))
    how["tol"] = float(10.0 ** rng.uniform(-13, -1))
    return {}


def _sparse(rng, X, how):
    """Most cells zero, in either precision, with or without weights."""
    seen = rng.random(X.shape) < rng.choice([0.1, 0.5])
    seen[:2] = True
    X = sp.csr_array(np.where(seen, X, 0).astype(rng.choice(["f4", "f8"])))
    weights = rng.uniform(0.5, 2, X.shape[0]) if rng.random() < 0.3 else None
    return {"X": X, "weights": weights}


def _missing(rng, X, how):
    n, d = X.shape
    holes = rng.random((n, d)) < rng.choice([0.02, 0.1])
    holes[np.arange(n), rng.integers(0, d, n)] = False  # no row without a value
    holes[rng.integers(0, n, d), np.arange(d)] = False
    how["missing"] = "em"
    return {"X": np.where(holes, np.nan, X), "complete": X}


_FORMS = {
    "plain": _plain,
    "float32": _float32,
    "float32 with a mean": _float32_with_a_mean,
    "weights": _weights,
    "partial_fit": _batches,
    "merge": _merge,
    "standardize": _standardize,
    "few values": _few_values,
    "blank rows": _blank_rows,
    "loose": _loose,
    "sparse": _sparse,
    "missing": _missing,
}
