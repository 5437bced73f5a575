"""The engine of a Dask cluster: the same tasks as on this machine, added up in the same tree.

1. The task, which is the source and the function, is sent once; the scheduler keeps it, so that a
   worker that comes later, or in the place of one that died, gets it too.
2. Partitions are handed out in order, only as many as keep the workers busy: what waits in the
   cluster's memory does not grow with the table.
3. `reduce`: sixteen results that lie beside each other are added on a worker, sixteen such sums on
   another, and so on (`gnomon.engine.tree`); one result comes back. Who finishes first changes
   nothing.
4. `write`: results come back and are written here, in order. Workers that wrote parts themselves
   would need a disk that all share, and a worker that died, or ran twice, would leave parts behind.

Tasks change nothing but what they return, so Dask may run them again when a worker dies. A
partition on which workers die again and again, a cluster that has lost all its workers, and a
scheduler that does not answer are errors within a minute.
"""

import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gnomon.engine.source import Block, Partition, Source
from gnomon.engine.task import Part, Task
from gnomon.engine.tree import FAN, fold
from gnomon.errors import ClusterError, DataError, GnomonError, PartitionError, refuse

T = TypeVar("T")
Done = Callable[[int], object]

PAUSE = 0.1  # seconds until a result that was lost is asked after again
LOOK = 2.0  # seconds without a result after which the cluster is asked whether it is well
ANSWER = 10.0  # seconds that the scheduler has to answer
PATIENCE = 20.0  # seconds that a cluster may be without workers, or its scheduler silent
FETCH = 600.0  # seconds that one result may take to come over the network
ENDED = ("finished", "error", "cancelled")
AHEAD = 2  # partitions handed out for each thread of the cluster

__all__ = ["DaskEngine", "dask_setup"]


