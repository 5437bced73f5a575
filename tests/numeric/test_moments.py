import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gnomon import PCA
from gnomon.errors import DataError, MissingValueError, ParameterError, UnavailableError
from gnomon.numeric.moments import Moments, column_moments
from gnomon.numeric.view import view_array
from gnomon.procrustes.cross_moments import CrossMoments

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 12)) @ rng.standard_normal((12, 12))


def exact(table):
    """Covariance in extended precision, in two passes."""
    wide = np.asarray(table, dtype=np.longdouble)
    centred = wide - wide.mean(axis=0)
    return np.asarray(centred.T @ centred / (len(wide) - 1), dtype=np.float64)


def error(moments, table):
    truth = exact(table)
    return np.abs(moments.covariance() - truth).max() / np.abs(truth).max()


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_float64_sums_are_right_at_any_distance_from_zero(offset):
    assert error(Moments.of(X + offset), X + offset) < 1e-13


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_float32_sums_are_right_at_any_distance_from_zero(offset):
    table = (X + offset).astype(np.float32)
    assert error(Moments.of(table), table) < 1e-6


def test_the_shift_is_sampled_over_the_whole_table():
    # 1,024 blank rows first: a shift taken from them would leave the rest unshifted
    table = np.vstack([np.zeros((1024, 12)), X + 1e4]).astype(np.float32)
    assert abs(Moments.of(table).shift.mean() / table.mean() - 1) < 1e-2
    assert error(Moments.of(table), table) < 1e-5


def test_float32_products_of_many_blocks_are_added_in_float64(monkeypatch):
    # Blocks of 32 rows, so that thousands of them make one range of a thread.
    monkeypatch.setattr("gnomon.numeric.scaling.BLOCK_BYTES", 1)
    table = (rng.uniform(0.5, 1, (2**18, 2)) * rng.choice([-1, 1], (2**18, 2))).astype(np.float32)
    exact = table.astype(float).var(axis=0, ddof=1)
    # Each product is off by half a rounding of float32, 6e-8, up or down: the mean by far less.
    np.testing.assert_allclose(Moments.of(table).variance(), exact, rtol=2e-8)


def test_wide_and_sparse_tables_are_squared_about_their_own_mean():
    # Thirty-two rows are sampled, those that are far away and count for nothing.
    table = rng.standard_normal((64, 9000)) + 1e8
    weights = np.ones(64)
    at = np.linspace(0, 63, 32).astype(int)
    table[at], weights[at] = 0.0, 1e-24
    kept = table[weights == 1] - 1e8
    wide = column_moments(view_array(table, 2), weights)
    np.testing.assert_allclose(wide.variance(), kept.var(axis=0, ddof=1), rtol=1e-6)
    sparse = column_moments(view_array(sp.csr_array(table[1:2] + kept), 1), None)
    np.testing.assert_allclose(sparse.variance(), kept.var(axis=0, ddof=1), rtol=1e-6)


def test_the_stated_rounding_error_is_of_the_size_of_the_true_one():
    table = (X + 100).astype(np.float32)
    moments = Moments.of(table)
    true = np.linalg.norm(moments.covariance() - exact(table), 2)
    stated = moments.rounding / moments.divisor(1)
    assert true < stated < 1000 * true


