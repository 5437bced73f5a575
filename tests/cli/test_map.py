"""`gnomon map` as a user runs it: the installed command, in a process of its own."""

import json
import os
import pty
import re
import signal
from contextlib import suppress
from importlib.metadata import version

import numpy as np
import pyarrow.parquet as pq
import pytest
from children import Child
from commands import environment, first_words, gnomon, refused

from gnomon import PCA, load, samples
from gnomon.cli.options import parse_components

FILES = ["map.parquet", "map.svg", "model.gnomon", "report.html", "run.json", "scree.svg"]
COLOUR = re.compile(r"\x1b\[[0-9;]*[349][0-7]m")
SETTINGS = {
    "data": "iris",
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
    "scale": "auto",
    "components": "0.95",
    "perplexity": None,
    "metric": "euclidean",
    "dimensions": 2,
    "sample": None,
    "seed": 0,
    "stability": None,
    "vary": "rows",
    "text": None,
    "image": None,
    "link": None,
    "replay": False,
}


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
    named = re.fullmatch(r"Wrote +results/: (.*?)  +\d+\.\d s", line)[1].split(", ")
    assert sorted(named) == FILES
    assert sorted(os.listdir(folder / "results")) == FILES
    assert os.listdir(folder) == ["results"]


def test_it_says_what_it_read_and_found_in_plain_aligned_lines(iris):
    _, done = iris
    lines = done.stderr.splitlines()
    assert first_words(done) == [
        "Read",
        "Features",
        "Label",
        "Scale",
        "PCA",
        "Exact",
        "t-SNE",
        "Trust",
        "",
        "Among",
        "",
        "Page",
        "Wrote",
        "Next",
    ]
    assert all(line[9] != " " and line[8] == " " for line in lines)
    assert "iris: 150 rows × 5 columns" in lines[0]
    assert "4 numeric columns (sepal length (cm), sepal width (cm), petal" in lines[1]
    assert lines[2] == "Label    species"
    assert "2 of 4 components hold 97.8 % of the variance" in lines[4]
    assert "perplexity 30" in lines[6]
    assert re.search(r"neighbours kept 0\.\d\d · far distances 0\.\d\d", lines[7])
    assert re.search(r"Close pairs: good, .* \(trustworthiness 0\.9\d\); far distances: ", lines[8])
    assert "lie among another species than their own: " in lines[9]
    assert lines[13] == "Next     gnomon place new.csv -m results"
    assert "\x1b" not in done.stderr


def test_the_map_holds_labels_places_components_and_trust(iris):
    folder, done = iris
    table = pq.read_table(folder / "results" / "map.parquet")
    sample = samples.load("iris")
    columns = [sample.label_name, "tsne1", "tsne2", "pc1", "pc2", "trust", "among", "among_in_data"]
    assert table.column_names == columns
    assert table[sample.label_name].to_pylist() == sample.labels.tolist()
    components = np.column_stack([table[name].to_numpy() for name in ("pc1", "pc2")])
    assert np.array_equal(components, PCA(0.95, random_state=0).fit_transform(sample.X))
    trust = table["trust"].to_numpy()
    assert ((trust >= 0) & (trust <= 1)).all()
    assert f"neighbours kept {trust.mean():.2f}" in done.stderr


def test_the_model_is_the_map_that_was_written(iris):
    folder, _ = iris
    table = pq.read_table(folder / "results" / "map.parquet")
    run = load(folder / "results" / "model.gnomon")
    places = np.column_stack([table[name].to_numpy() for name in ("tsne1", "tsne2")])
    assert np.array_equal(run.tsne.embedding_, places)
    assert run.preparation.columns == samples.load("iris").columns


def test_the_record_holds_settings_versions_table_and_trust(record):
    assert record["settings"] == SETTINGS
    assert record["table"] == {
        "name": "iris",
        "rows": 150,
        "n_columns": 5,
        "features": list(samples.load("iris").columns),
        "label": "species",
        "id": None,
        "kept_for_colour": [],
        "ignored": [],
        "notes": [],
    }
    assert record["versions"]["gnomon"] == version("gnomon")
    assert {"python", "numpy", "scipy"} < set(record["versions"])
    stages = ["read", "prepare", "pca", "tsne", "trust", "write", "page"]
    assert list(record["seconds"]) == stages
    assert all(seconds > 0 for seconds in record["seconds"].values())
    assert record["tsne"]["certificate"]["n_iter"] > 0
    assert record["trust"] is not None


def test_the_certificate_on_record_is_that_of_the_model(record):
    model = PCA(0.95, random_state=0).fit(samples.load("iris").X)
    assert record["pca"]["certificate"] == model.certificate_.to_dict()
    assert record["pca"]["plan"] == model.plan_.to_dict()
    assert record["pca"]["n_components"] == 2
    ratios = model.explained_variance_ratio_.tolist()
    assert record["pca"]["explained_variance_ratio"] == ratios


