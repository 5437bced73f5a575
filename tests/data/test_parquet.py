"""Row groups of Parquet files: what is read of them, how often, and what is fetched beforehand."""

import os
import pickle
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gnomon import PCA, source
from gnomon.data.formats import io as disk
from gnomon.data.formats import parquet as row_groups
from gnomon.data.formats.arrow import ArrowTable
from gnomon.data.formats.parquet import ParquetGroups
from gnomon.data.formats.parts import beside_each_other
from gnomon.data.open import table_of_source
from gnomon.data.preparation import prepare
from gnomon.engine import LocalEngine
from gnomon.engine.paired_tables import pair_by_row
from gnomon.errors import ChangedSourceError, DataError


def write(path, rows=100, columns=6, group=20, names=None):
    X = np.random.default_rng(0).standard_normal((rows, columns))
    names = names or [f"c{j}" for j in range(columns)]
    pq.write_table(pa.table(list(X.T), names), path, row_group_size=group)
    return path


@pytest.fixture
def looked(monkeypatch):
    """How often the end of a file was read."""
    seen = []
    read = pq.read_metadata
    monkeypatch.setattr(pq, "read_metadata", lambda path: seen.append(path) or read(path))
    return seen


@pytest.fixture
def advised(monkeypatch):
    """Which bytes the system was asked to fetch."""
    seen = []
    monkeypatch.setattr(
        os,
        "posix_fadvise",
        lambda _, start, length, __: seen.append((start, start + length)),
        raising=False,
    )
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    return seen


def extents(path):
    """First and last byte of every row group."""
    meta = pq.read_metadata(path)
    found = []
    for i in range(meta.num_row_groups):
        chunks = [meta.row_group(i).column(j) for j in range(meta.num_columns)]
        starts = [c.dictionary_page_offset or c.data_page_offset for c in chunks]
        stops = [at + c.total_compressed_size for at, c in zip(starts, chunks, strict=True)]
        found.append((min(starts), max(stops)))
    return found


def test_what_a_file_says_about_itself_is_read_once(tmp_path, looked):
    table = source(write(tmp_path / "t.parquet"), rows=10)
    for _ in range(2):
        LocalEngine(2).map(lambda block: len(block.X), table)
    assert len(looked) == 1
    copy = pickle.loads(pickle.dumps(table))
    assert len(pickle.dumps(table)) < 10_000  # without it
    copy.read(table.partitions[0])
    assert len(looked) == 2


def test_a_file_that_was_written_anew_is_looked_at_again(tmp_path, looked):
    path = write(tmp_path / "t.parquet")
    groups = ParquetGroups(path)
    assert groups.count() == 5
    write(path, group=50)
    os.utime(path, (1, 1))
    assert groups.count() == 2
    assert len(looked) == 2


def test_the_next_row_group_is_fetched_while_one_is_decoded(tmp_path, advised):
    path = write(tmp_path / "t.parquet")
    table = source(path, rows=10)
    at_once = []

    def count(block):
        at_once.append(len(advised))
        return len(block.X)

    LocalEngine(1).map(count, table)
    assert len(advised) == len({*advised}) == 6 * 5  # each strip once
    inside = [
        group
        for start, stop in advised
        for group, (first, last) in enumerate(extents(path))
        if first <= start < stop <= last
    ]
    assert inside == sorted(inside)
    assert at_once[0] == 30  # there is room for all
    advised.clear()
    whole = source(path, rows=20)  # one block a row group
    LocalEngine(1).map(lambda block: len(block.X), whole)
    assert advised == extents(path)[1:]


def test_whoever_jumps_about_fetches_nothing(tmp_path, advised):
    path = write(tmp_path / "t.parquet", rows=200)
    table = source(path, rows=10)
    for at in (2, 6, 10, 14, 18):  # as one of two workers would
        table.read(table.partitions[at])
    few = table.only([table.partitions[at] for at in (2, 8, 14)])
    LocalEngine(1).map(lambda block: len(block.X), few)
    assert advised == []


