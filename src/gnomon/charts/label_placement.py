"""Labels without collisions: each takes its best free place, or is left out."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gnomon.charts.canvas import Anchor

__all__ = ["Box", "Spot", "Wanted", "around_point", "beyond_tip", "place"]


# A label that covers more of what it should avoid than this confuses more than it helps.
MOST_COVERED = 5


@dataclass(frozen=True)
class Box:
    """An upright rectangle on the drawing."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two boxes share any area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: "Box") -> bool:
        """Whether this box lies entirely in `other`."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True)
class Spot:
    """Position of a line of text: its baseline, and which end is there."""

    x: float
    y: float
    anchor: Anchor = "start"

    def box(self, width: float, size: float) -> Box:
        """Box of text with this width and font size."""
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left - 2, self.y - 0.8 * size - 1, left + width + 2, self.y + 0.25 * size + 1)


@dataclass(frozen=True)
class Wanted:
    """A label of a given width and font size, with its places in order of preference."""

    width: float
    size: float
    spots: Sequence[Spot]


def place(
    wanted: Iterable[Wanted],
    bounds: Box,
    taken: Iterable[Box] = (),
    avoid: Sequence[Box] = (),
) -> list[Spot | None]:
    """Find a place for each label, in the given order; None if it fits nowhere.

    Earlier labels go first, so the most important should be first. No label covers another, or
    what is `taken`; of the remaining places it takes the one that covers least of what to `avoid`,
    and none that covers more than `MOST_COVERED` of it.
    """
    boxes = list(taken)
    placed: list[Spot | None] = []
    for label in wanted:
        best, fewest = None, MOST_COVERED + 1
        for spot in label.spots:
            box = spot.box(label.width, label.size)
            if not box.within(bounds) or any(box.overlaps(other) for other in boxes):
                continue
            covered = sum(box.overlaps(other) for other in avoid)
            if covered < fewest:
                best, fewest = spot, covered
            if not covered:
                break
        if best is not None:
            boxes.append(best.box(label.width, label.size))
        placed.append(best)
    return placed


def beyond_tip(x: float, y: float, dx: float, dy: float, size: float) -> list[Spot]:
    """Places for the label of an arrow that ends at (x, y) pointing along (dx, dy).

    Straight ahead first; then above and below; then the same a little further out, and last
    on the other side of the tip.
    """
    length = math.hypot(dx, dy) or 1.0
    cos, sin = dx / length, dy / length
    anchor: Anchor = "middle" if abs(cos) < 0.3 else ("start" if cos > 0 else "end")
    other: Anchor = "end" if cos > 0 else "start"
    baseline = y + 9 * sin + 0.3 * size * (1 + sin)
    # By 0.4 lines at a time, up to three lines away, where a leader line still reaches the tip.
    shifts = sorted((0.4 * size * i for i in range(-8, 9)), key=abs)
    columns = [(9 * cos, anchor), (26 * cos, anchor), (-9 * cos, other)]
    return [Spot(x + dx, baseline + dy, side) for dx, side in columns for dy in shifts]


def around_point(x: float, y: float, size: float) -> list[Spot]:
    """Places for the label of a region centred on (x, y): on it, then in widening rings."""
    baseline = y + 0.35 * size
    spots = [Spot(x, baseline, "middle")]
    for ring in (1.3, 2.6, 3.9):
        for eighth in range(8):
            angle = eighth * math.pi / 4 - math.pi / 2
            dx, dy = 2 * ring * size * math.cos(angle), ring * size * math.sin(angle)
            spots.append(Spot(x + dx, baseline + dy, "middle"))
    return spots
