import _thread
import gc
import inspect
import logging
import multiprocessing
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from references.tables import read
from sklearn import manifold
from sklearn.base import clone
from tsne.problems import COPIES, MASS, ROWS, WEIGHTS, affinities

from gnomon import TSNE, samples
from gnomon.errors import (
    DataWarning,
    GnomonError,
    NotConvergedWarning,
    TooLargeError,
    UnavailableError,
)
from gnomon.models import load, save
from gnomon.tsne import connect, convolve
from gnomon.tsne import estimator as module
from gnomon.tsne.forces import OverMesh, make_forces
from gnomon.tsne.reference import kl_divergence, row_costs

DIGITS = samples.load("digits").X
IRIS = samples.load("iris").X
X = DIGITS[:150]
# One thread: waking others costs more than such small maps.
SHORT = {"perplexity": 10, "max_iter": 40, "n_jobs": 1}
rng = np.random.default_rng(0)


def fit(X=X, **options):
    return TSNE(**{**SHORT, **options}).fit(X)


class Listener:
    """Writes down what it is told of every iteration; asks to stop, or fails, at the one given."""

    def __init__(self, stop_at=None, fail_at=None, error=ArithmeticError):
        self.stop_at, self.fail_at, self.error = stop_at, fail_at, error
        self.told, self.totals = [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        if context.task_name != "iteration":
            self.totals.append(context.max_subtasks)

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        if context.task_name != "iteration":
            return False
        self.told.append(metadata)
        if metadata["iteration"] == self.fail_at:
            raise self.error("on purpose")
        return metadata["iteration"] == self.stop_at


# --- what a fit gives ---------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 2.0])
def test_a_map_is_finite_and_says_its_own_kl(dimensions, dof):
    model = fit(n_components=dimensions, dof=dof, max_iter=300)
    Y = model.embedding_
    assert Y.shape == (150, dimensions)
    assert Y.dtype == np.float32
    assert np.isfinite(Y).all()
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-4)
    # Z is corrected on all 150 points, so what is left is float32
    assert abs(model.kl_divergence_ - kl_divergence(model.affinities_, Y, dof)) < 1e-4
    assert 0 < model.kl_divergence_ < 1.2
    assert model.n_iter_ == 300
    assert model.stop_reason_ == "reached max_iter"


@pytest.mark.parametrize("affinity", ["gaussian", "uniform", "multiscale"])
def test_p_is_symmetric_and_sums_to_one(affinity):
    P = fit(affinity=affinity, perplexity=[5, 20] if affinity == "multiscale" else 10).affinities_
    assert abs(P - P.T).max() == 0
    assert abs(P.data.astype(float).sum() - 1) < 1e-6


def test_kl_over_the_mesh_is_the_exact_one():
    model = TSNE(max_iter=300, method="mesh").fit(DIGITS[:1200])
    assert "mesh of" in model.certificate_.repulsion
    assert model.certificate_.force_error < 0.035
    exact = kl_divergence(model.affinities_, model.embedding_)
    # Z is corrected by its ratio on 256 of 1,200 points
    assert abs(model.kl_divergence_ - exact) < 1e-3


@pytest.mark.parametrize("tolerance", [0.1, 0.01])
@pytest.mark.parametrize("dof", [0.3, 1.0])
def test_the_force_error_stays_below_its_tolerance(tolerance, dof):
    model = fit(DIGITS[:600], method="mesh", dof=dof, force_tol=tolerance, max_iter=300)
    assert model.certificate_.force_error < tolerance
    assert not model.certificate_.coarsened


def test_the_exact_method_is_float64_over_all_pairs():
    model = fit(IRIS, method="exact", max_iter=300)
    assert model.embedding_.dtype == np.float64
    assert model.certificate_.repulsion == "sum over all pairs, float64"
    assert model.certificate_.force_error < 1e-12
    assert abs(model.kl_divergence_ - kl_divergence(model.affinities_, model.embedding_)) < 1e-6
    assert model.affinities_.nnz == 150 * 149


def test_affinities_agree_with_rtsne():
    """KL of R's map and each row's share of it, with our P of its data."""
    table = read("iris")[2][:, :4].astype(float)
    table = table[np.sort(np.unique(table, axis=0, return_index=True)[1])]
    model = TSNE(perplexity=30, method="exact", max_iter=1).fit(table)
    Y = read("rtsne_iris_unique_p30_theta0_Y")[2]
    final = read("rtsne_iris_unique_p30_theta0_itercosts")[2][-1, 0]
    costs = read("rtsne_iris_unique_p30_theta0_pointcosts")[2][:, 0]
    assert abs(kl_divergence(model.affinities_, Y) / final - 1) < 1e-4
    np.testing.assert_allclose(row_costs(model.affinities_, Y), costs, atol=1e-6)


