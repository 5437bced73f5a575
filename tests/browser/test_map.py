"""The map in a real browser, opened from disk."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from browser.hands import (
    colours_seen,
    download,
    drawn,
    inside,
    lasso,
    on_screen,
    pixels,
    point,
    rows_of,
    until,
    view,
)

from gnomon import PCA, TSNE
from gnomon.report import report
from gnomon.report.build import build

N = 150


@pytest.fixture(scope="module")
def made():
    """Three groups of plants: which they are, how tall, and what their cells hold."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 3
    X = rng.normal(size=(N, 12)) + 5 * rng.normal(size=(3, 12))[kind]
    labels = {
        "tree": np.array(["ash", "birch", "cedar"], object)[kind],
        "height": np.round(10 + 5 * rng.random(N), 2),
    }
    ids = [f"plant-{i:03d}" for i in range(N)]
    ids[7] = "=HYPERLINK(7)"
    names = [f"gene {j}" for j in range(12)]
    pca = PCA(5, random_state=0).fit(X)
    tsne = TSNE(perplexity=12, max_iter=300, random_state=0).fit(X)
    return report(X, pca=pca, tsne=tsne, labels=labels, ids=ids, names=names, title="Trees")


@pytest.fixture(scope="module")
def content(made):
    return made.content


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("map") / "report.html")


def triangle(page):
    """A triangle across the stage, in the window, that no point lies at the edge of."""
    *_, box = view(page)
    share = np.array([[0.08, 0.1], [0.62, 0.17], [0.31, 0.88]])
    return np.array([box["x"], box["y"]]) + share * [box["width"], box["height"]]


def selected_rows(page):
    name, file = download(page, "#map-csv")
    assert name == "selection.csv"
    return rows_of(file)


def bring_up(page):
    page.evaluate("document.getElementById('map').scrollIntoView({behavior: 'instant'})")


def test_it_draws_by_webgl(visit, path):
    page = visit(path, webgl=True)
    assert page.get_attribute("#map-stage", "data-drawing") == "webgl"
    until(page, lambda: colours_seen(page) > N * 4)
    assert not page.is_visible(".map-picture")


def test_a_processor_that_plays_the_graphics_card_is_not_asked_to(visit, path):
    page = visit(path, webgl=None)
    assert page.get_attribute("#map-stage", "data-drawing") == "canvas"
    drawn(page)


@pytest.mark.parametrize("webgl", [True, False])
def test_a_lasso_selects_exactly_the_rows_within_it(visit, path, content, webgl):
    page = visit(path, webgl=webgl)
    bring_up(page)
    assert page.get_attribute("#map-stage", "data-drawing") == ("webgl" if webgl else "canvas")
    polygon = triangle(page)
    expected, nearest = inside(polygon, on_screen(page, content.Y))
    assert 10 < expected.sum() < N - 10
    assert nearest > 0.1  # pixels: a point at the edge would be a matter of rounding
    lasso(page, polygon)
    assert page.inner_text("#map-selection h3") == f"{expected.sum()}\xa0rows selected"
    rows = selected_rows(page)
    assert [int(row["row"]) for row in rows] == np.flatnonzero(expected).tolist()


def test_a_download_holds_ids_labels_and_trust_and_no_formula(visit, path, content):
    page = visit(path)
    page.fill("#map-search", "plant-")
    page.wait_for_selector("#map-found li >> text=Select all")
    page.locator("#map-found li", has_text="Select all").click()
    rows = {int(row["row"]): row for row in selected_rows(page)}
    assert sorted(rows) == [i for i in range(N) if i != 7]
    page.fill("#map-search", "hyperlink")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-stage[data-focus='7']")
    page.focus("#map-stage")
    page.keyboard.press("Enter")  # the row and its neighbours
    rows |= {int(row["row"]): row for row in selected_rows(page)}
    (tree, trees), (height, heights) = content.labels
    for i in range(N):
        assert rows[i]["id"] == ("'" if i == 7 else "") + content.ids[1][i]
        assert rows[i][tree] == trees[i]
        assert float(rows[i][height]) == heights[i]
        assert float(rows[i]["trust"]) == pytest.approx(content.trust[i], abs=1e-6)


