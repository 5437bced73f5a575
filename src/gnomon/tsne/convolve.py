"""Charges on the nodes of a mesh → the potential φ at the nodes, by Fourier transforms.

A transform is periodic: so that copies of the map do not meet, the mesh would be doubled with zeros
on every axis, since K reaches far. Instead K is split. With p = (α+1)/2 and u = 1 + r²/α,

    K = u^−p = 1/Γ(p) ∫ t^(p−1) e^(−t u) dt

is a mixture of Gaussians. Those narrower than that of t = T are the near part, K·Q(p, T u), which
ends after `REACH` nodes, so that this many zeros are enough. The others are the far part,
K·P(p, T u), so smooth that every fourth node carries it; there the doubling costs little. (P and Q
are the regularised incomplete gamma functions.) T follows from the width of its Gaussian, in nodes.

The coarse mesh costs nothing at the points: a cubic B-spline four times as wide is a sum of 13
narrow ones, so charges go from the fine nodes to the coarse ones, and φ comes back, exactly as if
each point had been spread on the coarse mesh and had read from it.

Each part: Fourier transform; times the spectrum of K on the mesh, divided by the squared spectrum
of the sampled spline on each axis (spreading and reading blur once each); and back.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats32, Floats64

Cells = tuple[int, ...]

# Time at the same force error as one part (decision 0018): `benchmarks/tsne_force.py` measures the
# error, `benchmarks/tsne_crossover.py` the time.
REACH = 20  # nodes after which the near part has ended
COARSER = 4  # spacing of the far mesh, in nodes of the near one
WIDTH = 5.0  # standard deviation of the Gaussian that divides near from far, in nodes
LEAST_NODES = 25_000  # for which two parts cost less than one
FINEST = 0.25  # spacing, in widths of K: below it one coarse mesh would be the less exact
GROUP = 2**17  # nodes transformed at a time
TOGETHER = 2**16  # nodes from which on both parts are transformed at the same time
# A spline four times as wide, as a sum of 13 narrow ones.
MASK = (np.array([1, 4, 10, 20, 31, 40, 44, 40, 31, 20, 10, 4, 1]) / 64).astype(np.float32)

NOTHING = 40.0  # exponent of a Gaussian that has ended

__all__ = ["Convolution", "kernel_width", "padded_nodes"]


class Convolution:
    """Everything for one size of mesh, one kernel and one spacing.

    Parameters
    ----------
    cells : sequence of int
        Nodes wanted on each axis.
    dof, spacing : float
    n_jobs : int, optional

    Attributes
    ----------
    cells : tuple of int
        Nodes on each axis: as many as requested, or some more where that transforms faster.
    shape : tuple of int
        Of the array of charges. All axes but the first hold zeros beyond `cells`.
    corner : array (4, …)
        First nodes of the Green function: what a point does to itself.
    """

    def __init__(
        self, cells: Sequence[int], dof: float, spacing: float, n_jobs: int | None = None
    ) -> None:
        self.n_jobs = n_jobs
        self.far: _Periodic | None = None
        padded = [_fast_even(2 * count) for count in cells]
        self.cells = tuple(length // 2 for length in padded)
        # decided by what the mesh would have, so that its own size gives the same mesh again
        if not has_two_parts(self.cells, dof, spacing):
            self.near = _Periodic(self.cells, padded, partial(_whole, dof), dof, spacing)
            self.corner = self.near.corner
        else:
            border = dof / (2 * (WIDTH * spacing) ** 2)
            padded = [_fast_even(count + REACH) for count in cells]
            self.cells = tuple(length - REACH for length in padded)
            self.near = _Periodic(self.cells, padded, partial(_near, dof, border), dof, spacing)
            coarse = tuple((count + 5) // COARSER + 2 for count in self.cells)
            doubled = [_fast_even(2 * count) for count in coarse]
            far = partial(_far, dof, border)
            self.far = _Periodic(coarse, doubled, far, dof, COARSER * spacing)
            # Smooth as it is, a point's own far part is nearly the same wherever the point stands:
            # what is left is a push of 2e-4, that of one other point 20 units away.
            self.corner = self.near.corner + np.float32(far(np.ones(1))[0])
        self.shape = self.near.shape

    def potential(self, charges: Floats32) -> Floats32:
        """φ at the nodes; it takes the place of the charges."""
        if self.far is None:
            return self.near.convolve(charges, self.n_jobs)
        parts = (self.near, charges), (self.far, self._to_coarse(charges))

        def part(which: int, _: int) -> Floats32:
            convolution, values = parts[which]
            return convolution.convolve(values, self.n_jobs)

        at_once = TOGETHER <= charges.size < 2 * GROUP  # beyond, each is shared out by itself
        if at_once:
            potential, far = map_blocks(part, row_blocks(2, 1), n_jobs=self.n_jobs)
        else:
            potential, far = part(0, 1), part(1, 2)
        self._add_from_coarse(far, potential)
        return potential

    def release(self) -> None:
        """Give back the memory that was kept for the next potential."""
        for part in (self.near, self.far):
            if part is not None:
                part.half = None

    def _to_coarse(self, values: Floats32) -> Floats32:
        """Charges of every fourth node: the first axis, which then becomes the last, and so on."""
        assert self.far is not None
        for axis, cells in enumerate(self.cells):
            fine = values.reshape(self.shape[axis], -1)
            coarse = np.zeros((self.far.shape[axis], fine.shape[1]), np.float32)
            _restrict(fine, MASK, coarse, cells)
            values = np.ascontiguousarray(coarse.T)
        return values.reshape(self.far.shape)

    def _add_from_coarse(self, values: Floats32, potential: Floats32) -> None:
        """Add φ of every fourth node: the last axis becomes the first, and so on."""
        assert self.far is not None
        for axis in reversed(range(len(self.cells))):
            coarse = np.ascontiguousarray(values.reshape(-1, self.far.shape[axis]).T)
            if axis == 0:
                fine = potential.reshape(len(potential), -1)
            else:
                fine = np.zeros((self.shape[axis], coarse.shape[1]), np.float32)
            _prolong(coarse, MASK, fine, self.cells[axis])
            values = fine


class _Periodic:
    """One part of K on one mesh, with enough zeros beyond `cells` to keep its copies apart."""

    def __init__(
        self,
        cells: Cells,
        padded: Sequence[int],
        kernel: Callable[[Floats64], Floats64],
        dof: float,
        spacing: float,
    ) -> None:
        self.cells, self.padded = cells, tuple(padded)
        self.shape = (cells[0], *self.padded[1:])
        self.groups = max(1, math.prod(self.shape) // GROUP)
        self.half: NDArray[np.complex64] | None = None  # kept: fresh memory costs as much as an FFT
        self.spectrum, self.corner = _green([n // 2 for n in padded], kernel, dof, spacing)

    def convolve(self, charges: Floats32, n_jobs: int | None) -> Floats32:
        """All axes but the first within slabs, then the first, then back."""
        rows, first, rest = self.cells[0], self.padded[0], self.padded[1:]
        if not rest:
            values = fft.rfft(charges, n=first) * self.spectrum
            line: Floats32 = fft.irfft(values, n=first)[:rows]
            return line
        axes = tuple(range(1, charges.ndim))
        if self.half is None:
            self.half = np.empty(self.spectrum.shape, np.complex64)
        half = self.half
        half[rows:] = 0

        def forward(start: int, stop: int) -> None:
            half[start:stop] = fft.rfftn(charges[start:stop], axes=axes)

        def across(start: int, stop: int) -> None:
            values = fft.fft(half[:, start:stop], axis=0, overwrite_x=True)
            values *= self.spectrum[:, start:stop]
            values = fft.ifft(values, axis=0, overwrite_x=True)
            if not np.may_share_memory(values, half):
                half[:rows, start:stop] = values[:rows]

        def back(start: int, stop: int) -> None:
            charges[start:stop] = fft.irfftn(half[start:stop], s=rest, axes=axes)

        slabs = row_blocks(rows, -(-rows // self.groups))
        lines = row_blocks(half.shape[1], -(-half.shape[1] // self.groups))
        for work, blocks in ((forward, slabs), (across, lines), (back, slabs)):
            map_blocks(work, blocks, n_jobs=n_jobs)
        return charges


def has_two_parts(cells: Sequence[float], dof: float, spacing: float) -> bool:
    """Whether K is split: in two dimensions or more, on meshes that are large and not very fine."""
    wide = spacing >= FINEST * kernel_width(dof)
    return len(cells) > 1 and min(cells) > REACH and math.prod(cells) >= LEAST_NODES and wide


def padded_nodes(cells: Sequence[float], dof: float, spacing: float) -> float:
    """How many nodes are transformed for a mesh with so many on each axis."""
    if not has_two_parts(cells, dof, spacing):
        return math.prod(2.0 * count for count in cells)
    near = math.prod(float(count + REACH) for count in cells)
    return near + math.prod(2.0 * (count / COARSER + 3) for count in cells)


def kernel_width(dof: float) -> float:
    """√(2α/(α+1)): the width of K, 1 at α = 1. Mesh spacings scale with it."""
    return math.sqrt(2 * dof / (dof + 1))


def _whole(dof: float, u: Floats64) -> Floats64:
    """K, of u = 1 + r²/α."""
    power = (dof + 1) / 2
    return 1 / u if power == 1 else u**-power


def _far(dof: float, border: float, u: Floats64) -> Floats64:
    """Sum of the kernel's Gaussians wider than the border."""
    return _whole(dof, u) - _near(dof, border, u)