def test_a_run_from_rtsnes_start_ends_as_low():
    """Two exact programs end up to 7.5 % apart from one start."""
    table = read("iris")[2][:, :4].astype(float)
    table = table[np.sort(np.unique(table, axis=0, return_index=True)[1])]
    start = read("rtsne_iris_unique_p30_theta0_Yinit")[2]
    model = TSNE(perplexity=30, method="exact", init=start).fit(table)
    final = read("rtsne_iris_unique_p30_theta0_itercosts")[2][-1, 0]
    assert model.kl_divergence_ < 1.075 * final


def test_every_copy_of_a_row_lands_in_the_same_place():
    """Ten copies of six points, within a thousandth of the map; some copies, within a hundredth.

    Copies have the same neighbours but for who is in whose list, and lists end somewhere.
    """
    six = np.repeat(rng.standard_normal((6, 4)), 10, axis=0)
    for method in ("auto", "exact"):
        model = fit(six, max_iter=500, method=method)
        groups = model.embedding_.reshape(6, 10, 2)
        span = np.ptp(model.embedding_)
        assert np.linalg.norm(groups - groups[:, :1], axis=2).max() < 2e-3 * span
        assert 0 <= model.kl_divergence_ < 0.01
    Y = TSNE(max_iter=500).fit(np.vstack([DIGITS[:300], DIGITS[:100]])).embedding_
    assert np.linalg.norm(Y[:100] - Y[300:], axis=1).max() < 1e-2 * np.ptp(Y)


@pytest.mark.parametrize("power", [-664, -1, 8, 664])
def test_a_power_of_two_does_not_change_the_bits_of_the_map(power):
    assert np.array_equal(fit(np.ldexp(X, power)).embedding_, fit().embedding_)


def test_a_turned_and_shifted_table_has_the_same_affinities():
    """Rows of digits have no ties, up to noise."""
    table = X + 0.01 * rng.standard_normal(X.shape)
    turn = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    P, Q = fit(table).affinities_, fit(3 * table @ turn + 100).affinities_
    assert abs(P - Q).max() < 1e-8  # float32, of numbers up to 1e-3


# --- the same bits ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits_map():
    return TSNE(max_iter=260, n_jobs=1).fit(DIGITS).embedding_.tobytes()


@pytest.mark.parametrize("n_jobs", [2, 4, None])
def test_threads_do_not_change_the_bits(digits_map, n_jobs):
    assert TSNE(max_iter=260, n_jobs=n_jobs).fit(DIGITS).embedding_.tobytes() == digits_map


def read_only(X):
    copy = X.copy()
    copy.flags.writeable = False
    return copy


STORED = {
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("stored", STORED)
def test_how_a_table_is_stored_does_not_change_the_bits(digits_map, stored):
    table = STORED[stored](DIGITS)
    assert TSNE(max_iter=260).fit(table).embedding_.tobytes() == digits_map


@pytest.fixture(scope="module")
def many_rows():
    places = rng.standard_normal((20, 5)) * 5
    return places[rng.integers(0, 20, 20_000)] + rng.standard_normal((20_000, 5))


def test_twenty_thousand_rows_have_the_same_bits_for_any_threads_and_storage(many_rows):
    """Found by inverted lists, moved over a mesh, looked at three times, and cooled."""
    model = fit(many_rows, max_iter=125, n_jobs=1)
    assert "inverted lists" in model.certificate_.neighbors
    assert "mesh" in model.certificate_.repulsion
    expected = model.embedding_.tobytes()
    for n_jobs, stored in [(2, "read-only"), (4, "Fortran order"), (2, "strided")]:
        again = fit(STORED[stored](many_rows), max_iter=125, n_jobs=n_jobs)
        assert again.embedding_.tobytes() == expected
        assert again.kl_divergence_ == model.kl_divergence_
        new = many_rows[:30] + 0.1
        assert again.transform(new).tobytes() == model.transform(new).tobytes()


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_a_seed_gives_the_same_bits_every_time(seed):
    one, two = (fit(init="random", random_state=seed).embedding_ for _ in range(2))
    assert np.array_equal(one, two)
    assert np.array_equal(one, fit(init="random").embedding_) == (seed != 7)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_fitting_again_forgets_the_former_fit(dimensions):
    """Also the meshes, whose sizes show in the last bits."""
    options = {"n_components": dimensions, "max_iter": 60, "method": "mesh"}
    used = fit(DIGITS[:400], method="mesh", max_iter=300).set_params(**options)
    assert np.array_equal(used.fit(X).embedding_, fit(**options).embedding_)


def test_two_fits_at_once_do_not_disturb_each_other():
    tables = [DIGITS[:300], DIGITS[300:600], DIGITS[600:900], DIGITS[900:1200]]
    expected = [fit(table).embedding_ for table in tables]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda table: fit(table).embedding_, tables))
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def fit_in_child(queue):
    queue.put((fit().embedding_, fit().transform(X[:20] + 0.1)))


