"""The contract of a table in blocks.

A source knows its columns and lists its partitions: small references (a file, a range of rows),
never data. `Source.read` reads one of them as an array. It may be called for any partition, any
number of times, on several threads and in other processes, and returns the same numbers each time;
`gnomon.engine.task` enforces this by counting rows and comparing checksums.
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

# Default size of a partition: 8 MB of float64. Large enough that the overhead of reading and
# scheduling is negligible, and small enough that threads share a table of a few partitions evenly.
# With more than 256 columns it holds up to four times as much: d × d sums are added once per
# partition, and 4,096 rows may be added in float32 (`numeric.moments`). `benchmarks/part_rows.py`
# compares these lengths with others.
PARTITION_NUMBERS = 2**20
WIDE_TIMES = 4  # times PARTITION_NUMBERS, at most
WIDE_ROWS = 4096  # rows, at most, of tables of more than 256 columns
INDEX_BYTES = 4  # of the column of an entry of a CSR array; 8 beyond 2^31 entries


@dataclass(frozen=True)
class Partition:
    """A reference to some rows of a table.

    Attributes
    ----------
    index : int
        Position in the order of all partitions, from 0.
    start : int
        First row, counted over the whole table.
    rows : int
        Number of rows.
    file : str
        File of the rows, or the name of the table if there is no file.
    first : int
        First row, counted in that file.
    place : object
        Position within the file for the source: a byte offset, row groups. Small and picklable.
    """

    index: int
    start: int
    rows: int
    file: str
    first: int = 0
    place: Any = None

    @property
    def stop(self) -> int:
        """First row after these, counted over the whole table."""
        return self.start + self.rows

    def __str__(self) -> str:
        return f"{self.file}, rows {self.first} to {self.first + self.rows - 1}"


@dataclass(frozen=True)
class Block:
    """Input of a task: the rows of one partition, and the data that goes with them.

    `X` is (rows, d) and read-only; `beside` is the data that the caller of the engine passed
    for this partition (weights of its rows, for instance).
    """

    partition: Partition
    X: NDArray[Any]
    beside: Any = None


class Source(ABC):
    """A table that is read in blocks of rows, repeatedly, in the same order.

    Attributes
    ----------
    columns : int
        Number of columns of every block.
    names : tuple of str or None
        Column names, if any.
    dtype : dtype
        Type of the numbers in every block.
    partitions : sequence of Partition
        All partitions, in order.
    seals : mapping of int to Seal
        Checksums of the partitions read so far, by index; see `gnomon.engine.task`. A source
        made of others shares theirs: a checksum of one pass is checked in every later pass.
    held_from : Source or None
        The original source of a table that was read into memory.
    part_rows : int or None
        Rows per partition requested by the user.
    scattered : bool
        Whether the partitions are few and far apart, so that reading ahead would be wasted.

    A copy pickled for a worker reads like any other, but has no list of partitions: the task
    passes the partition to read.
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
        """Read the rows of one partition, shape (partition.rows, columns), of type `dtype`."""

    def array(self) -> Any:
        """The whole table as an array or CSR array if it is in memory; otherwise None."""
        return None

    @property
    def stored(self) -> int | None:
        """Entries that a sparse table stores, whose blocks are CSR arrays; None for a dense one."""
        return None

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR arrays."""
        return self.stored is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the table in memory: of its numbers or, if sparse, of its entries and rows."""
        if self.stored is None:
            return self.rows * self.columns * self.dtype.itemsize
        return self.stored * (self.dtype.itemsize + INDEX_BYTES) + 8 * (self.rows + 1)

    def read_checked(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """Read a partition and its checksum, which must not change."""
        X = self.read(partition)
        return X, checksum(X)

    def only(self, partitions: Sequence[Partition]) -> Self:
        """Select some of the partitions, which keep their index."""
        some = copy.copy(self)
        some.partitions, some.seals = partitions, self.seals
        span = partitions[-1].index - partitions[0].index + 1 if partitions else 0
        some.scattered = 0 < 2 * len(partitions) <= span
        return some

    def limit(self, memory: int | None) -> Self:
        """Limit the memory of reading to `memory` bytes, if the source can.

        None means no limit.
        """
        return self

    def prefetch(self, partitions: Sequence[Partition]) -> None:  # noqa: B027  (most ignore it)
        """Prefetch the partitions that will be read next, in order.

        An empty sequence drops everything that was prefetched.
        """

    def release(self, but: Partition | None = None) -> None:  # noqa: B027  (most keep no file)
        """Close files kept open for the partitions after those read so far.

        Files kept open for the partitions after `but` stay open.
        """

    @property
    def rows(self) -> int:
        """Number of rows of the whole table."""
        last = self.partitions[-1] if self.partitions else None
        return 0 if last is None else last.stop

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
    """Rows per partition: `rows` if given, otherwise a function of the number of columns."""
    if rows is not None:
        return rows
    short = PARTITION_NUMBERS // max(1, columns)
    return max(1, short, min(WIDE_ROWS, WIDE_TIMES * PARTITION_NUMBERS // max(1, columns)))


_WORDS = 8192  # 64 kB, which stay in the cache
_MULTIPLIERS = np.random.default_rng(9).integers(2**63, size=_WORDS, dtype=np.uint64) | np.uint64(1)
_STEP = 0x9E3779B97F4A7C15  # odd, so that no bit of an earlier chunk is lost in the product


def checksum(X: Any) -> int:
    """64-bit checksum that depends on every number of `X` and its position, at memory speed.

    That of a CSR array is made of those of its three arrays.

    Σ word · odd multiplier within 64 kB, chunks combined by Horner's rule, both modulo 2^64. It
    detects accidental changes of files, not forgeries. Numbers are read in memory order, column by
    column in a Fortran-ordered array: a source returns every block in the same order each time.
    """
    if hasattr(X, "indptr"):
        total = 0
        for part in (X.indptr, X.indices, X.data):
            total = (total * _STEP + checksum(part)) % 2**64
        return total
    lying = X.T if X.flags.f_contiguous else X
    octets = np.ascontiguousarray(lying).reshape(-1).view(np.uint8)
    whole = octets.size // 8
    words, rest = octets[: 8 * whole].view(np.uint64), octets[8 * whole :]
    lines = words[: whole // _WORDS * _WORDS].reshape(-1, _WORDS)
    last = words[lines.size :]
    # Releases the GIL; `dot` of integers would hold it, and is slower.
    found = np.einsum("ij,j->i", lines, _MULTIPLIERS).tolist()
    if last.size:
        found.append(int(np.einsum("i,i->", last, _MULTIPLIERS[: last.size])))
    total = octets.size
    for each in found:
        total = (total * _STEP + each) % 2**64
    return (total * _STEP + int.from_bytes(rest.tobytes(), "little")) % 2**64
