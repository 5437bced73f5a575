"""What a table in blocks is.

A source knows its columns and lists its partitions: small references (a file, a range of rows),
never data. `Source.read` turns one of them into an array. It may be called for any partition, any
number of times, on several threads and in other processes, and gives the same numbers each time;
`gnomon.engine.task` holds it to that by counting rows and comparing checksums.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PARTITION_NUMBERS",
    "Block",
    "Partition",
    "Seal",
    "Source",
    "checksum",
    "partition_rows",
]

Seal: TypeAlias = int | tuple[tuple[int, int, "Seal"], ...]

# What a partition holds unless something else is asked for: 8 MB of float64. Large enough that
# reading and handing out work cost nothing beside it, and small enough that threads share a table
# of a few partitions evenly. Of more than 256 columns it holds up to four times as much: d × d sums
# are added up once a partition, and 4,096 rows may be added in float32 (`numeric.moments`). The
# numbers are from fits of 10,000 × 50 to 70,000 × 784 in alternation with other lengths.
PARTITION_NUMBERS = 2**20
WIDE_TIMES = 4
WIDE_ROWS = 4096


@dataclass(frozen=True)
class Partition:
    """A reference to some rows of a table.

    Attributes
    ----------
    index : int
        Its place in the order of all partitions, from 0.
    start : int
        Its first row, counted over the whole table.
    rows : int
        How many rows it has.
    file : str
        The file it stands in, or what the table is called where there is none.
    first : int
        Its first row, counted in that file.
    place : object
        What the source needs besides to find it: a byte, row groups. Small, and can be pickled.
    """

    index: int
    start: int
    rows: int
    file: str
    first: int = 0
    place: Any = None

    def __str__(self) -> str:
        return f"{self.file}, rows {self.first} to {self.first + self.rows - 1}"


@dataclass(frozen=True)
class Block:
    """What a task is given: the rows of one partition, and what goes with them.

    `X` is (rows, d) and is not to be written to; `beside` is whatever the caller of the engine gave
    for this partition (weights of its rows, for instance).
    """

    partition: Partition
    X: NDArray[Any]
    beside: Any = None


class Source(ABC):
    """A table that is read in blocks of rows, again and again, in the same order.

    Attributes
    ----------
    columns : int
        How many columns every block has.
    names : tuple of str or None
        Their names, where they have any.
    dtype : dtype
        The type of the numbers in every block.
    partitions : sequence of Partition
        All of them, in order.
    seals : mapping of int to Seal
        Checksums of the partitions read so far, by their index; see `gnomon.engine.task`. A source
        that is made of others has theirs: what one pass saw holds for the passes of all.
    held_from : Source or None
        Where a table that was brought into memory came from.
    part_rows : int or None
        Rows of a partition, where the user asked for so many.
    scattered : bool
        Whether the partitions are few and far apart, so that those between are not read.

    A copy that was pickled for a worker reads like any other, but has no list of partitions: it is
    told which to read.
    """

    def __init__(
        self,
        columns: int,
        dtype: np.dtype[Any],
        partitions: Sequence[Partition],
        names: Sequence[str] | None = None,
    ) -> None:
        self.columns, self.dtype = columns, np.dtype(dtype)
        self.names = None if names is None else tuple(names)
        self.partitions = partitions
        self.seals: MutableMapping[int, Seal] = {}
        self.scattered = False
        self.part_rows: int | None = None
        self.held_from: Source | None = None

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows × {self.columns:,} columns of {self.dtype} in "
            f"{len(self.partitions):,} blocks"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "partitions": (), "seals": {}}

    @abstractmethod
    def read(self, partition: Partition) -> NDArray[Any]:
        """The rows of one partition, shape (partition.rows, columns), of type `dtype`."""

    def array(self) -> Any:
        """The whole table, an array or a CSR array, where it is in memory; otherwise None."""
        return None

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR arrays."""
        return False

    def sealed(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """The same, and the checksum of what was read, which must not change."""
        X = self.read(partition)
        return X, checksum(X)

    def only(self, partitions: Sequence[Partition]) -> Self:
        """Select some of the partitions, which keep their numbers."""
        some = copy.copy(self)
        some.partitions, some.seals = partitions, self.seals
        span = partitions[-1].index - partitions[0].index + 1 if partitions else 0
        some.scattered = 0 < 2 * len(partitions) <= span
        return some

    def within(self, memory: int | None) -> Self:
        """Limit the memory that reading takes to `memory` bytes, where the source can.

        None is what it takes by itself.
        """
        return self

    def soon(self, partitions: Sequence[Partition]) -> None:  # noqa: B027  (most need not know)
        """Prefetch the partitions that will be read next, in order.

        None are any more if there are none: forget what was read.
        """

    def let_go(self, but: Partition | None = None) -> None:  # noqa: B027  (most have nothing open)
        """Close what is kept open for partitions that follow those read so far.

        What is kept for those that follow `but` stays open.
        """

    @property
    def rows(self) -> int:
        """Rows of the whole table."""
        last = self.partitions[-1] if self.partitions else None
        return 0 if last is None else last.start + last.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block."""
        most = max((partition.rows for partition in self.partitions), default=0)
        return most * self.columns * self.dtype.itemsize


def partition_rows(columns: int, rows: int | None = None) -> int:
    """How many rows a partition has: `rows` if given, otherwise by the number of columns alone."""
    if rows is not None:
        return rows
    short = PARTITION_NUMBERS // max(1, columns)
    return max(1, short, min(WIDE_ROWS, WIDE_TIMES * PARTITION_NUMBERS // max(1, columns)))


_WORDS = 8192  # 64 kB at a time stay in the cache
_MULTIPLIERS = np.random.default_rng(9).integers(2**63, size=_WORDS, dtype=np.uint64) | np.uint64(1)
_STEP = 0x9E3779B97F4A7C15  # odd, so that no bit of an earlier chunk is ever multiplied away


def checksum(X: NDArray[Any]) -> int:
    """64 bits that change with every number of `X` and its place, at the speed of memory.

    Σ word · odd multiplier within 64 kB, chunks combined by Horner's rule, both modulo 2^64. It is
    meant for files that were rewritten by accident, not for forgeries. Numbers are taken as they
    lie in memory, column by column in a Fortran-ordered array: a source gives every block in the
    same order each time.
    """
    lying = X.T if X.flags.f_contiguous else X
    octets = np.ascontiguousarray(lying).reshape(-1).view(np.uint8)
    whole = octets.size // 8
    words, rest = octets[: 8 * whole].view(np.uint64), octets[8 * whole :]
    lines = words[: whole // _WORDS * _WORDS].reshape(-1, _WORDS)
    last = words[lines.size :]
    # Other threads run meanwhile; `dot` of whole numbers would hold them up, and is slower.
    found = np.einsum("ij,j->i", lines, _MULTIPLIERS).tolist()
    if last.size:
        found.append(int(np.einsum("i,i->", last, _MULTIPLIERS[: last.size])))
    total = octets.size
    for each in found:
        total = (total * _STEP + each) % 2**64
    return (total * _STEP + int.from_bytes(rest.tobytes(), "little")) % 2**64
