"""Odd environments: it works, or one sentence says what is wrong. Cases 43 and 44.

A working directory that is gone, closed streams, names that are no UTF-8, little address space.
"""

import errno
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from commands import environment, gnomon, refused, shell

from gnomon import source
from gnomon.budget import available_bytes
from gnomon.cli.failures import exit_code, sentence
from gnomon.data.read import read

X = np.random.default_rng(0).normal(size=(40, 3))
TABLE = "\n".join(["a,b,c", *(",".join(f"{x:.4f}" for x in row) for row in X)]) + "\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path


def one_sentence(done, code, *says):
    """Whether it ended with one sentence, which needs no --debug."""
    assert "(--debug shows where)" not in done.stderr
    return refused(done, code, *says)


@pytest.mark.parametrize(
    "order",
    ["map iris", "inspect iris", "map iris -o ../out", "report x", "align a --to b", "reduce -"],
)
def test_a_working_directory_that_is_gone_is_told(folder, order):
    (folder / "gone").mkdir()
    done = shell(f"cd gone && rmdir ../gone && $GNOMON {order}", folder, stdin=TABLE)
    assert one_sentence(done, 1, "The working directory was removed. Change to another one.")
    assert sorted(os.listdir(folder)) == ["t.csv"]


def test_help_needs_no_working_directory(folder):
    (folder / "gone").mkdir()
    done = shell("cd gone && rmdir ../gone && $GNOMON --help && $GNOMON map --help", folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ["reduce -", "map - -o out", "inspect -"])
def test_closed_standard_input_is_told(folder, order):
    done = shell(f"$GNOMON {order} <&-", folder)
    assert one_sentence(done, 2, "Standard input is closed. Name a file, or pipe the table in.")


@pytest.mark.parametrize("order", ["reduce - -q < t.csv", "inspect t.csv --json -q"])
def test_a_standard_output_that_takes_nothing_is_told(folder, order):
    done = shell(f"$GNOMON {order} >&-", folder)
    assert one_sentence(done, 1, "Standard output is closed.")
    done = shell(f"$GNOMON {order} > /dev/full", folder)
    assert one_sentence(done, 1, "Standard output could not be written (No space left on device).")


def test_whoever_needs_no_standard_stream_may_close_all(folder):
    for line in ("reduce t.csv -o out", "map t.csv --dry-run"):
        done = shell(f"$GNOMON {line} <&- >&- 2>&-", folder)
        assert done.returncode == 0
    assert (folder / "out" / "scores.parquet").exists()
    assert shell("$GNOMON reduce nothing.csv 2>&-", folder).returncode == 2


def test_words_that_cannot_be_said_end_no_run(folder):
    done = shell("$GNOMON reduce t.csv -o out 2> /dev/full", folder)
    assert done.returncode == 0
    assert (folder / "out" / "scores.parquet").exists()
    assert shell("$GNOMON reduce nothing.csv 2> /dev/full", folder).returncode == 2


ODD = os.fsdecode(b"caf\xe9")  # as in a folder from a time before UTF-8


def write_odd(folder, ending):
    path = folder / f"{ODD}{ending}"
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    if ending == ".csv":
        path.write_text(TABLE)
    elif ending == ".npy":
        np.save(path, X)
    elif ending == ".npz":
        np.savez(path, X)
    else:
        with path.open("wb") as file:
            (pq.write_table if ending == ".parquet" else feather.write_feather)(table, file)
    return path


@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz", ".parquet", ".feather"])
def test_a_file_whose_name_is_no_utf8_is_read_and_called_by_what_can_be_shown(tmp_path, ending):
    path = write_odd(tmp_path, ending)
    table = read(path)
    np.testing.assert_allclose(table.X, X, atol=1e-4)
    assert table.name == f"caf\ufffd{ending}"
    if ending != ".npz":
        blocks = source(path)
        assert sum(len(blocks.read(part)) for part in blocks.partitions) == len(X)


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_every_command_works_with_names_that_are_no_utf8(tmp_path, ending):
    data = write_odd(tmp_path, ending).name
    orders = [
        ["inspect", data],
        ["map", data],
        ["map", data, "--force", "--json"],
        ["reduce", data],
        ["reduce", data, "--force", "--workers", "1", "-o", f"{ODD}_blocks"],
        ["report", f"{ODD}_map", "--force", "--title", ODD],
        ["report", f"{ODD}_map", "-o", f"{ODD}.html"],
        ["place", data, "-m", f"{ODD}_map", "-o", f"{ODD}2.parquet"],
        [
            "restore",
            f"{ODD}_reduced/scores.parquet",
            "-m",
            f"{ODD}_reduced",
            "-o",
            f"{ODD}.feather",
        ],
        ["align", data, "--to", data, "-o", f"{ODD}3.csv"],
        ["compare", data, data, "-o", "c.json"],
    ]
    for order in orders:
        done = gnomon(*order, folder=tmp_path)
        assert done.returncode == 0, (order, done.stderr)
    assert (
        json.loads((tmp_path / f"{ODD}_map" / "run.json").read_text("utf-8"))["settings"]["data"]
        == data
    )
    assert "caf\ufffd" in (tmp_path / f"{ODD}_map" / "report.html").read_text("utf-8")
    done = gnomon("map", f"no{ODD}.csv", folder=tmp_path)
    assert one_sentence(done, 2, "is neither a file nor a bundled sample")


