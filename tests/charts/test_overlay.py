import numpy as np
import pytest

from gnomon import charts

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
UP = np.array([0.0, 3.0])


def test_a_line_goes_from_each_point_to_its_other(read):
    drawing = read(charts.overlay(X, X + UP))
    (lines,) = drawing.all("path", "line fine")
    pieces = [piece.split("L") for piece in lines.get("d").split("M")[1:]]
    assert len(pieces) == 3
    for start, end in pieces:
        assert start.split()[0] == end.split()[0]  # straight up
    assert len(drawing.all("circle", "c0")) == len(drawing.all("circle", "c1")) == 4  # and the key


def test_it_says_how_far_apart_the_sets_are():
    assert "3 apart" in charts.overlay(X, X + UP).description
    assert "0 apart" in charts.overlay(X, X).description


def test_names_are_written_beside_few_points_only(read):
    assert read(charts.overlay(X, X, ["a", "b", "c"])).texts("tick") == ["a", "b", "c"]
    many = np.random.default_rng(0).normal(size=(61, 2))
    assert read(charts.overlay(many, many, list(range(61)))).texts("tick") == []


@pytest.mark.parametrize(
    ("Y", "arguments", "sentence"),
    [
        (X[:2], {}, "`Y` must have 3 rows, as many as X; got 2"),
        (X[:, :1], {}, r"`Y` must have shape \(n, 2\)"),
        (X, {"labels": ["a"]}, "`labels` must hold one name for each of the 3 rows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(Y, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        charts.overlay(X, Y, **arguments)
