"""Measured numbers on the pages are those of benchmarks/results, and stand nowhere else."""

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "figures.py"
RESULTS = ROOT / "benchmarks" / "results"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A time, and how many times as fast: always measured. Sizes and shares may be settings.
MEASURED = re.compile(
    r"\b\d[\d.,]*\s(?:s|ms|min|seconds|minutes)\b|\b\d[\d.,]*\stimes (?:as|faster)\b"
)


@pytest.fixture(scope="module")
def figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        spec = importlib.util.spec_from_file_location("figures", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    yield module
    sys.modules.pop("measured")


def test_the_pages_say_what_was_measured(figures):
    found = figures.changes(figures.Results())
    assert not found, "run docs/figures.py: " + ", ".join(path.name for path in found)


def test_every_block_is_on_a_page_and_no_page_has_another(figures):
    text = "".join((ROOT / page).read_text("utf-8") for page in figures.PAGES)
    named = re.findall(r"<!-- figures: ([\w-]+) -->", text)
    assert sorted(named) == sorted(figures.BLOCKS)
    assert len(figures.BLOCK.findall(text)) == len(named) == text.count("<!-- /figures -->")


def slower(row):
    row["seconds"]["gnomon"] = [1e3 for _ in row["seconds"]["gnomon"]]


README, COMPARED, LARGE, DRAWN = "README.md", "compared.md", "large-data.md", "speed.svg"
OTHER_RESULTS = [
    ("tsne maps", lambda row: row["median_seconds"].update(gnomon=99.0), {README, COMPARED}),
    ("tsne maps", slower, {README, COMPARED, DRAWN}),
    ("pca rows", lambda row: row["timing"].update(ratio=0.5), {README, COMPARED, DRAWN}),
    ("outofcore rows", lambda row: row.update(seconds=77.0), {README, COMPARED, LARGE}),
    ("sampled sampled", lambda row: row["stages"].update(tsne=55.0), {LARGE}),
    ("page pages", lambda row: row.update(bytes=8_000_000), {README}),
    ("audit maps", lambda row: row.update(placed=[0.5]), {README}),
]


@pytest.mark.parametrize(("where", "change", "pages"), OTHER_RESULTS)
def test_another_result_changes_the_pages(figures, tmp_path, where, change, pages):
    question, section = where.split()
    there = tmp_path / "results"
    shutil.copytree(RESULTS, there)
    data = json.loads((there / f"{question}.json").read_text("utf-8"))
    for row in data[section]:
        change(row)
    (there / f"{question}.json").write_text(json.dumps(data), "utf-8")
    assert {path.name for path in figures.changes(figures.Results(there))} == pages


def test_a_target_that_is_missed_is_said(figures, tmp_path):
    results = figures.Results()
    missed = [each for each in figures.all_measured(results) if each.missed]
    assert missed
    said, drawn = figures.speed(results), figures.draw_speed(results).svg
    for each in missed:
        assert f"{each.what} against {each.peer}" in said
    assert drawn.count(" missed</text>") == len(missed)


def test_no_time_stands_beside_the_blocks(figures):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md")]
    for page in pages:
        text = FENCE.sub("", figures.BLOCK.sub("", page.read_text("utf-8")))
        text, _, _ = text.partition("**A calculation, not a measurement:**")
        assert not MEASURED.findall(text), page.name
