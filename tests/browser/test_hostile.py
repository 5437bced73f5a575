"""Names, labels, ids and titles that try to be more than words."""

from xml.etree import ElementTree

import numpy as np
import pytest
from browser.hands import download, overflow, rows_of
from commands import gnomon

from gnomon import PCA
from gnomon.report import report

ALERT = "window.reached = 1"
HOSTILE = [
    f"<script>{ALERT}</script>",
    f"</script><script>{ALERT}</script>",
    f"</SCRIPT ><SCRIPT>{ALERT}</SCRIPT >",
    f"--></script><script>{ALERT}</script><!--",
    f"<!--<script>{ALERT}",
    f"<img src=x onerror='{ALERT}'>",
    f"<img src=x onerror={ALERT.replace(' ', '')}//",
    f"<svg onload='{ALERT}'>",
    f"<svg><script>{ALERT}</script></svg>",
    f"<svg><animate onbegin='{ALERT}' attributeName=x dur=1s>",
    f"<math><mi xlink:href='javascript:{ALERT}'>x</mi></math>",
    f"<iframe src='javascript:{ALERT}'></iframe>",
    f"<iframe srcdoc='<script>parent.{ALERT}</script>'></iframe>",
    f"<object data='javascript:{ALERT}'></object>",
    f"<embed src='javascript:{ALERT}'>",
    f"<a href='javascript:{ALERT}'>click</a>",
    f"<body onload='{ALERT}'>",
    f"<details open ontoggle='{ALERT}'>",
    f"<input autofocus onfocus='{ALERT}'>",
    f"<video><source onerror='{ALERT}'></video>",
    f"<marquee onstart='{ALERT}'>",
    f"<style onload='{ALERT}'></style>",
    "<style>*{display:none}</style>",
    "</style><style>body{background:url(http://example.invalid/a)}",
    "<link rel=stylesheet href='http://example.invalid/b.css'>",
    "<link rel=prefetch href='http://example.invalid/c'>",
    "<meta http-equiv=refresh content='0;url=http://example.invalid/d'>",
    "<base href='http://example.invalid/'>",
    "<form action='http://example.invalid/e'><input type=submit></form>",
    "<img src='http://example.invalid/f.png'>",
    "<img srcset='http://example.invalid/g.png 2x'>",
    f'" onmouseover="{ALERT}" x="',
    f"' onmouseover='{ALERT}' x='",
    f"` onmouseover=`{ALERT}`",
    f'"><img src=x onerror="{ALERT}">',
    f"'><svg onload='{ALERT}'>",
    f"javascript:{ALERT}",
    "data:text/html,<script>top.reached=1</script>",
    f"</title><script>{ALERT}</script>",
    f"</textarea><script>{ALERT}</script>",
    f"</select><script>{ALERT}</script>",
    f"]]><script>{ALERT}</script>",
    f"&lt;script&gt;{ALERT}&lt;/script&gt;",
    "&#60;script&#62;&amp;&quot;&apos;&#0;",
    "{{ 7 * 7 }}{% raw %}{{ config }}",
    "${7*7}#{7*7}<%= 7*7 %>",
    f"\\u003cscript\\u003e{ALERT}\\u003c/script\\u003e",
    '\\"};' + ALERT + ";//",
    "__proto__",
    "constructor",
    "a\u2028b\u2029c",
    "right\u202eto\u202cleft\u2066x",
    "z" * 3_000,
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(1)",
    "'; DROP TABLE rows; --",
    "null",
    "NaN",
    "🏳️‍🌈 ﷽ Z̴a̶l̷g̸o̵",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    n = len(HOSTILE)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n)) * np.geomspace(3, 1, n)
    page = report(
        X,
        pca=PCA(4, random_state=0).fit(X),
        labels={HOSTILE[1]: np.array(HOSTILE, object), HOSTILE[5]: rng.normal(size=n)},
        ids=HOSTILE,
        names=HOSTILE,
        title=HOSTILE[38],
    )
    name = "<img src=x onerror=alert(1)>&\"' report.html"
    return page.save(tmp_path_factory.mktemp("hostile") / name)


