import threading

import numpy as np
import pytest

from gnomon.compute.threads import map_blocks
from gnomon.engine import LocalEngine, as_engine
from gnomon.engine.arrays import ArraySource
from gnomon.errors import (
    ChangedSourceError,
    DataError,
    Interrupted,
    ParameterTypeError,
    PartitionError,
)
from gnomon.events import Event


def table(rows=530, columns=3, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def column_sums(block):
    return block.X.sum(axis=0)


def test_results_come_in_the_order_of_the_partitions():
    source = ArraySource(table(), rows=10)
    for threads in (1, 2, 4):
        starts = LocalEngine(threads).map(lambda block: block.partition.start, source)
        assert starts == list(range(0, 530, 10))


def test_sums_have_the_same_bits_for_any_number_of_threads():
    source = ArraySource(table(5000), rows=7)
    sums = [LocalEngine(n).reduce(column_sums, source, np.add) for n in (1, 2, 4)]
    assert sums[0].tobytes() == sums[1].tobytes() == sums[2].tobytes()
    np.testing.assert_allclose(sums[0], table(5000).sum(axis=0), rtol=1e-3, atol=1e-3)


def test_threads_share_the_last_partition_of_an_array_if_one_of_them_would_be_idle():
    both = threading.Barrier(2, timeout=20)

    def work(block):
        if block.partition.index == 4:  # broken unless two threads are here at once
            map_blocks(lambda *_: both.wait(), [(0, 1), (1, 2)], n_jobs=2)
        return block.partition.index

    source = ArraySource(table(50), rows=10)
    assert LocalEngine(2).map(work, source) == [0, 1, 2, 3, 4]


def test_what_stands_beside_a_partition_comes_with_its_block():
    source = ArraySource(table(30), rows=10)
    assert LocalEngine().map(lambda b: b.beside, source, beside="abc") == ["a", "b", "c"]


def test_rows_done_are_told():
    told = []
    LocalEngine(1).reduce(column_sums, ArraySource(table(25), rows=10), np.add, on=told.append)
    assert told == [Event("rows", done, 25) for done in (10, 20, 25)]


def test_an_engine_reports_every_pass_to_its_callback_beside_that_of_the_pass():
    source = ArraySource(table(25), rows=10)
    some = source.only([source.partitions[0], source.partitions[2]])
    first, second, single, written = [], [], [], []
    plain = LocalEngine(2, first.append)
    engine = as_engine(plain, on=second.append)
    assert np.allclose(engine.reduce(column_sums, source, np.add), table(25).sum(axis=0))
    engine.map(column_sums, some)
    engine.write(column_sums, source, written.append, on=single.append)
    whole = [Event("rows", done, 25) for done in (10, 20, 25)]
    assert first == second == [*whole, Event("rows", 10, 15), Event("rows", 15, 15), *whole]
    assert single == whole
    assert len(written) == 3
    plain.map(column_sums, some)
    assert len(second) == 8  # the engine that was given is as it was


def test_a_callback_interrupts_a_pass():
    seen = []

    def stop(event):
        seen.append(event.done)
        return event.done == 20

    engine = as_engine(on=stop)
    with pytest.raises(Interrupted, match="after 20 of 25 rows"):
        engine.map(column_sums, ArraySource(table(25), rows=10))
    assert seen == [10, 20]


def test_few_results_wait_for_their_turn():
    open_now, most, lock = [0], [0], threading.Lock()

    def produce(block):
        with lock:
            open_now[0] += 1
            most[0] = max(most[0], open_now[0])

    def add(_):
        with lock:
            open_now[0] -= 1

    LocalEngine(2).write(produce, ArraySource(table(3000), rows=10), add)
    assert most[0] <= 4


def test_an_empty_source_is_refused():
    with pytest.raises(DataError, match="has no rows"):
        LocalEngine().reduce(column_sums, ArraySource(np.empty((0, 3))), np.add)


class Failing(ArraySource):
    """Fails to read one partition, so many times."""

    def __init__(self, times):
        super().__init__(table(40), rows=10)
        self.left = times

    def read(self, partition):
        if partition.index == 2 and self.left:
            self.left -= 1
            raise OSError("the drive is away")
        return super().read(partition)


def test_a_partition_that_fails_twice_is_read_the_third_time():
    whole = LocalEngine().reduce(column_sums, ArraySource(table(40), rows=10), np.add)
    got = LocalEngine().reduce(column_sums, Failing(2), np.add)
    assert got.tobytes() == whole.tobytes()


def test_a_partition_that_fails_three_times_is_named():
    with pytest.raises(PartitionError, match=r"the array, rows 20 to 29 failed 3 times.*away"):
        LocalEngine().reduce(column_sums, Failing(3), np.add)


def test_errors_made_on_purpose_are_not_tried_again():
    tried = []

    def refuse(block):
        tried.append(block.partition.index)
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        LocalEngine(1).map(refuse, ArraySource(table(40), rows=10))
    assert tried == [0]


def test_numbers_that_change_between_passes_are_found():
    X = table(40)
    source = ArraySource(X, rows=10)
    LocalEngine().reduce(column_sums, source, np.add)
    LocalEngine().reduce(column_sums, source, np.add)
    X[[25, 26]] = X[[26, 25]]  # two rows change places: no sum would show it
    with pytest.raises(
        ChangedSourceError, match=r"rows 20 to 29 changed .* not those of the first"
    ):
        LocalEngine().reduce(column_sums, source, np.add)


def test_rows_that_are_gone_are_found():
    class Short(ArraySource):
        def read(self, partition):
            return super().read(partition)[: 9 if partition.index == 3 else None]

    with pytest.raises(ChangedSourceError, match=r"rows 30 to 39.*9 rows instead of 10"):
        LocalEngine().map(column_sums, Short(table(40), rows=10))


def test_columns_that_are_gone_are_found():
    class Narrow(ArraySource):
        def read(self, partition):
            return super().read(partition)[:, 1:]

    columns = table(40).shape[1]
    with pytest.raises(
        ChangedSourceError, match=rf"rows 0 to 9 .* {columns - 1} columns instead of {columns}"
    ):
        LocalEngine(1).map(column_sums, Narrow(table(40), rows=10))


def test_ctrl_c_stops_at_the_next_block():
    seen = []

    def interrupted(block):
        seen.append(block.partition.index)
        if block.partition.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LocalEngine(1).map(interrupted, ArraySource(table(100), rows=10))
    assert seen == [0, 1]


def test_an_engine_is_made_of_nothing_or_taken_as_it_is():
    assert isinstance(as_engine(n_jobs=2), LocalEngine)
    assert as_engine(n_jobs=2).workers == 2
    assert as_engine(n_jobs=2).processes == 0
    mine = LocalEngine(1)
    assert as_engine(mine) is mine
    with pytest.raises(ParameterTypeError, match="a Dask client"):
        as_engine("tcp://127.0.0.1:8786")
