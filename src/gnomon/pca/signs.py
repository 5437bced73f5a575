"""Signs and ties: the same components from every solver, block size and number of threads.

An eigenvector's sign is arbitrary, and within a group of equal eigenvalues so is the whole basis.
Both are settled by rules that depend only on the subspace, not on how it was computed.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.numeric.certificate import Groups
from gnomon.typing import Matrix

NEAR = 1e-3  # loadings within this relative distance of the largest are tied with it

__all__ = ["align_to", "settle"]


def settle(components: Matrix, groups: Groups) -> Matrix:
    """Settle ties and signs of components (k, d).

    Each component's largest absolute loading is positive; if several are within `NEAR` of it, the
    first of them decides. Within a tied group (numbers counted from 1) that was kept whole, the
    basis is rebuilt from the subspace: first the direction nearest to a coordinate axis, then the
    nearest one in the rest of the subspace, and so on.
    """
    settled = components.copy()
    for group in groups:
        if group[-1] <= settled.shape[0]:
            rows = [i - 1 for i in group]
            settled[rows] = _canonical_basis(settled[rows])
    for v in settled:
        if v[_first_of_largest(np.abs(v))] < 0:
            v *= -1
    return settled


def align_to(components: Matrix, former: Matrix, groups: Groups) -> Matrix:
    """Align components to a former model's: signs, and rotations inside tied groups only."""
    aligned = components.copy()
    k = min(aligned.shape[0], former.shape[0])
    done: set[int] = set()
    for group in groups:
        rows = [i - 1 for i in group if i <= k]
        if len(rows) > 1:
            U, _, Vt = np.linalg.svd(former[rows] @ aligned[rows].T)
            aligned[rows] = U @ Vt @ aligned[rows]
            done.update(rows)
    for i in set(range(k)) - done:
        if aligned[i] @ former[i] < 0:
            aligned[i] *= -1
    return aligned


def _first_of_largest(sizes: NDArray[np.float64]) -> int:
    return int(np.argmax(sizes >= (1 - NEAR) * sizes.max(initial=0.0)))


def _canonical_basis(V: Matrix) -> Matrix:
    """Orthonormal basis of the rows' span that depends only on the span."""
    basis = np.zeros((0, V.shape[1]))
    left = V
    for _ in range(V.shape[0]):
        axis = _first_of_largest(np.einsum("ij,ij->j", left, left))
        direction = left.T @ left[:, axis]
        direction -= basis.T @ (basis @ direction)
        direction /= np.linalg.norm(direction)
        basis = np.vstack([basis, direction])
        # the rest of the span, orthogonal to the basis so far
        left = V - (V @ basis.T) @ basis
    return basis
