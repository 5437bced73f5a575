"""What the benchmark of the page makes of its measurements."""

import pytest

from benchmarks import page
from benchmarks.environment import BenchmarkError, Settings
from benchmarks.table import MISSED

SOFTWARE = "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device), SwiftShader driver)"


def opened(**changes):
    row = {
        "name": "mnist",
        "rows": 70_000,
        "columns": 784,
        "bytes": 2_900_000,
        "build": 9.0,
        "drawn": [0.9, 1.1, 5.0],
        "ready": [1.2, 1.4, 5.5],
        "drawing": "canvas",
        "browser": "140.0",
        "renderer": SOFTWARE,
    }
    return row | changes


def moved(way):
    frames = [20.0] * 8 + [70.0] * 2
    return {
        "name": f"mnist {way}",
        "rows": 70_000,
        "drawing": way,
        "pan": frames,
        "zoom": frames,
        "recolour": [0.1, 0.2, 0.3],
    }


def test_the_median_opening_and_the_bytes_are_judged():
    good, large, late = (
        page.report({"pages": [opened(**changes)]}).tables[0].rows[0]
        for changes in ({}, {"bytes": 3_000_000}, {"drawn": [1.0, 2.0, 2.1]})
    )
    assert good[-1] == "reached"
    assert "1.10 [0.90, 5.00]" in good
    assert large[-1] == f"{MISSED}: 3,000,000 bytes are not below 3,000,000"
    assert late[-1] == f"{MISSED}: 2.00 s are not below 2 s"


def test_pages_of_generated_points_are_measured_and_not_judged():
    row = page.report({"pages": [opened(name="1m", bytes=20_000_000)]}).tables[0].rows[0]
    assert row[-2:] == ["–", "–"]


def test_webgl_by_a_processor_is_called_so():
    pace = [moved("webgl"), moved("canvas")]
    software = page.report({"pages": [opened()], "pace": pace}).tables[1]
    assert SOFTWARE in software.caption
    assert [row[2] for row in software.rows] == ["WebGL in software", "plain canvas"]
    assert software.rows[0][3:] == ["20 [70]", "20 [70]", "0.20 [0.10, 0.30]"]
    pages = [opened(renderer="a card", drawing="webgl")]
    card = page.report({"pages": pages, "pace": pace}).tables[1]
    assert card.rows[0][2] == "WebGL"


def test_an_unknown_row_is_refused_before_anything_is_made():
    with pytest.raises(BenchmarkError, match="mnist, 100k, 1m"):
        next(page.rows(Settings(only="nothing")))
