import gzip
import os
import pickle
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import gnomon
from gnomon.data import file_content as content
from gnomon.data.formats import csv, spool
from gnomon.data.open import open_table
from gnomon.data.read import read
from gnomon.engine import LocalEngine
from gnomon.errors import ChangedSourceError, DataError, ParameterError, TooLargeError

TEXT = "name,kind,a,b\n" + "".join(f"r{i},{'xy'[i % 2]},{i}.5,{-i}\n" for i in range(300))


def rows_of(source):
    return np.concatenate(LocalEngine(2).map(lambda block: block.X.copy(), source))


def write(folder, name="t.csv", text=TEXT):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The system's folder for temporary files, which is empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_the_copy_is_removed_with_its_source(tmp_path, temporary):
    source = gnomon.source(write(tmp_path), rows=50)
    (copy,) = temporary.iterdir()
    assert copy.name.startswith("gnomon-spool-")
    some = source.only(source.partitions[:2])
    other = pickle.loads(pickle.dumps(source))
    del source, other
    assert rows_of(some).shape == (100, 2)
    del some
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("late", ["1,2\n", "x,x,n/a,1\n"])
def test_the_copy_is_removed_after_an_error(tmp_path, temporary, monkeypatch, late):
    monkeypatch.setattr(csv, "BEGINNING", 200)
    monkeypatch.setattr(content, "STEP", 200)
    with pytest.raises(DataError, match="line 302"):
        gnomon.source(write(tmp_path, text=TEXT + late))
    assert not list(temporary.iterdir())


def test_the_copy_is_removed_after_an_interrupt(tmp_path, temporary, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(spool.SpoolWriter, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gnomon.source(write(tmp_path))
    assert not list(temporary.iterdir())


def test_the_copy_is_removed_when_the_process_ends(tmp_path, temporary):
    program = f"import gnomon; kept = gnomon.source({str(write(tmp_path))!r}); print(kept.shape)"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment)
    assert done.stdout.strip() == b"(300, 2)"
    assert not list(temporary.iterdir())


def test_a_folder_of_ones_own(tmp_path, temporary):
    shared = tmp_path / "shared"
    shared.mkdir()
    source = gnomon.source(write(tmp_path), spool=shared)
    assert [path.name.startswith(spool.PREFIX) for path in shared.iterdir()] == [True]
    assert not list(temporary.iterdir())
    del source
    assert not list(shared.iterdir())
    with pytest.raises(ParameterError, match=r"`spool` must be a folder .* got .*gone"):
        gnomon.source(tmp_path / "t.csv", spool=tmp_path / "gone")


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.npz", "t.npy.gz"])
def test_a_disk_that_is_too_small_is_told_before_it_is_full(tmp_path, temporary, monkeypatch, name):
    path = tmp_path / name
    if name == "t.npz":
        np.savez(path, X=np.ones((100, 3)))
    else:
        np.save(tmp_path / "t.npy", np.ones((100, 3)))
        inside = (tmp_path / "t.npy").read_bytes() if "npy" in name else TEXT.encode()
        path.write_bytes(gzip.compress(inside) if name.endswith("gz") else inside)
    free = spool.SPARE_BYTES + 100
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free, 0, free))
    said = r"t\..* is read from a temporary copy, which needs .* kB of disk; .* has 67.* MB free"
    with pytest.raises(TooLargeError, match=said):
        gnomon.source(path)
    assert not list(temporary.iterdir())


def test_the_disk_that_a_whole_text_needs_is_told_from_its_first_piece(
    tmp_path, temporary, monkeypatch
):
    monkeypatch.setattr(csv, "BEGINNING", 200)
    monkeypatch.setattr(content, "STEP", 200)
    free = spool.SPARE_BYTES + 4000  # a piece needs 400 bytes, all of it 14,000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free, 0, free))
    with pytest.raises(TooLargeError, match=r"needs about [\d.]+ kB of disk"):
        gnomon.source(write(tmp_path))


def test_a_disk_that_is_full_after_all_is_named(tmp_path, temporary, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.SpoolWriter, "_put", full)
    with pytest.raises(TooLargeError, match=r"The disk is full: .* of t\.csv .* `spool`"):
        gnomon.source(write(tmp_path))
    assert not list(temporary.iterdir())


def test_a_text_that_changes_under_the_run_is_an_error(tmp_path, monkeypatch):
    path = write(tmp_path)
    source = gnomon.source(path, rows=50)
    write(tmp_path, text=TEXT.replace("7.5", "8.5"))
    os.utime(path, ns=(1, 1))
    with pytest.raises(ChangedSourceError, match=r"t\.csv, rows 0 to 49 changed .* written again"):
        rows_of(source)
    stream = csv.CsvTable._stream

    def touched(self, *args, **how):
        os.utime(path, ns=(2, 2))
        return stream(self, *args, **how)

    monkeypatch.setattr(csv.CsvTable, "_stream", touched)
    with pytest.raises(ChangedSourceError, match=r"t\.csv changed while it was read"):
        gnomon.source(path)


