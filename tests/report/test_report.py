"""`gnomon.report` as it is called: what it takes, refuses, saves and shows."""

import html
import importlib
import pydoc
import re
import webbrowser

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from report.pages import Page, fitted, groups_of_rows

import gnomon
from gnomon import PCA, TSNE, report, stability
from gnomon.errors import DataError, DataWarning, ExistingFileError, MissingValueError


@pytest.fixture(scope="module")
def rows():
    return groups_of_rows()


@pytest.fixture(scope="module")
def page(rows):
    X, groups = rows
    pca, tsne = fitted(X)
    return report(X, pca=pca, tsne=tsne, labels=groups)


def sections(page):
    return [attributes["id"] for attributes in Page(page.html).all("section")]


def test_it_can_be_called_whichever_way_it_was_imported(rows):
    package = importlib.import_module("gnomon.report")
    assert callable(package)
    assert gnomon.report is package
    assert package.report(rows[0]).html == report(rows[0]).html


def test_a_saved_page_is_the_page_and_is_not_overwritten(page, tmp_path):
    path = page.save(tmp_path / "trees.html")
    assert path.read_text(encoding="utf-8") == page.html
    with pytest.raises(ExistingFileError, match=r"trees\.html exists"):
        page.save(path)
    assert page.save(path, force=True) == path
    assert [p.name for p in tmp_path.iterdir()] == ["trees.html"]
    with pytest.raises(ValueError, match=r"end in \.html"):
        page.save(tmp_path / "trees.pdf")


def test_open_shows_a_file_that_holds_the_page(page, monkeypatch):
    shown = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    path = page.open()
    assert shown == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == page.html


def test_a_notebook_gets_it_in_a_frame_of_its_own(page):
    (srcdoc,) = re.findall(r'^<iframe srcdoc="([^"]*)" sandbox="([^"]*)"', page._repr_html_())
    assert html.unescape(srcdoc[0]) == page.html
    assert set(srcdoc[1].split()) == {"allow-scripts", "allow-downloads"}


def test_it_says_what_it_is(page):
    assert re.fullmatch("Map of 90\u00a0rows: a page of 5 columns, (39|40). kB", str(page))


def test_without_a_map_there_is_nothing_about_one(rows):
    page = report(rows[0])
    assert sections(page) == [
        "map",
        "overview",
        "counting",
        "components",
        "reconstruction",
        "reproduce",
    ]
    assert page.content.trust is None
    words = Page(page.html).words
    assert "t-SNE" not in words
    assert "of 5 components hold 95 % of the variance" in words


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((60, 1), ["map", "overview", "reproduce"]),
        ((2, 5), ["map", "overview", "counting", "components", "reconstruction", "reproduce"]),
    ],
    ids=["one column", "two rows"],
)
def test_small_tables_have_a_page(shape, expected):
    X = np.random.default_rng(0).normal(size=shape)
    assert sections(report(X)) == expected


def test_a_table_without_variance_has_a_page_that_says_so():
    with pytest.warns(DataWarning, match="constant|same"):
        page = report(np.ones((6, 3)), pca=PCA(1).fit(np.ones((6, 3))))
    assert sections(page) == ["map", "overview", "reproduce"]
    assert "All columns are constant" in Page(page.html).words


def test_a_map_of_three_rows_has_a_page():
    X = np.random.default_rng(0).normal(size=(3, 4))
    assert "trust" in sections(report(X, tsne=TSNE(perplexity=1.5, max_iter=50).fit(X)))


@pytest.mark.parametrize("k", [1, 3])
def test_maps_of_one_and_three_dimensions_have_a_page(rows, k):
    X, groups = rows
    page = report(X, tsne=TSNE(k, perplexity=10, max_iter=50).fit(X), labels=groups)
    assert page.content.pca_map.shape == (90, 2)
    assert "trust" in sections(page)


def test_twenty_thousand_columns_have_a_page():
    X = np.random.default_rng(0).normal(size=(40, 20_000)).astype(np.float32)
    page = report(X, pca=PCA(5).fit(X))
    assert len(page.html.encode()) <= 3_000_000
    assert "40 rows × 20,000 columns" in Page(page.html).words


def test_names_ids_and_labels_of_dataframes_are_used(rows):
    X, groups = rows
    index = [f"tree {i}" for i in range(len(X))]
    frame = pd.DataFrame(X, columns=["h", "w", "a", "p", "r"], index=index)
    labels = pd.DataFrame({"kind": groups, "size": X[:, 0]}, index=index)
    pca = PCA(2).fit(frame)  # with names: no complaint about arrays without them
    content = report(frame, pca=pca, labels=labels).content
    assert content.names == ("h", "w", "a", "p", "r")
    assert content.ids[0] == "id"
    assert content.ids[1].tolist() == index
    assert [name for name, _ in content.labels] == ["kind", "size"]
    assert content.labels[0][1].tolist() == groups.tolist()
    assert np.array_equal(content.labels[1][1], X[:, 0])
    assert pca.feature_names_in_.tolist() == ["h", "w", "a", "p", "r"]


