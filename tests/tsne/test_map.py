"""The model that places rows: what it holds, what it does not, and what workers get."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest

from gnomon import PCA, TSNE, source
from gnomon.engine import LocalEngine
from gnomon.tsne.sampled import choose_sample, place_source

RNG = np.random.default_rng(5)
X = 6 * RNG.integers(3, size=(400, 1)) + RNG.standard_normal((400, 6))
NEW = 6 * RNG.integers(3, size=(60, 1)) + RNG.standard_normal((60, 6))
OF_ROWS = ("positions", "distance_ratio", "residual", "reason", "neighbors")


@pytest.fixture(scope="module")
def tsne():
    return TSNE(max_iter=60, random_state=0, n_jobs=1).fit(X)


class Recording(LocalEngine):
    """Threads, and a note of what a worker elsewhere would get."""

    def write(self, function, table, add, **how):
        self.sent = pickle.dumps(function)
        super().write(function, table, add, **how)


def of_descent(tsne):
    """Bytes of P and of the run, as they would stand in a pickle."""
    return [tsne.affinities_.data.tobytes(), tsne._state.velocity.tobytes()]


def assert_same_places(a, b):
    for name in OF_ROWS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name


def test_a_map_holds_what_placing_needs_and_neither_p_nor_the_run(tsne):
    whole, model = pickle.dumps(tsne), pickle.dumps(tsne._model())
    assert all(part in whole for part in of_descent(tsne))
    assert not any(part in model for part in of_descent(tsne))
    assert b"TSNE" not in model
    assert len(model) < len(whole) / 10


def test_workers_get_the_map_alone(tsne):
    engine = Recording(2)
    tsne.place(source(NEW, rows=20), engine=engine)
    sampling = choose_sample(460, asked=400, budget=1e9, needed=lambda _: 0.0, seed=0)
    other = Recording(2)
    place_source(tsne, sampling, source(np.vstack([X, NEW]), rows=100), other)
    for sent in (engine.sent, other.sent):
        assert b"TSNE" not in sent
        assert not any(part in sent for part in of_descent(tsne))


def test_what_is_built_for_placing_stays_out_of_pickles(tsne):
    model = replace(tsne._model())  # nothing is built yet
    before, placed = len(pickle.dumps(model)), model.place(NEW)
    trust = model.trust(placed)
    assert {"placing_field", "plane"} <= vars(model).keys()
    assert len(pickle.dumps(model)) == before
    again = pickle.loads(pickle.dumps(model))
    assert_same_places(again.place(NEW), placed)
    assert np.array_equal(again.trust(placed), trust)


def test_a_map_is_frozen_and_a_run_that_goes_on_has_a_new_one():
    tsne = TSNE(max_iter=30, perplexity=10, random_state=0).fit(X[:120])
    model = tsne._model()
    places = model.transform(NEW)
    with pytest.raises(FrozenInstanceError):
        model.dof = 2.0
    tsne.resume(20)
    assert np.array_equal(model.transform(NEW), places)
    assert not np.array_equal(tsne.transform(NEW), places)


@pytest.mark.parametrize("whiten", [False, True])
def test_the_pca_that_was_given_reduces_new_rows(whiten):
    pca = PCA(3, whiten=whiten).fit(X)
    how = {"max_iter": 30, "perplexity": 10, "random_state": 0, "init": "random"}
    tsne = TSNE(pca=pca, **how).fit(X[:120])
    bare = TSNE(pca=None, **how).fit(pca.transform(X[:120]))
    assert np.array_equal(tsne.transform(NEW), bare.transform(pca.transform(NEW)))


def test_gaps_of_new_rows_are_filled_in_by_a_pca_that_fills_them():
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    pca = PCA(3, missing="em", random_state=0).fit(gaps)
    tsne = TSNE(pca=pca, max_iter=30, perplexity=10, random_state=0).fit(gaps[:120])
    new = NEW.copy()
    new[3, 1] = np.nan
    placed = tsne.place(new)
    assert np.isfinite(placed.positions).all()
    expected = np.sqrt(pca.prediction_error(new)) / tsne._novelty.residual_unit
    np.testing.assert_allclose(placed.residual, expected, rtol=1e-12)


def test_a_bad_value_of_a_table_that_is_reduced_is_named_by_its_column():
    frame = pd.DataFrame(X[:120], columns=list("abcdef"))
    tsne = TSNE(pca=3, max_iter=20, perplexity=10).fit(frame)
    frame.loc[3, "c"] = np.nan
    with pytest.raises(ValueError, match="row 3, column 'c'"):
        tsne.transform(frame)


def test_the_number_of_threads_is_an_argument_and_changes_no_bit(tsne):
    model = tsne._model()
    one = model.place(NEW, n_jobs=1)
    for threads in (2, 4):
        assert_same_places(model.place(NEW, n_jobs=threads), one)
