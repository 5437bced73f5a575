"""How far a map can be from the exact descent's: measured, on the map itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.records import Record
from gnomon.tsne.exact import field as exact_field

Floats64 = NDArray[np.float64]

SAMPLED = 256

__all__ = ["FieldCheck", "MapCertificate", "check_field"]


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
        KL(P‖Q), with Z of a mesh corrected by the ratio of exact to computed φ on sampled points.
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
        Whether the mesh had to be coarser than asked for, to stay within memory.
    n_iter : int
    stop_reason : str
    reduced : str
        What PCA did to the table first, if anything.
    """

    kl_divergence: float
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
        """One sentence."""
        return f"Map with KL = {self.kl_divergence:.4f} after {self.n_iter} iterations"

    def lines(self) -> list[tuple[str, str]]:
        """Name and sentence of each line."""
        coarser = " (coarser than asked for, to stay within memory)" if self.coarsened else ""
        lines = [
            ("force error", f"{self.force_error:.2g} of the exact sum, on {self.sampled} points"),
            ("repulsion", self.repulsion + coarser),
            ("neighbours", f"{self.neighbors}; recall {self.recall:.3f} on {self.probed} rows"),
            ("stopped", self.stop_reason),
        ]
        return [*lines, ("reduced", self.reduced)] if self.reduced else lines


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
