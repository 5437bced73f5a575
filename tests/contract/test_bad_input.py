"""The table of bad inputs that every estimator is put through (hard cases 1, 2, 10–12, 14, 17)."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract.estimators import ESTIMATORS
from sklearn.base import clone
from sklearn.utils import get_tags

from gnomon import PCA
from gnomon.errors import GnomonError

GOOD = np.random.default_rng(0).standard_normal((40, 5))
UNIQUE = [estimator for estimator, _ in ESTIMATORS]
TARGET = np.random.default_rng(1).standard_normal((40, 5))


def fitted(estimator, X):
    """A copy of `estimator` fitted to `X`, and to as many rows of a target if it needs one."""
    if not get_tags(estimator).target_tags.required:
        return clone(estimator).fit(X)
    rows = len(X) if hasattr(X, "__len__") else 1
    return clone(estimator).fit(X, TARGET[:rows])


def with_cell(value, dtype=None):
    X = GOOD.astype(dtype) if dtype else GOOD.copy()
    X[7, 3] = value
    return X


def frame(X):
    return pd.DataFrame(X, columns=["a", "b", "c", "price", "e"])


def objects(value):
    X = GOOD.astype(object)
    X[7, 3] = value
    return X


MASKED = np.ma.masked_array(GOOD, mask=np.zeros(GOOD.shape, bool))
MASKED[7, 3] = np.ma.masked

# name, X, error, what its sentence must say
REFUSED = [
    ("one NaN", with_cell(np.nan), ValueError, r"1 missing value \(NaN\).*row 7, column 3.*'em'"),
    ("a named NaN", frame(with_cell(np.nan)), ValueError, r"row 7, column 'price'"),
    ("NaN in float32", with_cell(np.nan, np.float32), ValueError, r"row 7, column 3"),
    ("infinity", with_cell(np.inf), ValueError, r"1 infinite value \(inf\).*row 7, column 3"),
    ("minus infinity", frame(with_cell(-np.inf)), ValueError, r"row 7, column 'price'"),
    ("masked cell", MASKED, ValueError, r"1 missing value.*row 7, column 3"),
    ("None", objects(None), ValueError, r"1 missing value.*row 7, column 3"),
    ("pandas' NA", objects(pd.NA), ValueError, r"1 missing value.*row 7, column 3"),
    (
        "null in pandas",
        frame(GOOD).astype("Float64").mask(with_cell(99.0) == 99),
        ValueError,
        r"row 7, column 'price'",
    ),
    (
        "null in polars",
        pl.DataFrame(frame(with_cell(np.nan)).to_dict("list"), nan_to_null=True),
        ValueError,
        r"row 7, column 'price'",
    ),
    (
        "null in pyarrow",
        pa.Table.from_pandas(frame(with_cell(np.nan))),
        ValueError,
        r"row 7, column 'price'",
    ),
    ("complex numbers", GOOD + 1j, ValueError, r"[Cc]omplex"),
    ("dates", (GOOD * 1e6).astype("datetime64[s]"), TypeError, r"dates.*Choose an encoding"),
    (
        "a column of dates",
        frame(GOOD).assign(e=pd.Timestamp("2020-01-01")),
        TypeError,
        r"dates .*in column 'e'.*Choose an encoding",
    ),
    ("time spans", (GOOD * 1e6).astype("timedelta64[s]"), TypeError, r"Choose an encoding"),
    ("numbers as text", GOOD.astype(str), TypeError, r"not numbers"),
    ("text in an object", objects("12"), TypeError, r"str \('12'\), not numbers"),
    ("a date in an object", objects(datetime.date(2020, 1, 1)), TypeError, r"dates"),
    ("a dict in an object", objects({}), TypeError, r"dict \(\{\}\), not numbers.*row 7, column 3"),
    ("complex in an object", objects(1j), ValueError, r"complex numbers.*row 7, column 3.*real"),
    ("an endless integer", objects(10**400), ValueError, r"400 digits.*row 7, column 3.*units"),
    ("text in pandas", frame(GOOD).assign(e="red"), TypeError, r"not numbers in column 'e'"),
    ("text in polars", pl.DataFrame({"a": [1.0, 2.0], "e": ["x", "y"]}), TypeError, r"column 'e'"),
    ("text in pyarrow", pa.table({"a": [1.0, 2.0], "e": ["x", "y"]}), TypeError, r"column 'e'"),
    ("categories", frame(GOOD).assign(e=pd.Categorical(["x", "y"] * 20)), TypeError, r"column 'e'"),
    ("ragged rows", [[1.0, 2.0], [3.0]], ValueError, r"every row needs the same number of columns"),
    ("a number", 3.0, ValueError, r"Expected 2D array.*got shape \(\)"),
    ("one dimension", GOOD[0], ValueError, r"Expected 2D array.*got shape \(5,\)"),
    ("three dimensions", GOOD[None], ValueError, r"got shape \(1, 40, 5\)"),
    ("no rows", GOOD[:0], ValueError, r"0 sample\(s\).*\(0, 5\)"),
    ("no columns", GOOD[:, :0], ValueError, r"0 feature\(s\).*\(40, 0\)"),
    ("one row", GOOD[:1], ValueError, r"1 sample"),
]


@pytest.mark.parametrize("estimator", UNIQUE, ids=repr)
@pytest.mark.parametrize(
    ("X", "error", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_unusable_data_are_refused_in_one_sentence(estimator, X, error, says):
    with pytest.raises(error, match=re.compile(says, re.DOTALL)):
        fitted(estimator, X)


READ_ALIKE = [
    ("a list of lists", GOOD.tolist()),
    ("Fortran order", np.asfortranarray(GOOD)),
    ("strided", np.repeat(np.repeat(GOOD, 2, 0), 2, 1)[::2, ::2]),
    ("backwards", GOOD[::-1, ::-1].copy()[::-1, ::-1]),
    ("big-endian", GOOD.astype(">f8")),
    ("pandas", frame(GOOD)),
    ("polars", pl.DataFrame(frame(GOOD).to_dict("list"))),
    ("pyarrow", pa.Table.from_pandas(frame(GOOD))),
    ("objects", GOOD.astype(object)),
    ("nullable pandas", frame(GOOD).astype("Float64")),
    ("a mask over nothing", np.ma.masked_array(GOOD)),
]


@pytest.mark.parametrize("estimator", UNIQUE, ids=repr)
@pytest.mark.parametrize("X", [row[1] for row in READ_ALIKE], ids=[row[0] for row in READ_ALIKE])
def test_the_same_numbers_give_the_same_bits_however_they_are_stored(estimator, X):
    expected = fitted(estimator, GOOD).transform(GOOD)
    model = fitted(estimator, X)
    assert np.array_equal(np.asarray(model.transform(X)), expected)


@pytest.mark.parametrize("estimator", UNIQUE, ids=repr)
def test_read_only_and_memory_mapped_tables_are_read_and_left_alone(estimator, tmp_path):
    expected = fitted(estimator, GOOD).transform(GOOD)
    np.save(tmp_path / "table.npy", GOOD)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    copy = GOOD.copy()
    copy.flags.writeable = False
    for X in (mapped, copy):
        assert np.array_equal(fitted(estimator, X).transform(X), expected)
    assert np.array_equal(copy, GOOD)


# name, value, error
WRONG_COUNTS = [
    ("True", True, TypeError),
    ("a whole float", 2.0, ValueError),
    ("text", "2", ValueError),
    ("NaN", float("nan"), ValueError),
    ("negative", -1, ValueError),
    ("more than there are", 6, ValueError),
]


@pytest.mark.parametrize(
    ("k", "error"), [row[1:] for row in WRONG_COUNTS], ids=[row[0] for row in WRONG_COUNTS]
)
def test_a_wrong_number_of_components_is_refused_with_the_allowed_range(k, error):
    with pytest.raises(error, match=r"`n_components` must be an integer") as caught:
        PCA(n_components=k).fit(GOOD)
    assert isinstance(caught.value, GnomonError)
    if not isinstance(k, str):
        assert "from 0 to 5" in str(caught.value)


WRONG_PARAMETERS = [
    ("solver", "fast"),
    ("svd_solver", "fast"),
    ("standardize", 1),
    ("whiten", "yes"),
    ("ddof", -1),
    ("ddof", 1.5),
    ("missing", "drop"),
    ("tol", -1e-9),
    ("tol", float("nan")),
    ("tol", "small"),
    ("feature_weight", [1, 2]),
    ("feature_weight", [1, 1, 1, 1, 0]),
    ("n_jobs", 0),
    ("feature_weight", ["a"] * 5),
]


@pytest.mark.parametrize(("name", "value"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_named_with_its_value(name, value):
    with pytest.raises((ValueError, TypeError), match=rf"`{name}` must .*; got ") as caught:
        PCA(**{name: value}).fit(GOOD)
    assert isinstance(caught.value, GnomonError)


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(40), np.full(40, np.nan), np.zeros(40)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match="`sample_weight` must"):
        PCA().fit(GOOD, sample_weight=weights)


@pytest.mark.parametrize("estimator", UNIQUE, ids=repr)
def test_transform_refuses_other_columns_and_takes_no_rows(estimator):
    model = fitted(estimator, frame(GOOD))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame(GOOD)[["b", "a", "c", "price", "e"]])
    model = fitted(estimator, GOOD)
    with pytest.raises(ValueError, match=r"4 features, but .* is expecting 5"):
        model.transform(GOOD[:, :4])
    assert model.transform(GOOD[:0]).shape == (0, model.transform(GOOD).shape[1])
    with pytest.raises(ValueError, match="row 7, column 3"):
        model.transform(with_cell(np.nan))
