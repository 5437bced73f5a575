"""Sets of points that several tests share."""

import numpy as np


def orthogonal(d, seed=0, *, reflected=None):
    """A random orthogonal (d, d) matrix; its determinant's sign if `reflected` is given."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    if reflected is not None and (np.linalg.det(Q) < 0) != reflected:
        Q[:, 0] *= -1
    return Q


def pair(n=60, d=3, seed=0, noise=0.3, *, scale=1.0, shift=0.0):
    """X, and a turned, scaled, shifted and noisy Y."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = scale * X @ orthogonal(d, seed + 1) + shift + noise * random.normal(size=(n, d))
    return X, Y


def turn(angle):
    """The (2, 2) matrix that turns rows counter-clockwise."""
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