def test_only_columns_in_use_are_fetched_and_not_too_much(tmp_path, advised, monkeypatch):
    path = write(tmp_path / "t.parquet", rows=90_000, group=30_000)
    monkeypatch.setattr(row_groups, "PIECE", 1)
    ParquetGroups(path).prefetch(range(1, 2), [0, 3])
    meta = pq.read_metadata(path).row_group(1)
    for (start, stop), j in zip(advised, (0, 3), strict=True):
        chunk = meta.column(j)
        assert start == (chunk.dictionary_page_offset or chunk.data_page_offset)
        assert stop - start == chunk.total_compressed_size
    advised.clear()
    monkeypatch.setattr(disk, "BEFOREHAND", 1000)
    ParquetGroups(path).prefetch(range(3), list(range(6)))
    assert sum(stop - start for start, stop in advised) == 1000
    whole, asked = advised.copy(), 300
    advised.clear()
    monkeypatch.setattr(disk, "ADVISED", asked)  # the system forgets the rest of a long range
    ParquetGroups(path).prefetch(range(3), list(range(6)))
    assert max(stop - start for start, stop in advised) == asked
    assert {at for start, stop in whole for at in range(start, stop)} == {
        at for start, stop in advised for at in range(start, stop)
    }


def test_a_hint_that_cannot_be_given_is_no_error(tmp_path, monkeypatch):
    groups = ParquetGroups(write(tmp_path / "t.parquet"))
    groups.path.unlink()
    groups.prefetch(range(1), [0])
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    groups.prefetch(range(1), [0])


def test_a_file_of_the_same_size_with_fewer_row_groups_is_told_as_changed(tmp_path):
    path = write(tmp_path / "t.parquet")
    size, table = path.stat().st_size, source(path, rows=10)
    fewer = write(path, rows=20).read_bytes()  # the first row group, as it was
    footer = len(fewer) - 8 - int.from_bytes(fewer[-8:-4], "little")
    path.write_bytes(fewer[:footer] + bytes(size - len(fewer)) + fewer[footer:])
    os.utime(path, (1, 1))
    assert (path.stat().st_size, ParquetGroups(path).count()) == (size, 1)
    with pytest.raises(ChangedSourceError, match=r"rows 20 to 29 changed.* 0 rows instead of 10"):
        LocalEngine(1).map(lambda block: len(block.X), table)


@pytest.fixture
def buffers(monkeypatch):
    """How much of a column is read at a time; 0 for all of it."""
    seen = []
    opened = pq.ParquetFile
    monkeypatch.setattr(
        pq,
        "ParquetFile",
        lambda *_, buffer_size, **how: (
            seen.append(buffer_size) or opened(*_, buffer_size=buffer_size, **how)
        ),
    )
    return seen