def test_the_lasso_mode_needs_no_key_and_control_adds(visit, path, content):
    page = visit(path)
    bring_up(page)
    page.click("#map-lasso")
    places = on_screen(page, content.Y)
    polygon = triangle(page)
    first, _ = inside(polygon, places)
    lasso(page, polygon, shift=False)
    other = polygon + np.array([60, 45])
    second, nearest = inside(other, places)
    assert nearest > 0.1
    page.keyboard.down("Control")
    lasso(page, other, shift=False)
    page.keyboard.up("Control")
    both = np.flatnonzero(first | second).tolist()
    assert [int(row["row"]) for row in selected_rows(page)] == both


def test_search_finds_a_row_and_the_rows_of_a_label(visit, path, content):
    page = visit(path)
    page.fill("#map-search", "PLANT-042")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-stage[data-focus='42']")
    assert page.inner_text("#map-card strong") == "plant-042"
    # What was found is found: no list stays open that says otherwise.
    page.wait_for_selector("#map-found", state="hidden")
    assert page.get_attribute("#map-search", "aria-expanded") == "false"
    page.fill("#map-search", "birch")
    page.locator("#map-found li", has_text="tree: birch").click()
    birches = np.flatnonzero(content.labels[0][1] == "birch").tolist()
    assert [int(row["row"]) for row in selected_rows(page)] == birches
    page.fill("#map-search", "no such thing")
    page.wait_for_selector("#map-found >> text=Nothing found")


def coloured_by(page, name):
    """The points as they are drawn when they are coloured by `name`."""
    before = pixels(page)
    page.select_option("#map-colour", label=name)
    page.wait_for_selector(f"#map-stage[data-colour='{name}']")
    until(page, lambda: pixels(page) != before)
    return drawn(page)


@pytest.mark.parametrize("webgl", [True, False])
def test_colours_change_and_the_legend_says_what_they_mean(visit, path, content, webgl):
    page = visit(path, webgl=webgl)
    by_tree = drawn(page)
    groups = page.locator("#map-legend .map-group").all_inner_texts()
    assert [text.split() for text in groups] == [["ash", "50"], ["birch", "50"], ["cedar", "50"]]
    by_gene = coloured_by(page, "gene 3")
    assert page.inner_text("#map-legend h3") == "gene 3"
    low, high = page.locator("#map-legend .map-ends span").all_inner_texts()
    column = content.X[:, 3]
    assert float(low.replace("−", "-")) == pytest.approx(column.min(), rel=0.01)
    assert float(high) == pytest.approx(column.max(), rel=0.01)
    by_trust = coloured_by(page, "trust")
    assert page.inner_text("#map-legend h3") == "trust"
    assert "15 nearest rows" in page.inner_text("#map-legend .map-about")
    bars = page.eval_on_selector_all(
        "#map-legend rect:not([height='6'], .map-brush)",
        "bars => bars.map(bar => ['x', 'width'].map(name => Number(bar.getAttribute(name))))",
    )
    ends = np.cumsum(np.array(bars), axis=1)  # left and right of each, none upon another
    assert len(bars) > 3
    assert (ends[1:, 0] >= ends[:-1, 1]).all()
    assert ends[0, 0] >= 0
    assert ends[-1, 1] <= 64
    assert len({by_tree, by_gene, by_trust}) == 3
    assert coloured_by(page, "tree") == by_tree
    options = page.locator("#map-colour option").all_inner_texts()
    assert options[:5] == ["one colour", "tree", "height", "trust", "density in the data"]
    assert len(options) == 1 + 2 + 2 + 5 + 12


@pytest.mark.parametrize("webgl", [True, False])
def test_a_group_can_be_hidden_and_is_then_out_of_reach(visit, path, content, webgl):
    page = visit(path, webgl=webgl)
    bring_up(page)
    drawn(page)
    all_of_them = colours_seen(page)
    page.locator("#map-legend .map-group", has_text="birch").click()
    birch = page.locator("#map-legend li:nth-child(2) button")
    assert birch.get_attribute("aria-pressed") == "false"
    assert birch.evaluate("(one) => one === document.activeElement")
    until(page, lambda: colours_seen(page) < 0.8 * all_of_them)
    polygon = triangle(page)
    within, _ = inside(polygon, on_screen(page, content.Y))
    lasso(page, polygon)
    expected = np.flatnonzero(within & (content.labels[0][1] != "birch")).tolist()
    assert [int(row["row"]) for row in selected_rows(page)] == expected
    page.click("#map-clear")
    birch.click(modifiers=["Shift"])  # only this one
    pressed = [one.get_attribute("aria-pressed") for one in page.locator(".map-group").all()]
    assert pressed == ["false", "true", "false"]
    page.click("text=Show all groups")
    until(page, lambda: colours_seen(page) > 0.95 * all_of_them)


