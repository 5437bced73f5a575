"""What of the page needs no script: long names, pages without a map, paper, and fold-outs."""

import numpy as np
import pytest
from browser.hands import overflow
from report.pages import HOSTILE, fitted

from gnomon import PCA, report

pytestmark = pytest.mark.slow  # a browser is started


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
        X, pca=pca, tsne=tsne, names=HOSTILE, ids=words, title="W" * 300, labels={"x" * 500: words},
        stability=2,
    )  # fmt: skip
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


def test_what_the_policy_does_not_allow_does_not_happen(visit, plain, folder):
    """A page that was tampered with: one more script, one more style, one handler."""
    html = plain.read_text(encoding="utf-8")
    more = "<script>document.title='got in'</script><style>h1{color:red}</style>"
    path = folder / "tampered.html"
    path.write_text(html.replace("<main>", f"{more}<main>"), encoding="utf-8")
    # Complaints about it are what is wanted here, so the page is not watched.
    context = visit(plain).context
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("section")
    assert page.title() != "got in"
    colour = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert colour != "rgb(255, 0, 0)"