def test_large_row_groups_are_read_a_piece_of_each_column_at_a_time(tmp_path, monkeypatch, buffers):
    path = write(tmp_path / "t.parquet")
    groups = ParquetGroups(path)
    wanted = pq.read_table(path).slice(20, 20)
    buffers.clear()

    def lengths(rows, at_once=0):
        found = list(groups.batches(range(1, 2), list(range(6)), rows, at_once))
        assert pa.Table.from_batches(found) == wanted
        return [batch.num_rows for batch in found]

    assert (lengths(20), lengths(7)) == ([20], [20])  # a small one whole, whoever divides it
    monkeypatch.setattr(row_groups, "WHOLE", 100)
    assert (lengths(20), lengths(7)) == ([20], [7, 7, 6])
    assert lengths(7, at_once=10_000) == [20]
    monkeypatch.setattr(row_groups, "PIECE", 1)
    assert lengths(7) == [7, 7, 6]
    assert buffers == [0, 0, 0, max(row_groups.PIECES // 6, 2**17), 0, row_groups.PIECES // 6]


def test_what_repeats_counts_as_large_as_it_is_once_decoded(tmp_path, monkeypatch):
    types = [pa.float32(), pa.int64(), pa.bool_(), pa.float64(), pa.int32()]
    table = pa.table([pa.array([1] * 1000).cast(t) for t in types], list("abcde"))
    pq.write_table(table, tmp_path / "t.parquet")
    groups = ParquetGroups(tmp_path / "t.parquet")
    assert pq.read_metadata(tmp_path / "t.parquet").row_group(0).total_byte_size < 1000

    def count():
        return sum(1 for _ in groups.batches(range(1), list(range(5)), 300))

    monkeypatch.setattr(row_groups, "WHOLE", 1000 * (4 + 8 + 1 + 8 + 4))
    assert count() == 1
    monkeypatch.setattr(row_groups, "WHOLE", 1000 * (4 + 8 + 1 + 8 + 4) - 1)
    assert count() == 4


def test_texts_and_lists_are_never_taken_to_be_small(tmp_path):
    columns = {"a": ["long " * 500] * 100, "b": [[1.0] * 500] * 100, "c": [1.0] * 100}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    groups = ParquetGroups(tmp_path / "t.parquet")
    count = [sum(1 for _ in groups.batches(range(1), [j], 30)) for j in range(3)]
    assert count == [4, 4, 1]


def test_what_was_read_is_let_go_once_it_is_decoded(tmp_path, monkeypatch):
    groups = ParquetGroups(write(tmp_path / "t.parquet"))
    groups.disk.can = True
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    monkeypatch.setattr(disk, "_rates", {})
    read, kept = groups.disk.read_parts, []

    def parts(ranges):
        found = read(ranges)
        kept.extend(weakref.ref(octets) for _, octets in found)
        return found

    monkeypatch.setattr(groups.disk, "read_parts", parts)
    batches = groups.batches(range(1), [0, 1], 7)
    next(batches)
    assert kept
    assert all(octets() is None for octets in kept)


def test_a_thread_opens_a_file_once_until_it_is_written_anew(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet")
    groups = ParquetGroups(path)
    groups.disk.can = True
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    monkeypatch.setattr(disk, "_rates", {})
    opened, opens = [], groups._open
    monkeypatch.setattr(groups, "_open", lambda *a: opened.append(a) or opens(*a))

    def first(group):
        return next(groups.batches(range(group, group + 1), [1], 7)).column(0).to_pylist()

    expected = pq.read_table(path).column(1).to_pylist()
    assert [first(i) for i in (0, 3, 0)] == [expected[i : i + 20] for i in (0, 60, 0)]
    assert len(opened) == 1
    pq.write_table(pa.table([[8.0] * 9, [9.0] * 9], ["c0", "c1"]), path)
    assert first(0) == [9.0] * 9
    assert len(opened) == 2
    assert groups._ranges(range(1), {"c0", "c1"}) == (*extents(path),)
    again = pickle.loads(pickle.dumps(ParquetGroups(path)))
    again.disk.can = True
    assert next(again.batches(range(1), [0], 99)).column(0).to_pylist() == [8.0] * 9


def test_a_thread_keeps_no_more_readers_than_tables_are_read_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "O_DIRECT", 0, raising=False)
    monkeypatch.setattr(disk, "_rates", {})
    monkeypatch.setattr(disk, "LONG", 0)
    files = [ParquetGroups(write(tmp_path / f"{name}.parquet")) for name in "abcd"]
    kept = row_groups._mine.latest
    kept.clear()
    for groups in [*files, files[2], files[0], files[2]]:
        assert next(groups.batches(range(1), [0], 99)).num_rows == 20
        assert len(kept) <= 2
    assert {*kept} == {files[0], files[2]}
    assert kept[files[2]][0] is files[2]._metadata()
    del files, groups
    assert not kept, "readers of files that nobody knows any more"


def test_numbers_of_lists_are_found_under_their_longer_names(tmp_path):
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]])
    table = pa.table([vectors, vectors, pa.array([1.0, 2.0])], ["v", "v.w", "x"])
    path = tmp_path / "lists.parquet"
    pq.write_table(table, path)
    groups = ParquetGroups(path)
    chunks = {chunk: (start, stop) for chunk, start, stop in groups._spans(0)}
    assert groups._ranges(range(1), {"x"}) == (chunks["x"],)
    (found,) = groups._ranges(range(1), {"v.w", "x"})
    assert found == (chunks["v.w.list.element"][0], chunks["x"][1])


