"""The map as a component: two of them on a page that is not ours, each with its own data."""

import numpy as np
import pytest
from browser.conftest import watch
from browser.hands import inside, lasso, until

from gnomon import PCA
from gnomon.charts.theme import STYLE
from gnomon.report.build import PAGE, asset
from gnomon.report.content import gather
from gnomon.report.payload import payload

PLACES = ("left", "right")
PAGE_OF_OTHERS = """<!doctype html><meta charset="utf-8"><title>Two maps</title>
<div style="display: grid; grid-template-columns: 1fr 1fr; gap: 1rem">
<article id="one"></article><article id="two"></article></div>"""
MOUNT = """async (texts) => {
  window.heard = [];
  window.maps = [];
  for (const [i, place] of ["one", "two"].entries()) {
    const prefix = ["left", "right"][i];
    const map = await gnomon.mountMap(
      document.getElementById(place), JSON.parse(texts[i]), { prefix });
    for (const name of ["select", "focus", "colour", "filter", "map", "share"]) {
      map.on(name, (detail) => {
        const rows = detail.rows?.length === undefined ? detail.rows : [...detail.rows];
        heard.push([prefix, name, { ...detail, ...(rows === undefined ? {} : { rows }) }]);
      });
    }
    await map.ready;
    maps.push(map);
  }
}"""


@pytest.fixture(scope="module")
def contents():
    made = []
    for seed, (n, kinds) in enumerate([(90, ["oak", "elm"]), (120, ["red", "blue", "green"])]):
        rng = np.random.default_rng(seed)
        kind = np.arange(n) % len(kinds)
        X = rng.normal(size=(n, 4)) + 7 * rng.normal(size=(len(kinds), 4))[kind]
        labels = [("kind", np.array(kinds, object)[kind])]
        names = [f"{'tc'[seed]}{j}" for j in range(4)]
        pca = PCA(3, random_state=0).fit(X)
        made.append(gather(X, pca=pca, names=names, labels=labels, title="A table"))
    return made


@pytest.fixture
def page(browser, contents):
    context = browser.new_context(viewport={"width": 1500, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    seen, _ = watch(page)
    page.set_content(PAGE_OF_OTHERS)
    page.add_style_tag(content="\n".join([PAGE, STYLE, asset("page.css")]))
    page.add_script_tag(content=asset("page.js"))
    page.evaluate(MOUNT, [payload(content).text for content in contents])
    yield page
    context.close()
    assert seen == {"requests": [], "errors": [], "dialogs": []}


def heard(page, name):
    """Who said what, of one kind of event."""
    told = page.evaluate("heard")
    return [(who, detail) for who, kind, detail in told if kind == name]


def places(page, prefix, positions):
    """Where rows are in the window."""
    stage = page.locator(f"#{prefix}-stage")
    x, y, scale = map(float, stage.get_attribute("data-view").split())
    box = stage.bounding_box()
    middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    return middle + scale * (positions - [x, y]) * [1, -1], box


def test_each_map_draws_its_own_data_and_no_id_is_given_twice(page, contents):
    for prefix, content in zip(PLACES, contents, strict=True):
        groups = page.locator(f"#{prefix}-legend .map-group .map-name").all_inner_texts()
        assert groups == sorted({str(value) for value in content.labels[0][1]})
        inked = page.evaluate(
            """(id) => {
              const points = document.getElementById(id);
              const pencil = points.getContext("2d");
              const {data} = pencil.getImageData(0, 0, points.width, points.height);
              return data.filter((value, i) => i % 4 === 3 && value > 0).length;
            }""",
            f"{prefix}-points",
        )
        assert inked > 200
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    own = {name.partition("-")[0] for name in ids}
    assert own == {"one", "two", *PLACES}
    # Every label and description leads to an element of the same map.
    lead = page.eval_on_selector_all(
        "[for], [aria-controls], [aria-describedby]",
        "all => all.map(one => [one.closest('article').id, one.getAttribute('for') ??"
        " one.getAttribute('aria-controls') ?? one.getAttribute('aria-describedby')])",
    )
    assert len(lead) >= 6
    assert {(place, to.partition("-")[0]) for place, to in lead} == {
        ("one", "left"),
        ("two", "right"),
    }


def test_what_happens_to_one_map_does_not_happen_to_the_other(page, contents):
    at, box = places(page, "right", contents[1].pca_map)
    near, far = np.array([12, 12]), np.array([0.7 * box["width"], 0.6 * box["height"]])
    corners = np.array([near, [far[0], near[1]], far, [near[0], far[1]]])
    polygon = corners + np.array([box["x"], box["y"]])
    expected, nearest = inside(polygon, at)
    assert nearest > 0.1
    assert 5 < expected.sum() < len(at)
    lasso(page, polygon)
    rows = np.flatnonzero(expected).tolist()
    assert heard(page, "select") == [("right", {"rows": rows})]
    assert page.is_visible("#right-selection")
    assert not page.is_visible("#left-selection")
    # Colours, filters and keys.
    page.select_option("#left-colour", label="t1")
    until(page, lambda: heard(page, "colour") == [("left", {"name": "t1"})])
    assert page.get_attribute("#right-stage", "data-colour") in (None, "")
    page.click("#right-legend .map-group >> text=blue")
    assert heard(page, "filter") == [("right", {"rows": 80})]
    page.focus("#left-stage")
    page.keyboard.press("ArrowRight")
    assert {who for who, _ in heard(page, "focus") if who == "left"} == {"left"}
    assert page.is_visible("#left-card")
    assert not page.is_visible("#right-card")
    page.keyboard.press("Escape")
    assert not page.is_visible("#left-card")
    assert page.is_visible("#right-selection")


def test_a_view_is_restored_by_the_map_that_it_is_of(page):
    page.evaluate("maps[0].select(Uint32Array.of(3, 5))")
    page.click("#left-share")
    ((who, detail),) = heard(page, "share")
    assert who == "left"
    assert page.evaluate("location.hash") == ""  # the component knows no address
    page.evaluate("maps[0].select(null)")
    assert page.evaluate("(state) => maps[1].restore(state)", detail["state"]) is False
    assert page.evaluate("(state) => maps[0].restore(state)", detail["state"]) is True
    assert heard(page, "select")[-1] == ("left", {"rows": [3, 5]})
