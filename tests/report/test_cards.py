"""What results show of themselves in a notebook."""

import pytest
from report.pages import HOSTILE, Page, groups_of_rows

import gnomon
from gnomon import PCA, TSNE, compare


def shown(thing):
    """As a notebook asks for it."""
    if hasattr(thing, "_repr_mimebundle_"):
        return Page(thing._repr_mimebundle_().get("text/html") or thing._repr_html_())
    return Page(thing._repr_html_())


@pytest.fixture(scope="module")
def table():
    return groups_of_rows(60, 5)[0]


def check(page, *says):
    assert page.all("table")
    assert page.all("svg")
    assert not page.all("script")
    for text in (*says, "Next"):
        assert text in page.words


def test_a_fitted_pca_says_what_it_holds(table):
    pca = PCA(2).fit(table)
    held = f"{100 * pca.explained_variance_ratio_.sum():.1f}"
    check(
        shown(pca), "PCA of 5 columns", f"2, which hold {held}\u00a0%".split("\u00a0")[0], "60 × 5"
    )
    assert "gnomon.report(X, pca=pca)" in shown(pca).words


def test_a_fitted_map_is_drawn(table):
    tsne = TSNE(perplexity=5, max_iter=250).fit(table)
    page = shown(tsne)
    check(page, "t-SNE map of 60 rows", "tsne.transform(X_new)")
    assert len(page.all("circle")) + len(page.all("path")) + len(page.all("use")) > 0


@pytest.mark.parametrize("model", [PCA(2), TSNE(perplexity=7)])
def test_what_is_not_fitted_is_shown_as_scikit_learn_shows_it(model):
    words = shown(model).words
    assert "Next" not in words
    assert "perplexity" in words or "n_components" in words


def test_a_comparison_shows_both_maps_and_wide_tables_none(table):
    check(shown(compare(table[:, :2], table[:, 1:3])), "60 pairs of rows", "found.report()")
    page = shown(compare(table, table[:, :4]))
    assert page.all("table")
    assert not page.all("svg")


def test_a_result_shows_its_map_and_its_warnings(tmp_path, table):
    lines = [
        "kind,a,b,c",
        *(
            f'"{name}",{a},{b},{c}'
            for name, (a, b, c) in zip((HOSTILE[1], "x") * 30, table[:, :3].tolist(), strict=True)
        ),
    ]
    path = tmp_path / "cells.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    result = gnomon.run(path)
    page = shown(result)
    check(page, "Result for cells.csv", "neighbours kept", "gnomon.report(result)")
    assert not page.all("img")
    alone = gnomon.run(path, dimensions=None)
    check(shown(alone), "result.components")
