"""Positions in one, two or three dimensions, projected on a drawing."""

from typing import Any

import numpy as np

from gnomon.errors import refuse
from gnomon.typing import Array

__all__ = ["read_positions", "seen"]

STRIP = 0.15  # height of the strip that points on a line are spread over, as a share of its length


def read_positions(positions: Any, name: str = "positions") -> Array:
    """Check the positions of a map, or of a fitted model's map: (n, 1), (n, 2) or (n, 3)."""
    Y = np.asarray(getattr(positions, "embedding_", positions), dtype=np.float64)
    if Y.ndim != 2 or not 1 <= Y.shape[1] <= 3 or not len(Y):
        refuse(name, "have shape (n, 1), (n, 2) or (n, 3) with n ≥ 1", f"shape {Y.shape}")
    if not np.isfinite(Y).all():
        refuse(name, "be finite", "NaN or infinity among them")
    return Y


def seen(Y: Array, turn: tuple[float, float]) -> tuple[Array, Array]:
    """Project points on the drawing (n, 2); also return how near each is.

    Points on a line are spread over a strip; points in space are rotated about the vertical axis,
    and upwards, by the degrees of `turn`.
    """
    n, d = Y.shape
    if d == 1:
        length = float(np.ptp(Y)) or 1.0
        spread = np.random.default_rng(0).uniform(-0.5, 0.5, n) * STRIP * length
        return np.column_stack([Y[:, 0], spread]), np.zeros(n)
    if d == 2:
        return Y, np.zeros(n)
    about, up = np.radians(turn)
    x = np.cos(about) * Y[:, 0] - np.sin(about) * Y[:, 1]
    away = np.sin(about) * Y[:, 0] + np.cos(about) * Y[:, 1]
    y = np.cos(up) * Y[:, 2] + np.sin(up) * away
    return np.column_stack([x, y]), np.sin(up) * Y[:, 2] - np.cos(up) * away
