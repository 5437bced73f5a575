"""The local engine: partitions on the threads of `gnomon.compute.threads`.

Each thread reads a partition and processes it, so that one reads while another computes. At most
one more result than there are threads waits for its turn.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gnomon.compute.threads import fold_blocks, row_blocks, thread_count
from gnomon.engine.engine import Engine
from gnomon.engine.source import Block, Source
from gnomon.engine.task import PartResult, Task
from gnomon.events import On, both, report_rows

T = TypeVar("T")

__all__ = ["LocalEngine"]

PREFETCH_PARTITIONS = 8  # partitions that a source prefetches; see benchmarks/outofcore.py


class LocalEngine(Engine):
    """Process partitions on threads of this machine.

    Parameters
    ----------
    n_jobs : int, optional
        Threads: None or −1 for all CPUs. They do not change the bits of results.
    on : callable, optional
        Called with an event after every block of every pass.
    """

    def __init__(self, n_jobs: int | None = None, on: On | None = None) -> None:
        self.n_jobs, self.on = n_jobs, on

    @property
    def workers(self) -> int:
        """Number of threads."""
        return thread_count(self.n_jobs)

    is_local = True
    processes = 0

    def write(
        self,
        function: Callable[[Block], T],
        source: Source,
        add: Callable[[T], object],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> None:
        """See `Engine.write`."""
        partitions, task = source.partitions, Task(source, function)
        extras = [None] * len(partitions) if beside is None else beside
        threads = 1 if len(partitions) == 1 else self.workers  # counting CPUs is slow

        def run(at: int, _: int) -> PartResult[T]:
            partition, next_ = partitions[at], at + threads
            if next_ < len(partitions) and not source.scattered:
                source.prefetch(partitions[next_ : next_ + PREFETCH_PARTITIONS])
            return task(partition, source.seals.get(partition.index), extras[at])

        worked, reports = 0, both(self.on, on)
        total = sum(partition.rows for partition in partitions)  # may be a subset

        def take(part: PartResult[T]) -> None:
            nonlocal worked
            add(part.value)
            source.seals.update(part.seals)
            worked += part.rows
            report_rows(reports, worked, total)

        try:
            alone = len(partitions) - _shared_partitions(source, threads)
            fold_blocks(run, row_blocks(alone, 1), take, n_jobs=self.n_jobs)
            for at in range(alone, len(partitions)):
                take(run(at, 1))
        finally:
            source.prefetch(())
            source.release()  # the next pass starts from the front


def _shared_partitions(source: Source, threads: int) -> int:
    """Number of last partitions that threads work on together, one after the other.

    These are a single partition, and those of an array in memory that would keep only some of the
    threads busy. Partitions of files are read on threads too, so each has its own thread.
    """
    partitions = source.partitions
    rows = partitions[0].rows if partitions else 0
    if len(partitions) == 1:
        return 1
    if threads == 1 or source.array() is None or any(p.rows != rows for p in partitions[:-1]):
        return 0
    whole = sum(partition.rows for partition in partitions) // rows
    return len(partitions) - whole // threads * threads
