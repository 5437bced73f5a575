"""The whole page, wide and narrow, light and dark, with and without its script."""

import numpy as np
import pytest
from browser.hands import overflow, painted

from gnomon import PCA, TSNE, samples
from gnomon.report import report


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    iris = samples.load("iris")
    page = report(
        iris.X,
        pca=PCA(4, random_state=0).fit(iris.X),
        tsne=TSNE(max_iter=300, random_state=0).fit(iris.X),
        labels={"species": np.asarray(iris.labels, object)},
        names=iris.columns,
        title="Iris",
    )
    return page.save(tmp_path_factory.mktemp("layout") / "report.html")


@pytest.mark.parametrize("width", [1600, 1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("script", [True, False])
def test_nothing_overflows_and_charts_and_tables_are_there(visit, path, width, scheme, script):
    page = visit(path, width=width, scheme=scheme, script=script)
    assert overflow(page) <= 0
    charts = page.locator("svg.gn-chart:visible")
    assert charts.count() >= 6
    assert page.locator("table:visible").count() >= 1
    assert page.is_visible("#map-tool") == script
    assert page.is_visible(".map-picture") == (not script)
    assert page.locator("#map .map-picture svg").count() == 2
    for box in (one.bounding_box() for one in page.locator("section, section > *:visible").all()):
        assert box is None or box["x"] + box["width"] <= width + 0.5


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_overflows_while_a_row_is_looked_at_and_rows_are_selected(visit, path, width):
    page = visit(path, width=width)
    page.fill("#map-search", "setosa")
    page.locator("#map-found li", has_text="species: setosa").click()
    page.wait_for_selector("#map-selection h4")
    page.evaluate("location.hash = '#row-140'")
    page.wait_for_selector("#map-card:not([hidden])")
    painted(page)
    assert overflow(page) <= 0
    stage, card = (page.locator(name).bounding_box() for name in ("#map-stage", "#map-card"))
    assert card["x"] >= stage["x"]
    assert card["x"] + card["width"] <= stage["x"] + stage["width"]
    if width == 400:  # below the map, where it covers nothing
        assert card["y"] >= stage["y"] + stage["height"]
    else:
        assert card["y"] + card["height"] <= stage["y"] + stage["height"]
