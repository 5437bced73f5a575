import numpy as np
import pytest
import scipy.sparse as sp

from gnomon.numeric.moments import column_moments
from gnomon.numeric.view import view_array
from gnomon.pca.solvers.operator import (
    SparseOperator,
    TallOperator,
    WideOperator,
    _Csr,
    operator_for,
    unsigned,
)

SHAPES = {"tall": (90, 40), "wide": (40, 90), "square": (50, 50)}
KINDS = {"tall": TallOperator, "wide": WideOperator, "square": TallOperator}


def table(shape, dtype, mean=0.0, *, sparse=False, exponent=0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * rng.uniform(0.5, 2, shape[1]) + mean
    if sparse:
        X[rng.uniform(size=shape) < 0.7] = 0
    return np.ldexp(X.astype(dtype), exponent)


def prepare(X, *, weights=None, factor=None, n_jobs=2):
    """The operator of `X`, and Z itself in extended precision: centred, scaled, weighted."""
    dense = X.toarray() if sp.issparse(X) else X
    view = view_array(X, n_jobs, weights=weights)
    moments = column_moments(view, weights)
    roots = None if weights is None else np.sqrt(weights)
    operator = operator_for(view.centred(moments.offset, factor, roots))
    wide = np.ldexp(dense.astype(np.longdouble), -view.scaling.exponent)
    w = np.ones(len(wide)) if weights is None else weights
    wide = wide - wide[0]  # exact: the mean of large numbers would lose digits here too
    Z = wide - (w @ wide) / w.sum()
    Z = Z * (1.0 if factor is None else factor) * np.sqrt(w)[:, None]
    return operator, Z


def assert_products_agree(operator, Z, tolerance):
    """Each product equals the explicit one, to `tolerance` of its norm."""
    n, d = Z.shape
    rng = np.random.default_rng(1)
    side = min(n, d)
    Q, V, U = (rng.standard_normal((size, 7)) for size in (side, d, n))
    shorter = Z.T @ (Z @ Q) if n >= d else Z @ (Z.T @ Q)
    assert operator.side == side
    for name, ours, exact in (
        ("apply", operator.apply(Q), shorter),
        ("apply_columns", operator.apply_columns(V), Z.T @ (Z @ V)),
        ("transposed", operator.transposed(U), Z.T @ U),
    ):
        assert ours.dtype == np.float64
        assert ours.shape == exact.shape
        error = np.linalg.norm((ours - exact).astype(float)) / np.linalg.norm(exact.astype(float))
        assert error < tolerance, (name, error)


# Products of float32 numbers, of which about a hundred are added: a few roundings.
TOLERANCE = {np.float32: 2e-6, np.float64: 4e-15}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("scaled", [False, True], ids=["", "scaled"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_products_are_those_of_the_explicit_matrix(dtype, shape, weighted, scaled, sparse):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(2)
    X = table((n, d), dtype, sparse=sparse)
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    factor = rng.uniform(0.1, 3, d) if scaled else None
    operator, Z = prepare(sp.csr_array(X) if sparse else X, weights=weights, factor=factor)
    assert type(operator) is (SparseOperator if sparse else KINDS[shape])
    assert_products_agree(operator, Z, TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("dtype", "mean"), [(np.float32, 1e3), (np.float32, 1e5), (np.float64, 1e8)]
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_a_large_mean_leaves_no_trace_in_dense_products(dtype, mean, shape, weighted):
    n, d = SHAPES[shape]
    X = table((n, d), dtype, mean)
    weights = np.random.default_rng(2).uniform(0.1, 3, n) if weighted else None
    operator, Z = prepare(X, weights=weights, factor=np.linspace(0.5, 2, d))
    assert_products_agree(operator, Z, TOLERANCE[dtype])


def test_the_mean_of_a_sparse_table_is_taken_out_of_the_products():
    # Here it is the products that are subtracted, so 1e4 of mean costs four digits of sixteen.
    X = table((90, 40), np.float64, 1e4)
    for dense in (X, X.T.copy()):
        operator, Z = prepare(sp.csr_array(dense))
        assert_products_agree(operator, Z, 1e-10)


@pytest.mark.parametrize("exponent", [-900, -400, 400, 900])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_extreme_numbers_are_brought_into_range_by_a_power_of_two(exponent, shape, sparse):
    X = table(SHAPES[shape], np.float64, sparse=sparse, exponent=exponent)
    weights = np.random.default_rng(2).integers(0, 4, X.shape[0]).astype(float)
    factor = np.linspace(0.5, 2, X.shape[1])
    operator, Z = prepare(sp.csr_array(X) if sparse else X, weights=weights, factor=factor)
    assert 1e-3 < np.abs(Z).max() < 1e3
    assert_products_agree(operator, Z, 4e-15)


def test_integers_beyond_float64_are_multiplied_exactly():
    small = np.random.default_rng(0).integers(-900, 900, (60, 20))
    operator, _ = prepare(small + 2**60)
    Z = small - small.mean(axis=0)
    assert_products_agree(operator, Z, 4e-15)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(6000, 60), (60, 9000)], ids=["tall", "wide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_the_number_of_threads(sparse, shape, dtype):
    X = table(shape, dtype, sparse=sparse)
    X = sp.csr_array(X) if sparse else X
    rng = np.random.default_rng(1)
    Q, U = rng.standard_normal((60, 5)), rng.standard_normal((shape[0], 5))
    one = prepare(X, n_jobs=1)[0]
    for n_jobs in (2, 4):
        many = prepare(X, n_jobs=n_jobs)[0]
        assert np.array_equal(one.apply(Q), many.apply(Q))
        assert np.array_equal(one.transposed(U), many.transposed(U))


def test_a_sparse_table_is_left_alone():
    X = sp.csr_array(table((50, 30), np.float64, sparse=True))
    before = X.data.copy()
    prepare(X, weights=np.arange(50.0), factor=np.full(30, 3.0))
    assert np.array_equal(X.data, before)


def test_a_nan_in_the_operand_reaches_every_column_it_touches_and_no_other():
    X = sp.csr_array(table((50, 30), np.float64, sparse=True))
    operator, _ = prepare(X)
    Q = np.ones((30, 3))
    Q[4, 1] = np.nan
    image = operator.apply(Q)
    assert np.isnan(image[:, 1]).all()
    assert np.isfinite(image[:, [0, 2]]).all()


@pytest.mark.parametrize("shape", [(3, 50), (50, 3), (40, 40), (1, 1)])
def test_a_transposed_table_is_that_of_scipy(shape):
    X = sp.random_array(shape, density=0.3, format="csr", rng=np.random.default_rng(0))
    ours = _Csr(X.indptr.astype(np.uint64), unsigned(X.indices), X.data).transposed(shape[1], 2)
    theirs = sp.csr_array(X.T)
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.data, theirs.data)
