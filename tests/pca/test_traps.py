"""Where PCA goes silently wrong elsewhere. Each trap has a guard; each test fails without it."""

import subprocess
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from gnomon import PCA
from gnomon.errors import DataWarning, NotConvergedWarning
from gnomon.pca import estimator

SOLVERS = ["covariance", "gram", "svd", "deflation", "krylov"]


def spread(n=5000, d=30, largest=5.0, seed=0):
    """Rows whose spread along the axes of a random frame falls from `largest`; and the frame."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * np.geomspace(largest, 0.05, d) @ frame.T


def first_component(X):
    wide = X.astype(np.longdouble)
    centred = (wide - wide.mean(axis=0)).astype(np.float64)
    return np.linalg.svd(centred, full_matrices=False)[2][0]


# 1. Large means. scikit-learn's default gives |cos| 0.098 and 0.026 on the first two.
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize(
    ("mean", "dtype"), [(1e3, np.float32), (1e4, np.float32), (1e8, np.float64)]
)
def test_the_first_component_is_right_far_from_zero(solver, mean, dtype):
    X = (spread() + mean).astype(dtype)[:400]
    cos = abs(PCA(2, solver=solver).fit(X).components_[0] @ first_component(X))
    assert 1 - cos < 1e-6


def test_blank_rows_before_the_data_do_not_mislead_the_shift():
    X = np.vstack([np.zeros((1024, 30)), spread() + 1e4]).astype(np.float32)
    truth = np.linalg.svd(X.astype(float) - X.astype(float).mean(0), full_matrices=False)[2]
    cos = np.abs((PCA(2).fit(X).components_ * truth[:2]).sum(axis=1))
    assert (1 - cos < 1e-6).all()


def test_a_shift_that_misses_the_data_is_noticed_and_the_sums_are_redone_in_float64():
    # the sampled rows are exactly those that are unlike the rest
    X = (spread(n=20_000) + 3e5).astype(np.float32)
    at = np.unique(np.linspace(0, len(X) - 1, 1024).astype(int))
    X[at] = -1e5
    model = PCA(3, tol=1e-7).fit(X)
    truth = np.linalg.svd(X.astype(float) - X.astype(float).mean(0), full_matrices=False)[2]
    assert np.abs(model.components_[1] @ truth[1]) > 1 - 1e-6
    assert model.certificate_.formation_error < 1e-12


def test_float32_sums_that_would_not_reach_the_tolerance_are_redone_in_float64():
    # The variances are of one size: none is hidden by rounding, and still 1e-9 is not reached.
    X = spread(n=20_000, d=4, largest=0.1).astype(np.float32)
    assert 1e-8 < PCA(3).fit(X).certificate_.formation_error < 1e-5
    assert PCA(3, tol=1e-9).fit(X).certificate_.formation_error < 1e-9


def test_short_float32_tables_are_summed_in_float64_at_once():
    certificate = PCA(3).fit(spread(n=500, d=4, largest=0.1).astype(np.float32)).certificate_
    assert certificate.formation_error < 1e-13
    assert certificate.passes == 1


def test_what_float64_cannot_show_is_not_looked_for_again():
    X = np.random.default_rng(0).standard_normal((200, 3)) @ np.ones((3, 8))
    assert PCA(8, solver="covariance").fit(X).certificate_.passes == 1


@pytest.mark.parametrize("solver", ["gram", "krylov"])
def test_products_with_a_sparse_table_far_from_zero_are_redone_in_float64(solver):
    # The mean is taken out of float32 products: no digit of the variances would be left.
    X = (spread(n=400, d=20) + 1e4).astype(np.float32)
    model = PCA(2, solver=solver).fit(sp.csr_array(X))
    assert 1 - abs(model.components_[0] @ first_component(X)) < 1e-6


def test_svd_reads_a_float32_table_in_float64():
    X = (spread(n=400, d=8) + 10).astype(np.float32)
    centred = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    exact = np.linalg.svd(centred.astype(float), compute_uv=False)[:3] ** 2 / 399
    model = PCA(3, solver="svd").fit(X)
    # a few roundings of float64; float32 would leave 1e-7
    np.testing.assert_allclose(model.explained_variance_, exact, rtol=1e-13)


def test_blank_rows_in_the_first_batch_do_not_mislead_the_shift_of_the_next():
    X = np.vstack([np.zeros((1024, 30)), spread() + 1e4]).astype(np.float32)
    truth = np.linalg.svd(X.astype(float) - X.astype(float).mean(0), full_matrices=False)[2]
    model = PCA(3).partial_fit(X[:1024]).partial_fit(X[1024:])
    cos = np.abs((model.components_ * truth[:3]).sum(axis=1))
    assert (1 - cos < 1e-6).all()


# 2. Flat spectra: power iterations capture 96.7 % here, and say nothing.
def test_a_flat_spectrum_is_captured_and_what_is_not_converged_says_so():
    X = np.random.default_rng(0).standard_normal((4000, 1500))
    exact = PCA(10, solver="covariance").fit(X)
    with pytest.warns(NotConvergedWarning, match="krylov stopped at a residual"):
        quick = PCA(10, solver="krylov", tol=1e-9).fit(X)
    captured = quick.captured_variance_ / exact.captured_variance_
    assert 0.999 < captured <= 1 + 1e-12
    assert not quick.certificate_.converged
    true = np.linalg.norm(
        np.cov(X.T) @ quick.components_.T - quick.components_.T * quick.explained_variance_, axis=0
    )
    np.testing.assert_allclose(
        quick.certificate_.residuals * exact.explained_variance_[0], true, rtol=0.05, atol=1e-9
    )


def test_the_residuals_of_a_wide_table_are_measured_on_its_columns():
    # The iteration runs on the rows' side, where residuals are other numbers.
    X = np.random.default_rng(0).standard_normal((300, 900))
    model = PCA(5, solver="krylov", tol=0.05).fit(X)
    V = model.components_.T
    true = np.linalg.norm(np.cov(X.T) @ V - V * model.explained_variance_, axis=0)
    assert true.min() > 0.005 * model.explained_variance_[0]
    told = model.certificate_.residuals * model.explained_variance_[0]
    np.testing.assert_allclose(told, true, rtol=1e-9)


# 3. scikit-learn's fit_transform and transform differ by up to 0.1 (#18941).
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("whiten", [False, True])
def test_fit_transform_has_the_bits_of_fit_then_transform(solver, whiten):
    X = spread(n=700)
    once = PCA(4, solver=solver, whiten=whiten).fit_transform(X)
    assert np.array_equal(once, PCA(4, solver=solver, whiten=whiten).fit(X).transform(X))


# 4. Whitening rank-deficient data: scikit-learn turns 3.9 into 874,957 (#29534).
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", SOLVERS)
def test_whitening_gives_zero_columns_beyond_the_rank(solver, dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 3)) @ rng.standard_normal((3, 8)) + 2).astype(dtype)
    model = PCA(8, solver=solver, whiten=True).fit(X)
    scores = model.transform(X)
    assert model.rank_ == 3
    np.testing.assert_allclose(scores[:, :3].std(axis=0, ddof=1), 1, rtol=1e-3)
    assert (scores[:, 3:] == 0).all()
    np.testing.assert_allclose(model.inverse_transform(scores), X, rtol=1e-3, atol=1e-4)


def test_what_gram_cannot_lift_is_completed_and_not_rounding_divided_by_itself():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 60))
    certificate = PCA(solver="gram").fit(X).certificate_
    assert certificate.residuals.max() < 1e-13  # lifted, the other 26 would have 1e-8
    assert certificate.orthogonality < 1e-13


def test_whitening_gives_zero_columns_beyond_the_rank_of_a_stream_too():
    # Batches are added in float32 and cannot be read again: its rounding is no direction.
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 3)) @ rng.standard_normal((3, 8)) + 2).astype(np.float32)
    model = PCA(8, whiten=True).partial_fit(X[:100]).partial_fit(X[100:])
    assert model.rank_ == 3
    assert (model.transform(X)[:, 3:] == 0).all()


# 5. Scaled data.
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("power", [-1040, -664, 664, 900])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_power_of_two_changes_no_bit_of_the_axes(solver, power, standardize):
    X = np.round(spread(n=300, d=6) * 64) / 64  # short enough to survive as subnormals
    plain = PCA(3, solver=solver, standardize=standardize).fit(X)
    scaled = PCA(3, solver=solver, standardize=standardize).fit(np.ldexp(X, power))
    exact = power > -1000  # beyond that the mean itself has fewer digits
    compare = np.array_equal if exact else (lambda a, b: np.allclose(a, b, atol=1e-6))
    assert compare(scaled.components_, plain.components_)
    assert compare(scaled.explained_variance_ratio_, plain.explained_variance_ratio_)
    restored = scaled.inverse_transform(scaled.transform(np.ldexp(X, power)))
    expected = np.ldexp(plain.inverse_transform(plain.transform(X)), power)
    np.testing.assert_allclose(
        np.ldexp(restored, -power), np.ldexp(expected, -power), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("power", [-664, 664])
def test_standardised_columns_have_no_unit_and_their_deviations_have(power):
    X = spread(n=300, d=6)
    plain = PCA(3, standardize=True).fit(X)
    scaled = PCA(3, standardize=True).fit(np.ldexp(X, power))
    assert np.array_equal(scaled.explained_variance_, plain.explained_variance_)
    assert np.array_equal(scaled.transform(np.ldexp(X, power)), plain.transform(X))
    assert np.array_equal(scaled.scale_, np.ldexp(plain.scale_, power))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("scale", "where"), [(1e-200, "below"), (1e200, "above"), (1e-157, "below")]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_variances_beyond_the_range_of_float64_are_warned_of(solver, scale, where):
    """All are infinite, all are 0, or the small ones have lost digits."""
    X = spread(n=300)
    with pytest.warns(DataWarning, match=f"Variances are {where} the range of float64") as caught:
        PCA(3, solver=solver).fit(X * scale)
    assert len(caught) == 1
    PCA(3, solver=solver).fit(X * scale**0.5)  # warnings are errors


def test_variances_beyond_the_range_are_warned_of_after_partial_fit():
    model = PCA(3).partial_fit(spread(n=300) * 1e200)
    with pytest.warns(DataWarning, match="Variances are above the range"):
        assert np.isinf(model.explained_variance_).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_scales_give_the_right_axes_and_ratios(scale):
    X = spread(n=300)
    plain, scaled = PCA(3).fit(X), PCA(3).fit(X * scale)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(
        scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9
    )
    np.testing.assert_allclose(scaled.singular_values_, plain.singular_values_ * scale, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("solver", ["gram", "svd", "krylov"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_extreme_rows_of_a_wide_table_that_the_sample_missed_are_scaled(make, solver, scale):
    X = np.zeros((64, 9000))
    X[1::2] = np.random.default_rng(0).standard_normal((32, 9000)) * np.geomspace(9, 1, 32)[:, None]
    at = np.linspace(0, 63, 32).astype(int)  # the rows that are sampled
    X[at] = 0.0
    plain, scaled = PCA(3, solver=solver).fit(make(X)), PCA(3, solver=solver).fit(make(X * scale))
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(
        scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-6
    )


# 6. Constant data.
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [0.0, 3.7, -1e9])
def test_constant_data_have_zero_variances_and_one_warning(solver, value):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PCA(3, solver=solver).fit(np.full((50, 4), value))
    assert [w.category for w in caught] == [DataWarning]
    assert (model.explained_variance_ratio_ == 0).all()
    np.testing.assert_allclose(model.explained_variance_, 0, atol=1e-12 * max(1, value**2))
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(np.full((2, 4), value))).all()


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constant_column_has_no_loading_and_is_named_when_standardised(solver, value):
    X = spread(n=300, d=5)
    X[:, 2] = value
    model = PCA(3, solver=solver).fit(X)
    assert np.abs(model.components_[:, 2]).max() < 1e-8
    with pytest.warns(DataWarning, match=r"1 constant column \(first: 2\)"):
        model = PCA(3, solver=solver, standardize=True).fit(X)
    assert np.abs(model.components_[:, 2]).max() < 1e-12
    assert abs(model.total_variance_ - 4) < 1e-9
    restored = model.inverse_transform(model.transform(X))[:, 2]
    np.testing.assert_allclose(restored, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_data_have_one_warning_when_standardised_too(solver):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PCA(3, solver=solver, standardize=True).fit(np.full((50, 4), 3.7))
    assert [w.category for w in caught] == [DataWarning]
    assert (model.explained_variance_ == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 1e16])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_column_that_varies_by_one_rounding_is_constant(solver, value, dtype):
    # Divided by its deviation, rounding would weigh as much as any column; at 1e16 it is as large
    # as the others are even when it is not divided.
    X = spread(n=300, d=5).astype(dtype)
    X[:, 2] = value
    X[::2, 2] = np.nextafter(dtype(value), dtype(np.inf))
    with pytest.warns(DataWarning, match=r"1 constant column \(first: 2\)"):
        model = PCA(3, solver=solver, standardize=True).fit(X)
    assert np.abs(model.components_[:, 2]).max() < 1e-5  # krylov's tol
    assert abs(model.total_variance_ - 4) < 1e-5  # a few roundings of float32


# 7. Few rows.
def test_more_components_than_rows_or_columns_are_refused_and_as_many_are_not():
    X = spread(n=6, d=4)
    assert PCA(4).fit(X).components_.shape == (4, 4)
    assert PCA(4).fit(X.T).components_.shape == (4, 6)
    for table in (X, X.T):
        with pytest.raises(ValueError, match="from 0 to 4; got 5"):
            PCA(5).fit(table)
    assert PCA(1).fit(X[:2]).n_components_ == 1
    assert PCA().fit(X[:, :1]).components_.tolist() == [[1.0]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_that_are_there_bound_the_components_not_their_weight(solver):
    X, weights = spread(n=30, d=12), np.zeros(30)
    weights[::6] = 10.0
    model = PCA(solver=solver).fit(X, sample_weight=weights)
    assert model.components_.shape == (5, 12)
    assert model.spectrum_.shape == (5,)
    with pytest.raises(ValueError, match="from 0 to 5; got 6"):
        PCA(6, solver=solver).fit(X, sample_weight=weights)


def test_a_stream_of_fewer_rows_than_components_is_refused():
    model = PCA(5).partial_fit(spread(n=3, d=8))
    with pytest.raises(ValueError, match="from 0 to 3; got 5"):
        model.transform(spread(n=3, d=8))


def test_one_row_or_none_have_no_variance():
    X = spread(n=6, d=4)
    for table, weights in ((X[:1], None), (X, [0, 0, 5, 0, 0, 0])):
        with pytest.raises(ValueError, match="at least 2 rows for a variance; got '1 sample'"):
            PCA(1, ddof=0).fit(table, sample_weight=weights)
    with pytest.raises(ValueError, match="`sample_weight` must have a weight above zero"):
        PCA(1).fit(X, sample_weight=np.zeros(6))


# 8. Integers.
def test_integers_keep_every_digit():
    small = np.random.default_rng(0).integers(-500, 500, (300, 4))
    expected = PCA(3).fit(small.astype(float))
    for table in (small + 2**60, small.astype(np.int16), small.astype(np.int32)):
        model = PCA(3).fit(table)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
        np.testing.assert_allclose(model.transform(table), expected.transform(small), atol=1e-6)
    images = (small % 256).astype(np.uint8)
    flags = small > 0
    for table in (images, flags):
        np.testing.assert_allclose(
            PCA(3).fit(table).components_, PCA(3).fit(table.astype(float)).components_, atol=1e-9
        )


def test_long_integers_in_batches_keep_every_digit():
    small = np.random.default_rng(0).integers(-500, 500, (300, 4))
    small[:100] += 777  # so that the batches have shifts of their own
    model = PCA(3).partial_fit(small[:100] + 2**60).partial_fit(small[100:] + 2**60)
    expected = PCA(3, solver="covariance").fit(small)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-9)


# 9. Sparse tables.
def test_untidy_sparse_tables_are_read_right_and_left_alone():
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.4, (60, 9)).astype(float)
    rows, cols = np.nonzero(dense)
    values = dense[rows, cols]
    halves = sp.coo_array(
        (np.r_[values / 2, values / 2, 0.0], (np.r_[rows, rows, 3], np.r_[cols, cols, 3])), (60, 9)
    )
    order = rng.permutation(values.size)
    unsorted = sp.coo_array((values[order], (rows[order], cols[order])), (60, 9)).tocsr()
    for i in range(60):  # turn each row's entries around
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    duplicated = sp.csr_array((halves.data, halves.coords), (60, 9))
    before = unsorted.indices.copy()
    expected = PCA(4).fit(dense)
    for table in (halves, duplicated, unsorted):
        for solver in ("covariance", "krylov"):
            model = PCA(4, solver=solver, tol=1e-12).fit(table)
            np.testing.assert_allclose(model.components_, expected.components_, atol=1e-7)
            np.testing.assert_allclose(model.transform(table), expected.transform(dense), atol=1e-7)
    assert np.array_equal(unsorted.indices, before)


@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance"])
def test_a_sparse_table_is_never_densified(solver):
    n, d = (20_000, 3_000) if solver != "covariance" else (60_000, 300)
    table = sp.random_array((n, d), density=0.002, rng=np.random.default_rng(0), format="csr")
    PCA(3, solver=solver, tol=0.9).fit(table[:500])  # compile and warm up
    tracemalloc.start()
    PCA(3, solver=solver, tol=0.9).fit(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * d * 8 / 4


# 10. Weights.
@pytest.mark.parametrize("solver", SOLVERS)
def test_integer_weights_are_repeated_rows(solver):
    X, weights = spread(n=80, d=6), np.random.default_rng(0).integers(0, 4, 80)
    weighted = PCA(3, solver=solver, tol=1e-13).fit(X, sample_weight=weights)
    repeated = PCA(3, solver=solver, tol=1e-13).fit(np.repeat(X, weights, axis=0))
    for name in (
        "components_",
        "explained_variance_",
        "mean_",
        "noise_variance_",
        "n_samples_",
        "singular_values_",
        "explained_variance_ratio_",
        "total_variance_",
    ):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-9)


def test_a_row_of_weight_zero_is_absent():
    X = spread(n=80, d=6)
    wild = np.vstack([X, np.full((1, 6), 1e9)])
    weights = np.r_[np.ones(80), 0]
    np.testing.assert_allclose(
        PCA(3).fit(wild, sample_weight=weights).components_, PCA(3).fit(X).components_, atol=1e-6
    )


def test_a_float64_shift_that_misses_the_data_is_noticed_too():
    X = spread(n=20_000) + 1e9
    X[np.unique(np.linspace(0, len(X) - 1, 1024).astype(int))] = -1e9
    weights = np.ones(len(X))
    weights[X[:, 0] < 0] = 1e-12  # they are sampled, and count for nothing
    model = PCA(3).fit(X, sample_weight=weights)
    wide = X.astype(np.longdouble)
    centred = ((wide - weights @ wide / weights.sum()) * np.sqrt(weights)[:, None]).astype(float)
    truth = np.linalg.svd(centred, full_matrices=False)[2][:3]
    assert (np.abs((model.components_ * truth).sum(axis=1)) > 1 - 1e-6).all()
    assert model.certificate_.formation_error < 1e-12


# 11. Blocks.
@pytest.mark.parametrize("sizes", [[5000], [1, 1, 4998], [2500, 2500], [7] * 714 + [2]])
def test_any_batches_give_what_one_fit_gives(sizes):
    X = spread() + 1e5
    model = PCA(4)
    start = 0
    for size in sizes:
        model.partial_fit(X[start : start + size])
        start += size
    whole = PCA(4, solver="covariance").fit(X)
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.mean_, whole.mean_, rtol=1e-12)
    assert model.n_samples_ == 5000


BLOCKS = [
    (solver, shape)
    for solver in SOLVERS
    for shape in ((9000, 12), (60, 200))
    if (solver, shape) != ("gram", (9000, 12))
]


@pytest.mark.parametrize(("solver", "shape"), BLOCKS)
def test_small_blocks_give_what_one_block_gives(solver, shape, monkeypatch):
    X = spread(*shape) + 1e3
    _, sigma, exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    monkeypatch.setattr("gnomon.numeric.scaling.BLOCK_BYTES", 1)  # 32 rows or columns
    monkeypatch.setattr("gnomon.pca.solvers.krylov.ROWS_AT_ONCE", 7)
    model = PCA(3, solver=solver, tol=1e-12).fit(X)
    # The table itself has twelve digits left of the mean's sixteen.
    np.testing.assert_allclose(model.singular_values_, sigma[:3], rtol=1e-11)
    assert (np.abs((model.components_ * exact[:3]).sum(axis=1)) > 1 - 1e-11).all()


# 12. Threads.
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_two_and_four_threads_give_the_same_bits(solver, dtype):
    X = spread(n=300 if solver == "gram" else 9000, d=70).astype(dtype)
    one = PCA(5, solver=solver, n_jobs=1).fit(X)
    for n_jobs in (2, 4):
        many = PCA(5, solver=solver, n_jobs=n_jobs).fit(X)
        assert np.array_equal(one.components_, many.components_)
        assert np.array_equal(one.explained_variance_, many.explained_variance_)
        assert np.array_equal(one.transform(X), many.transform(X))
        assert np.array_equal(
            one.inverse_transform(one.transform(X)), many.inverse_transform(many.transform(X))
        )


@pytest.mark.parametrize("blas_threads", ["1", "2"])
def test_the_bits_do_not_depend_on_blas_threads(blas_threads):
    code = (
        "import numpy as np, hashlib; from gnomon import PCA\n"
        "X = np.random.default_rng(0).standard_normal((3000, 200))\n"
        "for s in ('covariance', 'gram', 'svd', 'krylov'):\n"
        "    Z = PCA(5, solver=s, tol=1e-3).fit(X[:900]).transform(X)\n"
        "    print(hashlib.sha256(Z.tobytes()).hexdigest())\n"
    )
    outputs = []
    for threads in ("1", blas_threads):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            env={"OPENBLAS_NUM_THREADS": threads, "PATH": "/usr/bin:/bin"},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_blas_has_one_thread_wherever_a_fit_computes(monkeypatch):
    seen = []

    def watch(place, name):
        original = getattr(place, name)

        def watched(*args, **options):
            blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
            seen.append((name, {lib["num_threads"] for lib in blas}))
            return original(*args, **options)

        monkeypatch.setattr(place, name, watched)

    watch(estimator, "certify")
    watch(estimator, "moments_of")
    X = spread(n=100, d=6)
    with threadpool_limits(2, "blas"):
        PCA(2).fit(X)
        model = PCA(2).partial_fit(X)
        assert model.components_.shape == (2, 6)
    assert seen == [("certify", {1}), ("moments_of", {1}), ("certify", {1})]


def test_two_fits_at_once_in_two_threads_give_the_same_bits():
    X = spread(n=20_000, d=60)
    expected = PCA(5).fit(X).transform(X)
    results = []

    def fit():
        for _ in range(3):
            results.append(PCA(5).fit(X).transform(X))

    threads = [threading.Thread(target=fit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.array_equal(result, expected) for result in results)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(30, 5), (64, 1), (784, 50), (3, 3)])
def test_a_rows_scores_do_not_depend_on_the_rows_beside_it(dtype, d, k):
    X = np.random.default_rng(0).standard_normal((700, d)).astype(dtype)
    model = PCA(k, tol=0.5).fit(X)
    scores = model.transform(X)
    restored = model.inverse_transform(scores)
    for part in (slice(0, 1), slice(3, 4), slice(100, 357), slice(5, 700, 7)):
        assert np.array_equal(model.transform(X[part]), scores[part])
        assert np.array_equal(model.inverse_transform(scores[part]), restored[part])
