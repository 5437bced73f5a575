"""How long a cluster is waited for, with clients and futures that misbehave as real ones may."""

import numpy as np
import pytest
from engine.clusters import within

from gnomon.engine import cluster as cluster_module
from gnomon.engine import dask_run
from gnomon.engine.arrays import ArraySource
from gnomon.engine.cluster import connected
from gnomon.engine.dask import DaskEngine
from gnomon.engine.task import PartResult
from gnomon.errors import ClusterError, PartitionError


def source():
    return ArraySource(np.zeros((60, 3)), rows=15)


class Future:
    """A result that is there, and comes when asked for."""

    status = "finished"
    key = "key"

    def __init__(self):
        self.allowed, self.released = [], False

    def add_done_callback(self, function):
        function(self)

    def result(self, timeout):
        self.allowed.append(timeout)
        return PartResult(1, (), 15)

    def release(self):
        self.released = True


class Lost(Future):
    """A result that went down with its worker: Dask may call it done at once."""

    status = "lost"


class Stuck(Future):
    """A result that is there and does not come."""

    def result(self, timeout):
        self.allowed.append(timeout)
        raise TimeoutError


class Unheard(Future):
    """A result whose end nobody is told of."""

    status = "pending"

    def add_done_callback(self, function):
        pass


class Client:
    """A client of a scheduler that answers, with workers or without."""

    status = "running"

    def __init__(self, future=Future, workers=1, deaths=None):
        self.scheduler, self.kind = self, future
        self.workers, self.deaths = workers, deaths or {}
        self.asked, self.futures, self.keys = 0, [], []

    def ncores(self):
        self.asked += 1
        return dict.fromkeys(range(self.workers), 1)

    def nbytes(self, keys, summary):
        return dict.fromkeys(keys, 5e6)

    def sync(self, function, *args, callback_timeout, **how):
        assert callback_timeout == dask_run.ANSWER_SECONDS
        return function(*args, **how)

    def run_on_scheduler(self, function, name, callback_timeout):
        assert callback_timeout == dask_run.ANSWER_SECONDS
        self.name = name
        return {f"{name}-{at}": deaths for at, deaths in self.deaths.items()}

    def submit(self, *args, key, **how):
        self.futures.append(self.kind())
        self.keys.append(key)
        self.name = key.rpartition("-")[0]
        return self.futures[-1]


class Mute(Client):
    """A client whose scheduler says nothing more after so many answers."""

    def __init__(self, *, answers, how=TimeoutError, **more):
        super().__init__(**more)
        self.answers, self.how = answers, how

    def sync(self, function, *args, callback_timeout, **how):
        if self.answers == 0:
            raise self.how
        self.answers -= 1
        return super().sync(function, *args, callback_timeout=callback_timeout, **how)


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    for name, seconds in {
        "LOST_SECONDS": 0.4,
        "POLL_SECONDS": 0.05,
        "RETRY_SECONDS": 0.01,
        "ANSWER_SECONDS": 0.1,
    }.items():
        monkeypatch.setattr(dask_run, name, seconds)


def run(client):
    return DaskEngine(client).map(np.sum, source())


def test_results_are_taken_in_order_and_nobody_is_asked_twice():
    client = Client()
    with within(20):
        assert run(client) == [1, 1, 1, 1]
    assert client.asked == 1  # how many threads there are
    assert [future.allowed for future in client.futures] == [[], *[[dask_run.ANSWER_SECONDS]] * 4]
    assert not any(future.released for future in client.futures)


@pytest.mark.parametrize("future", [Lost, Unheard])
def test_a_result_that_does_not_end_is_waited_for_with_an_eye_on_the_cluster(future):
    client = Client(future, workers=0)
    with within(20), pytest.raises(ClusterError, match="is lost: it has no workers"):
        run(client)
    assert 1 < client.asked < 20


def test_a_result_that_does_not_come_is_an_error_however_well_the_cluster_is():
    client = Client(Stuck)
    with (
        within(20),
        pytest.raises(ClusterError, match="did not arrive from the cluster in 3 attempts"),
    ):
        run(client)
    longer = (
        dask_run.ANSWER_SECONDS + 5e6 / dask_run.SLOW_BYTES_PER_SECOND
    )  # for five million bytes
    assert client.futures[1].allowed == [dask_run.ANSWER_SECONDS, longer, longer]
    assert client.asked == 3  # for threads, and before the second and third attempt


