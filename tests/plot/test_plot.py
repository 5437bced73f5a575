"""Plots by matplotlib hold the models' own numbers; they run where scanpy brings matplotlib."""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

import gnomon
from gnomon import PCA, charts, plot
from gnomon.charts.colours import LIGHT
from gnomon.errors import DataError, ParameterError


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    return gnomon.samples.load("wine")


@pytest.fixture(scope="module")
def result():
    return gnomon.run("wine", seed=0)


def dots(ax):
    """Groups of points: label, places and colour."""
    found = [c for c in ax.collections if isinstance(c, PathCollection)]
    return [(c.get_label(), np.asarray(c.get_offsets()), c) for c in found]


def every_place(ax):
    return np.concatenate([places for _, places, _ in dots(ax)])


def sorted_rows(Z):
    return Z[np.lexsort(Z.T)]


def test_a_map_has_every_row_at_its_place_in_the_colour_of_its_group(result):
    ax = plot.map(result)
    labels = result.prepared.table.labels
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == sorted(set(labels))
    for i, (name, places, drawn) in enumerate(dots(ax)):
        np.testing.assert_allclose(places, result.positions[labels == name])
        assert to_hex(drawn.get_facecolor()[0]) == LIGHT[f"c{i}"]
    assert len(dots(ax)) == 3


def test_a_map_goes_into_the_axes_that_are_given(result):
    figure, (left, right) = plt.subplots(1, 2)
    assert plot.map(result.tsne, color=result.prepared.table.labels, ax=right) is right
    assert not left.collections
    assert len(figure.axes) == 2


def test_a_quantity_has_a_colour_bar_and_the_steps_of_the_chart(result):
    alcohol = result.prepared.table.X[:, 0]
    ax = plot.map(result, color=result.prepared.table.columns[0])
    ((_, places, drawn),) = dots(ax)
    np.testing.assert_allclose(places, result.positions)
    np.testing.assert_array_equal(drawn.get_array(), alcohol)
    bar = ax.figure.axes[-1]
    assert bar.get_ylabel() == result.prepared.table.columns[0]
    ax.figure.canvas.draw()
    low, high = alcohol.min(), alcohol.max()
    wanted = [LIGHT[f"v{charts.colours.sequential(v, low, high)}"] for v in alcohol]
    assert [to_hex(colour) for colour in drawn.get_facecolor()] == wanted


def test_rows_without_a_value_are_grey_and_said(wine):
    values = wine.X[:, 0].copy()
    values[:7] = np.nan
    ax = plot.map(wine.X[:, :2], color=values)
    (name, places, grey), (_, others, _) = dots(ax)
    assert name == "no label"
    np.testing.assert_allclose(places, wine.X[:7, :2])
    np.testing.assert_allclose(others, wine.X[7:, :2])
    assert to_hex(grey.get_facecolor()[0]) == LIGHT["quiet"]


def test_any_number_of_groups_has_a_legend():
    rng = np.random.default_rng(0)
    Y, groups = rng.normal(size=(3000, 2)), rng.integers(0, 60, 3000).astype(str)
    ax = plot.map(Y, color=groups)
    assert len(ax.get_legend().get_texts()) == charts.groups.MOST_GROUPS
    assert "40\u00a0other groups" in [text.get_text() for text in ax.get_legend().get_texts()]
    np.testing.assert_allclose(sorted_rows(every_place(ax)), sorted_rows(Y))


@pytest.mark.parametrize("dimensions", [1, 3])
def test_lines_and_space_are_seen_as_the_chart_sees_them(wine, dimensions):
    Y = wine.X[:, :dimensions]
    data = charts.scatter.__globals__["scatter_data"](Y)
    np.testing.assert_allclose(every_place(plot.map(Y)), data.points)


def test_what_a_map_cannot_be_coloured_by_is_refused(result):
    with pytest.raises(ParameterError, match="color"):
        plot.map(result, color="colour of the bottle")
    with pytest.raises(ParameterError, match="color"):
        plot.map(result.tsne, color="class")
    with pytest.raises(ParameterError, match="178 rows"):
        plot.map(result.tsne, color=[1, 2, 3])


