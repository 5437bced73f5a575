"""Filters, views that are shared, the replay, and what was wrong with the first edition's map."""

from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest
from browser.hands import download, inside, lasso, on_screen, painted, point, rows_of, until, view

from gnomon import PCA, TSNE
from gnomon.report import report
from gnomon.report.build import build

N = 160


@pytest.fixture(scope="module")
def made():
    """Twenty-five kinds of rows in six columns, two numbers beside them, and a replay."""
    rng = np.random.default_rng(0)
    kind = np.r_[np.arange(25), rng.integers(25, size=N - 25)]
    X = rng.normal(size=(N, 6)) + 4 * rng.normal(size=(25, 6))[kind]
    tsne = TSNE(perplexity=12, max_iter=250, random_state=0).fit(X)
    page = report(
        X,
        pca=PCA(4, random_state=0).fit(X),
        tsne=tsne,
        labels={
            "kind": np.array([f"kind {k:02d}" for k in kind], object),
            "height": np.round(10 + 5 * rng.random(N), 2),
        },
        ids=[f"row-{i:03d}" for i in range(N)],
        title="A_very_long_title_of_a_file_that_holds_penguins_of_the_archipelago_2024.csv",
    )
    start = rng.normal(size=(N, 2)) * np.ptp(tsne.embedding_) / 6
    frames = ((0, start), (100, (start + tsne.embedding_) / 2), (250, tsne.embedding_))
    return replace(page.content, replay=frames)


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "report.html"
    path.write_text(build(made), encoding="utf-8")
    return path


def selected(page):
    return [int(row["row"]) for row in rows_of(download(page, "#map-csv")[1])]


def colour_by(page, name):
    page.select_option("#map-colour", label=name)
    page.wait_for_selector(f"#map-stage[data-colour='{name}']")


def seen(page):
    return int(page.get_attribute("#map-stage", "data-seen"))


def row_apart(positions):
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return int(distances.min(axis=1).argmax())


def test_filters_add_up_and_a_view_can_be_shared(visit, path, made):
    page = visit(path)
    heights, kinds = made.labels[1][1], made.labels[0][1]
    colour_by(page, "height")
    page.fill("#map-legend input[aria-label=from]", "12")
    page.press("#map-legend input[aria-label=from]", "Enter")
    tall = heights >= 12
    until(page, lambda: seen(page) == tall.sum())
    # A brush along the histogram does the same.
    box = page.locator("#map-legend .map-ramp").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] + 5, box["y"] + 10, steps=3)
    page.mouse.up()
    half = heights >= (heights.min() + heights.max()) / 2
    until(page, lambda: abs(seen(page) - half.sum()) <= 1)
    page.fill("#map-legend input[aria-label=from]", "12")
    page.press("#map-legend input[aria-label=from]", "Enter")
    page.fill("#map-legend input[aria-label=to]", "14")
    page.press("#map-legend input[aria-label=to]", "Enter")
    middle = tall & (heights <= 14)
    until(page, lambda: seen(page) == middle.sum())
    # A second filter, of groups: more than twenty, so that one is searched for and shown alone.
    colour_by(page, "kind")
    assert "other group" in page.locator("#map-legend .map-group").last.inner_text()
    page.fill("#map-legend .map-find", "kind 1")
    assert page.locator("#map-legend .map-group").count() == 10
    page.click("#map-legend .map-group >> text=kind 17")
    both = np.flatnonzero(middle & (kinds == "kind 17"))
    assert seen(page) == both.size
    share = page.inner_text("#map-filters h3")
    assert share.startswith(f"{both.size}\xa0row")
    assert page.locator("#map-filters li").count() == 2
    page.click("#map-filters [aria-label='Remove the filter on kind']")
    assert seen(page) == middle.sum()
    # What is not seen is not selected.
    page.evaluate("scrollTo(0, 0)")
    *_, stage = view(page)
    corners = np.array([[14, 6], [-14, 6], [-14, -6], [14, -6]])
    size = np.array([stage["width"], stage["height"]])
    around = np.array([stage["x"], stage["y"]]) + np.where(corners < 0, size + corners, corners)
    lasso(page, around)
    assert selected(page) == np.flatnonzero(middle).tolist()
    page.focus("#map-stage")
    page.keyboard.press("+")
    page.keyboard.press("Shift+ArrowRight")
    before = [float(part) for part in page.get_attribute("#map-stage", "data-view").split()]
    page.click("#map-share")
    page.wait_for_function("location.hash.startsWith('#view=')")
    fragment = page.evaluate("location.hash")

    again = visit(path, fragment=fragment)
    assert again.get_attribute("#map-tool", "data-restored") == "true"
    assert seen(again) == middle.sum()
    assert selected(again) == np.flatnonzero(middle).tolist()
    assert again.input_value("#map-colour") == page.input_value("#map-colour")
    after = [float(part) for part in again.get_attribute("#map-stage", "data-view").split()]
    assert after == pytest.approx(before, rel=1e-4)
    # Addresses are untrusted: of other data, or of nothing, they change nothing.
    digest = fragment.split("%22d%22%3A%22")[1][:16]
    for wrong in (
        fragment.replace(digest, "0" * 16),
        fragment.replace("%22m%22%3A0", "%22m%22%3A99"),
        "#view=" + quote('{"d":"' + digest + '","c":1e9,"m":{"__proto__":1}}'),
        "#view=%7B%22broken",
        "#view=%E0%A4%A",
        "#view=" + quote('{"digest":"' + digest + '","colour":99,"filters":[],"view":[0,0,1]}'),
        "#view=" + quote('{"__proto__":{"reached":1}}'),
    ):
        assert wrong != fragment
        again.evaluate("delete document.getElementById('map-tool').dataset.restored")
        again.evaluate(f"location.hash = {wrong!r}")
        again.wait_for_selector("#map-tool[data-restored=false]")
        assert seen(again) == middle.sum()
    assert again.evaluate("({}).reached") is None