# Python warns of every fork of a process with threads; that it is safe here is what is tested.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gives_the_same_bits():
    model = fit()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_in_child, args=(queue,))
    child.start()
    positions, placed = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    assert np.array_equal(positions, model.embedding_)
    assert np.array_equal(placed, model.transform(X[:20] + 0.1))


# --- going on -----------------------------------------------------------------------------------


KINDS = {
    "pairs": {},
    "mesh": {"method": "mesh"},
    "exact": {"method": "exact"},
    "weights": {},
    "1-D": {"n_components": 1},
    "3-D": {"n_components": 3},
    "heavy tails": {"dof": 0.5},
    "late exaggeration": {"exaggeration": 2.0},
}


class Kind:
    """One of the ways that forces are computed."""

    def __init__(self, name):
        self.options = {"perplexity": 10, "n_jobs": 1, **KINDS[name]}
        self.weights = 1.0 + np.arange(150) % 3 if name == "weights" else None

    def fit(self, listener=None, **more):
        model = TSNE(**self.options, **more)
        if listener is not None:
            model.set_callbacks(listener)
        return model.fit(X, sample_weight=self.weights)


@pytest.fixture(params=KINDS)
def kind(request):
    return Kind(request.param)


def same(one, other):
    assert one.n_iter_ == other.n_iter_
    assert np.array_equal(one.embedding_, other.embedding_)
    assert one.kl_divergence_ == other.kl_divergence_
    assert one.stop_reason_ == other.stop_reason_
    assert str(one.certificate_) == str(other.certificate_)


def test_a_resumed_run_has_the_bits_of_a_whole_one(kind):
    whole = kind.fit(max_iter=320)
    same(kind.fit(max_iter=120).resume(200), whole)
    same(kind.fit(max_iter=249).resume(1).resume(1).resume(69), whole)


def test_a_warm_start_goes_on_to_max_iter_in_all(kind):
    model = kind.fit(max_iter=120, warm_start=True)
    model.set_params(max_iter=270, n_jobs=2).fit(X, sample_weight=kind.weights)
    same(model, kind.fit(max_iter=270))


def test_a_run_survives_a_pickle(kind):
    model = pickle.loads(pickle.dumps(kind.fit(max_iter=110)))
    same(model.resume(50), kind.fit(max_iter=160))
    new = X[:20] + 0.1
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(new), model.transform(new))


def test_a_run_stopped_by_a_callback_goes_on_as_if_it_had_not_been(kind):
    model = kind.fit(Listener(stop_at=77), max_iter=160)
    assert model.n_iter_ == 77
    assert model.stop_reason_ == "a callback asked to stop"
    model.set_callbacks()
    same(model.resume(83), kind.fit(max_iter=160))


@pytest.mark.parametrize("call", [1, 101, 255, 275])
def test_ctrl_c_keeps_the_map_so_far_and_the_run_goes_on(kind, monkeypatch, call):
    """In the middle of an iteration: of those that renumber the points first, and in cooling."""
    whole = kind.fit(max_iter=280)
    forces = type(make_forces(whole))
    at, calls = forces.at, [0]

    def interrupted(self, *arguments):
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return at(self, *arguments)

    monkeypatch.setattr(forces, "at", interrupted)
    model = kind.fit(max_iter=280)
    assert model.stop_reason_ == "interrupted"
    assert model.certificate_.stop_reason == "interrupted"
    assert model.n_iter_ == call - 1
    assert np.isfinite(model.embedding_).all()
    same(model.resume(280 - model.n_iter_), whole)


def test_ctrl_c_while_a_mesh_grows_leaves_no_half_of_it(monkeypatch):
    whole = fit(max_iter=120, method="mesh")
    green, calls = convolve._green, [0]

    def interrupted(*arguments):
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return green(*arguments)

    monkeypatch.setattr(convolve, "_green", interrupted)
    model = fit(max_iter=120, method="mesh")
    assert model.stop_reason_ == "interrupted"
    assert 0 < model.n_iter_ < 120
    same(model.resume(120 - model.n_iter_), whole)


def test_ctrl_c_stops_a_fit_soon():
    """A real one, from outside, once the descent has begun."""
    seen, at = [], []

    class Interrupter(Listener):
        def on_fit_task_end(self, estimator, context, *, metadata=None):
            if metadata and "iteration" in metadata:
                seen.append(metadata["iteration"])
                if metadata["iteration"] == 30:
                    threading.Timer(0.05, send).start()
            return False

    def send():
        at.append(seen[-1])
        _thread.interrupt_main()

    # No rule ends a run before its last exaggeration: it cannot be over before Ctrl-C comes.
    endless = TSNE(max_iter=100_000, exaggeration=[(100_000, 4.0), (1, 1.0)])
    model = endless.set_callbacks(Interrupter())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored
    gc.disable()  # Hypothesis listens to it, and Python ignores what is raised in there
    try:
        model.fit(DIGITS[:1000])
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)
    assert model.stop_reason_ == "interrupted"
    assert at[0] <= model.n_iter_ < at[0] + 1000  # as far as threads may be apart
    assert np.isfinite(model.embedding_).all()


