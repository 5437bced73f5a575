import json
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from gnomon import PCA
from gnomon.errors import ParameterError, TooLargeError
from gnomon.pca import estimator
from gnomon.pca.plan import ALIASES, SOLVERS, make_plan
from gnomon.pca.rank import Request

PLENTY = 10**14


def plan(n, d, k, *, itemsize=4, memory=PLENTY, **options):
    request = Request.parse(k, n, d)
    return make_plan(n=n, d=d, request=request, itemsize=itemsize, memory=memory, **options)


# rows, columns, components, entries if sparse, solver: the table of the design, section 3
CHOICES = [
    (70_000, 784, 50, None, "covariance"),
    (200_000, 300, 20, None, "covariance"),
    (1_000_000, 100, 10, None, "covariance"),
    (1_797, 64, 0.95, None, "covariance"),
    (150, 4, "parallel", None, "covariance"),
    (300, 20_000, 20, None, "gram"),
    (500, 4_000, 0.9, None, "gram"),
    (20, 5_000, None, None, "gram"),
    (2_000, 2_000, 20, None, "krylov"),
    (20_000, 3_000, 50, None, "krylov"),
    (100_000, 10_000, 20, None, "krylov"),
    (5_000, 100_000, 20, None, "krylov"),
    (30_000, 28_000, 0.9, None, "krylov"),
    (1_000, 1_000, None, None, "svd"),
    (300, 200, 190, None, "svd"),
    (4_186, 13_488, 50, 2_000_000, "krylov"),
    (100_000, 20_000, 20, 10_000_000, "krylov"),
    (500, 200, 5, 2_000, "krylov"),
]


@pytest.mark.parametrize(("n", "d", "k", "stored", "solver"), CHOICES)
@pytest.mark.parametrize("itemsize", [4, 8])
def test_the_shape_decides(n, d, k, stored, solver, itemsize):
    assert plan(n, d, k, stored=stored, itemsize=itemsize).solver == solver


def test_a_sparse_table_of_which_everything_is_wanted_is_not_given_to_a_solver_that_copies_it():
    assert plan(400, 300, None, stored=5_000).solver == "covariance"
    assert plan(300, 400, None, stored=5_000).solver == "gram"


def test_a_rule_that_needs_the_whole_spectrum_gets_an_exact_solver():
    for rule in ("mle", "parallel", "gavish-donoho"):
        assert plan(30_000, 28_000, rule).solver == "covariance"


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
def test_a_name_decides_whatever_the_shape(solver):
    for shape in ((5_000, 20), (20, 5_000)):
        chosen = plan(*shape, 5, solver=solver)
        assert chosen.solver == solver
        assert chosen.why == "requested by name"


def test_scikit_learns_names_are_translated():
    assert {name: plan(90, 20, 5, solver=name).solver for name in ALIASES} == ALIASES


@pytest.mark.parametrize(("n", "d", "k", "stored", "solver"), CHOICES)
def test_the_reason_is_a_sentence_about_this_table(n, d, k, stored, solver):
    why = plan(n, d, k, stored=stored).why
    words = {
        "covariance": "at least as many rows as columns",
        "gram": "more columns than rows",
        "svd": "nearly all components of a small table",
        "krylov": "sparse, and stays so"
        if stored
        else "both sides large, few components requested",
    }
    assert why.startswith(words[solver])
    assert len(why.split()) > 6


def test_what_does_not_fit_is_refused_with_what_it_needs_what_there_is_and_the_way_out():
    needed = plan(100_000, 5_000, 20, itemsize=8, solver="covariance").peak_bytes
    assert needed > 8 * 5_000**2
    with pytest.raises(TooLargeError) as caught:
        plan(100_000, 5_000, 20, itemsize=8, solver="covariance", memory=400_000_000)
    assert isinstance(caught.value, MemoryError)
    assert str(caught.value) == (
        "PCA of 100,000 × 5,000 float64 by covariance needs 1.3 GB beyond the table, and 400 MB "
        "may be used. Use fewer components with `solver='krylov'`."
    )
    # the way out is one
    assert plan(100_000, 5_000, 20, itemsize=8, solver="krylov", memory=400_000_000)


