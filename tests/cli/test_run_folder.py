"""The folder of a run: old or new as a whole, whatever fails; what is the user's stays."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import children
import numpy as np
import pytest
from commands import gnomon, refused

from gnomon.cli import run_folder as folder_module
from gnomon.cli.run_folder import RESULTS, RunFolder
from gnomon.errors import WriteError

OF_MAP = ("report.html", "map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")
OF_REDUCE = ("report.html", "scores.parquet", "model.gnomon", "run.json", "scree.svg")


def write(out, text, names=OF_MAP):
    """A run whose results hold `text`."""
    with RunFolder(out, names) as run, run.writing() as new:
        for name in names:
            (new / name).write_text(text)


def results(out):
    return {name: (out / name).read_text() for name in RESULTS if (out / name).is_file()}


def everything(folder):
    """Names of all that is below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def cannot_exchange(*_):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def a_mount_point(path):
    return 1, str(path)  # other than its parent's, whatever it is


@pytest.fixture(params=["exchanged", "moved", "moved from within"])
def way(request, monkeypatch):
    """How the new results take the place of the old ones."""
    if request.param == "moved":
        monkeypatch.setattr(folder_module, "exchange", cannot_exchange)
    elif request.param == "moved from within":
        monkeypatch.setattr(folder_module, "mount_of", a_mount_point)
    return request.param


def test_results_appear_all_at_once(tmp_path, way):
    out = tmp_path / "out"
    with RunFolder(out, OF_MAP) as run:
        with run.writing() as new:
            assert new.stat().st_dev == tmp_path.stat().st_dev
            for name in OF_MAP:
                (new / name).write_text("new")
            assert not out.exists()
        assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert everything(tmp_path) == sorted(["out", *(f"out/{name}" for name in OF_MAP)])


def test_new_results_replace_old_ones_and_files_of_the_user_stay(tmp_path, way):
    out = tmp_path / "out"
    write(out, "old")
    (out / "notes.txt").write_text("mine")
    (out / "notes.txt").chmod(0o640)
    (out / ".hidden").write_text("mine")
    (out / "link").symlink_to("notes.txt")
    (out / "lost").symlink_to("nowhere")
    before = {name: (out / name).lstat() for name in ("notes.txt", ".hidden", "link", "lost")}
    write(out, "new")
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    for name, stat in before.items():
        now = (out / name).lstat()
        assert (now.st_ino, now.st_mode, now.st_nlink) == (stat.st_ino, stat.st_mode, 1)
    assert os.readlink(out / "lost") == "nowhere"
    assert os.listdir(tmp_path) == ["out"]
    assert len(os.listdir(out)) == len(OF_MAP) + 4


def test_folders_of_the_user_stay(tmp_path, way):
    out = tmp_path / "out"
    write(out, "old")
    (out / "figures" / "deep").mkdir(parents=True)
    (out / "figures" / "deep" / "a.png").write_text("mine")
    write(out, "new")
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert (out / "figures" / "deep" / "a.png").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out"]


def test_permissions_stay(tmp_path, way):
    out = tmp_path / "out"
    write(out, "old")
    out.chmod(0o750)
    (out / "run.json").chmod(0o600)
    write(out, "new")
    assert out.stat().st_mode & 0o777 == 0o750
    assert (out / "run.json").stat().st_mode & 0o777 == 0o600
    assert (out / "map.svg").stat().st_mode & 0o777 == 0o644


def test_results_of_another_kind_of_run_do_not_stay(tmp_path, way):
    """A map's chart beside the scores of a reduction would be a mixture."""
    out = tmp_path / "out"
    write(out, "old", OF_MAP)
    write(out, "new", OF_REDUCE)
    assert results(out) == dict.fromkeys(OF_REDUCE, "new")


