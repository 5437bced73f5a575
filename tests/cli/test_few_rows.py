"""Commands on tables too small for what they would say."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import gnomon, refused

N = 12


def write(folder, name, X, ids, *, blocks):
    columns = {} if ids is None else {"cell": ids}
    columns |= {f"x{j}": X[:, j] for j in range(X.shape[1])}
    if not blocks:
        pc.write_csv(pa.table(columns), folder / f"{name}.csv")
        return f"{name}.csv"
    (folder / name).mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(X)), 2)):
        some = pa.table({key: np.asarray(values)[rows] for key, values in columns.items()})
        pq.write_table(some, folder / name / f"part{part}.parquet")
    return name


def order(folder, command, shared, d, *, blocks, by_id):
    """The arguments of a command on two unrelated tables that share so many rows."""
    rng = np.random.default_rng(0)
    n = N if by_id else shared
    A, B = rng.normal(size=(2, n, d)) + 0.5
    ids = np.arange(n) if by_id else None
    a = write(folder, "a", A, ids, blocks=blocks)
    b = write(folder, "b", B, ids if ids is None else ids + n - shared, blocks=blocks)
    join = ["--id", "cell"] if by_id else []
    if command == "compare":
        return ["compare", a, b, *join]
    return ["align", a, "--to", b, *join, "-o", "out.parquet"]


WAYS = pytest.mark.parametrize(
    ("command", "blocks", "by_id"),
    [
        (command, blocks, by_id)
        for command in ("align", "compare")
        for blocks in (False, True)
        for by_id in (False, True)
    ],
)


@WAYS
def test_two_shared_rows_are_refused_with_what_a_verdict_needs(tmp_path, command, blocks, by_id):
    asked = order(tmp_path, command, 2, 3, blocks=blocks, by_id=by_id)
    done = gnomon(*asked, folder=tmp_path)
    assert refused(done, 3, "2 shared rows are too few", "same shape", "5 rows or more")
    assert not (tmp_path / "out.parquet").exists()


@WAYS
def test_fewer_rows_than_dimensions_plus_two_are_warned_of(tmp_path, command, blocks, by_id):
    asked = order(tmp_path, command, 4, 3, blocks=blocks, by_id=by_id)
    done = gnomon(*asked, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (said,) = json.loads(done.stdout)["warnings"]
    assert said.startswith("4 shared rows in 3 dimensions are too few for a verdict")
    assert said.endswith("A verdict needs 5 rows or more: dimensions + 2.")
    assert f"Warning  {said}" in done.stderr


@WAYS
def test_rows_enough_are_not_warned_of(tmp_path, command, blocks, by_id):
    asked = order(tmp_path, command, 5, 3, blocks=blocks, by_id=by_id)
    done = gnomon(*asked, "--json", folder=tmp_path)
    assert json.loads(done.stdout)["warnings"] == [], done.stderr


def test_a_p_value_of_three_rows_says_what_it_cannot_be(tmp_path):
    done = gnomon(
        *order(tmp_path, "compare", 3, 1, blocks=False, by_id=True), "--json", folder=tmp_path
    )
    found = json.loads(done.stdout)
    assert found["n_permutations"] == 5
    assert found["p_value"] in {i / 6 for i in range(1, 7)}
    (said,) = found["warnings"]
    assert "3 rows have 6 orders, so the p-value cannot be below 0.17" in said
    assert "of 5 shuffles (all 6 orders)" in done.stderr


def few(folder, n, d=4, *, blocks=False):
    X = np.random.default_rng(1).normal(size=(n, d))
    return write(folder, "few", X, None, blocks=blocks)


SAID = "3 rows are too few to tell structure from chance"


@pytest.mark.parametrize("blocks", [False, True])
def test_a_map_of_three_rows_says_so_first_and_on_record(tmp_path, blocks):
    data = few(tmp_path, 3, blocks=blocks)
    done = gnomon("map", data, "-o", "m", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("Read ")
    assert "3 rows × 4 columns" in first
    assert "too few rows to tell structure from chance" in first
    found = json.loads(done.stdout)
    assert f"{SAID}; a map takes 16 rows or more." in found["warnings"]
    assert json.loads((tmp_path / "m" / "run.json").read_text())["warnings"] == found["warnings"]
    page = (tmp_path / "m" / "report.html").read_text()
    assert "has only 3\u00a0rows, too few to tell structure from chance" in page
    assert SAID not in page  # once


def test_a_map_of_three_rows_names_no_score_that_chance_would_have(tmp_path):
    done = gnomon("map", few(tmp_path, 3), "-o", "m", folder=tmp_path)
    (trust,) = [line for line in done.stderr.splitlines() if line.startswith("Trust")]
    assert "(by chance 0.50)" in trust
    assert "far distances" not in trust
    (pca,) = [line for line in done.stderr.splitlines() if line.startswith("PCA")]
    assert "2 of 2 components hold 100.0 %" in pca
    kept = pq.read_table(tmp_path / "m" / "map.parquet")["trust"].to_numpy()
    assert set(kept) <= {0.0, 1.0}  # of one neighbour


def test_components_of_three_rows_and_a_look_at_them_say_so_too(tmp_path):
    data = few(tmp_path, 3)
    done = gnomon("reduce", data, "-o", "r", "--json", folder=tmp_path)
    assert f"{SAID}." in json.loads(done.stdout)["warnings"]
    done = gnomon("inspect", data, folder=tmp_path)
    assert "too few rows to tell structure from chance" in done.stderr.splitlines()[0]
    placed = gnomon("map", "iris", "-o", "m", folder=tmp_path)
    assert "too few" not in placed.stderr


def test_three_new_rows_are_not_too_few_to_be_placed(tmp_path):
    data = few(tmp_path, 20)
    assert gnomon("map", data, "-o", "m", folder=tmp_path).returncode == 0
    lines = (tmp_path / data).read_text().splitlines()
    (tmp_path / "new.csv").write_text("\n".join(lines[:4]) + "\n")
    done = gnomon("place", "new.csv", "-m", "m", folder=tmp_path)
    assert done.returncode == 0
    assert "too few" not in done.stderr


def test_the_page_of_an_old_run_of_few_rows_counts_its_neighbours_again(tmp_path):
    """Its table says 1 for every row, of all others as neighbours; the page does not."""
    data = few(tmp_path, 7)
    assert gnomon("map", data, "-o", "m", folder=tmp_path).returncode == 0
    path = tmp_path / "m" / "map.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("trust")
    old = table.set_column(at, "trust", pa.array(np.zeros(7)))
    pq.write_table(old, path)
    assert gnomon("report", "m", "-o", "again.html", folder=tmp_path).returncode == 0
    page = (tmp_path / "again.html").read_text().replace("\u00a0", " ")
    assert "of each row&#39;s 3 nearest rows, where chance would keep 50 %" in page
    assert "keeps 0 %" not in page
