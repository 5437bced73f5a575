import pickle

import numpy as np
import pytest

from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.engine.source import _MULTIPLIERS, _STEP, Partition, checksum, partition_rows


def test_a_checksum_changes_with_every_number_and_its_place():
    X = np.random.default_rng(0).standard_normal((500, 41)).astype(np.float32)  # words and a rest
    first, seen = checksum(X), set()
    for at in (0, 1, 8191, 8192, 16384, X.size - 1):
        changed = X.copy()
        changed.flat[at] = np.nextafter(changed.flat[at], np.float32(9))
        seen.add(checksum(changed))
    swapped = X.copy()
    swapped[[3, 400]] = swapped[[400, 3]]
    seen |= {checksum(swapped), checksum(X[:-1]), checksum(np.zeros((3, 1))), checksum(X[:0])}
    assert len(seen) == 10
    assert first not in seen
    assert checksum(X) == first
    assert checksum(np.asfortranarray(X)) == checksum(np.ascontiguousarray(X.T))


@pytest.mark.parametrize("numbers", [0, 1, 2, 8191, 16384, 16385, 40001])
def test_a_checksum_is_what_its_formula_says(numbers):
    X = np.random.default_rng(0).standard_normal((numbers, 1)).astype(np.float32)
    octets = X.tobytes()
    words = [int.from_bytes(octets[at : at + 8], "little") for at in range(0, len(octets), 8)]
    rest = words.pop() if len(octets) % 8 else 0
    total = len(octets)
    for start in range(0, len(words), len(_MULTIPLIERS)):
        chunk = words[start : start + len(_MULTIPLIERS)]
        products = (a * int(b) for a, b in zip(chunk, _MULTIPLIERS, strict=False))
        total = (total * _STEP + sum(products)) % 2**64
    assert checksum(X) == (total * _STEP + rest) % 2**64


def test_a_partition_says_where_it_stands():
    assert str(Partition(3, 700, 50, "b.npy", 100)) == "b.npy, rows 100 to 149"


def test_the_size_of_partitions_depends_on_the_columns_alone():
    assert partition_rows(100) == 10485
    assert partition_rows(784) == 4096
    assert partition_rows(2000) == 2097
    assert partition_rows(10**9) == 1
    assert partition_rows(100, 7) == 7


def test_what_is_open_is_let_go_where_partitions_are_far_between(monkeypatch):
    source = ArraySource(np.zeros((100, 2)), rows=10)
    closed = []
    monkeypatch.setattr(
        ArraySource, "release", lambda self, but=None: closed.append(but and but.index)
    )
    few = [source.partitions[i] for i in (0, 5, 9)]
    for partitions, scattered in (
        (source.partitions, False),
        (source.partitions[2:7], False),
        (few, True),
        (few[:1], False),
        ([], False),
    ):
        some = source.only(partitions)
        assert some.scattered is scattered
        assert some.only(source.partitions).scattered is False
        LocalEngine(1).map(lambda block: len(block.X), some)
    # After every block of those, and after every pass.
    assert closed == [None, None, 0, 5, 9, None, None, None]


def test_a_pickled_source_is_small_and_reads():
    source = ArraySource(np.arange(8.0).reshape(4, 2), rows=1)
    source.seals[0] = 1
    copy = pickle.loads(pickle.dumps(source))
    assert (copy.partitions, copy.seals) == ((), {})
    np.testing.assert_array_equal(copy.read(source.partitions[2]), [[4.0, 5.0]])


def test_a_source_knows_its_shape():
    source = ArraySource(np.zeros((10, 3), np.float32), rows=4, names=["a", "b", "c"])
    assert source.shape == (10, 3)
    assert source.block_bytes == 48
    assert source.names == ("a", "b", "c")