def test_a_file_of_the_user_that_is_called_like_a_result_stays_where_no_run_was(tmp_path, way):
    out = tmp_path / "out"
    out.mkdir()
    (out / "scores.parquet").write_text("mine")
    write(out, "new", OF_MAP)
    assert results(out) == {**dict.fromkeys(OF_MAP, "new"), "scores.parquet": "mine"}


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError(28, "full")])
@pytest.mark.parametrize("there", [True, False])
def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path, way, error, there):
    out = tmp_path / "deep" / "out"
    if there:
        write(out, "old")
    before = everything(tmp_path)

    def fail():
        with RunFolder(out, OF_MAP) as run, run.writing() as new:
            (new / "run.json").write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert everything(tmp_path) == before
    assert results(out) == (dict.fromkeys(OF_MAP, "old") if there else {})


@pytest.mark.parametrize("step", ["rename", "link", "mkdir"])
def test_trouble_while_folders_are_exchanged_leaves_the_old_one(tmp_path, monkeypatch, way, step):
    out = tmp_path / "out"
    write(out, "old")
    (out / "notes.txt").write_text("mine")
    real, fail = getattr(os, step), []

    def broken(*arguments, **options):
        if fail and fail.pop():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*arguments, **options)

    expected, said = "new", ""  # by another way, or it was no step of this one
    with RunFolder(out, OF_MAP) as run:
        try:
            with run.writing() as new:
                for name in OF_MAP:
                    (new / name).write_text("new")
                monkeypatch.setattr(os, step, broken)
                fail.append(True)
        except WriteError as error:
            expected, said = "old", str(error)
    monkeypatch.undo()
    assert results(out) == dict.fromkeys(OF_MAP, expected)
    assert expected == "new" or said.startswith(
        f"{out} could not be written (Input/output error); no file was changed."
    )
    assert (out / "notes.txt").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from gnomon.cli import run_folder as folder
from gnomon.cli.run_folder import RunFolder

out, way, steps, names = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
real = folder.exchange


def cannot(*_):
    raise OSError(38, "no")


def step(*_):
    global steps
    steps -= 1
    if steps < 0:
        os.kill(os.getpid(), signal.SIGKILL)


def exchange(*paths):
    step()
    real(*paths)
    step()


folder.exchange = exchange if way == "exchanged" else cannot
if way == "moved from within":
    folder.mount_of = lambda path: (1, str(path))
watched = {"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "open",
           "os.listdir", "os.truncate"}
sys.addaudithook(lambda event, _: step() if event in watched else None)
with RunFolder(out, tuple(names)) as run, run.writing() as new:
    for name in names:
        (new / name).write_text("new")
