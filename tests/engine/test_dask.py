import contextlib
import operator
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from engine.clusters import wait_until, within

import gnomon
from gnomon import PCA, TSNE, Procrustes
from gnomon.engine import Block, LocalEngine, Source, as_engine
from gnomon.engine.arrays import ArraySource
from gnomon.engine.cluster import connected, local_cluster
from gnomon.engine.dask import DaskEngine
from gnomon.errors import (
    ChangedSourceError,
    ClusterError,
    DataError,
    ParameterError,
    PartitionError,
)
from gnomon.events import Event
from gnomon.numeric.moments import Moments
from gnomon.procrustes import robust as reweighted
from gnomon.tsne.sampled import choose_sample, place_source


@pytest.fixture(scope="module")
def engine(quick_workers):
    """One cluster for all tests; its processes are gone when it is closed."""
    import psutil

    before = set(psutil.Process().children(recursive=True))
    with local_cluster(2) as found:
        yield found
        during = set(psutil.Process().children(recursive=True)) - before
    assert during
    _, left = psutil.wait_procs([one for one in during if not is_tracker(one)], timeout=30)
    assert not left


def is_tracker(process):
    """Whether it is one of Python's own, which stay until the end; what is gone is not."""
    import psutil

    try:
        line = " ".join(process.cmdline())
        return "resource_tracker" in line or (
            "forkserver" in line and process.parent() == psutil.Process()
        )
    except psutil.NoSuchProcess:
        return False


def table(rows=700, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns)) + 40


def moments(block: Block) -> Moments:
    return Moments.of(block.X, n_jobs=1)


def bits(found: Moments) -> bytes:
    return found.scatter.tobytes() + found.offset.tobytes() + found.mean.tobytes()


def rounded_sum(a, b):
    """A sum whose bits show in which order it was made."""
    return a * 1.0000001 + b


def test_its_workers_are_known_to_take_of_this_machines_memory(engine):
    assert (engine.workers, engine.processes) == (1, 2)
    assert as_engine(engine.client).processes == 0  # whose workers may be anywhere


@pytest.mark.parametrize("partitions", [1, 2, 15, 16, 17, 35, 273])
def test_the_tree_is_that_of_one_machine(engine, partitions):
    source = ArraySource(table(rows=2 * partitions), rows=2)
    assert len(source.partitions) == partitions
    first = partial(_first, scale=3.0)
    here = LocalEngine(1).reduce(first, source, rounded_sum)
    assert engine.reduce(first, source, rounded_sum) == here


def _first(block, scale):
    return scale * float(block.X[0, 0])


def pca_bytes(engine, folder, source):
    """Everything that PCA finds, by one pass and by products, and the file of its scores."""
    found = []
    for solver in ("covariance", "krylov"):
        pca = PCA(3, solver=solver, random_state=0).fit(source, engine=engine)
        file = pca.transform(source, to=folder / "scores.npy", force=True, engine=engine)
        found += [pca.components_.tobytes(), pca.explained_variance_.tobytes(), file.read_bytes()]
    return found


def test_two_four_and_one_worker_give_the_bits_of_one_machine(engine, tmp_path):
    X = table(rows=2000)
    np.save(tmp_path / "table.npy", X)
    source = gnomon.source(tmp_path / "table.npy", rows=120)  # 17 blocks: a tree of two levels
    here = LocalEngine(2).reduce(moments, source, operator.add)
    pca_here = pca_bytes(None, tmp_path, source)
    assert pca_bytes(None, tmp_path, gnomon.source(X, rows=120)) == pca_here  # in memory
    for workers in (2, 4, 1):
        engine.client.cluster.scale(workers)
        wait_until(lambda count=workers: len(engine.client.nthreads()) == count)
        assert bits(engine.reduce(moments, source, operator.add)) == bits(here), workers
        assert pca_bytes(engine.client, tmp_path, source) == pca_here, workers
    engine.client.cluster.scale(2)
    wait_until(lambda: len(engine.client.nthreads()) == 2)


