"""One task: read a partition, check that it is unchanged, call the function; with retries.

1. The block is read. If its number of rows differs from the partition's, the table has changed.
2. Its checksum is computed, and compared with that of the first read.
3. The function runs, with BLAS on one thread.

A task can be repeated without harm: it has no side effects. Transient errors (a network drive
that is unavailable for a moment) are retried up to three times; errors that Gnomon raises on
purpose would recur, and are raised at once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gnomon.compute.blas import one_blas_thread
from gnomon.engine.source import Block, Partition, Seal, Source
from gnomon.errors import ChangedSourceError, GnomonError, PartitionError

T = TypeVar("T")
Seals = tuple[tuple[int, Seal], ...]

ATTEMPTS = 3  # at reading a partition
RETRY_SECONDS = 0.05  # seconds before the second attempt; twice as long before the third

OTHER = "its numbers are not those of the first time"

__all__ = ["ATTEMPTS", "PartResult", "Seals", "Task", "changed"]


@dataclass(frozen=True)
class PartResult(Generic[T]):
    """A result over some partitions: their number of rows, and their checksums by index."""

    value: T
    seals: Seals
    rows: int


@dataclass(frozen=True)
class Task(Generic[T]):
    """`function` over blocks of `source`: one picklable object for all partitions."""

    source: Source
    function: Callable[[Block], T]

    def __call__(
        self, partition: Partition, seal: Seal | None = None, beside: Any = None
    ) -> PartResult[T]:
        """Run the function on one partition; `seal` is the partition's checksum, once known."""
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
                time.sleep(RETRY_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _once(self, partition: Partition, seal: Seal | None, beside: Any) -> PartResult[T]:
        X, found = self.source.read_checked(partition)
        if self.source.scattered:
            self.source.release(but=partition)  # the next partition may be in the same row group
        expected = (partition.rows, self.source.columns)
        for has, had, what in zip(X.shape, expected, ("rows", "columns"), strict=True):
            if has != had:
                raise changed(partition, f"it gave {has} {what} instead of {had}")
        if seal is not None and seal != found:
            raise changed(partition)
        with one_blas_thread():
            value = self.function(Block(partition, X, beside))
        return PartResult(value, ((partition.index, found),), partition.rows)


def changed(partition: Partition, how: str = OTHER) -> ChangedSourceError:
    """Error about a partition that changed between two reads."""
    return ChangedSourceError(
        f"{partition} changed while it was in use: {how}. Leave it alone and start again."
    )
