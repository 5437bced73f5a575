"""How right a fitted PCA is: the same float64 code for everybody.

With Σ the covariance (divisor n − 1) of the very table that was fitted, vⱼ a model's components
and λⱼ the variances it states:

- residual: maxⱼ ‖Σvⱼ − λⱼvⱼ‖ / λ₁, with the true λ₁. Zero only for true eigenpairs.
- deficit: maxⱼ |1 − captured(j) / best(j)|, the variance in the span of the first j components
  against that of the best j-dimensional plane. A residual alone would not notice a component that
  was missed or found twice.
- cosine: |cos| of the angle between the first component and the true one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

Floats = NDArray[np.float64]
BLOCK_ROWS = 4_096


@dataclass(frozen=True)
class Quality:
    """Errors of one fitted model, as the module defines them."""

    residual: float
    deficit: float
    cosine: float


@dataclass(frozen=True)
class Reference:
    """The truth about one table, in float64.

    Attributes
    ----------
    apply
        Σ times the columns of a matrix (d, m).
    variances
        The k largest eigenvalues of Σ, largest first.
    first
        The first component (d,).
    """

    apply: Callable[[Floats], Floats]
    variances: Floats
    first: Floats

    def judge(self, model: Any) -> Quality:
        """Errors of a fitted model with `components_` (k, d) and `explained_variance_` (k,)."""
        V = np.asarray(model.components_, dtype=np.float64).T
        stated = np.asarray(model.explained_variance_, dtype=np.float64)
        errors = np.linalg.norm(self.apply(V) - V * stated, axis=0)
        # Q spans what V spans, column by column: components that are not orthonormal gain nothing.
        Q = np.linalg.qr(V)[0]
        captured = np.cumsum(np.sum(Q * self.apply(Q), axis=0))
        best = np.cumsum(self.variances)
        return Quality(
            residual=float(errors.max() / self.variances[0]),
            deficit=float(np.abs(1 - captured / best).max()),
            cosine=float(abs(V[:, 0] @ self.first) / np.linalg.norm(V[:, 0])),
        )


def reference(X: Any, k: int) -> Reference:
    """The truth about a table (n, d), dense or sparse.

    Tall tables form Σ. Wide dense ones go by the smaller matrix of products of rows; sparse ones
    by Lanczos iterations to rounding. Σ is then applied as Xcᵀ(Xc v)/(n − 1), never formed.
    """
    n, d = X.shape
    if sparse.issparse(X):
        return _from_operator(X, k)
    if d > n:
        return _from_rows(X, k)
    sigma = covariance(X)
    values, vectors = linalg.eigh(sigma, subset_by_index=(d - k, d - 1))
    return Reference(lambda V: sigma @ V, values[::-1], vectors[:, -1])


def covariance(X: NDArray[Any]) -> Floats:
    """Σ (d, d) in float64; every block is centred before it is squared."""
    n, d = X.shape
    mean = X.mean(axis=0, dtype=np.float64)
    total = np.zeros((d, d))
    for start in range(0, n, BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS].astype(np.float64) - mean
        total += block.T @ block
    total /= n - 1
    return total


def _from_rows(X: NDArray[Any], k: int) -> Reference:
    n = len(X)
    centred = X.astype(np.float64)
    centred -= centred.mean(axis=0)
    values, U = linalg.eigh(centred @ centred.T / (n - 1), subset_by_index=(n - k, n - 1))
    first = centred.T @ U[:, -1]
    return Reference(
        lambda V: centred.T @ (centred @ V) / (n - 1),
        values[::-1],
        first / np.linalg.norm(first),
    )


def _from_operator(X: Any, k: int) -> Reference:
    n, d = X.shape
    wide = X.astype(np.float64)
    mean = np.asarray(wide.mean(axis=0)).ravel()

    def apply(V: Floats) -> Floats:
        # Xc V = XV − 1(meanᵀV); its columns sum to zero, so Xcᵀ(Xc V) = Xᵀ(Xc V).
        product = np.asarray(wide.T @ (wide @ V - mean @ V), dtype=np.float64)
        product /= n - 1
        return product

    operator = LinearOperator((d, d), matvec=apply, matmat=apply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(d)
    values, vectors = eigsh(operator, k, v0=start)
    order = np.argsort(values)[::-1]
    return Reference(apply, values[order], vectors[:, order[0]])
