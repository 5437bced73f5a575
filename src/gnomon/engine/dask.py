"""The Dask engine: the same tasks as on this machine, added up in the same tree.

1. The task (source and function) is sent once; the scheduler keeps it, so that a
   worker that joins later, or replaces one that died, gets it too.
2. Partitions are submitted in order, only as many as keep the workers busy: the memory of pending
   results does not grow with the table.
3. `reduce`: sixteen adjacent results are added on a worker, sixteen such sums on
   another, and so on (`gnomon.engine.tree_sum`); one result comes back. The order in which workers
   finish changes nothing.
4. `write`: results come back and are written here, in order. Workers that wrote parts themselves
   would need a shared disk, and a worker that died, or ran twice, would leave parts behind.

Tasks have no side effects, so Dask may run them again when a worker dies. Timeouts are described
in `gnomon.engine.dask_run`.
"""

import signal
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gnomon.engine.dask_run import ClusterPass
from gnomon.engine.engine import Engine
from gnomon.engine.source import Block, Partition, Source
from gnomon.engine.tree_sum import FAN
from gnomon.errors import DataError, refuse
from gnomon.events import On, both, report_rows

T = TypeVar("T")

PARTITIONS_PER_THREAD = 2  # partitions submitted per thread of the cluster: one runs, one waits

__all__ = ["DaskEngine", "dask_setup"]


class DaskEngine(Engine):
    """Process partitions on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Its scheduler and workers must have the same version of Gnomon, and the workers must find
        the source's files at the same paths.
    processes : int
        Number of workers that are processes of this machine and share the memory allowed here.
    on : callable, optional
        Called with an event after every block of every pass.
    """

    def __init__(self, client: Any, processes: int = 0, on: On | None = None) -> None:
        if getattr(client, "asynchronous", False):
            refuse("engine", "be a client that is not asynchronous", "an asynchronous client")
        self.client, self.processes, self.on = client, processes, on

    is_local = False

    @property
    def workers(self) -> int:
        """Number of blocks in this process at a time, not counting those on workers."""
        return 1

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
        with ClusterPass(self.client, source, function, beside) as run:
            count, ahead = len(source.partitions), PARTITIONS_PER_THREAD * run.threads + 2
            waiting: deque[Any] = deque()
            worked, total, reports = 0, _rows(source.partitions), both(self.on, on)
            for at in range(count + ahead):
                if at < count:
                    waiting.append(run.leaf(at))
                if waiting and at >= ahead:
                    worked += _rows(source.partitions[at - ahead : at - ahead + 1])
                    add(run.take(waiting.popleft()).value)
                    report_rows(reports, worked, total)

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> T:
        """See `Engine.reduce`."""
        if not source.partitions:
            raise DataError("The source has no rows. Add rows.")
        with ClusterPass(self.client, source, function, beside) as run:
            tree = _FutureTree(lambda children: run.node(children, combine))
            most = 1 + PARTITIONS_PER_THREAD * run.threads // FAN
            waiting: deque[tuple[int, Any]] = deque()
            count, worked = len(source.partitions), 0
            total, reports = _rows(source.partitions), both(self.on, on)
            for start in range(0, count, FAN):
                stop = min(start + FAN, count)
                node = run.node([run.leaf(at) for at in range(start, stop)], combine)
                tree.add(node)
                waiting.append((_rows(source.partitions[start:stop]), node))
                while len(waiting) > most or (waiting and stop == count):
                    rows, node = waiting.popleft()
                    run.wait(node)
                    worked += rows
                    report_rows(reports, worked, total)
            result: T = run.take(tree.total()).value
        return result


class _FutureTree:
    """The tree of `gnomon.engine.tree_sum` from its second level on, over futures.

    Each sum is submitted as soon as its parts are, so that few sums wait at any time.
    """

    def __init__(self, node: Callable[[list[Any]], Any]) -> None:
        self.node = node
        self.levels: list[list[Any]] = []

    def add(self, future: Any, level: int = 0) -> None:
        """Append the next sum of a level."""
        if level == len(self.levels):
            self.levels.append([])
        here = self.levels[level]
        here.append(future)
        if len(here) == FAN:
            self.levels[level] = []
            self.add(self.node(here), level + 1)

    def total(self) -> Any:
        """Future of the root: the rest of each level, with the sum from below as the last part."""
        carried: list[Any] = []
        for here in self.levels:
            if here or carried:
                carried = [self.node([*here, *carried])]
        return carried[0]


def dask_setup(_: Any) -> None:
    """Preload hook of Dask in our own workers: ignore Ctrl-C, which the parent process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _rows(partitions: Sequence[Partition]) -> int:
    return sum(partition.rows for partition in partitions)
