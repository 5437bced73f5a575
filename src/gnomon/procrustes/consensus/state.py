"""The sets of a consensus, prepared for the iteration, and the placement of each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs import refuse_bad_values
from gnomon.numeric.scaling import exponent_for
from gnomon.typing import Floats64, Table

EPS = float(np.finfo(np.float64).eps)

__all__ = ["SetPlacement", "Sets", "best_scales", "read_sets"]


@dataclass(frozen=True, eq=False)
class Sets:
    """Centred sets, in units in which squares do not overflow.

    Attributes
    ----------
    tables : list of arrays (nₖ, dₖ)
    places : list of arrays (nₖ,)
        Index of the point of each row, among the n points.
    centres : list of arrays (dₖ,)
        Centres that were subtracted, in the user's units; zeros without centring.
    exponents : list of int
        Set k is in units of 2^exponents[k].
    sq_norms : array (m,)
    counts : array (n,)
        Number of sets that hold each point.
    """

    tables: list[Floats64]
    places: list[NDArray[np.intp]]
    centres: list[Floats64]
    exponents: list[int]
    sq_norms: Floats64
    counts: NDArray[np.intp]
    centering: bool

    @property
    def n(self) -> int:
        """Points."""
        return len(self.counts)

    @property
    def width(self) -> int:
        """Columns of the widest set."""
        return max(int(table.shape[1]) for table in self.tables)

    @property
    def total(self) -> float:
        """Total Σ ‖X‖², which scaling keeps fixed."""
        return float(self.sq_norms.sum())

    @property
    def complete(self) -> bool:
        """Whether every set holds every point."""
        return bool((self.counts == len(self.tables)).all())

    def mean(self, placed: list[Floats64]) -> Floats64:
        """Mean position of every point, shape (n, D)."""
        total = np.zeros((self.n, self.width))
        for A, rows in zip(placed, self.places, strict=True):
            total[rows] += A
        mean: Floats64 = total / self.counts[:, None]
        return mean


@dataclass
class SetPlacement:
    """Map A = s·XR + t of every set."""

    rotations: list[Floats64]
    scales: Floats64
    shifts: list[Floats64]

    def copy(self) -> "SetPlacement":
        """Copy for undoing a sweep."""
        return SetPlacement(list(self.rotations), self.scales.copy(), list(self.shifts))

    def place(self, sets: Sets) -> list[Floats64]:
        """Positions of every set in the common frame."""
        parts = zip(sets.tables, self.rotations, self.scales, self.shifts, strict=True)
        return [s * (X @ R) + t for X, R, s, t in parts]

    def in_first_frame(self, sets: Sets) -> "SetPlacement":
        """Rotate and move the consensus so that the first set keeps its axes and centre."""
        R = self.rotations[0]
        d, D = R.shape
        Q = np.linalg.svd(R)[2]  # rows d to D span the complement of R
        Q[:d] = R
        if np.linalg.slogdet(Q)[0] < 0 and d < D:
            Q[-1] *= -1
        origin = self.shifts[0] @ Q.T
        rotations = [R @ Q.T for R in self.rotations]
        rotations[0] = np.eye(d, D)  # exactly
        return SetPlacement(rotations, self.scales, [t @ Q.T - origin for t in self.shifts])


def read_sets(
    tables: list[Table],
    places: list[NDArray[np.intp]],
    n: int,
    *,
    scaling: bool,
    centering: bool,
) -> Sets:
    """Subtract centres, and choose units: one per set if they are scaled, else a common one."""
    centred: list[Floats64] = []
    centres: list[Floats64] = []
    for k, table in enumerate(tables):
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.array(table, np.float64, order="C")
            centre = X.mean(axis=0) if centering else np.zeros(X.shape[1])
            if centering and not np.isfinite(centre).all():
                centre = (X / len(X)).sum(axis=0)  # the rows are finite, but their sum overflows
            X -= centre
        if not np.isfinite(X).all():
            refuse_bad_values(table, table=f"set {k}")
        centred.append(X)
        centres.append(centre)
    double = np.dtype(np.float64)
    largest = [float(np.abs(X).max()) for X in centred]
    exponents = [exponent_for(size, double) for size in largest]
    if not scaling:
        exponents = [exponent_for(max(largest), double)] * len(tables)
    units = [np.ldexp(X, -e) for X, e in zip(centred, exponents, strict=True)]
    sq_norms = np.array([np.einsum("ij,ij->", X, X) for X in units])
    for k, (sq, c, e) in enumerate(zip(sq_norms, centres, exponents, strict=True)):
        rounding = len(units[k]) * (8 * EPS) ** 2 * float(np.sum(np.ldexp(c, -e) ** 2))
        if sq <= rounding and scaling:
            raise DataError(
                f"set {k} has norm 0 (all rows are the same point), but `scaling=True` needs "
                "its size. Use `scaling=False`, or leave it out."
            )
    counts = np.zeros(n, np.intp)
    for rows in places:
        counts[rows] += 1
    _refuse_islands(places, n)
    return Sets(units, places, centres, exponents, sq_norms, counts, centering)


def _refuse_islands(places: list[NDArray[np.intp]], n: int) -> None:
    """Refuse sets that share no point, directly or through others: they have no common frame."""
    reached = np.zeros(n, bool)
    reached[places[0]] = True
    left = set(range(1, len(places)))
    while left:
        near = {k for k in left if reached[places[k]].any()}
        if not near:
            raise DataError(
                f"set {min(left)} shares no id with the sets before it, directly or through "
                "others, so there is no common frame. Leave it out, or add shared points."
            )
        for k in near:
            reached[places[k]] = True
        left -= near


def best_scales(quadratic: Floats64, sq_norms: Floats64) -> Floats64 | None:
    """Scales s with Σ s²‖X‖² = Σ‖X‖² that minimise sᵀAs; None if one would be negative."""
    norms = np.sqrt(sq_norms)
    _, vectors = np.linalg.eigh(quadratic / np.outer(norms, norms))
    v = vectors[:, 0] * np.sign(vectors[:, 0].sum())
    if not (v > 0).all():
        return None
    scales: Floats64 = np.sqrt(sq_norms.sum()) * v / norms
    return scales
