"""`gnomon map` killed while it writes: its folder is the old one or the new one as a whole."""

import json
import math
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from children import Child
from commands import environment, gnomon, refused
from whole_files import leftovers_of, runs_in, strangers_in, whole_run

DRIVER = Path(__file__).parents[1] / "killed_map.py"
RUNS = {"few": 60, "many": 80}  # tables and their rows, which tell whose a file is


def killed(folder, times, writer):
    done = subprocess.run(
        [sys.executable, DRIVER, folder, str(times), writer],
        capture_output=True,
        text=True,
        timeout=300 + 2 * times,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.rounds(test=30, soak=100, long=2000)
def test_a_command_that_is_killed_again_and_again_leaves_one_whole_run(tmp_path, rounds):
    found = killed(tmp_path / "ours", rounds, "ours")
    assert found["kills"] == rounds  # others had ended by themselves
    assert (found["torn"], found["wrong"]) == ({}, [])
    assert {*found["new"]} == {False, True}  # blows fell before the exchange and after it
    assert found["leftovers"] > 0  # and into the writing
    assert found["clean"]  # the next run removed what they left


@pytest.mark.rounds(test=0, soak=1, long=1)
def test_a_careless_writer_is_noticed_in_every_kind_of_file(tmp_path):
    """The proof above proves nothing unless a writer in place fails it."""
    careless = killed(tmp_path / "careless", 100, "careless")
    assert careless["torn"].keys() >= {"map.parquet", "model.gnomon", "run.json", "report.html"}
    assert careless["wrong"]


def write_tables(folder):
    X = np.random.default_rng(0).normal(size=(max(RUNS.values()), 4))
    for name, rows in RUNS.items():
        lines = [",".join(f"{x:.6f}" for x in row) for row in X[:rows]]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")


def start(folder, name):
    order = ("map", f"{name}.csv", "-o", "out", "--force", "-q", "--threads", "1")
    return Child(["gnomon", *order], environment(), folder=folder)


def state_of(out):
    """What a run has written so far, wherever it stands."""
    there = [*leftovers_of(out), *(out.iterdir() if out.exists() else ())]
    return {path: path.stat().st_mtime_ns for path in there if path.name != "lock"}


def wait_for_the_write(command, out):
    """Until a file is being written; whether one was."""
    before = state_of(out)
    while command.poll() is None:
        try:
            if state_of(out) != before:
                return True
        except FileNotFoundError:  # a temporary file that was there a moment ago
            return True
        time.sleep(0.002)  # more often, the looking would slow what is looked at
    return False


def ends_within(seconds, command):
    """Whether the command ends by itself in so many seconds."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if command.poll() is not None:
            return True
        time.sleep(0.0005)
    return False


def kill_in(folder, times):
    """Start and kill the installed command; how often, and whether the folder was new each time."""
    folder.mkdir()
    write_tables(folder)
    out = folder / "out"
    kills, new, seconds = 0, [], math.inf  # that a write takes, known from those that nobody kills
    chance = random.Random(folder.name)
    moments = [(i + chance.random()) / times for i in range(times)]
    chance.shuffle(moments)
    for turn in range(3 * times):
        name, rows = list(RUNS.items())[turn % 2]
        before = runs_in(out)
        command = start(folder, name)
        assert wait_for_the_write(command, out)
        begun = time.perf_counter()
        if ends_within(moments[-1] * seconds, command):
            assert command.returncode == 0
            seconds = time.perf_counter() - begun  # and this moment is tried again
        else:
            command.send_signal(signal.SIGKILL)
            if command.wait() == -signal.SIGKILL:  # it had not ended meanwhile
                kills += 1
                moments.pop()
        after = runs_in(out)
        assert after in (before, whole_run(rows))
        assert not out.exists() or not strangers_in(out)
        new.append(after == whole_run(rows))
        if kills == times:
            break
    return kills, new


@pytest.mark.rounds(test=3, soak=6, long=60)
def test_the_installed_command_that_is_killed_leaves_one_whole_run(tmp_path, rounds):
    with ThreadPoolExecutor() as pool:  # two at a time: half of it is waiting
        found = list(pool.map(kill_in, [tmp_path / "a", tmp_path / "b"], [rounds, rounds]))
    assert [kills for kills, _ in found] == [rounds, rounds]
    assert {new for _, each in found for new in each} == {False, True}


def test_what_a_killed_command_left_is_no_result(tmp_path):
    """It is neither taken for a model, nor for data, nor is it in the way of the next run."""
    write_tables(tmp_path)
    out = tmp_path / "out"
    command = start(tmp_path, "few")
    assert wait_for_the_write(command, out)
    command.send_signal(signal.SIGKILL)
    command.wait()
    assert leftovers_of(out)
    assert not out.exists()
    assert refused(gnomon("place", "few.csv", "-m", "out", folder=tmp_path), 2, "no file 'out'")
    done = gnomon("reduce", ".", "-o", "r", folder=tmp_path)  # of the two tables beside it
    assert done.returncode == 0, done.stderr
    done = gnomon("map", "few.csv", "-o", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert runs_in(out) == whole_run(RUNS["few"])
    assert not leftovers_of(out)
