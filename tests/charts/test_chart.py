import dataclasses
import os

import pytest

from gnomon.charts import Chart
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


@pytest.mark.parametrize("name", ["chart.png", "chart.pdf", "chart", ".svg"])
def test_other_formats_are_refused_with_the_way_out(chart, tmp_path, name):
    with pytest.raises(ParameterError, match=r"`path` must end in \.svg; got .*Inkscape"):
        chart.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
