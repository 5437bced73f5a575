"""Rows keep the numbers that they have in the file, although rows before them were dropped."""

import base64
import json
import re
import shutil
import zlib

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import gnomon

GAPS = [0, 3, 7, 41, 60]
KEPT = [i for i in range(90) if i not in GAPS]


def write(path, *, ids=False, gaps=GAPS):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) + 6 * np.eye(3)[np.arange(90) % 3]
    lines = ["id,a,b,c" if ids else "a,b,c"]
    for i, row in enumerate(X):
        cells = [f"{x:.6f}" for x in row]
        if i in gaps:
            cells[1] = "NA"
        lines.append(",".join([f"p{i}"] * ids + cells))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rows")
    write(made / "t.csv")
    for out, *more in (
        ["first", "--missing", "drop"],
        ["second", "--missing", "drop", "--seed", "3", "--drop", "c"],
        ["filled", "--missing", "mean"],
    ):
        done = gnomon("map", "t.csv", "-o", out, *more, folder=made)
        assert done.returncode == 0, done.stderr
        (made / f"{out}.txt").write_text(done.stderr)
    return made


def test_map_and_scores_number_the_rows_that_are_left(folder):
    assert pq.read_table(folder / "first" / "map.parquet")["row"].to_pylist() == KEPT
    assert "row" not in pq.read_table(folder / "filled" / "map.parquet").column_names
    done = gnomon("reduce", "t.csv", "--missing", "drop", "-o", "less", folder=folder)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(folder / "less" / "scores.parquet")["row"].to_pylist() == KEPT


def test_rows_in_blocks_are_numbered_as_in_memory(folder):
    args = ("reduce", "t.csv", "--missing", "drop", "-o", "blocks", "--workers", "1")
    done = gnomon(*args, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "5 rows dropped (5.6 %): row 0" in done.stderr
    assert pq.read_table(folder / "blocks" / "scores.parquet")["row"].to_pylist() == KEPT


def test_dropped_rows_are_named(folder):
    said = (folder / "first.txt").read_text()
    named = "5 rows dropped (5.6 %): row 0 (line 2), row 3 (line 5), row 7 (line 9) and 2 more"
    assert f"Missing  {named} (run.json lists them)" in said
    record = json.loads((folder / "first" / "run.json").read_text())
    assert record["preparation"]["dropped_rows"] == GAPS
    assert named in (folder / "first" / "report.html").read_text().replace("\u00a0", " ")


def test_dropped_rows_are_named_by_their_ids(tmp_path):
    write(tmp_path / "t.csv", ids=True, gaps=[3])
    done = gnomon("map", "t.csv", "--missing", "drop", folder=tmp_path)
    assert "1 row dropped (1.1 %): p3 (row 3, line 5)\n" in done.stderr
    record = json.loads((tmp_path / "t_map" / "run.json").read_text())
    assert record["preparation"]["dropped_ids"] == ["p3"]


def assert_links_are_numbered(page):
    """Links go to rows of the page, and are called by their numbers in the file."""
    links = re.findall(r'#row-(\d+)"[^>]*>row (\d+)<', page)
    assert links
    assert all(KEPT[int(place)] == int(number) for place, number in links)


def test_page_says_how_rows_are_numbered_and_links_them_by_these_numbers(folder):
    page = (folder / "first" / "report.html").read_text()
    words = "row numbers count from 0 in the order of the table, dropped rows included"
    assert words in page
    assert_links_are_numbered(page)


def test_page_without_the_data_numbers_rows_as_the_run_did(folder):
    shutil.copytree(folder / "first", folder / "elsewhere" / "first")
    done = gnomon("report", "first", "-o", "again.html", folder=folder / "elsewhere")
    assert done.returncode == 0, done.stderr
    page = (folder / "elsewhere" / "again.html").read_text()
    packed = json.loads(re.search(r'"row_numbers": ?({[^}]*})', page)[1])
    octets = zlib.decompress(base64.b64decode(packed["data"]))
    assert packed["bytes"] == 1
    assert list(octets) == KEPT


def test_ids_that_are_called_row_are_no_row_numbers(tmp_path):
    write(tmp_path / "t.csv", ids=True)
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv").write_text(text.replace("id,", "row,", 1))
    done = gnomon("map", "t.csv", "--missing", "drop", "--id", "row", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "t_map" / "map.parquet")
    assert table["row"].to_pylist() == KEPT
    assert table["row (file)"].to_pylist() == [f"p{i}" for i in KEPT]
    (tmp_path / "t.csv").unlink()
    done = gnomon("report", "t_map", "-o", "again.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "again.html").read_text()
    packed = json.loads(re.search(r'"ids": ?({[^}]*}})', page)[1])["texts"]
    assert json.loads(zlib.decompress(base64.b64decode(packed["data"]))) == [f"p{i}" for i in KEPT]


def test_runs_of_one_table_are_joined_by_the_numbers_of_its_rows(folder):
    done = gnomon("compare", "first", "filled", "--json", "--permutations", "9", folder=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == len(KEPT)
    assert found["only_b"] == [str(i) for i in GAPS]
    both = gnomon("compare", "first", "second", "--json", "--permutations", "9", folder=folder)
    assert json.loads(both.stdout)["n"] == len(KEPT)


def test_runs_of_tables_with_other_numbers_of_rows_are_not_joined(folder, tmp_path):
    write(tmp_path / "t.csv", gaps=[5])
    lines = (tmp_path / "t.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join(lines[:80]) + "\n")
    assert gnomon("map", "t.csv", "--missing", "drop", folder=tmp_path).returncode == 0
    done = gnomon("compare", folder / "first", "t_map", folder=tmp_path)
    assert done.returncode == 3
    assert "first/map.parquet has 90 rows and the table of t_map/map.parquet 79" in done.stderr


def test_the_terminal_numbers_rows_among_another_group_as_the_file_does(folder):
    rng = np.random.default_rng(0)
    group = np.array(["ash", "birch"])[np.arange(80) % 2]
    X = rng.normal(size=(80, 3)) + 8 * (group == "ash")[:, None]
    group[60] = "birch" if group[60] == "ash" else "ash"  # one wrong label
    lines = [
        ",".join([f"{x:.5f}" for x in row] + [name]) for row, name in zip(X, group, strict=True)
    ]
    lines[5] = "NA," + lines[5].split(",", 1)[1]
    (folder / "trees.csv").write_text("\n".join(["a,b,c,tree", *lines]) + "\n")
    done = gnomon("map", "trees.csv", "--missing", "drop", folder=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"rows 60: columns among", done.stderr)
    done = gnomon("audit", "trees_map", "-o", "trees_audit", folder=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"rows 60: columns among", done.stderr)
