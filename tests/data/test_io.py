"""Parts of long files, read past the system's cache or as usual: the same bytes either way."""

import errno
import io
import os
import pickle
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gnomon import source
from gnomon.data.formats import io as disk
from gnomon.data.formats import parquet as row_groups
from gnomon.data.formats.io import PAGE, TRIALS, Disk, DiskFile
from gnomon.engine import LocalEngine


@pytest.fixture
def past(monkeypatch):
    """Every file is long, every disk quick, and every file system can."""
    monkeypatch.setattr(disk, "LONG", 0)
    monkeypatch.setattr(disk, "QUICK", 0.0)
    monkeypatch.setattr(disk, "_is_kept", lambda *_: False)
    monkeypatch.setattr(disk, "_rates", {})
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the system: where in the file, how much, and where to in memory."""
    seen = []
    read = os.preadv

    def preadv(file, buffers, at):
        seen.append((at, len(buffers[0]), np.frombuffer(buffers[0], np.uint8).ctypes.data))
        return read(file, buffers, at)

    monkeypatch.setattr(os, "preadv", preadv)
    return seen


def write(path, size):
    octets = np.random.default_rng(size).integers(256, size=size, dtype=np.uint8).tobytes()
    path.write_bytes(octets)
    return octets


@pytest.mark.parametrize("size", [5 * PAGE, 5 * PAGE + 77])
@pytest.mark.parametrize(
    ("at", "count"),
    [
        (0, PAGE),
        (0, 1),
        (PAGE - 1, 2),
        (3, 3 * PAGE),
        (PAGE, 0),
        (PAGE + 1, 0),
        (4 * PAGE, PAGE),
        (5 * PAGE - 1, 500),
        (5 * PAGE + 70, 100),
        (9 * PAGE, 10),
        (9 * PAGE + 5, 10),
    ],
)
def test_any_part_of_a_file_is_read(tmp_path, past, asked, size, at, count):
    octets = write(tmp_path / "f", size)
    wanted = octets[at : at + count]
    reader = Disk(tmp_path / "f")
    assert reader.past
    assert reader.read_range(at, count).tobytes() == wanted
    assert all(where % PAGE == length % PAGE == to % PAGE == 0 for where, length, to in asked)
    assert len(asked) == (count > 0 and at < size)
    reader.can = False
    assert reader.read_range(at, count).tobytes() == wanted


@pytest.mark.parametrize("part", [PAGE, 512, 0])
def test_what_comes_in_parts_is_read_to_the_end(tmp_path, past, monkeypatch, part):
    octets = write(tmp_path / "f", 10 * PAGE + 5)
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, buffers, at: read(file, [buffers[0][:part]], at))
    reader = Disk(tmp_path / "f")
    assert reader.read_range(100, 20 * PAGE).tobytes() == octets[100:]
    assert reader.past == (part == PAGE)  # with other parts one cannot go on


def test_a_file_system_that_cannot_is_read_as_usual(tmp_path, past, monkeypatch):
    octets = write(tmp_path / "f", 3 * PAGE)
    reader = Disk(tmp_path / "f")

    def cannot(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "preadv", cannot)
    assert reader.read_range(10, 5000).tobytes() == octets[10:5010]
    assert not reader.past


def test_what_is_wrong_with_a_file_is_told(tmp_path, past):
    write(tmp_path / "f", PAGE)
    reader = Disk(tmp_path / "f")
    (tmp_path / "f").unlink()
    with pytest.raises(FileNotFoundError):
        reader.read_range(0, 10)


@pytest.mark.parametrize(("seconds", "quick"), [(1.0, False), (1e-4, True)])
def test_a_disk_that_is_slower_than_the_cache_is_left_to_it(
    tmp_path, past, monkeypatch, seconds, quick
):
    monkeypatch.setattr(disk, "QUICK", 8e8)
    octets = write(tmp_path / "f", disk.SHORT)
    now = iter(np.cumsum([seconds] * 1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    reader = Disk(tmp_path / "f")
    for _ in range(TRIALS + 5):
        assert reader.past
        assert reader.read_range(0, disk.SHORT - 1).tobytes() == octets[:-1]  # which says nothing
    for trial in range(TRIALS + 5):
        assert reader.past == (quick or trial < TRIALS)
        assert reader.read_range(0, disk.SHORT).tobytes() == octets
    assert len(reader.rates) == TRIALS


def test_what_is_known_of_a_disk_holds_for_all_files_on_it(tmp_path, past, monkeypatch):
    monkeypatch.setattr(disk, "QUICK", 1e30)
    write(tmp_path / "f", disk.SHORT)
    write(tmp_path / "g", disk.SHORT)
    for _ in range(TRIALS // 2):
        for name in "fg":
            assert Disk(tmp_path / name).past
            Disk(tmp_path / name).read_range(0, disk.SHORT)
    assert not Disk(tmp_path / "f").past


def test_a_file_is_read_past_the_cache_of_this_system_or_as_usual(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "LONG", 0)
    octets = write(tmp_path / "f", 5 * PAGE + 77)
    reader = Disk(tmp_path / "f")
    assert [reader.read_range(at, 6000).tobytes() for at in (0, 5000, 16_000)] == [
        octets[at : at + 6000] for at in (0, 5000, 16_000)
    ]


def test_one_quick_read_is_enough(tmp_path, past, monkeypatch):
    monkeypatch.setattr(disk, "QUICK", 8e8)
    write(tmp_path / "f", disk.SHORT)
    steps = [[5.0, 1e-4 if trial == 3 else 1.0] for trial in range(TRIALS)]
    now = iter(np.cumsum(steps))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    reader = Disk(tmp_path / "f")
    for _ in range(TRIALS):
        reader.read_range(0, disk.SHORT)
    assert reader.past


def test_short_files_and_other_systems_are_read_as_usual(tmp_path, past, monkeypatch):
    write(tmp_path / "f", 1000)
    assert pickle.loads(pickle.dumps(Disk(tmp_path / "f"))).past
    monkeypatch.setattr(disk, "LONG", 1001)
    assert not Disk(tmp_path / "f").past
    monkeypatch.setattr(disk, "LONG", 1000)
    assert Disk(tmp_path / "f").past
    monkeypatch.delattr(os, "O_DIRECT")
    assert not Disk(tmp_path / "f").past


def test_parts_end_with_the_file_whatever_it_says(tmp_path, past):
    octets = write(tmp_path / "f", 10_000)
    parts = Disk(tmp_path / "f").read_parts([(9000, 2**60), (20_000, 30_000), (3, 5)])
    assert [(at, part.tobytes()) for at, part in parts] == [(9000, octets[9000:]), (3, octets[3:5])]


def test_a_disk_is_a_file_to_pyarrow(tmp_path, past, asked):
    octets = write(tmp_path / "f", 10_000)
    reader = Disk(tmp_path / "f")
    file = DiskFile(reader, reader.read_parts([(1000, 3000), (6000, 7000)]))
    assert len(asked) == 2
    assert (file.seek(0, io.SEEK_END), file.seek(-100, io.SEEK_CUR), file.tell()) == (
        10_000,
        9900,
        9900,
    )
    assert file.read() == octets[9900:]
    assert file.read(5) == b""
    assert len(asked) == 3
    for at, size in ((1000, 2000), (6000, 1000), (2999, 1)):  # what was read at once
        file.seek(at)
        assert bytes(file.read_buffer(size)) == octets[at : at + size]
        assert file.tell() == at + size
    assert len(asked) == 3
    for at, size in ((999, 2), (2999, 2), (6500, 501)):  # what is not whole in there
        file.seek(at)
        assert bytes(file.read_buffer(size)) == octets[at : at + size]
    assert len(asked) == 6
    assert pa.PythonFile(file, "r").read_at(50, 2000) == octets[2000:2050]


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("kind", ["npy", "parquet", "one block a row group"])
def test_tables_are_the_same_past_the_cache(tmp_path, past, asked, monkeypatch, kind, pieces):
    X = np.random.default_rng(0).standard_normal((5000, 12)).astype(np.float32)
    path = tmp_path / ("t.npy" if kind == "npy" else "t.parquet")
    if kind == "npy":
        np.save(path, X)
    else:
        table = pa.table(list(X.T), [f"c{j}" for j in range(12)])
        pq.write_table(table, path, row_group_size=400 if "one" in kind else 2000)
    if pieces:
        monkeypatch.setattr(row_groups, "WHOLE", 1)
        monkeypatch.setattr(row_groups, "PIECES", 1)
        monkeypatch.setattr(row_groups, "PIECE", 1000)
    table = source(path, rows=400)
    found = [table.read(partition) for partition in table.partitions]
    assert asked
    assert np.array_equal(np.concatenate(found), X)
    assert all(block.flags.aligned for block in found)


def test_columns_beside_each_other_are_read_at_once_and_nothing_beforehand(
    tmp_path, past, asked, monkeypatch
):
    X = np.random.default_rng(0).standard_normal((5000, 16))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(list(X.T), list("abcdefghijklmnop")), path, row_group_size=2500)
    table = source(path, rows=500)
    asked.clear()
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: pytest.fail("asked for"), raising=False)
    for partition in table.partitions:
        table.read(partition)
    assert len(asked) == 2 * 8  # a strip of each row group


def test_no_advice_is_given_for_an_array_in_the_page_cache(tmp_path, monkeypatch):
    np.save(tmp_path / "t.npy", np.zeros((40, 5)))
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: pytest.fail("advised"), raising=False)
    table = source(tmp_path / "t.npy", rows=5)
    assert sum(LocalEngine(1).map(lambda block: len(block.X), table)) == 40


def test_an_array_after_a_header_of_any_length_is_aligned(tmp_path, past):
    X = np.random.default_rng(0).standard_normal((40, 5))
    np.save(tmp_path / "t.npy", X)
    octets = (tmp_path / "t.npy").read_bytes()
    header = octets[10:127] + b"   \n"  # three bytes longer than NumPy would have it
    length = len(header).to_bytes(2, "little")
    (tmp_path / "t.npy").write_bytes(octets[:8] + length + header + octets[128:])
    table = source(tmp_path / "t.npy", rows=20)
    blocks = [table.read(partition) for partition in table.partitions]
    assert np.array_equal(np.concatenate(blocks), X)
    assert all(block.flags.aligned for block in blocks)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system cannot be asked to forget")
def test_a_file_that_the_cache_has_is_read_from_there(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "LONG", 0)
    monkeypatch.setattr(disk, "_rates", {})
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    path = tmp_path / "f"
    write(path, 200 * PAGE)
    assert disk._is_kept(path, path.stat())  # as written
    assert not Disk(path).past
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not disk._is_kept(path, path.stat())  # the system would not tell


@pytest.mark.parametrize(("kept", "expected"), [(0, False), (30, False), (34, True), (64, True)])
def test_most_of_a_file_must_be_kept(tmp_path, monkeypatch, kept, expected):
    path = tmp_path / "f"
    write(path, 640 * PAGE)
    asked = []

    class Library:
        def __init__(self, _):
            pass

        @staticmethod
        def mincore(_, __, there):
            asked.append(1)
            there[0] = b"\xff" if len(asked) <= kept else b"\xfe"
            return 0

    monkeypatch.setattr(disk.ctypes, "CDLL", Library)
    assert disk._is_kept(path, path.stat()) is expected
    assert len(asked) == disk.LOOKS
    monkeypatch.setattr(Library, "mincore", lambda *_: -1)
    assert not disk._is_kept(path, path.stat())
    monkeypatch.delattr(Library, "mincore")
    assert not disk._is_kept(path, path.stat())
