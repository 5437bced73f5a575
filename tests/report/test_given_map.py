import json
import re

import numpy as np
import pytest

import gnomon
from gnomon import PCA, TSNE, report, samples
from gnomon.errors import DataError, ParameterError, ParameterTypeError

WINE = samples.load("wine")
X = PCA(0.95, standardize=True).fit_transform(WINE.X)
Y = X[:, :3]


def words(page):
    read = re.sub(r"<(script|style).*?</\1>", " ", page.html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", read))


def data(page):
    text = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.html, re.S)
    return json.loads(text[1])


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_page_of_a_map_by_others_says_so_and_tests_it(axes):
    page = report(X, map=X[:, :axes], labels=WINE.labels)
    text = words(page)
    assert "The map was given" in text
    assert "given; judged in all 10 columns by euclidean distance" in text
    assert "Is it better than chance?" in text
    assert "t-SNE" not in text.replace("The art of using t-SNE", "")  # a reference
    assert data(page)["maps"][0]["name"].startswith("Map")
    assert "report(X, pca=pca, map=Y, labels=labels)" in page.html.replace("&#34;", '"')


def test_rows_can_be_coloured_by_what_the_audit_found():
    page = report(X, map=Y)
    found = gnomon.audit(X, Y)
    assert 0 < found.placed.mean() < 1
    names = [field["name"] for field in data(page)["labels"]]
    assert names[-2:] == ["trustworthiness", "placement"]
    assert data(page)["labels"][-1]["scattered"]  # no place on the map is called "placed"
    placement = dict(page.content.tested)["placement"]
    np.testing.assert_array_equal(placement == "misplaced", found.misplaced)
    np.testing.assert_array_equal(placement == "undecided", found.undecided)
    assert "are undecided: the test shows it neither way" in words(page)
    assert "No row is misplaced." in words(page)


def test_misplaced_rows_are_listed_up_to_25():
    junk = np.random.default_rng(0).standard_normal((len(X), 2))
    found = gnomon.audit(X, junk)
    page = report(X, map=junk, audit=found)
    text = words(page)
    many = int(found.misplaced.sum())
    assert many > 25
    assert f"25 of {many} misplaced rows. To see all, choose placement" in text
    assert "at least half of the places on the map would suit them as well" in text
    assert "lie as if at random" in text


def test_trust_is_that_of_the_given_map_and_metric():
    page = report(X, map=Y, metric="cosine")
    expected = gnomon.scores.recall(X, Y, 15, metric="cosine")
    assert page.content.trust.mean() == pytest.approx(expected)
    assert page.content.quality.metric == page.content.audit.scores.metric == "cosine"


def test_an_audit_of_a_t_sne_stands_on_its_page():
    columns = (WINE.X - WINE.X.mean(axis=0)) / WINE.X.std(axis=0)
    tsne = TSNE(random_state=0, max_iter=100).fit(columns)
    found = gnomon.audit(columns, tsne)
    page = report(columns, tsne=tsne, audit=found)
    text = words(page)
    assert "unsupported" in text
    assert "The map was given" not in text
    assert [name for name, _ in page.content.tested][-1] == "support"
    assert "Benjamini" in text
    assert "Is it better than chance?" not in words(report(columns, tsne=tsne))


def test_rows_among_another_group_are_listed_and_told_apart():
    rng = np.random.default_rng(0)
    groups = np.array(["one", "two"], dtype=object)[np.arange(100) % 2]
    data = np.where(groups == "one", 0.0, 9.0)[:, None] + rng.standard_normal((100, 5))
    data[0] += 9.0  # an unusual row: among "two" in the data as well
    positions = data[:, :2].copy()
    positions[3] -= 9.0  # moved by the map alone
    ids = [f"r{i}" for i in range(100)]
    page = report(data, map=positions, labels=groups, ids=ids)
    text = words(page)
    assert "2 rows lie among another label, 1 of them only on the map, 1 in the data, too" in text
    table = text[text.index("Rows among another label") :]
    assert table.index("r3 two one") < table.index("r0 one two")
    found = page.content.neighbor_labels
    assert found.columns()["among"][[0, 3]].tolist() == ["two", "one"]
    assert found.columns()["among_in_data"][[0, 3]].tolist() == ["two", None]
    assert "Rows among another" not in words(report(data, map=data[:, :2]))


def test_rows_that_were_not_tested_have_no_colour():
    found = gnomon.audit(X, Y, sample=60)
    page = report(X, map=Y, audit=found)
    placement = dict(page.content.tested)["placement"]
    assert sum(value is not None for value in placement) == 60
    assert "tested: 60, drawn at random" in words(page)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"map": Y[:9]}, DataError, "X has 178 rows; the map has 9"),
        ({"map": X[:, :4]}, ParameterError, "`map` must have 1, 2 or 3 columns; got 4"),
        ({"map": np.full_like(Y, np.inf)}, DataError, "inf"),
        ({"map": [["a", "b"]] * len(X)}, (DataError, TypeError), "number"),
        ({"map": Y, "metric": "manhattan"}, ParameterError, "`metric` must be"),
        ({"map": TSNE()}, ParameterTypeError, "`map` must be the positions"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_in_one_sentence(given, error, message):
    if isinstance(given["map"], TSNE):
        given["map"].embedding_ = Y
    with pytest.raises(error, match=message):
        report(X, **given)


def test_a_page_shows_one_map():
    tsne = TSNE(random_state=0, max_iter=20).fit(X)
    with pytest.raises(ParameterError, match="`map` must be None if `tsne` is given"):
        report(X, map=Y, tsne=tsne)


def test_an_audit_of_other_rows_is_refused():
    with pytest.raises(DataError, match="X has 178 rows; `audit` is of 50"):
        report(X, map=Y, audit=gnomon.audit(X[:50], Y[:50]))


def test_a_result_has_the_page_of_its_run():
    result = gnomon.run("iris", seed=0)
    page = report(result, title="Irises")
    assert page.content.title == "Irises"
    np.testing.assert_array_equal(page.content.Y, result.positions)
    np.testing.assert_array_equal(page.content.trust, result.trust)
    assert page.content.labels[0][0] == "species"
    with pytest.raises(ParameterError, match="`labels` must be None for a result"):
        report(result, labels=[1, 2])


def test_the_page_of_a_sampled_result_says_which_rows_were_mapped():
    result = gnomon.run("iris", sample=100, seed=0)
    assert "100" in " ".join(report(result).content.notes)
