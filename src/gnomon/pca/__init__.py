"""Principal component analysis, certified."""

from gnomon.pca.estimator import PCA
from gnomon.pca.plan import Plan

__all__ = ["PCA", "Plan"]
