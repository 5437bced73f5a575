"""Sweeps of a consensus if every set holds every point, from XⱼᵀXₖ alone.

All sets are centred, so every t is zero. With Cⱼₖ = XⱼᵀXₖ, computed once:

- target of set k times Xₖ: Xₖᵀ Σ sⱼXⱼRⱼ over the others = Σ sⱼCₖⱼRⱼ, a (dₖ, D) matrix;
- the objective Σ ‖A − Z‖² = Σ s²‖X‖² − ‖Σ A‖² / m, with ⟨Aⱼ, Aₖ⟩ = sⱼsₖ tr(RⱼᵀCⱼₖRₖ);
- the objective as a quadratic form in the scales, for `placement.best_scales`.
"""

from itertools import pairwise

import numpy as np

from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.procrustes.consensus.state import SetPlacement, Sets, best_scales
from gnomon.procrustes.solve import EPS, solve
from gnomon.typing import Floats64

ROWS = 1024  # rows of a block, for any number of threads

__all__ = ["GramSweeps"]


class GramSweeps:
    """State of the iteration; `placement` is the current solution."""

    def __init__(self, sets: Sets, *, reflection: str, n_jobs: int | None) -> None:
        self.sets, self.reflection = sets, reflection
        widths = [table.shape[1] for table in sets.tables]
        edges = np.concatenate([[0], np.cumsum(widths)])
        self.parts = [slice(a, b) for a, b in pairwise(edges)]
        self.products = _products(sets, int(edges[-1]), n_jobs)
        m, D = len(widths), sets.width
        self.placement = SetPlacement(
            [np.eye(d, D) for d in widths], np.ones(m), [np.zeros(D) for _ in widths]
        )
        for k in range(1, m):  # start: align each set to the mean of those before it
            self._lay(k, range(k))

    def turn(self) -> None:
        """Align each set in turn to the mean of the others."""
        m = len(self.parts)
        for k in range(m):
            self._lay(k, [j for j in range(m) if j != k])

    def _lay(self, k: int, others: range | list[int]) -> None:
        R, s = self.placement.rotations, self.placement.scales
        here = self.parts[k]
        M = sum(s[j] * (self.products[here, self.parts[j]] @ R[j]) for j in others)
        size = float(sum(s[j] * np.sqrt(self.sets.sq_norms[j]) for j in others))
        R[k] = solve(
            np.asarray(M),
            reflection=self.reflection,
            prior=R[k],  # undetermined directions stay unchanged
            floor=8 * EPS * size * float(np.sqrt(self.sets.sq_norms[k])),
            same_width=R[k].shape[0] == R[k].shape[1],
        ).matrix

    def objective(self) -> float:
        """Objective Σ ‖A − Z‖²."""
        s = self.placement.scales
        return max(0.0, float(s @ self._quadratic() @ s))

    def _quadratic(self) -> Floats64:
        """The objective as sᵀQs: Q = diag ‖X‖² − ⟨XⱼRⱼ, XₖRₖ⟩ / m."""
        m = len(self.parts)
        R = self.placement.rotations
        inner = np.diag(self.sets.sq_norms)
        for j in range(m):
            for k in range(j):
                block = self.products[self.parts[j], self.parts[k]]
                inner[j, k] = inner[k, j] = np.sum(R[j] * (block @ R[k]))
        form: Floats64 = np.diag(self.sets.sq_norms) - inner / m
        return form

    def scale(self) -> None:
        """Set the best scales for the current rotations."""
        scales = best_scales(self._quadratic(), self.sets.sq_norms)
        if scales is not None:
            self.placement.scales = scales

    def restore(self, placement: SetPlacement) -> None:
        """Restore an earlier placement."""
        self.placement = placement


def _products(sets: Sets, width: int, n_jobs: int | None) -> Floats64:
    """XⱼᵀXₖ of all pairs of sets as one matrix, with rows in the same order."""
    total = np.zeros((width, width))
    order = [np.argsort(rows) for rows in sets.places]

    def block(start: int, stop: int) -> Floats64:
        parts = zip(sets.tables, order, strict=True)
        Z = np.concatenate([X[rows[start:stop]] for X, rows in parts], axis=1)
        product: Floats64 = Z.T @ Z
        return product

    def add(part: Floats64) -> None:
        np.add(total, part, out=total)

    fold_blocks(block, row_blocks(sets.n, ROWS), add, n_jobs=n_jobs)
    return total