def test_labels_of_polars_and_lists_with_gaps_are_read(rows):
    X, _ = rows
    series = pl.Series("kind", ["a", "b", None] * 30)
    (label,) = report(pl.DataFrame(X), labels=series).content.labels
    assert label[0] == "kind"
    assert label[1].tolist() == ["a", "b", None] * 30
    (label,) = report(X, labels=["a", float("nan"), "c"] * 30).content.labels
    assert label[1].tolist() == ["a", None, "c"] * 30


def test_a_few_numbers_are_groups_and_many_are_a_quantity(rows):
    X, _ = rows
    few, many = np.arange(90) % 3, np.arange(90.0)
    labels = dict(report(X, labels={"few": few, "many": many}).content.labels)
    assert labels["few"].tolist() == [str(i) for i in few]
    assert labels["many"].dtype == np.float64


def test_a_map_of_scores_is_compared_with_the_scores(rows):
    X, _ = rows
    pca = PCA(3).fit(X)
    tsne = TSNE(perplexity=10, max_iter=100).fit(pca.transform(X))
    content = report(X, pca=pca, tsne=tsne).content
    assert content.space == "the first 3 components"


def test_sparse_tables_and_gaps_that_the_model_fills_have_a_page(rows):
    S = sp.random(40, 30, density=0.2, random_state=0, format="csr")
    assert np.array_equal(report(S, pca=PCA(3).fit(S)).content.X, S.toarray())
    X = rows[0].copy()
    X[4, 2] = np.nan
    content = report(X, pca=PCA(2, missing="em").fit(X)).content
    assert np.isfinite(content.X).all()
    with pytest.raises(MissingValueError, match="row 4, column 2"):
        report(X, pca=PCA(2).fit(rows[0]))


def test_stability_is_a_section_of_its_own_where_it_is_asked_for(rows):
    X, _ = rows
    pca, tsne = fitted(X, max_iter=100)
    asked = report(X, pca=pca, tsne=tsne, stability=2)
    found = stability(tsne, X, runs=2)
    given = report(X, pca=pca, tsne=tsne, stability=found)
    assert "stability" in sections(asked)
    assert asked.html == given.html
    with pytest.raises(ValueError, match="`stability` must be None without a map; got 2"):
        report(X, stability=2)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (
            {"names": ["a", "b"]},
            ValueError,
            "`names` must name each of the 5 columns; got '2 names'",
        ),
        ({"ids": ["a"]}, ValueError, "`ids` must hold one value for each of the 90 rows"),
        ({"labels": [1.5, 2]}, ValueError, "`labels` must hold one value for each of the 90 rows"),
        ({"labels": ["a"]}, ValueError, "`labels` must have 90 rows"),
        ({"page_budget": 10}, ValueError, "`page_budget` must be an integer ≥ 100000"),
        ({"page_budget": 1e6}, TypeError, "`page_budget` must be an integer"),
    ],
    ids=["names", "ids", "numbers", "labels", "small budget", "float budget"],
)
def test_what_does_not_fit_is_refused_with_its_name(rows, wrong, error, says):
    with pytest.raises(error, match=re.escape(says)):
        report(rows[0], **wrong)


def test_rows_that_the_components_were_not_found_in_are_a_table_of_their_own(rows):
    X, _ = rows
    said = Page(report(X[:4], pca=PCA().fit(X)).html).words
    assert "The table has 4 rows and 5 columns of numbers." in said
    assert "of 5 components" in said  # there are more than four rows could have
    assert f"The table of {len(X)} rows and 5 columns was centred" in said


def test_models_of_other_tables_are_refused(rows):
    X, _ = rows
    with pytest.raises(DataError, match="X has 5 columns; `pca` was fitted to 4"):
        report(X, pca=PCA(2).fit(X[:, :4]))
    with pytest.raises(DataError, match="X has 90 rows; the map has 60"):
        report(X, tsne=TSNE(perplexity=5, max_iter=50).fit(X[:60]))


def test_help_of_the_package_is_that_of_the_function():
    shown = pydoc.render_doc(gnomon.report, renderer=pydoc.plaintext)
    assert "gnomon.report - report(X, *, pca=None, tsne=None," in shown
    assert shown.index("X : array") < shown.index("PACKAGE CONTENTS")
