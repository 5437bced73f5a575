"""How alike two sets of paired points are, by measures that no rotation changes.

With X and Y about their means, and the singular values σ of XᵀY:

- disparity 1 − (Σσ)² / (‖X‖²‖Y‖²), and the angle arccos(Σσ / ‖X‖‖Y‖), which is a distance between
  shapes [Kendall 1984];
- RV = ‖XᵀY‖² / (‖XᵀX‖‖YᵀY‖) [Robert & Escoufier 1976], the same number as the linear centred kernel
  alignment CKA [Kornblith et al. 2019]. Both grow with the number of columns even when there is
  nothing in common;
- the unbiased CKA, from the unbiased estimate of what kernels share [Song et al. 2012], is about 0
  then. With k = ‖x‖² and l = ‖y‖² of each row, that estimate is, up to a factor that cancels,
  ‖XᵀY‖² − Σkl·n/(n − 2) + ΣkΣl / ((n − 1)(n − 2)): no n × n matrix is needed for linear kernels;
- the share of each row's nearest neighbours that are neighbours in both sets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.inputs import check_integer
from gnomon.moments import moments_of_rows
from gnomon.neighbors import find_neighbors
from gnomon.parallel import map_blocks, one_blas_thread, row_blocks
from gnomon.procrustes.frame import Rules, fit_frame
from gnomon.procrustes.pairs import Pair, read_pair
from gnomon.procrustes.tables import read_table
from gnomon.records import Record
from gnomon.rows import Rows

Floats64 = NDArray[np.float64]

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison(Record):
    """How alike two sets are. Every number is the same with X and Y exchanged.

    Attributes
    ----------
    n : int
        Pairs of rows.
    disparity : float
        0 for the same shape, 1 for nothing in common.
    correlation : float
        Procrustes correlation, √(1 − disparity).
    angular_distance : float
        Radians, 0 to π/2: a metric between shapes.
    rmsd : float
        Root mean squared distance after the best rotation and translation, in the tables' units.
    rv : float
        RV coefficient, which is the linear CKA: 0 to 1, too large where columns are many.
    unbiased_cka : float
        About 0 where the sets have nothing in common, whatever their widths; may be negative. NaN
        for fewer than 4 rows.
    neighbor_overlap : float
        Mean share of the `n_neighbors` nearest neighbours that both sets agree on.
    n_neighbors : int
    """

    n: int
    disparity: float
    correlation: float
    angular_distance: float
    rmsd: float
    rv: float
    unbiased_cka: float
    neighbor_overlap: float
    n_neighbors: int

    def title(self) -> str:
        """One sentence."""
        return f"{self.n:,} pairs of rows, Procrustes correlation {self.correlation:.3f}"

    def lines(self) -> list[tuple[str, str]]:
        """The numbers in words."""
        return [
            ("disparity", f"{self.disparity:.4g} (0: same shape, 1: nothing in common)"),
            ("angular distance", f"{np.degrees(self.angular_distance):.3g}° of 90°"),
            ("rmsd", f"{self.rmsd:.4g} after the best rotation and translation"),
            ("RV, linear CKA", f"{self.rv:.4g}; unbiased {self.unbiased_cka:.4g}"),
            ("neighbours", f"{self.neighbor_overlap:.1%} of {self.n_neighbors} in common"),
        ]


@one_blas_thread()
def compare(X: Any, Y: Any, *, n_neighbors: int = 10, n_jobs: int | None = None) -> Comparison:
    """Compare paired rows `X` (n, dx) and `Y` (n, dy); reflections are allowed.

    Parameters
    ----------
    n_neighbors : int
        For the overlap of neighbourhoods; at most n − 1, and fewer are taken in smaller tables.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import compare
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = compare(X, 7 * X[:, ::-1])
    >>> round(found.correlation, 6), round(found.rv, 6), found.neighbor_overlap
    (1.0, 1.0, 1.0)
    """
    left, right = read_table(X, "X"), read_table(Y, "Y")
    k = check_integer("n_neighbors", n_neighbors, 1)
    pair = read_pair(left, right, None, n_jobs=n_jobs).in_float64()
    n = pair.rows()
    if n < 2:
        raise DataError(f"X and Y must have at least 2 rows to have a shape; got {n}. Add rows.")
    frame = fit_frame(pair.moments(), Rules())
    for name, sq in (("X", frame.sq_x), ("Y", frame.sq_y)):
        if sq == 0:
            raise DataError(f"{name} has norm 0 (all rows are the same point): it has no shape.")
    pair = pair.in_units_of(frame.moments)
    frame, _ = frame.with_rows(pair, None)
    correlation = float(np.sqrt(1 - frame.disparity))
    rv, unbiased = _kernel_alignment(pair, frame.cross, n)
    k = min(k, n - 1)
    return Comparison(
        n=n,
        disparity=frame.disparity,
        correlation=correlation,
        # arcsin of the root of a small number is exact where arccos of nearly 1 is not
        angular_distance=float(np.arcsin(np.sqrt(frame.disparity))),
        rmsd=float(np.ldexp(np.sqrt(frame.residual_sum / n), frame.unit)),
        rv=rv,
        unbiased_cka=unbiased,
        neighbor_overlap=_overlap(left, right, k, n_jobs),
        n_neighbors=k,
    )


def _kernel_alignment(pair: Pair, cross: Floats64, n: int) -> tuple[float, float]:
    """RV and unbiased CKA, each side in its own units."""
    sides = []
    for rows in (pair.left, pair.right):
        moments = moments_of_rows(rows, None, n_jobs=pair.n_jobs)
        same = float(np.sum((moments.scatter / np.trace(moments.scatter)) ** 2))
        sq = _sq_norms(rows, moments.offset, pair.n_jobs) / float(np.trace(moments.scatter))
        sides.append((same, sq, float(np.trace(moments.scatter))))
    (xx, k, tx), (yy, m, ty) = sides
    xy = float(np.sum((cross / (np.sqrt(tx) * np.sqrt(ty))) ** 2))
    rv = min(1.0, xy / float(np.sqrt(xx * yy)))
    if n < 4:
        return rv, float("nan")
    shared = [_unbiased(a, u, v, n) for a, u, v in ((xy, k, m), (xx, k, k), (yy, m, m))]
    if shared[1] <= 0 or shared[2] <= 0:
        return rv, float("nan")
    return rv, shared[0] / float(np.sqrt(shared[1] * shared[2]))


def _unbiased(product: float, k: Floats64, m: Floats64, n: int) -> float:
    both = float(k.sum() * m.sum()) / ((n - 1) * (n - 2))
    return product - float(k @ m) * n / (n - 2) + both


def _sq_norms(rows: Rows, offset: Floats64, n_jobs: int | None) -> Floats64:
    """‖x − μ‖² of every row."""
    centred = rows.centred(offset, None)
    out = np.empty(rows.shape[0])

    def block(start: int, stop: int) -> None:
        z = centred.read(start, stop)
        np.einsum("ij,ij->i", z, z, out=out[start:stop])

    map_blocks(block, row_blocks(rows.shape[0], rows.block_rows()), n_jobs=n_jobs)
    return out


def _overlap(X: Any, Y: Any, k: int, n_jobs: int | None) -> float:
    near = [find_neighbors(Z, k, recall=1.0, n_jobs=n_jobs).indices for Z in (X, Y)]
    a, b = (np.sort(lists, axis=1) for lists in near)

    def block(start: int, stop: int) -> int:
        same = a[start:stop, :, None] == b[start:stop, None, :]
        return int(np.count_nonzero(same))

    return sum(map_blocks(block, row_blocks(len(a), 1024), n_jobs=n_jobs)) / a.size