class DaskEngine:
    """Partitions on the workers of a Dask cluster; the methods are those of `Engine`.

    Parameters
    ----------
    client : distributed.Client
        Its workers must have Gnomon, and see the source's files under the same names.
    """

    def __init__(self, client: Any) -> None:
        if getattr(client, "asynchronous", False):
            refuse("engine", "be a client that is not asynchronous", "an asynchronous client")
        self.client = client

    @property
    def workers(self) -> int:
        """Blocks in this process at a time; those of the workers are not in it."""
        return 1

    def map(
        self,
        function: Callable[[Block], T],
        source: Source,
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> list[T]:
        """See `Engine.map`."""
        results: list[T] = []
        self.write(function, source, results.append, beside=beside, done=done)
        return results

    def write(
        self,
        function: Callable[[Block], T],
        source: Source,
        add: Callable[[T], object],
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> None:
        """See `Engine.write`."""
        run = _Run(self.client, source, function, beside)
        count, ahead = len(source.partitions), AHEAD * run.threads + 2
        waiting: deque[Any] = deque()
        worked = 0
        for at in range(count + ahead):
            if at < count:
                waiting.append(run.leaf(at))
            if waiting and at >= ahead:
                worked += _rows(source.partitions[at - ahead : at - ahead + 1])
                add(run.take(waiting.popleft()).value)
                if done is not None:
                    done(worked)

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> T:
        """See `Engine.reduce`."""
        if not source.partitions:
            raise DataError("The source has no rows: there is nothing to add up.")
        run = _Run(self.client, source, function, beside)
        tree = _FutureTree(lambda children: run.node(children, combine))
        most = 1 + AHEAD * run.threads // FAN
        waiting: deque[tuple[int, Any]] = deque()
        count, worked = len(source.partitions), 0
        for start in range(0, count, FAN):
            stop = min(start + FAN, count)
            node = run.node([run.leaf(at) for at in range(start, stop)], combine)
            tree.add(node)
            waiting.append((_rows(source.partitions[start:stop]), node))
            while len(waiting) > most or (waiting and stop == count):
                rows, node = waiting.popleft()
                run.wait(node)
                worked += rows
                if done is not None:
                    done(worked)
        result: T = run.take(tree.total()).value
        return result


class _FutureTree:
    """The tree of `gnomon.engine.tree` from its second level on, of sums that are still to come.

    Each is handed to the cluster as soon as its parts are: so few of them are waiting at any time.
    """

    def __init__(self, node: Callable[[list[Any]], Any]) -> None:
        self.node = node
        self.levels: list[list[Any]] = []

    def add(self, future: Any, level: int = 0) -> None:
        """The next sum of a level."""
        if level == len(self.levels):
            self.levels.append([])
        here = self.levels[level]
        here.append(future)
        if len(here) == FAN:
            self.levels[level] = []
            self.add(self.node(here), level + 1)

    def total(self) -> Any:
        """The root: what is left on each level, with what came up from below as the last part."""
        carried: list[Any] = []
        for here in self.levels:
            if here or carried:
                carried = [self.node([*here, *carried])]
        return carried[0]


class _Run:
    """One pass over a source: what was handed out, and whether the cluster is still there."""

    def __init__(
        self,
        client: Any,
        source: Source,
        function: Callable[[Block], Any],
        beside: Sequence[Any] | None,
    ) -> None:
        import cloudpickle

        self.client, self.source, self.beside = client, source, beside
        self.name = f"gnomon-{uuid.uuid4().hex}"
        self.made = 0
        self.well = time.monotonic()  # when the cluster was last known to be well
        try:
            self.threads = max(1, self._ask())
        except (TimeoutError, OSError) as error:
            raise ClusterError(f"The Dask scheduler does not answer. {START_AGAIN}") from error
        packed = cloudpickle.dumps(Task(source, function))  # not to be unpacked by the scheduler
        self.task = self._submit(_unpack, packed, key=f"{self.name}-task")

    def _submit(self, function: Callable[..., Any], *args: Any, key: str, **how: Any) -> Any:
        import dask

        # A map is sent whole; that it is large is known.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(function, *args, key=key, pure=False, **how)

    def leaf(self, at: int) -> Any:
        """The future of one partition's result."""
        partition = self.source.partitions[at]
        extra = None if self.beside is None else self.beside[at]
        seal = self.source.seals.get(partition.index)
        return self._submit(_work, self.task, partition, seal, extra, key=f"{self.name}-{at}")

    def node(self, children: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
        """The future of their sum; it comes before partitions that are still to be read."""
        if len(children) == 1:
            return children[0]
        self.made += 1
        return self._submit(_fold, children, combine, key=f"{self.name}-sum{self.made}", priority=1)

    def take(self, future: Any) -> Part[Any]:
        """The result, once it is there; its checksums are kept."""
        seconds = ANSWER
        while True:
            self.wait(future)
            try:
                part: Part[Any] = future.result(timeout=seconds)
                break
            except TimeoutError:
                # It is on its way, or it was lost with its worker, and is waited for again.
                seconds *= 2
            except Exception as error:
                raise self._explained(error) from error
            if seconds > FETCH:
                raise ClusterError(
                    f"A result took more than {FETCH:g} s to come from the cluster. Check its "
                    "network."
                )
        self.source.seals.update(part.seals)
        return part

    def wait(self, future: Any) -> None:
        """Until there is a result; an error if it is one, or if the cluster is gone."""
        told, looked = _told(future), time.monotonic()
        self.well = looked
        while future.status not in ENDED:
            if told.wait(LOOK) and future.status not in ENDED:
                # Lost with its worker, which Dask calls done as well: it is to come again.
                time.sleep(PAUSE)
                told = _told(future)
            if time.monotonic() - looked > LOOK:
                self._look()
                looked = time.monotonic()
        self.well = time.monotonic()
        if future.status != "finished":
            try:
                future.result(timeout=ANSWER)
            except Exception as error:
                raise self._explained(error) from error

    def _look(self) -> None:
        """See whether somebody is still working; nobody for too long is an error."""
        why = "its scheduler does not answer"
        try:
            if self._ask():
                self.well = time.monotonic()
                return
            why = "it has no workers"
        except (TimeoutError, OSError, AttributeError):
            pass
        silent = time.monotonic() - self.well
        if silent > PATIENCE:
            raise ClusterError(
                f"The Dask cluster is lost: {why}, for {silent:.0f} s. {START_AGAIN}"
            )

    def _ask(self) -> int:
        """Threads of all workers, from the scheduler itself."""
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(f"The Dask client is {self.client.status}. {START_AGAIN}")
        found = self.client.sync(self.client.scheduler.ncores, callback_timeout=ANSWER)
        return sum(found.values())

    def _explained(self, error: BaseException) -> BaseException:
        """Our own errors as they are; the cluster's as a sentence."""
        from distributed import KilledWorker

        if isinstance(error, GnomonError):
            return error
        if getattr(error, "reason", "") == "scheduler-connection-lost":
            return ClusterError(f"The Dask cluster is lost: its scheduler is gone. {START_AGAIN}")
        if isinstance(error, KilledWorker):
            at = str(error.task).removeprefix(f"{self.name}-")
            where: Any = self.source.partitions[int(at)] if at.isdigit() else "A sum of results"
            return PartitionError(
                f"{where} failed {error.allowed_failures + 1} times: each time the worker died, "
                "perhaps for want of memory. Use smaller blocks or larger workers."
            )
        return ClusterError(
            f"The Dask cluster could not do the work ({type(error).__name__}: {error}). Scheduler "
            "and workers need the same version of Gnomon, and the workers the same files."
        )


def dask_setup(_: Any) -> None:
    """What a worker of our own does first, as Dask calls it: Ctrl-C is for who started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


START_AGAIN = "Start it again, or work without `engine`."


def _told(future: Any) -> threading.Event:
    """Set once the future is done."""
    told = threading.Event()
    future.add_done_callback(lambda _: told.set())
    return told


def _rows(partitions: Sequence[Partition]) -> int:
    return sum(partition.rows for partition in partitions)


def _unpack(packed: bytes) -> Task[Any]:
    import cloudpickle

    task: Task[Any] = cloudpickle.loads(packed)
    return task


def _work(task: Task[T], partition: Partition, seal: int | None, beside: Any) -> Part[T]:
    return task(partition, seal, beside)


def _fold(parts: list[Part[T]], combine: Callable[[T, T], T]) -> Part[T]:
    return fold(parts, combine)
