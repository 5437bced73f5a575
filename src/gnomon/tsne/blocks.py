"""New rows that are read in blocks, placed on a map that stays as it is.

Rows that are placed do not see each other, so blocks can be of any size, on any machine, and give
the places that they would get all at once.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine import Block, Engine, Source
from gnomon.parallel import row_blocks
from gnomon.streams import naming_rows
from gnomon.tsne.place import Placement

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

__all__ = ["PIECE_ROWS", "in_pieces", "place_blocks"]

OF_ROWS = ("positions", "distance_ratio", "residual", "reason", "neighbors")
PIECE_ROWS = 2**13  # rows placed at a time by each thread: a kilobyte and more a row


def in_pieces(place: Callable[[NDArray[Any]], Any], X: NDArray[Any]) -> list[Any]:
    """``place`` of a few rows of `X` after the other; at least once, for the shapes."""
    pieces = row_blocks(len(X), PIECE_ROWS) or [(0, 0)]
    return [place(X[start:stop]) for start, stop in pieces]


def place_blocks(tsne: "TSNE", source: Source, engine: Engine) -> Placement:
    """All rows of a source, which has the columns of the map's data, on the map."""
    nameless = copy.copy(tsne)  # as blocks are: the names of their columns were compared before
    nameless.__dict__.pop("feature_names_in_", None)
    few = nameless.place(np.empty((0, source.columns)))
    n, done = source.rows, 0
    rows: dict[str, Any] = {
        name: np.empty((n, *getattr(few, name).shape[1:]), getattr(few, name).dtype)
        for name in OF_ROWS
    }

    def add(parts: list[Placement]) -> None:
        nonlocal done
        for part in parts:
            end = done + len(part.positions)
            for name in OF_ROWS:
                rows[name][done:end] = getattr(part, name)
            done = end

    with naming_rows(source, engine):
        engine.write(_Place(nameless), source, add)
    return replace(few, **rows)


@dataclass(frozen=True)
class _Place:
    """Places of the rows of a block."""

    tsne: "TSNE"

    def __call__(self, block: Block) -> list[Placement]:
        return in_pieces(self.tsne.place, block.X)
