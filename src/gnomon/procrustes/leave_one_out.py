"""How well each row is foretold by the map of all the others.

With the total weight W, the moments about the means, and a row x, y of weight w, also about the
means, those of all other rows are ([Chan, Golub & LeVeque 1983], backwards)

    M − c·xyᵀ,  ‖X‖² − c·‖x‖²,  ‖Y‖² − c·‖y‖²,  c = Ww / (W − w),

and the row lies W / (W − w) times as far from their mean as from that of all. Without centring the
means are zero and c = w. So no row is read again, and each costs one small decomposition.
"""

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError
from gnomon.parallel import map_blocks, row_blocks
from gnomon.procrustes.frame import EPS, Frame, Rules, fit_frame
from gnomon.procrustes.pairs import Pair
from gnomon.procrustes.solve import solve_many

Floats64 = NDArray[np.float64]

STACK = 2**19  # numbers in a stack of matrices

__all__ = ["leave_one_out"]


def leave_one_out(pair: Pair, weights: Floats64 | None, rules: Rules) -> Floats64:
    """Distance of each row from its partner under the map of all other rows, shape (n,).

    A row is left out with all its weight.
    """
    n = pair.rows()
    w = np.ones(n) if weights is None else weights
    least = 3 if rules.centering else 2
    if np.count_nonzero(w) < least:
        raise DataError(
            f"`loo_residuals` needs at least {least} rows, so that a map of the others exists; "
            f"got {np.count_nonzero(w)}. Add rows."
        )
    frame = fit_frame(pair.moments(weights), rules)
    pair = pair.in_units_of(frame.moments)
    out = np.empty(n)

    def block(start: int, stop: int) -> None:
        out[start:stop] = _foretell(pair, frame, w[start:stop], start, stop)

    step = max(1, STACK // frame.cross.size)
    map_blocks(block, row_blocks(n, step), n_jobs=pair.n_jobs)
    return np.asarray(np.ldexp(out, frame.unit))


def _foretell(pair: Pair, frame: Frame, w: Floats64, start: int, stop: int) -> Floats64:
    left, right = frame.about(pair.left, pair.right)
    x, narrow_y = left.read(start, stop), right.read(start, stop)
    y = np.zeros((len(x), frame.cross.shape[1]))
    y[:, : narrow_y.shape[1]] = narrow_y
    c, further = w, np.ones(len(w))
    if frame.rules.centering:
        total = frame.moments.x.weight
        c, further = total * w / (total - w), total / (total - w)
    M = frame.cross - c[:, None, None] * x[:, :, None] * y[:, None, :]
    sq_x = frame.sq_x - c * np.einsum("ij,ij->i", x, x)
    sq_y = frame.sq_y - c * np.einsum("ij,ij->i", y, y)
    R, trace, _ = solve_many(
        M,
        reflection=frame.rules.reflection,
        prior=frame.rules.prior,
        floors=np.full(len(x), frame.rotation.floor),
        same_width=frame.rotation.reflected is not None,
    )
    scale = _scales(frame, sq_x, sq_y, trace, start)
    moved = np.einsum("ij,ijk->ik", x, R) * scale[:, None]
    return np.asarray(np.linalg.norm(moved - frame.factor * y, axis=1) * further)


def _scales(frame: Frame, sq_x: Floats64, sq_y: Floats64, trace: Floats64, start: int) -> Floats64:
    scaling = frame.rules.scaling
    if scaling is False:
        return np.full(sq_x.size, frame.scale)
    gone = np.flatnonzero((sq_x <= 64 * EPS * frame.sq_x) | (sq_y <= 64 * EPS * frame.sq_y))
    if gone.size:
        raise DataError(
            f"Without row {start + gone[0]} all other rows of X or of Y are the same point, and "
            f"`scaling={scaling!r}` asks for their size. Use `scaling=False`."
        )
    if scaling is True:
        return np.asarray(np.maximum(trace, 0.0) / sq_x)
    return np.asarray(np.sqrt(sq_y / sq_x))
