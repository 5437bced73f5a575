"""Two maps on one page in a real browser: what is drawn, morphed and selected is Python's."""

import numpy as np
import pytest
from browser.hands import lasso, on_screen, overflow, painted, point, until
from procrustes.test_changes import drift

from gnomon import compare

N = 200


@pytest.fixture(scope="module")
def made():
    X, Y, movers = drift(2, 12, 0.1, 0.05, n=N, groups=3)
    labels = np.array(["ash", "birch", "cedar"], object)[np.arange(N) % 3]
    page = compare(X, Y).report(
        names=("before", "<b>after</b>"),
        ids=[f"plant-{i}" for i in range(N)],
        labels=labels,
        n_permutations=9,
    )
    return page, movers


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    return made[0].save(tmp_path_factory.mktemp("pair") / "compared.html")


def data_of(page, stage, name):
    return page.get_attribute(f"#{stage}-stage", f"data-{name}")


def dark_pixels(page, stage, places):
    """Which places in the window are drawn on by a point of that map."""
    box = page.locator(f"#{stage}-stage").bounding_box()
    inside = (places - [box["x"] + 1, box["y"] + 1]).tolist()
    return page.evaluate(
        """([id, places]) => {
          const canvas = document.getElementById(id);
          const ratio = canvas.width / canvas.clientWidth;
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const at = (x, y) => [...data.subarray(4 * (Math.round(y) * canvas.width + Math.round(x)))
            .subarray(0, 3)];
          const empty = at(2, canvas.height - 3).join();
          return places.map(([x, y]) => at(x * ratio, y * ratio).join() !== empty);
        }""",
        [f"{stage}-points", inside],
    )


def test_both_maps_draw_every_row_where_python_puts_it(visit, path, made):
    page = visit(path)
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    for stage, positions in zip(("map", "other"), made[0].content.maps, strict=True):
        assert all(dark_pixels(page, stage, on_screen(page, positions, stage)))
    assert page.inner_text("#other-stage .map-caption") == "<b>after</b>"


def test_the_slider_carries_every_point_along_a_straight_line(visit, path, made):
    page = visit(path)
    first, second = made[0].content.maps
    for share in (0.25, 1.0, 0.0):
        page.locator("#map-morph").evaluate(
            "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input')); }",
            str(share),
        )
        until(page, lambda share=share: data_of(page, "map", "morph") == f"{share:g}")
        between = first + share * (second - first)
        assert all(dark_pixels(page, "map", on_screen(page, between, "map")))
        names = {1.0: "<b>after</b>", 0.0: "before"}
        caption = names.get(share, f"{100 * share:.0f} % of the way to <b>after</b>")
        assert page.inner_text("#map-stage .map-caption") == caption
    far = np.argmax(np.linalg.norm(second - first, axis=1))
    assert not dark_pixels(page, "map", on_screen(page, second[[far]] + 3, "map"))[0]


def test_the_play_button_goes_all_the_way(visit, path):
    page = visit(path)
    page.click("#map-play")
    until(page, lambda: data_of(page, "map", "morph") == "1")
    until(page, lambda: page.inner_text("#map-play") == "Play")


@pytest.mark.parametrize(("here", "there"), [("map", "other"), ("other", "map")])
def test_one_cursor_shows_the_row_on_both(visit, path, made, here, there):
    page = visit(path)
    positions = made[0].content.maps[here == "other"]
    row = int(np.argmax(positions[:, 0]))
    point(page, on_screen(page, positions[[row]], here)[0])
    until(page, lambda: data_of(page, there, "focus") == str(row))
    assert data_of(page, here, "focus") == str(row)
    assert f"plant-{row}" in page.inner_text("#map-card")
    assert page.locator("#other-card").is_hidden()


