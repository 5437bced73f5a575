import pickle
import resource
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import gnomon
from gnomon import PCA
from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.errors import (
    ChangedSourceError,
    DataError,
    DataTypeError,
    DataWarning,
    MissingValueError,
    ParameterError,
    PartitionError,
    TooLargeError,
    UnavailableError,
    WriteError,
)
from gnomon.pca.plan import SOLVERS
from gnomon.progress import Watch

BLOCK = 300


def numbers(rows=2000, columns=12, mean=0.0, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    spread = np.linspace(5, 1, columns)
    return (random.standard_normal((rows, columns)) * spread + mean).astype(dtype)


def parquet(path, X, rows=BLOCK):
    names = [f"c{j}" for j in range(X.shape[1])]
    pq.write_table(pa.table(dict(zip(names, X.T.copy(), strict=True))), path, row_group_size=rows)
    return path


def bits(model):
    return [
        getattr(model, name).tobytes()
        for name in ("components_", "explained_variance_", "mean_", "spectrum_", "loadings_")
    ]


SETTINGS = [
    {},
    {"solver": "krylov"},
    {"solver": "deflation"},
    {"standardize": True},
    {"standardize": True, "solver": "krylov"},
    {"feature_weight": np.arange(1, 13)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_files_and_memory_give_the_same_bits_on_1_2_and_4_threads(tmp_path, settings, weighted):
    X = numbers(mean=50.0)
    weights = np.arange(2000) % 5 if weighted else None
    np.save(tmp_path / "a.npy", X)
    parquet(tmp_path / "a.parquet", X)
    want = bits(PCA(3, **settings, n_jobs=1).fit(gnomon.source(X, rows=BLOCK), None, weights))
    for threads in (1, 2, 4):
        for table in (X, tmp_path / "a.npy", tmp_path / "a.parquet"):
            source = gnomon.source(table, rows=BLOCK)
            model = PCA(3, **settings, n_jobs=threads).fit(source, sample_weight=weights)
            assert bits(model) == want
    whole = PCA(3, **settings).fit(X, sample_weight=weights)
    # standardised noise has close eigenvalues: 1e-6 of rounding in Σ is divided by their gaps
    np.testing.assert_allclose(model.components_, whole.components_, atol=5e-5)
    np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=2e-6)
    assert model.n_samples_ == whole.n_samples_


def test_the_certificate_is_that_of_the_same_solver_in_memory():
    X = numbers(dtype=np.float64)
    blocks = PCA(3).fit(gnomon.source(X, rows=BLOCK)).certificate_
    whole = PCA(3).fit(X).certificate_
    assert (blocks.solver, blocks.passes, blocks.converged) == ("covariance", 1, True)
    np.testing.assert_allclose(blocks.angle_bounds, whole.angle_bounds, rtol=0.5)
    assert blocks.formation_error == pytest.approx(whole.formation_error, rel=1e-3)


def test_the_shift_is_of_rows_from_everywhere():
    X = numbers(3000, mean=1e4)
    X[:1024] = 0  # blank rows before the data
    model = PCA(2, n_jobs=2).fit(gnomon.source(X, rows=200))
    exact = PCA(2).fit(X.astype(np.float64))
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-4)


@pytest.mark.parametrize("mean", [1e3, 1e8])
def test_a_large_mean_loses_nothing(mean):
    dtype = np.float32 if mean < 1e4 else np.float64
    X = numbers(mean=mean, dtype=dtype)
    model = PCA(3).fit(gnomon.source(X, rows=BLOCK))
    exact = PCA(3).fit(X.astype(np.float64) - mean)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-5)


@pytest.mark.parametrize("power", [-600, 600])
def test_extreme_units_have_the_same_bits_but_for_the_unit(power):
    X = numbers(dtype=np.float64)
    for solver in ("covariance", "krylov"):
        plain = PCA(3, solver=solver).fit(gnomon.source(X, rows=BLOCK))
        scaled = PCA(3, solver=solver).fit(gnomon.source(np.ldexp(X, power), rows=BLOCK))
        np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9)
        np.testing.assert_allclose(
            scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9
        )


def test_one_extreme_row_that_the_sample_misses_is_seen():
    X = numbers(dtype=np.float64)
    X[1501] *= 1e200
    with pytest.warns(DataWarning, match="Row 1501 is so far from all others"):
        model = PCA(1).fit(gnomon.source(X, rows=BLOCK))
    direction = X[1501] / np.abs(X[1501]).max()
    direction /= np.linalg.norm(direction)
    assert abs(model.components_[0] @ direction) > 1 - 1e-9