def test_rows_are_placed_and_pairs_are_joined_on_workers_with_the_bits_of_one_machine(
    engine, monkeypatch
):
    for name, few in (("START_STEPS", 2), ("STEPS", 4), ("WORTH_SAYING", 1.0)):
        monkeypatch.setattr(reweighted, name, few)
    X = table(rows=300)
    sampling = choose_sample(300, asked=100, budget=0, needed=float, seed=0)
    tsne = TSNE(perplexity=5, max_iter=20, n_jobs=1).fit(X[sampling.rows])
    ids = np.arange(300.0)
    left, right = (
        ArraySource(np.column_stack([ids[rows], Z[rows]]), rows=40, names=["id", *"abcdef"])
        for Z, rows in ((X, ids % 3 > 0), (X @ table(6, 6, seed=1), ids % 5 > 0))
    )
    in_order = ArraySource(X, rows=120), ArraySource(X + 0.1 * table(300, 6, seed=2), rows=40)
    places, maps = [], []
    for who in (LocalEngine(2), engine):
        found = place_source(tsne, sampling, ArraySource(X, rows=40), who)
        assert found.finished
        places.append(found.positions.tobytes() + found.unusual.tobytes() + found.trust.tobytes())
        model = Procrustes().fit(left, right, id="id", engine=who)
        maps.append(model.rotation_.tobytes() + model.translation_.tobytes())
        robust = Procrustes(robust="tukey").fit(*in_order, ids % 4, engine=who)
        maps[-1] += robust.residuals_.tobytes() + robust.weights_.tobytes()
        maps[-1] += robust.residuals(*in_order, engine=who).tobytes()
        maps[-1] += robust.transform(in_order[0], engine=who).tobytes()
    assert places[0] == places[1]
    assert maps[0] == maps[1]


def test_a_dask_array_is_reduced_where_its_chunks_are(engine):
    import dask.array as da

    X = table()
    found = PCA(2).fit(da.from_array(X, chunks=(100, 3)), engine=engine.client)
    here = PCA(2).fit(gnomon.source(X, rows=100))
    assert found.components_.tobytes() == here.components_.tobytes()


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_dask_array_that_a_cluster_holds_is_asked_of_it(engine, where):
    import dask.array as da

    X = table()
    held = engine.client.persist(da.from_array(X, chunks=(100, 2))) * 2
    found = PCA(2).fit(held, engine=engine.client if where == "there" else None)
    here = PCA(2).fit(gnomon.source(2 * X, rows=100))
    assert found.components_.tobytes() == here.components_.tobytes()


def test_results_come_in_order_with_what_stood_beside_them_and_progress_is_told(engine):
    source = ArraySource(table(), rows=50)
    weights = [float(i) for i in range(14)]
    told = []
    found = engine.map(_weighted, source, beside=weights, on=told.append)
    assert found == [(i, 50, float(i)) for i in range(14)]
    assert told == [Event("rows", done, 700) for done in range(50, 701, 50)]
    some = source.only(source.partitions[3:5])
    assert engine.map(_weighted, some, beside="ab") == [(3, 50, "a"), (4, 50, "b")]
    told.clear()
    engine.reduce(_rows, source, operator.add, on=told.append)
    assert told == [Event("rows", 700, 700)]  # fourteen partitions are one sum


def _weighted(block):
    return block.partition.index, len(block.X), block.beside


def _rows(block):
    return len(block.X)


def test_blas_runs_one_thread_in_tasks(engine):
    threads = engine.map(_blas_threads, ArraySource(table(), rows=350))
    assert threads == [[1], [1]]