def test_the_making_of_the_map_is_played(visit, path, made):
    page = visit(path)
    page.focus("#map-iteration")
    page.keyboard.press("Home")
    page.wait_for_selector("#map-stage[data-frame='0']")
    assert page.inner_text("#map-replay .map-small") == "iteration 0"
    page.evaluate("scrollTo(0, 0)")
    first = made.replay[0][1]
    row = row_apart(first)
    point(page, on_screen(page, first)[row])
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")
    page.click("#map-play")
    page.wait_for_selector("#map-stage[data-frame='2']")
    page.evaluate("scrollTo(0, 0)")
    row = row_apart(made.Y)
    point(page, on_screen(page, made.Y)[row])
    page.wait_for_selector(f"#map-stage[data-focus='{row}']")
    assert page.inner_text("#map-replay .map-small") == "iteration 250"


def boxes(page, rows, positions):
    """Places of rows in the window that lie within the card."""
    card = page.locator("#map-card").bounding_box()
    at = on_screen(page, positions)[rows]
    across = (at[:, 0] > card["x"]) & (at[:, 0] < card["x"] + card["width"])
    return at[across & (at[:, 1] > card["y"]) & (at[:, 1] < card["y"] + card["height"])]


def test_the_card_covers_none_of_its_neighbours_moves_with_its_row_and_gives_way(visit, path, made):
    page = visit(path)
    page.evaluate("scrollTo(0, 0)")
    for row in (3, 40, 77, 119):
        page.fill("#map-search", f"row-{row:03d}")
        page.press("#map-search", "Enter")
        page.wait_for_selector(f"#map-stage[data-focus='{row}']")
        painted(page)
        assert boxes(page, [row, *made.neighbors[row]], made.Y).size == 0
    # Another map: the card stays with its row.
    page.click("#map-switch >> text=PCA")
    page.wait_for_selector("#map-stage[data-map=PCA]")
    painted(page)
    assert page.is_visible("#map-card")
    assert page.get_attribute("#map-stage", "data-focus") == "119"
    assert boxes(page, [119], made.pca_map).size == 0
    page.click("#map-switch >> text=t-SNE")
    page.wait_for_selector("#map-stage[data-map=t-SNE]")
    # A card that was only pointed at is closed: its row has moved away.
    page.focus("#map-stage")
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    point(page, on_screen(page, made.Y)[119])
    page.wait_for_selector("#map-card:not(.pinned):not([hidden])")
    page.locator("#map-switch >> text=PCA").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#map-stage[data-map=PCA]")
    assert not page.is_visible("#map-card")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#map-stage[data-map=t-SNE]")
    page.fill("#map-search", "row-119")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-card.pinned")
    page.focus("#map-stage")
    # Escape where one searched closes the card.
    page.focus("#map-search")
    page.wait_for_selector("#map-found:not([hidden])")
    page.keyboard.press("Escape")
    assert not page.is_visible("#map-found")
    page.keyboard.press("Escape")
    assert not page.is_visible("#map-card")
    # A lasso that begins on a card selects as any other.
    page.fill("#map-search", "row-077")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-card:not([hidden])")
    painted(page)
    card = page.locator("#map-card").bounding_box()
    *_, stage = view(page)
    start = [card["x"] + card["width"] / 2, card["y"] + card["height"] - 6]
    ends = [[stage["x"] + 5, stage["y"] + 5], [stage["x"] + stage["width"] - 9, stage["y"] + 9]]
    polygon = np.array([start, *ends])
    expected, nearest = inside(polygon, on_screen(page, made.Y))
    assert nearest > 0.1
    assert expected.sum() > 5
    lasso(page, polygon)
    assert selected(page) == np.flatnonzero(expected).tolist()


