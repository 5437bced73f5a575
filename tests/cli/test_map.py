"""`gnomon map` as a user runs it: the installed command, in a process of its own."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gnomon import PCA, samples
from gnomon.cli.map import parse_components

COMMAND = Path(sys.executable).parent / "gnomon"
FILES = ["run.json", "scores.parquet", "scree.svg"]
COLOUR = re.compile(r"\x1b\[[0-9;]*[349][0-7]m")


def gnomon(*arguments, folder, **environment):
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
        cwd=folder, env={**plain, **environment}, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    """One run of `gnomon map iris -o results`, its folder and what it said."""
    folder = tmp_path_factory.mktemp("iris")
    return folder, gnomon("map", "iris", "-o", "results", folder=folder)


@pytest.fixture(scope="module")
def record(iris):
    text = (iris[0] / "results" / "run.json").read_text(encoding="utf-8")

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_ends_well_and_keeps_stdout_for_data(iris):
    _, done = iris
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_the_files_it_names_are_the_files_it_wrote(iris):
    folder, done = iris
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Wrote")]
    named = line.removeprefix("Wrote").strip().split(", ")
    assert sorted(named) == [f"results/{name}" for name in FILES]
    assert sorted(os.listdir(folder / "results")) == FILES
    assert os.listdir(folder) == ["results"]


def test_it_says_what_it_read_and_found_in_plain_aligned_lines(iris):
    _, done = iris
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["Read", "Scale", "PCA", "Exact", "Wrote"]
    assert all(line[9] != " " and line[8] == " " for line in lines)
    assert "iris: 150 rows × 4 columns" in lines[0]
    assert "2 of 4 components hold 97.8 % of the variance" in lines[2]
    assert "\x1b" not in done.stderr


def test_the_scores_are_those_of_pca(iris):
    folder, _ = iris
    table = pq.read_table(folder / "results" / "scores.parquet")
    sample = samples.load("iris")
    expected = PCA(0.95, random_state=0).fit_transform(sample.X)
    assert table.column_names == [sample.label_name, "pc1", "pc2"]
    assert table[sample.label_name].to_pylist() == sample.labels.tolist()
    scores = np.column_stack([table[name].to_numpy() for name in ("pc1", "pc2")])
    assert np.array_equal(scores, expected)


def test_the_record_holds_settings_versions_plan_and_certificate(record):
    assert record["settings"] == {"sample": "iris", "components": "0.95", "scale": "auto",
                                  "seed": 0}  # fmt: skip
    assert record["rows"] == 150
    assert record["columns"] == list(samples.load("iris").columns)
    assert record["versions"]["gnomon"] == version("gnomon")
    assert {"python", "numpy", "scipy"} < set(record["versions"])
    assert all(seconds >= 0 for seconds in record["seconds"].values())


def test_the_certificate_on_record_is_that_of_the_model(record):
    model = PCA(0.95, random_state=0).fit(samples.load("iris").X)
    assert record["pca"]["certificate"] == model.certificate_.to_dict()
    assert record["pca"]["plan"] == model.plan_.to_dict()
    assert record["pca"]["n_components"] == 2
    ratios = model.explained_variance_ratio_.tolist()
    assert record["pca"]["explained_variance_ratio"] == ratios


def test_the_chart_is_an_svg(iris):
    text = (iris[0] / "results" / "scree.svg").read_text(encoding="utf-8")
    assert "<svg" in text[:200]
    assert text.rstrip().endswith("</svg>")


def test_results_that_exist_are_not_overwritten(iris):
    folder, _ = iris
    before = snapshot(folder / "results")
    done = gnomon("map", "iris", "-o", "results", folder=folder)
    assert done.returncode == 2
    assert "results/scores.parquet exists. Use --force" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert snapshot(folder / "results") == before


def test_forced_they_are_overwritten_and_quiet_says_nothing(iris):
    folder, _ = iris
    before = snapshot(folder / "results")
    (folder / "results" / "scores.parquet").write_bytes(b"mine")
    done = gnomon("map", "iris", "-o", "results", "--force", "-q", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    after = snapshot(folder / "results")
    assert sorted(after) == FILES
    assert after["scores.parquet"] == before["scores.parquet"]


def test_an_unknown_sample_is_told_the_known_ones_and_nothing_is_written(tmp_path):
    done = gnomon("map", "penguins", folder=tmp_path)
    assert done.returncode == 2
    assert "'penguins' is not a bundled sample (digits, iris, wine" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("k", "says"),
    [
        ("9", "must be an integer from 1 to 4; got 9"),
        pytest.param("two", "a fraction or one of 'mle'", marks=pytest.mark.slow),
        pytest.param("1.5", "a fraction between 0 and 1; got 1.5", marks=pytest.mark.slow),
        pytest.param("0", "must be an integer from 1 to 4; got 0", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_number_of_components_is_told_the_range_and_nothing_is_written(tmp_path, k, says):
    done = gnomon("map", "iris", "-k", k, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["map"], "Missing argument 'SAMPLE'"),
        (["map", "iris", "--nosuch"], "No such option"),
        (["map", "iris", "--scale", "log"], "'log' is not one of 'auto', 'none', 'standard'"),
        (["nosuch"], "No such command"),
    ],
)
def test_wrong_usage_is_told_at_once(tmp_path, arguments, says):
    done = gnomon(*arguments, folder=tmp_path, COLUMNS="200")
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["map", "iris", "--force"], marks=pytest.mark.slow),
        ["--help"],
        ["map", "--help"],
    ],
    ids=" ".join,
)
def test_no_color_gives_plain_text_where_colours_are_shown(tmp_path, arguments):
    shown = gnomon(*arguments, folder=tmp_path, FORCE_COLOR="1")
    plain = gnomon(*arguments, folder=tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert COLOUR.search(shown.stderr + shown.stdout)
    assert "\x1b" not in plain.stderr + plain.stdout  # neither colours nor bold
    empty = gnomon(*arguments, folder=tmp_path, FORCE_COLOR="1", NO_COLOR="")  # as if it were unset
    assert COLOUR.search(empty.stderr + empty.stdout)


@pytest.mark.slow
def test_options_reach_the_model_and_the_folder_is_named_after_the_sample(tmp_path):
    done = gnomon("map", "wine", "-k", "3", "--scale", "standard", "--threads", "1", "--seed", "7",
                  folder=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["wine_map"]
    table = pq.read_table(tmp_path / "wine_map" / "scores.parquet")
    scores = np.column_stack([table[f"pc{i}"].to_numpy() for i in (1, 2, 3)])
    expected = PCA(3, standardize=True).fit_transform(samples.load("wine").X)
    assert np.array_equal(scores, expected)
    settings = json.loads((tmp_path / "wine_map" / "run.json").read_text())["settings"]
    assert settings == {"sample": "wine", "components": "3", "scale": "standard", "seed": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("0.95", 0.95), ("-1", -1), (".5", 0.5), ("mle", "mle"), ("a.b", "a.b")],
)
def test_components_are_read_as_a_number_a_fraction_or_a_rule(text, value):
    read = parse_components(text)
    assert read == value
    assert type(read) is type(value)
