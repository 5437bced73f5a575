"""Rows of one kind, and rows that are unlike them in a known way."""

import numpy as np


def rows(rng, n, d):
    """Smooth curves over `d` columns, more or less strong, with a little noise.

    They go up and down many times, so that no two rows are close together: in the components that
    hold them, noise of the same strength is no farther from them than they are from each other.
    """
    at = np.arange(d)
    kernel = np.exp(-0.5 * ((at[:, None] - at) / 4.0) ** 2)
    curves = rng.multivariate_normal(np.zeros(d), kernel, size=n, method="eigh")
    return 3 + rng.gamma(30, 1 / 30, (n, 1)) * curves + 0.1 * rng.standard_normal((n, d))


def noise(rng, n, d):
    """Columns with the means and spreads of the data, but independent of each other."""
    return 3 + np.sqrt(1 + 1 / 30 + 0.01) * rng.standard_normal((n, d))


def shuffled(rng, n, d):
    """Rows of the same kinds, each with its numbers in an order of its own."""
    return rng.permuted(rows(rng, n, d), axis=1)
