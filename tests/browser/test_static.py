"""What of the page needs no script: long names, pages without a map, paper, and fold-outs."""

import numpy as np
import pytest
from browser.hands import overflow, until
from report.pages import HOSTILE, fitted

from gnomon import PCA, report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("static")


@pytest.fixture(scope="module")
def hostile(folder):
    """Every name is hostile, endless or empty; with stability, so that every section is there."""
    n = 8 * len(HOSTILE)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, len(HOSTILE))) @ rng.normal(size=(len(HOSTILE), len(HOSTILE)))
    words = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    pca, tsne = fitted(X, max_iter=100)
    page = report(
        X,
        pca=pca,
        tsne=tsne,
        names=HOSTILE,
        ids=words,
        title="W" * 300,
        labels={"x" * 500: words},
        stability=2,
    )
    return page.save(folder / "hostile.html")


@pytest.fixture(scope="module")
def plain(folder):
    X = np.random.default_rng(0).normal(size=(50, 4))
    return report(X, pca=PCA(2).fit(X)).save(folder / "plain.html")


@pytest.mark.parametrize("width", [1280, 400])
def test_endless_names_do_not_make_the_page_wider(visit, hostile, width):
    page = visit(hostile, width=width, script=False)
    assert overflow(page) <= 0
    assert page.locator("section").count() == 8
    for table in page.locator(".table").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= width  # what is wider scrolls inside


@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_without_a_map_has_its_charts_and_tables(visit, plain, width):
    page = visit(plain, width=width, script=False)
    assert overflow(page) <= 0
    assert page.locator("svg.gn-chart:visible").count() >= 7
    assert page.locator("table:visible").count() == 2
    for chart in page.locator("svg.gn-chart:visible").all():
        assert chart.bounding_box()["width"] > 0.6 * min(width, 600)


def test_what_is_meant_folds_out_without_a_script(visit, plain):
    page = visit(plain, script=False)
    fold = page.locator("#counting details")
    assert not fold.locator("p").first.is_visible()
    fold.locator("summary").click()
    assert fold.locator("p").first.is_visible()


def test_the_scheme_is_the_readers_and_paper_is_light(visit, plain):
    def surface(page):
        return page.evaluate(
            "getComputedStyle(document.querySelector('.gn-chart .gn-surface')).fill"
        )

    def ground(page):
        return page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor")

    light = visit(plain)
    assert surface(light) == ground(light) == "rgb(255, 255, 255)"
    dark = visit(plain, scheme="dark")
    assert surface(dark) == ground(dark) == "rgb(20, 23, 28)"
    dark.emulate_media(media="print")
    assert surface(dark) == ground(dark) == "rgb(255, 255, 255)"
    assert not dark.is_visible("nav")


HANDLER = "document.body.dataset.reached = 1"


def test_what_the_policy_does_not_allow_does_not_happen(visit, plain, folder):
    """A page that was tampered with: one more script, one more style, and handlers."""
    html = plain.read_text(encoding="utf-8")
    more = (
        "<script>document.title='got in'</script><style>h1{color:red}</style>"
        f"<button id=press onclick='{HANDLER}'>Press</button>"
        f"<img src=data:, onerror='{HANDLER}'>"
        f"<a id=follow href='javascript:{HANDLER};void 0'>Follow</a>"
    )
    whole = html.replace("<main>", f"<main>{more}")
    # The same page without its policy, to see that these would work.
    open_page = whole.replace('http-equiv="Content-Security-Policy"', "")
    (folder / "tampered.html").write_text(whole, encoding="utf-8")
    (folder / "open.html").write_text(open_page, encoding="utf-8")
    # Complaints about it are what is wanted here, so these pages are not watched.
    context = visit(plain).context
    found = {}
    for name in ("open", "tampered"):
        page = context.new_page()
        refused = []

        def listen(message, refused=refused):
            if "Content Security Policy" in message.text:
                refused.append(message.text)

        page.on("console", listen)
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector("#map[data-state=ready]")
        titled = page.title() == "got in"
        red = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
        image = page.evaluate("document.body.dataset.reached ?? null")
        page.evaluate("delete document.body.dataset.reached")
        page.click("#press")
        pressed = page.evaluate("document.body.dataset.reached ?? null")
        page.evaluate("delete document.body.dataset.reached")
        page.click("#follow")
        if name == "open":
            page.wait_for_function("document.body.dataset.reached")
        else:
            until(page, lambda refused=refused: len(refused) >= 5)  # one for each attempt
        followed = page.evaluate("document.body.dataset.reached ?? null")
        found[name] = [titled, red == "rgb(255, 0, 0)", image, pressed, followed]
    assert found["open"] == [True, True, "1", "1", "1"]
    assert found["tampered"] == [False, False, None, None, None]
