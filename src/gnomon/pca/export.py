"""Export of a fitted PCA to scikit-learn's class, which other tools can export further."""

from typing import TYPE_CHECKING

import numpy as np

from gnomon.errors import UnavailableError

if TYPE_CHECKING:
    from sklearn import decomposition

    from gnomon.pca.estimator import PCA

__all__ = ["as_sklearn"]


def as_sklearn(model: "PCA") -> "decomposition.PCA":
    """Export a model as a `sklearn.decomposition.PCA`; see `PCA.to_sklearn`."""
    from sklearn import decomposition  # slow to import, and only exports need it

    used = {
        "standardize": model.standardize,
        "feature_weight": model.feature_weight is not None,
        "missing": model.missing == "em",
    }
    for name in (name for name, is_used in used.items() if is_used):
        raise UnavailableError(
            f"scikit-learn's PCA does not support `{name}`. Standardise, weight or fill in the "
            f"columns beforehand, and fit without `{name}`."
        )
    components = model.components_
    kind = components.dtype
    out = decomposition.PCA(n_components=int(model.n_components_), whiten=bool(model.whiten))
    out.n_components_, out.components_ = int(model.n_components_), components.copy()
    out.n_samples_, out.n_features_in_ = int(model.n_samples_), int(model.n_features_in_)
    for name in ("mean", "explained_variance", "explained_variance_ratio", "singular_values"):
        setattr(out, f"{name}_", getattr(model, f"{name}_").astype(kind))
    out.noise_variance_ = kind.type(model.noise_variance_)
    out._fit_svd_solver = "full"
    if model._names() is not None:
        out.feature_names_in_ = np.array(model._names())
    return out
