"""`.npy` in blocks of rows, each read when it is asked for.

A block is read into memory of its own rather than mapped: mapped pages count as memory of the
process for as long as the file is open, and a file that is cut short while it is mapped ends the
process instead of raising an error. Of files with columns first, a part of each column is read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.budget import readable_bytes
from gnomon.compute.threads import row_blocks
from gnomon.data.ahead import Coming
from gnomon.data.blocks import AHEAD, AT_ONCE, LOOK, BlockFile, Piece
from gnomon.data.disk import Disk, Ranges
from gnomon.data.matrix import number_codes
from gnomon.data.names import find_name, unique_names
from gnomon.data.numpy_files import LONGEST_HEADER, read_header
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError
from gnomon.data.roles import Roles, assign_roles
from gnomon.data.table import ColumnRoles
from gnomon.data.wishes import Wishes
from gnomon.engine.source import partition_rows
from gnomon.files import shown_name

__all__ = ["NpyBlocks"]

LOOK_BYTES = 2**24  # bytes that are looked at to see what columns hold


class NpyBlocks(BlockFile):
    """The array of an ``.npy`` file."""

    def __init__(self, path: Path, wishes: Wishes, rows: int | None) -> None:
        self.path, self.name, self.disk = path, shown_name(path), Disk(path)
        with path.open("rb") as file:
            head = np.frombuffer(file.read(12 + LONGEST_HEADER), np.uint8)
        self.type, shape, self.fortran, self.start = read_header(head, self.name)
        self._check(shape, path.stat().st_size)
        self.shape = (shape[0], shape[1])
        self.coming: Coming[Piece] = Coming()
        self.all_names = tuple(unique_names(None, shape[1])[0])
        roles = self._roles(wishes)
        self.roles = roles.names
        self.used = None
        if roles.numbers != self.all_names:
            self.used = np.array([self.all_names.index(name) for name in roles.numbers], np.intp)
        self.names = None
        self.columns = shape[1] if self.used is None else self.used.size
        self.gaps = number_codes(wishes.na)
        self.dtype = np.dtype(np.uint8) if self.type.kind == "b" else self.type
        if self.gaps and self.dtype.kind != "f":
            self.dtype = np.dtype(np.float64)
        self.pieces = [
            Piece(start, stop - start, start)
            for start, stop in row_blocks(shape[0], partition_rows(shape[1], rows))
        ]

    def read(self, piece: Piece, at_once: int = AT_ONCE) -> NDArray[Any]:
        """Some rows, in memory of their own."""
        block = self._decoded(piece)
        block = block if self.used is None else block[:, self.used]
        if self.gaps:
            block = np.array(block, self.dtype)  # bytes of a file are not to be written to
            for code in self.gaps:
                block[block == code] = np.nan
        return block

    def cells(self, names: Sequence[str]) -> Iterator[RawTable]:
        """All numbers of some columns, block after block."""
        for piece in self.pieces:
            block = self._decoded(piece)
            yield RawTable(
                self.name,
                {
                    name: pa.chunked_array([pa.array(block[:, self.all_names.index(name)].copy())])
                    for name in names
                },
                named=False,
            )

    def _decoded(self, piece: Piece) -> NDArray[Any]:
        """Rows with all columns; true and false as numbers."""
        block = self._columns_first(piece) if self.fortran else self._rows_first(piece)
        return block.view(np.uint8) if self.type.kind == "b" else block

    def soon(self, pieces: Sequence[Piece], at_once: int = AT_ONCE) -> None:
        """Begin to read the next two."""
        if not pieces:
            self.coming = Coming()
            self.disk.drop_all()
        if not self.fortran:
            self.coming.tell(pieces[:2], self, at_once // AHEAD)

    def part_bytes(self, key: Piece) -> int:
        """As it lies in the file."""
        ((start, stop),) = self._range(key)
        return stop - start

    def part_soon(self, key: Piece) -> None:
        """Begin to read it."""
        self.disk.soon(self._range(key))

    def part_dropped(self, key: Piece) -> None:
        """Forget it."""
        self.disk.drop(self._range(key))

    def _range(self, piece: Piece) -> Ranges:
        width = self.shape[1] * self.type.itemsize
        start = self.start + piece.first * width
        return ((start, start + piece.rows * width),)

    def _rows_first(self, piece: Piece) -> NDArray[Any]:
        width = self.shape[1] * self.type.itemsize
        self.coming.asked(piece, self)
        ((_, octets),) = self.disk.read_parts(self._range(piece)) or ((0, np.empty(0, np.uint8)),)
        whole = octets[: octets.size // width * width].view(self.type).reshape(-1, self.shape[1])
        return np.require(whole, requirements="A")  # a header may be of any length

    def _columns_first(self, piece: Piece) -> NDArray[Any]:
        columns = np.empty((self.shape[1], piece.rows), self.type)
        with self.path.open("rb", buffering=0) as file:
            for j, column in enumerate(columns):
                file.seek(self.start + self.type.itemsize * (j * self.shape[0] + piece.first))
                if file.readinto(column.view(np.uint8)) != column.nbytes:  # it was cut short
                    return np.empty((0, self.shape[1]), self.type)
        return columns.T

    def _check(self, shape: tuple[int, ...], size: int) -> None:
        if len(shape) != 2:
            raise FileError(
                f"{self.name} must hold a table of rows and columns; its shape is {shape}.",
                "Reshape it: array.reshape(len(array), -1) makes one row of each entry.",
            )
        if self.type.kind not in "biuf":
            raise FileError(f"{self.name} holds {self.type}, not numbers.")
        if 0 in shape:
            what, kind = ("columns", FileError) if shape[1] == 0 else ("rows", NoRowsError)
            raise kind(f"{self.name} has no {what}: its shape is {shape}.")
        promised, there = shape[0] * shape[1] * self.type.itemsize, size - self.start
        if promised != there:
            less = "is cut short" if promised > there else "is longer than it should be"
            raise FileError(
                f"{self.name} {less}: its header promises {readable_bytes(promised)} (shape "
                f"{shape}, {self.type}), and {readable_bytes(there)} are there.",
                "Was it copied whole?",
            )

    def _roles(self, wishes: Wishes) -> Roles:
        """What columns are used for, by the first rows."""
        width = self.shape[1] * self.type.itemsize
        rows = min(self.shape[0], max(1, LOOK_BYTES // width), LOOK)
        first = self._decoded(Piece(0, rows, 0))
        raw = RawTable(self.name, {}, first, self.all_names, named=False)
        if wishes.columns is not None:
            # By name: an array of as many columns as were asked for has them in its own order.
            found = [find_name("columns", name, self.all_names, self.name)
                     for name in wishes.columns]  # fmt: skip
            return Roles(tuple(found), ColumnRoles(tuple(found)), {})
        return assign_roles(raw, wishes)
