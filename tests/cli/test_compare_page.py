"""`gnomon compare --page`: files, folders of runs and models, by id or by row."""

import html
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet
import pytest
from commands import gnomon, refused
from procrustes.test_changes import drift
from report.pages import decoded_numbers, read_data

from gnomon import load


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Two tables with known movers, and maps of the first from a PCA and after noise."""
    folder = tmp_path_factory.mktemp("pages")
    X, Y, movers = drift(3, 12, 0.1, 0.05, n=150, groups=3)
    kind = [["ash", "birch"][i % 2] for i in range(150)]
    for name, Z in (("old.csv", X), ("new.csv", Y)):
        columns = {"id": [f"r{i}" for i in range(150)], "kind": kind}
        pc.write_csv(pa.table(columns | {f"v{j}": Z[:, j] for j in range(3)}), folder / name)
    for name in ("old", "new"):
        done = gnomon("map", f"{name}.csv", folder=folder)
        assert done.returncode == 0, done.stderr
    return folder, movers


def test_files_have_a_page_under_both_names_that_finds_the_movers(here):
    folder, movers = here
    order = ("compare", "old.csv", "new.csv", "--id", "id", "--permutations", "9")
    done = gnomon(*order, "--page", "--json", "--fail-if", "changed > 0.02", folder=folder)
    assert done.returncode == 5, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == ["old_and_new.html"]
    page = (folder / "old_and_new.html").read_text(encoding="utf-8")
    named = [row["id"] for row in found["changed_rows"]]
    assert {f"r{row}" for row in movers} == set(named)
    changed = decoded_numbers(read_data(page)["pair"]["changed"])
    assert [f"r{row}" for row in changed] == sorted(named, key=lambda r: int(r[1:]))
    assert read_data(page)["labels"][0]["name"] == "kind"
    assert "gnomon compare old.csv new.csv --id id" in page
    again = gnomon(*order, "--page", folder=folder)
    assert refused(again, 2, "old_and_new.html exists. Use --force")


def test_folders_of_runs_are_compared_by_their_maps_with_reruns(here):
    folder, _ = here
    done = gnomon(
        "compare",
        "old_map",
        "new_map",
        "--reruns",
        "1",
        "--permutations",
        "9",
        "-o",
        "runs.html",
        "--json",
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["files"], found["n"]) == (["runs.html"], 150)
    page = (folder / "runs.html").read_text(encoding="utf-8")
    assert "in its own data, old_map keeps" in page  # the second table is the first with noise
    assert "to see what changed in the data, compare the tables" in page
    assert "Reruns of old_map" in page


def test_maps_by_the_cosine_have_reruns_too(here):
    folder, _ = here
    done = gnomon("map", "old.csv", "--metric", "cosine", "-o", "angles", folder=folder)
    assert done.returncode == 0, done.stderr
    order = ("compare", "angles", "old_map", "--reruns", "1", "--permutations", "9")
    done = gnomon(*order, "-o", "angles.html", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Reruns of angles" in (folder / "angles.html").read_text(encoding="utf-8")


def test_maps_of_the_same_data_are_ranked_by_the_neighbours_that_they_keep(here):
    folder, _ = here
    made = gnomon("map", "old.csv", "-o", "again_map", "--seed", "7", folder=folder)
    assert made.returncode == 0, made.stderr
    done = gnomon("compare", "old_map", "again_map", "--permutations", "9", "-o", "same.html",
                  folder=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (folder / "same.html").read_text(encoding="utf-8")
    assert "nearest rows in the data, old_map keeps" in page
    assert "the one that keeps more is the better map" in page


def test_models_stand_for_their_run_or_for_their_map_by_row(here, tmp_path):
    folder, _ = here
    beside = gnomon(
        "compare", "old_map/model.gnomon", "new_map", "--json", "--permutations", "9", folder=folder
    )
    assert beside.returncode == 0, beside.stderr
    assert json.loads(beside.stdout)["id"] == "id"
    for name in ("old", "new"):
        shutil.copy(folder / f"{name}_map" / "model.gnomon", tmp_path / f"{name}.gnomon")
    alone = gnomon(
        "compare", "old.gnomon", "new.gnomon", "--json", "--permutations", "9", folder=tmp_path
    )
    assert alone.returncode == 0, alone.stderr
    found, there = json.loads(alone.stdout), json.loads(beside.stdout)
    assert found["id"] is None
    assert found["disparity"] == pytest.approx(there["disparity"])
    assert np.shape(load(tmp_path / "old.gnomon").tsne.embedding_) == (150, 2)


def test_a_page_goes_beside_the_numbers(here):
    folder, _ = here
    done = gnomon(
        "compare",
        "old.csv",
        "new.csv",
        "--id",
        "id",
        "--permutations",
        "9",
        "--page",
        "-o",
        "c.json",
        "--json",
        folder=folder,
    )
    assert json.loads(done.stdout)["files"] == ["c.json", "c.html"]
    assert (folder / "c.html").exists()


@pytest.mark.usefixtures("folders_in_blocks")
def test_a_folder_in_blocks_has_a_page_of_the_rows_that_were_drawn(here, tmp_path):
    folder, _ = here
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        table = pc.read_csv(folder / f"{name}.csv").select(["kind", "v0", "v1"])
        pa.parquet.write_table(table, tmp_path / name / "part.parquet")
    done = gnomon("compare", "old", "new", "--permutations", "9", "--page", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "old_and_new.html").read_text(encoding="utf-8")
    assert read_data(page)["rows"] == 150
    assert "Blocks" in done.stderr
    assert read_data(page)["labels"][0]["name"] == "kind"


@pytest.mark.parametrize(
    ("order", "code", "says"),
    [
        (["old.csv", "new.csv", "--page", "--reruns", "2"], 2, "--reruns needs a folder"),
        (["old.csv", "new.csv", "--reruns", "2"], 2, "--reruns is for the page: add --page"),
        (["old.csv", "new.csv", "-o", "no/page.html"], 2, "There is no folder 'no'"),
    ],
)
def test_what_cannot_be_done_is_refused(here, order, code, says):
    done = gnomon("compare", *order, "--id", "id", "--permutations", "9", "--force", folder=here[0])
    assert refused(done, code, says)


def test_names_on_the_page_are_those_given_and_its_python_runs(here, monkeypatch, capsys):
    folder, _ = here
    monkeypatch.chdir(folder)
    order = ("compare", "old.csv", "new.csv", "--id", "id", "--metric", "cosine", "-q")
    done = gnomon(*order, "-o", "named.html", "--names", "GloVe", "word2vec", folder=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "named.html").read_text(encoding="utf-8")
    assert [each["name"] for each in read_data(page)["maps"]] == ["GloVe", "word2vec"]
    code = html.unescape(re.search(r"<code>(import gnomon.*?)</code>", page, re.DOTALL)[1])
    exec(code, {})
    assert "cosine" in capsys.readouterr().out
    again = (folder / "comparison.html").read_text(encoding="utf-8")
    assert read_data(again)["pair"] == read_data(page)["pair"]


def test_no_python_is_shown_for_options_that_it_does_not_have(here):
    folder, _ = here
    order = ("compare", "old.csv", "new.csv", "--id", "id", "--missing", "drop")
    assert gnomon(*order, "-o", "drop.html", folder=folder).returncode == 0
    page = (folder / "drop.html").read_text(encoding="utf-8")
    assert "--missing drop" in page
    assert "gnomon.compare(" not in page