def test_a_result_without_a_map_says_so():
    with pytest.raises(DataError, match="has no map"):
        plot.map(gnomon.run("iris", dimensions=None))


def test_bars_of_a_scree_are_the_shares_of_the_components(wine):
    pca = PCA(4, standardize=True).fit(wine.X)
    ax = plot.scree(pca, panel={"Kaiser": 3, "broken stick": 3})
    heights = [bar.get_height() for bar in ax.patches]
    values = np.linalg.eigvalsh(np.corrcoef(wine.X.T))[::-1]  # of NumPy, not of ours
    np.testing.assert_allclose(heights, 100 * values / values.sum(), atol=1e-9)
    colours = [to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert colours == [LIGHT["accent"]] * 4 + [LIGHT["quiet"]] * 9
    assert [text.get_text() for text in ax.texts if "Kaiser" in text.get_text()] == [
        " Kaiser and broken stick: 3"
    ]
    assert [line.get_xdata()[0] for line in ax.lines] == [3.5]


def test_cells_of_loadings_stand_in_the_charts_order_and_colours(wine):
    pca = PCA(3, standardize=True).fit(wine.X)
    ax = plot.loadings(pca, n_columns=8)
    (image,) = ax.images
    data = charts.loadings.__globals__["loadings_data"](pca, n_columns=8)
    np.testing.assert_allclose(image.get_array(), pca.loadings_[data.order])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [f"x{d + 1}" for d in data.order]
    colours = image.cmap(image.norm(np.asarray(image.get_array())))
    for row, d in enumerate(data.order):
        for j in range(3):
            step = charts.colours.diverging(pca.loadings_[d, j], data.largest)
            assert to_hex(colours[row, j]) == LIGHT[f"d{step}"]


def test_a_biplot_has_scores_and_arrows(wine):
    pca = PCA(2, standardize=True).fit(wine.X)
    ax = plot.biplot(pca, wine.X, wine.labels)
    np.testing.assert_allclose(sorted_rows(every_place(ax)), sorted_rows(pca.transform(wine.X)))
    tips = {
        text.get_text(): text.xy
        for text in ax.texts
        if text.get_text() in [f"x{d + 1}" for d in range(13)]
    }
    assert len(tips) == 12
    x1 = np.asarray(tips["x1"]) / pca.components_[:, 0]
    assert x1[0] == pytest.approx(x1[1])  # one factor for both directions and all arrows
    for name, tip in tips.items():
        d = int(name[1:]) - 1
        np.testing.assert_allclose(np.asarray(tip) / pca.components_[:, d], x1)
    assert ax.get_xlabel().startswith("PC1 · ")
    assert ax.get_aspect() == 1.0


def test_a_result_brings_its_scores_and_names(result):
    ax = plot.biplot(result)
    np.testing.assert_allclose(every_place(ax), result.components[:, :2])
    names = {text.get_text() for text in ax.texts}
    assert len(names & set(result.prepared.table.columns)) == 12
    assert plot.scree(result).patches
    assert plot.loadings(result).get_yticklabels()[0].get_text() in result.prepared.table.columns


def test_an_overlay_joins_each_point_with_its_other(wine):
    X, Y = wine.X[:, :2], wine.X[:, 2:4]
    ax = plot.overlay(X, Y, names=("before", "after"))
    first, second = dots(ax)
    assert (first[0], second[0]) == ("before", "after")
    np.testing.assert_allclose(first[1], X)
    np.testing.assert_allclose(second[1], Y)
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    np.testing.assert_allclose(np.asarray(lines.get_segments()), np.stack([X, Y], axis=1))
    few = plot.overlay(X[:5], Y[:5], labels=list("abcde"))
    assert {"a", "e"} <= {text.get_text() for text in few.texts}


def test_a_plot_is_saved_as_pdf(result, tmp_path):
    plot.map(result).figure.savefig(tmp_path / "map.pdf")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


def test_without_matplotlib_the_extra_is_named(monkeypatch, result):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'gnomon\[plot\]'"):
        plot.map(result)
