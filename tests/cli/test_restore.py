"""`gnomon restore` as a user runs it: components back to the columns and units of the file."""

import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import gnomon, refused

from gnomon import PCA, samples, save

WINE = samples.load("wine")
FULL = len(WINE.columns)


def values(table):
    return np.column_stack([table[name].to_numpy() for name in WINE.columns])


def text_of(table):
    return pc.read_csv(io.BytesIO(table.encode()))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Wine with all its components and with three, standardised and not."""
    folder = tmp_path_factory.mktemp("restore")
    for name, k, scale in (("all", FULL, "standard"), ("three", 3, "none")):
        done = gnomon("reduce", "wine", "-k", k, "--scale", scale, "-o", name, folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_all_components_give_the_data_back_to_rounding(runs):
    done = gnomon("restore", "all/scores.parquet", "-m", "all", folder=runs)
    assert done.returncode == 0, done.stderr
    table = text_of(done.stdout)
    assert table.column_names == [WINE.label_name, *WINE.columns]
    assert table[WINE.label_name].to_pylist() == WINE.labels.tolist()
    assert np.allclose(values(table), WINE.X, rtol=1e-12, atol=1e-12 * np.abs(WINE.X).max())
    assert "13 columns from 13 components" in done.stderr


def test_fewer_lose_exactly_the_variance_that_the_record_states(runs):
    done = gnomon(
        "restore",
        "three/scores.parquet",
        "-m",
        "three/model.gnomon",
        "-o",
        "back.parquet",
        folder=runs,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lost = np.square(values(pq.read_table(runs / "back.parquet")) - WINE.X).sum()
    total = np.square(WINE.X - WINE.X.mean(axis=0)).sum()
    record = json.loads((runs / "three" / "run.json").read_text(encoding="utf-8"))
    share = sum(record["pca"]["explained_variance_ratio"])
    assert 1e-6 < lost / total < 1e-3
    assert np.isclose(lost / total, 1 - share, rtol=1e-8)


def test_a_pipe_of_csv_gives_the_same_numbers(runs):
    by_file = gnomon("restore", "three/scores.parquet", "-m", "three", "-q", folder=runs)
    table = pq.read_table(runs / "three" / "scores.parquet")
    text = io.BytesIO()
    pc.write_csv(table.select(["pc3", "pc1", WINE.label_name, "pc2"]), text)  # in any order
    by_pipe = gnomon(
        "restore", "-", "-m", "three", "-q", folder=runs, stdin=text.getvalue().decode()
    )
    assert (by_file.stderr, by_pipe.stderr) == ("", "")
    assert by_pipe.stdout == by_file.stdout


def test_an_array_holds_the_numbers_only(runs):
    done = gnomon("restore", "all/scores.parquet", "-m", "all", "-o", "back.npy", folder=runs)
    assert done.returncode == 0, done.stderr
    assert np.allclose(np.load(runs / "back.npy"), WINE.X, rtol=1e-12, atol=1e-9)
    assert f"{WINE.label_name} (text; .npy holds numbers only)" in done.stderr


def test_a_file_that_exists_is_kept_unless_forced(runs):
    (runs / "mine.csv").write_text("mine")
    arguments = ("restore", "three/scores.parquet", "-m", "three", "-o", "mine.csv")
    assert refused(gnomon(*arguments, folder=runs), 2, "mine.csv exists. Use --force")
    assert (runs / "mine.csv").read_text() == "mine"
    done = gnomon(*arguments, "--force", "-q", folder=runs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pc.read_csv(runs / "mine.csv").num_rows == len(WINE.X)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["three/scores.parquet"], 2, ["Missing option '-m'", "gnomon restore --help"]),
        (["three/scores.parquet", "-m", "nowhere"], 2, ["no file 'nowhere'", "gnomon reduce"]),
        (["three/scores.parquet", "-m", "."], 2, ["no model.gnomon in '.'"]),
        (["three/scores.parquet", "-m", "all"], 3, ["lacks 10 of the 13 columns", '"pc4"']),
        (["three/scores.parquet", "-m", "three/run.json"], 3, ["is not a Gnomon model file"]),
        (["three/scores.parquet", "-m", "alone.gnomon"], 3, ["a PCA alone", "gnomon reduce"]),
        (["nosuch.csv", "-m", "three"], 2, ["There is no file", "nosuch.csv"]),
        (["gap.csv", "-m", "three"], 3, ["1 missing value (first: line 3", '"pc2"']),
        (["three/scores.parquet", "-m", "three", "-o", "x.xlsx"], 2, ["must end in one of .csv"]),
        (["three/scores.parquet", "-m", "three", "-o", "no/x.csv"], 2, ["no folder 'no'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told_in_one_sentence(runs, arguments, code, says):
    (runs / "gap.csv").write_text("pc1,pc2,pc3\n1,2,3\n1,,3\n4,5,6\n")
    if not (runs / "alone.gnomon").exists():
        save(PCA(2).fit(WINE.X), runs / "alone.gnomon")
    before = sorted(os.listdir(runs))
    assert refused(gnomon("restore", *arguments, folder=runs), code, *says)
    assert sorted(os.listdir(runs)) == before


def test_cells_that_would_be_formulas_are_not_written(tmp_path):
    table = pa.table(
        {"id": ["=1+1", "@b", "c", "d"], "x": [1.0, 2.0, 4.0, 3.5], "y": [2.5, 1.5, 3.0, 7.25]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    assert gnomon("reduce", "t.parquet", "-k", "2", folder=tmp_path).returncode == 0
    done = gnomon("restore", "t_reduced/scores.parquet", "-m", "t_reduced", "-q", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert rows[0] == '"id","x","y"'
    assert rows[1].startswith('"\'=1+1"')
    assert rows[3].startswith('"c"')


def test_the_few_components_of_a_map_point_to_reduce(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 14))
    np.save(tmp_path / "t.npy", X)
    done = gnomon("map", "t.npy", "-k", "12", "--perplexity", "5", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = gnomon("restore", "t_map/map.parquet", "-m", "t_map", folder=tmp_path)
    says = ["lacks 2 of the 12 columns", '"pc11", "pc12"', "gnomon reduce writes all"]
    assert refused(done, 3, *says)


def test_what_would_not_fit_when_restored_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 40))
    np.save(tmp_path / "t.npy", X)
    assert gnomon("reduce", "t.npy", "-k", "1", folder=tmp_path).returncode == 0
    order = ("restore", "t_reduced/scores.parquet", "-m", "t_reduced", "--memory", "300.1MB")
    done = gnomon(*order, folder=tmp_path)
    assert refused(done, 4, "restoring 500 × 40 numbers needs about 320 kB of memory")


@pytest.mark.usefixtures("folders_in_blocks")
@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("where", [[], ["--workers", "1"]])
def test_a_folder_of_components_is_restored_block_by_block(runs, tmp_path, where):
    scores = pq.read_table(runs / "all" / "scores.parquet")
    (tmp_path / "scores").mkdir()
    for i, start in enumerate(range(0, len(scores), 50)):
        pq.write_table(scores.slice(start, 50), tmp_path / "scores" / f"part{i}.parquet")
    done = gnomon(
        "restore",
        "scores",
        "-m",
        runs / "all",
        "-o",
        "back.parquet",
        *where,
        "--json",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    named = [WINE.label_name, *WINE.columns]
    assert (told["rows"], told["columns"]) == (len(scores), named)
    back = pq.read_table(tmp_path / "back.parquet")
    assert back.column_names == named
    assert back[WINE.label_name].equals(scores[WINE.label_name])
    whole = gnomon(
        "restore", "all/scores.parquet", "-m", "all", "-o", tmp_path / "whole.parquet", folder=runs
    )
    assert whole.returncode == 0, whole.stderr
    np.testing.assert_allclose(
        values(back), values(pq.read_table(tmp_path / "whole.parquet")), rtol=1e-13
    )
    assert "13 columns from 13 components" in done.stderr


@pytest.mark.usefixtures("folders_in_blocks")
def test_what_cannot_be_restored_in_blocks_is_refused_with_its_place(runs, tmp_path):
    scores = pq.read_table(runs / "all" / "scores.parquet")
    (tmp_path / "scores").mkdir()
    file = tmp_path / "scores" / "a.parquet"
    pq.write_table(scores, file)
    order = ["restore", "scores", "-m", runs / "all"]
    refused(gnomon(*order, folder=tmp_path), 2, "ends in .npy or .parquet; got none")
    refused(gnomon(*order, "-o", "x.csv", folder=tmp_path), 2, "ends in .npy or .parquet")
    changed = scores.to_pydict()
    changed["pc2"][7] = None
    pq.write_table(pa.table(changed), file)
    done = gnomon(*order, "-o", "x.parquet", folder=tmp_path)
    refused(done, 3, "a.parquet at row 7, column 'pc2'")
    pq.write_table(scores.drop_columns(["pc13"]), file)
    refused(gnomon(*order, "-o", "x.parquet", folder=tmp_path), 3, "lacks 1 of the 13 columns")
    assert os.listdir(tmp_path) == ["scores"]
