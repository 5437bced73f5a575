"""One pass over a source on a Dask cluster: submitting tasks, and timeouts for their results.

Every wait has a timeout. While a result is awaited the scheduler is polled every
second for the number of worker threads and for the deaths of workers per task:

- a partition on which three workers died is an error with its file and rows, whatever limit the
  scheduler has;
- a cluster without workers, or a scheduler that does not answer, is an error within a minute;
- a finished result that does not arrive is an error after three attempts: the first of ten seconds,
  the next ones longer by what a slow network would need for its size.

After an error, or Ctrl-C, the remaining tasks on the cluster are cancelled.
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
from gnomon.engine.task import ATTEMPTS, PartResult, Task
from gnomon.engine.tree_sum import fold
from gnomon.errors import ClusterError, GnomonError, Parameter, PartitionError, Remedy

T = TypeVar("T")

# Patience: chosen, not measured.
RETRY_SECONDS = 0.1  # seconds before a lost result is requested again
POLL_SECONDS = 1.0  # seconds without a result before the cluster is polled
ANSWER_SECONDS = 10.0  # timeout in seconds of the scheduler's answer, and of a small result
LOST_SECONDS = 20.0  # seconds without workers, or without an answer of the scheduler
FETCH_ATTEMPTS = 3  # attempts to fetch a result
SLOW_BYTES_PER_SECOND = 2e6  # bytes a second: a slow network, for the timeout of a large result
SILENT = (TimeoutError, OSError, AttributeError, RuntimeError)  # what a lost client raises
ENDED = ("finished", "error", "cancelled")
ENGINE = Parameter("engine")

__all__ = ["ClusterPass"]


class ClusterPass:
    """One pass over a source: the submitted tasks, and whether the cluster is alive."""

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
        self.well = time.monotonic()  # when the cluster was last known to be alive
        try:
            self.threads = max(1, self._ask())
        except GnomonError:
            raise
        except SILENT as error:
            raise ClusterError(
                "The Dask scheduler does not answer.", Remedy.START_AGAIN, parameter=ENGINE
            ) from error
        packed = cloudpickle.dumps(Task(source, function))  # opaque to the scheduler
        self.task = self._submit(_unpack, packed, key=f"{self.name}-task")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Cancel the remaining tasks after an error.

        Otherwise they would run for as long as the error, and with it the futures, is referenced.
        """
        if error is not None:
            for future in list(self.held):
                with suppress(Exception):  # a lost client cannot cancel, nor needs to
                    future.release()

    def _submit(self, function: Callable[..., Any], *args: Any, key: str, **how: Any) -> Any:
        import dask

        # A map is sent whole; ignore the warning that it is large.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            try:
                future = self.client.submit(function, *args, key=key, pure=False, **how)
            except Exception as error:
                self._refuse_closed()
                raise self._explained(error) from error
        self.held.add(future)
        return future

    def leaf(self, at: int) -> Any:
        """Submit one partition; return the future of its result."""
        partition = self.source.partitions[at]
        extra = None if self.beside is None else self.beside[at]
        seal = self.source.seals.get(partition.index)
        return self._submit(_work, self.task, partition, seal, extra, key=f"{self.name}-{at}")

    def node(self, children: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Submit a sum, with priority over partitions still to be read; return its future."""
        if len(children) == 1:
            return children[0]
        self.made += 1
        return self._submit(fold, children, combine, key=f"{self.name}-sum{self.made}", priority=1)

    def take(self, future: Any) -> PartResult[Any]:
        """Wait for the result and return it; record its checksums."""
        self.wait(future)
        self.well = time.monotonic()  # the result may be old: restart the timeout
        seconds = ANSWER_SECONDS
        for attempt in range(FETCH_ATTEMPTS):
            if attempt:
                # It is large, or on its way, or was lost with its worker and is recomputed.
                self._look()
                self.wait(future)
                seconds = ANSWER_SECONDS + self._bytes(future) / SLOW_BYTES_PER_SECOND
            try:
                part: PartResult[Any] = future.result(timeout=seconds)
            except TimeoutError:
                continue
            except Exception as error:
                raise self._explained(error) from error
            else:
                self.source.seals.update(part.seals)
                return part
        raise ClusterError(
            f"A result did not arrive from the cluster in {FETCH_ATTEMPTS} attempts; the last time "
            f"within {seconds:.0f} s. Check its network and its workers."
        )

    def wait(self, future: Any) -> None:
        """Wait for a result; raise its error, or an error if the cluster is lost."""
        if future.status == "finished":
            return
        done, looked = _done_event(future), time.monotonic()
        self.well = looked
        while future.status not in ENDED:
            if done.wait(POLL_SECONDS) and future.status not in ENDED:
                # Lost with its worker, which Dask also reports as done: it is recomputed.
                time.sleep(RETRY_SECONDS)
                done = _done_event(future)
            if time.monotonic() - looked > POLL_SECONDS:
                self._look()
                looked = time.monotonic()
        self.well = time.monotonic()
        if future.status != "finished":
            try:
                future.result(timeout=ANSWER_SECONDS)
            except Exception as error:
                raise self._explained(error) from error

    def _look(self) -> None:
        """Check that workers are alive; raise an error if there were none for too long."""
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
        if silent > LOST_SECONDS:
            raise ClusterError(
                "The Dask cluster is lost: {why}, for {silent:.0f} s.",
                Remedy.START_AGAIN,
                why=why,
                silent=silent,
                parameter=ENGINE,
            )

    def _ask(self) -> int:
        """Ask the scheduler for the number of threads of all workers."""
        self._refuse_closed()
        found = self.client.sync(self.client.scheduler.ncores, callback_timeout=ANSWER_SECONDS)
        return sum(found.values())

    def _refuse_closed(self) -> None:
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(
                "The Dask client is {status}.",
                Remedy.START_AGAIN,
                status=self.client.status,
                parameter=ENGINE,
            )

    def _count_deaths(self) -> None:
        """Raise an error for a task on which three workers died, instead of trying a fourth.

        The limit of the scheduler may be higher (Dask's is four) or infinite.
        """
        try:
            found = self._suspects()
        except SILENT:
            return  # the next `_look` will report it
        except Exception as error:
            raise self._explained(error) from error
        if found and max(found.values()) >= ATTEMPTS:
            raise self._killed(found)

    def _suspects(self) -> dict[str, int]:
        """Number of workers that died on each task of this run, by its key."""
        found: dict[str, int] = self.client.run_on_scheduler(
            _deaths, self.name, callback_timeout=ANSWER_SECONDS
        )
        return found

    def _place(self, key: str) -> float:
        """Number of a task's partition; sums sort after all partitions."""
        at = key.removeprefix(f"{self.name}-")
        return int(at) if at.isdigit() else float("inf")

    def _killed(self, suspects: dict[str, int]) -> PartitionError:
        """Error about the task with most deaths, or about several with equally many.

        A worker holds more than one task at a time, and Dask does not report which one it ran.
        """
        deaths = max(suspects.values())
        places = sorted(self._place(key) for key in suspects if suspects[key] == deaths)
        where = " or ".join(
            "a sum of results" if at == float("inf") else str(self.source.partitions[int(at)])
            for at in places
        )
        times = "once: the" if deaths == 1 else f"{deaths} times: each time the"
        return PartitionError(
            f"{where} failed {times} worker died, possibly out of memory. Use smaller blocks "
            "or larger workers."
        )

    def _bytes(self, future: Any) -> float:
        """Size of a result as reported by the scheduler."""
        ask, keys = self.client.scheduler.nbytes, [future.key]
        try:
            found = self.client.sync(ask, keys=keys, summary=False, callback_timeout=ANSWER_SECONDS)
        except SILENT:
            return 0.0
        return float(sum(found.values()))

    def _explained(self, error: BaseException) -> BaseException:
        """Return our own errors unchanged; wrap the cluster's errors in one sentence."""
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
            with suppress(Exception):  # the scheduler may be lost by now
                suspects = self._suspects()
            return self._killed({str(error.task): error.allowed_failures + 1} | suspects)
        return ClusterError(
            f"The Dask cluster could not do the work ({type(error).__name__}: {error}). Scheduler "
            "and workers need the same version of Gnomon, and the workers the same files."
        )


def _done_event(future: Any) -> threading.Event:
    """Event that is set once the future is done."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    return done


def _deaths(name: str, dask_scheduler: Any = None) -> dict[str, int]:
    """On the scheduler: number of workers that died on each task of a run."""
    return {
        key: task.suspicious
        for key, task in dask_scheduler.tasks.items()
        if task.suspicious and str(key).startswith(name)
    }


def _unpack(packed: bytes) -> Task[Any]:
    import cloudpickle

    task: Task[Any] = cloudpickle.loads(packed)
    return task


def _work(task: Task[T], partition: Partition, seal: Seal | None, beside: Any) -> PartResult[T]:
    return task(partition, seal, beside)
