"""Pictures of the rows, as sheets of small tiles within a budget.

Pixels of a table are written as PNG here. Given pictures (bytes, or files) are decoded by
Pillow: only PNG, JPEG, WebP and GIF, never SVG; their size is checked before they are decoded;
and they are encoded again, as WebP, so that the page holds nothing but the visible image.

If not all rows fit at full size, tiles have fewer levels of grey or half the size; if
that is not enough, only a sample of rows spread over the map has pictures.
"""

import base64
import io
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.words import count
from gnomon.errors import ParameterError
from gnomon.report.encode import Part, row_numbers
from gnomon.report.pixels import BLANK, PROBE_ROWS, Pixels

__all__ = [
    "GivenPictures",
    "OrderedPictures",
    "PixelPictures",
    "RowPictures",
    "pack_pictures",
    "png",
]

SHEET = 4096  # pixels, the longest side of a sheet
LARGEST_TILE = 64
LEAST_TILES = 20  # with room for fewer, no pictures are shown
PROBED = 300  # tiles from which the size of all is estimated
MOST_PIXELS = 50_000_000  # pixels of the largest picture that is decoded
MOST_BYTES = 50_000_000  # bytes of the largest file
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
QUALITY = 78  # quality of WebP

Tiles = NDArray[np.uint8]  # (n, height, width, 1 or 3)


@dataclass(frozen=True)
class Variant:
    """How tiles are made: the factor of shrinking, and the number of levels."""

    factor: int = 1
    levels: int = 256


class RowPictures(Protocol):
    """A source of pictures of rows."""

    @property
    def kind(self) -> str:
        """Kind of the pictures: ink, which takes any colour, or photo."""
        ...

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows that have a picture."""
        ...

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Variants of tiles, the best first."""
        ...

    def tiles(self, rows: NDArray[np.int64], variant: Variant) -> Tiles:
        """Tiles of some rows."""
        ...

    def encode(self, sheet: Tiles) -> tuple[str, bytes]:
        """Encode a sheet (height, width, channels) as an image; return its type and bytes."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about pictures that could not be used."""
        ...


