"""Reading beforehand: what is begun and when, who reads, and that nothing is lost or kept."""

import os
import pickle
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gnomon import PCA, run, source
from gnomon.data.formats import arrow as arrow_blocks
from gnomon.data.formats import io as disk
from gnomon.data.formats import parquet as row_groups
from gnomon.data.formats import prefetch as ahead
from gnomon.data.formats.arrow import from_both_ends
from gnomon.data.formats.prefetch import Ahead, Coming
from gnomon.data.open import table_of_source
from gnomon.data.preparation import prepare
from gnomon.engine import LocalEngine
from gnomon.engine.paired_tables import pair_by_row
from gnomon.errors import DataError


@pytest.fixture
def idle(monkeypatch):
    """The reading thread, which reads when it is told to."""
    waiting = []
    monkeypatch.setattr(ahead._reader, "ask", waiting.append)
    return waiting


def test_what_was_read_beforehand_is_read_once():
    reads = []
    found = Ahead(lambda: reads.append(threading.get_ident()) or "text")
    while not reads:
        time.sleep(0.001)
    assert found.take() == "text"
    assert len(reads) == 1
    assert reads[0] != threading.get_ident()


def test_who_comes_before_the_thread_reads_on_the_spot(idle):
    reads = []
    found = Ahead(lambda: reads.append(1) or "text")
    assert found.take() == "text"
    idle[0].begin()  # too late
    assert reads == [1]


def test_who_comes_while_it_is_being_read_waits_for_it(idle):
    begun, go_on = threading.Event(), threading.Event()

    def read():
        begun.set()
        assert go_on.wait(10)
        return threading.get_ident()

    found = Ahead(read)
    reader = threading.Thread(target=idle[0].begin)
    reader.start()
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    assert found.take() == reader.ident
    reader.join()


def test_what_is_cancelled_is_not_read(idle):
    reads = []
    found = Ahead(lambda: reads.append(1))
    found.cancel()
    idle[0].begin()
    assert reads == []