@pytest.mark.parametrize("name", ["scree.svg", "map.svg"])
def test_the_charts_are_svg(iris, name):
    text = (iris[0] / "results" / name).read_text(encoding="utf-8")
    assert "<svg" in text[:200]
    assert text.rstrip().endswith("</svg>")


def test_results_that_exist_are_not_overwritten(iris):
    folder, _ = iris
    before = snapshot(folder / "results")
    done = gnomon("map", "iris", "-o", "results", folder=folder)
    assert refused(done, 2, "results/report.html exists. Use --force")
    assert snapshot(folder / "results") == before


def test_forced_they_are_overwritten_and_quiet_says_nothing(iris):
    folder, _ = iris
    before = snapshot(folder / "results")
    (folder / "results" / "map.parquet").write_bytes(b"mine")
    done = gnomon("map", "iris", "-o", "results", "--force", "-q", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    after = snapshot(folder / "results")
    assert sorted(after) == FILES
    assert after["map.parquet"] == before["map.parquet"]


def test_an_unknown_name_is_told_the_known_ones_and_nothing_is_written(tmp_path):
    done = gnomon("map", "penguins", folder=tmp_path)
    assert refused(done, 2, "'penguins' is neither a file nor a bundled sample (digits, iris, wine")
    assert os.listdir(tmp_path) == []


def test_a_file_is_read_and_what_is_left_out_is_said(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["name;island;note;length;mass"]
    for i in range(40):
        a, b = rng.normal(5 * (i % 2), 1, 2)
        lines.append(f"p{i};{'AB'[i % 2]};{'xyz'[i % 3]};{a:.4f};{'' if i == 7 else f'{b:.4f}'}")
    (tmp_path / "pen guins.csv").write_text("\n".join(lines).replace(".", ",") + "\n")
    done = gnomon("map", "pen guins.csv", "--missing", "drop", "--label", "island", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "pen guins.csv: 40 rows × 5 columns" in done.stderr
    assert first_words(done)[:6] == ["Read", "Features", "Label", "Id", "Colour", "Note"]
    assert (
        "Features 2 numeric columns (length, mass)\nLabel    island\nId       name\n"
        "Colour   kept for colour: note (text)\n"
    ) in done.stderr
    assert "decimals are written with a comma" in done.stderr
    assert "Missing  1 row dropped (2.5 %)" in done.stderr
    assert "Next     gnomon place new.csv -m 'pen guins_map'" in done.stderr
    table = pq.read_table(tmp_path / "pen guins_map" / "map.parquet")
    assert table.column_names[:4] == ["name", "island", "row", "tsne1"]
    assert table["name"].to_pylist() == [f"p{i}" for i in range(40) if i != 7]


@pytest.mark.parametrize(
    ("moment", "whole"), [(r"[1-9]\d*/220", False), ("perplexity 30", True)], ids=["map", "trust"]
)
def test_an_interrupted_run_writes_the_map_so_far(tmp_path, moment, whole):
    rng = np.random.default_rng(0)
    np.savetxt(
        tmp_path / "wide.csv",
        rng.normal(size=(6_000, 20)),
        delimiter=",",
        fmt="%.5f",
        header=",".join(f"c{j}" for j in range(20)),
        comments="",
    )
    terminal, its_end = pty.openpty()  # on a terminal there is a bar, which says when to strike
    with (tmp_path.parent / "stdout").open("w") as stdout:
        process = Child(
            ["gnomon", "map", "wide.csv", "--threads", "1"],
            environment(TERM="xterm", COLUMNS="100"),
            folder=tmp_path,
            streams=(0, stdout.fileno(), its_end),
        )
    os.close(its_end)
    words, struck = "", False
    with suppress(OSError):  # the terminal is gone when its process is
        while piece := os.read(terminal, 4096).decode("utf-8", "replace"):
            words += piece
            if not struck and re.search(moment, words):
                process.send_signal(signal.SIGINT)
                struck = True
    os.close(terminal)
    assert process.wait(60) == 130, words
    assert struck
    assert (tmp_path.parent / "stdout").read_text() == ""
    assert ("(interrupted" in words) != whole
    assert "Traceback" not in words
    assert sorted(os.listdir(tmp_path / "wide_map")) == FILES
    table = pq.read_table(tmp_path / "wide_map" / "map.parquet")
    assert table.num_rows == 6_000
    assert "trust" not in table.column_names
    assert np.isfinite(table["tsne1"].to_numpy()).all()
    record = json.loads((tmp_path / "wide_map" / "run.json").read_text(encoding="utf-8"))
    assert record["trust"] is None
    n_iter = record["tsne"]["certificate"]["n_iter"]
    assert n_iter > 180 if whole else 0 < n_iter < 180


@pytest.mark.parametrize(
    ("k", "says"),
    [
        ("9", "must be an integer from 0 to 4; got 9"),
        ("two", "a fraction or one of 'mle'"),
        ("1.5", "a fraction between 0 and 1; got 1.5"),
        ("0", "-k 0 keeps no component"),
    ],
)
def test_a_wrong_number_of_components_is_told_the_range_and_nothing_is_written(tmp_path, k, says):
    done = gnomon("map", "iris", "-k", k, folder=tmp_path)
    assert refused(done, 2, says)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["map"], "Missing argument 'DATA'"),
        (["map", "iris", "--nosuch"], "No such option"),
        (["map", "iris", "--scale", "log"], "'log' is not one of 'auto', 'none', 'standard'"),
        (["nosuch"], "No such command"),
    ],
)
def test_wrong_usage_is_told_at_once(tmp_path, arguments, says):
    assert refused(gnomon(*arguments, folder=tmp_path), 2, says)