def test_a_group_has_one_colour_on_the_whole_page(visit, path):
    page = visit(path)
    swatches = page.eval_on_selector_all(
        "#map-legend .map-group",
        "all => all.map(one => [one.querySelector('.map-name').textContent,"
        " getComputedStyle(one.querySelector('.map-swatch')).backgroundColor])",
    )
    drawn = page.evaluate(
        """() => {
          const key = [...document.querySelectorAll("#components svg text")];
          return Object.fromEntries(key.map((one) => {
            const mark = one.previousElementSibling;
            const style = mark ? getComputedStyle(mark) : null;
            return [one.textContent.trim(), style && [style.fill, style.stroke]];
          }));
        }"""
    )
    compared = [name for name, _ in swatches if drawn.get(name)]
    assert len(compared) >= 12
    for name, colour in swatches:
        if name in compared:
            assert colour in drawn[name], name


def test_titles_break_at_words(visit, path):
    page = visit(path, width=400)
    lines = page.evaluate(
        """() => {
          const walker = document.createTreeWalker(document.querySelector("h1"), 4);
          const words = [];
          while (walker.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(walker.currentNode);
            words.push([walker.currentNode.data, range.getClientRects().length]);
          }
          return words;
        }"""
    )
    assert len(lines) > 8
    assert {many for _, many in lines} == {1}


def test_columns_without_meaning_are_not_recited(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 60)) + 3 * rng.normal(size=(2, 60))[np.arange(80) % 2]
    labels = {"side": np.array(["left", "right"], object)[np.arange(80) % 2]}
    names = [f"embedding[{j}]" for j in range(60)]
    made = report(X, pca=PCA(5, random_state=0).fit(X), labels=labels, names=names)
    page = visit(made.save(tmp_path / "report.html"))
    page.fill("#map-search", "left")
    page.locator("#map-found li", has_text="side: left").click()
    page.wait_for_selector("#map-selection h4")
    said = page.inner_text("body")
    assert "the 60 columns embedding[0] … embedding[59]" in said
    assert not [j for j in range(1, 59) if f"embedding[{j}]" in said]
    # A search finds a column all the same.
    page.fill("#map-search", "embedding[57]")
    page.locator("#map-found li", has_text="colour by it").click()
    page.wait_for_selector("#map-stage[data-colour='embedding[57]']")
    _, high = page.locator("#map-legend .map-ends span").all_inner_texts()
    assert float(high) == pytest.approx(X[:, 57].max(), rel=0.01)


def test_size_and_opacity_of_points_can_be_changed(visit, path):
    page = visit(path)

    def inked():
        return page.evaluate(
            """() => {
              const {width, height} = document.getElementById("map-points");
              const pencil = document.getElementById("map-points").getContext("2d");
              const {data} = pencil.getImageData(0, 0, width, height);
              return data.reduce((sum, value) => sum + 255 - value, 0);
            }"""
        )

    usual = inked()
    page.click("#map-display summary")
    page.focus("#map-point-size")
    page.keyboard.press("End")
    until(page, lambda: inked() > 1.5 * usual)
    large = inked()
    page.focus("#map-opacity")
    page.keyboard.press("Home")
    until(page, lambda: inked() < 0.5 * large)
