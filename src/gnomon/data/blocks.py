"""What files that are read in blocks have in common.

Which columns are numbers is decided from the first rows (`gnomon.data.roles`), once; every block is
then read for these columns, and a cell that is no number is an error with its place.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.data.columns import Column, as_column
from gnomon.data.matrix import gather_numbers
from gnomon.data.names import find_name
from gnomon.data.raw import RawTable
from gnomon.data.roles import Roles, Wishes, assign_roles

__all__ = ["LOOK", "BlockFile", "Chosen", "Piece", "choose", "numbers_of"]

LOOK = 10_000  # rows that are looked at to see what columns hold


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file: the first of them, how many, and where they are found."""

    first: int
    rows: int
    place: Any


class BlockFile(ABC):
    """A file that is read in blocks; it can be pickled, and is then small."""

    name: str
    names: tuple[str, ...] | None  # of the columns in use; None where the file has no names
    all_names: tuple[str, ...]  # of all columns, to be compared with those of other files
    columns: int
    dtype: np.dtype[Any]
    pieces: Sequence[Piece]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "pieces": ()}

    @abstractmethod
    def read(self, piece: Piece) -> NDArray[Any]:
        """The rows of a piece, shape (rows, columns); fewer if the file has lost some."""

    def let_go(self) -> None:  # noqa: B027  (most have nothing open)
        """Close what is kept open for the pieces that follow those read so far."""


@dataclass(frozen=True)
class Chosen:
    """The columns in use: as the file has them, and as the table has them.

    They differ where a column holds vectors, which are several columns of the table.
    """

    numbers: tuple[str, ...]
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    truths: frozenset[str] = frozenset()  # those that hold true and false


def choose(first: RawTable, wishes: Wishes) -> Chosen:
    """Decide from the first rows which columns are numbers, and of what type the table is.

    float32 if nothing in it needs more; float64 for everything else, whole numbers included, since
    a cell further down may be missing.
    """
    for name in wishes.columns or ():
        if first.named and name.rpartition("[")[0] not in first.columns:
            find_name("columns", name, first.names, first.name)
    roles = assign_roles(first, wishes)
    seen = {name: _with_values(roles.seen[name]) for name in roles.numbers}
    table, names = gather_numbers(first, _only(roles.numbers, seen), wishes.na, wishes.keep)
    small = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    truths = frozenset(name for name in roles.numbers if seen[name].kind == "truth")
    return Chosen(roles.numbers, names, np.dtype(np.float32 if small else np.float64), truths)


def numbers_of(block: RawTable, chosen: Chosen, wishes: Wishes) -> NDArray[Any]:
    """The chosen columns of a block as rows."""
    cells = [block.columns[name] for name in chosen.numbers]
    plain = pa.from_numpy_dtype(chosen.dtype)
    if not wishes.na and all(column.type == plain for column in cells):
        # Column beside column, as they came: whoever uses the block turns it while it is cached.
        return beside_each_other(cells, chosen.dtype)
    seen = {
        name: _with_values(as_column(name, block.columns[name], wishes.na, block.decimal))
        for name in chosen.numbers
    }
    table, _ = gather_numbers(block, _only(chosen.numbers, seen), wishes.na, wishes.keep)
    return table.astype(chosen.dtype, copy=False)


def beside_each_other(cells: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Columns that are of the type already as one Fortran-ordered table, NaN where they miss."""
    if all(column.num_chunks == 1 for column in cells):
        batch = pa.RecordBatch.from_arrays([column.chunk(0) for column in cells], [""] * len(cells))
        table: NDArray[Any] = batch.to_tensor(null_to_nan=True, row_major=False).to_numpy()
        return table
    turned = np.empty((len(cells), len(cells[0])), dtype)
    for j, column in enumerate(cells):
        turned[j] = column.to_numpy()
    return turned.T


def _with_values(column: Column) -> Column:
    """A column that happens to be empty in these rows as missing numbers."""
    if column.kind != "empty":
        return column
    nothing = pa.chunked_array([pa.nulls(len(column.cells), pa.float32())])
    return Column(column.name, "numbers", nothing, column.cells)


def _only(numbers: tuple[str, ...], seen: dict[str, Column]) -> Roles:
    return Roles(numbers, None, None, (), seen)