@pytest.mark.parametrize(
    "arguments",
    [
        ["map", "iris", "--force"],
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


def test_options_reach_the_model_and_the_folder_is_named_after_the_sample(tmp_path):
    done = gnomon(
        "map",
        "wine",
        "-k",
        "3",
        "--scale",
        "standard",
        "--threads",
        "1",
        "--seed",
        "7",
        "--dimensions",
        "1",
        "--perplexity",
        "12",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["wine_map"]
    table = pq.read_table(tmp_path / "wine_map" / "map.parquet")
    scores = np.column_stack([table[f"pc{i}"].to_numpy() for i in (1, 2, 3)])
    X = samples.load("wine").X
    expected = PCA(3).fit_transform((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))
    assert np.allclose(scores, expected, atol=1e-9)
    assert [name for name in table.column_names if name.startswith("tsne")] == ["tsne1"]
    settings = json.loads((tmp_path / "wine_map" / "run.json").read_text())["settings"]
    changed = {
        "data": "wine",
        "components": "3",
        "scale": "standard",
        "seed": 7,
        "dimensions": 1,
        "perplexity": 12.0,
    }
    assert settings == SETTINGS | changed


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("0.95", 0.95), ("-1", -1), (".5", 0.5), ("mle", "mle"), ("a.b", "a.b")],
)
def test_components_are_read_as_a_number_a_fraction_or_a_rule(text, value):
    read = parse_components(text)
    assert read == value
    assert type(read) is type(value)


def test_the_metric_of_a_map_is_that_of_its_neighbours_and_scores(tmp_path):
    """Rows that differ by their length alone are the same for the cosine, and far apart else."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(6, 8))
    X = directions[np.arange(120) % 6] + 0.05 * rng.normal(size=(120, 8))
    X *= np.exp(2 * rng.normal(size=(120, 1)))
    np.save(tmp_path / "lengths.npy", X)
    done = gnomon("map", "lengths.npy", "--metric", "cosine", "--scale", "none", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "lengths_map" / "run.json").read_text())
    assert run["settings"]["metric"] == "cosine"
    table = pq.read_table(tmp_path / "lengths_map" / "map.parquet")
    Y = np.column_stack([table["tsne1"], table["tsne2"]])
    apart = np.linalg.norm(Y[:, None] - Y, axis=2) + np.diag(np.full(120, np.inf))
    near = np.argsort(apart, axis=1)[:, :5]
    assert (near % 6 == np.arange(120)[:, None] % 6).mean() > 0.95
    # what the map keeps is counted among the neighbours by the cosine
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    alike = np.argsort(-(unit @ unit.T) + np.diag(np.full(120, np.inf)), axis=1)[:, :15]
    near = np.argsort(apart, axis=1)[:, :15]
    kept = [len(set(a) & set(b)) / 15 for a, b in zip(near, alike, strict=True)]
    assert np.asarray(table["trust"]) == pytest.approx(kept)
    assert "--metric cosine" in (tmp_path / "lengths_map" / "report.html").read_text()


def test_repeated_maps_are_judged_in_the_terminal_and_in_the_record(tmp_path):
    order = ["map", "iris", "--stability", "2", "--vary", "start", "--seed", "3"]
    done = gnomon(*order, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Repeated " in done.stderr
    assert "stay among their neighbours in 2 maps (varied: start)" in done.stderr
    assert "Seed     3: the map starts from the components, without chance" in done.stderr
    record = json.loads((tmp_path / "iris_map" / "run.json").read_text(encoding="utf-8"))
    assert record["stability"]["vary"] == "start"
    assert len(record["stability"]["runs"]) == 2
    assert 0 <= record["stability"]["score"] <= 1
    page = (tmp_path / "iris_map" / "report.html").read_text(encoding="utf-8")
    assert "gnomon map iris --seed 3 --stability 2 --vary start" in page
    assert "from a random start each time" in page