def test_ctrl_c_before_the_descent_passes(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(connect, "joint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit()


def test_a_failed_run_can_be_resumed_from_where_the_last_good_one_ended():
    """What failed may have gone on for a while in the arrays of the state before."""
    whole = fit(max_iter=160)
    model = fit(max_iter=60)
    kept = model.embedding_.copy()
    model.set_callbacks(Listener(fail_at=90))
    with pytest.raises(ArithmeticError, match="on purpose"):
        model.resume(100)
    assert np.array_equal(model.embedding_, kept)
    model.set_callbacks()
    same(model.resume(100), whole)


@pytest.mark.filterwarnings("ignore:.warm_start. begins a new map. X")
def test_a_warm_start_after_a_failed_fit_begins_anew(monkeypatch):
    """Not from the state of other data."""
    model = fit(DIGITS[150:300], warm_start=True)

    def fail(*arguments, **options):
        raise MemoryError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(connect, "joint", fail)
        with pytest.raises(MemoryError, match="on purpose"):
            model.fit(X)
    with pytest.warns(DataWarning, match="begins a new map: the former fit"):
        same(model.fit(X), fit())


@pytest.mark.filterwarnings("ignore:.warm_start. begins a new map. X")
def test_a_warm_start_after_a_run_that_failed_begins_where_it_began():
    """Also where an older run of other data had come to its end."""
    some = rng.standard_normal((60, 5))
    model = fit(some, affinity="uniform", max_iter=3000, warm_start=True)
    assert model.stop_reason_.startswith("converged")
    model.set_callbacks(Listener(fail_at=20)).set_params(max_iter=40)
    with pytest.raises(ArithmeticError, match="on purpose"):
        model.fit(X)
    model.set_callbacks()
    same(model.fit(X), fit(affinity="uniform"))


def test_a_warm_start_after_ctrl_c_while_a_run_that_had_ended_cooled_only_cools(monkeypatch):
    whole = fit(max_iter=1000)
    assert whole.stop_reason_.startswith("converged")
    stop_at = whole.n_iter_ - 5
    model = TSNE(**{**SHORT, "max_iter": 1000, "warm_start": True})
    model.set_callbacks(Listener(stop_at=stop_at)).fit(X)
    assert model.n_iter_ == stop_at
    model.set_callbacks()
    same(model.fit(X), whole)


def test_a_warm_start_does_not_go_on_with_a_run_that_came_to_its_end():
    """So that fitting twice is fitting once."""
    some = rng.standard_normal((60, 5))
    model = fit(some, affinity="uniform", max_iter=3000, warm_start=True)
    ended = model.n_iter_
    assert model.fit(some).n_iter_ == ended < 3000


@pytest.mark.parametrize(
    "changed", [{"dof": 2.0}, {"perplexity": 11}, {"random_state": 3}, {"early_exaggeration": 4.0}]
)
def test_a_warm_start_with_other_data_or_parameters_begins_anew(changed):
    model = fit(warm_start=True)
    with pytest.warns(DataWarning, match=f"begins a new map: `{next(iter(changed))}` changed"):
        model.set_params(**changed).fit(X)
    same(model, fit(**changed))
    other = DIGITS[150:300]
    with pytest.warns(DataWarning, match="begins a new map: X or its weights are not those"):
        model.fit(other)
    same(model, fit(other, **changed))
    with pytest.warns(DataWarning, match="begins a new map: X or its weights are not those"):
        model.fit(other, sample_weight=np.arange(1, 151))
    with pytest.warns(DataWarning, match="begins a new map: the former fit was made without it"):
        fit().set_params(warm_start=True).fit(X)


FORMER, OTHER_FORMER = (fit(DIGITS[at : at + 150]) for at in (100, 120))
OTHERS = {
    "n_components": 3,
    "perplexity": 11.0,
    "affinity": "uniform",
    "n_neighbors": 40,
    "recall": 1.0,
    "metric": "cosine",
    "metric_params": {"p": 3},
    "pca": 5,
    "init": "random",
    "dof": 2.0,
    "early_exaggeration": 4.0,
    "exaggeration": 2.0,
    "momentum": 0.7,
    "learning_rate": 50.0,
    "quality": "best",
    "n_iter_without_progress": 50,
    "min_grad_norm": 1e-5,
    "method": "mesh",
    "force_tol": 0.01,
    "align_to": FORMER,
    "random_state": 3,
}
MAY_CHANGE = {"max_iter": 500, "verbose": 1, "n_jobs": 2, "warm_start": True, "angle": 0.3}


def test_every_parameter_may_change_or_may_not():
    assert {*OTHERS, *MAY_CHANGE} == TSNE().get_params().keys()


@pytest.mark.parametrize("name", OTHERS)
def test_a_run_is_neither_continued_nor_saved_with_another_parameter(name, tmp_path):
    model = fit().set_params(**{name: OTHERS[name]})
    before = model.embedding_
    with pytest.raises(ValueError, match=f"`{name}` must be what it was in the fit"):
        model.resume(5)
    with pytest.raises(ValueError, match=f"`{name}` must be that of the map to be saved"):
        save(model, tmp_path / "map.gnomon")
    assert model.embedding_ is before
    former = fit().get_params()[name]
    same(model.set_params(**{name: former}).resume(5), fit().resume(5))


@pytest.mark.parametrize("name", sorted({*OTHERS} - {"metric_params"}))  # needs another metric
def test_a_warm_start_with_another_parameter_says_so(name):
    model = fit(warm_start=True).set_params(**{name: OTHERS[name]})
    with pytest.warns(DataWarning, match=f"begins a new map: `{name}` changed") as caught:
        model.fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", MAY_CHANGE)
def test_how_long_and_how_a_run_is_done_may_change(name):
    same(fit().set_params(**{name: MAY_CHANGE[name]}).resume(5), fit().resume(5))


@pytest.mark.parametrize("name", ["align_to", "init"])
def test_one_former_map_is_not_another_of_the_same_parameters(name):
    """They look alike in text."""
    model = fit(**{name: FORMER}, warm_start=True).set_params(**{name: OTHER_FORMER})
    with pytest.raises(ValueError, match=f"`{name}` must be what it was"):
        model.resume(5)
    with pytest.warns(DataWarning, match=f"`{name}` changed"):
        model.fit(X)


def test_a_loaded_run_is_continued_with_its_own_parameters_only(tmp_path):
    save(fit(init=FORMER, pca=5), tmp_path / "map.gnomon")
    same(load(tmp_path / "map.gnomon").resume(5), fit(init=FORMER, pca=5).resume(5))
    with pytest.raises(ValueError, match="`dof` must be what it was"):
        load(tmp_path / "map.gnomon").set_params(dof=2.0).resume(5)


def test_a_run_is_not_continued_after_a_fit_that_failed(monkeypatch):
    """P would be of one table and the positions of another."""
    model = fit(DIGITS[150:300])
    with monkeypatch.context() as patch:
        patch.setattr(module, "begin", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.fit(X)
    with pytest.raises(UnavailableError, match="left nothing to go on from"):
        model.resume(5)


def test_a_warm_start_that_has_nothing_left_to_do_changes_nothing():
    model = fit(warm_start=True)
    before = model.embedding_
    assert np.array_equal(model.fit(X).embedding_, before)
    assert model.n_iter_ == 40


@pytest.mark.parametrize("extra", [0, -1, 1.5, "3", True])
def test_a_wrong_number_of_extra_iterations_is_refused(extra):
    with pytest.raises((ValueError, TypeError), match="`extra_iter` must be an integer ≥ 1"):
        fit().resume(extra)


# --- stopping -----------------------------------------------------------------------------------


ASTRAY = {"learning_rate": 1e5, "n_jobs": 1}
NOISE = np.random.default_rng(0).standard_normal((150, 20))


@pytest.mark.parametrize("method", ["auto", "exact", "mesh"])
def test_a_run_that_ends_far_above_its_best_look_warns(method):
    with pytest.warns(NotConvergedWarning, match="above its least.*Lower `learning_rate`") as said:
        TSNE(**ASTRAY, method=method).fit(NOISE)
    assert len(said) == 1
    TSNE(n_jobs=1, method=method).fit(NOISE)  # warnings are errors


def test_runs_that_are_continued_or_cut_short_warn_alike():
    whole = TSNE(**ASTRAY, max_iter=300)
    with pytest.warns(NotConvergedWarning):
        whole.fit(NOISE)
    with pytest.warns(NotConvergedWarning):
        whole.resume(20)
    stopped = TSNE(**ASTRAY).set_callbacks(Listener(stop_at=300))
    with pytest.warns(NotConvergedWarning):
        stopped.fit(NOISE)
    assert stopped.stop_reason_ == "a callback asked to stop"
    interrupted = TSNE(**ASTRAY).set_callbacks(Listener(fail_at=300, error=KeyboardInterrupt))
    with pytest.warns(NotConvergedWarning):
        interrupted.fit(NOISE)
    assert interrupted.stop_reason_ == "interrupted"


def test_every_stop_rule_fires_on_some_data():
    some = rng.standard_normal((60, 5))
    converged = fit(some, affinity="uniform", max_iter=3000)
    assert converged.stop_reason_.startswith("converged")
    with pytest.warns(NotConvergedWarning, match="KL ended at .* above its least"):
        wild = fit(some, learning_rate=1e4, n_iter_without_progress=50, max_iter=3000)
    assert wild.stop_reason_.startswith("no progress of KL")
    # every row is everyone's neighbour alike: all move into one place
    flat = fit(some, perplexity=59, max_iter=3000)
    assert flat.stop_reason_.startswith("gradient below")
    assert fit(some).stop_reason_ == "reached max_iter"
    for model in (converged, wild, flat):
        assert 300 < model.n_iter_ < 3000
        assert model.certificate_.stop_reason == model.stop_reason_


def test_a_stopped_run_can_go_on():
    some = rng.standard_normal((60, 5))
    model = fit(some, affinity="uniform", max_iter=3000)
    stopped = model.n_iter_
    assert stopped < model.resume(30).n_iter_ == stopped + 30


def test_callbacks_get_iteration_kl_and_seconds_left():
    listener = Listener()
    model = TSNE(**SHORT).set_params(max_iter=60).set_callbacks(listener).fit(X)
    assert [told["iteration"] for told in listener.told] == list(range(1, 61))
    assert listener.told[0]["kl"] == np.inf
    assert 0 < listener.told[-1]["kl"] < np.inf
    left = [told["seconds_left"] for told in listener.told]
    assert all(seconds >= 0 for seconds in left)
    assert left[-1] == 0
    assert listener.totals == [60]
    listener.told.clear()
    model.resume(5)
    assert listener.totals == [60, 5]
    assert [told["iteration"] for told in listener.told] == list(range(61, 66))


# --- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("affinity", ["gaussian", "uniform"])
def test_weights_are_numbers_of_copies(method, affinity):
    """Of P; Z, gradient and KL at given places are held in `test_forces.py`."""
    options = {"method": method, "affinity": affinity, "max_iter": 5}
    if affinity == "uniform":
        options["n_neighbors"] = 20
    light = TSNE(perplexity=12, **options).fit(ROWS, sample_weight=WEIGHTS).affinities_
    full = TSNE(perplexity=12, **options).fit(ROWS[COPIES]).affinities_
    together = np.zeros((40, 40))
    np.add.at(together, (COPIES[:, None], COPIES[None]), full.toarray())
    np.testing.assert_allclose(light.toarray(), together, atol=1e-8)  # float32


def test_with_weights_every_copy_is_a_neighbour_in_the_exact_method():
    model = TSNE(perplexity=12, method="exact", max_iter=1).fit(ROWS, sample_weight=WEIGHTS)
    expected = affinities("gaussian", ROWS, WEIGHTS).toarray()
    assert np.array_equal(model.affinities_.toarray(), expected)


def test_the_perplexity_counts_copies():
    """60 neighbours of 40 rows, which stand for more."""
    assert TSNE(perplexity=60, max_iter=5).fit(ROWS, sample_weight=WEIGHTS).n_iter_ == 5
    with pytest.raises(
        ValueError, match=f"from 1 to {MASS - 1}, one less than the rows; got {MASS}"
    ):
        TSNE(perplexity=MASS, max_iter=5).fit(ROWS, sample_weight=WEIGHTS)


def test_the_largest_step_is_twice_the_sum_of_weights_over_the_exaggeration():
    model = TSNE(perplexity=12, max_iter=5)
    assert model.fit(ROWS).learning_rate_ == pytest.approx(80 / 12)
    assert model.fit(ROWS, sample_weight=WEIGHTS).learning_rate_ == pytest.approx(2 * MASS / 12)
    assert TSNE(perplexity=12, max_iter=260).fit(ROWS).learning_rate_ == 80
    assert TSNE(perplexity=12, max_iter=5, learning_rate=3.0).fit(ROWS).learning_rate_ == 3.0


def test_weights_of_one_are_no_weights():
    weighted = TSNE(**SHORT).fit(X, sample_weight=np.ones(150))
    assert np.array_equal(weighted.embedding_, fit().embedding_)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.full(150, 0.5), r"be 0, or 1 or more.*; got 0\.5\. It stands at position 0\. Divide"),
        (np.r_[np.ones(149), 0.1], r"be 0, or 1 or more.*; got 0\.1\. It stands at position 149"),
        (np.r_[np.ones(2), np.zeros(148)], "be above zero for at least 3 rows; got 2"),
        (-np.ones(150), "finite, non-negative numbers"),
        (np.full(150, np.nan), "finite, non-negative numbers"),
        (np.full(150, 1e20), r"be at most 1e\+15 copies in all; got 1\.5e\+22\. Divide"),
        (np.ones(149), r"got 'shape \(149,\)'"),
    ],
)
def test_weights_that_are_no_numbers_of_copies_are_refused(weights, says):
    with pytest.raises(ValueError, match=says):
        TSNE(**SHORT).fit(X, sample_weight=weights)


