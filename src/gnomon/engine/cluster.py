"""Dask clusters for the engine: processes of this machine, or a cluster that is running already.

Dask is an extra, and is imported when a cluster is asked for. Neither beginning nor end is waited
for longer than a minute, and whatever the end is, it does not hide what happened before.
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
ALLOWED_DEATHS = 2  # of workers, over one partition; the third is an error
CONNECT = 10.0  # seconds that a scheduler has to answer
CLOSE = 8.0  # seconds that a client has to close, and a cluster
START = 30.0  # seconds that worker processes have to start


def require_dask() -> None:
    """Say how to install Dask where there is none."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "Working on a cluster needs Dask, which is not installed. "
            "Install it: pip install 'gnomon[dask]'."
        ) from None


@contextmanager
def local_cluster(workers: int) -> Iterator[DaskEngine]:
    """An engine of `workers` processes of one thread each, which are ended afterwards.

    They listen on the loopback interface alone.
    """
    check_integer("workers", workers, 1)
    require_dask()
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_DEATHS,
        # 15 s after a death Dask gives up for good a worker that is not there at that moment,
        # although its nanny is starting it again: a slow start, or another death, ends the cluster.
        "distributed.deploy.lost-worker-timeout": "365 days",
        # Deaths of workers are told as errors of ours; Dask's own words would come between.
        "logging.distributed": "critical",
    }
    with dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=0,  # Dask would wait for them without an end
            threads_per_worker=1,
            processes=True,
            host=LOOPBACK,
            dashboard_address=f"{LOOPBACK}:0",
            protocol="tcp",
            memory_limit=0,  # Dask's own limit makes workers wait, which looks like a hang
            preload=[DaskEngine.__module__],  # which has workers ignore Ctrl-C
            silence_logs=logging.CRITICAL,
        )
        try:
            client = Client(cluster, timeout=CONNECT, set_as_default=False)
            try:
                _start(cluster, client, workers)
                yield DaskEngine(client, workers)
            finally:
                _close(client)
        except ClusterError:
            _end_processes(_pids(cluster))  # what does not work does not close in time either
            raise
        finally:
            pids = _pids(cluster)  # a cluster that is closed knows them no more
            _close(cluster)
            _end_processes(pids | _pids(cluster))


def _start(cluster: Any, client: Any, workers: int) -> None:
    cluster.scale(workers)
    try:
        client.wait_for_workers(workers, timeout=START)
    except TimeoutError as error:
        if workers == 1:
            late, way_out = "1 worker process", "Work without it."
        else:
            late, way_out = f"{workers} worker processes", "Ask for fewer, or work without them."
        raise ClusterError(f"{late} did not start within {START:g} s. {way_out}") from error


def _pids(cluster: Any) -> set[int]:
    """The processes of a cluster's workers, of those too that have not started yet."""
    found: set[Any] = set()
    for nanny in list(cluster._created):  # `cluster.workers` has only those that have
        with suppress(AttributeError, ValueError):  # it ends at this moment
            found.add(nanny.pid)
    return found - {None}


def _end_processes(pids: set[int]) -> None:
    """End those that are still there, which are none as a rule."""
    for process in multiprocessing.active_children():
        with suppress(ValueError):  # it ends at this moment
            if process.pid in pids:
                process.kill()


@contextmanager
def connected(address: str) -> Iterator[DaskEngine]:
    """An engine on the cluster whose scheduler is at `address`, such as ``tcp://scheduler:8786``."""
    require_dask()
    from distributed import Client
    from distributed.comm import resolve_address

    try:
        resolve_address(address)  # a client of no address at all would not end for a long time
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with `dask scheduler`, "
            "or give the address that it says."
        ) from error
    try:
        yield DaskEngine(client)
    finally:
        _close(client)


def _close(what: Any) -> None:
    """Close a client or a cluster; one that does not answer is left to itself."""
    with suppress(Exception):
        what.close(timeout=CLOSE)
