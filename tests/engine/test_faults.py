"""Processes that are really killed, in the middle of a pass."""

import multiprocessing
import operator
import os
import signal
import threading
import time
from functools import partial

import dask
import numpy as np
import pytest
from engine.clusters import die, is_alive, processes, wait_until, within

from gnomon.engine import LocalEngine, cluster, dask_run
from gnomon.engine.arrays import ArraySource
from gnomon.engine.cluster import connected, local_cluster
from gnomon.errors import ClusterError, PartitionError

pytestmark = pytest.mark.usefixtures("quick_workers")


def source():
    return ArraySource(np.random.default_rng(0).standard_normal((600, 3)), rows=15)


def sums(block, folder, deadly):
    """Column sums; the process dies on one partition, as often as `deadly` says."""
    if block.partition.index == 21:
        died = len(os.listdir(folder))
        if died < deadly:
            (folder / str(died)).touch()
            time.sleep(0.3)  # what was done before is told: the scheduler knows who it was
            die()
    return block.X.sum(axis=0)


def slow_sums(block, folder):
    (folder / str(block.partition.index)).touch()
    time.sleep(0.1)
    return block.X.sum(axis=0)


@pytest.fixture
def patient(monkeypatch):
    """However long a machine takes to start a worker."""
    monkeypatch.setattr(dask_run, "LOST_SECONDS", 90.0)


