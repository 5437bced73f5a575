import numpy as np
from charts.test_every_chart import assert_sound

from gnomon import charts, scores
from gnomon.charts.words import percent


def scored(n=80):
    X = np.random.default_rng(0).normal(size=(n, 4))
    return scores.score_map(X, X[:, :2])


def test_it_shows_each_score_at_each_size(read):
    found = scored()
    chart = charts.neighborhoods(found)
    assert_sound(chart)
    tips = read(chart).tips()
    for k, value in zip(found.n_neighbors, found.recall.mean, strict=True):
        assert f"neighbours kept, {k}: {value:.3f}" in tips
    assert {"neighbours kept", "trustworthiness", "continuity", "by chance"} <= set(
        read(chart).texts("bold")
    )


def test_names_of_lines_do_not_collide(read):
    chart = charts.neighborhoods(scored())
    heights = sorted(float(e.get("y")) for e in read(chart).all("text", "bold"))
    assert min(np.diff(heights)) >= 15


def test_the_subtitle_tells_the_smallest_and_the_largest_size():
    found = scored()
    first, last = (percent(float(found.recall.mean[at])).replace("\u00a0", " ") for at in (0, -1))
    text = charts.neighborhoods(found).description
    assert f"Of the 5 nearest rows the map keeps {first}, of the 15 nearest {last}." in text


def test_one_size_is_drawn():
    X = np.random.default_rng(0).normal(size=(3, 4))
    chart = charts.neighborhoods(scores.score_map(X, X[:, :2], n_neighbors=[1]))
    assert_sound(chart)
    assert "The nearest row stays the nearest for" in chart.description
