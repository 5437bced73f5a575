"""Every script of the galleries runs, on the samples that come along, and shows what it says."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from charts.test_every_chart import assert_sound

from gnomon import charts
from gnomon.charts import Chart

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
TASKS = GALLERY.parent / "tasks"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
BY_TASK = sorted(TASKS.glob("plot_*.py"))
REFERENCES = GALLERY.parent / "references.md"


def run(script):
    """What the script's lines that are nothing but an expression give, as a page would show it."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    variables, values = {"__name__": "__main__"}, []
    for node in tree.body:
        if isinstance(node, ast.Expr):
            code = compile(ast.Expression(node.value), script.name, "eval")
            values.append(eval(code, variables))
        else:
            exec(compile(ast.Module([node], []), script.name, "exec"), variables)
    return values


@pytest.fixture
def bundled(monkeypatch):
    """Samples only, whatever folder the environment names; the scripts' own modules are found."""
    monkeypatch.delenv("GNOMON_DATA", raising=False)
    monkeypatch.syspath_prepend(GALLERY)
    monkeypatch.syspath_prepend(TASKS)
    yield
    for name in ("sketches", "images_of_digits", "data_of_tasks"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("script", [*SCRIPTS, *BY_TASK], ids=lambda path: path.stem)
def test_a_script_runs_and_shows_charts(script, bundled, capsys):
    shown = [value for value in run(script) if isinstance(value, Chart)]
    assert shown
    for chart in shown:
        assert_sound(chart)
    printed = capsys.readouterr().out
    assert "False" not in printed  # what a script checks by printing is true


def test_every_task_is_named_on_the_front_page():
    front = (GALLERY.parent / "index.md").read_text("utf-8")
    found = [ast.get_docstring(ast.parse(script.read_text("utf-8"))) for script in BY_TASK]
    assert len(found) == 6
    for said in found:
        assert said.splitlines()[0].lower() in " ".join(front.split()).lower()


def test_faces_and_cells_are_read_from_the_folder_that_is_given(bundled, monkeypatch, tmp_path):
    import data_of_tasks

    assert data_of_tasks.faces()[2] == (8, 8)
    X, kind = data_of_tasks.cells()
    assert (X.shape, len(set(kind))) == ((700, 300), 5)
    assert data_of_tasks.umap_of_digits().shape == (1797, 2)
    people = np.array([3, 4], np.uint8)
    np.savez(tmp_path / "olivetti_faces.npz", X=np.ones((2, 4096), np.uint8), y=people)
    np.savez(tmp_path / "pbmc68k_reduced.npz", X_pca=np.ones((5, 2)), bulk_labels=["a"] * 5)
    monkeypatch.setenv("GNOMON_DATA", str(tmp_path))
    X, person, shape = data_of_tasks.faces()
    assert (X.shape, person.tolist(), shape) == ((2, 4096), ["3", "4"], (64, 64))
    assert data_of_tasks.cells()[0].shape == (5, 2)


def test_faces_of_the_real_size_are_drawn(bundled, monkeypatch, tmp_path):
    pixels = np.random.default_rng(0).integers(256, size=(40, 4096)).astype(np.uint8)
    np.savez(tmp_path / "olivetti_faces.npz", X=pixels, y=np.arange(40, dtype=np.uint8))
    monkeypatch.setenv("GNOMON_DATA", str(tmp_path))
    assert any(isinstance(value, Chart) for value in run(TASKS / "plot_05_compress_faces.py"))


def test_the_scripts_are_numbered_without_gaps_and_say_which_figure_they_make():
    numbers = [int(script.stem.split("_")[1]) for script in SCRIPTS]
    assert numbers == list(range(1, len(SCRIPTS) + 1))
    keys = ("[Selitskii 2025]", "[Derivation]", "[Lecture]")
    references = REFERENCES.read_text(encoding="utf-8")
    for script in SCRIPTS:
        said = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
        assert any(key in said and f"**{key}**" in references for key in keys), script.name


def test_digits_are_read_from_the_folder_that_is_given(bundled, monkeypatch, tmp_path):
    import images_of_digits

    X, digit, shape = images_of_digits.load()
    assert (X.shape, len(digit), shape) == ((1797, 64), 1797, (8, 8))
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 784)
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=np.array([8, 0, 8], np.uint8))
    monkeypatch.setenv("GNOMON_DATA", str(tmp_path))
    X, digit, shape = images_of_digits.load(rows=2)
    assert (X.shape, digit.tolist(), shape) == ((2, 784), ["8", "0"], (28, 28))


def test_a_page_gets_the_chart_that_a_block_ends_with(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(GALLERY.parent / "_extensions")
    import gallery_charts

    paths = iter([str(tmp_path / "image_001.png"), str(tmp_path / "image_002.png")])
    chart = charts.overlay([[0, 0], [1, 0]], [[0, 1], [1, 1]])
    variables = {"example_globals": {"___": chart}, "image_path_iterator": paths}
    shown = gallery_charts.scrape((), variables, {})
    assert ".. raw:: html" in shown
    assert "".join(shown.split()).endswith("".join(chart.svg.split()))
    assert (tmp_path / "image_001.svg").read_text("utf-8").strip() == chart.svg
    assert gallery_charts.scrape((), variables, {}) == ""  # of the next block, which has none
    for last in ({}, {"___": 3.0}):
        variables = {"example_globals": last, "image_path_iterator": paths}
        assert gallery_charts.scrape((), variables, {}) == ""