def test_precomputed_affinities_take_no_weights():
    W = np.ones((9, 9))
    with pytest.raises(ValueError, match="`sample_weight` must be None for precomputed"):
        TSNE(affinity="precomputed", init="random").fit(W, sample_weight=np.full(9, 2.0))


# --- input --------------------------------------------------------------------------------------


def test_given_distances_and_graphs_make_the_same_affinities():
    away = np.linalg.norm(IRIS[:, None] - IRIS[None], axis=2)
    options = {"perplexity": 10, "max_iter": 5, "init": "random"}
    table = TSNE(**options).fit(IRIS).affinities_
    dense = TSNE(metric="precomputed", **options).fit(away).affinities_
    # iris has equal distances up to the last digit, and lists end among them
    assert abs(table - dense).max() < 1e-4
    assert np.mean(abs(table - dense).toarray() > 1e-9) < 0.01
    keep = np.argsort(away, axis=1)[:, :40]
    rows = np.repeat(np.arange(150), 40)
    graph = sp.csr_array((away[rows, keep.ravel()], (rows, keep.ravel())), shape=(150, 150))
    sparse = TSNE(metric="precomputed", **options).fit(graph).affinities_
    assert abs(sparse - dense).max() < 1e-8


def test_given_affinities_are_used_as_they_are():
    P = fit().affinities_
    model = fit(P, affinity="precomputed", init="random")
    assert abs(model.affinities_ - P).max() < 1e-9
    assert model.certificate_.neighbors == "affinities that were given"


