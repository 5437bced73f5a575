import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator

from gnomon import PCA, TSNE, Procrustes, scores
from gnomon.errors import (
    DataError,
    DataTypeError,
    MissingValueError,
    ParameterError,
    ParameterTypeError,
)
from gnomon.inputs import (
    as_table,
    check_choice,
    check_integer,
    check_real,
    check_table,
    check_weights,
    column_name,
    is_sparse,
    random_generator,
    refuse_bad_values,
)

X = np.arange(12.0).reshape(4, 3)
NAMES = np.array(["a", "b", "price"], object)


class Model(BaseEstimator):
    """Remembers columns, as estimators do."""


def table(data, **options):
    return check_table(Model(), data, reset=True, **options)


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", ">f8", "i1", "u1", "i2", "i4", "i8", "u8", "longdouble"]
)
def test_numbers_keep_their_type(dtype):
    checked = table(X.astype(dtype))
    assert checked.dtype == np.dtype(dtype)
    assert np.array_equal(checked, X)


def test_a_good_array_is_not_copied():
    for data in (X, np.asfortranarray(X), X[::2, ::-1]):
        assert np.shares_memory(table(data), data)


def test_booleans_are_zeros_and_ones():
    flags = X > 5
    for data in (flags, flags[::-1], pd.DataFrame(flags, columns=list("abc"))):
        assert table(data).dtype == np.uint8
        assert np.array_equal(table(data), np.asarray(data).astype(int))


def test_long_integers_keep_every_digit():
    data = np.array([[2**60, 2**60 + 1], [2**60 + 2, 2**60 + 3]])
    assert np.array_equal(table(data) - 2**60, [[0, 1], [2, 3]])
    assert np.array_equal(table(np.ma.masked_array(data)) - 2**60, [[0, 1], [2, 3]])


def with_hole(value, dtype=object):
    data = X.astype(dtype)
    data[1, 2] = value
    return data


def objects_frame(value):
    """A frame whose column "price" holds objects, and whose rows have names that repeat."""
    column = pd.Series([2.0, value, 8.0, 11.0], dtype=object)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "price": column})
    return frame.set_axis(["x", "y", "x", "y"])


HOLES = {
    "NaN": with_hole(np.nan, float),
    "None": with_hole(None),
    "pandas' NA": with_hole(pd.NA),
    "pandas' NA in a list": with_hole(pd.NA).tolist(),
    "None in a column of objects": objects_frame(None),
    "pandas' NA in a column of objects": objects_frame(pd.NA),
    "pandas' NA in a column without a name": objects_frame(pd.NA).set_axis([0, 1, 2], axis=1),
    "None in a polars object": pl.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "price": pl.Series([2, None, 8, 11], dtype=pl.Object)}
    ),
    "masked": np.ma.masked_array(X, mask=np.isin(X, 5.0)),
    "masked integers": np.ma.masked_array(X.astype(int), mask=np.isin(X, 5.0)),
    "pandas Int64": pd.DataFrame(X.astype(int), columns=NAMES).astype("Int64").mask(X == 5),
    "pandas Int8 beside floats": pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "price": pd.array([2, None, 8, 11], dtype="Int8")}
    ),
    "polars": pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "price": [2.0, None, 8.0, 11.0]}),
    "pyarrow": pa.table({"a": X[:, 0], "b": X[:, 1], "price": pa.array([2, None, 8, 11])}),
}


@pytest.mark.parametrize("data", HOLES.values(), ids=HOLES)
def test_every_kind_of_missing_value_becomes_nan(data):
    checked = table(data)
    assert checked.dtype.kind == "f"
    expected = with_hole(np.nan, float)
    assert np.array_equal(checked, expected, equal_nan=True)


def test_the_users_masked_array_is_left_alone():
    data = np.ma.masked_array(X.copy(), mask=X == 5)
    table(data)
    assert data.data[1, 2] == 5
    assert data.mask[1, 2]


def test_objects_that_are_numbers_become_floats():
    data = np.array([[1, True], [decimal.Decimal("2.5"), np.float32(3)]], object)
    assert table(data).dtype == np.float64
    assert np.array_equal(table(data), [[1, 1], [2.5, 3]])


def test_names_and_width_are_remembered_and_checked():
    model = Model()
    frame = pd.DataFrame(X, columns=list(NAMES))
    check_table(model, frame, reset=True)
    assert list(model.feature_names_in_) == list(NAMES)
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names"):
        check_table(model, frame[["b", "a", "price"]], reset=False)
    plain = Model()
    check_table(plain, X, reset=True)
    with pytest.raises(ValueError, match="2 features, but Model is expecting 3"):
        check_table(plain, X[:, :2], reset=False)


