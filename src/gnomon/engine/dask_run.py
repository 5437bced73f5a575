"""One pass over a source on a Dask cluster: what is handed out, and how long it is waited for.

Nothing is waited for without an end. While a result is awaited the scheduler is asked, every
second, how many threads the workers have and how many of them died under which task:

- a partition on which three workers died is an error with its file and rows, whatever the scheduler
  itself would allow;
- a cluster that has no workers, or a scheduler that does not answer, is an error within a minute;
- a result that is there and does not come is one too, after three attempts: of ten seconds, and
  from the second on of as much longer as a slow network would need for it.

After an error, or Ctrl-C, the cluster is told to drop what is left to do.
"""

import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from gnomon.engine.source import Block, Partition, Seal, Source
from gnomon.engine.task import ATTEMPTS, Part, Task
from gnomon.engine.tree import fold
from gnomon.errors import ClusterError, GnomonError, Parameter, PartitionError, Remedy

T = TypeVar("T")

PAUSE = 0.1  # seconds until a result that was lost is asked after again
LOOK = 1.0  # seconds without a result after which the cluster is asked whether it is well
ANSWER = 10.0  # seconds that the scheduler has to answer, and a small result to come
PATIENCE = 20.0  # seconds that a cluster may be without workers, or its scheduler silent
FETCHES = 3  # times that a result is asked for
PACE = 2e6  # bytes a second: a large result has as much longer to come as a slow network needs
SILENT = (TimeoutError, OSError, AttributeError, RuntimeError)  # what a lost client raises
ENDED = ("finished", "error", "cancelled")
ENGINE = Parameter("engine")

__all__ = ["Run"]


