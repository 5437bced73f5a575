"""Rows one can see: pictures, texts and links, compared with what Python gave."""

import base64
import io

import numpy as np
import pytest
from browser.hands import download, on_screen, point, rows_of, until
from PIL import Image

from gnomon import PCA
from gnomon.report import report

N = 120
ALERT = "window.reached = 1"


@pytest.fixture(scope="module")
def pixels():
    """Crosses, rings and bars of 8 × 8 pixels, from 0 to 16, with noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:8, :8]
    shapes = np.array([abs(x - y) < 2, (abs(np.hypot(x - 3.5, y - 3.5) - 2.5) < 1), abs(x - 4) < 2])
    kind = np.arange(N) % 3
    X = np.clip(12 * shapes[kind].reshape(N, 64) * rng.uniform(0.6, 1.3, (N, 64)), 0, 16).round()
    return report(
        X,
        pca=PCA(6, random_state=0).fit(X),
        labels={"shape": np.array(["cross", "ring", "bar"], object)[kind]},
        names=[f"pixel_{r}_{c}" for r in range(8) for c in range(8)],
        title="Shapes",
    )


def alphas(page, selector):
    """The opacity of every pixel of a canvas; ink is drawn in one colour."""
    return np.array(
        page.eval_on_selector(
            selector,
            "(one) => [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data]"
            ".filter((_, i) => i % 4 === 3)",
        )
    )


def inked(X):
    """From the smallest number (0) to the largest (255)."""
    return np.rint(255 * (X - X.min()) / (X.max() - X.min()))


def test_a_row_of_pixels_is_seen_in_its_card_on_the_map_and_in_a_montage(visit, pixels, tmp_path):
    page = visit(pixels.save(tmp_path / "report.html"))
    X = pixels.content.X
    ink = inked(X)
    page.evaluate("location.hash = '#row-17'")
    page.wait_for_selector("#map-stage[data-focus='17']")
    assert np.array_equal(alphas(page, "#map-card .map-shown .map-thumb"), ink[17])
    nearest = int(page.get_attribute("#map-card .map-near button", "data-row"))
    assert nearest == pixels.content.neighbors[17, 0]
    assert np.array_equal(alphas(page, "#map-card .map-near .map-thumb"), ink[nearest])
    # All rings: some of them side by side, and the mean of all.
    page.fill("#map-search", "ring")
    page.locator("#map-found li", has_text="shape: ring").click()
    page.wait_for_selector(".map-montage button")
    rings = np.flatnonzero(pixels.content.labels[0][1] == "ring")
    tiles = page.eval_on_selector_all(".map-tile", "all => all.map(one => Number(one.dataset.row))")
    assert len(tiles) == 40
    assert set(tiles) <= set(rings.tolist())
    assert "mean of 40\xa0pictures" in page.inner_text(".map-mean")
    assert np.abs(alphas(page, ".map-mean .map-thumb") - ink[rings].mean(axis=0)).max() <= 1
    page.wait_for_selector("#map-selection h4")
    assert "grey pictures of 8 × 8 pixels" in page.inner_text("#map-selection")
    assert "pixel_" not in page.inner_text("#map-selection")
    # On the map: some, more from nearer, none where that is not wanted.
    seen = int(page.get_attribute("#map-stage", "data-tiles"))
    assert 10 < seen < N
    page.click("#map-display summary")
    page.uncheck("#map-pictures")
    until(page, lambda: page.get_attribute("#map-stage", "data-tiles") == "0")


def test_components_and_rebuilt_rows_are_pictures(visit, pixels, tmp_path):
    page = visit(pixels.save(tmp_path / "report.html"), script=False)
    assert page.locator("#components .pictures img").count() == 1 + 6
    lines = page.locator("#reconstruction .pictures ul")
    assert [one.locator("img").count() for one in lines.all()] == [10, 10, 10]
    first = lines.first.locator("img").first
    row = int(lines.first.locator("span").first.inner_text().removeprefix("row "))
    octets = first.get_attribute("src").removeprefix("data:image/png;base64,")
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(octets))))
    assert np.array_equal(image.ravel(), inked(pixels.content.X)[row])
    assert "pixel_" not in page.inner_text("#components")


def test_beyond_the_budget_some_rows_have_pictures_and_the_others_say_so(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(256, size=(600, 24 * 24)).astype(float)
    made = report(X, pca=PCA(3, random_state=0).fit(X), pixels="24x24", page_budget=460_000)
    page = visit(made.save(tmp_path / "report.html"))
    note = page.inner_text(".map-notes")
    shown = int(note.split("The page holds ")[1].split(" of ")[0])
    assert 20 < shown < 600
    without = 0
    for row in range(12):
        page.evaluate(f"location.hash = '#row-{row}'")
        page.wait_for_selector(f"#map-stage[data-focus='{row}']")
        pictured = page.locator("#map-card .map-shown .map-thumb").count()
        told = page.locator("#map-card .map-unpictured").count()
        assert pictured + told == 1
        without += told
    assert 0 < without < 12


TEXTS = [
    "A plain description of a library for parsing",
    f"</script><script>{ALERT}</script>",
    f"<img src=x onerror='{ALERT}'> an unmistakable word",
    "right\u202eto left \u2066and a very long " + "word " * 300,
]
LINKS = [
    "https://example.invalid/path?q=1",
    f"javascript:{ALERT}",
    " JaVaScRiPt:window.reached=1",
    "data:text/html,<script>window.reached=1</script>",
    "http://user:secret@example.invalid:8080/",
    "no address at all",
    "//example.invalid/x",
    "",
]


def picture(kind, colour):
    octets = io.BytesIO()
    Image.new("RGB", (20, 10), colour).save(octets, kind)
    return octets.getvalue()


SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.reached=1'><rect/></svg>"


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    X = np.random.default_rng(0).normal(size=(24, 4))
    images = [picture("PNG", "red"), SVG, picture("WEBP", "blue"), None, b"\x89PNG nothing"]
    images += ["../../etc/passwd", "https://example.invalid/x.png", picture("JPEG", "lime")]
    page = report(
        X,
        pca=PCA(2, random_state=0).fit(X),
        text=[TEXTS[i % len(TEXTS)] for i in range(24)],
        links=[LINKS[i % len(LINKS)] for i in range(24)],
        images=[images[i % len(images)] for i in range(24)],
    )
    return page.save(tmp_path_factory.mktemp("documents") / "report.html")


@pytest.mark.parametrize("width", [1280, 400])
def test_texts_links_and_pictures_are_shown_and_nothing_runs(visit, documents, width):
    page = visit(documents, width=width)
    anchors = []
    for row in range(8):
        page.evaluate(f"location.hash = '#row-{row}'")
        page.wait_for_selector(f"#map-stage[data-focus='{row}']")
        text = TEXTS[row % len(TEXTS)]
        assert page.locator("#map-card .map-text").text_content() == text
        for link in page.locator("#map-card a").all():
            anchors.append((row, link.get_attribute("href"), link.inner_text().split()[0]))
            assert link.get_attribute("rel") == "noopener noreferrer"
            assert link.get_attribute("target") == "_blank"
        plain = page.locator("#map-card .map-plain-link").all_text_contents()
        assert plain == ([LINKS[row]] if row in (1, 2, 3, 5, 6) else [])
    # Only what an address of the web names is a link, with its host shown and nothing else.
    assert anchors == [
        (0, LINKS[0], "example.invalid"),
        (4, LINKS[4], "example.invalid:8080"),
    ]
    assert page.evaluate("window.reached") is None
    note = page.inner_text(".map-notes")
    assert "no PNG, JPEG, WebP or GIF (6)" in note
    assert "outside of the folder (3)" in note
    assert "an address, not a file (3)" in note
    page.evaluate("location.hash = '#row-8'")
    page.wait_for_selector("#map-stage[data-focus='8']")
    colour = page.eval_on_selector(
        "#map-card .map-shown .map-thumb",
        "(one) => [...one.getContext('2d').getImageData(32, 32, 1, 1).data]",
    )
    assert colour == pytest.approx([255, 0, 0, 255], abs=12)  # WebP loses a little
    page.fill("#map-search", "UNMISTAKABLE")
    page.locator("#map-found li", has_text="Select all").click()
    _, file = download(page, "#map-csv")
    assert [int(row["row"]) for row in rows_of(file)] == list(range(2, 24, 4))


def test_every_row_of_a_small_table_is_named_on_the_map(visit, tmp_path):
    X = np.random.default_rng(1).normal(size=(32, 4))
    ids = [f"place {i}" for i in range(32)]
    made = report(X, pca=PCA(2, random_state=0).fit(X), ids=ids)
    page = visit(made.save(tmp_path / "report.html"))
    page.click("#map-figure summary")
    _, svg = download(page, "#map-svg")
    named = svg.decode().split('class="name"')[1:]
    assert sorted(text.split(">")[1].split("<")[0] for text in named) == sorted(ids)


def test_without_labels_groups_are_suggested_named_and_coloured(visit, tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(150) % 3
    X = rng.normal(size=(150, 5))
    X[kind == 1, 0] += 9
    X[kind == 2, 3] -= 9
    names = ["alcohol", "b", "c", "hue", "e"]
    made = report(X, pca=PCA(5, random_state=0).fit(X), names=names)
    groups = made.content.suggested
    high, low = ({groups[i] for i in range(150) if kind[i] == k} for k in (1, 2))
    assert (high, low) == ({"high alcohol, high hue"}, {"low hue, low alcohol"})
    page = visit(made.save(tmp_path / "report.html"))
    legend = page.locator("#map-legend .map-group").all_inner_texts()
    told = {text.split("\n")[0].strip(): int(text.split("\n")[-1]) for text in legend}
    assert told["high alcohol, high hue"] == told["low hue, low alcohol"] == 50
    assert "groups are suggested" in page.inner_text("#map-says")
    # Pointing at a row says which it is of.
    row = 1
    point(page, on_screen(page, made.content.pca_map)[row])
    page.wait_for_selector("#map-card:not([hidden])")
    assert "high alcohol, high hue" in page.inner_text("#map-card")


@pytest.mark.parametrize("named", [False, True])
def test_search_lists_the_same_word_first_then_its_beginnings_and_no_word_twice(
    visit, tmp_path, named
):
    words = ["making", "kings", "KING", "viking", "queen", *(f"word{i}" for i in range(25))]
    X = np.random.default_rng(0).normal(size=(30, 3))
    ids = {"ids": words} if named else {}
    made = report(X, pca=PCA(2, random_state=0).fit(X), text=words, **ids)
    page = visit(made.save(tmp_path / "report.html"))
    page.fill("#map-search", "king")
    page.wait_for_selector("#map-found li")
    lines = page.locator("#map-found li").all_inner_texts()[:4]
    found = [[word for word in line.split() if word in words] for line in lines]
    assert found == [["KING"], ["kings"], ["making"], ["viking"]]
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-stage[data-focus='2']")
    assert page.inner_text("#map-card").count("KING") == 1
