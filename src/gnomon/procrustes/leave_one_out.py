"""Leave-one-out residuals: each row predicted by the map of all other rows.

With the total weight W, the moments about the means, and a row x, y of weight w, also about the
means, those of all other rows are ([Chan, Golub & LeVeque 1983], backwards)

    M − c·xyᵀ,  ‖X‖² − c·‖x‖²,  ‖Y‖² − c·‖y‖²,  c = Ww / (W − w),

and the row lies W / (W − w) times as far from their mean as from that of all. Without centring the
means are zero and c = w. So no row is read again, and each costs one small decomposition.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.errors import DataError
from gnomon.numeric.scaling import Rows
from gnomon.procrustes.row_pairs import Pair, PairView, Weights
from gnomon.procrustes.similarity import EPS, Rules, Similarity, fit_similarity
from gnomon.procrustes.solve import solve_many
from gnomon.typing import Floats64

STACK = 2**19  # numbers in a stack of matrices

__all__ = ["leave_one_out"]


def leave_one_out(view: PairView, weights: Weights, rules: Rules) -> Floats64:
    """Distance of each row from its partner under the map of all other rows, shape (n,).

    A row is left out with its whole weight.
    """
    w = np.ones(view.rows) if weights is None else weights
    least = 3 if rules.centering else 2
    if np.count_nonzero(w) < least:
        raise DataError(
            f"`loo_residuals` needs at least {least} rows, so that a map of the others exists; "
            f"got {np.count_nonzero(w)}. Add rows."
        )
    found = fit_similarity(view.moments(weights), rules)
    out = view.each_row(_Foretell(found), w)[0]
    return np.asarray(np.ldexp(out, found.unit))


@dataclass(frozen=True)
class _Foretell:
    """Compute distances of a range of rows, in units of 2^unit of the map of all rows."""

    map: Similarity

    def step(self, _: Pair, __: int) -> int:
        return max(1, STACK // self.map.cross.size)

    def __call__(self, pair: Pair, weights: Weights, start: int, stop: int, out: Floats64) -> None:
        assert weights is not None
        left, right = self.map.scalings()
        x: Any = Rows(pair.left.X, left).read(start, stop)
        y: Any = Rows(pair.right.X, right).read(start, stop)
        out[0] = _foretell(self.map, weights[start:stop], x, y, start)


def _foretell(
    found: Similarity, w: Floats64, x: Floats64, narrow_y: Floats64, start: int
) -> Floats64:
    y = np.zeros((len(x), found.cross.shape[1]))
    y[:, : narrow_y.shape[1]] = narrow_y
    c, further = w, np.ones(len(w))
    if found.rules.centering:
        total = found.moments.x.weight
        c, further = total * w / (total - w), total / (total - w)
    M = found.cross - c[:, None, None] * x[:, :, None] * y[:, None, :]
    sq_x = found.sq_x - c * np.einsum("ij,ij->i", x, x)
    sq_y = found.sq_y - c * np.einsum("ij,ij->i", y, y)
    R, trace, _ = solve_many(
        M,
        reflection=found.rules.reflection,
        prior=found.rules.prior,
        floors=np.full(len(x), found.rotation.floor),
        same_width=found.rotation.reflected is not None,
    )
    scale = _scales(found, sq_x, sq_y, trace, start)
    moved = np.einsum("ij,ijk->ik", x, R) * scale[:, None]
    return np.asarray(np.linalg.norm(moved - found.factor * y, axis=1) * further)


def _scales(
    found: Similarity, sq_x: Floats64, sq_y: Floats64, trace: Floats64, start: int
) -> Floats64:
    scaling = found.rules.scaling
    if scaling is False:
        return np.full(sq_x.size, found.scale)
    gone = np.flatnonzero((sq_x <= 64 * EPS * found.sq_x) | (sq_y <= 64 * EPS * found.sq_y))
    if gone.size:
        raise DataError(
            f"Without row {start + gone[0]} all other rows of X or of Y are the same point, and "
            f"`scaling={scaling!r}` needs their size. Use `scaling=False`."
        )
    if scaling is True:
        return np.asarray(np.maximum(trace, 0.0) / sq_x)
    return np.asarray(np.sqrt(sq_y / sq_x))