os._exit(0)
"""


def killed_at(out, way, steps):
    """Whether a run was killed at so many steps of the system; False if it has fewer."""
    done = children.run(["-c", out, way, steps, *OF_MAP], code=KILLED, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def steps_of_a_run(out, way):
    """By halving: a run is killed at every step that it has."""
    write(out, "old")
    low, high = 0, 200
    while high - low > 1:
        middle = (low + high) // 2
        if killed_at(out, way, middle):
            low = middle
        else:
            high = middle
    write(out, "new")  # and remove what the last one left
    return high


@pytest.mark.rounds(test=12, soak=200, long=200)  # there are fewer steps than 200
def test_a_run_that_is_killed_at_any_step_leaves_one_whole_run(tmp_path, rounds, way):
    """Cases 34 and 35, at every step of the system one after the other."""
    out, states = tmp_path / "out", set()
    last = steps_of_a_run(tmp_path / "tried", way) if rounds < 200 else 200
    for steps in sorted({round(i) for i in np.linspace(0, last, rounds)}):
        write(out, "old")
        (out / "notes.txt").write_text("mine")
        was_killed = killed_at(out, way, steps)
        found = results(out)
        states.add(frozenset(found.values()))
        assert len({*found.values()}) < 2, (steps, found)  # never two runs beside each other
        if way == "exchanged":
            assert len(found) == len(OF_MAP), (steps, found)
        assert (out / "notes.txt").read_text() == "mine"
        with RunFolder(out):  # the next run
            pass
        found = results(out)
        assert found in (dict.fromkeys(OF_MAP, "old"), dict.fromkeys(OF_MAP, "new"))
        assert (out / "notes.txt").read_text() == "mine"
        assert {*os.listdir(tmp_path)} - {"tried"} == {"out"}
        assert sorted(os.listdir(out)) == sorted([*OF_MAP, "notes.txt"])
        if not was_killed:
            break
    assert states >= {frozenset({"old"}), frozenset({"new"})}


def test_what_comes_while_folders_are_exchanged_is_kept(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, "old")
    (out / "notes.txt").write_text("old notes")
    real = folder_module.exchange

    def slow(one, other):
        """A moment before it, the user saves one file and makes another and a folder."""
        (out / "saved").write_text("new notes")
        os.replace(out / "saved", out / "notes.txt")
        (out / "late.txt").write_text("late")
        (out / "late").mkdir()
        real(one, other)

    monkeypatch.setattr(folder_module, "exchange", slow)
    write(out, "new")
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert (out / "notes.txt").read_text() == "new notes"
    assert (out / "late.txt").read_text() == "late"
    assert (out / "late").is_dir()
    assert os.listdir(tmp_path) == ["out"]


def test_what_was_changed_since_a_run_was_killed_is_kept(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, "old")
    (out / "notes.txt").write_text("old notes")
    os.utime(out / "notes.txt", (1, 1))

    class Killed(BaseException):
        pass

    def killed(self):
        raise Killed

    run = RunFolder(out, OF_MAP).__enter__()

    def write_and_be_killed():
        with run.writing() as new:
            for name in OF_MAP:
                (new / name).write_text("new")
            monkeypatch.setattr(RunFolder, "_recover", killed)

    with pytest.raises(Killed):
        write_and_be_killed()
    os.close(run.handle)  # as the system does
    monkeypatch.undo()
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert len(os.listdir(tmp_path)) == 2  # the old folder is still there
    (out / "saved").write_text("new notes")
    os.replace(out / "saved", out / "notes.txt")
    with RunFolder(out):
        pass
    assert (out / "notes.txt").read_text() == "new notes"
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert os.listdir(tmp_path) == ["out"]


def test_files_of_the_user_outlive_a_folder_that_was_removed_after_a_kill(tmp_path):
    out = tmp_path / "out"
    write(out, "old")
    (out / "notes.txt").write_text("mine")
    steps = 0
    while killed_at(out, "exchanged", steps) and "new" not in results(out).values():
        with RunFolder(out):
            pass
        steps += 1
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    shutil.rmtree(out)
    write(out, "newer")
    assert results(out) == dict.fromkeys(OF_MAP, "newer")
    assert (out / "notes.txt").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out"]


HOLDING = """
import sys, time
from pathlib import Path
from gnomon.cli.run_folder import RunFolder
with RunFolder(Path(sys.argv[1]), ("run.json",)) as run:
    print("locked", flush=True)
    sys.stdin.readline()
"""


def hold(out):
    """A process that is in the middle of a run into this folder."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDING), out],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "locked\n"
    return child


def release(child, *, kill=False):
    if kill:
        child.kill()
    child.communicate("\n", timeout=60)


def test_a_second_run_into_the_same_folder_is_refused_until_the_first_has_ended(tmp_path):
    """Case 36: both ended well, with files of both in one folder."""
    out = tmp_path / "out"
    write(out, "old")
    child = hold(out)
    with pytest.raises(WriteError) as caught:
        write(out, "new")
    assert str(caught.value) == (
        f"Another run (process {child.pid}) is writing to {out}. Wait until it has ended, or use "
        "another folder."
    )
    assert results(out) == dict.fromkeys(OF_MAP, "old")
    write(tmp_path / "other", "new")  # beside it, nobody is in the way
    release(child)
    write(out, "new")
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


