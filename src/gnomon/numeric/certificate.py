"""The certificate: every result states its own accuracy."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gnomon.numeric.roundoff import PRECISION
from gnomon.records import Record
from gnomon.typing import Matrix, Vector

Groups = tuple[tuple[int, ...], ...]

__all__ = ["Certificate", "Groups", "Measured", "certify", "inseparable_groups"]

FILLED = "values that were filled in are what they would have been"

# LAPACK's own tests accept an eigenvalue or singular value decomposition if its residual and its
# loss of orthogonality, divided by ‖A‖ · size · eps, are below these thresholds.
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
        Both numbers in units of size · eps of the components' type, as in LAPACK's tests;
        `threshold` is the limit of those tests for an exact solver. They are measured on the
        returned components, after signs and ties were settled.
    formation_error : float
        Estimated rounding error of Σ itself, relative to λ₁.
    angle_bounds : array (k,)
        Bound in radians on the angle between each component and the true one: with the error
        e = residual + formation error, the distance g to the nearest other eigenvalue and the error
        f of that one, arcsin(e / (g − f)) [Davis & Kahan 1970], and a right angle when g ≤ e + f.
        For solver ``"svd"``, which squares nothing, the bound for singular values [Wedin 1972]
        where it is tighter. The bound is only as good as the estimate of the formation error.
    inseparable : tuple of tuples
        Groups of components (counting from 1) whose variances are too close for their directions
        to be distinguished; only the plane or space they span is determined. A number beyond k is
        the first component that was not kept.
    space_bounds : tuple of float
        Bound in radians on the largest angle between the space that each of these groups spans and
        the true one; a right angle if not all of the group was kept.
    missing_angles : array (k,) or None
        Estimate, not bound, of the angle in radians between each component and the one of a table
        without gaps: how far refits moved when as many cells again were held out. None unless
        missing values were filled in; all other numbers are about the table as it was filled in.
    passes : int
        Number of times the table was read.
    converged : bool
        Whether every residual is below `tol`.
    assumption : str
        What the certificate takes for granted, if anything.
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
    space_bounds: tuple[float, ...] = ()
    missing_angles: Vector | None = None

    def title(self) -> str:
        """One-line summary."""
        if not self.converged:
            return f"PCA by {self.solver}: not converged to {self.tol:.0e}"
        return f"PCA by {self.solver}: residuals within {self._worst():.1e} of the first variance"

    def _worst(self) -> float:
        return float(self.residuals.max(initial=0.0) + self.formation_error)

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
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
                (
                    "angles",
                    f"component {worst + 1} is within {_angle(angles[worst])} of the true "
                    f"one, the others within {_angle(np.delete(angles, worst).max(initial=0.0))}",
                )
            )
        lines += [
            ("not separable", _group(group, float(np.degrees(bound))))
            for group, bound in zip(self.inseparable, self.space_bounds, strict=True)
        ]
        if self.missing_angles is not None:
            cost = np.degrees(self.missing_angles)
            worst = int(np.argmax(cost))
            others = _angle(np.delete(cost, worst).max(initial=0.0))
            lines.append(
                (
                    "missing values",
                    f"may have turned component {worst + 1} by about "
                    f"{_angle(cost[worst])}, the others by {others}",
                )
            )
        lines.append(("passes", f"{self.passes} over the table"))
        if self.assumption:
            lines.append(("assuming", self.assumption))
        return lines


def _angle(degrees: float) -> str:
    return "any angle" if degrees >= 89.9 else f"{degrees:.2g}°"


def _group(group: tuple[int, ...], degrees: float) -> str:
    names = f"{group[0]} and {group[1]}" if len(group) == 2 else f"{group[0]} to {group[-1]}"
    within = f", within {_angle(degrees)}" if degrees < 89.9 else ""
    return f"components {names}: only the space they span is determined{within}"


class Measured(NamedTuple):
    """Values of a decomposition, with error bounds of values and vectors in the same unit.

    Attributes
    ----------
    values : array (k,)
        Eigenvalues or singular values of the components kept, largest first.
    residuals : array (k,)
        Residuals of their vectors, measured on the matrix that was decomposed.
    formation : float
        How far that matrix itself can be from the exact one, in the spectral norm.
    following : float
        Upper bound of the largest value not kept, formation error aside; −inf if all were kept.
    """

    values: Vector
    residuals: Vector
    formation: float
    following: float

    @property
    def errors(self) -> Vector:
        """Bound on the exact residual of each vector."""
        return self.residuals + self.formation

    def known(self) -> Vector:
        """Values kept, then the following one if there is one."""
        return self.values if np.isinf(self.following) else np.append(self.values, self.following)

    def sines(self) -> Vector:
        """Bound on the sine of the angle between each vector and the exact one, shape (k,).

        [Davis & Kahan 1970]: the error over the distance to all other values of the exact matrix.
        Those are as far from the computed ones as the residuals of all vectors together and the
        formation allow.
        """
        above, below = self._distances()
        room, sines = np.minimum(above, below), np.ones(self.values.size)
        return np.divide(self.errors, room, out=sines, where=room > self.errors)

    def sine(self, start: int, stop: int) -> float:
        """Bound on the largest angle between the spans of vectors `start` to `stop` − 1."""
        above, below = self._distances()
        room = min(float(above[start]), float(below[stop - 1]))
        error = float(np.linalg.norm(self.residuals[start:stop])) + self.formation
        return error / room if room > error else 1.0

    def turned(self, before: Matrix, after: Matrix, groups: Groups) -> "Measured":
        """Bounds for vectors that were rotated within `groups`, which count from 1.

        A vector Σ c v has the residual Σ c (value of v − its own) v + Σ c (residual of v).
        """
        residuals, k = self.residuals.copy(), self.values.size
        rounding = PRECISION * np.sqrt(before.shape[1]) * self.values.max(initial=0.0)
        for group in groups:
            rows = [i - 1 for i in group if i <= k]
            values, c = self.values[rows], after[rows] @ before[rows].T
            apart = np.linalg.norm(c * (values - values[:, None]), axis=1)
            residuals[rows] = np.abs(c) @ self.residuals[rows] + apart + rounding
        return self._replace(residuals=residuals)

    def rounded(self, before: Matrix, after: Matrix) -> "Measured":
        """Bounds for vectors that were rounded for storage, as float32 for instance.

        A residual grows by at most the largest value times the length of what was rounded away.
        """
        if before.dtype == after.dtype:
            return self
        lost = np.linalg.norm(before - after.astype(before.dtype), axis=1)
        largest = float(self.values.max(initial=0.0) + self.errors.max(initial=0.0))
        # the vectors are no longer of length 1, on which the angles rely
        return self._replace(residuals=(self.residuals + largest * lost) * (1 + 2 * lost))

    def _distances(self) -> tuple[Vector, Vector]:
        """Distance of each value to its neighbours above and below, less the errors of those."""
        steps = -np.diff(self.values) - float(np.linalg.norm(self.residuals)) - self.formation
        last = self.values[-1:] - self.following - self.formation
        return np.concatenate([[np.inf], steps]), np.concatenate([steps, last])


def certify(
    *,
    solver: str,
    components: Matrix,
    measured: Measured,
    singular: Measured | None = None,
    whole: bool,
    passes: int,
    tol: float,
    lost: Vector | None = None,
) -> Certificate:
    """Compute the certificate of eigenpairs from their residuals and the gaps between them.

    `singular` has the same components as singular vectors: where nothing was squared, distinct
    singular values separate components whose variances are both close to zero.
    `lost` are the angles that missing values may have cost, for a table with imputed values.
    """
    (k, d), precision = components.shape, float(np.finfo(components.dtype).eps)
    top = float(measured.values[0]) if k and measured.values[0] > 0 else 1.0
    wide = components.astype(np.float64)
    orthogonality = float(np.abs(wide @ wide.T - np.eye(k)).max(initial=0.0))
    residuals = measured.residuals
    finest = measured if singular is None else singular
    groups = inseparable_groups(finest.known(), finest.errors, k)
    scales = [measured] if singular is None else [measured, singular]
    sine = np.min([scale.sines() for scale in scales], axis=0)
    spaces = [
        min(scale.sine(group[0] - 1, group[-1]) for scale in scales) if group[-1] <= k else 1.0
        for group in groups
    ]
    taken = [] if whole else ["no larger eigenvalue was missed (not every one was computed)"]
    taken += [] if lost is None else [FILLED]
    return Certificate(
        solver=solver,
        residuals=residuals / top,
        orthogonality=orthogonality,
        residual_in_roundings=float(residuals.max(initial=0.0) / (top * d * precision)),
        orthogonality_in_roundings=orthogonality / (d * precision),
        threshold=LAPACK_THRESHOLD["svd" if solver == "svd" else "eigen"],
        formation_error=measured.formation / top,
        angle_bounds=np.arcsin(sine),
        inseparable=groups,
        space_bounds=tuple(float(np.arcsin(sine)) for sine in spaces),
        missing_angles=lost,
        passes=passes,
        tol=tol,
        converged=bool(residuals.max(initial=0.0) <= tol * top),
        assumption="; ".join(taken),
    )


def inseparable_groups(spectrum: Vector, error: Vector, k: int, times: float = 10.0) -> Groups:
    """Runs of components, counted from 1, whose gaps are within `times` their error."""
    last = min(k + 1, spectrum.size)
    pad = np.append(error, error[-1:] if error.size else [])[:last]
    # Variances that are themselves below the error are zero, not tied.
    tied = [
        spectrum[i] - spectrum[i + 1] <= times * max(pad[i], pad[i + 1])
        and spectrum[i] > times * pad[i]
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
