import numpy as np
import pytest

from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.engine.paired_tables import call, pair_by_id, pair_by_row
from gnomon.errors import ChangedSourceError, DataError


def table(rows, columns, seed):
    return np.random.default_rng(seed).standard_normal((rows, columns))


def read_all(pair):
    blocks = [pair.read(partition) for partition in pair.partitions]
    return [np.concatenate(side) for side in zip(*blocks, strict=True)]


def with_ids(X, ids):
    return np.column_stack([X[:, :1], ids, X[:, 1:]])


@pytest.mark.parametrize(("mine", "theirs"), [(7, 5), (5, 7), (100, 3), (3, 100), (10, 10)])
def test_rows_stand_beside_each_other_whatever_the_partitions(mine, theirs):
    X, Y = table(53, 2, 0), table(53, 3, 1).astype(np.float32)
    pair = pair_by_row(ArraySource(X, rows=mine), ArraySource(Y, rows=theirs))
    assert pair.shape == (53, 5)
    assert pair.dtype == np.float64
    left, right = read_all(pair)
    assert np.array_equal(left, X)
    assert np.array_equal(right, Y)
    assert (left.dtype, right.dtype) == (np.float64, np.float32)
    # Y is the wider table: the parts are its own.
    assert {partition.rows for partition in pair.partitions[:-1]} <= {theirs}
    assert np.array_equal(pair.array().X, X)
    assert np.array_equal(pair.array().Y, Y)


def test_a_partition_that_several_parts_share_is_read_once_a_pass():
    class Counting(ArraySource):
        reads = 0

        def read(self, partition):
            self.reads += 1
            return super().read(partition)

    wide, narrow = ArraySource(table(60, 3, 0), rows=5), Counting(table(60, 1, 1), rows=30)
    pair, engine = pair_by_row(wide, narrow), LocalEngine(1)
    for passes in (1, 2):
        engine.map(first, pair)
        assert narrow.reads == 2 * passes
    assert pair.kept == ({}, {})


def first(block):
    return float(block.X[0, 0] if isinstance(block.X, np.ndarray) else block.X.X[0, 0])


@pytest.mark.parametrize("by", ["row", "id"])
@pytest.mark.parametrize("changed", ["mine", "theirs"])
def test_what_one_pass_saw_of_a_table_holds_for_the_passes_of_the_pair_and_back(by, changed):
    engine, names = LocalEngine(1), ["a", "id", "b"]
    X, Y = with_ids(table(20, 2, 0), range(20)), with_ids(table(20, 2, 1), range(20))
    mine, theirs = ArraySource(X, 6, names), ArraySource(Y, 7, names)
    if by == "row":
        engine.map(first, mine)
        engine.map(first, theirs)
        pair = pair_by_row(mine, theirs)
    else:
        pair = pair_by_id(mine, theirs, "id", engine)  # which reads both
    (X if changed == "mine" else Y)[15, 0] += 1
    with pytest.raises(ChangedSourceError, match=r"rows 12 to 17 changed .* not those of the"):
        engine.map(first, pair)
    fresh = ArraySource(X, 6, names), ArraySource(Y, 7, names)
    engine.map(first, pair_by_row(*fresh))
    (X if changed == "mine" else Y)[15, 0] += 1
    with pytest.raises(ChangedSourceError, match=r"changed .* not those of the first time"):
        engine.map(first, fresh[0 if changed == "mine" else 1])


def test_a_pair_learns_what_its_tables_have_seen_since_it_was_made():
    for known in ("mine", "both"):
        X, Y = table(20, 2, 0), table(20, 2, 1)
        mine, theirs = ArraySource(X, 6), ArraySource(Y, 7)
        pair, engine = pair_by_row(mine, theirs), LocalEngine(1)
        assert len(pair.seals) == 0
        engine.map(first, mine)
        if known == "both":
            engine.map(first, theirs)
        assert len(pair.seals) == (len(pair.partitions) if known == "both" else 0)
        X[15, 0] += 1
        with pytest.raises(ChangedSourceError, match=r"rows 12 to 17 changed .* not those of the"):
            engine.map(first, pair)
        with pytest.raises(ChangedSourceError, match=r"rows 12 to 17 changed .* not those of the"):
            engine.map(first, mine)  # whose own are as they were


def test_tables_of_other_lengths_are_not_paired_by_row():
    with pytest.raises(DataError, match=r"same number of rows; got 5 and 6.*`id`"):
        pair_by_row(ArraySource(table(5, 2, 0)), ArraySource(table(6, 2, 0)))