def test_the_lock_of_a_run_that_was_killed_is_no_lock(tmp_path):
    release(hold(tmp_path / "out"), kill=True)
    assert os.listdir(tmp_path) == [".out.gnomon"]
    write(tmp_path / "out", "new")
    assert os.listdir(tmp_path) == ["out"]


def test_the_working_directory_stays_the_folder(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, "old")
    monkeypatch.chdir(out)
    inode = Path.cwd().stat().st_ino
    write(Path("."), "new")
    assert results(Path.cwd()) == dict.fromkeys(OF_MAP, "new")
    assert out.stat().st_ino == inode
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_to_a_folder_stays_a_link(tmp_path, way):
    write(tmp_path / "real", "old")
    (tmp_path / "out").symlink_to("real")
    write(tmp_path / "out", "new")
    assert (tmp_path / "out").is_symlink()
    assert results(tmp_path / "real") == dict.fromkeys(OF_MAP, "new")


def test_a_link_where_the_hidden_folder_would_be_is_refused(tmp_path):
    """Whoever put it there would have files of others removed."""
    (tmp_path / "elsewhere" / "7").mkdir(parents=True)
    (tmp_path / ".out.gnomon").symlink_to("elsewhere")
    with pytest.raises(WriteError, match=r"\.out\.gnomon is a link"):
        write(tmp_path / "out", "new")
    assert (tmp_path / "elsewhere" / "7").exists()


def test_what_is_not_ours_in_the_hidden_folder_is_left_alone(tmp_path):
    (tmp_path / ".out.gnomon" / "mine").mkdir(parents=True)
    write(tmp_path / "out", "new")
    assert everything(tmp_path / ".out.gnomon") == ["mine"]


