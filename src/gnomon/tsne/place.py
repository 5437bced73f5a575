"""Places for new points on a map that stays as it is.

The map's field φ(y) = Σ_j c_j K(|y − y_j|²) is computed once. A new point with conditional
probabilities p_j to its nearest rows then minimises its own

    KL(p ‖ q) = Σ_j p_j log p_j + (α+1)/2 Σ_j p_j log(1 + |y − y_j|²/α) + log φ(y),

whose gradient is ((α+1)/α) Σ_j p_j w_j (y − y_j) + ∇φ/φ, from the mean of its neighbours' places
on, by steps that never increase it. The gradient over ((α+1)/α) Σ_j p_j w_j is the step: it ends
where pull and push would balance if neither changed on the way. New points do not see each other:
a point gets the same place in any company and in any order. A row equal to rows of the data is
placed where they are.

Fewer and nearer neighbours than the map was made from (perplexity 5, 15 neighbours) place points
best: 96.7 % of 10,000 rows of MNIST land among their own digit on a map of the other 60,000, and
96.5 % with perplexity 30 and 90 neighbours.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.neighbors.search import Neighbors
from gnomon.records import Record
from gnomon.tsne.affinities import gaussian_rows
from gnomon.tsne.mesh import Mesh
from gnomon.tsne.novelty import REASONS, unusual_words
from gnomon.typing import Floats32, Floats64

# Time against how often a new row's neighbours on the map have its label:
# `benchmarks/tsne_transform.py`.
PERPLEXITY = 5.0
NEIGHBORS = 15  # rows of the map
MARGIN = 5.0  # of mesh around the map, in units of the map
STEPS = 250  # at most
STILL = 1e-4  # of a step, in units of the map
FIRST_STEP, LONGER, SHORTER = 1.0, 1.1, 0.3  # of the step above
REST = 0.2  # share of resting rows that are worth taking out
ROWS = 2048  # new rows at a time

__all__ = ["NEIGHBORS", "PERPLEXITY", "Placement", "PlacingField"]


@dataclass(frozen=True, eq=False)
class Placement(Record):
    """Where new rows were placed, and how far to trust each place.

    Attributes
    ----------
    positions : array (m, dimensions)
    distance_ratio : array (m,)
        Mean distance to the nearest rows of the data, relative to those rows' own mean distance to
        theirs. About 1 for rows like the data.
    residual : array (m,)
        Distance from the principal components, relative to the median of rows of the data that were
        left out of them. About 1 for rows like the data; NaN where it is not measured, as on maps
        of distances.
    distance_limit : float
    residual_limit : float or None
        Limits for the two. They are set together, so that about 1 % of new rows of the same kind as
        the data are beyond one of them. None where residuals are not measured.
    reason : array (m,), uint8
        0 for usual rows. 1 for rows beyond the distance limit: nothing in the data is near them. 2
        for rows beyond the residual limit: the components hold only a part of them. Where both are
        true, the one that is further beyond its limit.
    neighbors : array (m, 15), int32
        The rows of the data that each one was placed by, nearest first.
    """

    positions: Floats32 = field(repr=False)
    distance_ratio: Floats64 = field(repr=False)
    residual: Floats64 = field(repr=False)
    distance_limit: float
    residual_limit: float | None
    reason: NDArray[np.uint8] = field(repr=False)
    neighbors: NDArray[np.int32] = field(repr=False)

    @property
    def unusual(self) -> NDArray[np.bool_]:
        """Rows beyond a limit, shape (m,): nothing in the data is like them.

        They have a place like all others, which means little.
        """
        return self.reason > 0

    @property
    def why(self) -> NDArray[np.str_]:
        """Why rows are unusual, shape (m,): "near nothing", "outside the components", or ""."""
        return np.array(REASONS)[self.reason]

    def title(self) -> str:
        """One-line summary."""
        return f"{len(self.positions):,} rows placed, {unusual_words(self.reason)}"

    def lines(self) -> list[tuple[str, str]]:
        """Ranges of distance ratio and residual, and their limits."""
        if not len(self.positions):
            return []
        found = [("distance ratio", _range(self.distance_ratio, self.distance_limit))]
        if self.residual_limit is None:
            return [*found, ("residual", "not measured")]
        found += [("residual", _range(self.residual, self.residual_limit))]
        return [*found, ("limits", "about 1 % of new rows like the data are beyond one")]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, the reasons in words."""
        found = super().to_dict()
        del found["reason"]
        return {**found, "unusual": self.unusual.tolist(), "why": self.why.tolist()}