def _changed(content, at, byte):
    return content[:at] + bytes([byte]) + content[at + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "cut at its end": lambda content: content[:-30],
    "cut in the middle": lambda content: content[: len(content) // 2],
    "cut at its beginning": lambda content: content[20:],
    "a number changed": lambda content: _changed(content, len(content) // 2, 0xA5),
    "a header changed": lambda content: content.replace(b"'descr': '<f8'", b"'descr': '<x8'"),
    "a directory changed": lambda content: content.replace(b"PK\x01\x02", b"PK\x09\x09"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("order", ["map t.npz", "reduce t.npz", "inspect t.npz"])
def test_a_damaged_npz_is_refused_in_a_sentence_that_names_it(tmp_path, order, damage):
    """Case 44."""
    np.savez(tmp_path / "t.npz", X=X)
    content = (tmp_path / "t.npz").read_bytes()
    damaged = DAMAGES[damage](content)
    assert damaged != content
    (tmp_path / "t.npz").write_bytes(damaged)
    assert one_sentence(gnomon(*order.split(), folder=tmp_path), 3, "t.npz")
    assert os.listdir(tmp_path) == ["t.npz"]


LIMITED = """
import resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from gnomon.cli import main
sys.argv = ["gnomon", *sys.argv[2:]]
main()
"""


def limited(limit, *order, folder):
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *order],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("limit", [3 * 10**8, 8 * 10**8, 2 * 10**9])
@pytest.mark.parametrize("order", [["map", "t.csv"], ["inspect", "t.csv"], ["compare", "a", "b"]])
def test_too_little_address_space_for_the_libraries_is_told_before_they_are_loaded(
    folder, limit, order
):
    """Case 43: OpenBLAS ended the process with words of its own, or waited for ever."""
    done = limited(limit, *order, folder=folder)
    assert one_sentence(done, 4, "ulimit -v", "Raise the limit, or remove it: ulimit -v unlimited.")
    assert sorted(os.listdir(folder)) == ["t.csv"]


def test_help_needs_little_address_space(folder):
    assert limited(3 * 10**8, "map", "--help", folder=folder).returncode == 0


def sparse_npy(path, rows, columns):
    """A table of zeros that takes no room on the disk."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)}
    )
    path.write_bytes(file.getvalue())
    os.truncate(path, len(file.getvalue()) + 8 * rows * columns)


def test_a_table_beyond_the_address_space_is_refused_in_words(folder):
    sparse_npy(folder / "big.npy", 100_000, 10_000)  # 8 GB
    assert gnomon("map", "t.csv", "-q", folder=folder).returncode == 0
    order = ("report", "t_map", "--data", "big.npy", "--force")  # which reads it as a whole
    done = limited(4 * 10**9, *order, folder=folder)
    assert one_sentence(done, 4, "big.npy: mapping it needs about 8.0 GB of memory, more than the")


def test_what_is_free_is_no_more_than_the_address_space_leaves(monkeypatch):
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (now + 10**8, now + 10**8))
    assert 0 < available_bytes() <= 1.1 * 10**8
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert available_bytes() > 1.1 * 10**8


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily"),
        ImportError("libx.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_the_system_refuses_is_exit_code_4_in_words(error):
    assert exit_code(error) == 4
    said = sentence(error, ())
    assert said.startswith("There is not enough memory (")
    assert "--debug" not in said
    assert "[Errno" not in said


def test_trouble_of_the_system_is_told_by_name_and_not_by_number():
    error = PermissionError(errno.EACCES, "Permission denied", "x.csv")
    assert sentence(error, ()) == "x.csv: Permission denied."
    assert exit_code(error) == 1
