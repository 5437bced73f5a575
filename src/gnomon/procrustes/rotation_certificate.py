"""The certificate of a fitted rotation: how far it can be from the exact one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.procrustes.similarity import Similarity
from gnomon.records import Record

NORM = "Frobenius"  # norm of the rotation's error

__all__ = ["RotationCertificate", "certify_rotation"]


@dataclass(frozen=True, eq=False)
class RotationCertificate(Record):
    """How far a fitted rotation can be from the exact one.

    R is the best among all matrices with orthonormal rows exactly when RMᵀ is symmetric and has no
    negative eigenvalue (among rotations or reflections only: when no two of its eigenvalues have a
    negative sum). Both are checked on the returned R, independently of how it was found.

    Attributes
    ----------
    orthogonality : float
        ‖RRᵀ − I‖, largest entry.
    asymmetry : float
        ‖RMᵀ − MRᵀ‖ / 2, largest entry, relative to the largest singular value of M.
    least_eigenvalue : float
        Eigenvalue of RMᵀ, or least sum of two, that must not be negative; relative to σ₁ too.
    formation_error : float
        Estimated rounding error of M itself, relative to σ₁ too.
    rotation_error : float
        First-order bound on the Frobenius norm ‖R − R₀‖ for the exact R₀, due to that rounding:
        2‖δM‖ / (σ + σ′) with the two smallest singular values, their signs included. Infinite if
        R is not unique.
    unique : bool
        Whether the data determine R. If not, it is the minimiser nearest to the prior.
    """

    orthogonality: float
    asymmetry: float
    least_eigenvalue: float
    formation_error: float
    rotation_error: float
    unique: bool

    def title(self) -> str:
        """One-line summary."""
        if not self.unique:
            return "Rotation not determined by the data: the minimiser nearest to the prior"
        return f"Rotation within {self.rotation_error:.1e} of the exact one ({NORM} norm)"

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
        return [
            ("orthogonality", f"{self.orthogonality:.1e} at most between two rows of R"),
            ("optimality", f"RMᵀ is symmetric to {self.asymmetry:.1e} of its size"),
            ("least eigenvalue", f"{self.least_eigenvalue:.1e}, which must not be negative"),
            ("cross product", f"formed to about {self.formation_error:.1e} of its size"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All fields, and the norm of the error."""
        return {**super().to_dict(), "rotation_error_norm": NORM}


def certify_rotation(found: Similarity) -> RotationCertificate:
    """Measure the R of `found` against the M that it was found for."""
    R, M, rotation = found.rotation.matrix, found.cross, found.rotation
    dx = R.shape[0]
    top = float(np.abs(rotation.singular).max(initial=0.0))
    size = top if top > 0 else 1.0
    S = R @ M.T / size
    values = np.linalg.eigvalsh((S + S.T) / 2)
    either = found.rules.reflection == "allow" or dx < 2
    least = float(values[0] if either else values[0] + values[1])
    # In a square R the smallest singular value is paired with the next one; where the widths
    # differ, it is alone, since R may rotate into the columns that only one table has.
    square = rotation.reflected is not None
    free_sign = found.rules.reflection == "allow" or not square
    alone = square and dx == 1  # R is 1 or −1
    gap = float(rotation.singular[-1] + (rotation.singular[-2] if square and dx > 1 else 0.0))
    determined = rotation.rank >= (dx if free_sign else dx - 1)
    unique = determined and (alone or gap > rotation.floor)
    error = float("inf") if not unique else 0.0 if alone else 2 * rotation.floor / gap
    return RotationCertificate(
        orthogonality=float(np.abs(R @ R.T - np.eye(dx)).max()),
        asymmetry=float(np.abs(S - S.T).max()) / 2,
        least_eigenvalue=least,
        formation_error=rotation.floor / size,
        rotation_error=error,
        unique=unique,
    )
