"""Text on a chart: cleaned, escaped, measured, shortened and broken into lines.

Column names and labels come from files and are untrusted until they have passed through here. An
SVG cannot measure its own text without a script, so widths are estimated from the proportions of
common sans-serif fonts, slightly too wide.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

__all__ = ["clean", "escape", "shorten", "shorten_apart", "width", "wrap"]

# A longer name would not be read, and a chart with 200 of them would grow without limit.
LONGEST = 300

# Not allowed in XML 1.0, or able to change the direction of the text around them.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

# Widths in ems, after Helvetica; characters not listed are 0.56 (most small letters and digits).
_EMS = {
    **dict.fromkeys("ijl'|", 0.23),
    **dict.fromkeys(" !,./:;I[]\\ft\u00a0", 0.29),
    **dict.fromkeys('r()-"`*{}·', 0.35),
    **dict.fromkeys("ckJsvxyz", 0.5),
    **dict.fromkeys("ABEKPSVXYFTZL&", 0.66),
    **dict.fromkeys("CDHNRUGOQ", 0.75),
    **dict.fromkeys("mMWw", 0.86),
    **dict.fromkeys("%@…—", 0.95),
}
# Segoe UI, Roboto and Liberation stay below this multiple of Helvetica; DejaVu Sans, the widest
# common one, is a few per cent above it, which margins absorb.
_SAFETY = 1.1
_BOLD = 1.07


def clean(text: object, longest: int = LONGEST) -> str:
    """Convert `text` to one line of printable characters, at most `longest` of them.

    Line breaks of every kind (also U+2028) become spaces; an empty name becomes "(no name)".
    """
    # Truncated before the work, not only after it: a cell may hold a megabyte.
    line = _FORBIDDEN.sub("", str(text)[: 4 * longest])
    line = " ".join(line.split())
    if len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    return line or "(no name)"


def escape(text: object, longest: int = LONGEST) -> str:
    """Clean and escape `text` for use between tags and inside quoted attributes."""
    return html.escape(clean(text, longest), quote=True)


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimated width of `text` at font size `size`, in the same units."""
    ems = sum(_character_ems(character) for character in text)
    return ems * size * _SAFETY * (_BOLD if bold else 1.0)


def shorten(text: str, longest: float, size: float, *, bold: bool = False) -> str:
    """Shorten `text` to fit into `longest`, with an ellipsis."""
    if width(text, size, bold=bold) <= longest:
        return text
    room = longest - width("…", size, bold=bold)
    kept = ""
    for character in text:
        room -= width(character, size, bold=bold)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def shorten_apart(
    texts: Sequence[str], longest: float, size: float, *, bold: bool = False
) -> list[str]:
    """Shorten `texts`; of those that would be cut to the same text, the middle is left out."""
    cut = [shorten(text, longest, size, bold=bold) for text in texts]
    counts = Counter(cut)
    return [
        _without_middle(text, longest, size, bold) if short != text and counts[short] > 1 else short
        for text, short in zip(texts, cut, strict=True)
    ]


def _without_middle(text: str, longest: float, size: float, bold: bool) -> str:
    room = longest - width("…", size, bold=bold)
    tail = ""
    while width(text[-len(tail) - 1 :], size, bold=bold) <= room / 2:
        tail = text[-len(tail) - 1 :]
    head = shorten(text, longest - width(tail, size, bold=bold), size, bold=bold)
    return head + tail.lstrip()


def wrap(text: str, longest: float, size: float) -> list[str]:
    """Break `text` at spaces into lines no wider than `longest`."""
    lines: list[str] = []
    line = ""
    # Only the plain space breaks: "95 %" contains a no-break space.
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and width(longer, size) > longest:
            lines.append(shorten(line, longest, size))
            line = word
        else:
            line = longer
    return [*lines, shorten(line, longest, size)] if line else lines


def _character_ems(character: str) -> float:
    if character in _EMS:
        return _EMS[character]
    if unicodedata.combining(character):
        return 0.0
    return 1.0 if unicodedata.east_asian_width(character) in "WF" else 0.56
