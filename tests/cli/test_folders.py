"""A folder that fits into memory goes the way of a file, with ids, labels and gaps."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import gnomon, refused

rng = np.random.default_rng(0)
HEADER = "name,kind,a,b,c,d\n"


def rows(n=90):
    """Three kinds, and a gap in every 20th row."""
    kinds = rng.integers(3, size=n)
    X = 6 * kinds[:, None] + rng.standard_normal((n, 4))
    cells = [[f"{value:.4f}" for value in row] for row in X]
    for row in cells[::20]:
        row[1] = ""
    return [
        f"r{i},{'xyz'[kind]},{','.join(row)}\n"
        for i, (kind, row) in enumerate(zip(kinds, cells, strict=True))
    ]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder, lines = tmp_path_factory.mktemp("folders"), rows()
    (folder / "whole.csv").write_text(HEADER + "".join(lines), "utf-8")
    (folder / "parts").mkdir()
    for number in range(3):
        part = lines[30 * number : 30 * (number + 1)]
        (folder / "parts" / f"{number}.csv").write_text(HEADER + "".join(part), "utf-8")
    return folder


@pytest.mark.parametrize("missing", ["drop", "mean", "em"])
def test_a_folder_is_mapped_as_the_one_file_it_came_from(here, missing):
    said = []
    for data in ("whole.csv", "parts"):
        out = f"{data}-{missing}"
        done = gnomon("map", data, "--missing", missing, "--threads", "1", "-o", out, folder=here)
        assert done.returncode == 0, done.stderr
        said.append(done.stderr.splitlines()[1:4])
    assert said[0] == said[1]  # features, label and id
    whole, parts = (
        pq.read_table(here / f"{data}-{missing}" / "map.parquet") for data in ("whole.csv", "parts")
    )
    assert parts.equals(whole)
    assert {"name", "kind"} <= set(parts.column_names)


@pytest.mark.parametrize("missing", ["drop", "mean", "em"])
def test_a_folder_larger_than_the_memory_keeps_ids_labels_and_gaps(here, monkeypatch, missing):
    """Read in blocks it has the rows, names and numbers of the folder that is held."""
    order = ("map", "parts", "--missing", missing, "--threads", "1", "-o")
    kept, out = f"held-{missing}", f"blocks-{missing}"
    assert gnomon(*order, kept, folder=here).returncode == 0
    held = pq.read_table(here / kept / "map.parquet")
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 0)
    monkeypatch.setattr("gnomon.data.open.HELD_SHARE", 1e-9)
    done = gnomon(*order, out, folder=here)
    assert done.returncode == 0, done.stderr
    assert "Blocks   read in 3 blocks; rows keep their order" in done.stderr
    found = pq.read_table(here / out / "map.parquet")
    assert found.column_names == held.column_names
    assert found.schema.field("name").type == held.schema.field("name").type
    for name in ("name", "kind"):
        assert found[name].equals(held[name])
    said = [json.loads((here / folder / "run.json").read_text("utf-8")) for folder in (out, kept)]
    assert said[0]["preparation"] == said[1]["preparation"]
    assert {**said[0]["table"], "notes": []} == {**said[1]["table"], "notes": [], "blocks": 3}
    for name in ("tsne1", "tsne2", "trust"):
        assert found[name].equals(held[name])
    # Components are float32 beside a map of blocks, and their sums in the order of the files.
    for name in (name for name in held.column_names if name.startswith("pc")):
        np.testing.assert_allclose(found[name].to_numpy(), held[name].to_numpy(), atol=1e-5)
    assert '"z"' in (here / out / "report.html").read_text("utf-8")


def test_a_gap_in_blocks_is_told_with_its_file_and_the_ways_out(here, monkeypatch):
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 0)
    monkeypatch.setattr("gnomon.data.open.HELD_SHARE", 1e-9)
    done = gnomon("map", "parts", "-o", "n", folder=here)
    where = '(first: row 0 (rows count from 0) of 0.csv, column "b")'
    assert refused(done, 3, "parts: 5 missing values", where, "--missing drop")


def test_options_about_columns_are_those_of_files(here):
    done = gnomon(
        "map",
        "parts",
        "--missing",
        "mean",
        "--label",
        "kind",
        "--id",
        "name",
        "--stability",
        "2",
        "--threads",
        "1",
        "-o",
        "s",
        folder=here,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((here / "s" / "run.json").read_text("utf-8"))
    assert (record["table"]["label"], record["table"]["id"]) == ("kind", "name")


def test_a_gap_is_told_with_its_file_and_line(here):
    done = gnomon("map", "parts", "-o", "n", folder=here)
    assert refused(done, 3, '(first: line 2 of 0.csv, column "b")', "--missing drop")


def test_new_rows_in_a_folder_keep_their_names(here):
    gnomon("map", "whole.csv", "--missing", "mean", "--threads", "1", "-o", "m", folder=here)
    done, one = (gnomon("place", data, "-m", "m", folder=here) for data in ("parts", "whole.csv"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == one.stdout


def test_wide_tables_in_folders_can_use_any_solver(tmp_path):
    """A table of 30 × 2,000 in three files has the gram solver, as the one file has."""
    from gnomon.data.read import read

    X = rng.standard_normal((30, 2000)).astype(np.float32)
    (tmp_path / "parts").mkdir()
    for number in range(3):
        np.save(tmp_path / "parts" / f"{number}.npy", X[10 * number : 10 * (number + 1)])
    assert np.array_equal(read(tmp_path / "parts").X, X)
    done = gnomon("reduce", "parts", "-k", "5", "-o", "r", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "PCA by gram" in done.stderr