def _blas_threads(block):
    from threadpoolctl import threadpool_info

    found = {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
    return sorted(found)


class Flaky(Source):
    """Reading partition 1 fails as often as there are files of this name missing."""

    def __init__(self, folder, failures):
        inner = ArraySource(table(), rows=100)
        super().__init__(6, np.dtype(float), inner.partitions)
        self.inner, self.folder, self.failures = inner, folder, failures

    def read(self, partition):
        if partition.index == 1:
            tried = len(os.listdir(self.folder))
            if tried < self.failures:
                (self.folder / str(tried)).touch()
                raise OSError("the drive is away")
        return self.inner.read(partition)


def test_what_fails_twice_is_done_the_third_time(engine, tmp_path):
    assert engine.map(_rows, Flaky(tmp_path, 2)) == [100] * 7


def test_a_partition_that_fails_three_times_is_named(engine, tmp_path):
    with pytest.raises(PartitionError, match=r"the array, rows 100 to 199 failed 3 times.*away"):
        engine.map(_rows, Flaky(tmp_path, 3))
    with pytest.raises(PartitionError, match=r"the array, rows 100 to 199 failed 3 times.*away"):
        engine.reduce(_rows, Flaky(tmp_path, 6), operator.add)


def test_a_table_that_changed_between_passes_is_found_on_the_workers(engine):
    X = table()
    source = ArraySource(X, rows=100)
    engine.map(_rows, source)
    assert set(source.seals) == set(range(7))
    X[345, 2] += 1
    with pytest.raises(ChangedSourceError, match="the array, rows 300 to 399 changed"):
        engine.reduce(_rows, source, operator.add)
    with pytest.raises(ChangedSourceError, match="rows 300 to 399"):
        engine.map(_rows, source)


def test_a_source_without_rows_is_refused(engine):
    with pytest.raises(DataError, match="no rows"):
        engine.reduce(_rows, ArraySource(np.empty((0, 3))), operator.add)
    assert engine.map(_rows, ArraySource(np.empty((0, 3)))) == []


def test_what_cannot_be_run_there_says_so(engine):
    with pytest.raises(ClusterError, match=r"could not do the work.*no such module there"):
        engine.map(_UNPICKLABLE, ArraySource(table()))


class _Unpicklable:
    def __call__(self, block):
        return 0

    def __reduce__(self):
        return _fail, ()


def _fail():
    raise ModuleNotFoundError("no such module there")


_UNPICKLABLE = _Unpicklable()


def test_only_the_loopback_interface_is_listened_on(engine):
    import psutil

    me = psutil.Process()
    found = []
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has just ended
            found += [
                connection.laddr.ip
                for connection in process.net_connections()
                if connection.status == psutil.CONN_LISTEN
            ]
    assert len(found) >= 4  # scheduler, its dashboard, and the workers
    assert set(found) == {"127.0.0.1"}


def test_a_client_that_is_closed_meanwhile_is_an_error_and_no_hang(engine):
    from distributed import Client

    other = Client(engine.client.scheduler.address, set_as_default=False)
    with within(60), pytest.raises(ClusterError, match="The Dask client is clos"):
        DaskEngine(other).map(_rows, ArraySource(table(), rows=10), on=lambda _: other.close())
    with within(60), pytest.raises(ClusterError, match="The Dask client is closed"):
        DaskEngine(other).map(_rows, ArraySource(table()))


def test_a_client_is_an_engine_and_anything_else_is_refused(engine):
    assert isinstance(as_engine(engine.client), DaskEngine)
    assert as_engine(engine) is engine
    assert isinstance(as_engine(None), LocalEngine)
    with pytest.raises(ParameterError, match="`workers` must be an integer ≥ 1; got 0"):
        local_cluster(0).__enter__()


def test_no_scheduler_at_the_address_is_a_sentence(monkeypatch):
    monkeypatch.setattr("gnomon.engine.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at '127\.0\.0\.1:9'"):
        connected("127.0.0.1:9").__enter__()


@pytest.mark.parametrize(
    ("address", "why"), [("scheduler", "missing port"), ("http://127.0.0.1:9", "unknown address")]
)
def test_what_is_no_address_is_said_before_there_is_a_client(address, why, monkeypatch):
    monkeypatch.setattr("distributed.Client", None)  # which would be in the way for 20 s
    with pytest.raises(ClusterError, match=rf"answers at '{address}' \({why}"):
        connected(address).__enter__()


def test_without_dask_the_error_says_how_to_install_it():
    code = (
        "import sys\n"
        "sys.modules['distributed'] = None\n"
        "import gnomon, gnomon.engine, gnomon.engine.cluster\n"
        "from gnomon.errors import UnavailableError\n"
        "assert 'dask' not in sys.modules\n"
        "try:\n    gnomon.engine.cluster.local_cluster(2).__enter__()\n"
        "except UnavailableError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip().endswith("Install it: pip install 'gnomon[dask]'."), done.stderr
