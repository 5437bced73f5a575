import numpy as np

from gnomon.scores.neighbor_labels import find_neighbor_labels

LABELS = np.array(["a", "a", "a", "b", "b", "b", None, "a"], dtype=object)
IN_DATA = np.array([[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4], [0, 1], [3, 4]])
ON_MAP = np.array([[1, 2], [0, 3], [3, 4], [4, 5], [3, 5], [3, 4], [0, 1], [3, 4]])


def test_rows_with_fewer_than_half_of_their_own_label_are_among_another():
    found = find_neighbor_labels(LABELS, IN_DATA, ON_MAP)
    assert found.other_on_map.tolist() == [None, None, "b", None, None, None, None, "b"]
    assert found.other_in_data.tolist() == [None] * 7 + ["b"]
    np.testing.assert_array_equal(found.same_on_map[:3], [1, 0.5, 0])
    assert np.isnan(found.same_on_map[6])  # without a label
    assert found.on_map.tolist() == [2, 7]
    assert np.flatnonzero(found.only_on_map).tolist() == [2]


def test_answers_follow_rows_that_are_taken():
    found = find_neighbor_labels(LABELS, IN_DATA, ON_MAP)
    rows = np.array([7, 2, 0])
    part = found.take(rows)
    assert part.columns()["among"].tolist() == ["b", "b", None]


def test_rows_among_rows_without_a_label_are_among_no_other_group():
    labels = np.array(["a", None, None], dtype=object)
    near = np.array([[1, 2], [0, 2], [0, 1]])
    assert find_neighbor_labels(labels, near, near).on_map.size == 0
