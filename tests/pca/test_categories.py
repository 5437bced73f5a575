import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pca.tables import assert_same_columns, correlated, factominer
from references.tables import read

from gnomon.errors import MissingValueError, ParameterError
from gnomon.pca import PCA


def test_supplementary_numbers_agree_with_factominer():
    X, model = factominer("decathlon")
    Z = read("decathlon")[2][:, 10:12].astype(float)
    r = model.correlate(X, Z) * signs_of(model)
    assert_same_columns(r, read("factominer_decathlon_quantisup_cor")[2], signed=True)
    # FactoMineR standardises supplementary columns too: their coordinates are correlations.
    assert_same_columns(r, read("factominer_decathlon_quantisup_coord")[2], signed=True)
    assert_same_columns(r**2, read("factominer_decathlon_quantisup_cos2")[2], signed=True)


def signs_of(model):
    """FactoMineR's sign of each component, relative to ours."""
    coord = read("factominer_decathlon_var_coord")[2]
    return np.sign((coord * model.loadings_).sum(axis=0))


def test_supplementary_categories_agree_with_factominer():
    X, model = factominer("decathlon")
    found = model.correlate(X, read("decathlon")[2][:, 12])
    names, _, coord = read("factominer_decathlon_qualisup_coord")
    assert list(found.names) == names
    assert found.counts.tolist() == [13, 28]
    signs = signs_of(model)
    assert_same_columns(found.coordinates * signs, coord, signed=True)
    v_test = read("factominer_decathlon_qualisup_v.test")[2]
    assert_same_columns(found.v_test * signs, v_test, signed=True)
    cos2 = read("factominer_decathlon_qualisup_cos2")[2]
    assert_same_columns(found.cos2, cos2, signed=True)


def test_supplementary_copies_of_the_columns_correlate_like_the_columns():
    X = correlated()
    model = PCA(4).fit(X)
    np.testing.assert_allclose(model.correlate(X, X), model.correlations(), atol=1e-12)


def test_integer_weights_are_repeated_rows():
    X, labels = correlated(), np.array(["a", "b", "c"] * 20)
    numbers = np.random.default_rng(2).normal(size=60)
    times = np.arange(60) % 4
    model = PCA(3).fit(X, sample_weight=times)
    rows = np.repeat(np.arange(60), times)
    weighted = model.categories(X, labels, times)
    repeated = model.categories(X[rows], labels[rows])
    assert weighted.counts.tolist() == repeated.counts.tolist()
    for field in ("coordinates", "cos2", "v_test"):
        np.testing.assert_allclose(getattr(weighted, field), getattr(repeated, field), rtol=1e-9)
    np.testing.assert_allclose(
        model.correlate(X, numbers, times), model.correlate(X[rows], numbers[rows]), rtol=1e-9
    )


def test_the_v_test_counts_standard_errors_of_a_random_draw():
    X = correlated(n=50)
    model = PCA(2).fit(X)
    scores, members = model.transform(X), np.arange(50) < 12
    random = np.random.default_rng(3)
    means = np.array([scores[random.permutation(50)[:12]].mean(axis=0) for _ in range(4000)])
    v = model.categories(X, members).v_test[1]
    # 4,000 draws know a standard deviation to 1.1 %; three times that
    np.testing.assert_allclose(v, scores[members].mean(axis=0) / means.std(axis=0), rtol=0.034)


def test_the_v_test_compares_with_the_rows_at_hand():
    X, labels = correlated(), np.arange(60) % 3
    model = PCA(2).fit(X)
    here, elsewhere = model.categories(X, labels), model.categories(X + 5, labels)
    np.testing.assert_allclose(elsewhere.v_test, here.v_test, rtol=1e-9)
    assert (np.abs(elsewhere.coordinates - here.coordinates) > 0.1).all()


LABELS = ["low", "high", "mid"] * 20


@pytest.mark.parametrize(
    ("labels", "variables", "names"),
    [
        (LABELS, [""], ["high", "low", "mid"]),
        (np.array(LABELS), [""], ["high", "low", "mid"]),
        (pd.Series(LABELS, name="size"), ["size"], ["high", "low", "mid"]),
        (pd.Categorical(LABELS, ["low", "mid", "high", "huge"]), [""], ["low", "mid", "high"]),
        (pd.DataFrame({"a": LABELS, "b": LABELS}), ["a", "b"], ["high", "low", "mid"]),
        (pl.Series("s", LABELS, pl.Enum(["low", "mid", "high"])), ["s"], ["low", "mid", "high"]),
        (pa.table({"size": LABELS}), ["size"], ["high", "low", "mid"]),
        ([None if label == "low" else label for label in LABELS], [""], ["high", "mid"]),
        ([np.nan if label == "low" else label for label in LABELS], [""], ["high", "mid"]),
        (np.array(LABELS) == "low", [""], ["False", "True"]),
    ],
)
def test_labels_of_every_kind_are_read(labels, variables, names):
    X = correlated()
    found = PCA(2).fit(X).correlate(X, labels)
    assert list(found.names) == names * len(variables)
    assert list(found.variables) == list(np.repeat(variables, len(names)))
    values = np.array(LABELS)
    groups = {name: values == name for name in names}
    if "True" in names:
        groups = {"True": values == "low", "False": values != "low"}
    scores = PCA(2).fit(X).transform(X)
    for i, name in enumerate(found.names):
        assert found.counts[i] == groups[name].sum()
        np.testing.assert_allclose(found.coordinates[i], scores[groups[name]].mean(axis=0))


def test_numbers_can_be_names_of_groups():
    X = correlated()
    codes = np.arange(60) % 12
    assert PCA(2).fit(X).correlate(X, codes).shape == (1, 2)
    assert PCA(2).fit(X).categories(X, codes).names == tuple(map(str, range(12)))


@pytest.mark.parametrize(
    ("Z", "error", "words"),
    [
        (np.zeros((5, 2)), ParameterError, "60 rows"),
        (["a"] * 5, ParameterError, "60 rows"),
        (np.r_[np.zeros(59), np.nan], MissingValueError, "row 59"),
        (pd.DataFrame({"a": LABELS, "b": np.zeros(60)}), ParameterError, "its own call"),
    ],
)
def test_supplementary_columns_that_do_not_fit_are_refused(Z, error, words):
    X = correlated()
    with pytest.raises(error, match=words):
        PCA(2).fit(X).correlate(X, Z)


def test_categories_are_readable_and_ready_for_json():
    X = correlated()
    found = PCA(2).fit(X).correlate(X, pd.Series(LABELS, name="size"))
    assert "size: high" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["counts"] == [20, 20, 20]
