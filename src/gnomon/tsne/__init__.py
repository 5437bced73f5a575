"""t-distributed stochastic neighbour embedding."""

from gnomon.tsne.estimator import TSNE

__all__ = ["TSNE"]
