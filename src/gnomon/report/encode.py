"""Columns and maps as compact text: rounded, deflated, base64.

A page holds many rows, so numbers are stored as integers of 1, 2 or 4 bytes. Numbers of more
than one byte are stored plane by plane, all low bytes first: adjacent high bytes are
similar, which deflate compresses well. `web/src/decode.ts` decodes them.
"""

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.groups import MOST_NUMBERS, natural

__all__ = [
    "Part",
    "category_field",
    "label_field",
    "map_bits",
    "map_part",
    "morton_codes",
    "morton_part",
    "number_field",
    "row_numbers",
    "texts",
    "whole_numbers",
]

# A piece of the page's data, ready for JSON.
Part = dict[str, Any]

# Up to this many distinct values, each is stored without rounding; one code is for gaps.
MOST_LEVELS = 255
# Two-byte codes: the last is for gaps.
STEPS = 65_534
# Rows from which coordinates along a curve have 12 bits instead of 14.
COARSE_ROWS = 200_000


def number_field(name: str, values: NDArray[Any]) -> Part:
    """Encode a column of numbers (n,), in which NaN and infinities are gaps.

    Up to 255 distinct values are kept exactly; more are rounded to 1/65,534 of their range.
    """
    numbers = np.asarray(values, dtype=np.float64)
    known = np.isfinite(numbers)
    levels, codes = np.unique(numbers[known], return_inverse=True)
    field: Part = {"name": name, "kind": "number"}
    if len(levels) <= MOST_LEVELS:
        filled = np.full(len(numbers), len(levels), np.uint8)
        filled[known] = codes
        return field | {"levels": levels.tolist(), "codes": whole_numbers(filled)}
    low, high = float(levels[0]), float(levels[-1])
    # Halved, because the range itself may overflow a float.
    share = (numbers[known] / 2 - low / 2) / (high / 2 - low / 2)
    filled = np.full(len(numbers), STEPS + 1, np.uint16)
    filled[known] = np.rint(STEPS * share)
    return field | {"low": low, "high": high, "steps": STEPS, "codes": whole_numbers(filled)}


def category_field(name: str, values: NDArray[Any]) -> Part:
    """Encode a column of names (n,), sorted by name; None is a gap."""
    # One entry per distinct text: rows are many, names are few.
    known = [None if value is None else str(value) for value in values.tolist()]
    names = sorted({text for text in known if text is not None}, key=natural)
    place: dict[str | None, int] = {text: i for i, text in enumerate(names)}
    place[None] = len(names)
    codes = np.array([place[text] for text in known], np.uint32)
    return {
        "name": name,
        "kind": "category",
        "names": texts(names),
        "codes": whole_numbers(codes.astype(smallest(len(names)))),
    }


def label_field(name: str, values: NDArray[Any]) -> Part:
    """Encode a column to colour by: names, or numbers; a few distinct numbers become names."""
    if values.dtype.kind not in "iuf":
        return category_field(name, values)
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    if len(np.unique(numbers[known])) > MOST_NUMBERS:
        return number_field(name, numbers)
    named = np.array([_as_name(number) for number in numbers.tolist()], object)
    named[~known] = None
    return category_field(name, named)


def _as_name(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() else repr(number)


def map_part(name: str, positions: NDArray[Any]) -> Part:
    """Encode positions (n, 2), each rounded to 1/65,535 of the map's longer side."""
    low = positions.min(axis=0)
    step = float((positions.max(axis=0) - low).max()) / (STEPS + 1) or 1.0
    codes = np.rint((positions - low) / step).astype(np.uint16)
    return {
        "name": name,
        "low": low.tolist(),
        "step": step,
        "x": whole_numbers(codes[:, 0]),
        "y": whole_numbers(codes[:, 1]),
    }


def map_bits(n: int) -> int:
    """Bits per coordinate of `n` rows along a curve."""
    return 12 if n > COARSE_ROWS else 14


def morton_codes(positions: NDArray[Any], bits: int) -> tuple[NDArray[np.uint64], Any, float]:
    """Positions (n, 2) along a Morton curve, x in the even bits; the lowest corner and the step."""
    low = positions.min(axis=0)
    step = float((positions.max(axis=0) - low).max()) / (2**bits - 1) or 1.0
    codes = np.rint((positions - low) / step).astype(np.uint64)
    mixed = np.zeros(len(codes), np.uint64)
    for bit in range(bits):
        for axis in (0, 1):
            mixed |= ((codes[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(
                2 * bit + axis
            )
    return mixed, low, step


def morton_part(name: str, positions: NDArray[Any]) -> Part:
    """Encode positions (n, 2) in Morton order, as the differences between them along the curve."""
    codes, low, step = morton_codes(positions, map_bits(len(positions)))
    gaps = np.diff(codes.astype(np.int64), prepend=0)
    if (gaps < 0).any():
        raise ValueError("rows must be in the order of the curve")
    return {
        "name": name,
        "low": low.tolist(),
        "step": step,
        "gaps": whole_numbers(gaps.astype(smallest(int(gaps.max(initial=0))))),
    }


def row_numbers(rows: NDArray[Any], n: int) -> Part:
    """Encode row numbers below `n`."""
    return whole_numbers(rows.astype(smallest(n - 1)))


def smallest(largest: int) -> type[np.unsignedinteger[Any]]:
    """Smallest unsigned integer type that holds `largest`."""
    return np.uint8 if largest < 2**8 else np.uint16 if largest < 2**16 else np.uint32


def whole_numbers(values: NDArray[Any]) -> Part:
    """Encode integers of 1, 2 or 4 bytes, plane by plane."""
    size = values.dtype.itemsize
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(len(values), size).T
    return {"bytes": size, "length": len(values), "data": _packed(planes.tobytes())}


def texts(values: list[str]) -> Part:
    """Encode a list of texts."""
    return {"length": len(values), "data": _packed(json.dumps(values).encode("ascii"))}


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")