@pytest.mark.parametrize("here", ["map", "other"])
def test_one_selection_marks_both_and_leaves_arrows(visit, path, made, here):
    page = visit(path)
    positions = made[0].content.maps[here == "other"]
    places = on_screen(page, positions, here)
    low, high = places.min(axis=0), places.max(axis=0)
    middle = (low + high) / 2
    edge = np.sort(places[:, 0])[N // 3 : N // 3 + 2].mean()  # between two rows
    corners = [
        [low[0] - 9, low[1] - 9],
        [edge, low[1] - 9],
        [edge, high[1] + 9],
        [low[0] - 9, high[1] + 9],
    ]
    assert low[0] < middle[0]
    lasso(page, np.array(corners))
    wanted = int((places[:, 0] < edge).sum())
    for stage in ("map", "other"):
        until(page, lambda stage=stage: data_of(page, stage, "selected") == str(wanted))
        until(page, lambda stage=stage: data_of(page, stage, "trails") == str(wanted))
    assert f"{wanted} rows selected" in page.inner_text("#map-selection").replace("\u00a0", " ")
    page.uncheck("#map-trails")
    until(page, lambda: data_of(page, "other", "trails") == "0")


def colours_near(page, stage, places):
    """Colours drawn over the points within a pixel of places in the window."""
    box = page.locator(f"#{stage}-stage").bounding_box()
    inside = (places - [box["x"] + 1, box["y"] + 1]).tolist()
    return page.evaluate(
        """([id, places]) => {
          const canvas = document.getElementById(id);
          const ratio = canvas.width / canvas.clientWidth;
          return places.map(([x, y]) => {
            const [left, top] = [Math.round(x * ratio) - 1, Math.round(y * ratio) - 1];
            const {data} = canvas.getContext("2d").getImageData(left, top, 3, 3);
            return Array.from({length: 9}, (_, i) => [...data.subarray(4 * i, 4 * i + 3)]);
          });
        }""",
        [f"{stage}-overlay", inside],
    )


def test_an_arrow_has_the_colour_of_its_row(visit, path, made):
    page = visit(path)
    changed = made[0].content.found.changes.changed
    first, second = made[0].content.maps
    page.click("#map-changed")
    until(page, lambda: data_of(page, "map", "trails") == str(len(changed)))
    groups = page.evaluate(
        """() => [...document.querySelectorAll("#map-legend .map-swatch")]
          .map((swatch) => getComputedStyle(swatch).backgroundColor.match(/[0-9]+/g).map(Number))"""
    )
    along = on_screen(page, first[changed] + 0.4 * (second - first)[changed], "map")
    near = np.array(colours_near(page, "map", along), float)
    away = np.abs(near[:, :, None] - np.array(groups)).max(axis=3).min(axis=1)
    has_colour = np.argmin(away, axis=1) == changed % len(groups)
    assert np.mean(has_colour) > 0.7  # others may cross it, and names stand above it


def test_rows_that_changed_company_are_selected_by_a_button_and_looked_at_by_a_link(
    visit, path, made
):
    page = visit(path)
    changed = made[0].content.found.changes.changed
    assert set(made[1].tolist()) == set(changed.tolist())
    page.click("#map-changed")
    until(page, lambda: data_of(page, "other", "selected") == str(len(changed)))
    page.click(f"a[href='#row-{changed[0]}']")
    until(page, lambda: data_of(page, "other", "focus") == str(changed[0]))


def test_colours_and_filters_are_of_both(visit, path):
    page = visit(path)
    page.click("#map-legend .map-group >> nth=0")
    until(page, lambda: data_of(page, "map", "seen") is not None)
    until(page, lambda: data_of(page, "other", "seen") == data_of(page, "map", "seen"))
    assert 0 < int(data_of(page, "other", "seen")) < N
    page.select_option("#map-colour", label="neighbours kept")
    until(page, lambda: data_of(page, "other", "colour") == "neighbours kept")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(visit, path, width, scheme):
    page = visit(path, width=width, scheme=scheme)
    painted(page)
    assert overflow(page) <= 0
    boxes = [page.locator(f"#{stage}-stage").bounding_box() for stage in ("map", "other")]
    beside = boxes[0]["y"] == boxes[1]["y"]
    assert beside == (width == 1280)
    assert boxes[0]["height"] == boxes[1]["height"]
    play = page.locator("#map-play").bounding_box()
    assert play["x"] + play["width"] <= boxes[beside]["x"] + boxes[beside]["width"] + 1
    slider = page.locator("#map-morph").bounding_box()["y"]
    assert slider > boxes[0]["y"] + boxes[0]["height"]
    assert (slider > boxes[1]["y"]) == beside  # below both, or between them


def test_rows_that_kept_company_are_grey_behind_the_others(visit, made, tmp_path):
    found = made[0].content.found
    page = visit(found.report(n_permutations=9).save(tmp_path / "plain.html"))
    assert page.input_value("#map-colour") == "0"
    legend = page.inner_text("#map-legend").split("\n")
    assert [each for each in legend if "company" in each] == [
        "company", "changed company", "kept company"
    ]  # fmt: skip
    swatch = page.locator("#map-legend .map-swatch").first
    colour = swatch.evaluate("(it) => getComputedStyle(it).backgroundColor")
    changed = made[0].content.maps[0][found.changes.changed]
    seen = colours_at(page, "map", on_screen(page, changed, "map"))
    wanted = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    assert np.abs(np.array(seen) - wanted).max() < 60  # dots are not quite opaque


def colours_at(page, stage, places):
    """Red, green and blue where points of that map are drawn."""
    box = page.locator(f"#{stage}-stage").bounding_box()
    inside = (places - [box["x"] + 1, box["y"] + 1]).tolist()
    return page.evaluate(
        """([id, places]) => {
          const canvas = document.getElementById(id);
          const ratio = canvas.width / canvas.clientWidth;
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return places.map(([x, y]) => {
            const at = 4 * (Math.round(y * ratio) * canvas.width + Math.round(x * ratio));
            return [...data.subarray(at, at + 3)];
          });
        }""",
        [f"{stage}-points", inside],
    )


def test_without_a_script_both_maps_are_a_picture(visit, path):
    page = visit(path, script=False)
    assert page.is_visible(".map-picture svg")
    assert not page.is_visible("#map-tool")


def test_the_card_tells_the_nearest_rows_in_both_tables(visit, path, made):
    page = visit(path)
    first, second = made[0].content.near
    row = int(made[0].content.changed.argmax())
    page.fill("#map-search", f"plant-{row}")
    page.press("#map-search", "Enter")
    until(page, lambda: data_of(page, "map", "focus") == str(row))
    sides = page.locator("#map-card .map-sides > div")
    titles = ["Nearest in before", "Nearest in <b>after</b>"]
    for at, (title, near) in enumerate(zip(titles, (first, second), strict=True)):
        lines = sides.nth(at).locator("p, li").all_inner_texts()
        assert [line.split("\n")[0] for line in lines] == [
            title,
            *(f"plant-{other}" for other in near[row][:5]),
        ]


def test_what_rows_that_changed_company_have_in_common_is_not_that_they_changed_company(
    visit, path
):
    page = visit(path)
    page.click("#map-changed")
    page.wait_for_selector("#map-selection h4")
    assert "Rows that changed company" in page.inner_text("#map-selection")
    assert "company: changed company" not in page.inner_text("#map-selection .map-apart")
