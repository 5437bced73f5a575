"""`gnomon place` as a user runs it: new rows on a map that was made before."""

import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import first_words, gnomon, refused

from gnomon import load
from gnomon.pipeline import placing

COLUMNS = ["height", "weight", "age"]
JUDGED = ["distance_ratio", "residual", "unusual", "why"]


def some_rows(n, seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + 8 * np.eye(3)[group]
    return X * [1, 30, 1] + [0, 100, 7], np.array(["x", "y", "z"])[group]


def as_table(X, groups, prefix="old"):
    named = {"id": [f"{prefix}{i}" for i in range(len(X))], "kind": groups}
    return pa.table(named | dict(zip(COLUMNS, X.T, strict=True)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A map of 150 rows, 20 new rows in another order of columns, the last of them far away."""
    folder = tmp_path_factory.mktemp("place")
    pc.write_csv(as_table(*some_rows(150, 0)), folder / "old.csv")
    X, groups = some_rows(20, 1)
    X[-1] = [500, -2000, 900]
    new = as_table(X, groups, "new").select(["age", "id", "weight", "kind", "height"])
    pc.write_csv(new, folder / "new.csv")
    done = gnomon("map", "old.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, X, groups


def table_of(done):
    assert done.returncode == 0, done.stderr
    return pc.read_csv(io.BytesIO(done.stdout.encode()))


def test_new_rows_get_places_and_how_unusual_they_are(made):
    folder, _, groups = made
    done = gnomon("place", "new.csv", "-m", "old_map", folder=folder)
    table = table_of(done)
    assert table.column_names == ["id", "kind", "tsne1", "tsne2", *JUDGED]
    assert table["id"].to_pylist() == [f"new{i}" for i in range(20)]
    assert table["kind"].to_pylist() == groups.tolist()
    unusual = table["unusual"].to_pylist()
    assert unusual[-1]
    assert sum(unusual) <= 3
    assert table["distance_ratio"].to_pylist()[-1] > 20
    assert first_words(done) == ["Read", "Features", "Label", "Id", "Placed"]
    assert "Placed   20 rows, 1 of them unusual" in done.stderr
    assert table["why"].to_pylist()[-1] == "near nothing"


def test_the_places_are_those_of_the_library(made):
    folder, X, _ = made
    table = table_of(gnomon("place", "new.csv", "-m", "old_map/model.gnomon", folder=folder))
    run = load(folder / "old_map")
    Z = (X - run.preparation.mean) / run.preparation.std
    assert run.preparation.scale == "standard"
    places = np.column_stack([table[name].to_numpy() for name in ("tsne1", "tsne2")])
    assert np.allclose(places, run.tsne._model().place(Z).positions, atol=1e-4)


def test_rows_of_the_map_are_placed_where_they_are(made):
    folder, _, _ = made
    table = table_of(gnomon("place", "old.csv", "-m", "old_map", folder=folder))
    there = pq.read_table(folder / "old_map" / "map.parquet")
    for name in ("tsne1", "tsne2"):
        assert np.allclose(table[name].to_numpy(), there[name].to_numpy(), atol=1e-4)


def test_a_row_gets_the_same_place_in_any_company(made):
    folder, _, _ = made
    lines = (folder / "new.csv").read_text().splitlines()
    whole = gnomon("place", "new.csv", "-m", "old_map", "-q", folder=folder)
    some = gnomon(
        "place",
        "-",
        "-m",
        "old_map",
        "-q",
        "--id",
        "id",
        "--label",
        "kind",
        folder=folder,
        stdin="\n".join([lines[0], *lines[5:8]]) + "\n",
    )
    assert (whole.stderr, some.stderr) == ("", "")
    assert some.stdout.splitlines()[1:] == whole.stdout.splitlines()[5:8]


def test_a_file_is_written_in_the_format_of_its_name(made):
    folder, _, _ = made
    arguments = ("place", "new.csv", "-m", "old_map", "-o", "placed.parquet")
    done = gnomon(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Wrote    placed.parquet" in done.stderr
    table = pq.read_table(folder / "placed.parquet")
    assert table["unusual"].type == pa.bool_()
    assert table.num_rows == 20
    assert refused(gnomon(*arguments, folder=folder), 2, "placed.parquet exists. Use --force")


def test_gaps_are_refused_or_treated_as_asked(made):
    folder, _, _ = made
    (folder / "gaps.csv").write_text("id,height,weight,age\na,1,110,8\nb,,120,9\nc,2,90,7\n")
    done = gnomon("place", "gaps.csv", "-m", "old_map", folder=folder)
    assert refused(done, 3, "1 missing value", "line 3", '"height"', "--missing drop")
    done = gnomon("place", "gaps.csv", "-m", "old_map", "--missing", "drop", folder=folder)
    assert table_of(done)["id"].to_pylist() == ["a", "c"]
    assert "1 row dropped" in done.stderr
    done = gnomon("place", "gaps.csv", "-m", "old_map", "--missing", "mean", folder=folder)
    assert table_of(done)["id"].to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["new.csv"], 2, ["Missing option '-m'", "gnomon place --help"]),
        (["nosuch.csv", "-m", "old_map"], 2, ["NEW 'nosuch.csv' is neither a file"]),
        (["lacking.csv", "-m", "old_map"], 3, ["lacks 1 of the 3 columns", '"age"']),
        (["text.csv", "-m", "old_map"], 3, ['column "age"', "line 3", '"old"', "--na old"]),
        (["new.csv", "-m", "reduced"], 2, ["reduced/model.gnomon holds no map", "gnomon map"]),
        (["new.csv", "-m", "old_map", "-o", "old_map"], 2, ["-o must end in one of"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told_in_one_sentence(made, arguments, code, says):
    folder, _, _ = made
    (folder / "lacking.csv").write_text("height,weight\n1,2\n3,4\n")
    (folder / "text.csv").write_text("height,weight,age\n1,2,3\n3,4,old\n5,6,7\n")
    if not (folder / "reduced").exists():
        gnomon("reduce", "old.csv", "-o", "reduced", folder=folder)
    before = sorted(os.listdir(folder))
    assert refused(gnomon("place", *arguments, folder=folder), code, *says)
    assert sorted(os.listdir(folder)) == before


def write_parts(folder, X, files=3):
    folder.mkdir()
    for i, part in enumerate(np.array_split(X, files)):
        columns = dict(zip(reversed(COLUMNS), part.T[::-1], strict=True))
        pq.write_table(pa.table(columns), folder / f"part{i}.parquet")


@pytest.mark.usefixtures("folders_in_blocks")
@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("where", [[], ["--workers", "1"]])
def test_a_folder_is_placed_in_blocks_where_its_rows_would_be_in_one_file(made, tmp_path, where):
    folder, X, _ = made
    write_parts(tmp_path / "new", X)
    done = gnomon(
        "place",
        "new",
        "-m",
        folder / "old_map",
        "-o",
        "p.parquet",
        *where,
        "--json",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    cluster = ["Cluster"] if where else []
    assert first_words(done) == [*cluster, "Read", "Features", "Blocks", "Placed", "Wrote"]
    told = json.loads(done.stdout)
    assert (told["rows"], told["dropped"], told["table"]["blocks"]) == (20, 0, 3)
    placed = pq.read_table(tmp_path / "p.parquet")
    assert placed.column_names == ["tsne1", "tsne2", *JUDGED]
    whole = gnomon("place", "new.csv", "-m", "old_map", "-o", tmp_path / "w.parquet", folder=folder)
    assert whole.returncode == 0, whole.stderr
    expected = pq.read_table(tmp_path / "w.parquet")
    for name in placed.column_names:
        assert placed[name].type == expected[name].type
        assert placed[name].to_pylist() == expected[name].to_pylist(), name


def test_arrays_without_names_have_the_models_columns_in_order(made, tmp_path):
    folder, X, _ = made
    (tmp_path / "new").mkdir()
    np.save(tmp_path / "new" / "a.npy", X)
    done = gnomon("place", "new", "-m", folder / "old_map", folder=tmp_path)
    whole = gnomon("place", "new/a.npy", "-m", folder / "old_map", folder=tmp_path)
    assert table_of(done).to_pydict() == table_of(whole).to_pydict()
    np.save(tmp_path / "new" / "a.npy", X[:, :2])
    done = gnomon("place", "new", "-m", folder / "old_map", folder=tmp_path)
    refused(done, 3, "lacks 3 of the 3 columns of the model")


@pytest.mark.usefixtures("folders_in_blocks")
def test_gaps_in_blocks_are_filled_in_as_in_one_file(made, tmp_path):
    folder, X, _ = made
    gaps = X.copy()
    gaps[3, 1] = np.nan
    write_parts(tmp_path / "new", gaps)
    pq.write_table(pa.table(dict(zip(COLUMNS, gaps.T, strict=True))), tmp_path / "new.parquet")
    order = ["-m", folder / "old_map"]
    done = gnomon("place", "new", *order, "--missing", "mean", folder=tmp_path)
    whole = gnomon("place", "new.parquet", *order, "--missing", "mean", folder=tmp_path)
    assert table_of(done).to_pydict() == table_of(whole).to_pydict()
    refused(
        gnomon("place", "new", *order, folder=tmp_path),
        3,
        "part0.parquet at row 3, column 'weight'",
        "or fill them in beforehand.",
    )
    done = gnomon("place", "new", *order, "--missing", "drop", folder=tmp_path)
    whole = gnomon("place", "new.parquet", *order, "--missing", "drop", folder=tmp_path)
    assert "Missing  1 row dropped: row 3\n" in done.stderr
    assert table_of(done).num_rows == len(X) - 1
    assert table_of(done).to_pydict() == table_of(whole).to_pydict()


def test_files_of_a_folder_must_have_the_models_columns(made, tmp_path):
    folder, X, _ = made
    (tmp_path / "new").mkdir()
    pq.write_table(pa.table({"height": X[:, 0], "b": X[:, 1]}), tmp_path / "new" / "a.parquet")
    done = gnomon("place", "new", "-m", folder / "old_map", folder=tmp_path)
    refused(done, 3, 'new lacks 2 of the 3 columns of the model: "weight", "age".')


@pytest.mark.usefixtures("folders_in_blocks")
def test_places_for_which_there_is_no_room_are_refused(made, tmp_path, monkeypatch):
    folder, X, _ = made
    write_parts(tmp_path / "new", X)
    monkeypatch.setattr(placing, "PLACE_BYTES", 1e9)
    done = gnomon("place", "new", "-m", folder / "old_map", "--memory", "2GB", folder=tmp_path)
    refused(done, 4, "the places of 20 rows")