class PixelPictures:
    """Rows whose features are pixels."""

    notes: tuple[str, ...] = ()

    def __init__(self, X: NDArray[Any], pixels: Pixels) -> None:
        self.X, self.pixels = X, pixels
        self.low, self.high = float(X.min()), float(X.max())
        some = X[:: max(1, len(X) // PROBE_ROWS)][:PROBE_ROWS]
        ink = pixels.channels == 1 and float((some == self.low).mean()) >= BLANK
        self.kind = "ink" if ink else "photo"

    @property
    def rows(self) -> NDArray[np.int64]:
        """All rows."""
        return np.arange(len(self.X))

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Variants of tiles, full size first; no tile is longer than 64 pixels."""
        longest = max(self.pixels.height, self.pixels.width)
        first = -(-longest // LARGEST_TILE)
        half = 2 * first if longest >= 2 * 12 * first else first
        if self.kind == "ink":
            return Variant(first), Variant(first, 16), Variant(half, 16)
        return Variant(first), Variant(half)

    def tiles(self, rows: NDArray[np.int64], variant: Variant) -> Tiles:
        """Tiles scaled from the smallest (0) to the largest number (255) of the table."""
        shown = self.pixels.pictures(np.asarray(self.X[rows], np.float32))
        shown = _shrunk(shown, variant.factor)
        share = (shown - self.low) / ((self.high - self.low) or 1.0)
        levels = variant.levels - 1
        return np.rint(np.rint(share * levels) * (255 / levels)).astype(np.uint8)

    def encode(self, sheet: Tiles) -> tuple[str, bytes]:
        """Encode the sheet as PNG."""
        return "image/png", png(sheet)


class GivenPictures:
    """Pictures from a column, as bytes or as paths below a folder."""

    kind = "photo"

    def __init__(self, values: Sequence[Any], root: Path | None) -> None:
        self._decode = _decoder()
        self.values, self.root = values, None if root is None else root.resolve()
        self.refused: dict[str, int] = {}
        self._read: dict[int, Tiles] = {}
        self._rows = np.array(
            [i for i, value in enumerate(values) if value is not None and value != ""], np.int64
        )

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows with a picture that was not refused."""
        return self._rows

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Variants of 64 and of 32 pixels."""
        return Variant(1), Variant(2)

    def tiles(self, rows: NDArray[np.int64], variant: Variant) -> Tiles:
        """Square tiles with the picture in the centre; white if it cannot be read."""
        made = np.full((len(rows), LARGEST_TILE, LARGEST_TILE, 3), 255, np.uint8)
        bad = []
        for place, row in enumerate(rows.tolist()):
            if row not in self._read:
                try:
                    self._read[row] = self._decode(self._content(self.values[row]))
                except _RefusedError as why:
                    self.refused[str(why)] = self.refused.get(str(why), 0) + 1
                    bad.append(row)
                    continue
            made[place] = self._read[row]
        if bad:
            self._rows = np.setdiff1d(self._rows, bad)
        shrunk: Tiles = np.rint(_shrunk(made.astype(np.float32), variant.factor)).astype(np.uint8)
        return shrunk

    def _content(self, value: Any) -> bytes:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):  # Hugging Face
            return bytes(value["bytes"])
        if not isinstance(value, str):
            raise _RefusedError("neither bytes nor a path")
        return _read_below(self.root, value)

    def encode(self, sheet: Tiles) -> tuple[str, bytes]:
        """Encode the sheet as WebP."""
        from PIL import Image

        octets = io.BytesIO()
        Image.fromarray(sheet).save(octets, "WEBP", quality=QUALITY, method=4)
        return "image/webp", octets.getvalue()

    @property
    def notes(self) -> tuple[str, ...]:
        """Number of pictures that were refused, and why."""
        if not self.refused:
            return ()
        total = sum(self.refused.values())
        reasons = ", ".join(f"{why} ({many:,})" for why, many in self.refused.items())
        return (f"{count(total, 'picture')} could not be used: {reasons}.",)


class OrderedPictures:
    """Wrapper of pictures for rows in another order: row i was row ``order[i]``."""

    def __init__(self, pictures: RowPictures, order: NDArray[np.intp]) -> None:
        self.pictures, self.order = pictures, order
        self.place = np.argsort(order)
        self.kind, self.variants, self.encode = pictures.kind, pictures.variants, pictures.encode

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows with a picture, in the new order."""
        return np.sort(self.place[self.pictures.rows])

    def tiles(self, rows: NDArray[np.int64], variant: Variant) -> Tiles:
        """Tiles of rows in the new order."""
        return self.pictures.tiles(self.order[rows], variant)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the wrapped pictures."""
        return self.pictures.notes


class _RefusedError(Exception):
    """Why a picture is not shown."""


def _read_below(root: Path | None, name: str) -> bytes:
    """Read the file `name` within `root`; refuse URLs and paths that leave the folder."""
    if root is None:
        raise _RefusedError("no folder to look for files in")
    path = PurePosixPath(name.replace("\\", "/"))
    if "://" in name or name.startswith("data:"):
        raise _RefusedError("an address, not a file")
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise _RefusedError("outside of the folder")
    there = (root / path).resolve()
    if not there.is_relative_to(root):
        raise _RefusedError("a link out of the folder")
    try:
        if there.stat().st_size > MOST_BYTES:
            raise _RefusedError("too large")
        return there.read_bytes()
    except OSError:
        raise _RefusedError("no such file") from None


def _decoder() -> Callable[[bytes], Tiles]:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ParameterError(
            "Pictures are decoded by Pillow, which is not installed. pip install 'gnomon[pictures]'"
        ) from None

    def decode(content: bytes) -> Tiles:
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise _RefusedError("too large")
                image.draft("RGB", (2 * LARGEST_TILE, 2 * LARGEST_TILE))
                upright = ImageOps.exif_transpose(image).convert("RGBA")
                upright.thumbnail((LARGEST_TILE, LARGEST_TILE))
                tile = Image.new("RGBA", (LARGEST_TILE, LARGEST_TILE), "white")
                at = ((LARGEST_TILE - upright.width) // 2, (LARGEST_TILE - upright.height) // 2)
                tile.alpha_composite(upright, at)
                pixels: Tiles = np.asarray(tile.convert("RGB"))
                return pixels
        except _RefusedError:
            raise
        except Exception:  # a decoder may raise anything for invalid bytes
            raise _RefusedError("no PNG, JPEG, WebP or GIF") from None

    return decode


def pack_pictures(
    pictures: RowPictures, positions: NDArray[Any], room: int
) -> tuple[Part | None, tuple[str, ...]]:
    """Pack as many tiles as fit into `room` bytes into sheets; also return notes about them."""
    n, known = len(positions), pictures.rows
    if not known.size:
        return None, pictures.notes
    probe = known[:: max(1, known.size // PROBED)][:PROBED]
    chosen, each = pictures.variants[-1], np.inf
    for variant in pictures.variants:
        encoded = _sheets(pictures, pictures.tiles(probe, variant))[0]
        each = sum(len(part["data"]) for part in encoded) / len(probe)
        chosen = variant
        if each * known.size <= 0.97 * room:
            break
    known = pictures.rows  # without refused ones
    most = int(0.97 * room / each)
    if min(most, known.size) < min(LEAST_TILES, known.size):
        return None, (*pictures.notes, "Pictures were left out: the page's budget has no room.")
    rows = known if known.size <= most else known[_spread(positions[known], most)]
    tiles = pictures.tiles(rows, chosen)
    there = np.isin(rows, pictures.rows)
    rows, tiles = rows[there], tiles[there]
    if not rows.size:
        return None, pictures.notes
    sheets, across = _sheets(pictures, tiles)
    part = {
        "kind": pictures.kind,
        "width": tiles.shape[2],
        "height": tiles.shape[1],
        "across": across,
        "tiles": len(tiles),
        "sheets": sheets,
        "rows": None if rows.size == n else row_numbers(rows, n),
    }
    return part, (*_said(rows.size, known.size, chosen, pictures), *pictures.notes)


def _said(shown: int, known: int, variant: Variant, pictures: RowPictures) -> tuple[str, ...]:
    """Note about how the pictures were reduced to fit the budget, if they were."""
    said = []
    best = pictures.variants[0]
    if variant.factor > best.factor:
        said.append("at half their size")
    if variant.levels < best.levels:
        said.append(f"in {variant.levels} levels of grey")
    if shown < known:
        some = f"{shown:,} of {count(known, 'picture')}, of rows spread over the map"
        return (
            f"The page holds {some}{', ' if said else ''}{' and '.join(said)} (--page-budget).",
        )
    return (f"Pictures are shown {' and '.join(said)} (--page-budget).",) if said else ()


def _spread(positions: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Sample rows at random, one from every cell of the map before a second from any."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(positions))
    low, high = positions.min(axis=0), positions.max(axis=0)
    cells = max(1, int(np.sqrt(2 * most)))
    at = np.floor((positions - low) / (np.where(high > low, high - low, 1.0)) * cells)
    cell = (at[:, 0] * (cells + 1) + at[:, -1])[order]
    # The rank of each row within its cell, in the order drawn.
    by_cell = np.argsort(cell, kind="stable")
    starts = np.r_[True, np.diff(cell[by_cell]) != 0]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    rank = np.empty(len(order), np.int64)
    rank[by_cell] = np.arange(len(order)) - first
    return np.sort(order[np.argsort(rank, kind="stable")[:most]])


def _sheets(pictures: RowPictures, tiles: Tiles) -> tuple[list[Part], int]:
    """Arrange tiles in lines on sheets, each as an image; also return the tiles per line."""
    n, height, width, channels = tiles.shape
    across = min(max(1, int(np.ceil(np.sqrt(n)))), SHEET // width)
    down = SHEET // height
    sheets = []
    for start in range(0, n, across * down):
        some = tiles[start : start + across * down]
        lines = -(-len(some) // across)
        blank = np.zeros((lines * across, height, width, channels), np.uint8)
        blank[: len(some)] = some
        sheet = blank.reshape(lines, across, height, width, channels).transpose(0, 2, 1, 3, 4)
        kind, octets = pictures.encode(
            np.ascontiguousarray(sheet.reshape(lines * height, across * width, channels))
        )
        sheets.append({"type": kind, "data": base64.b64encode(octets).decode("ascii")})
    return sheets, across


def _shrunk(pictures: NDArray[Any], factor: int) -> NDArray[Any]:
    """Average squares of `factor` × `factor` pixels; edges are repeated if they are cut."""
    if factor == 1:
        return pictures
    n, height, width, channels = pictures.shape
    pad = (-height % factor, -width % factor)
    padded = np.pad(pictures, ((0, 0), (0, pad[0]), (0, pad[1]), (0, 0)), mode="edge")
    shape = (n, padded.shape[1] // factor, factor, padded.shape[2] // factor, factor, channels)
    shrunk: NDArray[Any] = padded.reshape(shape).mean(axis=(2, 4))
    return shrunk


def png(image: Tiles) -> bytes:
    """Encode pixels (height, width, 1 or 3) as PNG; each line has the filter that costs least."""
    height, width, channels = image.shape
    lines = image.reshape(height, width * channels)
    left, above = np.zeros_like(lines), np.zeros_like(lines)
    left[:, channels:] = lines[:, :-channels]
    above[1:] = lines[:-1]
    filtered = np.stack([lines, lines - left, lines - above])
    cost = np.abs(filtered.view(np.int8).astype(np.int16)).sum(axis=2)
    best = cost.argmin(axis=0).astype(np.uint8)
    data = np.column_stack([best, filtered[best, np.arange(height)]]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(data, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
