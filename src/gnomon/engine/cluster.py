"""Dask clusters for the engine: processes of this machine, or a running cluster.

Dask is an extra, imported only when a cluster is requested. Start and shutdown each time out within
a minute, and an error during shutdown never hides an earlier one.
"""

import logging
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gnomon.engine.dask import DaskEngine
from gnomon.errors import ClusterError, UnavailableError
from gnomon.inputs import check_integer

__all__ = ["connected", "local_cluster", "require_dask"]

LOOPBACK = "127.0.0.1"
# Patience: chosen, not measured.
ALLOWED_DEATHS = 2  # of workers on one partition; the third is an error
CONNECT_SECONDS = 10.0  # seconds that a scheduler has to answer
CLOSE_SECONDS = 8.0  # seconds that a client has to close, and a cluster
START_SECONDS = 30.0  # seconds that worker processes have to start


def require_dask() -> None:
    """Raise an error with the install command if Dask is missing."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "Working on a cluster needs Dask, which is not installed. "
            "Install it: pip install 'gnomon[dask]'."
        ) from None


@contextmanager
def local_cluster(workers: int) -> Iterator[DaskEngine]:
    """Engine of `workers` processes with one thread each, terminated afterwards.

    They listen on the loopback interface only.
    """
    check_integer("workers", workers, 1)
    require_dask()
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_DEATHS,
        # 15 s after a death Dask drops for good every worker that is absent at that moment,
        # although its nanny is restarting it: a slow start, or another death, ends the cluster.
        "distributed.deploy.lost-worker-timeout": "365 days",
        # Deaths of workers are reported by our errors; Dask's log lines would be interleaved.
        "logging.distributed": "critical",
    }
    with dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=0,  # Dask would wait for workers without a timeout
            threads_per_worker=1,
            processes=True,
            host=LOOPBACK,
            dashboard_address=f"{LOOPBACK}:0",
            protocol="tcp",
            memory_limit=0,  # Dask's own limit pauses workers, which looks like a hang
            preload=[DaskEngine.__module__],  # `dask_setup` makes workers ignore Ctrl-C
            silence_logs=logging.CRITICAL,
        )
        try:
            client = Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
            try:
                _start(cluster, client, workers)
                yield DaskEngine(client, workers)
            finally:
                _close(client)
        except ClusterError:
            _end_processes(_pids(cluster))  # a cluster that failed does not close in time either
            raise
        finally:
            pids = _pids(cluster)  # a closed cluster no longer lists them
            _close(cluster)
            _end_processes(pids | _pids(cluster))


def _start(cluster: Any, client: Any, workers: int) -> None:
    cluster.scale(workers)
    try:
        client.wait_for_workers(workers, timeout=START_SECONDS)
    except TimeoutError as error:
        if workers == 1:
            late, way_out = "1 worker process", "Run without it."
        else:
            late, way_out = f"{workers} worker processes", "Use fewer, or run without them."
        raise ClusterError(f"{late} did not start within {START_SECONDS:g} s. {way_out}") from error


def _pids(cluster: Any) -> set[int]:
    """Process ids of a cluster's workers, including those that have not started yet."""
    found: set[Any] = set()
    for nanny in list(cluster._created):  # `cluster.workers` lists only started workers
        with suppress(AttributeError, ValueError):  # the process ends at this moment
            found.add(nanny.pid)
    return found - {None}


def _end_processes(pids: set[int]) -> None:
    """Terminate the processes that still exist; usually none does."""
    for process in multiprocessing.active_children():
        with suppress(ValueError):  # the process ends at this moment
            if process.pid in pids:
                process.kill()


@contextmanager
def connected(address: str) -> Iterator[DaskEngine]:
    """Engine on the cluster whose scheduler is at `address`, such as ``tcp://scheduler:8786``."""
    require_dask()
    from distributed import Client
    from distributed.comm import resolve_address

    try:
        resolve_address(address)  # a client with an invalid address would block for a long time
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with `dask scheduler`, "
            "or give the address that it prints."
        ) from error
    try:
        yield DaskEngine(client)
    finally:
        _close(client)


def _close(what: Any) -> None:
    """Close a client or a cluster; one that does not answer is abandoned."""
    with suppress(Exception):
        what.close(timeout=CLOSE_SECONDS)