@given(st.integers(1, 50), st.integers(0, 2**31))
def test_any_partition_into_batches_gives_what_one_batch_gives(parts, seed):
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(X), parts))
    pieces = [piece for piece in np.split(X, cuts) if len(piece)]
    total = Moments.of(pieces[0])
    for piece in pieces[1:]:
        total = total + Moments.of(piece)
    whole = Moments.of(X)
    assert total.n == whole.n
    np.testing.assert_allclose(total.mean, whole.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(total.scatter, whole.scatter, rtol=1e-11, atol=1e-9)


def test_a_part_that_was_added_can_be_taken_out_again():
    whole, part = Moments.of(X + 1e6), Moments.of(X[2000:] + 1e6)
    left = whole - part
    assert left.n == 2000
    assert error(left, X[:2000] + 1e6) < 1e-10
    nothing = whole - whole
    assert (nothing.n, nothing.weight) == (0, 0.0)
    with pytest.raises(DataError, match="Cannot take 3000 rows out of 1000"):
        part - whole


def test_rounding_makes_no_variance_negative():
    table = np.tile(rng.uniform(1, 10, 200), (301, 1))
    # Far from the mean, sums of squares and squares of sums differ by rounding, either way.
    variance = Moments.of(table, shift=np.zeros(200)).variance()
    assert (variance >= 0).all()
    assert variance.max() < 1e-12


def test_many_small_batches_state_no_more_rounding_than_they_can_have():
    """80 batches of 5 rows a column: it grew 5,000-fold, and components were taken for ties."""
    X = np.random.default_rng(0).normal(size=(20_000, 50)) / np.arange(1, 51)
    parts = [Moments.of(X[start : start + 250]) for start in range(0, len(X), 250)]
    assert sum(parts[1:], parts[0]).rounding < 4 * sum(part.rounding for part in parts)


def test_the_rounding_of_a_sum_is_that_of_its_parts_and_of_the_means_between_them():
    a, b, c = Moments.of(X[:2000]), Moments.of(X[2000:]), Moments.of(X[2000:] + 1e8)
    parts = a.rounding + b.rounding
    assert parts < (a + b).rounding < 1.1 * parts
    between = 2000 * 1000 / 3000 * 12e16  # squares of the distance between the means
    eps = np.finfo(float).eps
    assert 4 * eps < (a + c).rounding / between < 40 * eps
    assert ((a + c) - c).rounding > (a + c).rounding


@pytest.mark.parametrize("far", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_merged_moments_are_as_exact_as_they_say(far, dtype):
    blank, rows = np.zeros((1, 4), dtype), (X[:50, :4] + far).astype(dtype)
    both = Moments.of(blank) + Moments.of(rows)
    table = np.vstack([blank, rows]).astype(np.longdouble)
    table -= table.mean(axis=0)
    true = np.linalg.norm(np.asarray(both.scatter - table.T @ table, float), 2)
    assert true < both.rounding < 1e-13 * both.scatter.max()


def test_nothing_can_be_added_to_nothing():
    whole = Moments.of(X)
    nothing = whole - whole
    assert (nothing + nothing).weight == 0
    np.testing.assert_allclose((nothing + whole).scatter, whole.scatter, rtol=1e-12)


@pytest.mark.parametrize("power", [-664, 664])
def test_parts_in_units_of_their_own_are_added_in_one(power):
    A, B = X[:2000], np.ldexp(X[2000:] + 3, -9)
    a, b = Moments.of(np.ldexp(A, power)), Moments.of(np.ldexp(B, power))
    assert a.exponent != b.exponent
    expected = Moments.of(A) + Moments.of(B)
    for both in (a + b, b + a):
        scatter = np.ldexp(both.scatter, 2 * (both.exponent - power))
        np.testing.assert_allclose(scatter, expected.scatter, rtol=1e-11)
        np.testing.assert_allclose(np.ldexp(both.mean, -power), expected.mean, rtol=1e-11)
    left = (a + b) - b
    scatter = np.ldexp(left.scatter, 2 * (left.exponent - power))
    np.testing.assert_allclose(scatter, Moments.of(A).scatter, rtol=1e-9)


def test_integer_weights_are_repeated_rows():
    weights = rng.integers(0, 4, len(X))
    weighted, repeated = Moments.of(X, weights), Moments.of(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.scatter, repeated.scatter, rtol=1e-12, atol=1e-9)
    assert weighted.weight == repeated.n
    assert weighted.n == np.count_nonzero(weights)
    assert weighted.size == repeated.size


def test_weights_that_sum_to_one_need_ddof_0():
    moments = Moments.of(X[:1024], np.full(1024, 1 / 1024))
    np.testing.assert_allclose(moments.covariance(0), np.cov(X[:1024].T, ddof=0), rtol=1e-10)
    with pytest.raises(DataError, match="use `ddof=0`"):
        moments.covariance(1)


@pytest.mark.parametrize("power", [-1000, -664, 664, 900])
def test_a_power_of_two_changes_no_digit(power):
    plain, scaled = Moments.of(X), Moments.of(np.ldexp(X, power))
    top = scaled.scatter.max() / plain.scatter.max()
    assert np.array_equal(scaled.scatter, plain.scatter * top)
    assert np.log2(top) == round(np.log2(top))


def test_numbers_too_large_or_small_to_square_are_found_outside_the_sample_too():
    table = np.zeros((5000, 3))
    table[1::2] = 1.0
    for scale in (1e-200, 1e200):
        table[7] = (scale, 0, 0)
        table[8] = (0, -scale, 0)
        sums = Moments.of(table if scale > 1 else table * 1e-180)
        assert np.isfinite(sums.scatter).all()
        assert sums.scatter.max() > 0


def test_numbers_too_small_to_square_are_scaled_although_the_sample_is_zero():
    table = rng.standard_normal((5000, 3))
    table[np.linspace(0, 4999, 1024).astype(int)] = 0.0
    plain, tiny = Moments.of(table), Moments.of(np.ldexp(table, -664))
    assert tiny.exponent < -600
    np.testing.assert_allclose(
        np.ldexp(tiny.scatter, 2 * (tiny.exponent + 664)), plain.scatter, rtol=1e-12
    )


def test_long_integers_are_shifted_before_they_are_converted():
    small = rng.integers(-1000, 1000, (200, 4))
    for table in (small + 2**60, small.astype(np.uint64) + np.uint64(2**63)):
        moments = Moments.of(table)
        np.testing.assert_allclose(moments.covariance(), np.cov(small.T), rtol=1e-13)


def test_short_integers_and_booleans_do_not_wrap_around():
    table = rng.integers(0, 256, (500, 5)).astype(np.uint8)
    np.testing.assert_allclose(Moments.of(table).covariance(), np.cov(table.T.astype(float)))
    flags = table > 100
    np.testing.assert_allclose(Moments.of(flags).covariance(), np.cov(flags.T.astype(float)))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_bits_do_not_depend_on_the_number_of_threads(n_jobs):
    table = rng.standard_normal((20_000, 60)).astype(np.float32)
    one, many = Moments.of(table, n_jobs=1), Moments.of(table, n_jobs=n_jobs)
    assert np.array_equal(one.scatter, many.scatter)
    assert np.array_equal(one.offset, many.offset)


def test_bits_do_not_depend_on_how_the_table_lies_in_memory():
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    readonly = X.copy()
    readonly.flags.writeable = False
    expected = Moments.of(X)
    for table in (np.asfortranarray(X), strided, readonly, X.astype(">f8")):
        assert np.array_equal(Moments.of(table).scatter, expected.scatter)
        assert np.array_equal(Moments.of(table).offset, expected.offset)


def test_column_moments_are_the_diagonal_for_tall_wide_and_sparse_tables():
    sparse = sp.random_array((300, 40), density=0.1, rng=np.random.default_rng(1), format="csr")
    weights = rng.integers(0, 3, 300).astype(float)
    for table in (X[:300], X[:300].T.copy(), sparse, sparse.T.tocsr()):
        w = weights[: table.shape[0]]
        dense = table.toarray() if sp.issparse(table) else table
        columns = column_moments(view_array(table, 2), w)
        whole = Moments.of(dense, w)
        np.testing.assert_allclose(columns.mean, whole.mean, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(columns.variance(), whole.variance(), rtol=1e-10, atol=1e-16)
        with pytest.raises(UnavailableError, match="variances only"):
            columns.covariance()


def test_zeros_that_are_stored_count_as_those_that_are_not():
    dense = rng.poisson(0.5, (40, 5)).astype(float)
    stored = sp.csr_array(np.ones_like(dense))
    stored.data[:] = dense.ravel()
    assert stored.nnz == dense.size
    columns = column_moments(view_array(stored, 1), None)
    np.testing.assert_allclose(columns.variance(), dense.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(Moments.of(stored).covariance(), np.cov(dense.T), atol=1e-14)


def test_a_sparse_table_is_read_like_the_dense_one():
    sparse = sp.random_array((5000, 30), density=0.05, rng=np.random.default_rng(1), format="csr")
    np.testing.assert_allclose(
        Moments.of(sparse).scatter, Moments.of(sparse.toarray()).scatter, rtol=1e-12
    )


def test_bad_values_are_named_with_their_place():
    table = X.copy()
    table[17, 3] = np.nan
    with pytest.raises(MissingValueError, match=r"1 missing value.*row 17, column 3"):
        Moments.of(table)
    table[17, 3] = -np.inf
    with pytest.raises(DataError, match=r"1 infinite value.*row 17, column 3"):
        Moments.of(table)
    with pytest.raises(ParameterError, match="sample_weight"):
        Moments.of(X, -np.ones(len(X)))


def test_cross_moments_are_the_products_about_both_means_and_merge():
    Y = X[:, :3] * 2 + rng.standard_normal((len(X), 3)) + 1e5
    weights = rng.integers(0, 3, len(X))
    A, B = np.repeat(X, weights, 0), np.repeat(Y, weights, 0)
    expected = (A - A.mean(0)).T @ (B - B.mean(0))
    whole = CrossMoments.of(X, Y, weights)
    np.testing.assert_allclose(whole.cross, expected, rtol=1e-9, atol=1e-7)
    merged = CrossMoments.of(X[:700], Y[:700], weights[:700]) + CrossMoments.of(
        X[700:], Y[700:], weights[700:]
    )
    np.testing.assert_allclose(merged.cross, expected, rtol=1e-9, atol=1e-6)
    assert merged.x.weight == weights.sum()
    with pytest.raises(DataError, match="same number of rows; got 3000 and 10"):
        CrossMoments.of(X, Y[:10])


def test_paired_rows_of_weight_zero_are_absent():
    A, B = X[:50, :3], X[:50, 3:5]
    weights = np.r_[np.ones(50), np.zeros(50)]
    wild = CrossMoments.of(
        np.vstack([A, np.full((50, 3), 1e9)]), np.vstack([B, np.full((50, 2), 1e9)]), weights
    )
    plain = CrossMoments.of(A, B)
    # sums of fifty products of size 10, in another order
    np.testing.assert_allclose(wild.cross, plain.cross, atol=1e-11)
    np.testing.assert_allclose(wild.x.scatter, plain.x.scatter, rtol=1e-12)


def test_cross_moments_can_be_taken_apart_again():
    Y = X[:, :3] + rng.standard_normal((len(X), 3))
    whole, part = CrossMoments.of(X, Y), CrossMoments.of(X[1000:], Y[1000:])
    left, expected = whole - part, CrossMoments.of(X[:1000], Y[:1000])
    np.testing.assert_allclose(left.cross, expected.cross, rtol=1e-9, atol=1e-8)
    assert (left.x.n, (whole - whole).x.n) == (1000, 0)


def test_duplicate_entries_of_a_sparse_table_are_added_before_they_are_squared():
    entries = ([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 0]))
    table = sp.csr_array(sp.coo_array(entries, shape=(2, 1)))
    doubled = sp.csr_array(
        (np.array([1.0, 2.0, 5.0]), np.array([0, 0, 0]), np.array([0, 2, 3])), (2, 1)
    )
    for sparse in (table, doubled):
        assert Moments.of(sparse).scatter[0, 0] == 2.0
        assert CrossMoments.of(sparse, np.array([[0.0], [1.0]])).cross[0, 0] == 1.0


def test_no_rows_and_no_weight_are_refused():
    for table, weights in ((X[:0], None), (X, np.zeros(len(X)))):
        with pytest.raises(DataError, match="every weight is 0"):
            Moments.of(table, weights)
    with pytest.raises(DataError, match="Expected 2D array"):
        Moments.of(X[0])


def test_the_largest_eigenvalue_is_of_the_right_size():
    from gnomon.numeric.moments import largest_eigenvalue

    S = np.zeros((101, 101))
    S[0, 0] = 10.0
    S[1:, 1:] = 9.0
    assert abs(largest_eigenvalue(S) - 900) < 1
    assert largest_eigenvalue(np.zeros((3, 3))) == 0


BEYOND = "further apart than the largest float"


def test_tables_whose_differences_no_float_holds_are_refused():
    """LAPACK would be handed NaN, and complain in words of its own."""
    wide = X[:30] / np.abs(X[:30]).max() * 1.79e308
    with np.errstate(all="ignore"):
        for of in (Moments.of, PCA(2).fit, PCA(2).partial_fit):
            with pytest.raises(DataError, match=BEYOND):
                of(wide)
        lopsided = np.full((30, 2), 1.79e308)
        lopsided[0] = -1.79e308
        with pytest.raises(DataError, match=BEYOND):
            CrossMoments.of(lopsided, lopsided)
        near, far = Moments.of(X - 1e308), Moments.of(X + 1e308)
        with pytest.raises(DataError, match=BEYOND):
            near + far
