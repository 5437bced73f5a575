"""What every result says about its own accuracy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.records import Record

Vector = NDArray[np.float64]

__all__ = ["Certificate", "certify", "inseparable_groups"]

# LAPACK's own tests call an eigenvalue or singular value decomposition good when its residual
# and its loss of orthogonality, divided by ‖A‖ · size · eps, stay below these.
LAPACK_THRESHOLD = {"eigen": 60.0, "svd": 35.0}


@dataclass(frozen=True, eq=False)
class Certificate(Record):
    """How far a fitted PCA can be from the exact one.

    Attributes
    ----------
    solver : str
    residuals : array (k,)
        ‖Σv − λv‖ / λ₁ of each component.
    orthogonality : float
        ‖VᵀV − I‖, largest entry.
    residual_in_roundings, orthogonality_in_roundings : float
        The same in units of size · eps, as LAPACK's tests state them; `threshold` is where those
        tests draw the line for an exact solver in double precision.
    formation_error : float
        Estimated error by rounding of Σ itself, relative to λ₁.
    angle_bounds : array (k,)
        Bound in radians on the angle between each component and the true one, [Davis & Kahan
        1970]: with the error e = residual + formation error and the distance g to the nearest other
        eigenvalue, arcsin(e / (g − e)), and a right angle when g ≤ 2e. As good as the estimate of
        the formation error is.
    inseparable : tuple of tuples
        Groups of components (counting from 1) whose variances are too close for their directions
        to be told apart; only the plane or space they span is determined. A number beyond k is the
        first component that was not kept.
    passes : int
        Times the table was read.
    converged : bool
        Whether every residual is below `tol`.
    """

    solver: str
    residuals: Vector
    orthogonality: float
    residual_in_roundings: float
    orthogonality_in_roundings: float
    threshold: float
    formation_error: float
    angle_bounds: Vector
    inseparable: tuple[tuple[int, ...], ...]
    passes: int
    tol: float
    converged: bool
    assumption: str = ""

    def title(self) -> str:
        """One sentence."""
        if not self.converged:
            return f"PCA by {self.solver}: not converged to {self.tol:.0e}"
        return f"PCA by {self.solver}: residuals within {self._worst():.1e} of the first variance"

    def _worst(self) -> float:
        return float(self.residuals.max(initial=0.0) + self.formation_error)

    def lines(self) -> list[tuple[str, str]]:
        """The numbers in words."""
        angles = np.degrees(self.angle_bounds)
        worst = int(np.argmax(angles)) if angles.size else 0
        lines = [
            ("residual", f"{self.residuals.max(initial=0.0):.1e} of the largest variance at most"),
            ("orthogonality", f"{self.orthogonality:.1e} at most between two components"),
            (
                "in roundings",
                f"residual {self.residual_in_roundings:.2g}, orthogonality "
                f"{self.orthogonality_in_roundings:.2g} (LAPACK's tests allow {self.threshold:g})",
            ),
            ("covariance", f"formed to about {self.formation_error:.1e} of the largest variance"),
        ]
        if angles.size:
            lines.append(
                ("angles", f"component {worst + 1} is within {_angle(angles[worst])} of the true "
                 f"one, the others within {_angle(np.delete(angles, worst).max(initial=0.0))}")
            )  # fmt: skip
        lines += [("not separable", _group(group)) for group in self.inseparable]
        lines.append(("passes", f"{self.passes} over the table"))
        if self.assumption:
            lines.append(("assuming", self.assumption))
        return lines


def _angle(degrees: float) -> str:
    return "any angle" if degrees >= 89.9 else f"{degrees:.2g}°"


def _group(group: tuple[int, ...]) -> str:
    names = f"{group[0]} and {group[1]}" if len(group) == 2 else f"{group[0]} to {group[-1]}"
    return f"components {names}: only the space they span is determined"


def certify(
    *,
    solver: str,
    components: NDArray[np.float64],
    variances: Vector,
    spectrum: Vector,
    residuals: Vector,
    formation: float,
    whole: bool,
    passes: int,
    tol: float,
) -> Certificate:
    """Read the certificate of eigenpairs off their residuals and the gaps between them."""
    k, d = components.shape
    top = float(spectrum[0]) if spectrum.size and spectrum[0] > 0 else 1.0
    gram = components @ components.T
    orthogonality = float(np.abs(gram - np.eye(k)).max(initial=0.0))
    eps = float(np.finfo(np.float64).eps)
    error = residuals + formation
    room = _gaps(variances, spectrum, d) - error  # the other eigenvalues are off by as much
    sine = np.divide(error, room, out=np.ones(k), where=room > error)
    return Certificate(
        solver=solver,
        residuals=residuals / top,
        orthogonality=orthogonality,
        residual_in_roundings=float(residuals.max(initial=0.0) / (top * d * eps)),
        orthogonality_in_roundings=orthogonality / (d * eps),
        threshold=LAPACK_THRESHOLD["svd" if solver == "svd" else "eigen"],
        formation_error=formation / top,
        angle_bounds=np.arcsin(sine),
        inseparable=inseparable_groups(spectrum, error, k),
        passes=passes,
        tol=tol,
        converged=bool(residuals.max(initial=0.0) <= tol * top),
        assumption="" if whole else "no larger eigenvalue was missed (not every one was computed)",
    )


def _gaps(variances: Vector, spectrum: Vector, d: int) -> Vector:
    """Distance of each kept eigenvalue to the nearest other one of the d × d covariance.

    Where fewer are known than there are columns, the next one is taken to be 0: so it is for a
    table with fewer rows than columns.
    """
    k = variances.size
    after = spectrum[k : k + 1] if spectrum.size > k else np.zeros(1 if k < d else 0)
    known = np.concatenate([[np.inf], variances, after, [-np.inf]])
    steps = np.abs(np.diff(known))
    return np.minimum(steps[: variances.size], steps[1 : variances.size + 1])


def inseparable_groups(spectrum: Vector, error: Vector, k: int) -> tuple[tuple[int, ...], ...]:
    """Runs of components, counted from 1, whose gaps are within ten times their error."""
    last = min(k + 1, spectrum.size)
    pad = np.append(error, error[-1:] if error.size else [])[:last]
    # Variances that are themselves below the error are zero, not tied.
    tied = [
        spectrum[i] - spectrum[i + 1] <= 10 * max(pad[i], pad[i + 1]) and spectrum[i] > 10 * pad[i]
        for i in range(last - 1)
    ]
    groups: list[tuple[int, ...]] = []
    i = 0
    while i < len(tied):
        j = i
        while j < len(tied) and tied[j]:
            j += 1
        if j > i:
            groups.append(tuple(range(i + 1, j + 2)))
        i = j + 1
    return tuple(groups)
