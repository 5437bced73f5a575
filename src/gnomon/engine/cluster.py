"""Dask clusters for the engine: processes of this machine, or a cluster that is running already.

Dask is an extra, and is imported when a cluster is asked for.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gnomon.engine.dask import DaskEngine
from gnomon.errors import ClusterError, UnavailableError
from gnomon.inputs import check_integer

__all__ = ["connected", "local_cluster", "require_dask"]

LOOPBACK = "127.0.0.1"
ALLOWED_DEATHS = 2  # of workers, over one partition; the third is an error
CONNECT = 10.0  # seconds that a scheduler has to answer


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
        # Deaths of workers are told as errors of ours; Dask's own words would come between.
        "logging.distributed": "critical",
    }
    with dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=workers,
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
            client = Client(cluster, set_as_default=False)
            try:
                yield DaskEngine(client)
            finally:
                client.close(timeout=CONNECT)
        finally:
            cluster.close(timeout=CONNECT)


@contextmanager
def connected(address: str) -> Iterator[DaskEngine]:
    """An engine on the cluster whose scheduler is at `address`, such as ``tcp://scheduler:8786``."""
    require_dask()
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with `dask scheduler`, "
            "or give the address that it says."
        ) from error
    try:
        yield DaskEngine(client)
    finally:
        client.close(timeout=CONNECT)
