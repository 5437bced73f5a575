import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading

import pytest
from killing import torn_files

from gnomon import files
from gnomon.errors import ExistingFileError, WriteError
from gnomon.files import writing


def write(path, text, **options):
    with writing(path, **options) as part:
        part.write_text(text)


def overtaken(path):
    with writing(path) as part:
        part.write_text("ours")
        path.write_text("theirs")


def test_what_was_written_takes_the_place_of_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with writing(path, force=True) as part:
        assert part.parent == tmp_path  # the same file system: a rename is one step
        assert part.name.startswith(".a.txt.")
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_new_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with writing(str(path)) as part:
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_nothing_is_overwritten_unless_that_was_asked_for(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ExistingFileError, match=r"a\.txt exists .* force=True"), writing(path):
        pytest.fail("it was refused only after the work was done")
    assert path.read_text() == "old"
    write(path, "new", force=True)
    assert path.read_text() == "new"


def test_a_file_that_appears_during_the_writing_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(ExistingFileError):
        overtaken(path)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_file_system_without_links_is_good_enough(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    write(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    with pytest.raises(ExistingFileError):
        overtaken(tmp_path / "b.txt")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), OSError(28, "disk full")])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with writing(path, force=True) as part:
            part.write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_where_there_was_no_file_leaves_nothing(tmp_path):
    def fail():
        with writing(tmp_path / "a.txt"):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EROFS, "may write to"),
        (errno.EACCES, "may write to"),
        (errno.EIO, "try again"),
    ],
)
def test_trouble_with_the_disk_is_one_sentence_with_a_way_out(
    tmp_path, monkeypatch, number, way_out
):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError) as caught:
        write(path, "new", force=True)
    assert str(caught.value).startswith(f"{path} could not be written ({os.strerror(number)})")
    assert way_out in str(caught.value)
    assert caught.value.errno == number
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


READ_ONLY = """
import os, sys
from gnomon.errors import WriteError
from gnomon.files import writing
if os.geteuid() == 0:
    os.setuid(65534)  # permissions do not hold the superuser back
try:
    with writing(sys.argv[1], force=True) as part:
        part.write_text("new")
except WriteError as error:
    print(error)
"""


def test_a_read_only_folder_is_refused_and_its_file_kept():
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)  # pytest's own folders are closed to other users
        folder = os.path.join(root, "shut")
        os.mkdir(folder)
        path = os.path.join(folder, "a.txt")
        with open(path, "w") as file:
            file.write("old")
        os.chmod(folder, 0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "could not be written (Permission denied)" in done.stdout, done.stderr
        assert os.listdir(folder) == ["a.txt"]
        with open(path) as file:
            assert file.read() == "old"
        os.chmod(folder, 0o755)


def test_a_folder_in_the_files_place_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="Give the name of a file"):
        write(tmp_path / "folder", "text", force=True)
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(WriteError, match=r"nowhere.*Create the folder first"):
        write(tmp_path / "nowhere" / "a", "text")


def test_the_file_has_the_permissions_of_any_new_file_or_of_the_old_one(tmp_path):
    (tmp_path / "ordinary").touch()
    write(tmp_path / "ours", "text")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    (tmp_path / "ours").chmod(0o600)
    write(tmp_path / "ours", "text", force=True)
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o600


