"""`gnomon map` killed while it writes, again and again.

``python killed_map.py FOLDER TIMES WRITER`` imports and computes everything once and then forks.
Each child is the command from its first line to its last, whose pipeline has its result at hand, so
that all there is left to do, and all that the blow can fall into, is the writing: files, charts,
page, record. It is killed at a delay drawn over the whole of that, as measured beforehand in
children that nobody kills; half of the blows fall near the moments when files are written. One
child in two finds the results of a former run; the others find an empty folder. It goes on until
TIMES children were killed before they ended by themselves, and prints what it found as JSON.

WRITER is ``ours``, or ``careless``: files are then written in place, as to a slow disk. That must
be noticed, and it ends as soon as each of the four kinds of files was seen torn, and files of two
runs in one folder.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

ROWS = (60, 80)  # of the two runs that take turns
FOUR = {"map.parquet", "model.gnomon", "run.json", "report.html"}
ROUND = 20  # blows between two measurements of how long a write takes
NEAR = 0.004  # seconds about the moment when a file was written
PIECES, PAUSE = 40, 0.001  # of a careless writer: so many pieces, and seconds between them


@contextlib.contextmanager
def careless(path, *, force=False):
    """In the place of `gnomon.files.writing`: the old file is gone before the new one is there."""
    path = Path(path)
    part = path.with_name(f".{path.name}.new")
    yield part
    content = part.read_bytes()
    part.unlink()
    step = len(content) // PIECES + 1
    with path.open("wb") as file:
        for at in range(0, len(content), step):
            file.write(content[at : at + step])
            file.flush()
            time.sleep(PAUSE)


def be_careless():
    """Every writer of the package, before any of them is imported by another module."""
    import gnomon.files

    gnomon.files.writing, gnomon.files.refuse_existing = careless, lambda *_, **__: None
    from gnomon.cli.run_folder import RunFolder

    RunFolder.new = property(lambda run: run.path)
    RunFolder._commit = lambda run: None


def results():
    """The results of two runs of other sizes."""
    import numpy as np

    from gnomon import run
    from gnomon.data.table import Table

    X = np.random.default_rng(0).normal(size=(max(ROWS), 4)) * [1, 2, 3, 4]
    return [
        run(Table(f"{n} rows", X[:n], ("a", "b", "c", "d"), n_columns=4), n_jobs=1, seed=n)
        for n in ROWS
    ]


def command(result, out):
    """The command, whose pipeline ends at once with `result`."""
    from gnomon.cli import main
    from gnomon.pipeline import flow

    flow.run = lambda *_, **__: result
    sys.argv = ["gnomon", "map", "iris", "-o", str(out), "--force", "-q", "--threads", "1"]
    main()


def start(result, out):
    """The command in a child; its number."""
    child = os.fork()
    if child == 0:
        try:
            command(result, out)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def course_of_a_write(made, out):
    """Seconds from the start of the command to its end, and to when each file was written.

    The longer of two, so that the end is hit.
    """
    courses = []
    for turn in range(2):
        begun = time.time()
        _, status = os.waitpid(start(made[turn % 2], out), 0)
        assert status == 0
        whole = time.time() - begun
        courses.append((whole, [path.stat().st_mtime - begun for path in out.iterdir()]))
    return max(courses)


def draw_delays(chance, whole, moments):
    """Half of them over the whole write, evenly; half near the moments when files are written.

    Most of the time is the building of the page, in which there is little to be torn.
    """
    half = ROUND // 2
    over_all = [(i + chance.random()) * whole / half for i in range(half)]
    near = [max(0, moments[i % len(moments)] + chance.uniform(-NEAR, NEAR)) for i in range(half)]
    delays = over_all + near
    chance.shuffle(delays)
    return delays


def strike(result, out, delay):
    """Start the command, kill it after `delay` seconds; whether it had not ended by itself."""
    child = start(result, out)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def kill_again_and_again(folder, times, writer):
    """Print how often, and what was found in the folder each time."""
    from whole_files import TORN, leftovers_of, runs_in, strangers_in, whole_run

    made = results()
    kept, fresh = folder / "kept", folder / "fresh"
    kept.mkdir(parents=True)
    command(made[0], kept)  # whatever is imported on the way is imported here
    chance = random.Random(0)
    torn, wrong, new, delays = Counter(), [], [], []
    kills = leftovers = 0
    for turn in range(3 * times):
        if not delays:  # measured again and again: other work on the machine comes and goes
            delays = draw_delays(chance, *course_of_a_write(made, kept))
            former = runs_in(kept)
        out = kept if turn % 2 else fresh
        result, rows = made[turn // 2 % 2], ROWS[turn // 2 % 2]
        if out is fresh:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
        kills += strike(result, out, delays.pop())
        before, after = former if out is kept else {}, runs_in(out)
        torn.update(name for name, there in after.items() if there == TORN)
        if after not in (before, whole_run(rows)):
            wrong.append(f"{after}, after {before} and {rows}")
        wrong += [f"{name} is no result" for name in strangers_in(out)]
        former = after if out is kept else former
        new.append(after == whole_run(rows))
        leftovers += bool(leftovers_of(out))
        if kills == times or (writer == "careless" and torn.keys() >= FOUR and wrong):
            break
    for out in (kept, fresh):
        command(made[0], out)
    clean = sorted(path.name for path in folder.iterdir()) == ["fresh", "kept"]
    print(
        json.dumps(
            {
                "kills": kills,
                "torn": torn,
                "wrong": wrong,
                "new": new,
                "leftovers": leftovers,
                "clean": clean,
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[3] == "careless":
        be_careless()
    kill_again_and_again(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