def _near(dof: float, border: float, u: Floats64) -> Floats64:
    """Sum of the kernel's Gaussians narrower than the border; zero where they have ended."""
    values, here = np.zeros_like(u), border * u < NOTHING
    u = u[here]
    values[here] = _whole(dof, u) * special.gammaincc((dof + 1) / 2, border * u)
    return values


def _green(
    halves: Sequence[int], kernel: Callable[[Floats64], Floats64], dof: float, spacing: float
) -> tuple[Floats32, Floats32]:
    """Spectrum of a part of K over those of the spline, and the corner of its inverse transform.

    K is even on every axis, so its spectrum is real and a cosine transform of one corner.
    """
    sq = np.zeros([half + 1 for half in halves])
    for axis, half in enumerate(halves):
        sq += _on_axis((np.arange(half + 1) * spacing) ** 2, axis, len(halves))
    spectrum = fft.dctn(kernel(1 + sq / dof), type=1, workers=1)
    for axis, half in enumerate(halves):
        angles = np.pi * np.arange(half + 1) / half
        blur = (4 + 2 * np.cos(angles)) / 6  # spectrum of the cubic spline at the nodes
        spectrum /= _on_axis(blur**2, axis, len(halves))
    corner = spectrum
    for axis, half in enumerate(halves):  # the inverse transform at nodes 0 … 3 only
        angles = np.pi * np.arange(half + 1) / half
        cosines = np.cos(np.outer(np.arange(4), angles)) / half
        cosines[:, [0, -1]] /= 2
        corner = np.moveaxis(np.tensordot(cosines, corner, axes=(1, axis)), 0, axis)
    for axis in range(len(halves) - 1):  # the real transform keeps half of the last axis only
        mirrored = np.flip(np.take(spectrum, range(1, halves[axis]), axis=axis), axis=axis)
        spectrum = np.concatenate([spectrum, mirrored], axis=axis)
    return spectrum.astype(np.float32), np.ascontiguousarray(corner, np.float32)


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


@kernel
def _restrict(fine: Floats32, mask: Floats32, coarse: Floats32, cells: int) -> None:
    """Coarse row k, at fine row 4 (k − 1), gathers from the 6 fine rows on either side."""
    for k in range((cells + 5) // 4 + 2):
        middle = 4 * (k - 1)
        for i in range(max(middle - 6, 0), min(middle + 7, cells)):
            weight, to, row = mask[i - middle + 6], coarse[k], fine[i]
            for b in range(row.size):
                to[b] += weight * row[b]


@kernel
def _prolong(coarse: Floats32, mask: Floats32, fine: Floats32, cells: int) -> None:
    """Interpolate: add to every fine row from the coarse rows around it, with the same weights."""
    for i in range(cells):
        for k in range((i + 1) // 4, (i + 6) // 4 + 2):
            weight, to, row = mask[i - 4 * (k - 1) + 6], fine[i], coarse[k]
            for b in range(row.size):
                to[b] += weight * row[b]