class PlacingField:
    """The field of a finished map, in which new points go to their places.

    Parameters
    ----------
    Y : array (n, dimensions)
    dof : float
    spacing : float
        Of the mesh; it is laid once, so it can be fine.
    weights : array (n,), optional
    most_nodes : int
    """

    def __init__(
        self,
        Y: NDArray[Any],
        dof: float,
        spacing: float,
        weights: Floats64 | None = None,
        most_nodes: int = 2**26,
    ) -> None:
        self.Y, self.dof = np.ascontiguousarray(Y, np.float32), dof
        self.charges = np.ones(len(Y), np.float32) if weights is None else weights.astype("f4")
        low = self.Y.min(axis=0).astype(np.float64) - MARGIN
        high = self.Y.max(axis=0).astype(np.float64) + MARGIN
        while np.prod(2 * ((high - low) / spacing + 8)) > most_nodes:
            spacing *= 1.25
        self.low, self.high, self.spacing = low, high, spacing
        self._nodes: Nodes | None = None

    def nodes(self, n_jobs: int | None = None) -> "Nodes":
        """The mesh, φ at its nodes and where the first is; computed when first needed."""
        if self._nodes is None:
            mesh = Mesh(self.Y.shape[1], self.dof, self.spacing, n_jobs)
            nodes = mesh, *mesh.potential(self.Y, self.charges, self.low, self.high)
            mesh.release()
            self._nodes = nodes
        return self._nodes

    def place(
        self,
        indices: NDArray[np.int32],
        distances: Floats64,
        n_jobs: int | None = None,
        perplexity: float = PERPLEXITY,
    ) -> Floats32:
        """Positions of points with these neighbours, shape (m, dimensions)."""
        m, k = indices.shape
        near = Neighbors(indices, distances, 1.0, 0, "")
        p = gaussian_rows(near, min(perplexity, float(k)), n_jobs=n_jobs).rows
        exact = distances[:, 0] == 0
        copies = (distances == 0) & exact[:, None]
        p[exact] = copies[exact] / copies[exact].sum(axis=1, keepdims=True)
        start = np.einsum("ik,ikc->ic", p, self.Y[indices].astype(np.float64))
        out: Floats32 = np.clip(start, self.low, self.high).astype(np.float32)
        nodes = self.nodes(n_jobs)

        def block(first: int, last: int) -> None:
            rows = slice(first, last)
            self._descend(nodes, indices[rows], p[rows], exact[rows], out[rows])

        map_blocks(block, row_blocks(m, min(ROWS, max(256, -(-m // 8)))), n_jobs=n_jobs)
        return out

    def _descend(
        self,
        nodes: "Nodes",
        indices: NDArray[np.int32],
        p: Floats64,
        settled: NDArray[np.bool_],
        Y: Floats32,
    ) -> None:
        """Move each row of `Y` down its own KL until it rests."""
        mesh, potential, origin = nodes
        low, high = self.low.astype(np.float32), self.high.astype(np.float32)
        moving = np.flatnonzero(~settled)
        at, m = Y[moving], len(moving)
        # places to try, φ and ∇φ there; the best places so far, their gradient and KL; steps
        rows: list[Any] = [
            indices[moving],
            p[moving],
            at.copy(),
            np.empty(m, np.float32),
            np.empty_like(at),
            at,
            np.zeros_like(at),
            np.full(m, np.inf),
            np.full(m, FIRST_STEP),
            np.zeros(m, bool),
        ]
        for _ in range(STEPS):
            at, resting = rows[5], rows[-1]
            if np.count_nonzero(resting) >= max(1, REST * len(resting)):
                Y[moving] = at
                moving, rows = moving[~resting], [values[~resting] for values in rows]
            if not len(moving):
                return
            trial, phi, slopes = rows[2:5]
            mesh.read(trial, np.zeros_like(phi), potential, origin, phi, slopes)
            _advance(self.Y, self.dof, low, high, *rows)
        Y[moving] = rows[5]


Nodes = tuple[Mesh, Floats32, Floats32]


def _range(values: Floats64, limit: float) -> str:
    return f"median {np.median(values):.3g}, largest {values.max():.3g}, limit {limit:.3g}"


@kernel
def _advance(
    Y: Floats32,
    dof: float,
    low: Floats32,
    high: Floats32,
    indices: Any,
    p: Floats64,
    trial: Floats32,
    phi: Floats32,
    slopes: Floats32,
    at: Floats32,
    gradient: Floats32,
    kl: Floats64,
    step: Floats64,
    resting: Any,
) -> None:
    """Take each trial that lowers the row's KL, shorten the step of one that does not; next."""
    d = Y.shape[1]
    away, pull = np.empty(d), np.empty(d)
    for i in range(at.shape[0]):
        if resting[i]:
            continue
        value = np.log(phi[i]) if phi[i] > 0 else np.inf
        stiffness = 0.0
        for c in range(d):
            pull[c] = 0.0
        for j in range(indices.shape[1]):
            other, sq = indices[i, j], 0.0
            for c in range(d):
                away[c] = trial[i, c] - Y[other, c]
                sq += away[c] * away[c]
            stretch = 1.0 + sq / dof
            value += (dof + 1) / 2 * p[i, j] * np.log(stretch)
            weight = (dof + 1) / dof * p[i, j] / stretch
            stiffness += weight
            for c in range(d):
                pull[c] += weight * away[c]
        if value < kl[i]:
            kl[i] = value
            step[i] *= LONGER
            for c in range(d):
                at[i, c] = trial[i, c]
                gradient[i, c] = (pull[c] + slopes[i, c] / phi[i]) / stiffness
        else:
            step[i] *= SHORTER
        moved = 0.0
        for c in range(d):
            to = min(max(at[i, c] - step[i] * gradient[i, c], low[c]), high[c])
            moved = max(moved, abs(to - at[i, c]))
            trial[i, c] = to
        resting[i] = moved < STILL