def test_time_that_passed_before_a_result_was_asked_for_is_not_the_schedulers_silence(monkeypatch):
    monkeypatch.setattr(dask_run, "LOST_SECONDS", 50.0)
    waiting = dask_run.ClusterPass(Mute(answers=1, future=Stuck), source(), np.sum, None)
    waiting.well -= 100.0  # as after a long write of the result before
    with within(20), pytest.raises(ClusterError, match="did not arrive from the cluster"):
        waiting.take(waiting.leaf(0))


@pytest.mark.parametrize("how", [TimeoutError, OSError, AttributeError, RuntimeError])
def test_a_scheduler_that_falls_silent_while_a_result_is_fetched_is_an_error(how, monkeypatch):
    client = Mute(answers=1, how=how, future=Stuck)
    monkeypatch.setattr(dask_run, "LOST_SECONDS", 0.0)
    with within(20), pytest.raises(ClusterError, match="is lost: its scheduler does not answer"):
        run(client)
    assert client.futures[1].allowed == [dask_run.ANSWER_SECONDS]


@pytest.mark.parametrize("how", [TimeoutError, OSError, AttributeError, RuntimeError])
def test_a_scheduler_that_never_answers_is_an_error(how):
    with within(20), pytest.raises(ClusterError, match="The Dask scheduler does not answer"):
        run(Mute(answers=0, how=how))


def test_what_is_left_to_do_is_dropped_after_an_error():
    client = Client(Stuck)
    with within(20), pytest.raises(ClusterError):
        run(client)
    assert len(client.futures) == 5
    assert all(future.released for future in client.futures[1:])


def test_three_deaths_name_the_partition_that_had_them():
    client = Client(Unheard, deaths={1: 3, 0: 2})
    with within(20), pytest.raises(PartitionError, match="rows 15 to 29 failed 3 times: each time"):
        run(client)


@pytest.mark.parametrize("known", [True, False])
def test_three_deaths_name_all_that_were_on_the_dead_workers(known):
    """Which of them was at work is not known: the scheduler hands out more than one at a time."""
    from distributed import KilledWorker

    class Killed(Future):
        status = "error"

        def result(self, timeout):
            raise KilledWorker(f"{client.name}-2", "tcp://127.0.0.1:1", 2)

    client = Client(Unheard if known else Killed, deaths={"sum1": 3, 2: 3, 1: 3, 0: 2})
    message = (
        "^the array, rows 15 to 29 or the array, rows 30 to 44 or a sum of results failed 3 times: "
        "each time the worker died"
    )
    with within(20), pytest.raises(PartitionError, match=message):
        run(client)


def test_two_deaths_are_made_up_for():
    client = Client(Unheard, workers=0, deaths={1: 2})
    with within(20), pytest.raises(ClusterError, match="no workers"):
        run(client)


def test_three_deaths_under_a_sum_are_told_as_such():
    client = Client(Unheard, deaths={"sum1": 4})
    with within(20), pytest.raises(PartitionError, match="a sum of results failed 4 times"):
        run(client)


class Closed(Client):
    """A client that was closed while it was in use."""

    def submit(self, *args, **how):
        if len(self.futures) == 2:
            self.status = "closed"
            raise ConnectionError("Client is closed")
        return super().submit(*args, **how)


def test_a_client_that_was_closed_meanwhile_is_said_to_be():
    with within(20), pytest.raises(ClusterError, match="The Dask client is closed"):
        run(Closed())


def test_a_cluster_that_cannot_be_closed_hides_no_error(monkeypatch):
    import distributed

    closed = []

    class Endless(Client):
        def close(self, timeout):
            closed.append(timeout)
            raise TimeoutError(f"timed out after {timeout} s.")

    monkeypatch.setattr(distributed, "Client", lambda *_, **__: Endless())
    with pytest.raises(PartitionError, match="what happened"), connected("127.0.0.1:1"):
        raise PartitionError("what happened")
    with connected("127.0.0.1:1"):
        pass
    assert closed == [cluster_module.CLOSE_SECONDS] * 2