@pytest.mark.parametrize("what", [{"metric": "precomputed"}, {"affinity": "precomputed"}])
def test_precomputed_input_must_be_square(what):
    with pytest.raises(ValueError, match=r"square for precomputed input; got 'shape \(150, 64\)'"):
        fit(init="random", **what)


def test_wide_and_sparse_tables_go_through_pca_and_say_so():
    wide = np.hstack([DIGITS, DIGITS[:, ::-1] ** 2])[:200]
    model = fit(wide)
    assert "128 columns to 50 by PCA" in model.certificate_.reduced
    assert "128 columns to 50 by PCA" in str(model.certificate_)
    assert fit(wide, pca=None).pca_ is None
    assert fit(wide, pca=None).certificate_.reduced == ""
    assert "64 columns to 50 by PCA" in fit(sp.csr_array(X)).certificate_.reduced
    assert fit(metric="cosine").pca_ is None


def test_the_cosine_of_rows_is_its_angle():
    lengths = rng.uniform(0.1, 10, (150, 1))
    P, Q = fit(metric="cosine").affinities_, fit(X * lengths, metric="cosine").affinities_
    assert abs(P - Q).max() < 1e-7


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_rows_than_three_are_no_map(n):
    word = "sample'" if n == 1 else "samples'"
    with pytest.raises(ValueError, match=f"at least 3 rows for a map; got '{n} {word}. Add rows"):
        fit(X[:n])


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_very_few_rows_make_a_map(n, method):
    model = fit(X[:n], perplexity=1.5, method=method, max_iter=300)
    assert np.isfinite(model.embedding_).all()
    assert model.transform(X[:2]).shape == (2, 2)