def test_svd_by_name_says_that_it_turns_a_sparse_table_into_a_dense_one():
    table = sp.random_array((300, 9_000), density=0.001, rng=np.random.default_rng(0), format="csr")
    told = PCA(5, solver="svd").plan(table)
    assert told.why == "requested by name; makes a dense copy of the sparse table, 21.6 MB"
    assert told.peak_bytes > 4 * 8 * 300 * 9_000
    assert "dense" not in PCA(5, solver="gram").plan(table).why
    assert "dense" not in PCA(5, solver="svd").plan(table.T).why  # blocks of rows are enough


def test_a_dense_copy_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("gnomon.pca.plan.available_bytes", lambda: 10**9)
    table = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 1])), (300, 2_000_000))  # 4.8 GB if dense
    for ask in (PCA(5, solver="svd").fit, PCA(5, svd_solver="full").plan):
        with pytest.raises(TooLargeError) as caught:
            ask(table)
        assert str(caught.value) == (
            "PCA of 300 × 2,000,000 float64 by svd needs 19.3 GB beyond the table (it makes a "
            "dense copy of the sparse table, 4.8 GB), and 1.0 GB are free. Use `solver='gram'`, "
            "which is exact too and copies nothing."
        )
    assert PCA(5, solver="gram").plan(table)


def test_filling_in_that_does_not_fit_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr("gnomon.pca.plan.available_bytes", lambda: 200_000_000)
    X = np.broadcast_to(np.float32([[np.nan, 1.0]]), (3_000_000, 2))
    assert PCA(1).plan(X)
    for ask in (PCA(1, missing="em").plan, PCA(1, missing="em").fit):
        with pytest.raises(TooLargeError, match=r"352 MB beyond .* Fill in the missing values"):
            ask(X)


def test_just_enough_memory_is_enough():
    needed = plan(3_000, 500, 20, solver="covariance").peak_bytes
    assert plan(3_000, 500, 20, solver="covariance", memory=needed).peak_bytes == needed
    with pytest.raises(TooLargeError):
        plan(3_000, 500, 20, solver="covariance", memory=needed - 1)


def test_little_memory_moves_the_choice_to_a_solver_that_fits():
    exact = plan(70_000, 784, 50)
    small = plan(70_000, 784, 50, memory=exact.peak_bytes - 1)
    assert (exact.solver, small.solver) == ("covariance", "krylov")
    assert small.peak_bytes < exact.peak_bytes


def test_a_fit_that_does_not_fit_stops_before_any_work(monkeypatch):
    monkeypatch.setattr("gnomon.pca.plan.available_bytes", lambda: 10_000_000)
    monkeypatch.setattr(SOLVERS["covariance"], "solve", None)  # calling it would be a TypeError
    X = np.random.default_rng(0).standard_normal((60, 8))
    with pytest.raises(TooLargeError, match=r"10\.0 MB are free"):
        PCA(2, solver="covariance").fit(X)
    with pytest.raises(TooLargeError, match=r"10\.0 MB are free"):
        PCA(2).partial_fit(X)


def spread(n, d, dtype=np.float64):
    X = np.random.default_rng(0).standard_normal((n, d)) * np.geomspace(1, 1e-4, d)
    return X.astype(dtype)


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation"])
def test_an_exact_solver_reads_the_table_as_often_as_planned(solver):
    model = PCA(4, solver=solver).fit(spread(300, 40))
    assert model.certificate_.passes == model.plan_.passes


def test_krylov_reads_a_table_of_falling_variances_about_as_often_as_planned():
    model = PCA(30, solver="krylov").fit(spread(900, 600))
    assert model.certificate_.converged
    assert model.plan_.passes / 2 < model.certificate_.passes < 2 * model.plan_.passes


