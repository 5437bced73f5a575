import re

import numpy as np
import pytest

from gnomon.charts import biplot
from gnomon.charts.biplot import MOST_ARROWS, MOST_POINTS
from gnomon.errors import DataError, ParameterError


def drawn_points(drawing):
    return np.array(
        [(float(c.get("cx")), -float(c.get("cy"))) for c in drawing.all("circle", "point")]
    )


def drawn_arrows(drawing):
    arrows = {}
    for path in drawing.all("path", "arrow"):
        x0, y0, x, y = map(
            float, re.match(r"M(\S+) (\S+)L([-\d.]+) ([-\d.]+)", path.get("d")).groups()
        )
        arrows[path[0].text.partition(":")[0]] = np.array([x - x0, y0 - y])
    return arrows


@pytest.mark.parametrize(
    ("scaling", "power"), [("rows", 1.0), ("columns", 0.0), ("symmetric", 0.5)]
)
def test_points_and_arrows_follow_the_scaling(fit, table, read, scaling, power):
    X, names = table
    model = fit(X, names)
    drawing = read(biplot(model, X, scaling=scaling))
    deviations = np.sqrt(model.explained_variance_[:2])
    points = model.transform(X)[:, :2] * deviations ** (power - 1)
    found = drawn_points(drawing)
    # One unit both ways: the drawing is the points, moved and enlarged by one factor.
    found, points = found - found.mean(axis=0), points - points.mean(axis=0)
    unit = np.linalg.norm(found) / np.linalg.norm(points)
    np.testing.assert_allclose(found, points * unit, atol=0.11)
    arrows = model.components_[:2].T * deviations ** (1 - power)
    shown = np.array([drawn_arrows(drawing)[name] for name in names])
    enlarged = np.linalg.norm(shown) / np.linalg.norm(arrows)
    np.testing.assert_allclose(shown, arrows * enlarged, atol=0.11)
    assert f"Scaling “{scaling}”" in biplot(model, X, scaling=scaling).description


def test_whitened_scores_are_drawn_as_they_were_before(fit, table, read):
    X, names = table
    plain, white = fit(X, names), fit(X, names)
    white.whiten = True
    white.transform = lambda X: plain.transform(X) / np.sqrt(plain.explained_variance_)
    np.testing.assert_array_equal(
        drawn_points(read(biplot(plain, X))), drawn_points(read(biplot(white, X)))
    )


def test_the_subtitle_tells_rows_share_and_stretch(fit, table):
    X, names = table
    model = fit(X, names)
    share = 100 * model.explained_variance_ratio_[:2].sum()
    assert re.match(
        rf"60 rows on PC1 and PC2, which hold {share:.1f} % of the variance\..*arrows × [\d.]+\.",
        biplot(model, X).description,
    )


def test_other_axes_are_named(fit, table, read):
    X, names = table
    texts = read(biplot(fit(X, names), X, axes=(3, 1))).texts("bold")
    assert any(text.startswith("PC4 · ") for text in texts)
    assert any(text.startswith("↑ PC2 · ") for text in texts)


def test_groups_are_named_beside_their_points(fit, table, read):
    X, names = table
    drawing = read(biplot(fit(X, names), X, ["north"] * 20 + ["south"] * 40))
    assert {"north", "south"} <= set(drawing.texts("bold"))
    # One more of each colour stands in front of the name.
    assert len(drawing.all("circle", "c0 point")) == 21
    assert len(drawing.all("circle", "c1 point")) == 41


def test_colours_go_by_name_not_by_size(fit, table, read):
    X, names = table
    few, many = ["b"] * 10 + ["a"] * 50, ["b"] * 50 + ["a"] * 10
    for labels in (few, many):
        drawing = read(biplot(fit(X, names), X, labels))
        assert len(drawing.all("circle", "c0 point")) == labels.count("a") + 1


def test_many_groups_get_a_key_and_the_rarest_share_a_colour(fit, read):
    X = np.random.default_rng(0).normal(size=(300, 3))
    labels = [f"group {i % 30}" for i in range(300)]
    texts = read(biplot(fit(X), X, labels)).texts("label")
    assert "10 other groups" in texts
    assert texts.index("group 2") < texts.index("group 10")


def test_numbers_are_a_ramp_with_its_range(fit, table, read):
    X, names = table
    drawing = read(biplot(fit(X, names), X, np.linspace(-2.5, 40, 60)))
    assert {"−2.5", "40"} <= set(drawing.texts("tick"))
    assert drawing.all("circle", "v0 point")
    assert drawing.all("circle", "v8 point")


def test_a_few_distinct_numbers_are_groups(fit, table, read):
    X, names = table
    texts = read(biplot(fit(X, names), X, np.arange(60) % 3)).texts("bold")
    assert {"0", "1", "2"} <= set(texts)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None] * 30,
        [float("nan"), 1.0] * 30,
        np.ma.MaskedArray([1, 2] * 30, mask=[True, False] * 30),
        np.array(["NaT", "2025-01-01"] * 30, dtype="datetime64[D]"),
    ],
    ids=["None", "NaN", "masked", "NaT"],
)
def test_rows_without_a_label_are_a_group_of_their_own(fit, table, labels):
    X, names = table
    assert "no label: 30 rows" in biplot(fit(X, names), X, labels).description


def test_many_rows_are_sampled_the_same_way_and_it_is_told(fit):
    X = np.random.default_rng(0).normal(size=(MOST_POINTS + 1000, 3))
    model = fit(X)
    labels = ["a", "b", "c"] * 2000
    chart = biplot(model, X, labels)
    assert chart.description.startswith("A sample of 5,000 of 6,000 rows on PC1 and PC2")
    assert chart.svg == biplot(model, X, labels).svg
    assert chart.svg.count("h0") == MOST_POINTS
    assert len(chart.svg) < 100_000


def test_only_the_longest_arrows_are_drawn(fit, read):
    X = np.random.default_rng(0).normal(size=(50, 30))
    model = fit(X)
    drawing = read(biplot(model, X))
    lengths = np.hypot(*model.components_[:2])
    longest = {f"x{d + 1}" for d in np.argsort(-lengths)[:MOST_ARROWS]}
    assert set(drawn_arrows(drawing)) == longest
    assert any("the 12 longest of 30 columns" in text for text in drawing.texts("tick"))


def test_bad_arguments_are_refused(fit, table):
    X, names = table
    model = fit(X, names)
    with pytest.raises(
        ParameterError, match="`labels` must hold one value for each of the 60 rows"
    ):
        biplot(model, X, labels=["a"] * 59)
    with pytest.raises(ParameterError, match="`scaling` must be one of 'rows', 'columns'"):
        biplot(model, X, scaling="form")
    with pytest.raises(ParameterError, match="the model has one"):
        biplot(fit(X, names, n_components=1), X)
    with pytest.raises(DataError, match="no rows"):
        biplot(model, X[:0])