def test_a_file_system_without_locks_is_good_enough(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    write(tmp_path / "out", "old")
    write(tmp_path / "out", "new")
    assert results(tmp_path / "out") == dict.fromkeys(OF_MAP, "new")
    assert os.listdir(tmp_path) == ["out"]


def test_names_of_any_length_have_a_hidden_folder(tmp_path):
    for name in ("a" * 240, "ü" * 120):
        write(tmp_path / name, "new")
        assert results(tmp_path / name) == dict.fromkeys(OF_MAP, "new")
    assert len(os.listdir(tmp_path)) == 2


def test_a_folder_of_another_user_stays_theirs(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, "old")
    inode = out.stat().st_ino
    monkeypatch.setattr(folder_module, "owner_of", lambda path: (path == out, 0))
    write(out, "new")
    assert results(out) == dict.fromkeys(OF_MAP, "new")
    assert out.stat().st_ino == inode


@pytest.fixture
def made(tmp_path):
    """A small table and its map."""
    rng = np.random.default_rng(0)
    rows = [",".join(f"{x:.4f}" for x in row) for row in rng.normal(size=(40, 3))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    assert gnomon("map", "t.csv", "-q", folder=tmp_path).returncode == 0
    return tmp_path


def octets(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("full_at", range(1, 9))
def test_a_disk_that_fills_up_while_a_run_is_replaced_leaves_the_old_one(
    made, monkeypatch, full_at
):
    """Case 34: some files were new, some old, and "no file was changed" was said."""
    before, flushed, real = octets(made / "t_map"), [], os.fsync

    def fsync(handle):
        flushed.append(handle)
        if len(flushed) > full_at:  # the first is a look at the disk before any work
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    done = gnomon("map", "t.csv", "--force", "--seed", "1", folder=made)
    assert refused(
        done, 1, "t_map could not be written (No space left on device); no file was changed. Free"
    )
    assert ".gnomon" not in done.stderr
    assert octets(made / "t_map") == before
    assert sorted(os.listdir(made)) == ["t.csv", "t_map"]


def test_ctrl_c_while_a_run_is_replaced_leaves_the_old_one(made, monkeypatch):
    before = octets(made / "t_map")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.cli.pages.build_page", interrupted)
    assert refused(gnomon("map", "t.csv", "--force", "-q", folder=made), 130, "interrupted")
    assert octets(made / "t_map") == before
    assert sorted(os.listdir(made)) == ["t.csv", "t_map"]


@pytest.mark.parametrize(
    "order",
    [
        ["map", "t.csv", "--force"],
        ["reduce", "t.csv", "-o", "t_map", "--force"],
        ["report", "t_map", "--force"],
        ["report", "t_map/model.gnomon", "--force"],
    ],
    ids=" ".join,
)
def test_a_command_says_that_another_one_is_writing(made, order):
    before = octets(made / "t_map")
    child = hold(made / "t_map")
    done = gnomon(*order, folder=made)
    said = f"Another run (process {child.pid}) is writing to t_map. Wait until it has ended"
    assert refused(done, 1, said)
    page = gnomon("report", "t_map", "-o", "page.html", "-q", folder=made)  # which only reads it
    release(child)
    assert page.returncode == 0, page.stderr
    assert octets(made / "t_map") == before
    assert gnomon(*order, folder=made).returncode == 0
    assert sorted(os.listdir(made)) == ["page.html", "t.csv", "t_map"]


@pytest.mark.parametrize("kind", ["a lost link", "a link", "a folder"])
@pytest.mark.parametrize("order", [["map", "t.csv"], ["reduce", "t.csv", "-o", "t_map"]])
def test_what_is_no_file_in_the_place_of_a_result_is_refused(made, kind, order):
    """Case 37."""
    place, elsewhere = made / "t_map" / "run.json", made / "elsewhere.json"
    place.unlink()
    if kind == "a folder":
        place.mkdir()
    else:
        place.symlink_to(elsewhere)
    if kind == "a link":
        elsewhere.write_text("mine")
    what = "folder" if kind == "a folder" else "link"
    done = gnomon(*order, "--force", folder=made)
    assert refused(done, 2, f"t_map/run.json is a {what}, and results are files. Remove it, or")
    assert len(done.stderr.splitlines()) == 1  # before any work
    assert elsewhere.exists() == (kind == "a link")
    assert place.is_symlink() or place.is_dir()


def test_a_lost_link_in_the_place_of_a_folder_or_a_file_is_refused(made):
    for name in ("gone", "placed.csv"):
        (made / name).symlink_to(made / "nowhere" / name)
    done = gnomon("map", "t.csv", "-o", "gone", folder=made)
    assert refused(done, 2, "gone is a link to", "which does not exist. Remove the link")
    done = gnomon("place", "t.csv", "-m", "t_map", "-o", "placed.csv", "--force", folder=made)
    assert refused(done, 2, "placed.csv is a link to", "which does not exist. Remove the link")
    assert not (made / "nowhere").exists()


def test_a_reduction_into_the_folder_of_a_map_is_a_whole_run(made):
    (made / "t_map" / "notes.txt").write_text("mine")
    done = gnomon("reduce", "t.csv", "-o", "t_map", "--force", "-q", folder=made)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(made / "t_map")) == sorted([*OF_REDUCE, "notes.txt"])
    assert gnomon("report", "t_map", "--force", "-q", folder=made).returncode == 0


def test_results_go_into_folders_that_are_not_there_yet(made):
    assert gnomon("map", "t.csv", "-o", "a/b/c", "-q", folder=made).returncode == 0
    assert sorted(os.listdir(made / "a" / "b" / "c")) == sorted(OF_MAP)
    done = gnomon("map", "t.csv", "-o", "d/e/f", "--label", "nope", folder=made)
    assert done.returncode == 2
    assert sorted(os.listdir(made)) == ["a", "t.csv", "t_map"]