def test_there_are_at_least_fifty_of_them():
    assert len(set(HOSTILE)) >= 50


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_words_are_only_words(visit, path, width):
    page = visit(path, width=width, webgl=width == 1280)
    assert page.title().startswith("</title><script>")
    legend = page.locator("#map-legend .map-group .map-name").all_text_contents()
    # The most frequent names have colours of their own; all are as frequent, so the first do.
    assert len(legend) > 5
    assert set(map(one_line, legend[:-1])) <= set(map(one_line, HOSTILE))
    options = page.locator("#map-colour optgroup[label=Columns] option").all_text_contents()
    assert options[-1] == f"Search {len(HOSTILE)} columns…"  # the others are found by their names
    assert len(options) == 13
    assert set(map(one_line, options[:-1])) <= set(map(one_line, HOSTILE))
    for row, text in enumerate(HOSTILE):
        page.evaluate(f"location.hash = '#row-{row}'")
        page.wait_for_selector(f"#map-stage[data-focus='{row}']")
        assert page.locator("#map-card strong").text_content() == text
    page.fill("#map-search", "<img src=x onerror=")
    page.wait_for_selector("#map-found li[role=option]")
    found = page.locator("#map-found li .map-name").all_text_contents()
    assert HOSTILE[5] in found
    page.locator("#map-found li", has_text="Select all").click()
    page.wait_for_selector("#map-selection h4")
    for choice in range(0, 16, 5):
        page.select_option("#map-colour", index=choice)
    page.mouse.move(640, 450)
    assert_only_words(page)
    assert overflow(page) <= 0


def assert_only_words(page):
    """Nothing of the data became an element, a handler or a script."""
    assert page.evaluate("window.reached") is None
    made = page.evaluate(
        "[...document.querySelectorAll('script, style, iframe, object, embed, link, base, form, "
        "img, math, marquee, video')].map((one) => one.tagName)"
    )
    assert sorted(made) == ["SCRIPT", "SCRIPT", "STYLE"]
    handlers = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
        ".filter((name) => name.startsWith('on'))"
    )
    assert handlers == []


# Nothing that a file may not be called: no slash.
FILE = f"<img src=x onerror='{ALERT}'>&amp;{{{{7*7}}}}.csv"


def test_a_hostile_file_is_only_a_name(visit, tmp_path):
    rng = np.random.default_rng(0)
    lines = [",".join(map(repr, row)) for row in rng.normal(size=(30, 4)).tolist()]
    (tmp_path / FILE).write_text("\n".join(["a,b,c,d", *lines]) + "\n", encoding="utf-8")
    done = gnomon("map", f"./{FILE}", "-o", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = visit(tmp_path / "out" / "report.html", webgl=True)
    assert page.title() == FILE
    assert page.locator("h1").text_content() == FILE
    assert f"{FILE} has 30\xa0rows and 4\xa0columns" in page.locator("#overview").text_content()
    assert FILE.replace("'", "'\"'\"'") in page.locator("#reproduce").text_content()
    page.fill("#map-search", "7")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-stage[data-focus='7']")
    assert_only_words(page)


# Case 45: no XML document holds these, not even escaped.
UNWRITABLE = "\x00\x01\x08\x0b\x1f\udfff\ud800\ufffe\uffff"


def test_a_picture_is_well_formed_whatever_the_title_and_the_groups_hold(visit, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    groups = [f"a{UNWRITABLE}b", f"{'z' * 27}🏳"] * 6  # the second is cut in the middle of a pair
    title = f"be{UNWRITABLE}gin\x85\u2028"
    made = report(X, pca=PCA(2).fit(X), labels={"group": groups}, title=title)
    page = visit(made.save(tmp_path / "report.html"))
    page.click("#map-figure summary")
    page.fill("#map-figure-caption", f"]]> & <script>{ALERT}</script> {UNWRITABLE[:2]}")
    _, svg = download(page, "#map-svg")
    root = ElementTree.fromstring(svg)
    assert "".join(root.find("{*}title").text.split()).startswith("begin")
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert f"<script>{ALERT}</script>" in "".join(root.itertext())
    _, png = download(page, "#map-png")
    assert png[:4] == b"\x89PNG"


def test_a_download_holds_no_formula_in_disguise(visit, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    ids = [
        *(f"{sign}1+1" for sign in "＝＋－＠"),
        *(f"{unseen}=1+1" for unseen in " \xa0\ufeff\u200b"),
    ]
    ids += [f"plain {i}" for i in range(4)]
    page = visit(report(X, pca=PCA(2).fit(X), ids=ids).save(tmp_path / "report.html"))
    page.fill("#map-search", "1")
    page.locator("#map-found li", has_text="Select all").click()
    page.wait_for_selector("#map-selection h3")
    _, file = download(page, "#map-csv")
    cells = {row["id"] for row in rows_of(file) if "+1" in row["id"]}
    assert cells == {f"'{text}" for text in ids[:8]}