def test_what_went_wrong_is_met_by_who_asks(idle):
    tries = []

    def read():
        tries.append(1)
        raise OSError("gone")

    found = Ahead(read)
    idle[0].begin()
    with pytest.raises(OSError, match="gone"):
        found.take()
    assert len(tries) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_waits_for_no_thread_of_its_parent(idle):
    found = Ahead(lambda: "text")
    found.first.clear()  # the thread has begun, and has not ended
    child = os.fork()
    if not child:
        os._exit(0 if found.take() == "text" and Ahead(lambda: 7).take() == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_a_thread_everything_is_read_on_the_spot(monkeypatch):
    def cannot(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead, "start_new_thread", cannot)
    monkeypatch.setattr(ahead, "_reader", ahead._Reader())
    assert Ahead(lambda: "text").take() == "text"


class File:
    """Parts of ten bytes; what was begun and dropped."""

    def __init__(self):
        self.begun, self.dropped = [], []
        self.meanwhile = lambda key: None

    def part_bytes(self, key):
        return 10 if isinstance(key, int) else len(key)

    def prefetch_part(self, key):
        self.begun.append(key)
        self.meanwhile(key)

    def drop_part(self, key):
        self.dropped.append(key)


def test_as_many_parts_are_begun_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(ahead, "ROOM", 35)
    file, coming = File(), Coming()
    coming.tell(range(5), file)
    assert file.begun == [0, 1, 2]
    coming.tell(range(7), file)  # most of them known
    assert file.begun == [0, 1, 2]
    coming.asked(1, file)
    assert file.begun == [0, 1, 2, 3]
    coming.asked(5, file)  # sooner than expected
    coming.asked(0, file)
    coming.asked(2, file)
    assert file.begun == [0, 1, 2, 3, 4, 6]
    coming.tell([0, 5, 8], file)  # what was asked for does not come again
    coming.asked(3, file)
    assert file.begun == [0, 1, 2, 3, 4, 6, 8]
    assert file.dropped == []


def test_where_little_memory_is_allowed_little_is_read_beforehand(tmp_path, past, beforehand):
    file, coming = File(), Coming()
    coming.tell(range(5), file, 25)
    assert file.begun == [0, 1]
    for kind in ("npy", "parquet"):
        table = source(write(tmp_path, kind), rows=25)
        LocalEngine(1).map(rows_of, table.limit(2000))
        assert not beforehand
        LocalEngine(1).map(rows_of, table.limit(200_000))
        assert beforehand
        beforehand.clear()


def test_a_part_that_there_is_never_room_for_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(ahead, "ROOM", 35)
    file, coming = File(), Coming()
    coming.tell([1, "x" * 40, 2, 3, 4], file)
    assert file.begun == [1]
    coming.asked(1, file)
    assert file.begun == [1, 2, 3, 4]


def test_what_somebody_reads_already_is_dropped(monkeypatch):
    monkeypatch.setattr(ahead, "ROOM", 25)
    file, coming = File(), Coming()
    file.meanwhile = lambda key: key == 2 and coming.asked(2, file)
    coming.tell([1, 2, 3, 4], file)
    assert (file.begun, file.dropped) == ([1, 2, 3], [2])


def test_a_copy_knows_of_nothing():
    coming = Coming()
    coming.tell([1], File())
    copy = pickle.loads(pickle.dumps(coming))
    assert not copy.known
    assert not copy.begun


def test_two_threads_come_to_strips_from_both_ends():
    assert from_both_ends(range(5)) == [0, 4, 1, 3, 2]
    assert from_both_ends(range(4)) == [0, 3, 1, 2]
    assert from_both_ends(range(1)) == [0]


@pytest.fixture
def past(monkeypatch):
    """Files of any length are read past the cache; which ranges were."""
    monkeypatch.setattr(disk, "LONG", 0)
    monkeypatch.setattr(disk, "QUICK", 0.0)
    monkeypatch.setattr(disk, "_is_kept", lambda *_: False)
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    seen = []
    read = disk.Disk._read_parts

    def parts(self, ranges):
        seen.append(ranges)
        return read(self, ranges)

    monkeypatch.setattr(disk.Disk, "_read_parts", parts)
    return seen


X = np.random.default_rng(0).standard_normal((400, 20)).astype(np.float32)


def write(folder, kind, group=100):
    path = folder / f"t.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        pq.write_table(
            pa.table(list(X.T), [f"c{j}" for j in range(20)]), path, row_group_size=group
        )
    return path


def rows_of(block):
    return np.array(block.X)


def side_by_side(block):
    return np.hstack(block.X)


@pytest.fixture
def beforehand(monkeypatch):
    """How many parts were read beforehand, which is done at once."""
    count = []
    monkeypatch.setattr(ahead._reader, "ask", lambda part: count.append(1) or part.begin())
    return count


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("kind", "rows"), [("npy", 25), ("parquet", 25), ("parquet", 100)])
def test_nothing_is_left_of_what_was_read_beforehand(tmp_path, past, kind, rows, threads):
    table = source(write(tmp_path, kind), rows=rows)
    for _ in range(3):
        past.clear()
        coming = table.files[0].coming  # of this pass; the next has one of its own
        found = LocalEngine(threads).map(rows_of, table)
        assert np.array_equal(np.concatenate(found), X)
        assert coming.known
        assert not coming.begun
        assert not coming.waiting
        # Two threads, and the one that reads, may begin the same part in the same moment.
        assert len(past) == len({*past}) or threads > 1
    where = table.files[0].disk if kind == "npy" else table.files[0].file.disk
    assert not where.ahead