def test_where_columns_stand_is_not_looked_up_where_the_cache_is_in_use(tmp_path, monkeypatch):
    groups = ParquetGroups(write(tmp_path / "t.parquet"))
    monkeypatch.setattr(groups, "_ranges", lambda *_: pytest.fail("nobody needs it"))
    assert next(groups.batches(range(1), [0], 99)).num_rows == 20


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a.b.c", "b", "a.b"]])
def test_columns_whose_names_pyarrow_confuses_are_their_own(tmp_path, names):
    path = tmp_path / "t.parquet"
    X = np.random.default_rng(0).standard_normal((50, 3))
    pq.write_table(pa.table(list(X.T), names), path, row_group_size=20)
    found = LocalEngine().map(_rows, source(path, rows=30))
    np.testing.assert_array_equal(np.concatenate(found), X)


def test_a_number_that_stands_for_a_missing_value_is_one_in_blocks_too(tmp_path):
    path = tmp_path / "t.parquet"
    X = np.random.default_rng(0).standard_normal((50, 2))
    X[40, 1] = -999
    pq.write_table(pa.table(list(X.T), ["a", "b"]), path, row_group_size=20)
    found = np.concatenate(LocalEngine().map(_rows, source(path, rows=30, na="-999")))
    assert np.argwhere(np.isnan(found)).tolist() == [[40, 1]]


def _rows(block):
    return np.array(block.X)


def test_columns_stand_beside_each_other_however_they_come():
    whole = pa.array([1.0, None, 3.0, 4.0], pa.float32())
    other = pa.array([5.0, 6.0, float("nan"), 8.0], pa.float32())
    parts = [whole.slice(0, 3), whole.slice(3)]
    expected = np.array([[1, 5], [np.nan, 6], [3, np.nan], [4, 8]], np.float32)
    for first in ([whole], parts):
        cells = [pa.chunked_array(first), pa.chunked_array([other])]
        found = beside_each_other(cells, np.dtype(np.float32))
        assert found.dtype == np.float32
        assert found.flags.f_contiguous
        np.testing.assert_array_equal(found, expected)
        cut = beside_each_other([column.slice(1, 2) for column in cells], np.dtype(np.float32))
        np.testing.assert_array_equal(cut, expected[1:3])


def test_a_damaged_page_is_named_with_its_file(tmp_path):
    path = write(tmp_path / "t.parquet")
    table = source(path, rows=10)
    start = extents(path)[1][0]
    octets = bytearray(path.read_bytes())
    octets[start : start + 40] = b"\xff" * 40
    path.write_bytes(octets)
    with pytest.raises(DataError, match=r"t\.parquet is a damaged file"):
        table.read(table.partitions[2])


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path):
    path = write(tmp_path / "t.parquet")
    table = source(path, rows=10)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        table.files[0].read(table.files[0].pieces[2])


