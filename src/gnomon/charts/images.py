"""Images: rows of a table of pixels as small pictures, side by side, on one scale."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts import words
from gnomon.charts.canvas import LEFT, RIGHT, Canvas, coordinate
from gnomon.charts.chart import Chart
from gnomon.charts.colours import DIVERGING
from gnomon.charts.text import clean, shorten
from gnomon.charts.theme import INKS, SIZES
from gnomon.errors import refuse
from gnomon.inputs import check_integer, check_real
from gnomon.typing import Array

__all__ = ["images"]

GAP = 10.0
LARGEST = 110.0  # width of a picture when there are few of them
# Every run of equal pixels is a separate shape: beyond this a browser draws slowly.
MOST_PIXELS = 150_000


def images(
    X: Any,
    shape: tuple[int, int],
    *,
    across: int = 10,
    names: Sequence[object] | None = None,
    signed: bool = False,
    brightness: bool = False,
    limits: tuple[float, float] | None = None,
    title: str = "Images",
) -> Chart:
    """Draw rows of `X` as pictures: images, their reconstructions, or components.

    All pictures share one scale, so that they can be compared. Plain ones go from the smallest
    value (blank) to the largest (full ink), or from one of `limits` to the other; photographs go
    from black to white; signed ones have one colour for each side of 0.

    Parameters
    ----------
    X : array-like, shape (n, height · width)
        One picture per row, its lines of pixels one after the other.
    shape : pair of int
        Height and width of a picture.
    across : int
        Number of pictures side by side.
    names : sequence, optional
        A line of text above each line of pictures.
    signed : bool
        Whether values below and above 0 have different colours, for components.
    brightness : bool
        Whether values are brightness, as in photographs: the smallest is black and the largest
        white, on a light and on a dark page.
    limits : pair of float, optional
        Values of blank and of full ink, or of black and white; values beyond them are clipped.
    title : str

    Returns
    -------
    Chart

    Examples
    --------
    >>> from gnomon import charts, samples
    >>> digits = samples.load("digits")
    >>> charts.images(digits.X[:20], (8, 8), title="Digits").title
    'Digits'
    """
    height, width = _check_shape(shape)
    pictures = np.asarray(X, dtype=np.float64)
    if pictures.ndim != 2 or not len(pictures) or pictures.shape[1] != height * width:
        must = f"have shape (n, {height * width}), n ≥ 1, for pictures of {height} × {width}"
        refuse("X", must, f"shape {pictures.shape}")
    if pictures.size > MOST_PIXELS:
        refuse("X", f"hold at most {MOST_PIXELS:,} pixels", pictures.size, "Give fewer rows.")
    if not np.isfinite(pictures).all():
        refuse("X", "be finite", "NaN or infinity among them")
    across = check_integer("across", across, 1, None)
    lines = -(-len(pictures) // across)
    if names is not None and len(names) != lines:
        refuse("names", f"hold one text for each of the {lines} lines of pictures", len(names))

    if signed and brightness:
        refuse("brightness", "be False for signed pictures, which have colours", brightness)
    if limits is not None:
        low, high = _check_limits(limits, signed)
        pictures = np.clip(pictures, low, high)
        levels = _levels(pictures, low, high)
    elif signed:
        levels = _signed_levels(pictures)
    else:
        levels = _levels(pictures, float(pictures.min()), float(pictures.max()))
    ends = ("black", "white") if brightness else ("blank", "full")
    canvas = Canvas(title, _subtitle(pictures, signed, limits, height, width, ends))
    colours = "signed" if signed else "white" if brightness else "ink"
    # Rounded to tenths, as coordinates are written, so that pixels share their edges exactly.
    room = min(LARGEST, (RIGHT - LEFT - GAP * (across - 1)) / across)
    pixel = max(np.floor(10 * room / width) / 10, 0.1)
    y = canvas.top + 12
    for line in range(lines):
        if names is not None:
            name = clean(names[line])
            shown = shorten(name, RIGHT - LEFT, SIZES["label"])
            canvas.text(LEFT, y + 12, shown, "label soft", tip=name)
            y += 22
        x = LEFT
        for picture in levels[line * across : (line + 1) * across]:
            if brightness:
                canvas.rect(x, y, pixel * width, pixel * height, "black")
            _draw(canvas, x, y, pixel, picture.reshape(height, width), colours)
            x += pixel * width + GAP
        y += pixel * height + GAP
    details = "" if names is None else "; ".join(clean(name) for name in names) + "."
    return canvas.finish(y + 14, details)


def _check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) != 2:
        refuse("shape", "be a pair: height and width of a picture", shape, kind=True)
    height, width = (check_integer("shape", side, 1, None) for side in shape)
    return height, width


def _check_limits(limits: tuple[float, float], signed: bool) -> tuple[float, float]:
    if signed:
        refuse("limits", "be None for signed pictures, whose middle is 0", limits)
    if not isinstance(limits, Sequence) or isinstance(limits, str) or len(limits) != 2:
        refuse("limits", "be a pair: what is blank and what is full", limits, kind=True)
    low, high = (check_real("limits", limit, -np.inf) for limit in limits)
    if not -np.inf < low < high < np.inf:
        refuse("limits", "be finite, the smaller first", limits)
    return low, high


def _levels(pictures: Array, low: float, high: float) -> NDArray[np.intp]:
    """Level of each pixel, from 0 (blank) to `INKS` (full ink)."""
    span = high / 2 - low / 2  # halves: the difference of large numbers may overflow
    if not span > 0:
        return np.zeros(pictures.shape, dtype=np.intp)
    return np.rint(INKS * (pictures / 2 - low / 2) / span).astype(np.intp)


def _signed_levels(pictures: Array) -> NDArray[np.intp]:
    """Step of each pixel on the diverging ramp, less its middle: 0 is blank."""
    largest = float(np.abs(pictures).max()) or 1.0
    return np.rint(DIVERGING // 2 * (pictures / largest)).astype(np.intp)


def _draw(
    canvas: Canvas, x: float, y: float, pixel: float, levels: NDArray[np.intp], colours: str
) -> None:
    """Draw one picture: a path per level, a rectangle per run of equal pixels in a line."""
    height, width = levels.shape
    canvas.rect(x, y, pixel * width, pixel * height, "grid")
    for level in np.unique(levels[levels != 0]):
        d = "".join(
            f"M{coordinate(x + pixel * start)} {coordinate(y + pixel * line)}"
            f"h{coordinate(pixel * length)}l0 {coordinate(pixel)}h{coordinate(-pixel * length)}z"
            for line, start, length in _runs(levels == level)
        )
        signed = colours == "signed"
        colour = f"d{level + DIVERGING // 2}" if signed else f"{colours} ink{level}"
        canvas.path(d, f"{colour} pixels")


def _runs(chosen: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Line, start and length of every run of chosen pixels."""
    edges = np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (line, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield line, start, end - start


def _subtitle(
    pictures: Array,
    signed: bool,
    limits: tuple[float, float] | None,
    height: int,
    width: int,
    ends: tuple[str, str],
) -> str:
    values = limits or (pictures.min(), pictures.max())
    low, high = (words.number(float(value)) for value in values)
    what = f"{words.count(len(pictures), 'picture')} of {height} × {width} pixels"
    if low == high:
        return f"{what}, all constant: every pixel is {low}."
    if signed:
        return f"{what}, from {low} to {high}; blank is 0, and each side has its own colour."
    return f"{what}, from {low} ({ends[0]}) to {high} ({ends[1]})."