@pytest.mark.filterwarnings("ignore:KL ended at")  # points on a line pass each other
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_one_column_makes_a_map_of_any_dimension(dimensions):
    model = fit(X[:, 20:21] + rng.standard_normal((150, 1)), n_components=dimensions, max_iter=300)
    assert (model.embedding_.std(axis=0) > 1e-3).all()


# PCA, which reduces the wide one, has its own word for it
@pytest.mark.filterwarnings("ignore:All rows are the same")
def test_rows_all_alike_are_refused_however_wide_the_table():
    for table in (np.full((40, 5), 0.1), np.full((40, 150), 0.1)):
        with pytest.raises(ValueError, match="All rows are identical"):
            fit(table)


# name, value, error, what its sentence must say
WRONG = [
    *(
        ("n_components", value, error, "an integer from 1 to 3")
        for value, error in [
            (0, ValueError),
            (True, TypeError),
            (2.0, TypeError),
            ("2", TypeError),
            (float("nan"), TypeError),
            (-1, ValueError),
            (4, ValueError),
        ]
    ),
    *(
        ("perplexity", value, error, "from 1 to .*149")
        for value, error in [
            (150, ValueError),
            (0, ValueError),
            (-1, ValueError),
            (float("nan"), ValueError),
            ("30", TypeError),
            (None, TypeError),
        ]
    ),
    ("affinity", "round", ValueError, "be one of 'gaussian'"),
    ("method", "fast", ValueError, "be one of 'auto'"),
    ("recall", 1.5, ValueError, "from 0 to 1"),
    ("dof", 0, ValueError, "from 0.001 to 10000"),
    ("dof", np.inf, ValueError, "from 0.001 to 10000"),
    ("early_exaggeration", 0.5, ValueError, "from 1 to"),
    ("early_exaggeration", np.inf, ValueError, "from 1 to"),
    ("exaggeration", 0, ValueError, "above 0"),
    ("learning_rate", 0, ValueError, "above 0"),
    ("learning_rate", 1e300, ValueError, r"below 1e\+30"),
    ("learning_rate", "fast", TypeError, "above 0"),
    ("max_iter", 0, ValueError, "≥ 1"),
    ("max_iter", 7.5, TypeError, "≥ 1"),
    ("n_iter_without_progress", 0, ValueError, "≥ 1"),
    ("min_grad_norm", -1.0, ValueError, "from 0"),
    ("angle", 2.0, ValueError, "from 0 to 1"),
    ("force_tol", 0, ValueError, "above 0"),
    ("force_tol", "small", TypeError, "above 0"),
    ("warm_start", "yes", ValueError, "be one of False, True"),
    ("init", "umap", ValueError, "be one of 'pca', 'spectral', 'random'"),
    ("init", np.zeros((150, 3)), ValueError, r"shape \(150, 2\)"),
    ("metric", 3, TypeError, "be the name of a metric"),
    ("metric", "furlongs", ValueError, "scikit-learn's metrics"),
    ("pca", "no", TypeError, "an integer from 1 to 64"),
    ("n_neighbors", 5, ValueError, "from 10 to 149"),
    ("random_state", "x", TypeError, "a non-negative integer"),
    ("n_jobs", 0, ValueError, "other than 0"),
    ("verbose", "x", TypeError, "≥ 0"),
    ("metric_params", {"p": 3}, ValueError, "be None for metric='euclidean'"),
]


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    WRONG,
    ids=[f"{name}-{value!r:.20}" for name, value, *_ in WRONG],
)
def test_a_wrong_parameter_is_named_with_its_range_and_value(name, value, error, says):
    with pytest.raises(error, match=rf"`{name}` must .*{says}.*; got ") as caught:
        fit(**{name: value})
    assert isinstance(caught.value, GnomonError)


