import resource
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest

from gnomon.engine.sink import writing_blocks
from gnomon.errors import ExistingFileError, ParameterError, WriteError


def blocks(rows=5, count=3, dtype=np.float32):
    numbers = np.arange(rows * count * 2, dtype=dtype).reshape(count, rows, 2)
    return list(numbers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_become_one_npy_file(tmp_path, dtype):
    with writing_blocks(tmp_path / "a.npy", 15, ["x", "y"]) as add:
        for block in blocks(dtype=dtype):
            add(np.asfortranarray(block))
    read = np.load(tmp_path / "a.npy")
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, np.concatenate(blocks(dtype=dtype)))


def test_blocks_become_row_groups_of_one_parquet_file(tmp_path):
    with writing_blocks(tmp_path / "a.parquet", 15, ["x", "y"]) as add:
        for block in blocks():
            add(block)
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.metadata.num_row_groups == 3
    table = file.read()
    assert table.column_names == ["x", "y"]
    np.testing.assert_array_equal(np.column_stack(table.columns), np.concatenate(blocks()))


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_table_of_no_rows_is_a_file_too(tmp_path, ending):
    path = tmp_path / f"none{ending}"
    with writing_blocks(path, 0, ["x", "y"]):
        pass
    shape = np.load(path).shape if ending == ".npy" else pq.read_table(path).shape
    assert shape == (0, 2)


def test_other_endings_are_refused_before_anything_is_written(tmp_path):
    with (
        pytest.raises(ParameterError, match=r"`to` must end in one of \.npy, \.parquet; got"),
        writing_blocks(tmp_path / "a.csv", 1, ["x"]),
    ):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt])
def test_trouble_half_way_leaves_the_old_file(tmp_path, ending, trouble):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")

    def write():
        with writing_blocks(path, 15, ["x", "y"], force=True) as add:
            add(blocks()[0])
            raise trouble

    with pytest.raises(trouble):
        write()
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_full_disk_leaves_the_old_file(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")

    def write():
        with writing_blocks(path, 200_000, ["x", "y"], force=True) as add:
            for seed in range(20):
                add(np.random.default_rng(seed).standard_normal((10_000, 2)))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        with pytest.raises(WriteError, match=rf"a\{ending} could not be written"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_file_that_exists_is_not_overwritten_unasked(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")
    with pytest.raises(ExistingFileError), writing_blocks(path, 1, ["x"]):
        pass
    assert path.read_bytes() == b"old"
