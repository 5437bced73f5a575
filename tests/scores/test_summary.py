import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from gnomon import scores

rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 5))
Y = X[:, :2] + 0.3 * rng.standard_normal((6000, 2))
labels = np.where(X[:, 0] > 0, "east", "west")


@pytest.fixture(scope="module")
def sampled():
    return scores.score_map(X, Y, labels)


@pytest.fixture(scope="module")
def small():
    return scores.score_map(X[:120], Y[:120])


def test_the_record_holds_what_the_single_functions_give(small):
    x, y = X[:120], Y[:120]
    for column, k in enumerate(small.n_neighbors):
        assert small.trustworthiness.mean[column] == pytest.approx(scores.trustworthiness(x, y, k))
        assert small.continuity.mean[column] == pytest.approx(scores.continuity(x, y, k))
        assert small.recall.mean[column] == pytest.approx(scores.recall(x, y, k))
    assert small.distances == scores.rank_correlation(x, y)
    assert small.class_accuracy is None


def test_large_tables_are_scored_on_a_stated_sample(sampled):
    assert (sampled.n, sampled.rows.size, sampled.exact) == (6000, 1000, False)
    assert sampled.random_state == 0
    text = str(sampled)
    assert "1,000 rows drawn by random_state=0, each against all rows" in text
    assert text.count("±") == 6 * 3 + 1 + 1  # six scores of three sizes, distances, explanation
    again = scores.score_map(X, Y, labels, random_state=0)
    assert np.array_equal(again.rows, sampled.rows)
    assert np.array_equal(again.recall.points, sampled.recall.points)


def test_the_sample_covers_the_exact_scores(sampled):
    exact = scores.score_map(X, Y, labels, sample="all")
    for name in ("trustworthiness", "continuity", "recall", "order", "class_accuracy"):
        some, every = getattr(sampled, name), getattr(exact, name)
        away = np.abs(some.mean - every.mean) / some.standard_error
        assert (away < 3).all(), name  # three errors: one in 370 by chance, with a fixed seed
        assert (every.standard_error == 0).all()


def test_columns_are_ready_for_a_report(sampled, small):
    columns = sampled.columns()
    frame = pd.DataFrame(columns)
    assert frame.shape == (1000, 1 + 6 * 3)
    assert {"row", "recall_5", "order_15", "class_accuracy_in_data_50"} <= set(frame)
    assert frame["recall_15"].mean() == pytest.approx(sampled.recall.mean[1])
    wide = sampled.columns(every_row=True)
    assert all(len(column) == 6000 for column in wide.values())
    scored = np.isfinite(wide["recall_15"])
    assert np.array_equal(np.flatnonzero(scored), sampled.rows)
    assert np.array_equal(wide["recall_15"][scored], columns["recall_15"])
    assert not np.isnan(small.columns(every_row=True)["trustworthiness_5"]).any()


def test_columns_are_copies(small):
    small.columns()["recall_5"][:] = -1
    assert (small.recall.points >= 0).all()


def test_it_reads_well(small, sampled):
    assert str(small).splitlines()[0] == "Map of 120 rows, 5 columns to 2"
    assert str(small).splitlines()[1].split() == ["neighbours", "5", "15", "50"]
    assert "all rows" in str(small)
    assert "±" not in str(small)
    page = sampled._repr_html_()
    assert page.count("<tr>") == len(sampled.lines())
    assert "colspan='3'" in page
    assert "by cosine" in str(scores.score_map(X[:50], Y[:50], metric="cosine"))
    given = scores.score_map(X[:50], Y[:50], sample=20, random_state=np.random.default_rng(1))
    assert "drawn by a generator" in str(given)


def test_it_is_ready_for_json(sampled):
    found = json.loads(json.dumps(sampled.to_dict(), allow_nan=False))
    assert found["recall"]["mean"] == sampled.recall.mean.tolist()
    assert found["rows_scored"] == 1000
    assert found["distances"]["pairs"] == 500_000


def test_a_record_cannot_be_changed(small):
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.n = 3


def test_a_dataframe_and_a_list_are_tables(small):
    again = scores.score_map(pd.DataFrame(X[:120]), Y[:120].tolist())
    assert np.array_equal(again.recall.points, small.recall.points)


def test_bad_arguments_are_refused_before_any_work():
    for options, words in (
        ({"n_neighbors": 3000}, "`n_neighbors` must be an integer from 1 to 2999; got 3000"),
        ({"labels": labels[:10]}, "`labels` must have 6000 rows"),
        ({"metric": "manhattan"}, "`metric` must be one of"),
        ({"sample": 7000}, "`sample` must be an integer from 2 to 6000"),
        ({"pairs": 10}, "`pairs` must be an integer ≥ 200"),
        ({"random_state": "now"}, "`random_state` must be"),
        ({"n_jobs": 0}, "`n_jobs` must be"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            scores.score_map(X, Y, **options)