def test_parameters_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="`n_neighbors` must be None for method='exact'"):
        fit(method="exact", n_neighbors=20)
    with pytest.raises(ValueError, match="`pca` must be 'auto' or None unless the metric is eucl"):
        fit(metric="cosine", pca=5)


def test_the_exact_method_is_refused_where_it_does_not_fit(monkeypatch):
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: 10_000)
    with pytest.raises(
        TooLargeError,
        match=r"method='exact' with all pairs of .* rows needs about .* Use method='auto'",
    ):
        fit(method="exact")
    assert fit().n_iter_ == 40


# --- the estimator ------------------------------------------------------------------------------


def test_every_parameter_of_scikit_learns_has_its_place():
    theirs = inspect.signature(manifold.TSNE).parameters
    ours = inspect.signature(TSNE).parameters
    assert set(theirs) <= set(ours)
    for name in set(theirs) - {"max_iter", "method"}:  # which are said to differ
        assert ours[name].default == theirs[name].default, name


def test_scikit_learns_own_words_are_understood(caplog):
    with caplog.at_level(logging.INFO, "gnomon"):
        model = fit(method="barnes_hut", angle=0.8)
    assert "means 'auto'" in caplog.text
    assert np.array_equal(model.embedding_, fit().embedding_)


def test_stages_are_timed_and_logged_for_those_who_ask_and_nothing_is_printed(capfd, caplog):
    with caplog.at_level(logging.INFO, "gnomon"):
        model = fit()
        assert caplog.text == ""
        fit(verbose=1)
    assert "t-SNE: neighbors took" in caplog.text
    assert {"pca", "neighbors", "affinities", "limits", "start", "descent", "certificate"} == set(
        model.timings_
    )
    assert all(seconds >= 0 for seconds in model.timings_.values())
    assert capfd.readouterr() == ("", "")


def test_columns_of_the_map_have_names():
    assert list(fit().get_feature_names_out()) == ["tsne0", "tsne1"]


def test_fit_transform_gives_the_positions():
    model = TSNE(**SHORT)
    assert model.fit_transform(X) is model.embedding_
    assert np.array_equal(clone(model).fit_transform(X), model.embedding_)


def test_a_former_map_is_a_start():
    former = fit()
    start = former.embedding_
    begun = fit(init=former, max_iter=1, learning_rate=1e-9).embedding_
    np.testing.assert_allclose(begun, start, atol=1e-6)
    assert np.array_equal(begun, fit(init=start, max_iter=1, learning_rate=1e-9).embedding_)


def test_the_certificate_says_how_the_neighbours_were_found():
    certificate = fit().certificate_
    assert certificate.neighbors == "exact search"
    assert certificate.recall > 0.999
    assert certificate.n_iter == 40
    assert str(certificate).startswith("Map with KL = ")
    manhattan = fit(metric="manhattan").certificate_
    assert manhattan.neighbors == "exact search (manhattan)"


@pytest.mark.filterwarnings("ignore:KL ended at")  # so coarse is it
def test_a_mesh_too_large_for_memory_is_said_to_be_coarser(monkeypatch):
    plain = OverMesh.__init__

    def small(self, *arguments, **options):
        plain(self, *arguments, **{**options, "most_nodes": 2000})

    monkeypatch.setattr(OverMesh, "__init__", small)
    model = fit(max_iter=300, method="mesh")
    assert model.certificate_.coarsened
    assert "coarser than requested" in str(model.certificate_)
