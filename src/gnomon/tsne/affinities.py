"""P: how likely two rows are neighbours, symmetric and summing to 1.

Each row j first gives conditional probabilities p_{i|j} to its k nearest neighbours, then

    p_ij = (p_{i|j} + p_{j|i}) / 2n                       ([Selitskii 2025], eq. (45))

- `uniform`: p_{i|j} = 1/k, eq. (44). Its perplexity is k, eq. (48).
- `gaussian`: p_{i|j} ∝ exp(−|x_i − x_j|² / 2σ_j²), eq. (49), with σ_j found for every row so that
  its perplexity 2^H, eq. (47), is the one asked for. (The printed denominator has σ_k and counts
  k = j; σ_j and k ≠ j are meant.)
- several perplexities: the mean of the Gaussian rows of each.

Rows are searched in a compiled loop over fixed blocks; P is a CSR array of float32.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.inputs import Table
from gnomon.kernels import kernel
from gnomon.neighbors import Neighbors
from gnomon.parallel import map_blocks, row_blocks

Floats64 = NDArray[np.float64]

STEPS = 200  # of bisection, more than the digits of a double need
ROWS = 1024

__all__ = ["gaussian_rows", "joint", "uniform_rows"]


def uniform_rows(neighbors: Neighbors) -> Floats64:
    """p_{i|j} = 1/k for every neighbour, shape (n, k)."""
    n, k = neighbors.indices.shape
    return np.full((n, k), 1.0 / k)


def gaussian_rows(
    neighbors: Neighbors, perplexity: float | Sequence[float], *, n_jobs: int | None = None
) -> Floats64:
    """Conditional probabilities whose rows reach the perplexity, shape (n, k).

    A row with more copies of itself than the perplexity cannot come down to it: its copies share
    the probability equally. With several perplexities, the mean over them.

    Parameters
    ----------
    neighbors : Neighbors
        Three times the perplexity are enough: farther ones would get less than 1 in 100.
    perplexity : float or sequence of floats
        Between 1 and k.
    """
    scales = [perplexity] if np.isscalar(perplexity) else list(perplexity)  # type: ignore[arg-type]
    n, k = neighbors.indices.shape
    total = np.zeros((n, k))
    for scale in scales:
        if not 1 <= float(scale) <= k:  # type: ignore[arg-type]
            refuse("perplexity", f"be from 1 to the number of neighbours, {k}", scale)
        rows = np.empty((n, k))

        def block(start: int, stop: int, out: Floats64 = rows, asked: float = float(scale)) -> None:  # type: ignore[arg-type]
            _search(neighbors.distances, np.log(asked), out, start, stop)

        map_blocks(block, row_blocks(n, ROWS), n_jobs=n_jobs)
        total += rows
    return total / len(scales)


@kernel
def _search(distances: Floats64, entropy: float, out: Floats64, start: int, stop: int) -> None:
    """Bisect β = 1/2σ² so that each row's entropy H = log Z + β E[d²] is `entropy` (in nats).

    Distances are measured from the nearest neighbour and in units of the row's mean, so that
    exponents neither overflow nor depend on the data's units.
    """
    k = distances.shape[1]
    sq = np.empty(k)
    for i in range(start, stop):
        farthest = distances[i, k - 1] if distances[i, k - 1] > 0 else 1.0
        nearest = distances[i, 0] / farthest
        mean = 0.0
        for j in range(k):
            relative = distances[i, j] / farthest
            sq[j] = (relative - nearest) * (relative + nearest)
            mean += sq[j] / k
        if mean > 0:
            for j in range(k):
                sq[j] /= mean
        low, high, beta = 0.0, np.inf, 1.0
        z = 1.0
        for _ in range(STEPS):
            z, weighted = 0.0, 0.0
            for j in range(k):
                p = np.exp(-beta * sq[j])
                z += p
                weighted += p * sq[j]
            gap = np.log(z) + beta * weighted / z - entropy
            if abs(gap) < 1e-10:
                break
            if gap > 0:
                low = beta
                beta = 2 * beta if high == np.inf else (low + high) / 2
            else:
                high = beta
                beta = (low + high) / 2
            if beta in (low, high) or beta > 1e300:
                break
        for j in range(k):
            out[i, j] = np.exp(-beta * sq[j])
        z = out[i].sum()
        for j in range(k):
            out[i, j] /= z


def joint(neighbors: Neighbors, rows: Floats64) -> Table:
    """P = (C + Cᵀ)/2n of conditional rows C, as a CSR array of float32 that sums to 1."""
    n, k = neighbors.indices.shape
    starts = np.arange(0, n * k + 1, k, dtype=np.int64)
    C = sp.csr_array((rows.ravel(), neighbors.indices.ravel(), starts), shape=(n, n))
    P = sp.csr_array(C + C.T)
    P.sort_indices()
    P.data = (P.data / P.data.sum()).astype(np.float32)
    if P.nnz < 2**31:  # SciPy wants one type for both
        P.indices, P.indptr = P.indices.astype(np.int32), P.indptr.astype(np.int32)
    return P