# solver, shape, components, type
MID_SIZE = [
    ("covariance", (2_000, 1_200), 10, np.float64),
    ("covariance", (1_000, 800), 600, np.float32),
    ("gram", (800, 5_000), 10, np.float64),
    ("gram", (300, 8_000), 200, np.float32),
    ("krylov", (3_000, 2_000), 20, np.float32),
    ("krylov", (600, 5_000), 30, np.float64),
    ("svd", (2_000, 500), 10, np.float64),
    ("svd", (400, 8_000), 10, np.float32),
    ("svd", (200, 8_000), 200, np.float64),
]


@pytest.mark.parametrize(("solver", "shape", "k", "dtype"), MID_SIZE)
def test_a_fit_takes_no_more_memory_than_planned_and_not_far_less(solver, shape, k, dtype):
    X = spread(*shape, dtype)
    model = PCA(k, solver=solver, tol=1e-2, n_jobs=2)
    model.fit(X[:60, :50] if k < 50 else X[: k + 10, : k + 10])  # buffers that stay
    tracemalloc.start()
    try:
        model.fit(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= model.plan_.peak_bytes
    # 64 MB of it are for buffers, libraries and threads, which small tables do not need.
    assert model.plan_.peak_bytes <= 64e6 + 3 * peak


@pytest.mark.filterwarnings("ignore:Missing values were still moving")
def test_filling_in_takes_no_more_memory_than_planned_and_not_far_less(monkeypatch):
    monkeypatch.setattr("gnomon.pca.impute.MOST_ITERATIONS", 2)
    X = spread(4_000, 500, np.float32)
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.1] = np.nan
    model = PCA(3, missing="em", n_jobs=2).fit(X[:60, :50])
    tracemalloc.start()
    try:
        model.fit(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= model.plan_.peak_bytes <= 64e6 + 3 * peak


@pytest.mark.parametrize("k", [None, 3, 0.8, "broken-stick"])
@pytest.mark.parametrize("shape", [(200, 12), (12, 200), (40, 40)])
def test_the_plan_made_before_is_the_plan_kept_after(k, shape):
    for table in (spread(*shape), spread(*shape, np.float32), sp.csr_array(spread(*shape))):
        model = PCA(k)
        before = model.plan(table)
        assert model.fit(table).plan_ == before
        assert model.solver_ == before.solver


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(200, 12), (12, 200)])
def test_the_plan_of_a_table_with_holes_is_the_plan_kept_after_filling_them_in(dtype, shape):
    table = spread(*shape, dtype)
    table[::7, 3] = np.nan
    model = PCA(3, missing="em")
    before = model.plan(table)
    assert before.dtype == "float64"  # the filled copy is
    assert before.peak_bytes > PCA(3).plan(table).peak_bytes
    assert model.fit(table).plan_ == before


def test_planning_computes_nothing_and_leaves_the_model_unfitted(monkeypatch):
    for solver in SOLVERS.values():
        monkeypatch.setattr(solver, "solve", None)
    monkeypatch.setattr(estimator, "view_table", None)
    X = np.lib.stride_tricks.as_strided(np.zeros(1), (10**6, 2_000), (0, 0))  # 16 GB if looked at
    model = PCA(5)
    before = dict(vars(model))
    tracemalloc.start()
    try:
        told = model.plan(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told.shape == (10**6, 2_000)
    assert peak < 1e6
    assert vars(model) == before


def test_a_wrong_number_of_components_is_refused_by_the_plan_too():
    with pytest.raises(ParameterError, match="`n_components` must be an integer from 0 to 12"):
        PCA(13).plan(spread(200, 12))


def test_a_plan_reads_as_a_few_lines_and_goes_into_json():
    told = plan(70_000, 784, 50)
    assert str(told).splitlines()[0] == "PCA of 70,000 × 784 float32 by covariance"
    assert "1 over the table" in str(told)
    assert "MB beyond the table" in str(told)
    assert json.loads(json.dumps(told.to_dict()))["shape"] == [70_000, 784]
    assert plan(70_000, 784, 50, itemsize=8).dtype == "float64"