LOSE = """() => {
  const gl = document.getElementById("map-points").getContext("webgl");
  gl.getExtension("WEBGL_lose_context").loseContext();
}"""


@pytest.mark.parametrize("midway", [False, True])
def test_a_card_that_takes_its_memory_back_takes_no_tool_with_it(visit, path, content, midway):
    """WebGL may end at any time: here while nothing happens, and while points move."""
    page = visit(path, webgl=True, moving=midway)
    bring_up(page)
    drawn(page)
    if midway:
        page.click("#map-switch >> text=PCA")
    page.evaluate(LOSE)
    page.wait_for_selector("#map-stage[data-drawing=canvas]")
    assert page.locator("#map-stage canvas").count() == 2  # the points, and what is over them
    if midway:
        page.wait_for_selector("#map-stage[data-map=PCA]")
        page.click("#map-switch >> text=t-SNE")
        page.wait_for_selector("#map-stage[data-map=t-SNE]")
    by_tree = drawn(page)
    assert coloured_by(page, "gene 3") != by_tree
    row = row_apart(content.Y)
    point(page, on_screen(page, content.Y)[row])
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")
    polygon = triangle(page)
    expected, _ = inside(polygon, on_screen(page, content.Y))
    lasso(page, polygon)
    assert [int(one["row"]) for one in selected_rows(page)] == np.flatnonzero(expected).tolist()
    page.keyboard.press("Escape")
    *_, scale, _ = view(page)
    page.focus("#map-stage")
    page.keyboard.press("+")
    assert view(page)[2] > scale
    page.click("#map-figure summary")
    assert download(page, "#map-png")[1][:4] == b"\x89PNG"


def losing(method, when="true"):
    """A script by which the card is lost as soon as one of its methods is called."""
    return f"""(() => {{
      const card = WebGLRenderingContext.prototype;
      const real = card.{method};
      card.{method} = function (...given) {{
        const result = real.apply(this, given);
        if ({when}) this.getExtension("WEBGL_lose_context")?.loseContext();
        return result;
      }};
    }})()"""


# After what the page needs of it was there; and in its first drawing.
LOSSES = [losing("getExtension", "given[0] === 'WEBGL_color_buffer_float'"), losing("drawArrays")]


@pytest.mark.parametrize("blow", LOSSES, ids=["before it starts", "while it starts"])
def test_a_card_that_is_lost_too_soon_leaves_the_plain_canvas(visit, path, blow):
    page = visit(path, webgl=True, blow=blow)
    page.wait_for_selector("#map-stage[data-drawing=canvas]")
    assert page.locator("#map-stage canvas").count() == 2  # the points, and what is over them
    by_tree = drawn(page)
    assert coloured_by(page, "gene 3") != by_tree


def row_apart(positions):
    """The row that is farthest from all others: nothing else can be meant by pointing at it."""
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return int(distances.min(axis=1).argmax())


@pytest.mark.parametrize("webgl", [True, False])
def test_the_switch_to_pca_moves_points(visit, path, content, webgl):
    page = visit(path, webgl=webgl, moving=webgl)
    bring_up(page)
    before = drawn(page)
    page.click("#map-switch >> text=PCA")
    page.wait_for_selector("#map-stage[data-map=PCA]")
    until(page, lambda: pixels(page) != before)
    row = row_apart(content.pca_map)
    point(page, on_screen(page, content.pca_map)[row])
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")
    page.click("#map-switch >> text=t-SNE")
    page.wait_for_selector("#map-stage[data-map=t-SNE]")
    row = row_apart(content.Y)
    point(page, on_screen(page, content.Y)[row])
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")


