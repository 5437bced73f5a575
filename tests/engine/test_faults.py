"""Processes that are really killed, in the middle of a pass."""

import operator
import os
import signal
import time
from functools import partial

import numpy as np
import pytest
from engine.clusters import die, processes, wait_until, within

from gnomon.engine import LocalEngine
from gnomon.engine import dask as engine_module
from gnomon.engine.arrays import ArraySource
from gnomon.engine.cluster import connected, local_cluster
from gnomon.engine.dask import DaskEngine
from gnomon.errors import ClusterError, PartitionError

pytestmark = pytest.mark.slow


def source():
    return ArraySource(np.random.default_rng(0).standard_normal((600, 3)), rows=15)


def sums(block, folder, deadly):
    """Column sums; the process dies on one partition, as often as `deadly` says."""
    if block.partition.index == 21:
        died = len(os.listdir(folder))
        if died < deadly:
            (folder / str(died)).touch()
            die()
    return block.X.sum(axis=0)


def slow_sums(block, folder):
    (folder / str(block.partition.index)).touch()
    time.sleep(0.1)
    return block.X.sum(axis=0)


def test_a_worker_that_dies_in_the_middle_changes_no_bit(tmp_path):
    here = LocalEngine(1).reduce(partial(sums, folder=tmp_path, deadly=0), source(), operator.add)
    with within(120), local_cluster(2) as remote:
        found = remote.reduce(partial(sums, folder=tmp_path, deadly=2), source(), operator.add)
    assert len(os.listdir(tmp_path)) == 2  # it did die, and did so again
    assert found.tobytes() == here.tobytes()


def test_a_partition_that_kills_three_workers_is_named(tmp_path):
    with within(120), local_cluster(1) as remote:
        message = "the array, rows 315 to 329 failed 3 times: each time the worker died"
        with pytest.raises(PartitionError, match=message):
            remote.map(partial(sums, folder=tmp_path, deadly=9), source())
    assert len(os.listdir(tmp_path)) == 3


def test_an_error_comes_within_a_minute_of_the_last_sign_of_life():
    waits = engine_module.LOOK + engine_module.ANSWER + engine_module.PATIENCE
    assert waits + engine_module.ANSWER < 60


def test_a_cluster_that_loses_all_workers_is_an_error_and_no_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_module, "PATIENCE", 1.0)
    monkeypatch.setattr(engine_module, "LOOK", 0.5)
    marks = tmp_path / "marks"
    marks.mkdir()
    with within(120), processes(tmp_path) as cluster:
        cluster.scheduler()
        workers = [cluster.worker(), cluster.worker()]
        with connected(cluster.address()) as remote:
            wait_until(lambda: len(remote.client.nthreads()) == 2)

            def kill_all(rows):
                for worker in workers:
                    os.kill(worker.pid, signal.SIGKILL)

            with pytest.raises(ClusterError, match=r"is lost: it has no workers, for [0-9]+ s"):
                remote.map(partial(slow_sums, folder=marks), source(), done=kill_all)
    assert 1 <= len(os.listdir(marks)) < 40


class Lost:
    """A future whose result went down with its worker: Dask may call it done at once."""

    status = "lost"

    def add_done_callback(self, function):
        function(self)


class Deserted:
    """A client of a scheduler that answers, without workers."""

    status = "running"

    def __init__(self):
        self.scheduler = self
        self.asked = 0

    def ncores(self):
        return {}

    def sync(self, function, callback_timeout):
        self.asked += 1
        return function()

    def submit(self, *args, **how):
        return Lost()


def test_a_result_that_was_lost_is_waited_for_with_an_eye_on_the_cluster(monkeypatch):
    monkeypatch.setattr(engine_module, "PATIENCE", 0.4)
    monkeypatch.setattr(engine_module, "LOOK", 0.1)
    monkeypatch.setattr(engine_module, "PAUSE", 0.01)
    client = Deserted()
    with within(20), pytest.raises(ClusterError, match="is lost: it has no workers"):
        DaskEngine(client).map(np.sum, source())
    assert client.asked < 10


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_scheduler_that_is_gone_or_silent_is_an_error_and_no_hang(tmp_path, monkeypatch, how):
    monkeypatch.setattr(engine_module, "PATIENCE", 1.0)
    monkeypatch.setattr(engine_module, "LOOK", 0.5)
    monkeypatch.setattr(engine_module, "ANSWER", 1.0)
    monkeypatch.setattr("gnomon.engine.cluster.CONNECT", 2.0)
    marks = tmp_path / "marks"
    marks.mkdir()
    end = signal.SIGKILL if how == "killed" else signal.SIGSTOP
    why = "its scheduler is gone" if how == "killed" else "its scheduler does not answer"
    with within(120), processes(tmp_path) as cluster:
        scheduler = cluster.scheduler()
        cluster.worker()
        with connected(cluster.address()) as remote:
            wait_until(lambda: len(remote.client.nthreads()) == 1)
            with pytest.raises(ClusterError, match=f"is lost: {why}"):
                remote.reduce(
                    partial(slow_sums, folder=marks), source(), operator.add,
                    done=lambda rows: os.kill(scheduler.pid, end),
                )  # fmt: skip
    assert len(os.listdir(marks)) < 40
