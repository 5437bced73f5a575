"""New rows of a table, wherever it lies, placed on a map.

Rows that are placed do not see each other, so parts can be of any size, on any machine, and give
the places that they would get all at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from gnomon.compute.threads import row_blocks
from gnomon.engine import Block, Engine, Source
from gnomon.numeric.view import naming_rows
from gnomon.tsne.map import Map
from gnomon.tsne.place import PERPLEXITY, Placement

__all__ = ["PIECE_ROWS", "in_pieces", "place_parts"]

T = TypeVar("T")

OF_ROWS = ("positions", "distance_ratio", "residual", "reason", "neighbors")
PIECE_ROWS = 2**13  # rows placed at a time by each thread: a kilobyte and more a row


def in_pieces(place: Callable[[NDArray[Any]], T], X: NDArray[Any]) -> list[T]:
    """``place`` of a few rows of `X` after the other."""
    return [place(X[start:stop]) for start, stop in row_blocks(X.shape[0], PIECE_ROWS)]


def place_parts(
    model: Map, table: Source, engine: Engine, perplexity: float = PERPLEXITY
) -> Placement:
    """All rows of a table, which has the columns of the map's data, part by part."""
    found, done = model.empty_placement(table.rows), 0

    def add(pieces: list[Placement]) -> None:
        nonlocal done
        for piece in pieces:
            end = done + len(piece.positions)
            for name in OF_ROWS:
                getattr(found, name)[done:end] = getattr(piece, name)
            done = end

    if engine.is_local and table.rows:
        model.build(engine.workers)
    with naming_rows(table, engine, model.names):
        engine.write(_Place(model, perplexity), table, add)
    return found


@dataclass(frozen=True)
class _Place:
    """Places of the rows of a block."""

    model: Map
    perplexity: float

    def __call__(self, block: Block) -> list[Placement]:
        place = partial(self.model.place, n_jobs=1, perplexity=self.perplexity)
        return in_pieces(place, block.X)