class Run:
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
        self.held: weakref.WeakSet[Any] = weakref.WeakSet()  # futures that are still referenced
        self.well = time.monotonic()  # when the cluster was last known to be well
        try:
            self.threads = max(1, self._ask())
        except GnomonError:
            raise
        except SILENT as error:
            raise ClusterError(
                "The Dask scheduler does not answer.", Remedy.START_AGAIN, parameter=ENGINE
            ) from error
        packed = cloudpickle.dumps(Task(source, function))  # not to be unpacked by the scheduler
        self.task = self._submit(_unpack, packed, key=f"{self.name}-task")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """After an error, have the cluster drop what is left to do.

        Otherwise it would go on for as long as the error, and with it the futures, is referenced.
        """
        if error is not None:
            for future in list(self.held):
                with suppress(Exception):  # a client that is gone needs no telling
                    future.release()

    def _submit(self, function: Callable[..., Any], *args: Any, key: str, **how: Any) -> Any:
        import dask

        # A map is sent whole; that it is large is known.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            try:
                future = self.client.submit(function, *args, key=key, pure=False, **how)
            except Exception as error:
                self._refuse_closed()
                raise self._explained(error) from error
        self.held.add(future)
        return future

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
        self.wait(future)
        self.well = time.monotonic()  # it may have been there for long, and not looked at
        seconds = ANSWER
        for attempt in range(FETCHES):
            if attempt:
                # It is large, or on its way, or was lost with its worker and is to come again.
                self._look()
                self.wait(future)
                seconds = ANSWER + self._bytes(future) / PACE
            try:
                part: Part[Any] = future.result(timeout=seconds)
            except TimeoutError:
                continue
            except Exception as error:
                raise self._explained(error) from error
            else:
                self.source.seals.update(part.seals)
                return part
        raise ClusterError(
            f"A result did not come from the cluster, {FETCHES} times in a row; the last time "
            f"within {seconds:.0f} s. Check its network and its workers."
        )

    def wait(self, future: Any) -> None:
        """Until there is a result; an error if it is one, or if the cluster is gone."""
        if future.status == "finished":
            return
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
        """Check that workers are alive; a cluster without workers for too long is an error."""
        why = "its scheduler does not answer"
        try:
            threads = self._ask()
            self._count_deaths()
            if threads:
                self.well = time.monotonic()
                return
            why = "it has no workers"
        except GnomonError:
            raise
        except SILENT:
            pass
        silent = time.monotonic() - self.well
        if silent > PATIENCE:
            raise ClusterError(
                "The Dask cluster is lost: {why}, for {silent:.0f} s.", Remedy.START_AGAIN,
                why=why, silent=silent, parameter=ENGINE,
            )  # fmt: skip

    def _ask(self) -> int:
        """Threads of all workers, from the scheduler itself."""
        self._refuse_closed()
        found = self.client.sync(self.client.scheduler.ncores, callback_timeout=ANSWER)
        return sum(found.values())

    def _refuse_closed(self) -> None:
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(
                "The Dask client is {status}.", Remedy.START_AGAIN,
                status=self.client.status, parameter=ENGINE,
            )  # fmt: skip

    def _count_deaths(self) -> None:
        """A task under which three workers died is an error, and is not tried on a fourth.

        Schedulers have a limit of their own, which may be higher (Dask's is four) or endless.
        """
        try:
            found = self._suspects()
        except SILENT:
            return  # which the next look will find
        except Exception as error:
            raise self._explained(error) from error
        if found and max(found.values()) >= ATTEMPTS:
            raise self._killed(found)

    def _suspects(self) -> dict[str, int]:
        """How many workers died under each task of this run, by its key."""
        found: dict[str, int] = self.client.run_on_scheduler(
            _deaths, self.name, callback_timeout=ANSWER
        )
        return found

    def _place(self, key: str) -> float:
        """The number of a task's partition; sums come behind all of them."""
        at = key.removeprefix(f"{self.name}-")
        return int(at) if at.isdigit() else float("inf")

    def _killed(self, suspects: dict[str, int]) -> PartitionError:
        """The task with most deaths; several where as many died under each of them.

        A worker is given more than one task at a time, and nothing says which it was working on.
        """
        deaths = max(suspects.values())
        places = sorted(self._place(key) for key in suspects if suspects[key] == deaths)
        where = " or ".join(
            "a sum of results" if at == float("inf") else str(self.source.partitions[int(at)])
            for at in places
        )
        times = "once: the" if deaths == 1 else f"{deaths} times: each time the"
        return PartitionError(
            f"{where} failed {times} worker died, perhaps for want of memory. Use smaller blocks "
            "or larger workers."
        )

    def _bytes(self, future: Any) -> float:
        """How large a result is, as far as the scheduler knows."""
        ask, keys = self.client.scheduler.nbytes, [future.key]
        try:
            found = self.client.sync(ask, keys=keys, summary=False, callback_timeout=ANSWER)
        except SILENT:
            return 0.0
        return float(sum(found.values()))

    def _explained(self, error: BaseException) -> BaseException:
        """Our own errors as they are; the cluster's as a sentence."""
        from distributed import KilledWorker

        if isinstance(error, GnomonError):
            return error
        if getattr(error, "reason", "") == "scheduler-connection-lost":
            return ClusterError(
                "The Dask cluster is lost: its scheduler is gone.",
                Remedy.START_AGAIN,
                parameter=ENGINE,
            )
        if isinstance(error, KilledWorker):
            suspects: dict[str, int] = {}
            with suppress(Exception):  # a scheduler that is gone now did say this much
                suspects = self._suspects()
            return self._killed({str(error.task): error.allowed_failures + 1} | suspects)
        return ClusterError(
            f"The Dask cluster could not do the work ({type(error).__name__}: {error}). Scheduler "
            "and workers need the same version of Gnomon, and the workers the same files."
        )


def _told(future: Any) -> threading.Event:
    """Set once the future is done."""
    told = threading.Event()
    future.add_done_callback(lambda _: told.set())
    return told


def _deaths(name: str, dask_scheduler: Any = None) -> dict[str, int]:
    """On the scheduler: how many workers died under each of a run's tasks."""
    return {
        key: task.suspicious
        for key, task in dask_scheduler.tasks.items()
        if task.suspicious and str(key).startswith(name)
    }


def _unpack(packed: bytes) -> Task[Any]:
    import cloudpickle

    task: Task[Any] = cloudpickle.loads(packed)
    return task


def _work(task: Task[T], partition: Partition, seal: Seal | None, beside: Any) -> Part[T]:
    return task(partition, seal, beside)


def _fold(parts: list[Part[T]], combine: Callable[[T, T], T]) -> Part[T]:
    return fold(parts, combine)
