"""The colours of all charts, for the light and the dark scheme.

Categories are the palette of Okabe and Ito (2008), distinguishable with any colour vision;
its yellow is left out because it vanishes on white, and its black is a grey that works on both.
Beyond seven groups the hues repeat, stronger and then paler. Ramps are straight lines in OKLab
(Ottosson 2020), where equal steps look equal; they run away from the background, so that more is
always the stronger colour.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CATEGORIES",
    "DARK",
    "DIVERGING",
    "GROUPS",
    "LIGHT",
    "SEQUENTIAL",
    "diverging",
    "sequential",
]

# Linear sRGB to cone response, and its cube root to OKLab (Ottosson 2020).
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

CATEGORIES = 7
GROUPS = 3 * CATEGORIES  # hues, then each with more contrast to the background, then each with less
DIVERGING = 17
SEQUENTIAL = 9


def diverging(value: float, largest: float) -> int:
    """Step of the diverging ramp for `value` between −`largest` and `largest`; the middle is 0."""
    middle = DIVERGING // 2
    share = value / largest if largest > 0 else 0.0
    return middle + round(middle * float(np.clip(share, -1.0, 1.0)))


def sequential(value: float, low: float, high: float) -> int:
    """Step of the sequential ramp for `value` between `low` and `high`."""
    share = (value - low) / (high - low) if high > low else 0.5
    return min(int(SEQUENTIAL * float(np.clip(share, 0.0, 1.0))), SEQUENTIAL - 1)


def ramp(stops: Sequence[str], steps: int) -> list[str]:
    """`steps` colours evenly spaced in OKLab along the line through `stops`."""
    lab = np.array([_to_oklab(stop) for stop in stops])
    at = np.linspace(0, len(stops) - 1, steps)
    mixed = [np.interp(at, np.arange(len(stops)), channel) for channel in lab.T]
    return [_to_hex(colour) for colour in np.array(mixed).T]


def _to_oklab(colour: str) -> NDArray[Any]:
    lab: NDArray[Any] = _OKLAB @ np.cbrt(_CONES @ _linear(colour))
    return lab


def _to_hex(lab: NDArray[Any]) -> str:
    linear = np.linalg.solve(_CONES, np.linalg.solve(_OKLAB, lab) ** 3).clip(0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in srgb)


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two colours, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _linear(colour: str) -> NDArray[Any]:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _luminance(colour: str) -> float:
    return float(_linear(colour) @ [0.2126, 0.7152, 0.0722])


def _shaded(colour: str, lightness: float) -> str:
    """Make a colour lighter or darker, and a little less saturated."""
    lab = _to_oklab(colour)
    return _to_hex(np.array([lab[0] + lightness, 0.85 * lab[1], 0.85 * lab[2]]))


def _palette(
    plain: dict[str, str], categories: str, diverging: Sequence[str], sequential: Sequence[str]
) -> dict[str, str]:
    steps = ramp(diverging, DIVERGING)
    hues = categories.split()
    away = -0.15 if contrast(plain["surface"], "#000000") > 10 else 0.12
    groups = [*hues, *(_shaded(hue, away) for hue in hues), *(_shaded(hue, -away) for hue in hues)]
    return {
        **plain,
        **{f"c{i}": colour for i, colour in enumerate(groups)},
        **{f"d{i}": colour for i, colour in enumerate(steps)},
        # Text on each step: dark or white, whichever has more contrast.
        **{
            f"t{i}": max("#06080b", "#ffffff", key=lambda text: contrast(text, step))
            for i, step in enumerate(steps)
        },
        **{f"v{i}": colour for i, colour in enumerate(ramp(sequential, SEQUENTIAL))},
    }


LIGHT = _palette(
    {
        "surface": "#ffffff",
        "ink": "#1b2028",
        "soft": "#5a6472",
        "grid": "#e8ebef",
        "axis": "#b4bdc8",
        "accent": "#0072b2",
        "quiet": "#c5d0db",
    },
    "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #5b6470",
    ["#a84300", "#e79a63", "#f4f4f2", "#74aedb", "#00548f"],
    ["#bcdbe6", "#3d8fb8", "#142b5f"],
)
DARK = _palette(
    {
        "surface": "#14171c",
        "ink": "#e9ecef",
        "soft": "#a2acb9",
        "grid": "#272c34",
        "axis": "#525b67",
        "accent": "#4ba6e0",
        "quiet": "#3d4855",
    },
    "#2f88d0 #e8702a #1db58a #d98bb6 #edb02f #84cdf7 #929ba6",
    ["#ffab73", "#b4622c", "#252a31", "#2f74a8", "#7cc4f5"],
    ["#2c4a63", "#4a9cc4", "#e2f5f1"],
)
