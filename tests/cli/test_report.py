"""`gnomon report` as a user runs it: the page of a former run, with its data and without."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import first_words, gnomon, refused
from report.pages import Page

from gnomon.errors import TooLargeError


def write_table(path, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + [5, -3, 2, 40]
    lines = ["name,group,length,width,depth,mass"]
    lines += [
        f"fish {i},{'ab'[i % 2]},{','.join(map(repr, map(float, row)))}" for i, row in enumerate(X)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_table(folder / "fish.csv")
    done = gnomon("map", "fish.csv", "--title", "Fish of May", "--seed", "3", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def page_of(path):
    return Page(path.read_text(encoding="utf-8"))


def sections(page):
    return [attributes["id"] for attributes in page.all("section")]


def test_gnomon_map_writes_the_page_of_its_table(mapped):
    page = page_of(mapped / "fish_map" / "report.html")
    assert sections(page) == [
        "map",
        "overview",
        "counting",
        "components",
        "reconstruction",
        "trust",
        "reproduce",
    ]
    assert "Fish of May" in page.words
    assert "fish.csv has 60 rows and 4 columns of numbers; points are coloured by group" in (
        page.words
    )
    assert "gnomon map fish.csv --seed 3" in page.words
    links = [a["href"] for a in page.all("a")]
    assert any(link.startswith("#row-") for link in links)


def test_gnomon_reduce_writes_a_page_without_a_map(mapped):
    done = gnomon("reduce", "fish.csv", "-k", "2", folder=mapped)
    assert done.returncode == 0, done.stderr
    page = page_of(mapped / "fish_reduced" / "report.html")
    assert "trust" not in sections(page)
    assert "gnomon reduce fish.csv -k 2" in page.words


def test_the_page_is_built_again_from_the_folder_and_the_data(mapped):
    first = (mapped / "fish_map" / "report.html").read_text(encoding="utf-8")
    done = gnomon("report", "fish_map", "--title", "Fish of May", "-o", "again.html", folder=mapped)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == ["Read", "Page"]
    again, before = page_of(mapped / "again.html"), Page(first)
    assert sections(again) == sections(before)
    rows = [a["href"] for a in before.all("a") if a["href"].startswith("#row-")]
    assert [a["href"] for a in again.all("a") if a["href"].startswith("#row-")] == rows


def test_a_map_of_a_sample_has_a_page_of_all_rows_and_says_so(mapped):
    done = gnomon(
        "map", "fish.csv", "--sample", "40", "--stability", "2", "-o", "some", folder=mapped
    )
    assert done.returncode == 0, done.stderr
    assert "Left out stability: the map is of a part of the rows" in done.stderr
    page = page_of(mapped / "some" / "report.html")
    assert "60 rows × 4 columns" in page.words
    said = "40 rows drawn at random are mapped, the other 20 placed among them"
    assert said in page.words
    assert "gnomon map fish.csv --sample 40" in page.words
    done = gnomon("report", "some", "--force", folder=mapped)
    assert done.returncode == 0, done.stderr
    again = page_of(mapped / "some" / "report.html")
    assert sections(again) == sections(page)
    assert said in again.words
    done = gnomon("report", "some", "--force", "--stability", "2", folder=mapped)
    assert refused(done, 2, "--stability is for maps of all rows")


def test_a_page_that_exists_is_kept_unless_forced(mapped):
    before = (mapped / "fish_map" / "report.html").read_bytes()
    done = gnomon("report", "fish_map", folder=mapped)
    assert refused(done, 2, "fish_map/report.html exists. Use --force")
    assert (mapped / "fish_map" / "report.html").read_bytes() == before
    done = gnomon("report", "fish_map", "-o", "page.pdf", folder=mapped)
    assert refused(done, 2, "-o must end in one of .html, .htm")


@pytest.fixture
def moved(mapped, tmp_path):
    """The folder of the run alone, somewhere else."""
    shutil.copytree(mapped / "fish_map", tmp_path / "fish_map")
    return tmp_path


def test_without_the_data_the_page_says_what_it_lacks(moved):
    done = gnomon("report", "fish_map", "--force", "--json", folder=moved)
    assert done.returncode == 0, done.stderr
    assert "Without  the data: fish.csv is not where it was; --data FILE adds it" in done.stderr
    assert json.loads(done.stdout)["data"] is None
    page = page_of(moved / "fish_map" / "report.html")
    assert "The page was built without the table" in page.words
    assert "rows with the largest reconstruction error are not known" in page.words
    assert "trust" in sections(page)  # the map keeps the table it was made from
    data = json.loads(page.raw["script"][0])
    assert (data["ids"]["name"], data["ids"]["texts"]["length"]) == ("name", 60)
    assert [label["name"] for label in data["labels"]] == ["group"]


def test_data_that_moved_are_given_by_hand(moved, mapped):
    shutil.copy(mapped / "fish.csv", moved / "elsewhere.csv")
    done = gnomon(
        "report", "fish_map", "--force", "--data", "elsewhere.csv", "--stability", "2", folder=moved
    )
    assert done.returncode == 0, done.stderr
    page = page_of(moved / "fish_map" / "report.html")
    assert "stability" in sections(page)
    assert "Rows with the largest reconstruction error" in page.words


def test_other_data_are_not_taken_for_the_runs_own(moved):
    write_table(moved / "other.csv", seed=1)
    done = gnomon("report", "fish_map", "--force", "--data", "other.csv", folder=moved)
    assert refused(done, 3, "other.csv holds other numbers than this run's")
    write_table(moved / "fish.csv", n=59)
    done = gnomon("report", "fish_map", "--force", folder=moved)
    assert done.returncode == 0, done.stderr
    assert "the data, which changed since: fish.csv has 59 rows for this run's 60" in done.stderr
    (moved / "fish.csv").write_text("length,kind\n1,x\n2,y\n3,z\n")
    done = gnomon("report", "fish_map", "--force", folder=moved)
    assert done.returncode == 0, done.stderr
    assert 'the data, which changed since: fish.csv has no column "group"' in done.stderr


def test_the_map_is_made_again_without_the_data(moved, mapped):
    done = gnomon("report", "fish_map", "--force", "--stability", "2", folder=moved)
    assert done.returncode == 0, done.stderr
    assert "Without  the data" in done.stderr
    page = page_of(moved / "fish_map" / "report.html")
    assert "stability" in sections(page)
    assert "gnomon map fish.csv --seed 3 --stability 2" in page.words


def test_a_run_without_a_map_is_not_made_again(mapped):
    done = gnomon("reduce", "fish.csv", "-k", "2", "-o", "r", folder=mapped)
    assert done.returncode == 0, done.stderr
    done = gnomon("report", "r", "--force", "--stability", "2", folder=mapped)
    assert refused(done, 2, "--stability is for maps of all rows, and this run has no such map")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / "run.json").write_text("{"), "run.json cannot be read"),
        (lambda f: (f / "run.json").write_text("[]"), "run.json is no record of a run"),
        (lambda f: (f / "map.parquet").unlink(), "There is neither map.parquet nor scores.parquet"),
        (
            lambda f: (f / "map.parquet").write_bytes((f.parent / "short.parquet").read_bytes()),
            "map.parquet is not of the same run as",
        ),
    ],
    ids=["half a record", "no record", "no table", "another table"],
)
def test_a_folder_that_is_not_whole_is_refused_in_a_sentence(moved, damage, says):
    pq.write_table(
        pq.read_table(moved / "fish_map" / "map.parquet").slice(0, 5), moved / "short.parquet"
    )
    damage(moved / "fish_map")
    assert refused(gnomon("report", "fish_map", "--force", folder=moved), 3, says)


def test_open_shows_the_page_and_budgets_hold(mapped, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    done = gnomon(
        "report", "fish_map", "-o", "small.html", "--open", "--page-budget", "320kB", folder=mapped
    )
    assert done.returncode == 0, done.stderr
    assert shown == [(mapped / "small.html").as_uri()]
    done = gnomon("report", "fish_map", "-o", "tiny.html", "--page-budget", "1kB", folder=mapped)
    assert refused(done, 2, "is less than 100kB")


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory):
    """A run over a folder, whose table is read in blocks."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "fish").mkdir()
    write_table(folder / "whole.csv")
    head, *rows = (folder / "whole.csv").read_text(encoding="utf-8").splitlines()
    for i in (0, 1):
        part = "\n".join([head, *rows[30 * i : 30 * i + 30]])
        (folder / "fish" / f"{i}.csv").write_text(part + "\n", encoding="utf-8")
    done = gnomon("map", "fish/", "-o", "m", "--threads", "1", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_page_of_a_folder_is_built_from_its_files_again(in_parts):
    done = gnomon("report", "m", "-o", "again.html", "--json", folder=in_parts)
    assert done.returncode == 0, done.stderr
    assert "Without" not in done.stderr
    assert json.loads(done.stdout)["data"] == "fish"
    first, again = page_of(in_parts / "m" / "report.html"), page_of(in_parts / "again.html")
    assert sections(again) == sections(first)
    assert "Rows with the largest reconstruction error" in again.words


@pytest.mark.parametrize("data", ["fish/", "whole.csv"])
def test_data_may_be_a_folder_or_a_file(in_parts, data):
    done = gnomon("report", "m", "-o", f"{data[:4]}.html", "--data", data, folder=in_parts)
    assert done.returncode == 0, done.stderr
    assert (
        "Rows with the largest reconstruction error" in page_of(in_parts / f"{data[:4]}.html").words
    )


def test_the_page_of_what_was_read_in_blocks_and_is_gone_has_its_stability(in_parts):
    record = json.loads((in_parts / "m" / "run.json").read_text(encoding="utf-8"))
    shutil.copytree(in_parts / "m", in_parts / "b")
    record["table"]["blocks"], record["settings"]["data"] = 2, "gone"
    (in_parts / "b" / "run.json").write_text(json.dumps(record), encoding="utf-8")
    done = gnomon("report", "b", "-o", "b.html", "--stability", "2", folder=in_parts)
    assert done.returncode == 0, done.stderr
    assert "Without  the data: fish was read in blocks, and pages of such tables" in done.stderr
    assert "stability" in sections(page_of(in_parts / "b.html"))


def test_a_file_that_was_read_in_blocks_and_is_too_large_now_is_left_out(in_parts, monkeypatch):
    done = gnomon("map", "whole.csv", "-o", "w", "--threads", "1", folder=in_parts)
    assert done.returncode == 0, done.stderr
    record = json.loads((in_parts / "w" / "run.json").read_text(encoding="utf-8"))
    record["table"]["blocks"] = 2  # as if it had been
    (in_parts / "w" / "run.json").write_text(json.dumps(record), encoding="utf-8")

    def full(*_, **__):
        raise TooLargeError("whole.csv: its table needs about 9 GB.")

    monkeypatch.setattr("gnomon.data.read.read_source", full)
    done = gnomon("report", "w", "-o", "large.html", folder=in_parts)
    assert done.returncode == 0, done.stderr
    assert "Without  the data: whole.csv was read in blocks" in done.stderr
    done = gnomon("report", "w", "-o", "no.html", "--data", "whole.csv", folder=in_parts)
    assert refused(done, 4, "needs about 9 GB")


def as_of_the_first_edition(path, keep=()):
    """Write a run's record as the first edition did, whose rules used the columns `keep` too."""
    told = json.loads(path.read_text(encoding="utf-8"))
    table = told["table"]
    table["columns"] = table.pop("features")
    table["left_out"] = [*table.pop("kept_for_colour"), *table.pop("ignored")]
    for name in ("features", "decimal"):
        del told["settings"][name]
    told["settings"]["keep"] = [name for name in told["settings"]["keep"] if name not in keep]
    path.write_text(json.dumps(told), encoding="utf-8")


def test_a_run_whose_columns_would_be_others_today_is_read_with_its_own(tmp_path):
    """The first edition used a year beside sixty genes, and two columns of vectors."""
    rng = np.random.default_rng(0)
    genes = {f"{'abcdefgh'[j // 8]}{'klmnopqr'[j % 8]}x": rng.normal(size=30) for j in range(60)}
    table = pa.table(
        {"year": 2000 + rng.integers(20, size=30), **genes, "kind": ["u", "v", "w"] * 10}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    done = gnomon("map", "t.parquet", "--keep", "year", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    as_of_the_first_edition(tmp_path / "t_map" / "run.json", keep=["year"])
    done = gnomon("report", "t_map", "-o", "again.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == ["Read", "Page"]
    page = page_of(tmp_path / "again.html")
    assert "t.parquet has 30 rows and 61 columns of numbers" in page.words
    assert "points are coloured by kind" in page.words


def test_a_run_of_two_columns_of_vectors_is_read_with_both(tmp_path):
    rng = np.random.default_rng(0)
    names = {"a": rng.normal(size=(30, 3)), "b": rng.normal(size=(30, 2))}
    pq.write_table(pa.table({name: list(X) for name, X in names.items()}), tmp_path / "t.parquet")
    done = gnomon("map", "t.parquet", "--features", "a", "--features", "b", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    as_of_the_first_edition(tmp_path / "t_map" / "run.json")
    done = gnomon("report", "t_map", "-o", "again.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == ["Read", "Page"]
