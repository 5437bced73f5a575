from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsClassifier

from gnomon import samples, scores
from gnomon.scores.classes import read_codes, vote

iris = samples.load("iris")
rng = np.random.default_rng(0)
Y = rng.standard_normal((200, 2))
labels = (Y[:, 0] + 0.8 * rng.standard_normal(200) > 0).astype(int)


@pytest.mark.parametrize("k", [1, 5, 31])
def test_odd_votes_of_two_classes_are_scikit_learns_left_out_one_by_one(k):
    right = []
    for i in range(200):
        rest = np.arange(200) != i
        model = KNeighborsClassifier(k).fit(Y[rest], labels[rest])
        right.append(model.predict(Y[[i]])[0] == labels[i])
    assert scores.class_accuracy(Y, labels, k) == np.mean(right)


def test_between_as_many_votes_the_nearest_voter_decides():
    codes = np.array([0, 1, 1, 0, 2])
    near = np.array([[1, 3, 2, 4]], np.int32)  # labels 1 0 1 2
    assert vote(codes, np.array([0]), near)[0] == 0
    assert vote(codes, np.array([0]), near[:, :2])[0] == 0  # 1 and 0 have one each, 1 is nearer
    assert vote(codes, np.array([0]), near[:, [1, 0]])[0] == 1


def test_many_classes_vote_as_they_are_counted():
    codes = rng.integers(0, 6, 200)
    near = np.array([rng.permutation(200)[:9] for _ in range(200)], np.int32)
    found = vote(codes, np.arange(200), near)
    for i in range(200):
        votes = Counter(codes[near[i]].tolist())  # ties: in the order they were met
        assert found[i] == (votes.most_common(1)[0][0] == codes[i])


def test_points_without_a_label_neither_vote_nor_are_judged():
    codes = np.array([0, -1, 0, 1, -1])
    near = np.array([[1, 2], [2, 3], [1, 4], [1, 4]], np.int32)
    found = vote(codes, np.array([0, 1, 2, 3]), near)
    np.testing.assert_array_equal(found, [1, np.nan, np.nan, np.nan])


def test_labels_of_any_kind_are_read():
    names = ["a", "b", None, "a"]
    expected = [0, 1, -1, 0]
    for given in (
        names,
        tuple(names),
        np.array(names, object),
        pd.Series(names),
        pd.Series(names, dtype="category"),
        pl.Series(names),
        np.ma.MaskedArray([7, 8, 9, 7], [False, False, True, False]),
        [1.5, 2.5, float("nan"), 1.5],
        [True, False, pd.NA, True],
    ):
        assert read_codes(given, 4).tolist() == expected


def test_labels_that_cannot_be_are_refused():
    for bad, words in (
        (["a"] * 3, "`labels` must have 4 rows, as many as the map; got 3"),
        ([None] * 4, "at least one label"),
        (np.zeros((4, 1)), "one column of 4 labels"),
        ("abcd", "one column of 4 labels"),
        (3, "one column of 4 labels"),
        ([[1], [2], [3], [4]], "one column of 4 labels"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            read_codes(bad, 4)


def test_a_clear_map_keeps_its_classes_and_shuffled_labels_do_not():
    assert scores.class_accuracy(iris.X, iris.labels) > 0.95
    shuffled = np.random.default_rng(0).permutation(iris.labels)
    assert scores.class_accuracy(iris.X, shuffled) < 0.5
    found = scores.score_map(iris.X, iris.X[:, 2:], iris.labels, n_neighbors=15)
    assert found.class_accuracy_in_data.mean[0] == scores.class_accuracy(iris.X, iris.labels)
    assert found.class_accuracy.mean[0] == scores.class_accuracy(iris.X[:, 2:], iris.labels)


def test_nobody_to_judge_gives_no_number():
    alone = [None] * 200
    alone[3] = "a"
    assert np.isnan(scores.class_accuracy(Y, alone))


def test_all_other_points_may_vote_but_no_more():
    assert 0 <= scores.class_accuracy(Y, labels, 199) <= 1
    with pytest.raises(ValueError, match="`n_neighbors` must be an integer from 1 to 199; got 200"):
        scores.class_accuracy(Y, labels, 200)
