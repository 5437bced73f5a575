"""Sweeps of a consensus if some sets lack some points.

With cᵢ sets holding point i, the best Z leaves (cᵢ − 1) / cᵢ · ‖a − z‖² for a set's own position a
and the mean z of the others. So each set is aligned to the means of the others with these weights,
the optimum of its R and t; points that only one set holds have weight 0.
"""

import numpy as np

from gnomon.procrustes.consensus.state import SetPlacement, Sets, best_scales
from gnomon.procrustes.solve import EPS, solve
from gnomon.typing import Floats64

__all__ = ["RowSweeps"]


class RowSweeps:
    """State of the iteration; `placement` is the current solution."""

    def __init__(self, sets: Sets, *, reflection: str, n_jobs: int | None) -> None:
        del n_jobs  # a sweep is sequential
        self.sets, self.reflection = sets, reflection
        m, D = len(sets.tables), sets.width
        widths = [table.shape[1] for table in sets.tables]
        self.placement = SetPlacement(
            [np.eye(d, D) for d in widths], np.ones(m), [np.zeros(D) for _ in widths]
        )
        self.total, self.counts = np.zeros((sets.n, D)), np.zeros(sets.n)
        self._enter(0)
        left = set(range(1, m))
        while left:  # next: the set that shares most points with those placed
            k = max(sorted(left), key=lambda j: np.count_nonzero(self.counts[sets.places[j]]))
            self._lay(k, self.total[sets.places[k]], self.counts[sets.places[k]])
            self._enter(k)
            left.discard(k)

    def turn(self) -> None:
        """Align each set in turn to the mean of the others."""
        for k, rows in enumerate(self.sets.places):
            own = self._place(k)
            self._lay(k, self.total[rows] - own, self.counts[rows] - 1)
            self.total[rows] += self._place(k) - own

    def _place(self, k: int) -> Floats64:
        p = self.placement
        placed: Floats64 = p.scales[k] * (self.sets.tables[k] @ p.rotations[k]) + p.shifts[k]
        return placed

    def _enter(self, k: int) -> None:
        rows = self.sets.places[k]
        self.total[rows] += self._place(k)
        self.counts[rows] += 1

    def _lay(self, k: int, total: Floats64, counts: Floats64) -> None:
        """Fit R and t of set k to `total` / `counts` of the other sets."""
        held = counts > 0
        X, target = self.sets.tables[k][held], total[held] / counts[held, None]
        w = counts[held] / (counts[held] + 1)
        R, s = self.placement.rotations, self.placement.scales[k]
        mx, mt = np.zeros(X.shape[1]), np.zeros(target.shape[1])
        if self.sets.centering:
            mx, mt = w @ X / w.sum(), w @ target / w.sum()
        X, target = X - mx, target - mt
        M = (w[:, None] * X).T @ target
        R[k] = solve(
            M,
            reflection=self.reflection,
            prior=R[k],  # undetermined directions stay unchanged
            floor=8 * EPS * float(np.linalg.norm(X) * np.linalg.norm(target)),
            same_width=R[k].shape[0] == R[k].shape[1],
        ).matrix
        if self.sets.centering:
            self.placement.shifts[k] = mt - s * (mx @ R[k])

    def objective(self) -> float:
        """Objective Σ ‖A − Z‖², from the rows."""
        placed = self.placement.place(self.sets)
        mean = self.sets.mean(placed)
        parts = zip(placed, self.sets.places, strict=True)
        return float(sum(((A - mean[rows]) ** 2).sum() for A, rows in parts))

    def scale(self) -> None:
        """Set the best scales about the common centre, with rotations and shifts unchanged."""
        p, sets = self.placement, self.sets
        placed = p.place(sets)
        if sets.centering:
            origin = sets.mean(placed).mean(axis=0)
            p.shifts = [t - origin for t in p.shifts]
            placed = [A - origin for A in placed]
        wide = [np.zeros((sets.n, sets.width)) for _ in placed]
        for W, A, rows, s in zip(wide, placed, sets.places, p.scales, strict=True):
            W[rows] = A / s
        inner = np.array([[np.sum(V * W / sets.counts[:, None]) for W in wide] for V in wide])
        form = np.diag([np.sum(W * W) for W in wide]) - inner
        scales = best_scales(form, sets.sq_norms)
        if scales is not None:
            p.shifts = [
                t * new / old for t, new, old in zip(p.shifts, scales, p.scales, strict=True)
            ]
            p.scales = scales
        self._recount()

    def restore(self, placement: SetPlacement) -> None:
        """Restore an earlier placement."""
        self.placement = placement
        self._recount()

    def _recount(self) -> None:
        self.total[...] = 0.0
        for k, rows in enumerate(self.sets.places):
            self.total[rows] += self._place(k)
