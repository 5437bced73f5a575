"""Points along a space-filling curve, so that neighbours in the map are neighbours in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.typing import Floats, Floats64

ROWS = 16_384  # points at a time
BITS = 16  # of the curve, on each axis; fewer where there are more than four

__all__ = ["along_curve"]


def along_curve(Y: Floats, low: Floats64, high: Floats64, n_jobs: int | None) -> NDArray[np.intp]:
    """The order of the points along a Morton curve between `low` and `high`."""
    codes = np.empty(len(Y), np.uint64)
    span = np.maximum(high - low, 1e-300)
    bits = min(BITS, 64 // Y.shape[1])
    scale = (2**bits - 1) / span

    def block(start: int, stop: int) -> None:
        _interleave(Y, low, scale, bits, codes, start, stop)

    map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=n_jobs)
    return np.argsort(codes, kind="stable")


@kernel
def _interleave(
    Y: Floats, low: Floats64, scale: Floats64, bits: int, codes: Any, start: int, stop: int
) -> None:
    """Morton code: the bits of the coordinates, one of each axis in turn."""
    axes = Y.shape[1]
    for i in range(start, stop):
        code = np.uint64(0)
        for c in range(axes):
            place = np.uint64((Y[i, c] - low[c]) * scale[c])
            for bit in range(bits):
                on = (place >> np.uint64(bit)) & np.uint64(1)
                code |= on << np.uint64(bit * axes + c)
        codes[i] = code
