"""The lines of Python on a page make that page's numbers again."""

import os
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from commands import gnomon

import gnomon as library


def lines_of(page):
    """The lines of a page, as they would be copied."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r"<pre[^>]*><code>((?:from|import) gnomon.*?)</code>", text, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", found[1]))


def run_lines(page, folder, **given):
    """Run the lines in `folder` and return their names."""
    here, names = os.getcwd(), dict(given)
    os.chdir(folder)
    try:
        exec(lines_of(page), names)
    finally:
        os.chdir(here)
    assert (folder / "report.html").stat().st_size > 100_000
    (folder / "report.html").unlink()
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("lines")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * [1, 50, 1] + 6 * np.eye(3)[np.arange(90) % 3]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        name=[f"p{i}" for i in range(90)], kind=np.array(["x", "y", "z"])[np.arange(90) % 3]
    )
    frame.loc[[0, 7], "b"] = np.nan
    frame.to_csv(made / "it's t.csv", index=False)
    shuffled = frame.dropna().sample(80, random_state=0)
    pd.DataFrame(shuffled[["a", "c"]].to_numpy(), columns=["u1", "u2"]).assign(
        name=shuffled["name"].to_numpy()
    ).to_csv(made / "ids.csv", index=False)
    pd.DataFrame({"u1": frame["a"], "u2": frame["c"]}).to_csv(made / "order.csv", index=False)
    return made


ARGS = ["it's t.csv", "--missing", "drop", "--label", "kind", "--seed", "4"]


@pytest.mark.parametrize(
    "more",
    [["--perplexity", "10", "-k", "2"], ["--sample", "60", "--drop", "c", "--stability", "3"]],
)
def test_lines_of_a_map_make_it_again(folder, tmp_path, more):
    if "--sample" in more:
        more = more[:-2]  # a map of a part of the rows has no stability
    out = tmp_path / "out"
    done = gnomon("map", *ARGS, *more, "-o", str(out), folder=folder)
    assert done.returncode == 0, done.stderr
    names = run_lines(out / "report.html", folder)
    written = pd.read_parquet(out / "map.parquet")
    assert np.array_equal(names["result"].positions, written[["tsne1", "tsne2"]].to_numpy())
    again = gnomon("report", str(out), "-o", str(tmp_path / "again.html"), folder=folder)
    assert again.returncode == 0, again.stderr
    assert lines_of(tmp_path / "again.html") == lines_of(out / "report.html")


def test_lines_of_a_reduction_make_it_again(folder, tmp_path):
    out = tmp_path / "out"
    done = gnomon("reduce", *ARGS, "-k", "2", "-o", str(out), folder=folder)
    assert done.returncode == 0, done.stderr
    names = run_lines(out / "report.html", folder)
    written = pd.read_parquet(out / "scores.parquet")
    assert np.array_equal(names["result"].components, written[["pc1", "pc2"]].to_numpy())


@pytest.mark.parametrize("places", ["ids.csv", "order.csv"])
def test_lines_of_an_audit_make_it_again(folder, tmp_path, places):
    out = tmp_path / "out"
    args = ["audit", places, "--data", *ARGS[:3], "--scale", "standard", "-o", str(out)]
    done = gnomon(*args, *(["--label", "kind"] if places == "order.csv" else []), folder=folder)
    assert done.returncode == 0, done.stderr
    names = run_lines(out / "report.html", folder)
    written = pd.read_parquet(out / "map.parquet")
    assert np.array_equal(names["Y"], written[["u1", "u2"]].to_numpy())
    assert np.array_equal(names["found"].misplaced, written["misplaced"].to_numpy())
    assert np.array_equal(names["found"].trustworthiness, written["trustworthiness"].to_numpy())


def test_lines_of_an_audited_run_make_it_again(folder, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    assert gnomon("map", *ARGS, "-o", str(run), folder=folder).returncode == 0
    done = gnomon("audit", str(run), "--data", ARGS[0], "-o", str(out), folder=folder)
    assert done.returncode == 0, done.stderr
    names = run_lines(out / "report.html", folder)
    written = pd.read_parquet(out / "map.parquet")
    assert np.array_equal(names["found"].misplaced, written["misplaced"].to_numpy())


def test_lines_of_a_dataframe_take_it_as_data(folder, tmp_path):
    frame = pd.read_csv(folder / ARGS[0])
    result = library.run(frame, missing="drop", features=["a", "b"], seed=4)
    result.report(tmp_path / "page.html")
    assert "# data: the table that was given" in lines_of(tmp_path / "page.html")
    names = run_lines(tmp_path / "page.html", tmp_path, data=frame)
    assert np.array_equal(names["result"].positions, result.positions)


def test_methods_name_the_input_the_version_and_the_seed(folder, tmp_path):
    result = library.run(folder / ARGS[0], missing="drop", seed=4)
    page = unescape(result.report().html).replace("\u00a0", " ")
    assert "88 rows and 3 columns (it's t.csv) was centred" in page
    assert f"computed with Gnomon {library.__version__}" in page
    assert "; seed 4)" in page