@pytest.fixture(scope="module")
def mortal(quick_workers):
    """A cluster whose workers may die: it starts others in their place."""
    with local_cluster(2) as found:
        yield found


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A scheduler that was started elsewhere; tests bring workers and kill them."""
    with processes(tmp_path_factory.mktemp("foreign")) as found:
        found.scheduler()
        yield found


@pytest.mark.rounds(test=1, soak=3, long=30)
def test_a_worker_that_dies_in_the_middle_changes_no_bit(mortal, patient, tmp_path):
    here = LocalEngine(1).reduce(partial(sums, folder=tmp_path, deadly=0), source(), operator.add)
    with within(240):
        found = mortal.reduce(partial(sums, folder=tmp_path, deadly=2), source(), operator.add)
    assert len(os.listdir(tmp_path)) == 2  # it did die, and did so again
    assert found.tobytes() == here.tobytes()


@pytest.mark.rounds(test=1, soak=3, long=30)
def test_a_partition_that_kills_three_workers_is_named(mortal, patient, tmp_path):
    # Others may have waited on the same workers each time.
    message = "the array, rows 315 to 329 .*failed 3 times: each time the worker died"
    with within(240), pytest.raises(PartitionError, match=message):
        mortal.map(partial(sums, folder=tmp_path, deadly=9), source())
    assert len(os.listdir(tmp_path)) == 3


def test_a_worker_that_is_long_in_coming_back_is_waited_for(patient, tmp_path):
    """Dask would give up a worker that is not back in time, on a busy machine for ever."""
    soon = dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"})
    with within(240), soon, local_cluster(1) as single:
        found = single.map(partial(sums, folder=tmp_path, deadly=1), source())
    assert len(os.listdir(tmp_path)) == 1
    assert len(found) == 40


@pytest.mark.rounds(test=0, soak=2, long=20)
def test_three_deaths_are_an_error_on_a_scheduler_that_would_allow_more(
    foreign, patient, tmp_path, monkeypatch
):
    monkeypatch.setattr(dask_run, "POLL_SECONDS", 0.1)
    told, ended = threading.Event(), threading.Event()

    def replace_the_dead():
        while not ended.wait(0.05):
            # A fourth worker could die too before the third death is seen: it comes afterwards.
            wanted = told.is_set() or len(os.listdir(tmp_path)) < 3
            if wanted and foreign.started[-1].poll() is not None:
                foreign.worker()

    foreign.worker()
    nurse = threading.Thread(target=replace_the_dead)
    nurse.start()
    try:
        # Dask's own limit is four.
        with within(240), connected(foreign.address()) as remote:
            message = "the array, rows 315 to 329 .*failed 3 times: each time the worker died"
            with pytest.raises(PartitionError, match=message):
                remote.map(partial(sums, folder=tmp_path, deadly=9), source())
            assert len(os.listdir(tmp_path)) == 3
            told.set()
            # The deadly partition is dropped, so that the next worker lives and works.
            assert len(remote.map(partial(sums, folder=tmp_path, deadly=0), source())) == 40
    finally:
        ended.set()
        nurse.join(10)
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.rounds(test=0, soak=2, long=20)
def test_processes_that_do_not_start_are_an_error_and_they_alone_are_gone(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, sys, time\n"
        "if any('spawn_main' in text for text in sys.orig_argv):\n"
        f"    pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch()\n"
        "    time.sleep(100)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    new_interpreters = {"distributed.worker.multiprocessing-method": "spawn"}
    monkeypatch.setattr(cluster, "START_SECONDS", 6.0)
    other = multiprocessing.get_context("spawn").Process(
        target=time.sleep, args=(100,), name="Dask Worker process (of another cluster)", daemon=True
    )
    start = cluster._start

    def start_both(*args):
        other.start()
        start(*args)

    monkeypatch.setattr(cluster, "_start", start_both)
    late = pytest.raises(ClusterError, match="1 worker process did not start within 6")
    with within(120), dask.config.set(new_interpreters), late:
        local_cluster(1).__enter__()
    try:
        started = {int(file.name) for file in tmp_path.iterdir() if file.name.isdigit()}
        assert started - {other.pid}
        wait_until(lambda: not any(map(is_alive, started - {other.pid})))
        assert is_alive(other.pid)
    finally:
        other.kill()
        other.join(10)


def test_an_error_comes_within_a_minute_of_the_last_sign_of_life():
    silence = dask_run.POLL_SECONDS + dask_run.LOST_SECONDS + 2 * dask_run.ANSWER_SECONDS
    fetching = dask_run.FETCH_ATTEMPTS * dask_run.ANSWER_SECONDS
    closing = 2 * cluster.CLOSE_SECONDS  # the client and the cluster
    assert max(silence, fetching, cluster.START_SECONDS) + closing < 60


@pytest.mark.rounds(test=0, soak=2, long=20)
def test_a_cluster_that_loses_all_workers_is_an_error_and_no_hang(foreign, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_run, "LOST_SECONDS", 1.0)
    monkeypatch.setattr(dask_run, "POLL_SECONDS", 0.5)
    workers = [each for each in foreign.started[1:] if each.poll() is None]
    workers += [foreign.worker() for _ in range(2 - len(workers))]
    with within(120), connected(foreign.address()) as remote:
        wait_until(lambda: len(remote.client.nthreads()) == 2)

        def kill_all(event):
            for worker in workers:
                os.kill(worker.pid, signal.SIGKILL)

        with pytest.raises(ClusterError, match=r"is lost: it has no workers, for [0-9]+ s"):
            remote.map(partial(slow_sums, folder=tmp_path), source(), on=kill_all)
    assert 1 <= len(os.listdir(tmp_path)) < 40


@pytest.mark.rounds(test=0, soak=2, long=20)
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_scheduler_that_is_gone_or_silent_is_an_error_and_no_hang(tmp_path, monkeypatch, how):
    monkeypatch.setattr(dask_run, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(cluster, "CLOSE_SECONDS", 2.0)
    marks = tmp_path / "marks"
    marks.mkdir()
    end = signal.SIGKILL if how == "killed" else signal.SIGSTOP
    why = "its scheduler is gone" if how == "killed" else "its scheduler does not answer"
    with within(120), processes(tmp_path) as there:
        scheduler = there.scheduler()
        there.worker()
        with connected(there.address()) as remote:
            wait_until(lambda: len(remote.client.nthreads()) == 1)

            def end_it(event):
                os.kill(scheduler.pid, end)
                if how == "stopped":  # from now on: before, a slow machine needs its time
                    monkeypatch.setattr(dask_run, "LOST_SECONDS", 1.0)
                    monkeypatch.setattr(dask_run, "ANSWER_SECONDS", 1.0)

            with pytest.raises(ClusterError, match=f"is lost: {why}"):
                remote.reduce(partial(slow_sums, folder=marks), source(), operator.add, on=end_it)
    assert len(os.listdir(marks)) < 40
