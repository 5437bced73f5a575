"""Checking of TSNE's parameters and weights, and the fingerprint of a run that can be continued."""

import hashlib
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.inputs import Table, check_choice, check_integer, check_real, check_weights, is_sparse
from gnomon.tsne.schedule import QUALITIES

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

Floats64 = NDArray[np.float64]

LARGEST = 1e30  # factors that float32 can hold
# Below, one point's neighbourhood is smaller than float32 can show; above, K is a Gaussian.
DOF = (1e-3, 1e4)
COPIES = 1e15  # that float64 counts one by one, and whose square float32 has

log = logging.getLogger("gnomon")

__all__ = ["check_copies", "check_parameters", "fingerprint"]


def check_parameters(model: "TSNE") -> None:
    """Refuse whatever no table could make right."""
    check_integer("n_components", model.n_components, 1, 3, "Use PCA for more dimensions.")
    check_choice("affinity", model.affinity, ("gaussian", "uniform", "multiscale", "precomputed"))
    check_choice("method", model.method, ("auto", "mesh", "exact", "barnes_hut"))
    check_choice("quality", model.quality, tuple(QUALITIES))
    if model.method == "barnes_hut":
        log.info("method='barnes_hut' means 'auto' here; `angle` has no effect.")
    _check_numbers(model)
    if not isinstance(model.metric, str):
        refuse("metric", "be the name of a metric", model.metric, kind=True)
    if model.metric_params and model.metric in ("euclidean", "cosine", "precomputed"):
        refuse("metric_params", f"be None for metric={model.metric!r}", model.metric_params)
    if model.method == "exact" and model.n_neighbors is not None and model.affinity != "uniform":
        refuse("n_neighbors", "be None for method='exact', which takes all", model.n_neighbors)
    if isinstance(model.init, str):
        check_choice("init", model.init, ("pca", "random"))
        if model.init == "pca" and "precomputed" in (model.metric, model.affinity):
            refuse(
                "init", "be 'random' or an array for precomputed input", model.init,
                'The parameter init="pca" cannot be used with metric="precomputed".',
            )  # fmt: skip


def _check_numbers(model: "TSNE") -> None:
    check_real("recall", model.recall, 0.0, 1.0)
    check_real("dof", model.dof, *DOF)
    check_real("early_exaggeration", model.early_exaggeration, 1.0, LARGEST)
    check_real("exaggeration", model.exaggeration, 0.0, LARGEST, open_low=True)
    check_integer("max_iter", model.max_iter, 1)
    check_integer("n_iter_without_progress", model.n_iter_without_progress, 1)
    check_real("min_grad_norm", model.min_grad_norm, 0.0)
    check_real("angle", model.angle, 0.0, 1.0)
    check_choice("warm_start", model.warm_start, (False, True))
    verbose = int(model.verbose) if model.verbose in (True, False) else model.verbose
    check_integer("verbose", verbose, 0)
    if not (isinstance(model.learning_rate, str) and model.learning_rate == "auto"):
        check_real("learning_rate", model.learning_rate, 0.0, LARGEST, open_low=True)
    if not (isinstance(model.force_tol, str) and model.force_tol == "auto"):
        check_real("force_tol", model.force_tol, 0.0, 1.0, open_low=True)


def check_copies(sample_weight: Any, n: int) -> Floats64 | None:
    """Weights as numbers of copies, none below 1; None if all are 1."""
    weights = check_weights("sample_weight", sample_weight, n, of="row")
    if weights is None or (weights == 1).all():
        return None
    if weights.min() < 1:
        at = int(np.argmin(weights))
        refuse(
            "sample_weight", "be 1 or more, the number of copies a row stands for",
            float(weights[at]),
            f"It stands at position {at}. Leave rows of zero weight out, or divide all weights "
            "by the smallest.",
        )  # fmt: skip
    if weights.sum() > COPIES:
        refuse(
            "sample_weight", f"be at most {COPIES:.0e} copies in all", float(weights.sum()),
            "Divide all weights by the smallest.",
        )  # fmt: skip
    return weights


def fingerprint(model: "TSNE", X: Table, weights: Floats64 | None) -> str:
    """Of the data and of every parameter that the run so far depends on."""
    later = {"max_iter", "n_jobs", "verbose", "warm_start"}
    digest = hashlib.blake2b(digest_size=16)
    parts = [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
    init = getattr(model.init, "embedding_", model.init)
    parts += [weights if weights is not None else np.empty(0), np.asarray(init)]
    parts += [getattr(model.pca, name, np.empty(0)) for name in ("components_", "mean_")]
    for part in parts:
        digest.update(f"{part.shape}{part.dtype}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    plain = {k: v for k, v in model.get_params(deep=False).items() if k not in later | {"init"}}
    digest.update(repr(sorted(plain.items(), key=str)).encode())
    return digest.hexdigest()
