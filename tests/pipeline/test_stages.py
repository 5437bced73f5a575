import pytest

from gnomon.events import Event, Finished
from gnomon.pipeline import stages
from gnomon.pipeline.stages import Stages


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second whenever it is looked at."""
    ticks = iter(range(100))
    monkeypatch.setattr(stages.time, "perf_counter", lambda: float(next(ticks)))


def test_each_stage_is_timed_and_told_with_what_came_of_it(clock):
    told = []
    stage = Stages(told.append)
    with stage("read") as ended:
        ended.result = "table"
    with stage("pca") as ended:
        ended.result = "model"
    stage.report("sample", "some rows")
    assert told == [
        Event("read", 1, 1, 0.0, Finished(1.0, "table")),
        Event("pca", 1, 1, 0.0, Finished(1.0, "model")),
        Event("sample", 1, 1, 0.0, Finished(0.0, "some rows")),
    ]
    assert stage.seconds == {"read": 1.0, "pca": 1.0}


def test_parts_of_one_stage_add_up_after_those_of_a_former_run(clock):
    seconds = {"read": 7.0}
    stage = Stages(seconds=seconds)
    for name in ("write", "page", "write"):
        with stage(name):
            pass
    assert list(seconds.items()) == [("read", 7.0), ("write", 2.0), ("page", 1.0)]


def test_a_stage_that_fails_is_neither_told_nor_kept():
    told = []
    stage = Stages(told.append)
    with pytest.raises(ZeroDivisionError), stage("read") as ended:
        ended.result = 1 / 0
    assert (told, stage.seconds) == ([], {})
