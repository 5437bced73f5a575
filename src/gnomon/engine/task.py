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

from gnomon.compute.blas import one_blas_thread
from gnomon.engine.source import Block, Partition, Seal, Source
from gnomon.errors import ChangedSourceError, GnomonError, PartitionError

T = TypeVar("T")
Seals = tuple[tuple[int, Seal], ...]

ATTEMPTS = 3
PAUSE = 0.05  # seconds before the second attempt; twice as long before the third

OTHER = "its numbers are not those of the first time"

__all__ = ["ATTEMPTS", "Part", "Seals", "Task", "changed"]


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
        self, partition: Partition, seal: Seal | None = None, beside: Any = None
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

    def _once(self, partition: Partition, seal: Seal | None, beside: Any) -> Part[T]:
        X, found = self.source.sealed(partition)
        if self.source.scattered:
            self.source.let_go(but=partition)  # the next one may stand in the same row group
        expected = (partition.rows, self.source.columns)
        for has, had, what in zip(X.shape, expected, ("rows", "columns"), strict=True):
            if has != had:
                raise changed(partition, f"it gave {has} {what} instead of {had}")
        if seal is not None and seal != found:
            raise changed(partition)
        with one_blas_thread():
            value = self.function(Block(partition, X, beside))
        return Part(value, ((partition.index, found),), partition.rows)


def changed(partition: Partition, how: str = OTHER) -> ChangedSourceError:
    """What is told of a partition that is not what it was."""
    return ChangedSourceError(
        f"{partition} changed while it was in use: {how}. Leave it alone and start again."
    )
