from dataclasses import replace

import numpy as np
import pytest

from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.errors import DataError
from gnomon.numeric.scaling import scale_rows
from gnomon.numeric.view import SAMPLE_PARTS, view_table


def numbers(rows=3000, columns=5, mean=1e4):
    return np.random.default_rng(0).standard_normal((rows, columns)) + mean


class Counting(ArraySource):
    """A table that is not in memory, and remembers which partitions were read."""

    def array(self):
        return None

    def __init__(self, X, rows):
        super().__init__(X, rows)
        self.seen = []

    def read(self, partition):
        self.seen.append(partition.index)
        return super().read(partition)

    def only(self, partitions):
        some = super().only(partitions)
        some.seen = self.seen
        return some


@pytest.mark.parametrize("long", [True, False])
def test_blocks_know_whether_the_table_is_long(monkeypatch, long):
    X = numbers()
    monkeypatch.setattr("gnomon.numeric.scaling.LONG_NUMBERS", X.size if long else X.size + 1)
    view = view_table(ArraySource(X, rows=1000), LocalEngine(1))
    assert view.collect(lambda rows, _, __: rows.is_long) == [long] * 3


def test_the_shift_is_the_mean_of_rows_from_a_few_partitions_everywhere():
    X = numbers()
    X[:1024] = 0  # blank rows before the data
    source = Counting(X, rows=100)
    view = view_table(source, LocalEngine(1))
    assert np.abs(view.scaling.shift - X.mean(axis=0)).max() < 1500
    assert len(source.seen) == SAMPLE_PARTS
    assert source.seen[0] == 0
    assert source.seen[-1] == 29
    assert set(source.seals) == set(source.seen)  # and what was seen must stay as it is


def test_rows_of_weight_0_are_absent_from_the_sample():
    X, weights = numbers(), np.ones(3000)
    X[:1500], weights[:1500] = -1e9, 0
    X[1700:1750], weights[1700:1750] = np.nan, 0
    view = view_table(ArraySource(X, rows=100), LocalEngine(1), weights=weights)
    np.testing.assert_allclose(view.scaling.shift, 1e4, atol=1)
    with pytest.raises(DataError, match="every weight is 0"):
        view_table(ArraySource(X, rows=100), LocalEngine(1), weights=np.zeros(3000))


def test_blocks_are_read_like_rows_of_the_whole_table():
    X = numbers()
    weights = np.linspace(0, 1, 3000)
    view = view_table(ArraySource(X, rows=400), LocalEngine(2))
    view = view.centred(np.full(5, 0.25), np.arange(1.0, 6.0), np.sqrt(weights))
    found = view.collect(lambda rows, given, _: (rows.read(0, rows.shape[0]), given), weights)
    whole = replace(scale_rows(X, shift=view.scaling.shift), roots=np.sqrt(weights))
    whole = whole.scaled(offset=np.full(5, 0.25), factor=np.arange(1.0, 6.0))
    np.testing.assert_array_equal(np.concatenate([z for z, _ in found]), whole.read(0, 3000))
    np.testing.assert_array_equal(np.concatenate([w for _, w in found]), weights)


def test_the_largest_number_is_found_wherever_it_is():
    X = numbers(mean=0.0)
    X[1234, 2] = -1e200
    view = view_table(ArraySource(X, rows=77), LocalEngine(2), shift=np.zeros(5))
    assert view.amplitude() == 1e200