def test_the_card_names_the_row_and_its_true_neighbours(visit, path, content):
    page = visit(path)
    bring_up(page)
    row = row_apart(content.Y)
    point(page, on_screen(page, content.Y)[row])
    page.wait_for_selector("#map-card:not([hidden])")
    ids, trees = content.ids[1], content.labels[0][1]
    assert page.inner_text("#map-card strong") == ids[row]
    facts = page.locator("#map-card dl").inner_text().split("\n")
    assert facts[facts.index("tree") + 1] == trees[row]
    assert facts[facts.index("trust") + 1] == f"{round(100 * content.trust[row])}\xa0%"
    assert "Nearest in all 12 columns" in page.inner_text("#map-card")
    # The table itself, and not what the page was given, says who is near.
    distances = np.linalg.norm(content.X - content.X[row], axis=1)
    near = np.argsort(distances, kind="stable")[1:6]
    told = page.locator("#map-card .map-near .map-name:not(.map-count)").all_inner_texts()
    assert told == [ids[other] for other in near]
    page.mouse.down()
    page.mouse.up()  # the card stays, and leads on
    page.locator("#map-card .map-near button").first.click()
    page.wait_for_selector(f"#map-stage[data-focus='{near[0]}']")
    page.click("#map-card [aria-label=Close]")
    assert page.get_attribute("#map-stage", "data-focus") == ""


def differences(content, rows):
    """d of every column: difference of means over the standard deviation of all rows."""
    here = np.isin(np.arange(len(content.X)), rows)
    X = np.column_stack([content.X, content.labels[1][1]])
    return (X[here].mean(axis=0) - X[~here].mean(axis=0)) / X.std(axis=0)


def told_differences(page):
    page.wait_for_selector("#map-selection h4")
    lines = page.locator(".map-differences li")
    names = lines.locator(".map-name").all_inner_texts()
    values = [text.replace("−", "-") for text in lines.locator(".map-d").all_inner_texts()]
    return dict(zip(names, map(float, values), strict=True))


def test_what_sets_rows_apart_is_what_numpy_says(visit, path, content):
    page = visit(path)
    page.fill("#map-search", "cedar")
    page.locator("#map-found li", has_text="tree: cedar").click()
    told = told_differences(page)
    trees = content.labels[0][1]
    d = differences(content, np.flatnonzero(trees == "cedar"))
    # All of the cedars and nothing else: 0 and 1 with the mean 1/3.
    assert told.pop("tree: cedar") == pytest.approx(1 / np.sqrt(1 / 3 * 2 / 3), rel=0.05)
    names = [*content.names, content.labels[1][0]]
    strongest = sorted(zip(names, d, strict=True), key=lambda pair: -abs(pair[1]))[:8]
    assert list(told) == [name for name, _ in strongest]
    for name, value in strongest:
        assert told[name] == pytest.approx(value, rel=0.051)  # two digits are shown
    assert "All 12\xa0columns compared" in page.inner_text("#map-selection")
    page.locator(".map-differences button").first.click()
    page.wait_for_selector(f"#map-legend >> text={strongest[0][0]}")


def test_beyond_the_budget_differences_are_estimated_and_said_to_be(visit, content, tmp_path):
    whole = len(build(content).encode())
    page_text = build(content, budget=whole - 15_000)
    path = tmp_path / "small.html"
    path.write_text(page_text, encoding="utf-8")
    page = visit(path)
    held = page.locator("#map-colour optgroup[label=Columns] option").count()
    assert 0 < held < content.d
    page.fill("#map-search", "cedar")
    page.locator("#map-found li", has_text="tree: cedar").click()
    told = told_differences(page)
    said = page.inner_text("#map-selection")
    assert f"{held}\xa0columns compared as they are" in said
    assert "estimated from the components' scores and loadings" in said
    cedars = np.flatnonzero(content.labels[0][1] == "cedar")
    d = dict(zip([*content.names, "height"], differences(content, cedars), strict=True))
    estimated = page.locator(".map-differences li", has_text="estimated").locator(".map-name")
    assert estimated.count() >= 2
    for name in estimated.all_inner_texts():
        # Five components hold most of these columns; 8 bits and what the rest holds are missing.
        assert told[name] == pytest.approx(d[name], abs=0.25)


