"""The contract: same numbers, same parts, same bits, wherever a table lies and however it is read.

Arrays, memory maps, `.npy`, one CSV file, Parquet whose row groups are multiples of a part, and
Dask arrays whose chunks follow the rule agree bit for bit, for equal dtype and solver, on any
number of threads and of worker processes.
"""

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gnomon
from gnomon import PCA, TSNE, Procrustes, compare
from gnomon.engine import LocalEngine
from gnomon.engine import source as parts_rule
from gnomon.engine.arrays import as_source
from gnomon.engine.cluster import local_cluster
from gnomon.procrustes import robust as reweighted
from gnomon.tsne.sampled import choose_sample, place_array, place_source

ROWS, COLUMNS, PART = 1000, 7, 50
KINDS = ["memmap", "npy", "csv", "parquet", "dask"]


SMALL_PARTS = {"PARTITION_NUMBERS": PART * COLUMNS, "WIDE_TIMES": 1}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 50 rows: twenty of them are a tree of two levels."""
    for name, value in SMALL_PARTS.items():
        monkeypatch.setattr(parts_rule, name, value)


def numbers(rows=ROWS, columns=COLUMNS):
    random = np.random.default_rng(0)
    return random.standard_normal((rows, columns)) * np.geomspace(1, 9, columns) + 40


def placed(kind, X, folder):
    """`X` as a table of this kind."""
    folder.mkdir(exist_ok=True)
    names, part = [f"c{j}" for j in range(X.shape[1])], parts_rule.partition_rows(X.shape[1])
    if kind == "memmap":
        np.save(folder / "mapped.npy", X)
        return np.load(folder / "mapped.npy", mmap_mode="r")
    if kind == "npy":
        np.save(folder / "x.npy", X)
        return gnomon.source(folder / "x.npy")
    if kind == "csv":
        lines = [",".join(map(repr, row)) for row in X.tolist()]
        (folder / "x.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
        return gnomon.source(folder / "x.csv")
    if kind == "parquet":
        table = pa.table(dict(zip(names, X.T.copy(), strict=True)))
        pq.write_table(table, folder / "x.parquet", row_group_size=2 * part)
        return gnomon.source(folder / "x.parquet")
    return da.from_array(X, chunks=(part, -1))


def bits(model):
    return {
        name: getattr(model, name).tobytes()
        for name in ("components_", "explained_variance_", "mean_", "spectrum_", "loadings_")
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["covariance", "deflation", "krylov"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pca_of_a_table_has_the_bits_of_pca_of_the_array(tmp_path, kind, solver, weighted):
    X = numbers()
    weights = np.arange(ROWS) % 3 if weighted else None
    want = PCA(3, solver=solver, n_jobs=1).fit(X, sample_weight=weights)
    for threads in (1, 2, 4):
        table = placed(kind, X, tmp_path)
        model = PCA(3, solver=solver, n_jobs=threads).fit(table, sample_weight=weights)
        assert bits(model) == bits(want)
        assert model.transform(table).tobytes() == want.transform(X).tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "csv"])  # which has float64
@pytest.mark.parametrize("solver", ["covariance", "deflation", "krylov"])
def test_pca_of_float32_has_the_bits_of_pca_of_the_array(tmp_path, kind, solver):
    X = numbers().astype(np.float32)
    want = PCA(3, solver=solver, n_jobs=1).fit(X)
    model = PCA(3, solver=solver, n_jobs=2).fit(placed(kind, X, tmp_path))
    assert model.components_.dtype == np.float32
    assert bits(model) == bits(want)


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def workers(request, quick_workers):
    """Processes of this machine, as `--workers` starts them."""

    def use_small_parts():
        for name, value in SMALL_PARTS.items():
            setattr(parts_rule, name, value)

    with local_cluster(request.param) as engine:
        engine.client.run(use_small_parts)
        yield engine


@pytest.mark.parametrize("kind", ["array", *KINDS])
@pytest.mark.parametrize("solver", ["covariance", "deflation", "krylov"])
def test_pca_on_workers_has_the_bits_of_pca_of_the_array(tmp_path, workers, kind, solver):
    X = numbers()
    want = PCA(3, solver=solver, n_jobs=1).fit(X)
    table = X if kind == "array" else placed(kind, X, tmp_path)
    model = PCA(3, solver=solver).fit(table, engine=workers)
    assert bits(model) == bits(want)
    assert model.transform(table, engine=workers).tobytes() == want.transform(X).tobytes()


@pytest.mark.parametrize("kind", ["array", *KINDS])
@pytest.mark.parametrize("robust", [False, "huber"])
def test_procrustes_on_workers_has_the_bits_of_procrustes_of_arrays(
    tmp_path, monkeypatch, workers, kind, robust
):
    monkeypatch.setattr(reweighted, "START_STEPS", 2)
    monkeypatch.setattr(reweighted, "STEPS", 3)
    monkeypatch.setattr(reweighted, "WORTH_SAYING", 1.0)
    X, Y = pair(400, 9, 7)
    tables = X, Y
    if kind != "array":
        tables = placed(kind, X, tmp_path / "x"), placed(kind, Y, tmp_path / "y")
    want = Procrustes(robust=robust, n_jobs=1).fit(X, Y)
    model = Procrustes(robust=robust).fit(*tables, engine=workers)
    assert bits_of_map(model) == bits_of_map(want)
    assert model.transform(tables[0], engine=workers).tobytes() == want.transform(X).tobytes()


@pytest.mark.parametrize("kind", ["array", *KINDS])
def test_a_table_is_placed_on_workers_like_the_array(tmp_path, workers, kind):
    X = numbers()
    named = kind in ("csv", "parquet")
    whole = pa.table({f"c{j}": column for j, column in enumerate(X.T.copy())}) if named else X
    tsne = TSNE(max_iter=40, perplexity=5, random_state=0, n_jobs=1).fit(whole[:200])
    want = tsne.place(whole)
    found = tsne.place(X if kind == "array" else placed(kind, X, tmp_path), engine=workers)
    for name in ("positions", "distance_ratio", "residual", "reason", "neighbors"):
        assert getattr(found, name).tobytes() == getattr(want, name).tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memmap"])
@pytest.mark.parametrize("solver", ["auto", "gram", "svd", "krylov"])
def test_a_wide_table_is_held_and_has_the_bits_of_the_array(tmp_path, monkeypatch, kind, solver):
    X = numbers(60, 200)
    monkeypatch.setattr(parts_rule, "PARTITION_NUMBERS", PART * 200)
    model = PCA(3, solver=solver).fit(placed(kind, X, tmp_path))
    want = PCA(3, solver=solver).fit(X)
    assert (model.solver_, bits(model)) == (want.solver_, bits(want))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_placed_on_a_map_like_the_array(tmp_path, kind):
    X = numbers()
    named = kind in ("csv", "parquet")
    whole = pa.table({f"c{j}": column for j, column in enumerate(X.T.copy())}) if named else X
    tsne = TSNE(max_iter=40, perplexity=5, random_state=0, n_jobs=1).fit(whole[:200])
    want = tsne.place(whole)
    for threads in (1, 2, 4):
        found = tsne.set_params(n_jobs=threads).place(placed(kind, X, tmp_path))
        for name in ("positions", "distance_ratio", "residual", "reason", "neighbors"):
            assert getattr(found, name).tobytes() == getattr(want, name).tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memmap"])
def test_the_rows_around_a_sample_are_placed_like_those_of_the_array(tmp_path, kind):
    X = numbers()
    sampling = choose_sample(ROWS, asked=200, budget=1e9, needed=lambda _: 0.0, seed=0)
    tsne = TSNE(max_iter=40, perplexity=5, random_state=0, n_jobs=1).fit(X[sampling.rows])
    want = place_array(tsne, sampling, X)
    for threads in (1, 2, 4):
        table = as_source(placed(kind, X, tmp_path))
        found = place_source(tsne, sampling, table, LocalEngine(threads))
        for name in ("positions", "reason", "trust"):
            assert getattr(found, name).tobytes() == getattr(want, name).tobytes()


def pair(rows, dx, dy):
    """Points, and the same turned; some moved on their own."""
    random = np.random.default_rng(1)
    X = random.standard_normal((rows, dx)) * np.geomspace(1, 9, dx) + 40
    turn = np.linalg.qr(random.standard_normal((max(dx, dy),) * 2))[0][:dx, :dy]
    Y = 2 * X @ turn + 0.1 * random.standard_normal((rows, dy))
    Y[::20] += 30
    return X, Y


def bits_of_map(model):
    names = ("rotation_", "translation_", "residuals_", "singular_values_", "weights_")
    found = {name: np.asarray(getattr(model, name), float).tobytes() for name in names}
    numbers = ("scale_", "disparity_", "rmsd_", "residual_sum_", "reflection_margin_")
    return found | {name: getattr(model, name) for name in numbers}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", [(7, 7), (3, 2), (9, 12)])
@pytest.mark.parametrize("how", ["scaled", "weighted"])
def test_procrustes_of_tables_has_the_bits_of_procrustes_of_arrays(tmp_path, kind, widths, how):
    X, Y = pair(400, *widths)
    weights = np.arange(400) % 3 if how == "weighted" else None
    want = Procrustes(scaling=how == "scaled", n_jobs=1).fit(X, Y, weights)
    left, right = placed(kind, X, tmp_path / "x"), placed(kind, Y, tmp_path / "y")
    for threads in (1, 2, 4):
        model = Procrustes(scaling=how == "scaled", n_jobs=threads)
        assert bits_of_map(model.fit(left, right, weights)) == bits_of_map(want)
    assert bits_of_map(model.fit(X, Y, weights)) == bits_of_map(want)
    assert bits_of_map(model.fit(left, Y, weights)) == bits_of_map(want)
    assert model.transform(left).tobytes() == want.transform(X).tobytes()
    assert model.inverse_transform(right).tobytes() == want.inverse_transform(Y).tobytes()
    assert model.residuals(left, right).tobytes() == want.residuals(X, Y).tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("robust", "widths"), [("huber", (9, 7)), ("tukey", (2, 2))])
def test_a_robust_fit_of_tables_has_the_bits_of_one_of_arrays(
    tmp_path, monkeypatch, kind, robust, widths
):
    monkeypatch.setattr(reweighted, "START_STEPS", 2)
    monkeypatch.setattr(reweighted, "STEPS", 4)
    monkeypatch.setattr(reweighted, "WORTH_SAYING", 1.0)
    X, Y = pair(90 if robust == "huber" else 300, *widths)  # two parts
    want = Procrustes(robust=robust, n_jobs=1).fit(X, Y)
    tables = placed(kind, X, tmp_path / "x"), placed(kind, Y, tmp_path / "y")
    for threads in (1, 2, 4):
        found = Procrustes(robust=robust, n_jobs=threads).fit(*tables)
        assert bits_of_map(found) == bits_of_map(want)


@pytest.mark.parametrize("kind", KINDS)
def test_a_comparison_of_tables_has_the_bits_of_that_of_arrays(tmp_path, kind):
    X, Y = pair(300, 7, 3)
    found = compare(placed(kind, X, tmp_path / "x"), placed(kind, Y, tmp_path / "y"))
    assert found == compare(X, Y)
