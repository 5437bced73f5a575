import re

import numpy as np
import pytest

from gnomon import charts
from gnomon.charts.theme import INKS


def areas(drawing, style):
    """Sum of the areas of the rectangles in all paths of a style."""
    total = 0.0
    for path in drawing.all("path", style):
        for across, down in re.findall(r"h([\d.]+)l0 ([\d.]+)h", path.get("d")):
            total += float(across) * float(down)
    return total


def test_ink_is_as_strong_as_the_pixel(read):
    drawing = read(charts.images([[0.0, 5.0, 10.0, 10.0]], (2, 2)))
    assert not drawing.all("path", "pixels ink1")
    full, half = areas(drawing, f"pixels ink{INKS}"), areas(drawing, f"pixels ink{round(INKS / 2)}")
    assert full == pytest.approx(2 * half)
    assert half > 0


def test_all_pictures_share_one_scale(read):
    drawing = read(charts.images([[0.0, 1.0], [0.0, 10.0]], (1, 2)))
    assert len(drawing.all("path", f"pixels ink{INKS}")) == 1


def test_equal_neighbours_are_one_rectangle(read):
    (path,) = read(charts.images([[1.0, 1.0, 0.0, 1.0]], (1, 4))).all("path", "pixels")
    assert path.get("d").count("M") == 2


def test_values_beyond_the_limits_are_drawn_as_if_they_were_there(read):
    chart = charts.images([[-5.0, 0.0, 8.0, 99.0]], (1, 4), limits=(0, 16))
    assert len(read(chart).all("path", "pixels")) == 2  # half and full
    assert len(read(chart).all("path", f"pixels ink{INKS}")) == 1
    assert "from 0 (blank) to 16 (full)" in chart.description


def test_photographs_go_from_black_to_white(read):
    chart = charts.images([[0.0, 5.0, 10.0, 10.0]], (2, 2), brightness=True)
    drawing = read(chart)
    assert len(drawing.all("rect", "black")) == 1
    assert areas(drawing, f"pixels white ink{INKS}") > 0
    assert not drawing.all("path", "pixels ink")
    assert "from 0 (black) to 10 (white)" in chart.description


def test_signed_pictures_leave_zero_blank(read):
    drawing = read(charts.images([[-2.0, 0.0, 0.0, 2.0]], (1, 4), signed=True))
    assert len(drawing.all("path", "pixels")) == 2
    assert drawing.all("path", "pixels d0")
    assert drawing.all("path", "pixels d16")


def test_pictures_stand_in_lines_below_their_names(read):
    drawing = read(charts.images(np.eye(6), (2, 3), across=4, names=["four", "two"]))
    frames = [(float(f.get("x")), float(f.get("y"))) for f in drawing.all("rect", "grid")]
    assert len(frames) == 6
    assert len({y for _, y in frames}) == 2
    assert len({x for x, _ in frames}) == 4
    assert drawing.texts("label") == ["four", "two"]


def test_pictures_stay_within_the_drawing(read):
    chart = charts.images(np.ones((40, 28 * 28)) * np.arange(784), (28, 28), across=20)
    for frame in read(chart).all("rect", "grid"):
        assert float(frame.get("x")) + float(frame.get("width")) <= chart.width - 28
        assert float(frame.get("y")) + float(frame.get("height")) <= chart.height


@pytest.mark.parametrize(
    ("X", "arguments", "sentence"),
    [
        (np.ones((2, 5)), {"shape": (2, 2)}, r"`X` must have shape \(n, 4\)"),
        (np.ones((0, 4)), {"shape": (2, 2)}, "n ≥ 1"),
        (np.full((2, 4), np.nan), {"shape": (2, 2)}, "`X` must be finite"),
        (np.ones((2, 4)), {"shape": (2, 0)}, "`shape` must be an integer ≥ 1"),
        (np.ones((2, 4)), {"shape": (2, 2), "across": 0}, "`across` must be an integer ≥ 1"),
        (np.ones((3, 4)), {"shape": (2, 2), "across": 2, "names": ["a"]}, "each of the 2 lines"),
        (np.ones((1, 4)), {"shape": (2, 2), "limits": (1, 1)}, "the smaller first"),
        (np.ones((1, 4)), {"shape": (2, 2), "limits": (0, 1), "signed": True}, "signed pictures"),
        (np.ones((300, 784)), {"shape": (28, 28)}, "at most 150,000 pixels"),
    ],
)
def test_what_cannot_be_drawn_is_refused(X, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        charts.images(X, **arguments)


def test_a_shape_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="height and width"):
        charts.images(np.ones((2, 4)), "2x2")