def test_threads_take_strips_of_columns_from_opposite_ends(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet", columns=20)
    table = source(path, rows=5)
    read, seen = ParquetGroups.batches, []

    def batches(self, groups, columns, rows, at_once):
        seen.append(columns)
        return read(self, groups, columns, rows, at_once)

    monkeypatch.setattr(ParquetGroups, "batches", batches)
    strips = [list(range(at, min(at + 3, 20))) for at in range(0, 20, 3)]
    X = pq.read_table(path).to_pandas().to_numpy()
    for first, order in ((0, strips[::-1]), (5, strips)):
        seen.clear()
        for at in range(first, 4 * (first // 4 + 1)):
            part = table.partitions[at]
            assert np.array_equal(table.read(part), X[part.start : part.start + 5])
        assert seen == order


def test_columns_of_the_same_name_are_read_once(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((40, 9))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(list(X.T), ["a"] * 9), path, row_group_size=20)
    table = source(path, rows=10)
    opened, seen = ParquetGroups._open, []
    monkeypatch.setattr(ParquetGroups, "_open", lambda *_: seen.append(1) or opened(*_))
    found = [table.read(partition) for partition in table.partitions]
    assert np.array_equal(np.concatenate(found), X)
    assert len(seen) == 2


@pytest.mark.parametrize("names", [["s.x", "b", "s"], ["s", "s.x", "b"], ["b", "s.x.y", "s"]])
def test_a_name_with_a_dot_is_not_taken_for_a_part_of_another(tmp_path, names):
    X = np.random.default_rng(0).standard_normal((40, 3))
    inside = pa.array([{"x": a, "y": b} for a, b in X[:, :2]])
    columns = [inside if name == "s" else pa.array(X[:, j]) for j, name in enumerate(names)]
    pq.write_table(pa.table(columns, names), tmp_path / "t.parquet", row_group_size=20)
    table = source(tmp_path / "t.parquet", rows=5, drop=["s"])
    assert table.names == tuple(name for name in names if name != "s")
    found = np.concatenate([table.read(partition) for partition in table.partitions])
    assert np.array_equal(found, X[:, [j for j, name in enumerate(names) if name != "s"]])


def test_cursors_are_let_go_when_their_blocks_are_given(tmp_path):
    table = source(write(tmp_path / "t.parquet"), rows=10)
    for partition in table.partitions[:3]:
        table.read(partition)
    assert list(table.files[0].cursors) == [1]  # the second row group, half read


def test_row_groups_that_were_only_looked_at_are_let_go(tmp_path):
    write(tmp_path / "a.parquet", group=50)
    write(tmp_path / "b.parquet", group=50)

    def sources():
        return [source(tmp_path / name, rows=5) for name in ("a.parquet", "b.parquet")]

    a, b = sources()
    few = [a.partitions[i] for i in (3, 11, 18)]
    scaled = prepare(table_of_source(a), scale="standard", engine=LocalEngine(1)).X
    pair = pair_by_row(a, b)
    for table in (a, scaled, pair):
        chosen = [table.partitions[i] for i in (3, 11, 18)]
        assert LocalEngine(2).map(lambda block: block.X.shape[0], table.only(chosen)) == [5, 5, 5]
        assert not a.files[0].cursors
        assert not b.files[0].cursors
    a.read(few[0])
    assert list(a.files[0].cursors) == [0]  # whoever reads on finds it open
    LocalEngine(1).map(lambda block: len(block.X), a.only(few[:1]))
    assert not a.files[0].cursors
    a, _ = sources()
    PCA(2).fit(a)
    assert not a.files[0].cursors


def test_a_row_group_is_looked_at_in_one_go(tmp_path, monkeypatch):
    table = source(write(tmp_path / "t.parquet", group=50), rows=5)
    begun = []
    real = ArrowTable._tables
    monkeypatch.setattr(ArrowTable, "_tables", lambda *args: begun.append(args[1]) or real(*args))
    few = table.only([table.partitions[i] for i in (1, 4, 8, 13, 18)])
    LocalEngine(1).map(lambda block: len(block.X), few)
    assert begun == [range(1)] * 6 + [range(1, 2)] * 6  # a strip for each of the columns
