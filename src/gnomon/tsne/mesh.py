"""The push between all points, from one charge each on a regular mesh and two FFTs.

The whole repulsive force is the gradient of one scalar field,

    φ(y) = Σ_j K(|y − y_j|²),   Σ_j K w (y_i − y_j) = −(α/(α+1)) ∇φ(y_i),   Z = Σ_i φ(y_i) − n,

so one unit charge a point is enough, for any degrees of freedom α and any dimension:

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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from gnomon.kernels import kernel
from gnomon.parallel import fold_blocks, map_blocks, row_blocks

Floats = NDArray[np.float32]

BLOCK = 16_384  # points spread into one mesh
READ = 4096  # points read at a time
LINES = 64  # one-dimensional transforms at a time
MARGIN = 3  # nodes beyond the outermost points
GROWTH = 1.05

__all__ = ["Mesh"]


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
        self.spectrum: Floats = np.empty(0, np.float32)
        self.corner: Floats = np.empty(0, np.float32)

    def field(self, Y: Floats) -> tuple[Floats, Floats]:
        """φ(y_i) without the point itself, shape (n,), and ∇φ(y_i), shape (n, dimensions)."""
        low, high = Y.min(axis=0).astype(np.float64), Y.max(axis=0).astype(np.float64)
        self._fit((high - low) / self.spacing)
        origin = low - MARGIN * self.spacing
        potential = self._convolve(self._spread(Y, origin))
        phi, gradient = np.empty(len(Y), np.float32), np.empty(Y.shape, np.float32)
        inverse = np.float32(1 / self.spacing)
        start = origin.astype(np.float32)
        read = _READ[self.dimensions]

        def block(first: int, last: int) -> None:
            read(Y, start, inverse, potential, self.corner, phi, gradient, first, last)

        map_blocks(block, row_blocks(len(Y), READ), n_jobs=self.n_jobs)
        return phi, gradient

    def _fit(self, spans: NDArray[np.float64]) -> None:
        """Grow the mesh if the points need it; rarely, since every size has a spectrum."""
        needed = [int(np.ceil(span)) + 2 * MARGIN + 1 for span in spans]
        if all(have >= want for have, want in zip(self.cells, needed, strict=True)):
            return
        grown = [
            have if have >= want else int(want * GROWTH)
            for have, want in zip(self.cells, needed, strict=True)
        ]
        self.padded = [fft.next_fast_len(2 * cells, real=True) for cells in grown]
        self.cells = tuple(padded // 2 for padded in self.padded)
        self.spectrum, self.corner = self._green(self.padded)

    def _green(self, padded: list[int]) -> tuple[Floats, Floats]:
        """Spectrum of step 3, and the corner of its inverse transform for step 5."""
        sq = np.zeros(padded)
        for axis, length in enumerate(padded):
            steps = np.minimum(np.arange(length), length - np.arange(length)) * self.spacing
            shape = [1] * len(padded)
            shape[axis] = length
            sq = sq + (steps**2).reshape(shape)
        spectrum = fft.rfftn((1 + sq / self.dof) ** (-(self.dof + 1) / 2)).real
        for axis, length in enumerate(padded):
            count = spectrum.shape[axis]
            angles = 2 * np.pi * np.arange(count) / length
            blur = (4 + 2 * np.cos(angles)) / 6  # spectrum of the cubic spline at the nodes
            shape = [1] * len(padded)
            shape[axis] = count
            spectrum = spectrum / (blur**2).reshape(shape)
        green = fft.irfftn(spectrum, s=padded)
        corner = green[tuple(slice(0, 4) for _ in padded)]
        return spectrum.astype(np.float32), np.ascontiguousarray(corner, np.float32)

    def _spread(self, Y: Floats, origin: NDArray[np.float64]) -> Floats:
        """Step 1."""
        charges = np.zeros(self.cells, np.float32)
        spread, start = _SPREAD[self.dimensions], origin.astype(np.float32)
        inverse = np.float32(1 / self.spacing)

        def block(first: int, last: int) -> Floats:
            part = np.zeros(self.cells, np.float32)
            spread(Y, start, inverse, part, first, last)
            return part

        fold_blocks(block, row_blocks(len(Y), BLOCK), charges.__iadd__, n_jobs=self.n_jobs)
        return charges

    def _convolve(self, charges: Floats) -> Floats:
        """Steps 2 to 4, an axis at a time: the last forwards first, so that zeros stay out."""
        last = self.dimensions - 1
        values = self._lines(fft.rfft, charges, last, self.padded[last])
        for axis in range(last - 1, -1, -1):
            values = self._lines(fft.fft, values, axis, self.padded[axis])
        values *= self.spectrum
        for axis in range(last):
            values = self._lines(fft.ifft, values, axis, None, keep=self.cells[axis])
        values = self._lines(fft.irfft, values, last, self.padded[last], keep=self.cells[last])
        return np.ascontiguousarray(values)

    def _lines(
        self, transform: Any, values: Any, axis: int, length: int | None, keep: int | None = None
    ) -> Any:
        """One-dimensional transforms along `axis`, in fixed groups of lines of another axis."""
        if self.dimensions == 1:
            return transform(values, n=length, axis=0)[:keep]
        other = 0 if axis != 0 else 1
        kept = slice(None, keep)

        def group(start: int, stop: int) -> Any:
            part = [slice(None)] * self.dimensions
            part[other] = slice(start, stop)
            done = transform(values[tuple(part)], n=length, axis=axis, workers=1)
            cut = [slice(None)] * self.dimensions
            cut[axis] = kept
            return done[tuple(cut)]

        groups = map_blocks(group, row_blocks(values.shape[other], LINES), n_jobs=self.n_jobs)
        return np.concatenate(groups, axis=other)


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
def _spread1(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, first: int, last: int
) -> None:
    for i in range(first, last):
        x = (Y[i, 0] - origin[0]) * inverse
        a = int(x)
        wx = _weights(x - np.float32(a))
        for p in range(4):
            mesh[a - 1 + p] += wx[p]


@kernel
def _spread2(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, first: int, last: int
) -> None:
    for i in range(first, last):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = int(x), int(y)
        wx, wy = _weights(x - np.float32(a)), _weights(y - np.float32(b))
        for p in range(4):
            for q in range(4):
                mesh[a - 1 + p, b - 1 + q] += wx[p] * wy[q]


@kernel
def _spread3(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, first: int, last: int
) -> None:
    for i in range(first, last):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = int(x), int(y), int(z)
        wx, wy = _weights(x - np.float32(a)), _weights(y - np.float32(b))
        wz = _weights(z - np.float32(c))
        for p in range(4):
            for q in range(4):
                for r in range(4):
                    mesh[a - 1 + p, b - 1 + q, c - 1 + r] += wx[p] * wy[q] * wz[r]


@kernel
def _read1(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(first, last):
        x = (Y[i, 0] - origin[0]) * inverse
        a = int(x)
        wx, sx = _weights(x - np.float32(a)), _slopes(x - np.float32(a))
        ox, dx = _own(wx, sx)
        value = slope = np.float32(0)
        for p in range(4):
            node = mesh[a - 1 + p]
            value += wx[p] * node - ox[p] * corner[p]
            slope += sx[p] * node - dx[p] * corner[p]
        phi[i], gradient[i, 0] = value, slope * inverse


@kernel
def _read2(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(first, last):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        a, b = int(x), int(y)
        wx, sx = _weights(x - np.float32(a)), _slopes(x - np.float32(a))
        wy, sy = _weights(y - np.float32(b)), _slopes(y - np.float32(b))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        value = slope_x = slope_y = np.float32(0)
        for p in range(4):
            for q in range(4):
                node, own = mesh[a - 1 + p, b - 1 + q], corner[p, q]
                value += wx[p] * wy[q] * node - ox[p] * oy[q] * own
                slope_x += sx[p] * wy[q] * node - dx[p] * oy[q] * own
                slope_y += wx[p] * sy[q] * node - ox[p] * dy[q] * own
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse


@kernel
def _read3(
    Y: Floats, origin: Floats, inverse: np.float32, mesh: Floats, corner: Floats,
    phi: Floats, gradient: Floats, first: int, last: int,
) -> None:  # fmt: skip
    for i in range(first, last):
        x, y = (Y[i, 0] - origin[0]) * inverse, (Y[i, 1] - origin[1]) * inverse
        z = (Y[i, 2] - origin[2]) * inverse
        a, b, c = int(x), int(y), int(z)
        wx, sx = _weights(x - np.float32(a)), _slopes(x - np.float32(a))
        wy, sy = _weights(y - np.float32(b)), _slopes(y - np.float32(b))
        wz, sz = _weights(z - np.float32(c)), _slopes(z - np.float32(c))
        ox, dx = _own(wx, sx)
        oy, dy = _own(wy, sy)
        oz, dz = _own(wz, sz)
        value = slope_x = slope_y = slope_z = np.float32(0)
        for p in range(4):
            for q in range(4):
                for r in range(4):
                    node, own = mesh[a - 1 + p, b - 1 + q, c - 1 + r], corner[p, q, r]
                    value += wx[p] * wy[q] * wz[r] * node - ox[p] * oy[q] * oz[r] * own
                    slope_x += sx[p] * wy[q] * wz[r] * node - dx[p] * oy[q] * oz[r] * own
                    slope_y += wx[p] * sy[q] * wz[r] * node - ox[p] * dy[q] * oz[r] * own
                    slope_z += wx[p] * wy[q] * sz[r] * node - ox[p] * oy[q] * dz[r] * own
        phi[i] = value
        gradient[i, 0], gradient[i, 1] = slope_x * inverse, slope_y * inverse
        gradient[i, 2] = slope_z * inverse


_SPREAD: dict[int, Any] = {1: _spread1, 2: _spread2, 3: _spread3}
_READ: dict[int, Any] = {1: _read1, 2: _read2, 3: _read3}
