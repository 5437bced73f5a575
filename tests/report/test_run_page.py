"""Pages of runs whose table, or most of it, is not at hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report.pages import Page, groups_of_rows

from gnomon import PCA, TSNE, stability
from gnomon.data.table import Table
from gnomon.errors import ParameterError
from gnomon.pipeline import flow
from gnomon.report import run_page as run
from gnomon.report.build import build
from gnomon.report.report import Report


@pytest.fixture
def stored(tmp_path):
    """A model, and its scores in a file of many small groups of rows."""
    X, _ = groups_of_rows()
    pca = PCA(3, random_state=0).fit(X)
    scores = pca.transform(X)
    path = tmp_path / "scores.parquet"
    columns = {f"pc{j + 1}": scores[:, j] for j in range(3)}
    pq.write_table(pa.table(columns), path, row_group_size=7)
    return pca, scores, path


def page_of_scores(pca, path):
    table = Table("cells", np.empty((90, 0)), tuple("abcde"))
    content = run.gather_scores(pca, path, table)
    return Report(build(content), content)


def test_scores_in_a_file_make_a_page_of_all_rows(stored):
    pca, scores, path = stored
    page = page_of_scores(pca, path)
    assert np.array_equal(page.content.scores, scores)
    assert page.content.ids is None
    said = Page(page.html).words
    assert "cells has 90 rows and 5 columns of numbers;" in said
    assert "drawn at random" not in said


def test_of_many_rows_in_a_file_some_are_shown_under_their_numbers(stored, monkeypatch):
    pca, scores, path = stored
    monkeypatch.setattr(run, "FROM_FILE", (30, 2))
    page = page_of_scores(pca, path)
    rows = page.content.numbers
    assert page.content.ids is None
    assert len(set(rows.tolist())) == 30
    assert np.array_equal(page.content.scores, scores[rows, :2])
    said = Page(page.html).words
    assert "cells has 90 rows and 5 columns of numbers, and the page shows 30 of the rows." in said
    assert "The page shows 30 of 90 rows, drawn at random." in said
    assert "The table of 90 rows" in said


def test_rows_can_be_coloured_by_what_was_left_out_as_well(tmp_path):
    X, groups = groups_of_rows()
    owners = ["yes" if i % 3 else "no" for i in range(len(X))]
    columns = {"tree": groups.tolist(), "owner": owners} | {f"v{j}": X[:, j] for j in range(5)}
    pq.write_table(pa.table(columns), tmp_path / "trees.parquet")
    found = flow.run(tmp_path / "trees.parquet", dimensions=None)
    content = run.gather_run(found.table, found.prepared, found.pca)
    (tree, _), (owner, values) = content.labels
    assert (tree, owner) == ("tree", "owner")
    assert values.tolist() == owners


@pytest.mark.parametrize(
    "options", [{}, {"metric": "cosine"}, {"pca": PCA(3, random_state=0)}], ids=str
)
def test_a_map_whose_table_is_gone_is_as_stable_as_with_it(options):
    X, _ = groups_of_rows()
    if "pca" in options:
        options["pca"].fit(X)
    pca, tsne = PCA(3, random_state=0).fit(X), TSNE(perplexity=10, max_iter=300, **options).fit(X)
    table = Table("cells", np.empty((90, 0)), tuple("abcde"))
    content = run.gather_without_table(
        pca, tsne, pca.transform(X), table, Y=tsne.embedding_, stability=3
    )
    found, known = content.stability, stability(tsne, X, runs=3)
    assert np.corrcoef(found.spread, known.spread)[0, 1] > 0.8  # runs differ by 0.4, by chance
    assert found.score == pytest.approx(known.score, abs=0.05)


def test_only_a_map_of_all_rows_is_made_again(stored):
    pca, scores, _ = stored
    table = Table("cells", np.empty((90, 0)), tuple("abcde"))
    with pytest.raises(ParameterError, match="`stability` must be None without a map of all rows"):
        run.gather_without_table(pca, None, scores, table, stability=3)