def test_the_fewest_rows_are_asked_for():
    assert table(X[:0], min_rows=0).shape == (0, 3)
    with pytest.raises(ValueError, match=r"1 sample.* a minimum of 2"):
        table(X[:1], min_rows=2)


@pytest.mark.parametrize(
    "make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array, sp.csr_matrix]
)
def test_every_sparse_table_becomes_a_csr_array(make):
    checked = table(make(X))
    assert isinstance(checked, sp.csr_array)
    assert checked.has_canonical_format
    assert np.array_equal(checked.toarray(), X)


def test_untidy_sparse_entries_are_sorted_and_summed_in_a_copy():
    data = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    checked = table(data)
    assert checked.indices.tolist() == [0, 2]
    assert checked.toarray().tolist() == [[2.0, 0.0, 5.0]]
    assert data.indices.tolist() == [2, 0, 2]


def test_sparse_tables_are_refused_where_they_cannot_be_used():
    with pytest.raises(TypeError, match=r"dense data is required.*toarray"):
        table(sp.csr_array(X), sparse=False)


NOT_NUMBERS = {
    "text": (X.astype(str), "not numbers"),
    "bytes": (X.astype("S4"), "not numbers"),
    "strings": (np.array([["1", "2"]], dtype=np.dtypes.StringDType()), "not numbers"),
    "records": (np.zeros((2, 2), dtype=[("a", "f4")]), "not numbers"),
    "masked text": (np.ma.masked_array([["a"]], mask=[[True]]), "not numbers"),
    "text among objects": (with_hole("red"), r"str \('red'\)"),
    "dates": (X.astype("datetime64[D]"), "dates.*Choose an encoding"),
    "time spans": (X.astype("timedelta64[s]"), "dates.*Choose an encoding"),
    "a column of text": (pd.DataFrame({"a": [1.0, 2], "b": ["x", "y"]}), "column 'b'"),
    "a column of dates": (
        pl.DataFrame({"a": [1.0, 2.0], "b": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
        "column 'b'.*Choose an encoding",
    ),
    "a column of lists": (pl.DataFrame({"a": [1.0, 2.0], "b": [[1], [2]]}), "column 'b'"),
}


@pytest.mark.parametrize(("data", "says"), NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_what_is_not_a_number_is_refused_with_the_way_out(data, says):
    with pytest.raises(DataTypeError, match=says):
        table(data)


# value, error, what its sentence says beside the place
NO_NUMBERS = {
    "a dict": ({"a": 1}, DataTypeError, r"dict \(\{'a': 1\}\), not numbers"),
    "a list": ([1.0, 2.0], DataTypeError, r"list \(\[1\.0, 2\.0\]\), not numbers"),
    "an array": (np.ones(1), DataTypeError, r"ndarray .*, not numbers"),
    "a long text": ("red" * 99, DataTypeError, r"str \('red.{1,40}red'\), not numbers"),
    "a time span": (np.timedelta64(3, "s"), DataTypeError, r"dates .*Choose an encoding"),
    "a span of days": (datetime.timedelta(3), DataTypeError, r"dates .*Choose an encoding"),
    "no date": (pd.NaT, DataTypeError, r"dates .*Choose an encoding"),
    "a complex number": (1 + 2j, DataError, r"complex numbers \(\(1\+2j\)\).*real.*imaginary"),
    "NumPy's complex": (np.complex64(1j), DataError, r"complex numbers .*real.*imaginary"),
    "an endless integer": (10**400, DataError, r"integer of about 400 digits.*1\.8e308.*units"),
    "a signalling NaN": (decimal.Decimal("sNaN"), DataTypeError, r"Decimal .*, not numbers"),
}


@pytest.mark.parametrize(("value", "error", "says"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_an_object_that_is_no_number_is_refused_with_its_place(value, error, says):
    data = np.empty((4, 3), object)
    data[...] = X
    data[1, 2] = value
    frame = objects_frame(None)
    frame["price"] = data[:, 2]
    for given, column in ((data, "2"), (data.tolist(), "2"), (frame, "'price'")):
        if isinstance(given, list) and isinstance(
            value, (str, complex, np.complex64, list, np.ndarray)
        ):
            continue  # all text, all complex, or ragged: the whole table is at fault
        with pytest.raises(error, match=says) as caught:
            table(given)
        assert f", the first at row 1, column {column} (rows count from 0)" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X,
        lambda X: X.tolist(),
        sp.csr_array,
        lambda X: pd.DataFrame(X, columns=NAMES),
    ],
    ids=["array", "list", "sparse", "pandas"],
)
def test_complex_numbers_are_refused_with_the_way_out(make):
    with pytest.raises(DataError, match=r"complex numbers.*real.*imaginary") as caught:
        table(make(X + 1j))
    assert len(str(caught.value)) < 300  # not the table itself


def test_code_that_is_no_estimator_reads_objects_alike():
    expected = with_hole(np.nan, float)
    assert np.array_equal(as_table(with_hole(pd.NA)), expected, equal_nan=True)
    assert np.array_equal(as_table(objects_frame(pd.NA)), expected, equal_nan=True)
    with pytest.raises(DataTypeError, match=r"dict .* at row 1, column 2 "):
        as_table(with_hole({}))


def test_the_users_objects_are_left_alone():
    data, frame = with_hole(pd.NA), objects_frame(pd.NA)
    table(data)
    table(frame)
    assert data[1, 2] is pd.NA
    assert frame["price"].iloc[1] is pd.NA
    assert list(frame.index) == ["x", "y", "x", "y"]


def test_ragged_rows_are_refused_in_a_sentence():
    with pytest.raises(DataError, match="every row needs the same number of columns"):
        table([[1.0, 2.0], [3.0]])


def test_sparse_is_what_scipy_calls_sparse():
    assert is_sparse(sp.csr_array(X))
    assert is_sparse(sp.coo_matrix(X))
    assert not is_sparse(X)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_first_bad_value_is_named_with_its_place(make):
    data = np.zeros((5, 3))
    data[0, 0] = 1
    data[3, 2] = data[4, 0] = np.nan
    with pytest.raises(MissingValueError, match=r"^X holds 2 missing .*row 3, column 2 "):
        refuse_bad_values(make(data))
    with pytest.raises(MissingValueError, match="row 3, column 'price'"):
        refuse_bad_values(make(data), names=NAMES)
    refuse_bad_values(make(data), nan=False)
    data[4, 1] = -np.inf
    with pytest.raises(DataError, match=r"1 infinite value \(inf\), the first at row 4, column 1"):
        refuse_bad_values(make(data), nan=False)


def test_bad_values_are_found_beyond_the_first_block_of_rows():
    data = np.zeros((2**20 // 4 + 10, 4), np.float32)
    data[-2, 3] = np.nan
    with pytest.raises(MissingValueError, match=f"1 missing value .*row {len(data) - 2}, column 3"):
        refuse_bad_values(data)


def test_good_values_are_passed_quietly():
    refuse_bad_values(X)
    refuse_bad_values(np.arange(6).reshape(2, 3))
    refuse_bad_values(sp.csr_array(X))
    refuse_bad_values(np.array([[np.finfo(float).max, -np.finfo(float).tiny]]))


def test_a_column_is_called_by_its_name_or_its_number():
    assert column_name(NAMES, 2) == "'price'"
    assert column_name(None, 2) == "2"


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_integers_are_taken_as_python_ints(value):
    assert check_integer("k", value, 1, 5) == 3
    assert type(check_integer("k", value, 1)) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, float("nan"), 3j])
def test_what_is_no_integer_is_a_type_error(value):
    with pytest.raises(ParameterTypeError, match=r"`k` must be an integer from 1 to 5; got"):
        check_integer("k", value, 1, 5)


@pytest.mark.parametrize("value", [0, -1, 6, 10**30])
def test_an_integer_out_of_range_is_told_the_range_and_the_way_out(value):
    says = rf"^`k` must be an integer from 1 to 5; got {value}\. Add rows\.$"
    with pytest.raises(ParameterError, match=says):
        check_integer("k", value, 1, 5, "Add rows.")
    with pytest.raises(ParameterError, match="`k` must be an integer ≥ 1; got 0"):
        check_integer("k", 0, 1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_real_numbers_are_taken_as_python_floats(value):
    number = check_real("alpha", value, 0.0, 1.0)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5], 0.5j])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(ParameterTypeError, match="`alpha` must be a number from 0 to 1; got"):
        check_real("alpha", value, 0.0, 1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_number_out_of_range_is_told_the_range(value):
    with pytest.raises(ParameterError, match="`alpha` must be a number from 0 to 1; got"):
        check_real("alpha", value, 0.0, 1.0)


def test_an_open_range_leaves_its_ends_out():
    for value in (0.0, 1.0):
        with pytest.raises(ParameterError, match="a number above 0 and below 1; got"):
            check_real("alpha", value, 0.0, 1.0, open_low=True)
    for value in (0.0, float("inf")):
        with pytest.raises(ParameterError, match="a number above 0; got"):
            check_real("rate", value, 0.0, open_low=True)
    assert check_real("alpha", 1e-300, 0.0, 1.0, open_low=True) == 1e-300


def test_a_choice_is_one_of_them_and_of_its_type():
    assert check_choice("missing", "em", ("error", "em")) == "em"
    assert check_choice("scale", None, (None, "auto")) is None
    for value in (1, 1.0, "True", None, [True]):
        with pytest.raises(ParameterError, match=r"`whiten` must be one of False, True; got"):
            check_choice("whiten", value, (False, True))


def test_weights_become_floats_and_one_number_is_for_all():
    assert check_weights("w", None, 3, of="row") is None
    for given in ([1, 0, 2], np.array([1, 0, 2], np.uint8), pd.Series([1.0, 0.0, 2.0])):
        weights = check_weights("w", given, 3, of="row")
        assert weights.dtype == np.float64
        assert weights.tolist() == [1, 0, 2]
    assert check_weights("w", [True, False], 2, of="row").tolist() == [1, 0]
    assert check_weights("w", 3, 2, of="row").tolist() == [3, 3]


def test_the_users_weights_are_copied():
    given = np.ones(3)
    check_weights("w", given, 3, of="row")[0] = 7
    assert given[0] == 1


@pytest.mark.parametrize("given", [[1.0, 2.0], [[1.0], [2.0], [3.0]], []])
def test_weights_of_another_shape_are_refused(given):
    with pytest.raises(ParameterError, match=r"`w` must be 3 finite, .* one for each row; got 'sh"):
        check_weights("w", given, 3, of="row")


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_bad_weight_is_told_with_its_place(bad):
    with pytest.raises(ParameterError, match=r"non-negative.*got .* It is at position 1\."):
        check_weights("w", [1.0, bad, 1.0], 3, of="row")


def test_zero_is_refused_only_where_weights_must_be_positive():
    assert check_weights("w", [1.0, 0.0], 2, of="column").tolist() == [1, 0]
    with pytest.raises(ParameterError, match=r"finite, positive numbers, one for each column"):
        check_weights("w", [1.0, 0.0], 2, of="column", positive=True)


@pytest.mark.parametrize("given", [["a", "b"], [1j, 2], np.array([1, 2], object)])
def test_weights_that_are_no_numbers_are_a_type_error(given):
    with pytest.raises(ParameterTypeError, match="`w` must be 2 finite"):
        check_weights("w", given, 2, of="row")


class Foreign:
    """An array of another library: what the array API standard asks for, and no more."""

    def __init__(self, array, readable=True):
        self.array, self.readable, self.device = array, readable, "gpu:0"
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array_namespace__(self, *, api_version=None):
        return np

    def __dlpack_device__(self):
        return (1, 0) if self.readable else (2, 0)

    def __dlpack__(self, **options):
        if not self.readable:
            raise BufferError("on another device")
        return self.array.__dlpack__(**options)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("this library converts nothing by itself")


@pytest.mark.parametrize("dispatch", [False, True])
def test_an_array_of_another_library_is_converted_or_refused_in_one_sentence(dispatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    with config_context(array_api_dispatch=dispatch):
        model = PCA(2).fit(Foreign(X))
        assert np.array_equal(model.transform(Foreign(X)), PCA(2).fit(X).transform(X))
        placed = TSNE(perplexity=5, max_iter=20).fit(Foreign(X)).transform(Foreign(X[:3]))
        assert placed.shape == (3, 2)
        assert scores.trustworthiness(Foreign(X), Foreign(X[:, :2].copy())) > 0
        assert Procrustes().fit(Foreign(X), Foreign(X)).disparity_ < 1e-12
        for fit in (PCA(2).fit, TSNE().fit, lambda Z: Procrustes().fit(Z, X)):
            with pytest.raises(DataTypeError, match="NumPy cannot read, on device gpu:0"):
                fit(Foreign(X, readable=False))


@pytest.mark.parametrize("bad", [-1, "seed", 0.5, True, object()])
def test_a_seed_is_an_integer_or_a_generator(bad):
    must = "`random_state` must be None, a non-negative integer or a NumPy generator"
    with pytest.raises(ParameterTypeError, match=must):
        random_generator(bad)
