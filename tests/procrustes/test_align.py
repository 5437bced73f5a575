import json

import numpy as np
import pandas as pd
import pytest
from procrustes.sets import pair

from gnomon import Procrustes, align
from gnomon.errors import DataError

IDS = [f"row {i}" for i in range(60)]


def test_rows_are_joined_on_their_ids_and_all_of_them_are_moved():
    X, Y = pair(d=2)
    order = np.random.default_rng(0).permutation(60)[:50]
    found = align(X[order], Y[:55], [IDS[i] for i in order], IDS[:55], scaling=True)
    shared = [i for i in order if i < 55]
    expected = Procrustes(scaling=True).fit(X[shared], Y[shared])
    assert np.allclose(found.model.rotation_, expected.rotation_)
    assert np.allclose(found.aligned, expected.transform(X[order]))
    assert found.shared == tuple(IDS[i] for i in shared)
    assert set(found.only_x) == {IDS[i] for i in order if i >= 55}
    assert set(found.only_y) == {IDS[i] for i in range(55)} - {IDS[i] for i in order}
    assert np.array_equal(X[order][found.rows_x], X[shared])
    assert np.array_equal(Y[found.rows_y], Y[shared])
    assert np.allclose(found.residuals, expected.residuals_)


def test_without_ids_row_i_belongs_to_row_i():
    X, Y = pair(d=3)
    found = align(X, Y, reflection="forbid")
    assert np.array_equal(
        found.model.rotation_, Procrustes(reflection="forbid").fit(X, Y).rotation_
    )
    assert (found.only_x, found.only_y) == ((), ())
    with pytest.raises(DataError, match=r"got 60 and 59. Give `ids_x` and `ids_y`"):
        align(X, Y[:59])


def test_indexes_of_dataframes_are_ids_unless_pandas_made_them():
    X, Y = pair(d=2)
    a, b = pd.DataFrame(X[::-1], IDS[::-1]), pd.DataFrame(Y[:50], IDS[:50])
    found = align(a, b)
    assert len(found.shared) == 50
    assert np.allclose(found.model.rotation_, Procrustes().fit(X[:50], Y[:50]).rotation_)
    with pytest.raises(DataError, match="same number of rows"):
        align(pd.DataFrame(X), pd.DataFrame(Y[:50]))


def test_weights_and_robust_fits_are_passed_on():
    X, Y = pair(d=2)
    w = np.r_[np.zeros(10), np.ones(50)]
    found = align(X[::-1], Y, IDS[::-1], IDS, sample_weight=w[::-1])
    assert np.allclose(found.model.rotation_, Procrustes().fit(X, Y, w).rotation_)
    assert align(X, Y, robust="tukey").model.weights_.shape == (60,)


WRONG_IDS = [
    ("too few", IDS[:3], IDS, r"`ids_x` must be 60 ids.*got 3"),
    ("one side only", IDS, None, r"`ids_y` must be given"),
    ("twice the same", ["a", *IDS[1:59], "a"], IDS, r"`ids_x` must be distinct; got 'a'.*0 and 59"),
    ("missing", IDS, [None, *IDS[1:]], r"`ids_y` must have an id for every row.*row 0"),
    ("NaN", IDS, [float("nan"), *IDS[1:]], r"`ids_y` must have an id for every row"),
    ("not hashable", [[i] for i in IDS], IDS, r"`ids_x` must be hashable"),
]


@pytest.mark.parametrize(
    ("ids_x", "ids_y", "says"), [row[1:] for row in WRONG_IDS], ids=[row[0] for row in WRONG_IDS]
)
def test_wrong_ids_are_named(ids_x, ids_y, says):
    X, Y = pair(d=2)
    with pytest.raises((ValueError, TypeError), match=says):
        align(X, Y, ids_x, ids_y)


def test_text_and_numbers_are_not_the_same_id():
    X, Y = pair(d=2)
    with pytest.raises(DataError, match=r"share no id: 60: 0, 1.*'0', '1'.*same kind"):
        align(X, Y, list(range(60)), [str(i) for i in range(60)])


def test_an_alignment_reads_as_sentences_and_as_json():
    X, Y = pair(d=2)
    found = align(X, Y[:50], IDS, IDS[:50])
    assert "only in X  10: 'row 50'" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["n_shared"] == 50
    assert "only in Y" in found._repr_html_()


def test_one_shared_row_says_nothing_of_a_rotation():
    X, Y = pair(d=2)
    with pytest.raises(DataError, match="1 shared row is too few"):
        align(X, Y, IDS, [*IDS[:1], *(f"other {i}" for i in range(59))])


@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
def test_a_wider_table_gets_the_columns_of_the_narrower_one(scaling):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 7)) + 3, rng.normal(size=(40, 3)) - 5
    found = align(X, Y, scaling=scaling)
    # Padding Y with zeros leaves XᵀY = UΣVᵀ as it is: the best directions of X are UVᵀ.
    x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    U, sigma, Vt = np.linalg.svd(x.T @ y, full_matrices=False)
    factor = {
        False: 1.0,
        True: sigma.sum() / np.square(x).sum(),
        "norm-ratio": np.linalg.norm(y) / np.linalg.norm(x),
    }[scaling]
    assert found.aligned == pytest.approx(Y.mean(axis=0) + factor * x @ (U @ Vt))
    inside = np.square(x @ (U @ Vt)).sum() / np.square(x).sum()
    assert found.outside == pytest.approx(1 - inside)
    padded = align(X, np.column_stack([Y, np.zeros((40, 4))]), scaling=scaling)
    assert padded.disparity == pytest.approx(found.disparity)
    assert np.square(padded.aligned[:, 3:]).sum() / np.square(
        padded.aligned - padded.aligned.mean(axis=0)
    ).sum() == pytest.approx(found.outside)
    assert "which the columns of Y do not hold" in str(found)


def test_a_narrower_table_keeps_all_of_its_length():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 7))
    found = align(X, Y)
    assert (found.aligned.shape, found.outside) == ((40, 7), 0.0)
    assert "which the columns" not in str(found)
    assert "X and Y differ in their numbers of columns" in str(found)
