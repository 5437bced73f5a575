"""Pixel arrays as data URLs, for the page's sections."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.colours import DIVERGING, LIGHT
from gnomon.report.pictures import png

__all__ = ["plain_picture", "signed_picture"]

# The diverging ramp of the charts, from negative through zero to positive.
_RAMP = np.array(
    [[int(LIGHT[f"d{i}"][j : j + 2], 16) for j in (1, 3, 5)] for i in range(DIVERGING)], float
)


def plain_picture(picture: NDArray[Any], low: float, high: float) -> str:
    """Picture (height, width, 1 or 3) with black at `low` and white at `high`."""
    share = (np.asarray(picture, np.float64) - low) / ((high - low) or 1.0)
    return _address(np.rint(255 * share.clip(0, 1)).astype(np.uint8))


def signed_picture(picture: NDArray[Any]) -> str:
    """Signed numbers (height, width, 1 or 3) in two colours, channels averaged."""
    values = np.asarray(picture, np.float64).mean(axis=2)
    largest = float(np.abs(values).max()) or 1.0
    at = (values / largest + 1) / 2 * (DIVERGING - 1)
    steps = np.arange(DIVERGING)
    mixed = np.stack([np.interp(at, steps, _RAMP[:, channel]) for channel in range(3)], axis=2)
    return _address(np.rint(mixed).astype(np.uint8))


def _address(image: NDArray[np.uint8]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(image)).decode("ascii")
