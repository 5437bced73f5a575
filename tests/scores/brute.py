"""The definitions as they are written, over all pairs: what the kernels are tested by."""

import numpy as np


def ranks(table):
    """rank[i, j] of j about i by (distance, row number), from 1; 0 for i itself."""
    n = len(table)
    result = np.zeros((n, n), int)
    for i in range(n):
        sq = ((table - table[i]) ** 2).sum(axis=1)
        order = [j for j in np.lexsort((np.arange(n), sq)) if j != i]
        result[i, order] = np.arange(1, n)
    return result


def neighbours(table, k):
    r = ranks(table)
    return [np.flatnonzero((row >= 1) & (row <= k)) for row in r]


def trustworthiness(X, Y, k):
    """Of every point."""
    r, n = ranks(X), len(X)
    scale = 2 / (k * (2 * n - 3 * k - 1))
    near = neighbours(Y, k)
    return np.array([1 - scale * np.maximum(r[i, near[i]] - k, 0).sum() for i in range(n)])


def recall(X, Y, k):
    pairs = zip(neighbours(X, k), neighbours(Y, k), strict=True)
    return np.array([len(np.intersect1d(a, b)) / k for a, b in pairs])