def test_a_link_keeps_pointing_to_the_file(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_link_to_nothing_is_refused_whatever_is_forced(tmp_path):
    """Case 37: it was written through, to wherever the link points."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "gone")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    for name in ("link", "ring"):
        for force in (False, True):
            with pytest.raises(ExistingFileError, match=rf"{name} is a link to .* does not exist"):
                write(tmp_path / name, "new", force=force)
    assert os.listdir(tmp_path / "elsewhere") == []
    assert (tmp_path / "link").is_symlink()


LEAVING = """
import os, signal, sys
from gnomon.files import writing
with writing(sys.argv[1], force=True) as part:
    part.write_text("half of the n")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_a_part(path):
    done = subprocess.run([sys.executable, "-c", LEAVING, path], timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    """Case 35: temporary files stayed for ever."""
    for name in ("a.txt", "b.txt"):
        leave_a_part(tmp_path / name)
    (tmp_path / ".a.txt.mine.part").write_text("no name that the system makes")
    assert len(os.listdir(tmp_path)) == 3
    write(tmp_path / "a.txt", "new")
    left = sorted(name.split(".")[1] for name in os.listdir(tmp_path) if name.startswith("."))
    assert left == ["a", "b"]  # the file of somebody else, and what was left of another target
    assert (tmp_path / ".a.txt.mine.part").exists()


def test_what_another_writer_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with writing(path, force=True) as part:
        part.write_text("mine")
        write(path, "theirs", force=True)
        assert part.exists()
        assert path.read_text() == "theirs"
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_long_name_of_long_letters_is_written(tmp_path):
    write(tmp_path / ("ü" * 120), "text")
    assert os.listdir(tmp_path) == ["ü" * 120]


def test_a_file_system_without_locks_is_good_enough(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    leave_a_part(tmp_path / "a.txt")
    write(tmp_path / "a.txt", "new")
    assert len(os.listdir(tmp_path)) == 2  # nobody can tell whether the other is being written


def test_a_very_long_name_is_written_or_refused_in_a_sentence(tmp_path):
    write(tmp_path / ("a" * 200), "text")
    assert (tmp_path / ("a" * 200)).read_text() == "text"
    with pytest.raises(WriteError, match="shorter name"):
        write(tmp_path / ("a" * 300), "text", force=True)


def test_two_threads_writing_one_file_leave_one_of_their_texts(tmp_path):
    path = tmp_path / "a.txt"
    texts = ["x" * 100_000, "y" * 100_000]
    threads = [
        threading.Thread(target=lambda t=text: [write(path, t, force=True) for _ in range(20)])
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("taken", [True, False], ids=["removed", "locked-and-removed"])
def test_a_part_that_another_writer_takes_for_a_leftover_is_created_again(
    tmp_path, monkeypatch, taken
):
    lock, removed = files.lock, []

    def lock_after_another_writer(handle):
        if removed:
            return lock(handle)
        (part,) = tmp_path.glob(".a.txt.*.part")
        part.unlink()
        removed.append(part)
        return taken  # False: the other writer still holds its lock

    monkeypatch.setattr(files, "lock", lock_after_another_writer)
    write(tmp_path / "a.txt", "text")
    assert removed
    assert (tmp_path / "a.txt").read_text() == "text"
    assert os.listdir(tmp_path) == ["a.txt"]


VERSIONS = """
texts = [b"a" * 2_000_000, b"b" * 2_000_000]

def is_whole():
    with open(path, "rb") as file:
        return file.read() in texts
"""
CARELESS = """
def write(version):
    with open(path, "wb") as file:
        for at in range(0, 2_000_000, 100_000):
            file.write(texts[version][at:at + 100_000])
"""
ATOMIC = """
from gnomon.files import writing

def write(version):
    with writing(path, force=True) as part:
        with open(part, "wb") as file:
            for at in range(0, 2_000_000, 100_000):
                file.write(texts[version][at:at + 100_000])
"""


@pytest.mark.rounds(test=60, soak=300, long=5000)
def test_a_careless_writer_that_is_killed_tears_its_file(tmp_path, rounds):
    assert (
        torn_files(VERSIONS + CARELESS, tmp_path / "a", rounds) > rounds // 12
    )  # or the next test proves nothing


@pytest.mark.rounds(test=60, soak=300, long=5000)
def test_a_writer_that_is_killed_never_tears_its_file(tmp_path, rounds):
    assert torn_files(VERSIONS + ATOMIC, tmp_path / "a", rounds) == 0
