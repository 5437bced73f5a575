"""Add up results in a tree that depends only on the order of partitions.

Every node adds up to `FAN` children, from the left. The leaves are the partitions in order, sixteen
of them make a node of the next level, sixteen of those the next, and so on; the last node of a
level may have fewer. A thread that adds results as they arrive (`Tree`) and a cluster that adds
adjacent results (`fold`) add the same numbers in the same order.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from gnomon.engine.task import PartResult

T = TypeVar("T")
FAN = 16  # children of a node, by definition: the bits of sums follow from it

__all__ = ["FAN", "Tree", "fold"]


def fold(parts: Sequence[PartResult[T]], combine: Callable[[T, T], T]) -> PartResult[T]:
    """Add up one node: `parts` from left to right. `combine` must not modify its operands."""
    value, seals = parts[0].value, list(parts[0].seals)
    for part in parts[1:]:
        value = combine(value, part.value)
        seals += part.seals
    return PartResult(value, tuple(seals), sum(part.rows for part in parts))


class Tree(Generic[T]):
    """Build the tree from results that arrive in order: one partial sum per level is kept."""

    def __init__(self, combine: Callable[[T, T], T]) -> None:
        self.combine = combine
        self.levels: list[tuple[int, Any]] = []  # number of children so far, and their sum

    def add(self, value: T) -> None:
        """Append the next leaf."""
        self._add(value, 0)

    def _add(self, value: Any, level: int) -> None:
        if level == len(self.levels):
            self.levels.append((0, None))
        count, total = self.levels[level]
        total = value if count == 0 else self.combine(total, value)
        if count + 1 < FAN:
            self.levels[level] = (count + 1, total)
        else:
            self.levels[level] = (0, None)
            self._add(total, level + 1)

    def total(self) -> T:
        """Value of the root; needs at least one leaf."""
        carried: Any = None
        for count, total in self.levels:
            if count == 0:
                continue
            carried = total if carried is None else self.combine(total, carried)
        result: T = carried
        return result