def test_a_copy_that_cannot_be_seen_is_named(tmp_path, temporary):
    source = gnomon.source(write(tmp_path), rows=50)
    shutil.rmtree(next(temporary.iterdir()))
    with pytest.raises(DataError, match=r"copy of t\.csv is gone, or .* other machines .* `spool`"):
        source.read(source.partitions[0])


def frame():
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    return X, pa.table({name: X[:, j] for j, name in enumerate("abc")})


@pytest.mark.parametrize("inside", ["t.npy", "t.parquet", "t.feather", "t.npz"])
def test_compressed_files_are_read_in_blocks_as_in_memory(tmp_path, temporary, inside):
    X, table = frame()
    path = tmp_path / inside
    if inside.endswith(".npy"):
        np.save(path, X)
    elif inside.endswith(".npz"):
        np.savez_compressed(path, X=X)
    else:
        (pq.write_table if inside.endswith("parquet") else pf.write_feather)(table, str(path))
    packed = write(tmp_path, f"{inside}.gz", gzip.compress(path.read_bytes()))
    source = gnomon.source(packed, rows=70)
    np.testing.assert_array_equal(rows_of(source), X)
    np.testing.assert_array_equal(read(packed).X, X)
    assert source.partitions[0].file == f"{inside}.gz"
    del source
    assert not list(temporary.iterdir())


def test_an_archive_of_arrays_has_names_and_labels_in_blocks(tmp_path, temporary):
    X, _ = frame()
    kinds = np.array(["u", "v", "w"])[np.arange(300) % 3]
    names = np.array(["p", "q", "r"])
    np.savez_compressed(tmp_path / "t.npz", X=X, kind=kinds, columns=names, other=np.ones((4, 1)))
    held = open_table(tmp_path / "t.npz")
    blocks = open_table(tmp_path / "t.npz", in_blocks=True)
    assert (blocks.in_blocks, held.in_blocks) == (True, False)
    np.testing.assert_array_equal(rows_of(blocks.X), held.X)
    assert blocks.columns == held.columns == ("p", "q", "r")
    assert blocks.label_name == held.label_name == "kind"
    assert blocks.labels.tolist() == held.labels.tolist() == kinds.tolist()
    assert blocks.notes == held.notes
    source = gnomon.source(tmp_path / "t.npz", columns=["r", "p"], rows=64)
    np.testing.assert_array_equal(rows_of(source), X[:, [2, 0]])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(source.partitions[1]), X[64:128, [2, 0]])


def standard_input(monkeypatch, path):
    stream = path.open("rb")
    monkeypatch.setattr(sys, "stdin", namedtuple("Input", "buffer")(stream))
    return stream


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.npz"])
def test_standard_input_is_read_in_blocks_as_in_memory(tmp_path, temporary, monkeypatch, name):
    X, _ = frame()
    np.savez(tmp_path / "t.npz", X=X)
    write(tmp_path)
    write(tmp_path, "t.csv.gz", gzip.compress(TEXT.encode()))
    held = read(tmp_path / name)
    with standard_input(monkeypatch, tmp_path / name):
        table = open_table("-", in_blocks=True)
    assert (table.in_blocks, table.name, table.folder) == (True, "standard input", None)
    np.testing.assert_array_equal(rows_of(table.X), held.X)
    assert (table.ids is None) == (held.ids is None)
    assert held.ids is None or table.ids.tolist() == held.ids.tolist()
    assert held.labels is None or table.labels.tolist() == held.labels.tolist()
    del table
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("share", [1e-9, 0.5])
def test_long_standard_input_is_held_where_it_fits(tmp_path, temporary, monkeypatch, share):
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 1000)
    monkeypatch.setattr("gnomon.data.open.HELD_SHARE", share)
    monkeypatch.setattr(content, "STEP", 300)
    with standard_input(monkeypatch, write(tmp_path)):
        table = open_table("-", label="kind")
    assert table.in_blocks == (share < 0.1)
    held = read(tmp_path / "t.csv", label="kind")
    np.testing.assert_array_equal(rows_of(table.X) if table.in_blocks else table.X, held.X)
    assert table.labels.tolist() == held.labels.tolist()


def test_short_standard_input_needs_no_disk(tmp_path, temporary, monkeypatch):
    temporary.rmdir()
    with standard_input(monkeypatch, write(tmp_path)):
        table = open_table("-", label="kind")
    np.testing.assert_array_equal(table.X, read(tmp_path / "t.csv", label="kind").X)
    assert Path(tmp_path / "t.csv").exists()
