"""Checking of TSNE's parameters and weights, and whether a run can be continued with them."""

import hashlib
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.arrays import as_source
from gnomon.errors import DataTypeError, refuse
from gnomon.inputs import (
    check_choice,
    check_integer,
    check_real,
    check_table,
    check_weights,
    is_sparse,
)
from gnomon.neighbors.rows import METRICS
from gnomon.tsne.graph import neighbor_graph
from gnomon.tsne.schedule import QUALITIES, parse_stages
from gnomon.typing import Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE


LEAST_ROWS = 3  # of a map: two points have one distance, which fits any data
LEAST, LARGEST = 1e-30, 1e30  # factors that float32 can hold
MOST_MOMENTUM = 0.999  # velocities last 1,000 iterations
# Below, one point's neighbourhood is smaller than float32 can show; above, K is a Gaussian.
DOF = (1e-3, 1e4)
COPIES = 1e15  # that float64 counts one by one, and whose square float32 has

log = logging.getLogger("gnomon")

# How long a run is, and how it is done, may change between its parts; `angle` has no effect at all.
LATER = frozenset({"max_iter", "n_jobs", "verbose", "warm_start", "angle"})

__all__ = [
    "check_copies",
    "check_data",
    "check_parameters",
    "check_schedules",
    "fingerprint",
    "parameter_marks",
    "refuse_changes",
    "why_anew",
]


def check_parameters(model: "TSNE") -> None:
    """Refuse whatever no table could make right."""
    most = None if model.method == "exact" else 3
    way = "More dimensions go with method='exact'."
    check_integer("n_components", model.n_components, 1, most, way)
    check_choice("affinity", model.affinity, ("gaussian", "uniform", "multiscale", "precomputed"))
    check_choice("method", model.method, ("auto", "mesh", "exact", "barnes_hut"))
    check_choice("quality", model.quality, tuple(QUALITIES))
    if model.method == "barnes_hut":
        log.info("method='barnes_hut' means 'auto' here; `angle` has no effect.")
    _check_numbers(model)
    if not isinstance(model.metric, str) and not callable(model.metric):
        refuse(
            "metric", "be the name of a metric, or a function of two rows", model.metric, kind=True
        )
    if model.metric_params and model.metric in (*METRICS, "precomputed"):
        refuse("metric_params", f"be None for metric={model.metric!r}", model.metric_params)
    if model.method == "exact" and model.n_neighbors is not None and model.affinity != "uniform":
        refuse("n_neighbors", "be None for method='exact', which takes all", model.n_neighbors)
    if isinstance(model.init, str):
        check_choice("init", model.init, ("pca", "spectral", "random"))


def _check_numbers(model: "TSNE") -> None:
    check_real("recall", model.recall, 0.0, 1.0)
    check_real("dof", model.dof, *DOF)
    check_real("early_exaggeration", model.early_exaggeration, 1.0, LARGEST)
    check_schedules(model)
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


def check_schedules(model: "TSNE") -> tuple[Floats64 | None, Floats64 | None]:
    """The user's own stages of exaggeration and of momentum; None where the usual ones hold."""
    exaggerations = momenta = None
    if callable(model.exaggeration) or isinstance(model.exaggeration, (list, tuple)):
        exaggerations = parse_stages("exaggeration", model.exaggeration, LEAST, LARGEST)
    else:
        check_real("exaggeration", model.exaggeration, 0.0, LARGEST, open_low=True)
    if not (isinstance(model.momentum, str) and model.momentum == "auto"):
        momenta = parse_stages("momentum", model.momentum, 0.0, MOST_MOMENTUM)
    return exaggerations, momenta


def check_data(model: "TSNE", X: Any) -> Table:
    """Refuse what no map can be made of; the table as an array or a CSR array."""
    if as_source(X) is not None:
        raise DataTypeError(
            "X is a source, which is read in blocks, and a map is made of rows that are in "
            "memory all at once. Use gnomon.run, which maps as many rows of a source as there "
            "is memory for, and places the others."
        )
    X = check_table(model, neighbor_graph(X) if model.metric == "precomputed" else X, reset=True)
    if X.shape[0] < LEAST_ROWS:
        n = X.shape[0]
        refuse(
            "X",
            f"have at least {LEAST_ROWS} rows for a map",
            f"{n} sample{'s' if n > 1 else ''}",
            "Add rows.",
        )
    if "precomputed" in (model.metric, model.affinity) and X.shape[0] != X.shape[1]:
        refuse("X", "be square for precomputed input", f"shape {X.shape}")
    return X


def check_copies(sample_weight: Any, n: int) -> Floats64 | None:
    """Weights as numbers of copies, 0 or at least 1; None if all are 1."""
    weights = check_weights("sample_weight", sample_weight, n, of="row")
    if weights is None or (weights == 1).all():
        return None
    fractions = (weights > 0) & (weights < 1)
    if fractions.any():
        at = int(np.argmax(fractions))
        refuse(
            "sample_weight",
            "be 0, or 1 or more, the number of copies a row stands for",
            float(weights[at]),
            f"It stands at position {at}. Divide all weights by the smallest one above 0.",
        )
    if (used := np.count_nonzero(weights)) < LEAST_ROWS:
        refuse("sample_weight", f"be above zero for at least {LEAST_ROWS} rows", int(used))
    if weights.sum() > COPIES:
        refuse(
            "sample_weight",
            f"be at most {COPIES:.0e} copies in all",
            float(weights.sum()),
            "Divide all weights by the smallest.",
        )
    return weights


def fingerprint(X: Table, weights: Floats64 | None, marks: dict[str, str]) -> str:
    """Digest of the data and of every parameter that the run so far depends on."""
    parts = [X.data, X.indices, X.indptr] if is_sparse(X) else [X]
    parts += [weights if weights is not None else np.empty(0)]
    return _digest(*parts, np.array(sorted(marks.items())))


def parameter_marks(model: "TSNE") -> dict[str, str]:
    """What each parameter that a run depends on is recognised by, fitted models by their arrays."""
    return {
        name: _mark(value)
        for name, value in model.get_params(deep=False).items()
        if name not in LATER
    }


def refuse_changes(model: "TSNE", must: str) -> None:
    """Refuse what `set_params` has changed since the fit."""
    for name in _changed_parameters(model, model._marks or parameter_marks(model)):
        refuse(name, must, getattr(model, name), "Fit again, or set it back.")


def why_anew(model: "TSNE") -> str:
    """Why a fit with `warm_start` cannot go on from the former one."""
    if not model._run or model._marks is None:
        return "the former fit was made without it, or failed"
    changed = _changed_parameters(model, model._marks)
    if changed:
        names = " and ".join(f"`{name}`" for name in changed)
        return f"{names} changed since the former fit"
    return "X or its weights are not those of the former fit"


def _changed_parameters(model: "TSNE", marks: dict[str, str]) -> list[str]:
    """Names of the parameters that are no longer what they were when `marks` were made."""
    return [name for name, mark in parameter_marks(model).items() if marks[name] != mark]


def _mark(value: Any) -> str:
    names = ("embedding_", "_keys", "components_", "mean_")
    fitted = [getattr(value, name) for name in names if hasattr(value, name)]
    if fitted:
        return _digest(*fitted)
    if isinstance(value, np.ndarray):
        return _digest(value)
    return repr(value)


def _digest(*parts: NDArray[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in map(np.asarray, parts):
        digest.update(f"{part.shape}{part.dtype}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
