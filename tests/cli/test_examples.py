"""The examples of `gnomon --help`, each in a process of its own; first, the installed command.

What commands do in detail is tested in this process by the other files; here is what only a real
process shows: the entry point, the streams, the exit code, what a command imports by itself, and
that nothing else is left behind.
"""

import io
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import first_words, forked, process, shell

N, D = 90, 5
MAP = ["map.parquet", "map.svg", "model.gnomon", "report.html", "run.json", "scree.svg"]
REDUCED = ["model.gnomon", "report.html", "run.json", "scores.parquet", "scree.svg"]


def some_cells(n=N, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + 9 * np.eye(D)[kind]
    columns = {f"gene{j}": X[:, j] for j in range(D)}
    return pa.table(
        {"id": [f"c{i}" for i in range(n)], "kind": np.array(["a", "b", "c"])[kind], **columns}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the examples, and what the first two of them leave for the others."""
    there = tmp_path_factory.mktemp("examples")
    pc.write_csv(some_cells(), there / "cells.csv")
    pq.write_table(some_cells(), there / "data.parquet")
    pc.write_csv(some_cells(7, seed=1), there / "new_cells.csv")
    rng = np.random.default_rng(2)
    old = rng.normal(size=(20, 2))
    new = old[::-1] @ [[0.0, 1.0], [-1.0, 0.0]] + 3
    ids = [f"c{i}" for i in range(20)]
    for name, Z, rows in (("old.csv", old, ids), ("new.csv", new, ids[::-1])):
        pc.write_csv(pa.table({"id": rows, "x": Z[:, 0], "y": Z[:, 1]}), there / name)
    done = process("map", "cells.csv", folder=there)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert first_words(done)[:4] == ["Read", "Features", "Label", "Id"]
    assert first_words(done)[-2:] == ["Wrote", "Next"]
    done = forked("reduce", "data.parquet", "-k", "0.95", folder=there)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return there


def table_of(done):
    assert done.returncode == 0, done.stderr
    return pc.read_csv(io.BytesIO(done.stdout.encode()))


def test_map_and_reduce_leave_their_files_and_no_others(folder):
    assert sorted(os.listdir(folder / "cells_map")) == MAP
    assert sorted(os.listdir(folder / "data_reduced")) == REDUCED
    given = ["cells.csv", "data.parquet", "new.csv", "new_cells.csv", "old.csv"]
    assert sorted(os.listdir(folder)) == sorted([*given, "cells_map", "data_reduced"])
    table = pq.read_table(folder / "cells_map" / "map.parquet")
    assert table.column_names[:4] == ["id", "kind", "tsne1", "tsne2"]
    assert table.num_rows == N


def test_map_of_a_sample(tmp_path):
    done = forked("map", "digits", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(os.listdir(tmp_path / "digits_map")) == MAP
    assert "digits: 1,797 rows × 65 columns" in done.stderr


def test_restore(folder):
    order = ("restore", "data_reduced/scores.parquet", "-m", "data_reduced/model.gnomon")
    done = forked(*order, folder=folder)
    table = table_of(done)
    assert table.column_names == some_cells().column_names
    X, Y = (
        np.column_stack([t[f"gene{j}"].to_numpy() for j in range(D)]) for t in (some_cells(), table)
    )
    lost = np.square(X - Y).sum() / np.square(X - X.mean(axis=0)).sum()
    assert 0 < lost < 0.05
    assert done.stderr.splitlines()[-1].startswith("Restored 5 columns from ")


def test_place(folder):
    table = table_of(forked("place", "new_cells.csv", "-m", "cells_map", folder=folder))
    judged = ["distance_ratio", "residual", "unusual", "why"]
    assert table.column_names == ["id", "kind", "tsne1", "tsne2", *judged]
    assert table.num_rows == 7


def test_align(folder):
    done = forked("align", "new.csv", "--to", "old.csv", "--id", "id", folder=folder)
    table, old = table_of(done), pc.read_csv(folder / "old.csv")
    assert table["id"].to_pylist() == old["id"].to_pylist()[::-1]
    for name in "xy":
        there = old[name].to_numpy()[::-1]
        assert np.allclose(table[name].to_numpy(), there, atol=1e-12)


def test_compare(folder):
    done = forked("compare", "old.csv", "new.csv", "--id", "id", folder=folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Procrustes correlation 1.0000" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("p-value  0.001")


def test_inspect(folder):
    before = sorted(os.listdir(folder))
    done = forked("inspect", "cells.csv", folder=folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert first_words(done)[-2:] == ["Time", "Memory"]
    assert sorted(os.listdir(folder)) == before


def test_report(folder):
    page = folder / "cells_map" / "report.html"
    page.unlink()
    done = forked("report", "cells_map", folder=folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "cells_map/report.html" in done.stderr
    assert "gene0" in page.read_text("utf-8")
    assert sorted(os.listdir(folder / "cells_map")) == MAP


def test_a_pipe_there_and_back(folder):
    """Fed by one pipe and read by another, the command restores what it reduced."""
    done = shell(
        f"cat cells.csv | $GNOMON reduce - -k {D} -q > y.csv"
        f" && $GNOMON reduce - -k {D} -o kept -q < cells.csv"
        " && cat y.csv | $GNOMON restore - -m kept -q",
        folder,
    )
    assert done.stderr == ""
    table, cells = table_of(done), some_cells()
    assert table["id"].to_pylist() == cells["id"].to_pylist()
    for j in range(D):
        want = cells[f"gene{j}"].to_numpy()
        assert np.allclose(table[f"gene{j}"].to_numpy(), want, rtol=0, atol=1e-13 * 50)


@pytest.mark.parametrize(
    ("order", "code"),
    [(["map", "no.csv"], 2), (["map", "bad.csv"], 3), (["map", "cells.csv", "--memory", "9B"], 4)],
)
def test_exit_codes_are_the_processes(folder, order, code):
    (folder / "bad.csv").write_text("")
    done = forked(*order, "-o", "nothing", folder=folder)
    (folder / "bad.csv").unlink()
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert not (folder / "nothing").exists()
