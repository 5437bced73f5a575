import dataclasses
import os
import sys

import numpy as np
import pytest
from PIL import Image

from gnomon.charts import Chart, scatter
from gnomon.charts.colours import LIGHT
from gnomon.errors import ParameterError


@pytest.fixture
def chart():
    return Chart("<svg>é</svg>", "A title", "What it shows.", 600.0, 400.0)


def test_a_chart_shows_itself_in_notebooks(chart):
    assert chart._repr_svg_() == chart._repr_html_() == "<svg>é</svg>"


def test_a_chart_reads_as_a_sentence(chart):
    assert str(chart) == "A title. What it shows."
    assert "<svg" not in repr(chart)


def test_a_chart_cannot_be_changed(chart):
    with pytest.raises(dataclasses.FrozenInstanceError):
        chart.title = "mine"


@pytest.mark.parametrize("name", ["chart.svg", "chart.SVG", "with.dots.svg"])
def test_saving_writes_the_whole_text_and_nothing_else(chart, tmp_path, name):
    written = chart.save(tmp_path / name)
    assert written == tmp_path / name
    assert written.read_text(encoding="utf-8") == "<svg>é</svg>\n"
    assert list(tmp_path.iterdir()) == [written]


def test_saving_takes_a_string_and_replaces_the_old_file(chart, tmp_path):
    path = tmp_path / "chart.svg"
    path.write_text("old")
    chart.save(str(path))
    assert path.read_text(encoding="utf-8").startswith("<svg>")


def test_a_saved_file_has_the_usual_permissions(chart, tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("")
    assert chart.save(tmp_path / "a.svg").stat().st_mode == plain.stat().st_mode


def test_a_failed_save_leaves_the_old_file_whole(chart, tmp_path, monkeypatch):
    path = tmp_path / "chart.svg"
    path.write_text("old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        chart.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["chart.jpg", "chart.pdf", "chart", ".svg"])
def test_other_formats_are_refused_with_the_way_out(chart, tmp_path, name):
    with pytest.raises(ParameterError, match=r"`path` must end in \.svg or \.png; got .*Inkscape"):
        chart.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def drawn(path):
    with Image.open(path) as picture:
        return picture.size, set(
            map(tuple, np.asarray(picture.convert("RGB")).reshape(-1, 3).tolist())
        )


@pytest.mark.parametrize("scale", [1, 2.5])
def test_a_png_has_the_colours_of_the_chart_on_white(tmp_path, scale):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    chart = scatter(rows, np.array(["a", "b"] * 30), title="Two groups")
    size, colours = drawn(chart.save(tmp_path / "map.png", scale=scale))
    assert size[0] > 500 * scale
    expected = {tuple(bytes.fromhex(LIGHT[name].lstrip("#"))) for name in ("surface", "ink")}
    assert expected <= colours
    light = sum(min(colour) > 200 for colour in colours)
    assert light > 10  # without its colours the whole chart would be black


def test_a_png_takes_a_sensible_scale_and_leaves_nothing_else(chart, tmp_path):
    with pytest.raises(ParameterError, match="`scale` must be"):
        chart.save(tmp_path / "map.png", scale=0)
    assert list(tmp_path.iterdir()) == []


def test_without_resvg_the_way_out_is_said(chart, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r"pip install 'gnomon\[png\]'"):
        chart.save(tmp_path / "map.png")
    assert list(tmp_path.iterdir()) == []
