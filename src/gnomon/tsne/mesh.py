"""The push between all points, from one charge each on a regular mesh and two FFTs.

The whole repulsive force is the gradient of one scalar field,

    φ(y) = Σ_j c_j K(|y − y_j|²),   Σ_j c_j K w (y_i − y_j) = −(α/(α+1)) ∇φ(y_i),

so one charge c_j a point (1, or its weight) is enough, for any degrees of freedom α and any
dimension:

1. Spread every charge over the 4 nearest nodes of each axis with cubic B-spline weights, into one
   mesh for each fixed block of points; the block meshes are added in order.
2. Fourier transform on the mesh doubled with zeros, so that its copies do not meet. Only the
   occupied half goes in along each axis, and only that half comes out.
3. Multiply by the spectrum of K sampled on the mesh, divided by the squared spectrum of the sampled
   spline on each axis: spreading and reading blur once each.
4. Transform back; read φ with the spline's weights and ∇φ with its derivative's.
5. Take out what each point did to itself: through the mesh its own φ averages 0.984 instead of 1 at
   spacing 0.5, and its own force is not zero. It is a bilinear form of the point's own weights with
   a corner of the mesh's Green function; at 1,800 points half of the force error is this.

Shapes: Y (n, dimensions) float32; a mesh has `cells` nodes on each axis, in float32 throughout:
nothing large is subtracted from anything large.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from gnomon.kernels import kernel
from gnomon.parallel import fold_blocks, map_blocks, row_blocks

Floats = NDArray[np.float32]
Floats64 = NDArray[np.float64]

LEAST_BLOCK, MOST_BLOCKS = 8192, 8  # points spread into one mesh, and how many such meshes
READ = 4096  # points read at a time
GROUP = 32_768  # nodes transformed at a time
MARGIN = 3  # nodes beyond the outermost points
GROWTH = 1.05  # of a mesh that has become too small; more while it costs little
QUICK_GROWTH, QUICK_BELOW = 1.15, 200

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
        self.cells: tuple[int, ...] = (0,) * dimensions
        self.padded: list[int] = []
        self.spectrum: Floats = np.empty(0, np.float32)
        self.corner: Floats = np.empty(0, np.float32)

    def field(self, Y: Floats, charges: Floats | None = None) -> tuple[Floats, Floats]:
        """φ(y_i) without the point itself, shape (n,), and ∇φ(y_i), shape (n, dimensions)."""
        charges = np.ones(len(Y), np.float32) if charges is None else charges
        low, high = Y.min(axis=0).astype(np.float64), Y.max(axis=0).astype(np.float64)
        phi, gradient = np.empty(len(Y), np.float32), np.empty(Y.shape, np.float32)
        self.read(Y, charges, *self.potential(Y, charges, low, high), phi, gradient)
        return phi, gradient

    def potential(
        self, Y: Floats, charges: Floats, low: Floats64, high: Floats64
    ) -> tuple[Floats, Floats]:
        """Steps 1 to 4: φ at the nodes, and where the first node is.

        `low` and `high` bound the points; the mesh reaches `MARGIN` nodes beyond them.
        """
        self.reach((high - low) / self.spacing)
        origin = (low - MARGIN * self.spacing).astype(np.float32)
        return self._convolve(self._spread(Y, charges, origin)), origin

    def read(
        self,
        Y: Floats,
        charges: Floats,
        potential: Floats,
        origin: Floats,
        phi: Floats,
        gradient: Floats,
    ) -> None:
        """φ and ∇φ at points inside the mesh; each takes out `charges` times its own part."""
        inverse = np.float32(1 / self.spacing)
        work = _READ[self.dimensions]

        def block(first: int, last: int) -> None:
            work(Y, charges, origin, inverse, potential, self.corner, phi, gradient, first, last)

        map_blocks(block, row_blocks(len(Y), READ), n_jobs=self.n_jobs)

    def reach(self, spans: Floats64) -> None:
        """Grow the mesh if points this many nodes apart need it.

        By 5 % at least, so that it is rare: every size has a spectrum of its own.
        """
        needed = [nodes_for(span) for span in spans]
        if all(have >= want for have, want in zip(self.cells, needed, strict=True)):
            return
        self.resize(
            have if have >= want else int(want * (QUICK_GROWTH if want < QUICK_BELOW else GROWTH))
            for have, want in zip(self.cells, needed, strict=True)
        )

    def resize(self, cells: Iterable[int]) -> None:
        """Take at least this many nodes on each axis, and prepare the kernel's spectrum."""
        padded = [_fast_even(2 * count) for count in cells]
        half = tuple(length // 2 for length in padded)
        spectrum, corner = self._green(half)
        # all or nothing: an interrupt does not come between plain assignments
        self.padded, self.cells, self.spectrum, self.corner = padded, half, spectrum, corner

    def _green(self, halves: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Spectrum of step 3, and the corner of its inverse transform for step 5.

        K is even on every axis, so its spectrum is real and a cosine transform of one corner.
        """
        sq = np.zeros([half + 1 for half in halves])
        for axis, half in enumerate(halves):
            sq += _on_axis((np.arange(half + 1) * self.spacing) ** 2, axis, len(halves))
        base = 1 + sq / self.dof
        power = (self.dof + 1) / 2
        spectrum = fft.dctn(1 / base if power == 1 else base**-power, type=1, workers=1)
        corner = spectrum
        for axis, half in enumerate(halves):
            angles = np.pi * np.arange(half + 1) / half
            blur = (4 + 2 * np.cos(angles)) / 6  # spectrum of the cubic spline at the nodes
            spectrum /= _on_axis(blur**2, axis, len(halves))
        for axis, half in enumerate(halves):  # the inverse transform at nodes 0 … 3 only
            angles = np.pi * np.arange(half + 1) / half
            cosines = np.cos(np.outer(np.arange(4), angles)) / half
            cosines[:, [0, -1]] /= 2
            corner = np.moveaxis(np.tensordot(cosines, corner, axes=(1, axis)), 0, axis)
        for axis in range(len(halves) - 1):  # the real transform keeps half of the last axis only
            mirrored = np.flip(np.take(spectrum, range(1, halves[axis]), axis=axis), axis=axis)
            spectrum = np.concatenate([spectrum, mirrored], axis=axis)
        return spectrum.astype(np.float32), np.ascontiguousarray(corner, np.float32)

    def _spread(self, Y: Floats, charges: Floats, origin: Floats) -> Floats:
        """Step 1."""
        mesh = np.zeros(self.cells, np.float32)
        spread, inverse = _SPREAD[self.dimensions], np.float32(1 / self.spacing)
        blocks = row_blocks(len(Y), max(LEAST_BLOCK, -(-len(Y) // MOST_BLOCKS)))
        if len(blocks) == 1:
            spread(Y, charges, origin, inverse, mesh, 0, len(Y))
            return mesh

        def block(first: int, last: int) -> Floats:
            part = np.zeros(self.cells, np.float32)
            spread(Y, charges, origin, inverse, part, first, last)
            return part

        fold_blocks(block, blocks, mesh.__iadd__, n_jobs=self.n_jobs)
        return mesh

    def _convolve(self, charges: Floats) -> Floats:
        """Steps 2 to 4: all axes but the first within slabs, then the first, then back."""
        first, rest = self.padded[0], self.padded[1:]
        if not rest:
            values = fft.rfft(charges, n=first) * self.spectrum
            line: Floats = fft.irfft(values, n=first)[: self.cells[0]]
            return line
        axes = tuple(range(1, self.dimensions))
        half = np.empty((self.cells[0], *self.spectrum.shape[1:]), np.complex64)
        potential = np.empty(self.cells, np.float32)
        kept = tuple(slice(0, count) for count in self.cells[1:])

        def forward(start: int, stop: int) -> None:
            half[start:stop] = fft.rfftn(charges[start:stop], s=rest, axes=axes)

        def across(start: int, stop: int) -> None:
            values = fft.fft(half[:, start:stop], n=first, axis=0)
            values *= self.spectrum[:, start:stop]
            values = fft.ifft(values, axis=0, overwrite_x=True)
            half[:, start:stop] = values[: self.cells[0]]

        def back(start: int, stop: int) -> None:
            values = fft.irfftn(half[start:stop], s=rest, axes=axes)
            potential[start:stop] = values[(slice(None), *kept)]

        slabs = row_blocks(self.cells[0], max(1, GROUP // math.prod(half.shape[1:])))
        lines = row_blocks(half.shape[1], max(1, GROUP * half.shape[1] // half.size // 2))
        for work, groups in ((forward, slabs), (across, lines), (back, slabs)):
            map_blocks(work, groups, n_jobs=self.n_jobs)
        return potential


def _on_axis(values: NDArray[Any], axis: int, axes: int) -> NDArray[Any]:
    """`values` along one axis of an array with `axes` of them."""
    shape = [1] * axes
    shape[axis] = -1
    return values.reshape(shape)


def _fast_even(length: int) -> int:
    """The next even length that transforms fast."""
    length = fft.next_fast_len(length, real=True)
    while length % 2:
        length = fft.next_fast_len(length + 1, real=True)
    return int(length)


def nodes_for(span: float) -> int:
    """How many nodes an axis needs for points `span` spacings apart."""
    return math.ceil(span) + 2 * MARGIN + 1


@kernel
def _weights(u: np.float32) -> Any:
    """Cubic B-spline weights of the nodes at −1, 0, 1, 2 for a point at u in [0, 1)."""
    v = np.float32(1) - u
    six = np.float32(1 / 6)
    u2, v2 = u * u, v * v
    return (
        v2 * v * six,
        (np.float32(4) - np.float32(3) * u2 * (np.float32(2) - u)) * six,
        (np.float32(4) - np.float32(3) * v2 * (np.float32(2) - v)) * six,
        u2 * u * six,
    )


@kernel
def _slopes(u: np.float32) -> Any:
    """Their derivatives."""
    v = np.float32(1) - u
    half = np.float32(0.5)
    return (
        -v * v * half,
        u * (np.float32(3) * u - np.float32(4)) * half,
        -v * (np.float32(3) * v - np.float32(4)) * half,
        u * u * half,
    )


@kernel
def _spline(u: np.float32) -> Any:
    """Weights and their derivatives."""
    return _weights(u), _slopes(u)


@kernel
def _own(w: Any, s: Any) -> Any:
    """Autocorrelation of the weights at 0 … 3 (doubled beyond 0), and half of its derivative."""
    two = np.float32(2)
    return (
        w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3],
        two * (w[0] * w[1] + w[1] * w[2] + w[2] * w[3]),
        two * (w[0] * w[2] + w[1] * w[3]),
        two * (w[0] * w[3]),
    ), (
        w[0] * s[0] + w[1] * s[1] + w[2] * s[2] + w[3] * s[3],
        w[0] * s[1] + s[0] * w[1] + w[1] * s[2] + s[1] * w[2] + w[2] * s[3] + s[2] * w[3],
        w[0] * s[2] + s[0] * w[2] + w[1] * s[3] + s[1] * w[3],
        w[0] * s[3] + s[0] * w[3],
    )


@kernel
def _node(x: np.float32) -> Any:
    """The first of the four nodes that a point at x touches; unsigned, so it needs no test."""
    return np.uint64(x) - np.uint64(1)


@kernel
def _beyond(x: np.float32, node: Any) -> np.float32:
    """How far x lies beyond the second of its nodes, in [0, 1)."""
    return np.float32(x - np.float32(node) - np.float32(1))


@kernel
def _spread1(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats,
    first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x = (Y[i, 0] - origin[0]) * inverse
        a = _node(x)
        wx = _weights(_beyond(x, a))
        for p in range(4):
            mesh[a + np.uint64(p)] += charges[i] * wx[p]


@kernel
def _spread2(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats,
    first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = _node(x), _node(y)
        wx, wy = _weights(_beyond(x, a)), _weights(_beyond(y, b))
        for p in range(4):
            row = charges[i] * wx[p]
            for q in range(4):
                mesh[a + np.uint64(p), b + np.uint64(q)] += row * wy[q]


@kernel
def _spread3(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats,
    first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = _node(x), _node(y), _node(z)
        wx, wy = _weights(_beyond(x, a)), _weights(_beyond(y, b))
        wz = _weights(_beyond(z, c))
        for p in range(4):
            for q in range(4):
                row = charges[i] * wx[p] * wy[q]
                for r in range(4):
                    mesh[a + np.uint64(p), b + np.uint64(q), c + np.uint64(r)] += row * wz[r]


@kernel
def _read1(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x = (Y[i, 0] - origin[0]) * inverse
        a = _node(x)
        wx, sx = _spline(_beyond(x, a))
        ox, dx = _own(wx, sx)
        value = slope = np.float32(0)
        for p in range(4):
            node, own = mesh[a + np.uint64(p)], charges[i] * corner[p]
            value += wx[p] * node - ox[p] * own
            slope += sx[p] * node - dx[p] * own
        phi[i], gradient[i, 0] = value, slope * inverse


@kernel
def _read2(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = _node(x), _node(y)
        wx, sx = _spline(_beyond(x, a))
        wy, sy = _spline(_beyond(y, b))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        value = slope_x = slope_y = np.float32(0)
        for p in range(4):
            along = along_y = own = own_y = np.float32(0)
            for q in range(4):
                node = mesh[a + np.uint64(p), b + np.uint64(q)]
                along += wy[q] * node
                along_y += sy[q] * node
                own += oy[q] * corner[p, q]
                own_y += dy[q] * corner[p, q]
            own, own_y = charges[i] * own, charges[i] * own_y
            value += wx[p] * along - ox[p] * own
            slope_x += sx[p] * along - dx[p] * own
            slope_y += wx[p] * along_y - ox[p] * own_y
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse


@kernel
def _read3(
    Y: Floats, charges: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(np.uint64(first), np.uint64(last)):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = _node(x), _node(y), _node(z)
        wx, sx = _spline(_beyond(x, a))
        wy, sy = _spline(_beyond(y, b))
        wz, sz = _spline(_beyond(z, c))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        oz, dz = _own(wz, sz)
        value = slope_x = slope_y = slope_z = np.float32(0)
        for p in range(4):
            for q in range(4):
                along = along_z = own = own_z = np.float32(0)
                for r in range(4):
                    node = mesh[a + np.uint64(p), b + np.uint64(q), c + np.uint64(r)]
                    along += wz[r] * node
                    along_z += sz[r] * node
                    own += oz[r] * corner[p, q, r]
                    own_z += dz[r] * corner[p, q, r]
                own, own_z = charges[i] * own, charges[i] * own_z
                value += wx[p] * wy[q] * along - ox[p] * oy[q] * own
                slope_x += sx[p] * wy[q] * along - dx[p] * oy[q] * own
                slope_y += wx[p] * sy[q] * along - ox[p] * dy[q] * own
                slope_z += wx[p] * wy[q] * along_z - ox[p] * oy[q] * own_z
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse
        gradient[i, 2] = slope_z * inverse


_SPREAD: dict[int, Any] = {1: _spread1, 2: _spread2, 3: _spread3}
_READ: dict[int, Any] = {1: _read1, 2: _read2, 3: _read3}
