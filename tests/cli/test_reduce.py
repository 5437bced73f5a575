"""`gnomon reduce` as a user runs it: PCA of a file, into a folder or through a pipe."""

import io
import json
import os
import re

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import first_words, gnomon, refused, shell

from gnomon import PCA, load

FILES = ["model.gnomon", "report.html", "run.json", "scores.parquet", "scree.svg"]
COLUMNS = ["length", "width", "depth", "mass"]


def some_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + [5, -3, 2, 40]
    return X, np.array([f"row{i}" for i in range(n)]), np.where(rng.random(n) < 0.5, "a", "b")


def write_csv(path, X, names, groups):
    lines = [",".join(["name", "group", *COLUMNS])]
    for name, group, row in zip(names, groups, X, strict=True):
        lines.append(",".join([name, group, *(repr(float(x)) for x in row)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def reduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reduce")
    write_csv(folder / "fish.csv", *some_rows())
    return folder, gnomon("reduce", "fish.csv", "-k", "2", "--scale", "none", folder=folder)


def test_it_ends_well_and_writes_the_files_it_names(reduced):
    folder, done = reduced
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Wrote")]
    named = re.fullmatch(r"Wrote +fish_reduced/: (.*?)  +\d+\.\d s", line)[1].split(", ")
    assert sorted(named) == FILES
    assert sorted(os.listdir(folder / "fish_reduced")) == FILES
    assert first_words(done) == [
        "Read",
        "Features",
        "Label",
        "Id",
        "Scale",
        "PCA",
        "Exact",
        "Page",
        "Wrote",
        "Next",
    ]
    assert "fish.csv: 60 rows × 6 columns" in done.stderr
    assert "t-SNE" not in done.stderr


def test_the_scores_are_those_of_pca_under_the_rows_own_names(reduced):
    folder, _ = reduced
    X, names, groups = some_rows()
    table = pq.read_table(folder / "fish_reduced" / "scores.parquet")
    assert table.column_names == ["name", "group", "pc1", "pc2"]
    assert table["name"].to_pylist() == names.tolist()
    assert table["group"].to_pylist() == groups.tolist()
    scores = np.column_stack([table[name].to_numpy() for name in ("pc1", "pc2")])
    assert np.array_equal(scores, PCA(2, random_state=0).fit_transform(X))


def test_the_model_gives_the_same_scores_and_the_record_says_how(reduced):
    folder, _ = reduced
    X, _, _ = some_rows()
    run = load(folder / "fish_reduced" / "model.gnomon")
    expected = PCA(2, random_state=0).fit(X)
    assert run.tsne is None
    assert np.array_equal(run.pca.transform(X), expected.transform(X))
    record = json.loads((folder / "fish_reduced" / "run.json").read_text(encoding="utf-8"))
    assert record["settings"] == {
        "data": "fish.csv",
        "label": None,
        "id": None,
        "features": [],
        "keep": [],
        "drop": [],
        "na": [],
        "decimal": None,
        "sheet": None,
        "layer": None,
        "use_rep": None,
        "normalize": None,
        "missing": "error",
        "scale": "none",
        "components": "2",
        "seed": 0,
        "text": None,
        "image": None,
        "link": None,
    }
    assert record["pca"]["certificate"] == expected.certificate_.to_dict()
    assert record["table"]["features"] == COLUMNS
    assert "tsne" not in record
    assert list(record["seconds"]) == ["read", "prepare", "pca", "write", "page"]


def test_results_that_exist_are_kept_unless_forced(reduced):
    folder, _ = reduced
    before = (folder / "fish_reduced" / "model.gnomon").read_bytes()
    done = gnomon("reduce", "fish.csv", "-k", "3", folder=folder)
    assert refused(done, 2, "fish_reduced/", "exists. Use --force")
    assert (folder / "fish_reduced" / "model.gnomon").read_bytes() == before


def test_a_pipe_in_and_a_pipe_out(tmp_path):
    X, names, groups = some_rows()
    write_csv(tmp_path / "x.csv", X, names, groups)
    done = shell("cat x.csv | $GNOMON reduce - -k 2 --scale none > y.csv", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["x.csv", "y.csv"]
    table = pc.read_csv(tmp_path / "y.csv")
    assert table.column_names == ["name", "group", "pc1", "pc2"]
    scores = np.column_stack([table[name].to_numpy() for name in ("pc1", "pc2")])
    assert np.array_equal(scores, PCA(2, random_state=0).fit_transform(X))


def test_quiet_says_nothing_beside_the_data(tmp_path):
    done = gnomon("reduce", "-", "-k", "1", "-q", folder=tmp_path, stdin="a,b\n1,2\n3,5\n4,1\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert pc.read_csv(io.BytesIO(done.stdout.encode())).column_names == ["pc1"]


def test_standard_input_with_a_folder_keeps_the_model(tmp_path):
    done = gnomon(
        "reduce", "-", "-k", "1", "-o", "kept", folder=tmp_path, stdin="a,b\n1,2\n3,5\n4,1\n"
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(os.listdir(tmp_path / "kept")) == FILES


def test_a_reader_that_has_seen_enough_causes_no_words(tmp_path):
    write_csv(tmp_path / "x.csv", *some_rows(n=5_000))
    done = shell("$GNOMON reduce - -q < x.csv | head -1", tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith('"name","group","pc1"')


@pytest.mark.parametrize(
    ("text", "options", "code", "says"),
    [
        ("a,b\n1,2\n3,\n4,1\n", [], 3, ["1 missing value", "line 3", '"b"', "--missing drop"]),
        ("a,b\n1,2\n3,x\n4,1\n5,2\n", ["--keep", "b"], 3, ['column "b"', "line 3", "--na x"]),
        ("a,b\n1,2\n3,4\n4,1\n", ["--drop", "c"], 2, ['"c"']),
        ("a,b\n1,2\n3,4\n4,1\n", ["-k", "9"], 2, ["from 0 to 2; got 9"]),
        ("", [], 3, ["empty"]),
    ],
    ids=["gap", "text", "no such column", "too many components", "empty"],
)
def test_what_is_wrong_is_told_in_one_sentence_with_the_place_and_the_option(
    tmp_path, text, options, code, says
):
    (tmp_path / "bad.csv").write_text(text)
    done = gnomon("reduce", "bad.csv", *options, folder=tmp_path)
    assert refused(done, code, *says)
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_options_for_files_are_not_ignored_with_a_sample(tmp_path):
    done = gnomon("reduce", "wine", "--drop", "ash", folder=tmp_path)
    assert refused(done, 2, "--drop is for files")


def test_a_column_called_as_ours_are_is_kept_apart(tmp_path):
    X, names, groups = some_rows()
    write_csv(tmp_path / "t.csv", X, names, groups)
    text = (tmp_path / "t.csv").read_text().replace("name,group", "pc1,trust")
    (tmp_path / "t.csv").write_text(text)
    done = gnomon("reduce", "t.csv", "-k", "2", "--id", "pc1", "--label", "trust", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "t_reduced" / "scores.parquet")
    assert table.column_names == ["pc1 (file)", "trust (file)", "pc1", "pc2"]
    assert table["pc1 (file)"].to_pylist() == names.tolist()
