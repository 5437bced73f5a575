"""What is done with one partition, wherever that is: read it, see that it is unchanged, use it.

1. The block is read. If it has not as many rows as the partition had, the table has changed.
2. Its checksum is taken, and compared with that of the first time it was read.
3. The function runs, with BLAS on one thread.

A task can run again without harm: it changes nothing but what it returns. What goes wrong for
reasons of its own (a network drive that is away for a moment) is tried three times; errors that
Gnomon raises on purpose would be the same again, and are raised at once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gnomon.engine.source import Block, Partition, Source
from gnomon.errors import ChangedSourceError, GnomonError, PartitionError
from gnomon.parallel import one_blas_thread

T = TypeVar("T")
Seals = tuple[tuple[int, int], ...]

ATTEMPTS = 3
PAUSE = 0.05  # seconds before the second attempt; twice as long before the third

__all__ = ["ATTEMPTS", "Part", "Seals", "Task", "checksum"]


@dataclass(frozen=True)
class Part(Generic[T]):
    """A result over some partitions: their rows, and their checksums by index."""

    value: T
    seals: Seals
    rows: int


@dataclass(frozen=True)
class Task(Generic[T]):
    """`function` over blocks of `source`: one object for all partitions, which can be pickled."""

    source: Source
    function: Callable[[Block], T]

    def __call__(
        self, partition: Partition, seal: int | None = None, beside: Any = None
    ) -> Part[T]:
        """The function's value for one partition; `seal` is its checksum, once known."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(partition, seal, beside)
            except GnomonError:
                raise
            except Exception as error:
                if attempt == ATTEMPTS:
                    raise PartitionError(
                        f"{partition} failed {ATTEMPTS} times; the last time with "
                        f"{type(error).__name__}: {error}"
                    ) from error
                time.sleep(PAUSE * attempt)
        raise AssertionError("unreachable")

    def _once(self, partition: Partition, seal: int | None, beside: Any) -> Part[T]:
        X = self.source.read(partition)
        expected = (partition.rows, self.source.columns)
        if X.shape != expected:
            raise _changed(partition, f"it gave {X.shape[0]} rows instead of {partition.rows}")
        found = checksum(X)
        if seal is not None and seal != found:
            raise _changed(partition, "its numbers are not those of the first time")
        with one_blas_thread():
            value = self.function(Block(partition, X, beside))
        return Part(value, ((partition.index, found),), partition.rows)


def _changed(partition: Partition, how: str) -> ChangedSourceError:
    return ChangedSourceError(
        f"{partition} changed while it was in use: {how}. Leave it alone and start again."
    )


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
    total = octets.size
    for start in range(0, whole, _WORDS):
        chunk = words[start : start + _WORDS]
        total = (total * _STEP + int(np.dot(chunk, _MULTIPLIERS[: chunk.size]))) % 2**64
    return (total * _STEP + int.from_bytes(rest.tobytes(), "little")) % 2**64