def test_long_integers_are_shifted_before_they_are_converted():
    X = np.random.default_rng(0).integers(0, 100, (900, 3)) + 2**60
    model = PCA(2).fit(gnomon.source(X, rows=100))
    exact = PCA(2).fit(X)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-9)


def test_float32_sums_that_are_too_coarse_are_redone_in_float64():
    X = numbers(12_000, 6, dtype=np.float32)
    X[:, 5] = X[:, 0] * (1 + 1e-5)
    source = gnomon.source(X, rows=500)
    model = PCA(6).fit(source)
    assert model.certificate_.passes == 2
    exact = PCA(6).fit(X.astype(np.float64))
    np.testing.assert_allclose(
        model.explained_variance_, exact.explained_variance_, rtol=1e-4, atol=1e-12
    )


def test_a_small_budget_turns_to_krylov_in_a_planned_number_of_passes():
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((1000, 5)))[0]
    X = random.standard_normal((700, 5)) * [9, 7, 5, 3, 2] @ basis.T
    X += 0.01 * random.standard_normal(X.shape)
    source = gnomon.source(X, rows=100)
    cluster = _Elsewhere(1)
    plan = PCA(5, n_jobs=1).plan(source, memory="120MB", engine=cluster)
    assert plan.solver == "krylov"
    assert plan.peak_bytes < 120e6
    assert plan.why.startswith("at most 19 passes over a source, 106 MB: an exact solver would")
    model = PCA(5, n_jobs=1).fit(source, memory="120MB", engine=cluster)
    assert model.solver_ == "krylov"
    assert model.certificate_.passes <= plan.passes == 19  # one of them for the shift
    assert model.certificate_.converged
    exact = PCA(5).fit(X)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-6)
    one_pass = PCA(5, n_jobs=1).plan(source, memory="400MB", engine=cluster)
    assert (one_pass.solver, one_pass.passes) == ("covariance", 2)
    assert one_pass.why.startswith("a source of 5.6 MB, read twice; exact")
    with pytest.raises(TooLargeError, match=r"and 1\.0 MB may be used\. Allow more memory"):
        PCA(5, solver="krylov").fit(source, memory="1MB", engine=cluster)
    with pytest.raises(TooLargeError, match=r"by covariance needs .* 120 MB may be used"):
        PCA("kaiser", n_jobs=1).fit(source, memory="120MB", engine=cluster)


class _Elsewhere(LocalEngine):
    """Threads that say of themselves that they are the workers of a cluster."""

    is_local = False


class _Shared(_Elsewhere):
    """Threads that say of themselves that they are worker processes of this machine."""

    processes = 2


def test_workers_of_this_machine_are_counted_in_the_plan():
    source = gnomon.source(np.zeros((900, 300)), rows=30)  # 30 blocks
    here, shared = (PCA(5).plan(source, engine=each(1)) for each in (_Elsewhere, _Shared))
    assert shared.why == here.why + "; the memory is that of this process and 2 workers"
    # Two blocks each, as the file has them and as rows; five sums each, and one of every block.
    more = 2 * 4 * source.block_bytes + 8 * 300**2 * (2 * 5 + 30)
    assert shared.peak_bytes == here.peak_bytes + more
    budget = here.peak_bytes + more // 2
    assert PCA(5).plan(source, memory=budget, engine=_Elsewhere(1)).solver == "covariance"
    assert PCA(5).plan(source, memory=budget, engine=_Shared(1)).solver == "krylov"
    one = _Shared(1)
    one.processes = 1
    assert PCA(5).plan(source, engine=one).why.endswith("this process and 1 worker")


class _Counted(ArraySource):
    """An array that is read as a file is, and counts how often its parts are."""

    def __init__(self, X, rows):
        super().__init__(X, rows)
        self.read_parts = []  # that of copies with some of the parts too

    def array(self):
        return None

    def read(self, partition):
        self.read_parts.append(partition.index)
        return super().read(partition)


