"""What holds for all charts: well formed, safe, alone, and unmoved by the worst names."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gnomon import charts

HOSTILE = [
    "</svg><script>alert(1)</script>",
    "\"quotes\" and 'quotes' & <b>",
    "a\u2028b\u2029c\nd\te",
    "x" * 100_000,
    "",
    "twice",
    "twice",
    "\u202eturned\x00\x1b\ud800\uffff",
    "]]><![CDATA[ --> &#0;",
    '" onload="alert(1)',
]

DRAWERS = {
    "scree": lambda model, X: charts.scree(model),
    "scree with rules": lambda model, X: charts.scree(model, panel=dict.fromkeys(HOSTILE, 2)),
    "cumulative": lambda model, X: charts.cumulative(model),
    "loadings": lambda model, X: charts.loadings(model),
    "reconstruction": lambda model, X: charts.reconstruction(model),
    "column errors": lambda model, X: charts.column_errors(model),
    "biplot": lambda model, X: charts.biplot(model, X),
    "biplot by group": lambda model, X: charts.biplot(
        model, X, [HOSTILE[i % len(HOSTILE)] for i in range(len(X))]
    ),
    "biplot by value": lambda model, X: charts.biplot(model, X, np.linspace(0, 1, len(X))),
    "correlation circle": lambda model, X: charts.correlation_circle(model),
    "scatter by group": lambda model, X: charts.scatter(
        np.asarray(model.transform(X))[:, :2], [HOSTILE[i % len(HOSTILE)] for i in range(len(X))]
    ),
    "maps": lambda model, X: charts.maps(
        {name: np.asarray(model.transform(X))[:, :d] for d, name in enumerate(HOSTILE[:3], 1)},
        [HOSTILE[i % len(HOSTILE)] for i in range(len(X))],
        notes={HOSTILE[0]: HOSTILE},
    ),
    "overlay": lambda model, X: charts.overlay(
        np.asarray(X)[:, :2],
        np.asarray(X)[::-1, :2],
        [HOSTILE[i % len(HOSTILE)] for i in range(len(X))],
        names=tuple(HOSTILE[:2]),
    ),
    "images": lambda model, X: charts.images(
        np.asarray(X)[:4], (1, np.shape(X)[1]), across=2, names=HOSTILE[:2]
    ),
    "photographs": lambda model, X: charts.images(
        np.asarray(X)[:4], (1, np.shape(X)[1]), brightness=True
    ),
    "signed images": lambda model, X: charts.images(
        np.asarray(X)[:4], (np.shape(X)[1], 1), signed=True
    ),
}
SEVERAL_AXES = {"biplot", "circle", "scatter", "maps", "overlay"}
ONE_AXIS = [name for name in DRAWERS if not SEVERAL_AXES & set(name.split())]
every_chart = pytest.mark.parametrize("draw", DRAWERS.values(), ids=DRAWERS.keys())
every_chart_of_one = pytest.mark.parametrize(
    "draw", [DRAWERS[name] for name in ONE_AXIS], ids=ONE_AXIS
)


def assert_sound(chart):
    """Well formed, safe, finite numbers only, and as large as it says."""
    root = ElementTree.fromstring(chart.svg)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "title",
        "desc",
        "style",
        "rect",
        "path",
        "circle",
        "text",
    }
    known = {"class", "role", "viewBox", "width", "height", "x", "y", "rx", "cx", "cy", "r", "d"}
    assert {name for element in root.iter() for name in element.attrib} <= known | {"text-anchor"}
    for element in root.iter():
        for name in {"x", "y", "width", "height", "cx", "cy", "r", "rx", "d"} & set(element.attrib):
            assert re.fullmatch(r"[-0-9. MLhlz%]+", element.get(name)), (name, element.get(name))
    assert root.get("viewBox") == f"0 0 {chart.width:g} {chart.height:.1f}".removesuffix(".0")
    assert root.get("role") == "img"
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert root[0].text == chart.title
    assert root[1].text == chart.description


@pytest.fixture
def hostile(fit):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, len(HOSTILE))) @ rng.normal(size=(len(HOSTILE), len(HOSTILE)))
    return fit(X, HOSTILE), X


@every_chart
def test_a_chart_is_sound(draw, fit, table):
    X, names = table
    assert_sound(draw(fit(X, names), X))


@every_chart
def test_hostile_names_are_shown_and_do_nothing(draw, hostile):
    chart = draw(*hostile)
    assert_sound(chart)
    assert "<script" not in chart.svg
    assert chart.svg.count("</svg>") == 1
    assert "onload=&quot;" in chart.svg or 'onload="' not in chart.svg
    assert not set("\u2028\u2029\u202e\x00\x1b\ud800\uffff") & set(chart.svg)
    # A name of 100,000 letters must not make a file of that size.
    assert len(chart.svg) < 60_000


def test_hostile_names_are_read_back_literally(hostile, read):
    tips = " ".join(read(charts.loadings(hostile[0])).tips())
    assert "</svg><script>alert(1)</script>" in tips
    assert "\"quotes\" and 'quotes' & <b>" in tips
    assert "(no name)" in tips
    assert "a b c d e" in tips


@every_chart
def test_nothing_outside_the_chart_is_referred_to(draw, fit, table):
    X, names = table
    svg = draw(fit(X, names), X).svg
    assert svg.count("http") == svg.count('xmlns="http://www.w3.org/2000/svg"') == 1
    for word in ("url(", "@import", "href", "<script", "<image", "<foreignObject", "style="):
        assert word not in svg


@every_chart
def test_charts_can_share_a_page(draw, fit, table):
    """No ids to clash, every class is ours, and the style sheet is the same text in all."""
    X, names = table
    one, other = draw(fit(X, names), X).svg, charts.scree(fit(X, names)).svg
    styles = []
    for svg in (one, other):
        root = ElementTree.fromstring(svg)
        styles.append(root.find("{http://www.w3.org/2000/svg}style").text)
        assert not any("id" in element.attrib for element in root.iter())
        classes = {name for e in root.iter() for name in e.get("class", "").split()}
        assert all(name.startswith("gn-") for name in classes)
    assert styles[0] == styles[1]
    selectors = re.findall(r"[^{}]+(?={)", re.sub(r"@media[^{]+{", "", styles[0]))
    assert all(".gn-" in selector for selector in selectors)


@every_chart
def test_every_class_used_is_styled(draw, fit, table):
    X, names = table
    root = ElementTree.fromstring(draw(fit(X, names), X).svg)
    style = root.find("{http://www.w3.org/2000/svg}style").text
    used = {name for e in root.iter() for name in e.get("class", "").split()}
    assert {name for name in used if not re.search(rf"\.{name}[^\w-]", style)} == set()


@every_chart
def test_the_same_model_gives_the_same_chart(draw, fit, table):
    X, names = table
    assert draw(fit(X, names), X).svg == draw(fit(X, names), X).svg


@every_chart
def test_columns_without_names_are_numbered(draw, fit, table):
    assert_sound(draw(fit(table[0]), table[0]))


@every_chart
def test_constant_data_are_drawn_and_told(draw, fit):
    X = np.ones((10, 4))
    chart = draw(fit(X), X)
    assert_sound(chart)
    told = ("constant", "no variance", "all in one place")
    assert any(words in chart.description for words in told)


@every_chart
def test_two_hundred_columns_stay_within_the_drawing(draw, fit, read):
    X = np.random.default_rng(2).normal(size=(50, 200)) * np.linspace(1, 3, 200)
    chart = draw(fit(X, [f"gene {i}" for i in range(200)], standardize=False), X)
    assert_sound(chart)
    assert len(chart.svg) < 100_000
    for text in read(chart).all("text"):
        assert 0 <= float(text.get("x")) <= chart.width
        assert 0 <= float(text.get("y")) <= chart.height


@every_chart_of_one
def test_one_component_is_drawn(draw, fit, table):
    X, names = table
    for whole in (True, False):
        assert_sound(draw(fit(X, names, n_components=1, whole=whole), X))


@every_chart_of_one
def test_one_column_is_drawn(draw, fit):
    X = np.arange(5.0)[:, None]
    assert_sound(draw(fit(X, ["only"]), X))


@every_chart
def test_huge_and_tiny_numbers_are_drawn(draw, fit, table):
    X, names = table
    for scale in (1e120, 1e-120):
        assert_sound(draw(fit(X * scale, names, standardize=False), X * scale))
