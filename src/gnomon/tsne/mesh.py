"""The push between all points, from one charge each on a regular mesh.

The whole repulsive force is the gradient of one scalar field,

    φ(y) = Σ_j c_j K(|y − y_j|²),   Σ_j c_j K w (y_i − y_j) = −(α/(α+1)) ∇φ(y_i),

so one charge c_j a point (1, or its weight) is enough, for any degrees of freedom α and any
dimension:

1. Spread every charge over the 4 nearest nodes of each axis with cubic B-spline weights, into one
   mesh for each fixed block of points; the block meshes are added in order (`splines.py`).
2. Convolve with K by Fourier transforms (`convolve.py`).
3. Read φ with the spline's weights and ∇φ with its derivative's.
4. Take out what each point did to itself: through the mesh its own φ averages 0.984 instead of 1 at
   spacing 0.5, and its own force is not zero. It is a bilinear form of the point's own weights with
   a corner of the mesh's Green function; at 1,800 points half of the force error is this.

Shapes: Y (n, dimensions) float32; a mesh has `cells` nodes on each axis, in float32 throughout:
nothing large is subtracted from anything large.
"""

import math
from collections.abc import Iterable

import numpy as np

from gnomon.compute.threads import fold_blocks, map_blocks, row_blocks
from gnomon.tsne.convolve import Convolution
from gnomon.tsne.splines import READ_KERNELS, SPREAD_KERNELS
from gnomon.typing import Floats32, Floats64

LEAST_BLOCK, MOST_BLOCKS = 16_384, 8  # points spread into one mesh, and how many such meshes
READ = 4096  # points read at a time
MARGIN = 3  # nodes beyond the outermost points: more than a spline reaches
GROWTH = 1.05  # times, of a mesh that has become too small; more while it costs little
QUICK_GROWTH, QUICK_BELOW = 1.15, 200  # the same of an axis of fewer nodes

__all__ = ["MARGIN", "Mesh", "nodes_for"]


class Mesh:
    """φ and its gradient at the points themselves, for one spacing and one kernel.

    Parameters
    ----------
    dimensions : {1, 2, 3}
    dof : float
        α, the degrees of freedom of K.
    spacing : float
        Distance of the nodes. The error falls about fourfold from 0.5 to 0.35; it scales with the
        kernel's width √(2α/(α+1)).
    n_jobs : int, optional
        Threads; the bits do not depend on it.
    """

    def __init__(
        self, dimensions: int, dof: float = 1.0, spacing: float = 0.5, n_jobs: int | None = None
    ) -> None:
        self.dimensions, self.dof, self.spacing, self.n_jobs = dimensions, dof, spacing, n_jobs
        self.convolution: Convolution | None = None
        self._nodes: Floats32 = np.empty(0, np.float32)  # kept: fresh memory costs time

    @property
    def cells(self) -> tuple[int, ...]:
        """Nodes on each axis."""
        return (0,) * self.dimensions if self.convolution is None else self.convolution.cells

    def field(self, Y: Floats32, charges: Floats32 | None = None) -> tuple[Floats32, Floats32]:
        """φ(y_i) without the point itself, shape (n,), and ∇φ(y_i), shape (n, dimensions)."""
        charges = np.ones(len(Y), np.float32) if charges is None else charges
        low, high = Y.min(axis=0).astype(np.float64), Y.max(axis=0).astype(np.float64)
        phi, gradient = np.empty(len(Y), np.float32), np.empty(Y.shape, np.float32)
        self.read(Y, charges, *self.potential(Y, charges, low, high), phi, gradient)
        return phi, gradient

    def potential(
        self, Y: Floats32, charges: Floats32, low: Floats64, high: Floats64
    ) -> tuple[Floats32, Floats32]:
        """Steps 1 and 2: φ at the nodes, and where the first node is.

        `low` and `high` bound the points; the mesh reaches `MARGIN` nodes beyond them. The next
        call writes φ over.
        """
        convolution = self.reach((high - low) / self.spacing)
        origin = (low - MARGIN * self.spacing).astype(np.float32)
        return convolution.potential(self._spread(Y, charges, origin, convolution.shape)), origin

    def read(
        self,
        Y: Floats32,
        charges: Floats32,
        potential: Floats32,
        origin: Floats32,
        phi: Floats32,
        gradient: Floats32,
    ) -> None:
        """φ and ∇φ at points inside the mesh; each takes out `charges` times its own part."""
        assert self.convolution is not None  # it made the potential
        inverse, corner = np.float32(1 / self.spacing), self.convolution.corner
        work = READ_KERNELS[self.dimensions]

        def block(first: int, last: int) -> None:
            work(Y, charges, origin, inverse, potential, corner, phi, gradient, first, last)

        map_blocks(block, row_blocks(len(Y), READ), n_jobs=self.n_jobs)

    def reach(self, spans: Floats64) -> Convolution:
        """Grow the mesh if points this many nodes apart need it.

        By 5 % at least, so that it is rare: every size has a spectrum of its own.
        """
        needed = [nodes_for(span) for span in spans.tolist()]
        if self.convolution is not None and all(
            have >= want for have, want in zip(self.cells, needed, strict=True)
        ):
            return self.convolution
        return self.resize(
            have if have >= want else int(want * (QUICK_GROWTH if want < QUICK_BELOW else GROWTH))
            for have, want in zip(self.cells, needed, strict=True)
        )

    def resize(self, cells: Iterable[int]) -> Convolution:
        """Take at least this many nodes on each axis, and prepare the kernel's spectrum."""
        # all or nothing: an interrupt does not come between plain assignments
        self.convolution = Convolution(tuple(cells), self.dof, self.spacing, self.n_jobs)
        return self.convolution

    def release(self) -> None:
        """Give back memory that only another potential would need."""
        if self.convolution is not None:
            self.convolution.release()

    def _spread(
        self, Y: Floats32, charges: Floats32, origin: Floats32, shape: tuple[int, ...]
    ) -> Floats32:
        """Step 1."""
        if self._nodes.shape != shape:
            self._nodes = np.empty(shape, np.float32)
        mesh = self._nodes
        mesh.fill(0)
        spread, inverse = SPREAD_KERNELS[self.dimensions], np.float32(1 / self.spacing)
        blocks = row_blocks(len(Y), max(LEAST_BLOCK, -(-len(Y) // MOST_BLOCKS)))
        if len(blocks) == 1:
            spread(Y, charges, origin, inverse, mesh, 0, len(Y))
            return mesh

        def block(first: int, last: int) -> Floats32:
            part = np.zeros(shape, np.float32)
            spread(Y, charges, origin, inverse, part, first, last)
            return part

        fold_blocks(block, blocks, mesh.__iadd__, n_jobs=self.n_jobs)
        return mesh


def nodes_for(span: float) -> int:
    """How many nodes an axis needs for points `span` spacings apart."""
    return math.ceil(span) + 2 * MARGIN + 1
