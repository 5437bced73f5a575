import re

import numpy as np

from gnomon.charts import cumulative
from gnomon.charts.words import percent


class Known:
    """A model whose shares are given."""

    def __init__(self, shares, kept=None):
        self.spectrum_ = np.array(shares)
        self.total_variance_ = 1.0
        self.n_components_ = kept or len(shares)
        self.explained_variance_ratio_ = self.spectrum_[: self.n_components_]


def test_marks_say_how_many_components_they_need(read):
    chart = cumulative(Known([0.5, 0.25, 0.1, 0.06, 0.05, 0.04]))
    assert read(chart).texts("label bold") == ["3 for 80 %", "4 for 90 %", "5 for 95 %"]
    assert chart.description.startswith("5 components of 6 hold 95 % of the variance.")


def test_a_mark_reached_but_for_rounding_is_reached(read):
    # 0.1 added eight times is 0.7999999999999999.
    assert "8 for 80 %" in read(cumulative(Known([0.1] * 10))).texts()


def test_a_mark_out_of_reach_is_told(read):
    chart = cumulative(Known([0.5, 0.35]))
    drawing = read(chart)
    assert drawing.texts("label bold") == ["2 for 80 %"]
    assert chart.description.startswith("2 components hold 85 % of the variance; 95 % needs more.")
    assert any(t.startswith("90 % and 95 % need more than the 2") for t in drawing.texts("tick"))


def test_the_curve_is_the_running_sum(read):
    shares = [0.5, 0.25, 0.15, 0.1]
    drawing = read(cumulative(Known(shares)))
    path = drawing.all("path", "thick")[0].get("d")
    points = np.array([pair.split() for pair in re.split("[ML]", path)[1:]], dtype=float)
    bottom, top = points[0, 1], points[-1, 1]
    np.testing.assert_allclose(
        (bottom - points[:, 1]) / (bottom - top), [0, 0.5, 0.75, 0.9, 1.0], atol=1e-3
    )
    np.testing.assert_allclose(np.diff(points[:, 0]), np.diff(points[:, 0])[0], atol=0.11)
    assert "4 components: 100 %" in drawing.tips()


def test_what_the_model_keeps_is_told_and_coloured(read):
    chart = cumulative(Known([0.5, 0.25, 0.15, 0.1], kept=2))
    assert "The 2 kept hold 75 %." in chart.description
    styles = [circle.get("class") for circle in read(chart).all("circle", "ring")]
    assert styles[:4] == ["gn-accent gn-ring"] * 2 + ["gn-quiet gn-ring"] * 2


def test_labels_of_close_marks_do_not_collide(read):
    texts = read(cumulative(Known([0.85, 0.06, 0.05, 0.04]))).all("text", "bold")
    heights = sorted(float(text.get("y")) for text in texts)
    assert np.diff(heights).min() >= 18


def test_every_sum_is_in_the_description(fit, table):
    model = fit(*table)
    description = cumulative(model).description
    for k, total in enumerate(np.cumsum(model.explained_variance_ratio_), start=1):
        assert f"{k}: {percent(total)}".replace("\u00a0", " ") in description


def test_many_components_are_drawn_as_far_as_something_happens(fit, read):
    X = np.random.default_rng(0).normal(size=(300, 200)) * 0.9 ** np.arange(200)
    drawing = read(cumulative(fit(X, n_components=5, standardize=False)))
    assert any("The first 40 of 200 components" in text for text in drawing.texts("tick"))
