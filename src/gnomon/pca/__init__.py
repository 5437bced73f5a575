"""Principal component analysis, certified."""

from gnomon.pca.estimator import PCA
from gnomon.pca.plan import Plan
from gnomon.pca.rank import ComponentPanel, component_panel

__all__ = ["PCA", "ComponentPanel", "Plan", "component_panel"]
