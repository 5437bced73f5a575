import numpy as np
import pytest

from gnomon import charts

RNG = np.random.default_rng(0)


def places(drawing):
    """All dots of all panels."""
    found = []
    for path in drawing.all("path", "dots"):
        for piece in path.get("d").split("M")[1:]:
            found.append(tuple(map(float, piece.removesuffix("h0").split())))
    return found


def test_every_map_fills_a_panel_of_its_own(read):
    maps = {"small": RNG.normal(size=(30, 2)), "large": 1000 * RNG.normal(size=(30, 2))}
    drawing = read(charts.maps(maps))
    panels = drawing.all("rect", "grid")
    dots = places(drawing)
    assert len(panels) == 2
    assert len(dots) == 60
    for panel in panels:
        left, top = float(panel.get("x")), float(panel.get("y"))
        right, bottom = left + float(panel.get("width")), top + float(panel.get("height"))
        inside = [(x, y) for x, y in dots if left < x < right and top < y < bottom]
        assert len(inside) == 30
        extent = max(np.ptp(inside, axis=0))
        assert extent == pytest.approx(0.94 * float(panel.get("width")), abs=0.3)


def test_notes_stand_below_their_map(read):
    maps = {"one": RNG.normal(size=(5, 2)), "other": RNG.normal(size=(5, 1))}
    chart = charts.maps(maps, notes={"other": ["trust 0.98", "1.2 s"]})
    assert read(chart).texts("tick") == ["trust 0.98", "1.2 s"]
    assert "other: trust 0.98, 1.2 s" in chart.description


def test_groups_have_one_key(read):
    maps = {name: RNG.normal(size=(6, 2)) for name in "abc"}
    labels = ["x", "y", "z"] * 2
    assert read(charts.maps(maps, labels)).texts("label") == ["a", "b", "c", "x", "y", "z"]


def test_rows_without_a_label_are_called_what_the_caller_says(read):
    labels = np.array(["moved", None] * 3, object)
    chart = charts.maps({"a": RNG.normal(size=(6, 2))}, labels, unlabelled="stayed")
    assert {"moved", "stayed"} <= set(read(chart).texts("label"))


def test_a_large_map_is_sampled_and_says_so(read):
    chart = charts.maps({"large": RNG.normal(size=(6000, 2))})
    assert "A sample of 5,000 of 6,000" in chart.description
    assert len(places(read(chart))) == 5000


@pytest.mark.parametrize(
    ("positions", "error", "sentence"),
    [
        ({}, ValueError, "from 1 to 12 names"),
        (np.ones((3, 2)), TypeError, "be a mapping"),
        ({"a": np.ones((3, 2)), "b": np.ones((4, 2))}, ValueError, "all hold the same rows"),
        ({"a": np.ones((3, 5))}, ValueError, r"`positions\['a'\]` must have shape"),
    ],
)
def test_what_cannot_be_drawn_is_refused(positions, error, sentence):
    with pytest.raises(error, match=sentence):
        charts.maps(positions)
