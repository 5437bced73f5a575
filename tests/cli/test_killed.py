"""`gnomon map` killed while it writes: every file is the old one or the new one, never a part."""

import json
import random
import signal
import subprocess
import sys
import time
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_installed_command_that_is_killed_never_tears_a_file(tmp_path):
    write_tables(tmp_path)
    out = tmp_path / "out"
    took = []
    for name in RUNS:  # nobody kills these: they show when the write begins and ends
        command = start(tmp_path, name)
        assert wait_for_the_write(command, out)
        begun = time.perf_counter()
        assert command.wait() == 0
        took.append(time.perf_counter() - begun)
    chance, times = random.Random(0), 12
    delays = [(i + chance.random()) * max(took) / times for i in range(times)]
    chance.shuffle(delays)
    blows, changed = 0, set()
    for turn, delay in enumerate(delays):
        name = list(RUNS)[turn % 2]
        before = runs_in(out)
        command = start(tmp_path, name)
        assert wait_for_the_write(command, out)
        time.sleep(delay)
        command.send_signal(signal.SIGKILL)
        blows += command.wait() == -signal.SIGKILL
        after = runs_in(out)
        assert after.keys() == READERS.keys()
        assert TORN not in after.values()
        assert all(rows in (before[file], RUNS.get(name), None) for file, rows in after.items())
        assert not strangers_in(out)
        changed.add(sum(rows == RUNS[name] for rows in after.values()))
    assert blows >= times - 3
    assert len(changed) > 1  # some files were the new ones already, some not yet


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