def test_the_keyboard_goes_from_point_to_point_selects_and_clears(visit, path, content):
    page = visit(path)
    bring_up(page)
    page.focus("#map-fit")
    for _ in range(4):  # the menus
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "map-stage"
    page.keyboard.press("ArrowRight")
    first = int(page.get_attribute("#map-stage", "data-focus"))
    page.keyboard.press("ArrowRight")
    second = int(page.get_attribute("#map-stage", "data-focus"))
    assert content.Y[second, 0] > content.Y[first, 0]
    assert content.ids[1][second] in page.inner_text("#map-status")
    page.keyboard.press("Enter")
    near = sorted([second, *content.neighbors[second].tolist()])
    assert [int(row["row"]) for row in selected_rows(page)] == near
    page.focus("#map-stage")
    *_, scale, _ = view(page)
    page.keyboard.press("+")
    assert view(page)[2] > scale
    x = view(page)[0]
    page.keyboard.press("Shift+ArrowRight")
    assert view(page)[0] > x
    page.keyboard.press("0")
    assert view(page)[2] == pytest.approx(scale)
    page.keyboard.press("Escape")
    assert not page.is_visible("#map-selection")
    assert page.get_attribute("#map-stage", "aria-describedby") == "map-keys"


# The hint goes away by itself, on a slow machine before anybody looks.
REMEMBER_THE_HINT = """() => {
  const hint = document.getElementById("map-hint");
  const look = () => { if (hint.checkVisibility()) hint.dataset.seen = ""; };
  new MutationObserver(look).observe(hint, {attributeFilter: ["hidden"]});
}"""


def test_the_wheel_scrolls_the_page_until_the_map_is_in_use(visit, path):
    page = visit(path)
    bring_up(page)
    *_, scale, box = view(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.evaluate(REMEMBER_THE_HINT)
    page.mouse.wheel(0, -20)
    page.wait_for_selector("#map-hint[data-seen]", state="attached")
    assert view(page)[2] == scale
    page.locator("#map-stage").focus()
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        f"Number(document.getElementById('map-stage').dataset.view.split(' ')[2]) > {1.2 * scale}"
    )


def swipe(page, x, y, up):
    """One finger, from (x, y) up the screen."""
    fingers = page.context.new_cdp_session(page)

    def touch(kind, *points):
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": x, "y": y})
    for step in range(1, 9):
        if up:
            touch("touchMove", {"x": x, "y": y - up * step / 8})
    touch("touchEnd")
    fingers.detach()


def test_a_finger_scrolls_the_page_until_it_taps_the_map(visit, path):
    page = visit(path, width=400)
    bring_up(page)
    *_, box = view(page)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before, top = page.get_attribute("#map-stage", "data-view"), page.evaluate("scrollY")
    swipe(page, *middle, 120)
    page.wait_for_function(f"scrollY > {top + 40}")
    assert page.get_attribute("#map-stage", "data-view") == before
    bring_up(page)
    *_, box = view(page)
    swipe(page, box["x"] + 6, box["y"] + 6, 0)  # a tap, where no point is
    page.wait_for_function("document.activeElement.id === 'map-stage'")
    top = page.evaluate("scrollY")
    swipe(page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 120)
    page.wait_for_function(f"document.getElementById('map-stage').dataset.view !== '{before}'")
    assert page.evaluate("scrollY") == top


def test_figures_hold_what_is_seen_with_legend_title_and_caption(visit, path, content):
    page = visit(path, scheme="dark")
    page.click("#map-figure summary")
    page.fill("#map-figure-title", "Trees & <shrubs>")
    page.select_option("#map-figure-width", label="one column, 85 mm")
    name, png = download(page, "#map-png")
    assert (name, png[:8]) == ("map.png", b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20], "big") == round(85 / 25.4 * 300)
    name, svg = download(page, "#map-svg")
    assert name == "map.svg"
    root = ET.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("width") == "85mm"
    dots = [one.get("d") for one in root.iter(f"{space}path")]
    assert sum(one.count("M") for one in dots) == N
    assert root.find(f"{space}title").text == "Trees & <shrubs>"
    assert root.find(f"{space}rect").get("fill") == "#ffffff"  # light, though the page is dark
    texts = [text.text for text in root.iter(f"{space}text")]
    assert texts[0] == "Trees & <shrubs>"
    named = [text.text for text in root.iter(f"{space}text") if text.get("class") == "name"]
    assert sorted(named) == ["ash", "birch", "cedar"]
    assert {"ash (50)", "birch (50)", "cedar (50)", "tree"} <= set(texts)
    kept = round(100 * content.trust.mean())
    assert f"keeps {kept}\xa0% of each row's 15 nearest rows." in " ".join(texts)
    # A quantity has a colour bar with the ends of its range.
    page.keyboard.press("Escape")
    coloured_by(page, "gene 3")
    page.click("#map-figure summary")
    page.select_option("#map-figure-scheme", "dark")
    root = ET.fromstring(download(page, "#map-svg")[1])
    texts = [text.text for text in root.iter(f"{space}text")]
    column = content.X[:, 3]
    at = texts.index("gene 3")
    ends = [float(text.replace("−", "-")) for text in texts[at + 1 : at + 3]]
    assert ends == pytest.approx([column.min(), column.max()], rel=0.01)
    assert root.find(f"{space}rect").get("fill") == "#14171c"


