"""Rows of weight zero: left out of the fit, and placed on the map."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import gnomon
from gnomon import TSNE, samples
from gnomon.errors import ParameterError

X = samples.load("iris").X[::2]
LEFT_OUT = np.arange(3, 75, 7)
WEIGHTS = np.ones(75)
WEIGHTS[LEFT_OUT] = 0
FITTED = np.flatnonzero(WEIGHTS)
SHORT = {"perplexity": 8, "max_iter": 120}


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS * (1 + np.arange(75) % 3)])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_they_have_no_part_in_the_fit_and_are_placed_like_new_rows(weights, method):
    whole = TSNE(**SHORT, method=method).fit(X, sample_weight=weights)
    part = TSNE(**SHORT, method=method).fit(X[FITTED], sample_weight=weights[FITTED])
    assert whole.embedding_.shape == (75, 2)
    assert np.array_equal(whole.embedding_[FITTED], part.embedding_)
    assert np.array_equal(whole.embedding_[LEFT_OUT], part.transform(X[LEFT_OUT]))
    assert whole.kl_divergence_ == part.kl_divergence_
    assert (whole.affinities_ != part.affinities_).nnz == 0
    assert np.array_equal(whole.transform(X[:9] + 0.1), part.transform(X[:9] + 0.1))


def test_of_distances_and_of_sparse_tables_too():
    D = cdist(X, X)
    whole = TSNE(**SHORT, metric="precomputed").fit(D, sample_weight=WEIGHTS)
    part = TSNE(**SHORT, metric="precomputed").fit(D[np.ix_(FITTED, FITTED)])
    assert np.array_equal(whole.embedding_[FITTED], part.embedding_)
    others = part.transform(D[np.ix_(LEFT_OUT, FITTED)])
    assert np.array_equal(whole.embedding_[LEFT_OUT], others)
    S = sp.csr_array(X)
    whole = TSNE(**SHORT).fit(S, sample_weight=WEIGHTS)
    part = TSNE(**SHORT).fit(S[FITTED])
    assert np.array_equal(whole.embedding_[LEFT_OUT], part.transform(S[LEFT_OUT]))


@pytest.mark.parametrize("again", [False, True])
def test_they_move_with_a_map_that_goes_on(tmp_path, again):
    model = TSNE(**SHORT).fit(X, sample_weight=WEIGHTS)
    if again:
        model.save(tmp_path / "map.gnomon")
        model = gnomon.load(tmp_path / "map.gnomon")
        assert np.array_equal(model.transform(X[LEFT_OUT]), model.embedding_[LEFT_OUT])
    model.resume(30)
    longer = TSNE(perplexity=8, max_iter=150).fit(X, sample_weight=WEIGHTS)
    assert np.array_equal(model.embedding_, longer.embedding_)
    warm = TSNE(**SHORT, warm_start=True).fit(X, sample_weight=WEIGHTS)
    warm.set_params(max_iter=150).fit(X, sample_weight=WEIGHTS)
    assert np.array_equal(warm.embedding_, longer.embedding_)


def test_a_start_and_a_former_map_have_a_place_for_every_row():
    init = np.random.default_rng(0).normal(size=(75, 2))
    whole = TSNE(**SHORT, init=init).fit(X, sample_weight=WEIGHTS)
    part = TSNE(**SHORT, init=init[FITTED]).fit(X[FITTED])
    assert np.array_equal(whole.embedding_[FITTED], part.embedding_)
    with pytest.raises(ParameterError, match=r"of shape \(75, 2\); got"):
        TSNE(**SHORT, init=init[FITTED]).fit(X, sample_weight=WEIGHTS)
    # rows that the former map left out are shared as well: they have a place on it
    swapped = np.ones(75)
    swapped[:20] = 0
    later = TSNE(**SHORT, align_to=whole).fit(X, sample_weight=swapped)
    assert later.alignment_.shared == 55
    assert later.alignment_.movement < 0.5
    same = TSNE(**SHORT, align_to=whole).fit(X[20:])
    assert np.array_equal(later.embedding_[20:], same.embedding_)


@pytest.mark.parametrize(
    ("options", "table", "says"),
    [
        ({"affinity": "precomputed"}, np.ones((75, 75)), "be None for precomputed affinities"),
        ({"n_components": 4, "method": "exact"}, X, "are placed, in up to 3 dimensions"),
        ({"metric": "precomputed"}, kneighbors_graph(X, 30, mode="distance"), "out of the graph"),
    ],
)
def test_where_they_cannot_be_placed_they_are_refused(options, table, says):
    with pytest.raises(ParameterError, match=says):
        TSNE(**SHORT, **options).fit(table, sample_weight=WEIGHTS)