@pytest.mark.parametrize(
    ("kind", "rows", "parts", "first"),
    [("npy", 25, 16, 1), ("parquet", 25, 4 * 7, 0), ("parquet", 100, 4, 1)],
)
def test_all_but_the_first_part_is_read_beforehand(
    tmp_path, past, beforehand, kind, rows, parts, first
):
    table = source(write(tmp_path, kind), rows=rows)
    past.clear()
    LocalEngine(1).map(rows_of, table)
    assert (len(past), len(beforehand)) == (parts, parts - first)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_what_was_read_for_a_pass_that_failed_is_not_kept(tmp_path, past, kind):
    table = source(write(tmp_path, kind), rows=25)

    def fails(block):
        if block.partition.index == 2:
            raise DataError("no")
        return len(block.X)

    with pytest.raises(DataError, match="no"):
        LocalEngine(1).map(fails, table)
    file = table.files[0]
    assert not (file.disk if kind == "npy" else file.file.disk).ahead
    assert kind == "npy" or not file.cursors
    assert np.array_equal(np.concatenate(LocalEngine(1).map(rows_of, table)), X)


def test_what_is_made_of_other_tables_tells_them(tmp_path, past, beforehand):
    table, other = (
        source(write(tmp_path, kind), rows=rows) for kind, rows in (("npy", 25), ("parquet", 20))
    )
    ready = prepare(table_of_source(table), scale="standard", engine=LocalEngine(1)).X
    beforehand.clear()
    LocalEngine(1).map(rows_of, ready)
    assert len(beforehand) == 15
    beforehand.clear()
    both = LocalEngine(1).map(side_by_side, pair_by_row(table, other))
    assert np.array_equal(np.concatenate(both), np.hstack([X, X]))
    assert len(beforehand) == 15 + 4 * 7
    assert not table.files[0].disk.ahead
    assert not other.files[0].file.disk.ahead


def test_files_that_a_pass_is_done_with_are_told_so(tmp_path, past):
    (tmp_path / "f").mkdir()
    for i in range(4):
        np.save(tmp_path / "f" / f"{i}.npy", X[100 * i : 100 * (i + 1)])
    table = source(tmp_path / "f", rows=25)
    coming = [file.coming for file in table.files]
    assert np.array_equal(np.concatenate(LocalEngine(2).map(rows_of, table)), X)
    assert not table.prefetching
    assert not any(file.disk.ahead for file in table.files)
    assert not any(each.begun or each.waiting for each in coming)
    assert not {*coming}.intersection(file.coming for file in table.files)


def decoded(monkeypatch):
    """How many rows pyarrow gave at once."""
    seen = []
    read = row_groups.ParquetGroups.batches

    def batches(self, *args):
        for batch in read(self, *args):
            seen.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(row_groups.ParquetGroups, "batches", batches)
    return seen


def test_large_row_groups_are_decoded_at_once_where_memory_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "WHOLE", 1000)
    path = write(tmp_path, "parquet", group=200)  # of 16 kB
    table = source(path, rows=25)
    seen = decoded(monkeypatch)
    LocalEngine(1).map(rows_of, table)
    assert {*seen} == {200}
    seen.clear()
    LocalEngine(1).map(rows_of, table.limit(160_000))
    assert {*seen} == {200}
    assert table.limit(None) is table
    seen.clear()
    LocalEngine(1).map(rows_of, table.limit(10_000))
    assert {*seen} == {25}
    seen.clear()
    LocalEngine(1).map(rows_of, table.only([table.partitions[i] for i in (1, 6, 12)]))
    assert {*seen} == {25}  # only looked at
    ready = prepare(table_of_source(table), scale="standard", engine=LocalEngine(1)).X
    seen.clear()
    LocalEngine(1).map(rows_of, ready.limit(10_000))
    assert {*seen} == {25}
    seen.clear()
    LocalEngine(1).map(rows_of, ready.only([ready.partitions[i] for i in (1, 6, 12)]))
    assert {*seen} == {25}
    told = []
    monkeypatch.setattr(type(table), "limit", lambda self, memory: told.append(memory) or self)
    PCA(2).fit(table, memory="100MB")
    run(table, memory="100MB", dimensions=None)
    assert told == [100_000_000] * 3


def test_a_large_row_group_has_more_strips(tmp_path, monkeypatch):
    table = source(write(tmp_path, "parquet", group=200), rows=25)
    assert len(table.files[0]._columns(0)) == 7  # of three columns, eight at the most
    monkeypatch.setattr(arrow_blocks, "STRIP", 1000)
    assert len(table.files[0]._columns(0)) == 10  # of a kilobyte or two
