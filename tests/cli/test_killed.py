"""`gnomon map` killed while it writes: every file is the old one or the new one, never a part."""

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
from commands import COMMAND, environment, gnomon, refused
from whole_files import READERS, TORN, leftovers_in, runs_in, strangers_in

from gnomon.files import writing

DRIVER = Path(__file__).parents[1] / "killed_map.py"
RUNS = {"few": 60, "many": 80}  # tables and their rows, which tell whose a file is
FILES = len(READERS)


def killed(folder, times, writer):
    done = subprocess.run(
        [sys.executable, DRIVER, folder, str(times), writer],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_command_that_is_killed_a_hundred_times_never_tears_a_file(tmp_path):
    # The proof proves nothing unless a writer in place fails it: in every kind of file.
    torn = killed(tmp_path / "careless", 100, "careless")["torn"]
    assert torn.keys() >= {"map.parquet", "model.gnomon", "run.json", "report.html"}
    found = killed(tmp_path / "ours", 100, "ours")
    assert found["kills"] == 100  # others had ended by themselves
    assert (found["torn"], found["wrong"]) == ({}, [])
    # Blows fell before the first file, among them, while the page was built, and after it.
    assert set(found["new"]) >= {0, FILES - 1, FILES}
    assert len(set(found["new"])) > 3
    assert found["leftovers"] > 0  # and into files themselves


def write_tables(folder):
    X = np.random.default_rng(0).normal(size=(max(RUNS.values()), 4))
    for name, rows in RUNS.items():
        lines = [",".join(f"{x:.6f}" for x in row) for row in X[:rows]]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")


def start(folder, name):
    order = ("map", f"{name}.csv", "-o", "out", "--force", "-q", "--threads", "1")
    return subprocess.Popen([COMMAND, *order], cwd=folder, env=environment())


def state_of(out):
    return {path.name: path.stat().st_mtime_ns for path in out.iterdir()} if out.exists() else {}


def wait_for_the_write(command, out):
    """Until something changes in the folder of results; whether anything did."""
    before = state_of(out)
    while command.poll() is None:
        try:
            if state_of(out) != before:
                return True
        except FileNotFoundError:  # a temporary file that was there a moment ago
            return True
        time.sleep(0.0005)
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
    """Start and kill the installed command; how often, and how many files were new each time."""
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
        assert after.keys() == READERS.keys()
        assert TORN not in after.values()
        assert all(there in (before.get(file), rows) for file, there in after.items())
        assert not strangers_in(out)
        new.append(sum(there == rows for there in after.values()))
        if kills == times:
            break
    return kills, new


def test_the_installed_command_that_is_killed_never_tears_a_file(tmp_path):
    with ThreadPoolExecutor() as pool:  # two at a time: most of it is the start of Python
        found = list(pool.map(kill_in, [tmp_path / "a", tmp_path / "b"], [6, 6]))
    assert [kills for kills, _ in found] == [6, 6]
    assert len({count for _, new in found for count in new}) > 1  # old files here, new ones there


def test_what_a_killed_command_left_is_no_result(tmp_path):
    """It is neither taken for a model, nor for data, nor is it in the way of the next run."""
    write_tables(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("model.gnomon", "map.parquet", "report.html"):
        with pytest.raises(LookupError), writing(out / name) as part:
            raise LookupError
        part.write_bytes(b"PAR1, and no more")  # as nobody was left to take it away
    assert len(leftovers_in(out)) == 3
    assert runs_in(out) == {}
    assert refused(gnomon("place", "few.csv", "-m", "out", folder=tmp_path), 2, "no model.gnomon")
    assert refused(gnomon("reduce", "out", "-o", "r", folder=tmp_path), 3, "has no files")
    done = gnomon("map", "few.csv", "-o", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(runs_in(out).values()) == {RUNS["few"], None}