@pytest.mark.parametrize(("mine", "theirs"), [(7, 5), (4, 90), (90, 4), (1, 1)])
def test_equal_ids_are_partners_and_the_others_stay_behind(mine, theirs):
    rng = np.random.default_rng(3)
    ids_x = np.sort(rng.choice(120, 60, replace=False))
    ids_y = np.sort(rng.choice(120, 80, replace=False))
    X, Y = table(60, 2, 0), table(80, 3, 1)
    names = ["a", "id", "b", "c"]
    pair = pair_by_id(
        ArraySource(with_ids(X, ids_x), rows=mine, names=names[:3]),
        ArraySource(with_ids(Y, ids_y), rows=theirs, names=names),
        "id",
        LocalEngine(2),
    )
    _, i, j = np.intersect1d(ids_x, ids_y, return_indices=True)
    left, right = read_all(pair)
    assert np.array_equal(left, X[i])
    assert np.array_equal(right, Y[j])
    assert pair.array() is None
    assert [partition.start for partition in pair.partitions] == [
        *np.cumsum([0, *(partition.rows for partition in pair.partitions)])[:-1]
    ]


@pytest.mark.parametrize(
    ("ids", "row", "says"),
    [
        ([0, 1, 2, 5, 4, 6], 4, "has 4 after 5"),  # within a partition
        ([0, 1, 5, 3, 4, 6], 3, "has 3 after 5"),  # between two
        ([0, 1, 2, 2, 4, 6], 3, "has 2 after 2"),  # twice
        ([np.nan, 1, 2, 3, 4, 6], 1, "has 1 after nan"),
    ],
)
def test_ids_that_do_not_ascend_are_an_error_that_says_where(ids, row, says):
    good = ArraySource(with_ids(table(6, 2, 0), range(6)), rows=3, names=["a", "id", "b"])
    bad = ArraySource(with_ids(table(6, 2, 1), ids), rows=3, names=["a", "id", "b"])
    with pytest.raises(DataError, match=rf"ids of Y must ascend.*row {row}, {says}\. Sort"):
        pair_by_id(good, bad, "id", LocalEngine(1))
    with pytest.raises(DataError, match=r"ids of X must ascend"):
        pair_by_id(bad, good, "id", LocalEngine(1))


def test_ids_must_be_a_column_and_have_something_in_common():
    named = ArraySource(with_ids(table(4, 2, 0), range(4)), names=["a", "id", "b"])
    with pytest.raises(DataError, match=r"Y has no numeric column 'id'"):
        pair_by_id(named, ArraySource(table(4, 2, 0)), "id", LocalEngine(1))
    with pytest.raises(DataError, match=r"X has no numeric column 'key'"):
        pair_by_id(named, named, "key", LocalEngine(1))
    far = ArraySource(with_ids(table(4, 2, 0), range(10, 14)), names=["a", "id", "b"])
    with pytest.raises(DataError, match="no id in common"):
        pair_by_id(named, far, "id", LocalEngine(1))
    odd = ArraySource(with_ids(table(4, 2, 0), [0.5, 1.5, 2.5, 3.5]), names=["a", "id", "b"])
    with pytest.raises(DataError, match="no id in common"):
        pair_by_id(named, odd, "id", LocalEngine(1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_ids_that_float64_cannot_tell_apart_are_refused(sign, kind):
    def ids(first, step):
        found = sign * (first + step * np.arange(6, dtype=np.int64))
        return np.column_stack([np.arange(6), np.sort(found)]).astype(kind)

    names = ["a", "id"]
    good = ArraySource(ids(2**53 - 6, 1), rows=3, names=names)
    assert pair_by_id(good, good, "id", LocalEngine(1)).rows == 6
    odd, even = (ArraySource(ids(2**53 + i, 4), rows=3, names=names) for i in (1, 0))
    for step in (odd, ArraySource(ids(2**53, 1), rows=3, names=names)):
        says = r"ids of Y must be between -2\^53 and 2\^53.* row 0, has about -?9007199254.*\. "
        with pytest.raises(DataError, match=says + "Use smaller ids"):
            pair_by_id(good, step, "id", LocalEngine(1))
    with pytest.raises(DataError, match=r"ids of X must be between"):
        pair_by_id(odd, even, "id", LocalEngine(1))


def test_errors_speak_of_tables_by_their_names_where_they_have_any():
    def named(ids, name):
        found = ArraySource(with_ids(table(4, 2, 0), ids), names=["a", "id", "b"])
        return call(found, name)

    def join(left, right, name="id"):
        pair_by_id(named(left, "new/"), named(right, "old/"), name, LocalEngine(1))

    with pytest.raises(DataError, match=r"^new/ and old/ have no id in common in the column 'id'"):
        join([0, 1, 2, 3], [10, 11, 12, 13])
    with pytest.raises(DataError, match=r"^The ids of old/ must ascend"):
        join([0, 1, 2, 3], [3, 2, 1, 0])
    with pytest.raises(DataError, match=r"^new/ has no numeric column 'key'"):
        join([0, 1, 2, 3], [0, 1, 2, 3], "key")
    with pytest.raises(DataError, match=r"^new/ and Y must have the same number of rows"):
        pair_by_row(named([0, 1, 2, 3], "new/"), ArraySource(table(5, 2, 0)))
