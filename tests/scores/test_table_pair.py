import numpy as np
import pytest
import scipy.sparse as sp

from gnomon.errors import DataError, DataTypeError, MissingValueError, ParameterTypeError
from gnomon.scores.table_pair import read_pair, read_points

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 5))


def test_tables_in_order_are_not_copied():
    for table in (X, X.astype(np.float32)):
        data, points = read_pair(table, table, "euclidean")
        assert np.shares_memory(data, table)
        assert points.dtype == np.float64


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.float16, ">f4"])
def test_short_numbers_become_float32_unchanged(dtype):
    table = (X * 3).astype(dtype)
    ready = read_pair(table, X, "euclidean")[0]
    assert ready.dtype == np.float32
    assert np.array_equal(ready, table)


@pytest.mark.parametrize("power", [-1060, -664, -300, 300, 664, 1000])
def test_tables_without_squares_are_scaled_by_a_power_of_two(power):
    scaled = read_points(np.ldexp(X, power))
    sizes = np.abs(scaled)
    assert sizes.max() < 1e150
    assert np.median(sizes) > 1e-150
    if power > -1060:  # digits of subnormal numbers are lost before they come here
        ratio = scaled / X
        assert (ratio == ratio[0, 0]).all()
        assert np.frexp(ratio[0, 0])[0] == 0.5


def test_a_constant_column_far_away_does_not_decide_the_scale():
    """Divided by its own size the others would vanish; by theirs it would overflow."""
    steps = np.diff(read_points(np.column_stack([X, np.full(40, 1e200)])), axis=0)
    ratio = steps[:, :5] / np.diff(X, axis=0)
    assert (ratio == ratio[0, 0]).all()
    assert (steps[:, :5] ** 2 > 1e-120).all()
    for size in (1.0, 1e-200):
        table = np.column_stack([X * size, np.full(40, 1e200)])
        assert (np.diff(read_points(table), axis=0)[:, 5] == 0).all()


def test_one_wild_row_does_not_decide_the_scale():
    table = X * 1e-200
    table[3] = 1e-60
    scaled = read_points(table)
    assert np.isfinite(scaled**2).all()
    assert np.median(scaled[0] ** 2) > 1e-30


def test_the_largest_numbers_have_finite_squares():
    table = np.sign(X) * np.finfo(float).max
    assert np.isfinite((4 * read_points(table) ** 2).sum())


@pytest.mark.parametrize("shift", [2**60, -(2**62)])
def test_long_integers_keep_their_differences(shift):
    small = rng.integers(0, 100, (40, 3))
    assert np.array_equal(np.diff(read_points(small + shift), axis=0), np.diff(small, axis=0))
    ends = np.array([[-(2**63)], [0], [2**63 - 1]])
    assert (np.diff(read_points(ends), axis=0) > 9e18).all()


def test_cosine_rows_have_length_one_at_any_scale():
    lengths = 10.0 ** rng.integers(-300, 300, (40, 1))
    plain, scaled = read_pair(X, X, "cosine")[0], read_pair(X * lengths, X, "cosine")[0]
    np.testing.assert_allclose((plain**2).sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(scaled, plain, rtol=1e-14)


def test_a_row_of_zeros_has_no_direction():
    table = np.where(np.arange(40)[:, None] == 7, 0, X)
    with pytest.raises(DataError, match=r"Row 7 of X is all 0.*'euclidean'"):
        read_pair(table, X, "cosine")
    read_pair(X, table, "cosine")  # the map is measured by Euclid


@pytest.mark.parametrize(("value", "error"), [(np.nan, MissingValueError), (np.inf, DataError)])
def test_bad_values_are_named_with_their_table_and_place(value, error):
    bad = X.copy()
    bad[4, 2] = value
    with pytest.raises(error, match=r"^X holds 1 .* at row 4, column 2"):
        read_pair(bad, X, "euclidean")
    with pytest.raises(error, match=r"^Y holds 1 .* at row 4, column 2"):
        read_pair(X, bad, "euclidean")


def test_both_tables_need_the_same_rows():
    with pytest.raises(ValueError, match="`Y` must have 40 rows, as many as `X`; got 39"):
        read_pair(X, X[:39], "euclidean")


@pytest.mark.parametrize("bad", [X[:2], X[:, :0], np.empty((0, 3))])
def test_too_small_tables_are_refused(bad):
    with pytest.raises(ValueError, match="`Y` must have at least 3 rows and 1 column"):
        read_points(bad)


def test_tables_that_are_none_are_refused_by_name():
    with pytest.raises(ParameterTypeError, match=r"`X` must be dense.*PCA.*toarray"):
        read_pair(sp.csr_array(X), X, "euclidean")
    with pytest.raises(DataError, match=r"got shape \(40,\)"):
        read_pair(X, X[:, 0], "euclidean")
    with pytest.raises(DataTypeError, match="Y holds"):
        read_pair(X, np.full((40, 2), "a"), "euclidean")
    with pytest.raises(ValueError, match="`metric` must be one of 'euclidean', 'cosine'; got 'l1'"):
        read_pair(X, X, "l1")
