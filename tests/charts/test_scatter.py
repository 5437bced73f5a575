from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from gnomon import charts
from gnomon.charts.groups import group_rows

rng = np.random.default_rng(0)
Y = rng.normal(size=(300, 3)) * 20


def places(chart):
    """Centres of the marks, in the order they are drawn."""
    root = ElementTree.fromstring(chart.svg)
    return np.array(
        [
            (float(mark.get("cx")), float(mark.get("cy")))
            for mark in root.iter()
            if mark.tag.endswith("circle")
        ]
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_every_point_is_drawn_in_any_dimension(dimensions):
    chart = charts.scatter(Y[:, :dimensions])
    assert len(places(chart)) == 300
    assert "300 rows" in chart.description or "300 rows" in chart.svg


def test_both_directions_have_the_same_unit():
    square = np.array([[0.0, 0], [10, 0], [10, 10], [0, 10]])
    at = places(charts.scatter(square))
    sides = np.linalg.norm(at - np.roll(at, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, sides[0], rtol=0.01)


def test_groups_are_named_and_coloured():
    labels = np.where(Y[:, 0] > 0, "right", "left")
    chart = charts.scatter(Y[:, :2], labels, title="Two sides")
    assert chart.title == "Two sides"
    assert "right" in chart.svg
    assert "left: " in chart.description


def test_nearer_points_are_drawn_over_farther_ones():
    line = np.array([[0.0, -10, 0], [0, 0, 0], [0, 10, 0]])  # near, middle, away
    heights = places(charts.scatter(line, turn=(0.0, 45.0)))[:, 1]
    # Seen from above, what is farther lies higher up; it is drawn first.
    assert list(heights) == sorted(heights)


def test_a_fitted_map_is_taken_by_its_embedding():
    model = SimpleNamespace(embedding_=Y[:, :2])
    assert charts.scatter(model).svg == charts.scatter(Y[:, :2]).svg


def test_many_points_are_sampled_and_it_says_so():
    chart = charts.scatter(rng.normal(size=(25_000, 2)))
    assert "A sample of 20,000 of 25,000 rows" in chart.svg


@pytest.mark.parametrize(
    "wrong", [np.zeros((5, 4)), np.zeros(5), np.zeros((0, 2)), np.full((3, 2), np.nan)]
)
def test_what_is_no_map_is_refused(wrong):
    with pytest.raises(ValueError, match="`positions` must"):
        charts.scatter(wrong)


def test_a_group_has_its_colour_whatever_sample_is_drawn():
    labels = np.array(["a", *["b"] * 500, *["c"] * 500], object)
    groups, _ = group_rows(labels, 1001, np.arange(1, 1001))  # without the one "a"
    assert [(group.name, group.colour) for group in groups] == [("b", "c1"), ("c", "c2")]
