"""Features that are pixels: the shape of the picture of a row.

Pixels are recognised by their names (``pixel_3_7``: line and column); or, if the columns have no
names, are integers from 0 to 255 or fractions from 0 to 1, fill a square (grey,
or three times: red, green and blue), and adjacent pixels in that square are much more similar than
others. `parse_pixels` parses the user's option instead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.names import stem_of
from gnomon.errors import refuse

__all__ = ["Pixels", "find_pixels", "parse_pixels"]

PROBE_ROWS = 500
LEAST_SIDE = 8
LEAST_ALIKE = 0.5  # mean square difference of adjacent pixels, relative to unrelated pixels
BLANK = 0.3  # share of pixels with the smallest value from which pictures are ink on paper

_PLACE = re.compile(r"(.*?)(\d+)[_x,. -]+(\d+)")
_SHAPE = re.compile(r"(\d+)x(\d+)(?:x(\d+))?(,F)?", re.IGNORECASE)


@dataclass(frozen=True)
class Pixels:
    """How the columns of a table form a picture.

    Attributes
    ----------
    height, width : int
    channels : int
        1 for grey, 3 for red, green and blue.
    planes : bool
        Whether all of red comes before all of green, instead of pixel by pixel.
    by_column : bool
        Whether pixels go down the columns of the picture first.
    """

    height: int
    width: int
    channels: int = 1
    planes: bool = False
    by_column: bool = False

    @property
    def size(self) -> int:
        """Numbers per picture."""
        return self.height * self.width * self.channels

    def pictures(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows (n, d) as pictures (n, height, width, channels)."""
        n = len(X)
        if self.planes or self.channels == 1:
            planes = X.reshape(n, self.channels, -1)
        else:
            planes = X.reshape(n, -1, self.channels).transpose(0, 2, 1)
        if self.by_column:
            shaped = planes.reshape(n, self.channels, self.width, self.height)
            return np.ascontiguousarray(shaped.transpose(0, 3, 2, 1))
        shaped = planes.reshape(n, self.channels, self.height, self.width)
        return np.ascontiguousarray(shaped.transpose(0, 2, 3, 1))

    def __str__(self) -> str:
        kind = "grey" if self.channels == 1 else "colour"
        return f"{kind} pictures of {self.height} × {self.width} pixels"


def parse_pixels(text: str, d: int) -> Pixels | None:
    """Parse ``28x28``, ``32x32x3``, ``3x32x32`` (by planes), ``,F`` (by columns), or ``none``."""
    if text.strip().lower() == "none":
        return None
    found = _SHAPE.fullmatch(text.strip())
    if found is None:
        refuse("pixels", "be HEIGHTxWIDTH, with x3 behind or 3x before it for colours", text)
    sides = [int(side) for side in found.groups()[:3] if side is not None]
    by_column = found.group(4) is not None
    if len(sides) == 3 and sides[0] == 3 and sides[2] != 3:
        pixels = Pixels(sides[1], sides[2], 3, planes=True, by_column=by_column)
    else:
        channels = sides[2] if len(sides) == 3 else 1
        pixels = Pixels(sides[0], sides[1], channels, by_column=by_column)
    if pixels.channels not in (1, 3) or pixels.size != d or 0 in sides:
        refuse("pixels", f"fit the {d:,} columns, as 1 or 3 numbers a pixel", text)
    return pixels


def find_pixels(names: Sequence[str], X: NDArray[Any]) -> Pixels | None:
    """Recognise pixels in the columns; None if they are not pixels."""
    d = len(names)
    named = _by_name(names)
    if named is not None:
        return named
    stems = {stem_of(name) for name in names}
    if len(stems) != 1 or stems == {None} or d < LEAST_SIDE**2:
        return None
    some = np.asarray(X[:: max(1, len(X) // PROBE_ROWS)][:PROBE_ROWS], np.float64)
    low, high = float(some.min()), float(some.max())
    whole = bool((some == np.rint(some)).all())
    if not (low >= 0 and high > low and (high <= 255 if whole else high <= 1)):
        return None
    found = [shape for shape in _squares(d) if _roughness(shape.pictures(some)) < LEAST_ALIKE]
    return min(found, key=lambda shape: _roughness(shape.pictures(some)), default=None)


def _by_name(names: Sequence[str]) -> Pixels | None:
    """Recognise ``pixel_0_0`` … in the order of lines or of columns."""
    places = [_PLACE.fullmatch(name.strip()) for name in names]
    if len(names) < LEAST_SIDE or any(place is None for place in places):
        return None
    if len({place.group(1) for place in places if place}) != 1:
        return None
    at = np.array([(int(p.group(2)), int(p.group(3))) for p in places if p])
    at -= at.min(axis=0)
    height, width = (at.max(axis=0) + 1).tolist()
    if height * width != len(names):
        return None
    lines = np.stack(np.divmod(np.arange(len(names)), width), axis=1)
    if (at == lines).all():
        return Pixels(height, width)
    columns = np.stack(np.divmod(np.arange(len(names)), height), axis=1)[:, ::-1]
    return Pixels(height, width, by_column=True) if (at == columns).all() else None


def _squares(d: int) -> list[Pixels]:
    side = round(d**0.5)
    if side * side == d:
        return [Pixels(side, side)]
    side = round((d / 3) ** 0.5)
    if 3 * side * side != d or side < LEAST_SIDE:
        return []
    return [Pixels(side, side, 3), Pixels(side, side, 3, planes=True)]


def _roughness(pictures: NDArray[Any]) -> float:
    """Mean square difference of adjacent pixels, relative to that of unrelated pixels."""
    spread = 2 * float(pictures.var())
    across = float((np.diff(pictures, axis=2) ** 2).mean())
    down = float((np.diff(pictures, axis=1) ** 2).mean())
    return max(across, down) / spread if spread > 0 else np.inf
