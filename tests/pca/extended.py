"""PCA in extended precision, by other means than Gnomon's: the truth that certificates are held to.

Numbers are `numpy.longdouble`: 64 bits of mantissa on x86, for which LAPACK has nothing. The table
is centred, weighted and reduced to a triangle by Gram and Schmidt's method; Jacobi's rotations make
the columns of the triangle orthogonal [Hestenes 1958]. Their lengths are the singular values, to a
rounding of the largest, and the rotations are the components. Nothing is squared, and nothing but
additions, multiplications and square roots is needed.
"""

from typing import NamedTuple

import numpy as np

LONG = np.longdouble
EPS = float(np.finfo(LONG).eps)
SWEEPS = 60


class Truth(NamedTuple):
    """Covariance (d, d), roots of its eigenvalues (d,), largest first, and components (d, d)."""

    sigma: np.ndarray
    roots: np.ndarray
    vectors: np.ndarray

    @property
    def values(self):
        return self.roots**2


def exact_pca(X, weights=None, *, ddof=1, standardize=False, feature_weight=None):
    """The covariance of the rows of `X` and its components, all in extended precision."""
    Z = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    Z = Z.astype(LONG)
    w = np.ones(len(Z), LONG) if weights is None else np.asarray(weights, LONG)
    total = w.sum()
    mean = (w @ Z) / total
    Z = Z - mean
    Z = Z - (w @ Z) / total  # what rounding left of the mean
    if standardize:
        spread = np.sqrt((w @ Z**2) / (total - ddof))
        # A column that varies by the rounding of its own numbers is constant and stays at 0.
        eps = np.finfo(X.dtype).eps if X.dtype.kind == "f" else 0
        constant = spread <= 4 * eps * np.abs(mean)
        Z = np.where(constant, 0, Z / np.where(constant, 1, spread))
    if feature_weight is not None:
        Z = Z * np.sqrt(np.asarray(feature_weight, LONG))
    Z = Z * np.sqrt(w / (total - ddof))[:, None]
    return Truth(Z.T @ Z, *singular_pairs(Z))


def singular_pairs(Z):
    """Singular values of `Z` (n, d), largest first, and right singular vectors as rows (d, d)."""
    d = Z.shape[1]
    scale = np.abs(Z).max(initial=0)
    A = triangle(Z / (scale if scale > 0 else 1))
    V = np.eye(d, dtype=LONG)
    rounds = list(_tournament(d))
    for _ in range(SWEEPS):
        worst = max((_rotate(A, V, p, q) for p, q in rounds), default=0.0)
        if worst <= 4 * EPS:
            break
    else:
        raise ArithmeticError(f"Jacobi's method is still at {worst} after {SWEEPS} sweeps")
    roots = np.sqrt((A * A).sum(axis=0)) * scale
    order = np.argsort(-roots, kind="stable")
    return roots[order], V[:, order].T.copy()


def triangle(Z):
    """R of Z = QR, shape (d, d), or `Z` itself if it has no more rows than columns."""
    n, d = Z.shape
    if n <= d:
        return Z.copy()
    Z, R = Z.copy(), np.zeros((d, d), LONG)
    for j in range(d):
        length = np.sqrt(Z[:, j] @ Z[:, j])
        R[j, j] = length
        if length > 0:
            q = Z[:, j] / length
            R[j, j + 1 :] = q @ Z[:, j + 1 :]
            Z[:, j + 1 :] -= np.outer(q, R[j, j + 1 :])
    return R


def _tournament(d):
    """Rounds of disjoint pairs in which everyone meets everyone once."""
    seats = list(range(d + d % 2))
    half = len(seats) // 2
    for _ in range(len(seats) - 1):
        pairs = zip(seats[:half], seats[: half - 1 : -1], strict=True)
        met = [(min(pair), max(pair)) for pair in pairs if max(pair) < d]
        if met:
            p, q = (np.array(side) for side in zip(*met, strict=True))
            yield p, q
        seats = [seats[0], seats[-1], *seats[1:-1]]


def _rotate(A, V, p, q):
    """Make columns p and q of A orthogonal, in place, for disjoint pairs; the largest cosine met.

    Columns below a rounding of the largest are left as they are: they have no direction.
    """
    left, right = A[:, p], A[:, q]
    a, b, c = (left * left).sum(axis=0), (right * right).sum(axis=0), (left * right).sum(axis=0)
    size = np.sqrt(a) * np.sqrt(b)
    largest = np.sqrt((A * A).sum(axis=0).max(initial=0))
    seen = (c != 0) & (np.abs(c) > EPS / 4 * size) & (np.sqrt(np.maximum(a, b)) > EPS * largest)
    cosine = np.where(seen, np.abs(c), 0) / np.where(size > 0, size, 1)
    noise = np.sqrt(np.minimum(a, b)) <= 4 * EPS * largest  # rounding turns these for ever
    zeta = (b - a) / (2 * np.where(seen, c, 1))
    t = np.where(zeta >= 0, 1, -1) / (np.abs(zeta) + np.sqrt(zeta * zeta + 1))
    t = np.where(seen, t, LONG(0))
    cos = 1 / np.sqrt(t * t + 1)
    sin = t * cos
    for M in (A, V):
        left, right = M[:, p].copy(), M[:, q].copy()
        M[:, p], M[:, q] = cos * left - sin * right, sin * left + cos * right
    return float(np.where(noise, 0, cosine).max(initial=0))


def orthonormal(rows):
    """Rows made orthonormal from the first on, each projected twice."""
    basis = np.zeros((0, rows.shape[1]), LONG)
    for row in rows.astype(LONG):
        for _ in range(2):
            row = row - (row @ basis.T) @ basis
        basis = np.vstack([basis, row / np.sqrt(row @ row)])
    return basis


def largest_sine(a, b):
    """Sine of the largest angle between the span of the rows of `a` and that of orthonormal `b`.

    `b` has at least as many rows. From what is left of `a` beside `b`, not from a cosine, which
    says nothing of small angles.
    """
    left = orthonormal(a)
    for _ in range(2):
        left = left - (left @ b.T) @ b
    return float(singular_pairs(left.T)[0][0])