@pytest.mark.parametrize(
    ("solver", "parts"),
    [("covariance", 6), ("covariance", 12), ("krylov", 6), ("gram", 6), ("deflation", 12)],
)
def test_every_pass_over_a_source_is_counted(solver, parts):
    source = _Counted(numbers(600, 12, dtype=np.float64), 600 // parts)
    model = PCA(3, solver=solver, n_jobs=1).fit(source)
    reads = len(source.read_parts)
    few = parts <= 8  # then all of them are read for the shift, and otherwise eight
    if solver == "gram":  # brought into memory in one pass, and read there
        assert reads == parts
        assert model.certificate_.passes == 1 + SOLVERS["gram"].PASSES
    elif few:
        assert reads == parts * model.certificate_.passes
    else:
        assert reads == 8 + parts * model.certificate_.passes
    assert model.certificate_.passes <= model.plan_.passes


def test_flat_spectra_are_given_up_after_the_planned_passes(monkeypatch):
    monkeypatch.setattr("gnomon.pca.plan.LARGE_BYTES", 600 * 400 * 8)
    X = np.random.default_rng(0).standard_normal((600, 400))
    with pytest.warns(Warning, match="krylov stopped at a residual"):
        model = PCA(2, solver="krylov", tol=1e-12).fit(gnomon.source(X, rows=100))
    assert model.certificate_.passes <= model.plan_.passes


WHOLE = [{"solver": "svd"}, {"solver": "gram"}, {"solver": "full"}, {"missing": "em"}]


@pytest.mark.parametrize("settings", WHOLE, ids=str)
def test_a_solver_that_needs_the_whole_table_gets_it_where_it_fits(tmp_path, settings):
    X = numbers()
    if "missing" in settings:
        X[5, 3] = np.nan
    source = parquet_source(tmp_path, X)
    model = PCA(2, **settings).fit(source)
    assert bits(model) == bits(PCA(2, **settings).fit(gnomon.source(X, rows=BLOCK)))
    for elsewhere in ({"engine": _Elsewhere(1)}, {"memory": "100kB"}):
        with pytest.raises((ParameterError, UnavailableError), match="whole table"):
            PCA(2, **settings).fit(source, **elsewhere)


def test_bad_values_of_a_table_that_was_brought_into_memory_are_named_by_file(tmp_path):
    X = numbers()
    X[1700, 3] = np.nan
    with pytest.raises(MissingValueError, match=r"the first in clean\.parquet at row 1700, column"):
        PCA(2, solver="gram").fit(parquet_source(tmp_path, X))


def test_what_needs_the_whole_table_says_so():
    source = gnomon.source(numbers(), rows=BLOCK)
    model = PCA(2).fit(source)
    for ask in (model.contributions, model.score, model.partial_fit, gnomon.TSNE().fit):
        with pytest.raises(DataTypeError, match="X is a source, which is read in blocks"):
            ask(source)
    with pytest.raises(ParameterError, match="at least 2 rows"):
        PCA().fit(gnomon.source(numbers(1)))


def test_missing_and_infinite_values_are_named_with_file_and_row(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    X = numbers()
    X[1700, 3] = X[1800, 3] = np.nan
    parquet(folder / "a.parquet", X[:1000])
    parquet(folder / "b.parquet", X[1000:])
    said = r"X holds 2 missing values \(NaN\), the first in b\.parquet at row 700, column 'c3'"
    source = gnomon.source(folder, rows=BLOCK)
    for solver in ("covariance", "krylov"):
        with pytest.raises(MissingValueError, match=said):
            PCA(2, solver=solver).fit(source)
    clean = PCA(2).fit(parquet_source(tmp_path, numbers()))
    with pytest.raises(MissingValueError, match=said):
        clean.transform(source, to=tmp_path / "scores.npy")
    assert not (tmp_path / "scores.npy").exists()
    X[1700, 3] = -np.inf
    parquet(folder / "b.parquet", X[1000:])
    with pytest.raises(
        DataError, match=r"1 infinite value \(inf\), the first in b\.parquet at row"
    ):
        PCA(2).fit(gnomon.source(folder, rows=BLOCK))


def parquet_source(folder, X):
    return gnomon.source(parquet(folder / "clean.parquet", X), rows=BLOCK)


def test_names_of_columns_are_checked_as_for_dataframes(tmp_path):
    X = numbers()
    model = PCA(2).fit(parquet_source(tmp_path, X))
    assert list(model.feature_names_in_) == [f"c{j}" for j in range(12)]
    other = gnomon.source(X, rows=BLOCK, names=[f"c{11 - j}" for j in range(12)])
    with pytest.raises(ValueError, match="feature names"):
        model.transform(other)
    with pytest.raises(ValueError, match="has 5 features, but PCA is expecting 12"):
        PCA(2).fit(X).transform(gnomon.source(X[:, :5]))


@pytest.mark.parametrize("ending", ["npy", "parquet"])
@pytest.mark.parametrize("whiten", [False, True])
def test_results_are_written_block_by_block_with_the_bits_of_memory(tmp_path, ending, whiten):
    X = numbers(mean=3.0)
    model = PCA(3, whiten=whiten, n_jobs=2).fit(X)
    source, told = gnomon.source(X, rows=BLOCK), []
    for method, given in (("transform", source), ("residuals", source), ("transform", X)):
        path = tmp_path / f"{method}.{ending}"
        on = lambda event: told.append((event.done, event.total))  # noqa: E731
        ask = getattr(model, method)
        assert ask(given, to=path, force=True, on=on) == path
        assert read(path).tobytes() == ask(X).tobytes()
    assert told[:2] == [(300, 2000), (600, 2000)]
    scores = gnomon.source(tmp_path / f"transform.{ending}", rows=BLOCK)
    back = model.inverse_transform(scores, to=tmp_path / f"back.{ending}")
    assert read(back).tobytes() == model.inverse_transform(model.transform(X)).tobytes()
    assert model.transform(source).tobytes() == model.transform(X).tobytes()
    assert model.inverse_transform(scores).tobytes() == read(back).tobytes()
    if ending == "parquet":
        assert pq.read_schema(tmp_path / "transform.parquet").names == ["pca0", "pca1", "pca2"]
        assert pq.read_schema(back).names == [f"x{j}" for j in range(12)]


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    return np.ascontiguousarray(np.column_stack(pq.read_table(path).columns))


def test_fit_transform_is_fit_then_transform():
    source = gnomon.source(numbers(), rows=BLOCK)
    both = PCA(2).fit_transform(source)
    assert both.tobytes() == PCA(2).fit(source).transform(source).tobytes()


def test_an_engine_takes_arrays_too():
    X = numbers()
    got = PCA(2).fit(X, engine=LocalEngine(2))
    assert bits(got) == bits(PCA(2).fit(gnomon.source(X)))
    sparse = sp.csr_array(np.where(np.abs(X) < 5, 0, X))
    want = PCA(2, solver="covariance").fit(sparse)
    for engine in (LocalEngine(1), _Elsewhere(2)):
        got = PCA(2, solver="covariance").fit(sparse, engine=engine)
        assert bits(got) == bits(want)
        assert got.transform(sparse, engine=engine).tobytes() == want.transform(sparse).tobytes()


def test_dask_arrays_are_computed_block_by_block():
    import dask.array as da

    X = numbers()
    most, now = [0], [0]

    def count(block):
        now[0] += 1
        most[0] = max(most[0], len(block))
        return block

    lazy = da.from_array(X, chunks=(BLOCK, 5)).map_blocks(count, dtype=X.dtype)
    model = PCA(3, n_jobs=2).fit(lazy)
    assert bits(model) == bits(PCA(3).fit(gnomon.source(X, rows=BLOCK)))
    assert most[0] <= BLOCK
    assert model.transform(lazy).tobytes() == model.transform(X).tobytes()


def test_progress_is_told_by_rows():
    told = []

    def watch(event):
        told.append((event.done, event.total))

    model = PCA(2, n_jobs=1).set_callbacks(Watch(watch))
    model.fit(gnomon.source(numbers(), rows=500))
    assert told == [(500, 2000), (1000, 2000), (1500, 2000), (2000, 2000)]


def test_a_fitted_model_is_sent_without_its_moments():
    model = PCA(2).fit(numbers(100, 50))
    assert model.moments_ is not None
    assert len(pickle.dumps(model._model())) < len(pickle.dumps(model)) - 8 * 50**2 + 1000


def test_a_file_that_changes_between_passes_is_named(tmp_path):
    X = numbers()
    np.save(tmp_path / "a.npy", X)
    source = gnomon.source(tmp_path / "a.npy", rows=BLOCK)
    model = PCA(2).fit(source)
    X[700] += 1
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ChangedSourceError, match=r"a\.npy, rows 600 to 899 changed"):
        model.transform(source, to=tmp_path / "scores.npy")
    with pytest.raises(ChangedSourceError, match=r"a\.npy, rows 600 to 899 changed"):
        PCA(2).fit(source)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npy"]


class Failing(ArraySource):
    """The third block is beyond reading, or ends in Ctrl-C."""

    error: type[BaseException] = OSError

    def read(self, partition):
        if partition.index == 2:
            raise self.error("the drive is away")
        return super().read(partition)


def test_a_partition_that_fails_three_times_is_named():
    with pytest.raises(PartitionError, match=r"rows 600 to 899 failed 3 times.*drive is away"):
        PCA(2).fit(Failing(numbers(), rows=BLOCK))


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_ctrl_c_and_a_full_disk_leave_the_old_file(tmp_path, ending):
    X, path = numbers(20_000, 12), tmp_path / f"scores.{ending}"
    model = PCA(8).fit(X)
    path.write_bytes(b"old")
    interrupted = Failing(X, rows=BLOCK)
    interrupted.error = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        model.transform(interrupted, to=path, force=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        with pytest.raises(WriteError, match="could not be written"):
            model.transform(gnomon.source(X, rows=2000), to=path, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_file_of_scores_is_named_whatever_tables_are_made_of_arrays(tmp_path):
    X = numbers(rows=50)
    model = PCA(2).set_output(transform="pandas").fit(ArraySource(X, 20))
    path = tmp_path / "scores.npy"
    assert model.transform(ArraySource(X, 20), to=path) == path
    frame = model.transform(ArraySource(X, 20))
    assert list(frame.columns) == ["pca0", "pca1"]
    assert np.array_equal(np.load(path), frame.to_numpy())
    assert model.transform(X, to=path, force=True) == path
    assert list(model.fit_transform(X).columns) == ["pca0", "pca1"]


def test_missing_values_are_not_filled_in_on_a_cluster():
    X = numbers(200)
    X[5, 3] = np.nan
    with pytest.raises(UnavailableError, match="needs the whole table"):
        PCA(2, missing="em").fit(X, engine=_Elsewhere(1))


def test_a_sparse_table_is_multiplied_on_a_cluster():
    X = np.where(np.random.default_rng(0).random((300, 40)) < 0.2, 1.5, 0.0)
    there = PCA(2, solver="krylov").fit(sp.csr_array(X), engine=_Elsewhere(1))
    here = PCA(2, solver="krylov").fit(X)
    np.testing.assert_allclose(there.explained_variance_, here.explained_variance_, rtol=1e-8)


def test_free_memory_is_looked_at_once(tmp_path, monkeypatch):
    free = iter([1e9])
    monkeypatch.setattr("gnomon.pca.estimator.available_bytes", lambda: next(free))
    assert PCA(2, solver="gram").fit(parquet_source(tmp_path, numbers())).solver_ == "gram"


def test_whole_numbers_have_no_gaps_to_hold_a_table_for(tmp_path):
    np.save(tmp_path / "whole.npy", np.arange(60).reshape(20, 3) % 7)
    plan = PCA(2, missing="em").plan(gnomon.source(tmp_path / "whole.npy"))
    assert "into memory" not in plan.why


def test_a_table_too_large_to_hold_is_refused_without_words_about_gaps(tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((60, 4000)))
    with pytest.raises(TooLargeError, match="with the table itself") as caught:
        PCA(2).plan(gnomon.source(tmp_path / "wide.npy"), memory="5MB")
    assert "missing" not in str(caught.value)


def test_a_wild_row_of_a_table_that_was_held_is_named_by_its_file(tmp_path):
    X = numbers(40, 60, dtype=np.float64)
    X[23] *= 1e9
    for name, part in (("a", X[:20]), ("b", X[20:])):
        np.save(tmp_path / f"{name}.npy", part)
    with pytest.warns(DataWarning, match=r"Row 3 of b\.npy is so far from all others"):
        PCA(2).fit(gnomon.source(tmp_path))


def test_bringing_a_table_into_memory_reports_its_rows(tmp_path):
    told = []

    def watch(event):
        told.append((event.stage, event.done, event.total))

    model = PCA(2, solver="gram", n_jobs=1).set_callbacks(Watch(watch))
    model.fit(parquet_source(tmp_path, numbers(600)))
    assert ("rows", 300, 600) in told


def test_a_memory_map_that_was_made_a_source_is_read_in_parts(tmp_path):
    np.save(tmp_path / "x.npy", numbers())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert gnomon.source(mapped).array() is None
    assert bits(PCA(2).fit(gnomon.source(mapped))) == bits(PCA(2).fit(mapped))
