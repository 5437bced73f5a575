"""Where PCA goes silently wrong elsewhere. Each trap has a guard; each test fails without it."""

import subprocess
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from gnomon import PCA
from gnomon.errors import DataWarning, NotConvergedWarning

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
    np.testing.assert_allclose(np.ldexp(restored, -power), np.ldexp(expected, -power), rtol=1e-4,
                               atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_scales_give_the_right_axes_and_ratios(scale):
    X = spread(n=300)
    plain, scaled = PCA(3).fit(X), PCA(3).fit(X * scale)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(
        scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9
    )
    np.testing.assert_allclose(scaled.singular_values_, plain.singular_values_ * scale, rtol=1e-9)


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


# 7. Few rows.
def test_more_components_than_rows_or_columns_are_refused_and_as_many_are_not():
    X = spread(n=6, d=4)
    assert PCA(4).fit(X).components_.shape == (4, 4)
    assert PCA(4).fit(X.T).components_.shape == (4, 6)
    for table in (X, X.T):
        with pytest.raises(ValueError, match="from 1 to 4; got 5"):
            PCA(5).fit(table)
    assert PCA(1).fit(X[:2]).n_components_ == 1
    assert PCA().fit(X[:, :1]).components_.tolist() == [[1.0]]


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
    for name in ("components_", "explained_variance_", "mean_", "noise_variance_", "n_samples_",
                 "singular_values_", "explained_variance_ratio_", "total_variance_"):  # fmt: skip
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
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
            env={"OPENBLAS_NUM_THREADS": threads, "PATH": "/usr/bin:/bin"}, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


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
