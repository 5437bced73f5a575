"""The gradient of KL(P‖Q) as it stands, over all pairs, in float64: what everything is tested by.

With d_ij = |y_i − y_j|², K(d) = (1 + d/α)^(−(α+1)/2), Z = Σ_{i≠j} K(d_ij), q_ij = K(d_ij)/Z and
w_ij = 1/(1 + d_ij/α):

    ∂KL/∂y_i = (2(α+1)/α) Σ_j (p_ij − q_ij) w_ij (y_i − y_j)

α is the degrees of freedom; at α = 1 this is [Selitskii 2025], eq. (59), with its 4.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.inputs import is_sparse
from gnomon.typing import Floats64, Table

ROWS = 64  # points at a time

__all__ = ["field", "kl_divergence", "kl_gradient", "row_costs"]


def field(
    Y: NDArray[Any],
    dof: float = 1.0,
    *,
    at: NDArray[Any] | None = None,
    charges: Floats64 | None = None,
    n_jobs: int | None = None,
) -> tuple[Floats64, Floats64]:
    """φ(y) = Σ_j c_j K(|y − y_j|²) and Σ_j c_j K w (y − y_j), at the points or at other places.

    At the points themselves a point does not count itself, so that Z = Σ φ(y_i) for charges of 1.

    Returns
    -------
    phi : array (m,)
    push : array (m, dimensions)
    """
    Y = np.ascontiguousarray(Y, np.float64)
    places = Y if at is None else np.ascontiguousarray(at, np.float64)
    charges = np.ones(len(Y)) if charges is None else charges
    phi, push = np.empty(len(places)), np.empty(places.shape)

    def block(start: int, stop: int) -> None:
        _field(Y, charges, places, at is None, dof, phi, push, start, stop)

    map_blocks(block, row_blocks(len(places), ROWS), n_jobs=n_jobs)
    return phi, push


def kl_gradient(P: Table, Y: Floats64, dof: float = 1.0, *, n_jobs: int | None = None) -> Floats64:
    """∂KL/∂y, shape (n, dimensions)."""
    phi, push = field(Y, dof, n_jobs=n_jobs)
    pull = _attraction(P, Y, dof)
    gradient: Floats64 = (2 * (dof + 1) / dof) * (pull - push / phi.sum())
    return gradient


def kl_divergence(P: Table, Y: Floats64, dof: float = 1.0, *, n_jobs: int | None = None) -> float:
    """KL(P‖Q) = Σ p log p/q over the pairs with p > 0, eq. (52)."""
    return float(row_costs(P, Y, dof, n_jobs=n_jobs).sum())


def row_costs(P: Table, Y: Floats64, dof: float = 1.0, *, n_jobs: int | None = None) -> Floats64:
    """What each row adds to KL(P‖Q), shape (n,)."""
    Y = np.asarray(Y, np.float64)
    total = field(Y, dof, n_jobs=n_jobs)[0].sum()
    i, j, p = _pairs(P)
    sq = ((Y[i] - Y[j]) ** 2).sum(axis=1)
    log_q = -(dof + 1) / 2 * np.log1p(sq / dof) - np.log(total)
    costs: Floats64 = np.bincount(i, p * (np.log(p) - log_q), minlength=len(Y)).astype(float)
    return costs


def _attraction(P: Table, Y: Floats64, dof: float) -> Floats64:
    """Σ_j p_ij w_ij (y_i − y_j)."""
    Y = np.asarray(Y, np.float64)
    i, j, p = _pairs(P)
    away = Y[i] - Y[j]
    weight = p / (1 + (away**2).sum(axis=1) / dof)
    columns = [np.bincount(i, weight * away[:, c], minlength=len(Y)) for c in range(Y.shape[1])]
    return np.stack(columns, axis=1)


def _pairs(P: Table) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats64]:
    """Row, column and value of every p_ij > 0 off the diagonal."""
    if is_sparse(P):
        coo = P.tocoo()
        i, j, p = coo.coords[0], coo.coords[1], coo.data.astype(np.float64)
    else:
        i, j = np.nonzero(P)
        p = np.asarray(P, np.float64)[i, j]
    keep = (i != j) & (p > 0)
    return i[keep].astype(np.intp), j[keep].astype(np.intp), p[keep]


@kernel
def _field(
    Y: Floats64,
    charges: Floats64,
    places: Floats64,
    themselves: bool,
    dof: float,
    phi: Floats64,
    push: Floats64,
    start: int,
    stop: int,
) -> None:
    power = -(dof + 1) / 2
    for i in range(start, stop):
        total = 0.0
        for c in range(Y.shape[1]):
            push[i, c] = 0.0
        for j in range(Y.shape[0]):
            if themselves and i == j:
                continue
            sq = 0.0
            for c in range(Y.shape[1]):
                step = places[i, c] - Y[j, c]
                sq += step * step
            w = 1.0 / (1.0 + sq / dof)
            value = charges[j] * (w if dof == 1.0 else (1.0 + sq / dof) ** power)
            total += value
            for c in range(Y.shape[1]):
                push[i, c] += value * w * (places[i, c] - Y[j, c])
        phi[i] = total