def test_no_name_stands_on_another_group(visit, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"the group called {letter}" for letter in "abcdefgh"]
    group = np.arange(320) % len(names)
    X = rng.normal(size=(320, 6))
    Y = np.column_stack([rng.normal(size=320), 0.6 * group + 0.1 * rng.normal(size=320)])
    Y = np.concatenate([Y, [[-9, -6], [9, 10]]])  # so that the column is a small part of the map
    X = np.concatenate([X, X[:2]])
    labels = {"group": np.array([*names, None], object)[[*group, -1, -1]]}
    page = visit(report(X, map=Y, labels=labels).save(tmp_path / "report.html"))
    page.click("#map-figure summary")
    root = ET.fromstring(download(page, "#map-svg")[1])
    space = "{http://www.w3.org/2000/svg}"
    up = []  # where the groups are, in pixels from the top
    for path in root.iter(f"{space}path"):
        places = np.array([place.split("h")[0].split() for place in path.get("d").split("M")[1:]])
        if len(places) == 40:
            up.append(float(places[:, 1].astype(float).mean()))
    assert len(up) == len(names)
    up.sort(reverse=True)
    written = [text for text in root.iter(f"{space}text") if text.get("class") == "name"]
    assert written
    for text in written:
        middle = float(text.get("y")) - 0.35 * float(text.get("font-size"))
        assert names[int(np.abs(np.array(up) - middle).argmin())] == text.text


def test_a_group_among_the_rows_of_a_larger_one_has_no_name(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = rng.normal(size=(300, 2)) + [[20, 0]] * (np.arange(300) >= 200)[:, None]
    labels = np.array(["large"] * 180 + ["mixed in"] * 20 + ["apart"] * 100, object)
    page = visit(report(X, map=Y, labels={"group": labels}).save(tmp_path / "report.html"))
    page.click("#map-figure summary")
    root = ET.fromstring(download(page, "#map-svg")[1])
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert {t.text for t in texts if t.get("class") == "name"} == {"large", "apart"}
    assert "mixed in (20)" in [t.text for t in texts]


def test_ids_are_copied(visit, path, content):
    page = visit(path)
    page.fill("#map-search", "plant-00")
    page.locator("#map-found li", has_text="Select all").click()
    page.click("#map-copy")
    page.wait_for_selector("#map-status >> text=9\xa0ids copied")
    copied = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert copied == [content.ids[1][i] for i in range(10) if i != 7]


def test_links_of_other_sections_lead_to_their_row(visit, path):
    page = visit(path)
    link = page.locator("a[href^='#row-']").first
    row = link.get_attribute("href").removeprefix("#row-")
    link.click()
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")


def test_light_and_dark_follow_the_system_until_the_reader_chooses(visit, path):
    page = visit(path, scheme="dark", webgl=True)
    dark = drawn(page)
    surface = "getComputedStyle(document.getElementById('map-stage')).backgroundColor"
    assert page.evaluate(surface) == "rgb(20, 23, 28)"
    page.click("text=Light")
    assert page.evaluate(surface) == "rgb(255, 255, 255)"
    until(page, lambda: pixels(page) != dark)
    page.emulate_media(color_scheme="light")
    page.click("text=Dark")
    assert page.evaluate(surface) == "rgb(20, 23, 28)"
    page.emulate_media(media="print")
    assert page.is_visible(".map-picture")
    assert not page.is_visible("#map-tool")
