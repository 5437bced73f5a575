"""The orthogonal matrix that best aligns two sets of points, from XᵀY alone.

Rows are points. Over all R with orthonormal rows, ‖XR − Y‖² = ‖X‖² + ‖Y‖² − 2 tr(RᵀM), M = XᵀY,
so the best R maximises tr(RᵀM) ([Selitskii 2025], eqs. (61), (62)). With M = UΣVᵀ:

1. R = UVᵀ, and tr(RᵀM) = Σσ (eqs. (63)–(66), whose W is Rᵀ) [Schönemann 1966].
2. If its determinant has the wrong sign, the smallest singular value is negated
   ([Kabsch 1978], [Umeyama 1991]): R = U diag(1, …, 1, −1) Vᵀ, and the trace loses 2σ.
3. Directions whose singular value is rounding (σ ≤ floor) carry no information. There R is free,
   and the minimiser nearest to a `prior` is chosen: with the free parts U₀ and V₀ of U and V,
   R = U₁V₁ᵀ + U₀QV₀ᵀ, where Q solves the same problem for U₀ᵀ·prior·V₀.
4. Tied singular values share a sign that must be flipped: I − 2qqᵀ within their space, for
   the q that leaves R nearest to the prior.

5. In the plane no decomposition is needed. With M = [[a, b], [c, d]], the best rotation has the
   trace hypot(a + d, b − c), the best reflection hypot(a − d, b + c): their angles are those of
   these two vectors, the larger is σ₁ + σ₂ and the smaller σ₁ − σ₂ (`solve_plane`).

Shapes: M and R are (dx, D) with D ≥ dx; if Y is narrower than X, M is padded with columns of zeros.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import check_free
from gnomon.typing import Floats64

EPS = float(np.finfo(np.float64).eps)
HARMLESS = 2**27  # bytes; below this, free memory is not checked
REFLECTIONS = ("allow", "forbid", "force")

__all__ = ["REFLECTIONS", "Rotation", "refuse_too_large", "solve", "solve_many", "solve_plane"]


@dataclass(frozen=True, eq=False)
class Rotation:
    """The best R for one M.

    Attributes
    ----------
    matrix : array (dx, D)
        R; its rows are orthonormal.
    singular : array (dx,)
        Singular values of M, the last one negative if R flips its sign.
    trace : float
        tr(RᵀM), the sum of those above `floor`.
    rank : int
        Number of singular values above `floor`.
    margin : float
        tr(RᵀM) of the best reflection less that of the best rotation; 0 if M does not determine it.
    reflected : bool or None
        Whether det R < 0; None if X and Y have different widths and a reflection is undefined.
    floor : float
        Singular values up to this are rounding.
    """

    matrix: Floats64
    singular: Floats64
    trace: float
    rank: int
    margin: float
    reflected: bool | None
    floor: float


def solve(
    M: Floats64,
    *,
    reflection: str = "allow",
    prior: Floats64 | None = None,
    floor: float = 0.0,
    same_width: bool = True,
) -> Rotation:
    """Find the R with orthonormal rows that maximises tr(RᵀM); of several, the nearest to `prior`.

    Parameters
    ----------
    M : array (dx, D), D ≥ dx
    reflection : {"allow", "forbid", "force"}
        Only "allow" unless `same_width`.
    prior : array (dx, D), optional
        By default the identity.
    floor : float
        Largest singular value that rounding of M alone can cause.
    same_width : bool
        Whether the two tables had the same number of columns.
    """
    dx, D = M.shape
    U, sigma, Vt = _svd(M)
    floor = max(floor, D * EPS * float(sigma[0]))
    rank = int(np.count_nonzero(sigma > floor))
    R = U[:, :rank] @ Vt[:rank] + 0.0  # no −0
    if rank < dx:
        free = _Free(U[:, rank:], Vt[rank:], np.eye(dx, D) if prior is None else prior)
        R += free.nearest(turned=False)
    signed = sigma.copy()
    if not same_width:
        return Rotation(R, signed, float(sigma[:rank].sum()), rank, 0.0, None, floor)
    reflected = _is_reflection(R)
    margin = 2 * float(sigma[-1]) * (1 if reflected else -1) if rank == dx else 0.0
    if reflection != "allow" and reflected != (reflection == "force"):
        if rank < dx:  # flip the sign in a free direction, at no cost
            R = U[:, :rank] @ Vt[:rank] + free.nearest(turned=True)
        else:
            R = _turn_smallest(U, sigma, Vt, np.eye(dx) if prior is None else prior, floor)
            signed[-1] = -signed[-1]
        reflected = not reflected
    return Rotation(R, signed, float(signed[:rank].sum()), rank, margin, reflected, floor)


def solve_many(
    M: Floats64, *, reflection: str, prior: Floats64 | None, floors: Floats64, same_width: bool
) -> tuple[Floats64, Floats64, NDArray[np.bool_]]:
    """R (b, dx, D), tr(RᵀM) (b,) and det R < 0 (b,) of a stack of matrices M (b, dx, D)."""
    _, dx, D = M.shape
    quick = solve_plane if dx == D == 2 and same_width else _solve_stack
    R, trace, reflected, sigma = quick(M, reflection)
    floors = np.maximum(floors, D * EPS * sigma[:, 0])
    tied = sigma[:, -2] - sigma[:, -1] <= floors if dx > 1 and reflection != "allow" else False
    for i in np.flatnonzero((sigma[:, -1] <= floors) | tied):  # not unique: decided by the prior
        one = solve(
            M[i], reflection=reflection, prior=prior, floor=float(floors[i]), same_width=same_width
        )
        R[i], trace[i], reflected[i] = one.matrix, one.trace, bool(one.reflected)
    return R, trace, reflected


Stack = tuple[Floats64, Floats64, NDArray[np.bool_], Floats64]


def solve_plane(M: Floats64, reflection: str) -> Stack:
    """R, tr(RᵀM), det R < 0 and the singular values of a stack of 2 × 2 matrices, by angles."""
    a, b, c, d = M[:, 0, 0], M[:, 0, 1], M[:, 1, 0], M[:, 1, 1]
    turn, mirror = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    reflected = mirror > turn if reflection == "allow" else np.full(a.shape, reflection == "force")
    trace = np.where(reflected, mirror, turn)
    size = np.where(trace > 0, trace, 1.0)
    cosine = np.where(reflected, a - d, a + d) / size
    sine = np.where(reflected, b + c, b - c) / size
    sign = np.where(reflected, -1.0, 1.0)
    R = np.stack([cosine, sine, -sign * sine, sign * cosine], axis=1).reshape(-1, 2, 2)
    sigma = np.stack([turn + mirror, np.abs(turn - mirror)], axis=1) / 2
    return R, trace, reflected, sigma


def _solve_stack(M: Floats64, reflection: str) -> Stack:
    """Best R for matrices of any size, by their decompositions."""
    b, dx, D = M.shape
    U, sigma, Vt = np.linalg.svd(M, full_matrices=False)
    R = U @ Vt
    reflected = np.linalg.det(R) < 0 if dx == D else np.zeros(b, bool)
    trace = sigma.sum(axis=1)
    if reflection != "allow":
        wrong = np.flatnonzero(reflected != (reflection == "force"))
        R[wrong] -= 2 * U[wrong][:, :, -1:] * Vt[wrong][:, -1:, :]
        trace[wrong] -= 2 * sigma[wrong, -1]
        reflected[wrong] = ~reflected[wrong]
    return R, trace, reflected, sigma


class _Free:
    """Directions that M does not determine: bases U₀ (dx, p) and V₀ᵀ (q, D), p ≤ q."""

    def __init__(self, U: Floats64, Vt: Floats64, prior: Floats64) -> None:
        self.U, self.Vt = U, Vt
        self.left, _, self.right = np.linalg.svd(U.T @ prior @ Vt.T, full_matrices=False)

    def nearest(self, *, turned: bool) -> Floats64:
        """U₀QV₀ᵀ with Q nearest to the prior, or nearest among those of the other sign."""
        left = self.left.copy()
        if turned:
            left[:, -1] *= -1
        part: Floats64 = self.U @ (left @ self.right) @ self.Vt
        return part


def _turn_smallest(
    U: Floats64, sigma: Floats64, Vt: Floats64, prior: Floats64, floor: float
) -> Floats64:
    """UVᵀ with the sign of one direction flipped, among those tied with the smallest σ."""
    group = slice(int(np.argmax(sigma <= sigma[-1] + floor)), None)
    B = U[:, group].T @ prior @ Vt[group].T
    _, vectors = np.linalg.eigh((B + B.T) / 2)
    q = vectors[:, 0]  # least qᵀBq: flipping it stays nearest to the prior
    turned: Floats64 = U @ Vt - 2 * np.outer(U[:, group] @ q, q @ Vt[group])
    return turned


def _is_reflection(R: Floats64) -> bool:
    if len(R) == 2:  # `slogdet` takes 2 µs more
        return bool(R[0, 0] * R[1, 1] < R[0, 1] * R[1, 0])
    return bool(np.linalg.slogdet(R)[0] < 0)


def _svd(M: Floats64) -> tuple[Floats64, Floats64, Floats64]:
    """Full SVD; LAPACK's slower routine if the fast one fails to converge."""
    try:
        U, sigma, Vt = np.linalg.svd(M)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        U, sigma, Vt = svd(M, lapack_driver="gesvd")
    return U, sigma, Vt


def refuse_too_large(dx: int, D: int) -> None:
    """Raise an error if the square matrices of `solve` do not fit into memory."""
    needed = 8 * 6 * max(dx, D) ** 2
    if needed < HARMLESS:  # asking the system costs more than a small fit
        return
    way_out = "Reduce the columns first, for instance by PCA."
    check_free(f"A rotation of {max(dx, D):,} columns", needed, way_out)
