"""The page as a text: safe whatever the data hold, whole, and no larger than asked."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from report.pages import HOSTILE, Page, fitted, groups_of_rows

from gnomon import PCA, report
from gnomon.charts.theme import STYLE
from gnomon.report.build import build


@pytest.fixture(scope="module")
def page():
    X, groups = groups_of_rows()
    pca, tsne = fitted(X)
    names = ["height", "weight", "age", "pulse", "reach"]
    return report(X, pca=pca, tsne=tsne, labels={"tree": groups}, names=names, title="Trees")


@pytest.fixture(scope="module")
def hostile():
    """A page in which every word from outside is hostile."""
    n = 8 * len(HOSTILE)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, len(HOSTILE))) @ rng.normal(size=(len(HOSTILE), len(HOSTILE)))
    words = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    pca, tsne = fitted(X)
    return report(
        X,
        pca=pca,
        tsne=tsne,
        names=HOSTILE,
        ids=words,
        title=HOSTILE[0],
        labels={HOSTILE[1]: words, HOSTILE[2]: rng.normal(size=n)},
        stability=2,
    )


def sha256(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_the_one_script_and_the_one_style_by_their_hashes(page):
    read = Page(page.html)
    (policy,) = [m["content"] for m in read.all("meta") if "http-equiv" in m]
    data, script = read.raw["script"]
    (style,) = read.raw["style"]
    assert f"script-src '{sha256(script)}' 'unsafe-eval';" in policy
    assert f"style-src '{sha256(style)}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe-inline" not in policy
    assert "http" not in policy
    assert json.loads(data)["title"] == "Trees"
    assert STYLE in style


def test_the_policy_stands_before_anything_it_is_about(page):
    assert page.html.index("Content-Security-Policy") < page.html.index("<style")
    assert page.html.encode().index(b'charset="utf-8"') < 1024


@pytest.mark.parametrize("which", ["page", "hostile"])
def test_no_element_has_a_style_or_a_handler_of_its_own_or_fetches_anything(which, request):
    read = Page(request.getfixturevalue(which).html)
    assert len(read.elements) > 500
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        assert not {"src", "srcset", "action", "formaction", "background"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#"), (tag, attributes)
    allowed = {"link", "iframe", "object", "embed", "base", "form", "img", "image", "foreignobject"}
    assert not allowed & {tag for tag, _ in read.elements}
    assert len(read.all("script")) == 2
    assert len(read.all("style")) == 1


def test_hostile_words_are_shown_to_the_letter_and_make_no_element(page, hostile):
    read, plain = Page(hostile.html), Page(page.html)
    for word in HOSTILE[:4]:
        assert word in read.words
    assert {tag for tag, _ in read.elements} <= {tag for tag, _ in plain.elements} | {
        "h3",
        "ul",
        "wbr",
    }
    assert "{{ 7 * 7 }}" in read.words
    assert "49" not in read.words.replace("{{ 7 * 7 }}", "")[:200]
    assert not set("\x00\x1b\u202e\ud800\uffff\u2028") & set(hostile.html)
    hostile.html.encode("utf-8")


def test_no_page_holds_characters_that_turn_or_end_it(page):
    odd = replace(page.content, versions={"gnomon": "1\x00\u202e\ud800<b>"})
    text = build(odd)
    assert not set("\x00\u202e\ud800") & set(text)
    assert "1&lt;b&gt;" in text


def test_the_title_is_one_text(hostile):
    (title,) = re.findall(r"<title>(.*?)</title>\n<style>", hostile.html)
    assert title == "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"


def test_the_data_stand_in_one_block_that_ends_no_script(hostile):
    data, _ = Page(hostile.html).raw["script"]
    assert not set("<>&") & set(data)
    assert json.loads(data)["title"] == HOSTILE[0]


def test_ids_of_sections_are_unique_and_the_list_of_sections_leads_to_them(page):
    read = Page(page.html)
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    sections = [attributes["id"] for attributes in read.all("section")]
    assert sections == [
        "map",
        "overview",
        "counting",
        "components",
        "reconstruction",
        "trust",
        "reproduce",
    ]
    links = [a["href"][1:] for a in read.all("a") if not a["href"].startswith("#row-")]
    assert links == sections


def test_links_to_rows_are_those_of_the_table(page):
    rows = [int(a["href"][5:]) for a in Page(page.html).all("a") if a["href"].startswith("#row-")]
    assert rows
    assert all(0 <= row < 90 for row in rows)
    worst = np.argsort(-page.content.pca.prediction_error(page.content.prepared))[:10]
    assert rows[:10] == worst.tolist()


def test_every_section_explains_itself_and_every_chart_is_described(page):
    read = Page(page.html)
    assert read.words.count("What does this mean?") == len(read.all("section"))
    svgs = [a for a in read.all("svg") if a.get("class") == "gn-chart"]
    assert len(svgs) >= 11
    assert len(read.all("desc")) == len(svgs)


def test_the_style_of_charts_stands_in_the_page_once(page):
    assert page.html.count(STYLE) == 1


def test_the_same_content_gives_the_same_page(page):
    assert build(page.content) == page.html


def test_a_page_stays_within_its_budget_and_says_what_it_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 60)).astype(np.float32)
    pca = PCA(5).fit(X)
    names = [one + other for one in "abcdefghij" for other in "klmnop"]
    whole = report(X, pca=pca, names=names)
    less = report(X, pca=pca, names=names, page_budget=600_000)
    assert len(less.html.encode()) <= 600_000 < len(whole.html.encode())
    assert "columns, those with the largest contributions" in Page(less.html).words
    assert "columns, those with the largest contributions" not in Page(whole.html).words
