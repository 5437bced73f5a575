"""How far a map can be from the exact descent's: measured, on the map itself."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.records import Record
from gnomon.tsne.descent import Forces, State
from gnomon.tsne.forces import OverMesh, node_spacing
from gnomon.tsne.reference import field as exact_field
from gnomon.typing import Floats64

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

SAMPLED = 256  # points whose exact force is summed: time against the error of a mean

__all__ = ["FieldCheck", "MapCertificate", "certify_map", "check_field"]


@dataclass(frozen=True)
class FieldCheck:
    """The field that moved the points, against the exact sum, on sampled points."""

    force_error: float
    total: float  # Z, corrected
    sampled: int


@dataclass(frozen=True, eq=False)
class MapCertificate(Record):
    """How far a map can be trusted, as far as the arithmetic is concerned.

    Attributes
    ----------
    kl_divergence : float
        KL(P‖Q) over the neighbours kept in P, which the descent minimises; Z of a mesh is corrected
        by the ratio of exact to computed φ on sampled points.
    exact_kl : float or None
        KL(P‖Q) with P over all pairs of rows: `kl_divergence` plus their difference on sampled
        rows. The same number where P is complete (``method="exact"``, ``affinity="uniform"``, given
        affinities); None where the distances between other rows are not known (a given graph of
        neighbours, and maps saved by Gnomon 0.1).
    exact_kl_error : float
        Its standard error; 0 where all rows were summed.
    exact_kl_rows : int
        How many rows were.
    force_error : float
        Root mean square error of the repulsive force, relative to the exact sum, on `sampled`
        points of the final map.
    sampled : int
    recall : float
        Share of true nearest neighbours found, measured on `probed` rows.
    probed : int
    neighbors : str
        How they were found.
    repulsion : str
        How the points' push was computed at the end.
    coarsened : bool
        Whether the mesh had to be coarser than requested, to stay within memory.
    n_iter : int
    stop_reason : str
    reduced : str
        What PCA did to the table first, if anything.
    """

    kl_divergence: float
    exact_kl: float | None
    exact_kl_error: float
    exact_kl_rows: int
    force_error: float
    sampled: int
    recall: float
    probed: int
    neighbors: str
    repulsion: str
    coarsened: bool
    n_iter: int
    stop_reason: str
    reduced: str

    def title(self) -> str:
        """One-line summary."""
        return f"Map with KL = {self.kl_divergence:.4f} after {self.n_iter} iterations"

    def lines(self) -> list[tuple[str, str]]:
        """Name and sentence of each line."""
        coarser = " (coarser than requested, to stay within memory)" if self.coarsened else ""
        sampled = f", from {self.exact_kl_rows} sampled rows" if self.exact_kl_error else ""
        lines = [
            ("KL", self.kl_in_words() + sampled),
            ("force error", f"{self.force_error:.2g} of the exact sum, on {self.sampled} points"),
            ("repulsion", self.repulsion + coarser),
            ("neighbours", f"{self.neighbors}; recall {self.recall:.3f} on {self.probed} rows"),
            ("stopped", self.stop_reason),
        ]
        return [*lines, ("reduced", self.reduced)] if self.reduced else lines

    def kl_in_words(self) -> str:
        """KL over the neighbours kept, and over all pairs as far as it is known."""
        kl = f"{self.kl_divergence:.4f}"
        if self.exact_kl is None:
            return f"{kl} over the neighbours kept, not known over all pairs"
        if self.exact_kl == self.kl_divergence:
            return f"{kl} (P is complete)"
        error = f" ± {self.exact_kl_error:.4f}" if self.exact_kl_error else ""
        return f"{kl} over the neighbours kept, {self.exact_kl:.4f}{error} over all pairs"


def certify_map(
    model: "TSNE",
    embedding: NDArray[Any],
    state: State,
    forces: Forces,
    reason: str,
) -> MapCertificate:
    """Certify the map that the descent of `model` ended with, for reason `reason`.

    `embedding` is in the order of the data, `forces` are in that of `state`.
    """
    dof, weights, truncation = float(model.dof), model._sample_weight, model._truncation
    Y = embedding[state.order]
    low, high = Y.min(axis=0).astype(np.float64), Y.max(axis=0).astype(np.float64)
    gradient, total, phi = forces.push(Y, low, high)
    ordered = None if weights is None else weights[state.order]
    check = check_field(Y, gradient, total, phi, dof, ordered, model._seed, model.n_jobs)
    kl, exact_kl, exact_kl_error, compared = forces.kl(Y, check.total), None, 0.0, 0
    if truncation is not None:
        change, exact_kl_error = truncation.kl_change(embedding, dof)
        exact_kl, compared = kl + change, truncation.rows.size or len(Y)
    how, coarsened = "sum over all pairs, float64", False
    if isinstance(forces, OverMesh):
        how, mesh = forces.describe(high - low), forces.mesh_for(high - low)
        coarsened = mesh is not None and mesh.spacing > node_spacing(model.force_tol, dof)
    found, recall, probed = model._found
    return MapCertificate(
        kl_divergence=kl,
        exact_kl=exact_kl,
        exact_kl_error=exact_kl_error,
        exact_kl_rows=compared,
        force_error=check.force_error,
        sampled=check.sampled,
        recall=recall,
        probed=probed,
        neighbors=found,
        repulsion=how,
        coarsened=coarsened,
        n_iter=state.iteration,
        stop_reason=reason,
        reduced=model._reduced,
    )


def check_field(
    Y: NDArray[Any],
    gradient: NDArray[Any],
    total: float,
    phi: NDArray[Any] | None,
    dof: float,
    weights: Floats64 | None,
    seed: int,
    n_jobs: int | None,
) -> FieldCheck:
    """Compare ∇φ and φ (both without the point itself) with the exact sum on sampled points.

    Z is corrected by the ratio of exact to computed φ there; without φ it is exact as it stands.
    """
    n = len(Y)
    w = np.ones(n) if weights is None else weights
    rows = np.sort(np.random.default_rng(seed).choice(n, min(n, SAMPLED), replace=False))
    exact_phi, push = exact_field(Y, dof, at=Y[rows], charges=w, n_jobs=n_jobs)
    exact_phi = exact_phi - w[rows]  # the point itself
    exact_gradient = -(dof + 1) / dof * push
    size = float(np.linalg.norm(exact_gradient))
    away = float(np.linalg.norm(gradient[rows].astype(np.float64) - exact_gradient))
    if phi is not None and phi[rows].sum() > 0:
        copies = float(w @ (w - 1))  # in one place each, which no field has to tell
        total = (total - copies) * float(exact_phi.sum() / phi[rows].sum(dtype=np.float64)) + copies
    return FieldCheck(away / size if size > 0 else 0.0, total, len(rows))
