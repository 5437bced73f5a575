"""Where scikit-learn's or openTSNE's t-SNE is replaced by this one: what their users pass."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

import gnomon
from gnomon import TSNE, samples
from gnomon.errors import DataError, DataWarning, ParameterError, UnavailableError
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.start import SPREAD, spectral_start

QUICK = {"perplexity": 5, "max_iter": 60}


def groups(n=60, d=6, seed=0):
    """Positive rows in three groups, told apart by their direction as well."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(1, 9, size=(3, d))
    return centres[np.arange(n) % 3] + rng.uniform(0, 0.5, size=(n, d))


def purity(Y, n=60):
    """Share of rows whose nearest row on the map is of their group."""
    D = cdist(Y, Y)
    np.fill_diagonal(D, np.inf)
    return float((D.argmin(axis=1) % 3 == np.arange(n) % 3).mean())


# -- metrics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_neighbours_by_direction_are_those_of_scikit_learn_and_their_distance_is_the_angle(metric):
    X = np.random.default_rng(0).normal(size=(80, 7)) + 2
    found = find_neighbors(X, 5, metric=metric)
    D = pairwise_distances(X, metric=metric)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(found.indices, np.argsort(D, axis=1)[:, :5])
    expected = np.arccos(1 - np.take_along_axis(D, found.indices.astype(int), axis=1))
    np.testing.assert_allclose(found.distances, expected, atol=1e-9)


def test_hellinger_compares_shares():
    X = np.random.default_rng(0).uniform(size=(80, 7))
    found = find_neighbors(X, 5, metric="hellinger")
    roots = np.sqrt(X / X.sum(axis=1, keepdims=True))
    D = cdist(roots, roots) / np.sqrt(2)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(found.indices, np.argsort(D, axis=1)[:, :5])
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :5], rtol=1e-9)
    scaled = X * np.linspace(1, 1e3, 80)[:, None]
    assert np.array_equal(find_neighbors(scaled, 5, metric="hellinger").indices, found.indices)


@pytest.mark.parametrize(
    ("metric", "row", "words"),
    [
        ("cosine", 0.0, "Row 3 of X is all 0 and has no direction"),
        ("correlation", 2.0, "Row 3 of X is constant and has no direction; correlation needs one"),
        ("hellinger", 0.0, "Row 3 of X is all 0 and has no shares"),
    ],
)
def test_a_row_without_distances_is_named(metric, row, words):
    X = groups()
    X[3] = row
    with pytest.raises(DataError, match=words):
        TSNE(**QUICK, metric=metric).fit(X)


def test_negative_numbers_have_no_hellinger_distance():
    with pytest.raises(ParameterError, match="no negative numbers for metric='hellinger'"):
        TSNE(**QUICK, metric="hellinger").fit(groups() - 5)


@pytest.mark.parametrize("metric", ["cosine", "hellinger", "manhattan", "euclidean"])
def test_a_sparse_table_gives_the_neighbours_of_the_dense_one(metric, tmp_path):
    X = np.where(groups() > 3, groups(), 0.0)
    options = {**QUICK, "metric": metric, "pca": None}
    sparse, dense = TSNE(**options).fit(sp.csr_array(X)), TSNE(**options).fit(X)
    np.testing.assert_allclose(sparse.affinities_.toarray(), dense.affinities_.toarray(), atol=1e-6)
    new = sp.csr_array(X[:4] * 1.01)
    near = sparse.place(new).neighbors
    assert np.array_equal(near, dense.place(new.toarray()).neighbors)
    sparse.save(tmp_path / "map.gnomon")
    again = gnomon.load(tmp_path / "map.gnomon")
    assert np.array_equal(again.place(new).neighbors, near)


def test_sparse_rows_have_no_correlation():
    with pytest.raises(ParameterError, match="dense for metric='correlation'"):
        TSNE(**QUICK, metric="correlation").fit(sp.csr_array(groups()))


def test_a_function_of_two_rows_is_a_metric(tmp_path):
    def steps(a, b):
        return np.abs(a - b).sum()

    X = groups()
    model = TSNE(**QUICK, metric=steps).fit(X)
    named = TSNE(**QUICK, metric="manhattan").fit(X)
    assert np.array_equal(model.embedding_, named.embedding_)
    assert np.array_equal(model.transform(X[:3] + 0.1), named.transform(X[:3] + 0.1))
    assert "steps" in model.certificate_.neighbors
    with pytest.raises(ParameterError, match="a model file, which holds no code"):
        model.save(tmp_path / "map.gnomon")


def test_mahalanobis_takes_a_covariance_or_its_inverse():
    X = groups()
    V = np.cov(X.T)
    found = find_neighbors(X, 4, metric="mahalanobis", metric_params={"V": V})
    D = pairwise_distances(X, metric="mahalanobis", VI=np.linalg.inv(V))
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :4], rtol=1e-9)
    model = TSNE(**QUICK, metric="mahalanobis", metric_params={"V": V}).fit(X)
    assert model.transform(X[:2] + 0.1).shape == (2, 2)
    with pytest.raises(ParameterError, match="hold V, a covariance, or VI"):
        TSNE(**QUICK, metric="mahalanobis").fit(X)


# -- starts -----------------------------------------------------------------------------------


def test_distances_need_no_init():
    X = groups()
    model = TSNE(**QUICK, metric="precomputed").fit(pairwise_distances(X))
    assert purity(model.embedding_) == 1
    named = TSNE(**QUICK, metric="precomputed", init="spectral").fit(pairwise_distances(X))
    assert np.array_equal(model.embedding_, named.embedding_)
    given = TSNE(**QUICK, affinity="precomputed").fit(model.affinities_)
    assert purity(given.embedding_) == 1


def test_a_spectral_start_is_the_slowest_modes_of_a_walk_over_p():
    P = TSNE(perplexity=10, max_iter=1).fit(samples.load("iris").X[:100]).affinities_
    start = spectral_start(P, 2, np.random.default_rng(0))
    dense = P.toarray().astype(float)
    degree = dense.sum(axis=1)
    _, vectors = np.linalg.eigh(dense / np.sqrt(np.outer(degree, degree)))
    modes = vectors[:, -2:-4:-1] / np.sqrt(degree)[:, None]
    for axis in range(2):
        # noise of 1 % is added, and modes are found to 1e-4 of a gap
        assert abs(np.corrcoef(start[:, axis], modes[:, axis])[0, 1]) > 0.999
    assert start[:, 0].std() == pytest.approx(SPREAD, rel=0.1)


@pytest.mark.parametrize("threads", [2, 4])
def test_a_spectral_start_has_the_same_bits_on_any_number_of_threads(threads):
    P = TSNE(perplexity=5, max_iter=1).fit(groups()).affinities_
    one, many = (spectral_start(P, 2, np.random.default_rng(0), n) for n in (1, threads))
    assert np.array_equal(one, many)


def test_a_graph_in_parts_starts_with_its_points_apart():
    P = sp.csr_array(sp.block_diag([np.ones((5, 5)) - np.eye(5)] * 4)) / 80
    start = spectral_start(P, 2, np.random.default_rng(0))
    assert len(np.unique(start, axis=0)) == 20


@pytest.mark.filterwarnings("ignore:All rows are the same:gnomon.errors.DataWarning")
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_identical_rows_stay_where_they_were_put(method):
    init = np.zeros((40, 2))
    model = TSNE(**QUICK, init=init, method=method).fit(np.ones((40, 5)))
    assert np.array_equal(model.embedding_, init)
    apart = TSNE(**QUICK, init=groups(40)[:, :2], method=method).fit(np.ones((40, 5)))
    assert np.isfinite(apart.embedding_).all()
    distances = TSNE(**QUICK, init=init, method=method, metric="precomputed")
    assert np.array_equal(distances.fit(np.zeros((40, 40))).embedding_, init)
    with pytest.raises(DataError, match="All rows are identical"):
        TSNE(**QUICK).fit(np.ones((40, 5)))
    with pytest.raises(ParameterError, match="hold more than one place"):
        TSNE(**QUICK, init=np.zeros((60, 2))).fit(groups())


# -- neighbours that are given ----------------------------------------------------------------


def test_neighbours_are_taken_as_indices_and_distances_or_as_a_graph():
    X = groups()
    distances, indices = NearestNeighbors(n_neighbors=15).fit(X).kneighbors()
    given = TSNE(**QUICK, metric="precomputed", init="random")
    expected = TSNE(**QUICK, init="random").fit(X).embedding_
    assert np.allclose(given.fit((indices, distances)).embedding_, expected, atol=1e-2)
    pair = given.embedding_
    graph = kneighbors_graph(X, 15, mode="distance")
    assert np.array_equal(given.fit(graph).embedding_, pair)
    with_itself = kneighbors_graph(X, 16, mode="distance", include_self=True)
    assert np.array_equal(given.fit(with_itself).embedding_, pair)


def test_few_neighbours_say_what_perplexity_they_carry():
    graph = kneighbors_graph(groups(), 9, mode="distance")
    with pytest.warns(DataWarning, match=r"perplexity 5 wants 15\. So few carry a perplexity of 3"):
        model = TSNE(**QUICK, metric="precomputed").fit(graph)
    assert purity(model.embedding_) == 1
    with pytest.raises(DataError, match="9 neighbours, which carry a perplexity of 9 at most"):
        TSNE(perplexity=10, metric="precomputed").fit(graph)


@pytest.mark.parametrize(
    "pair", [(np.zeros((60, 3)), np.zeros((60, 3))), (np.zeros((60, 3), int), np.zeros((60, 2)))]
)
def test_neighbours_of_another_shape_or_kind_are_refused(pair):
    with pytest.raises(ParameterError, match=r"\(indices, distances\) of neighbours"):
        TSNE(**QUICK, metric="precomputed").fit(pair)


# -- dimensions, placing, callbacks -----------------------------------------------------------


def test_more_than_three_dimensions_go_with_exact(tmp_path):
    X = groups()
    model = TSNE(5, **QUICK, method="exact").fit(X)
    assert model.embedding_.shape == (60, 5)
    assert purity(model.embedding_) == 1
    assert model.certificate_.force_error < 1e-9
    with pytest.raises(UnavailableError, match="A map in 5 dimensions cannot place new rows"):
        model.transform(X)
    with pytest.raises(ParameterError, match="More dimensions go with method='exact'"):
        TSNE(4).fit(X)
    whole = TSNE(5, perplexity=5, max_iter=90, method="exact").fit(X)
    model.save(tmp_path / "map.gnomon")
    assert np.array_equal(
        gnomon.load(tmp_path / "map.gnomon").resume(30).embedding_, whole.embedding_
    )


def test_new_rows_are_placed_by_the_perplexity_that_is_given():
    X = samples.load("iris").X
    model = TSNE(perplexity=20, max_iter=300).fit(X)
    rows = X[::10] + 0.05
    usual = model.transform(rows)
    assert np.array_equal(model.transform(rows, perplexity=5), usual)
    wide = model.transform(rows, perplexity=30)
    assert not np.array_equal(wide, usual)
    placed = model.place(rows, perplexity=30)
    assert np.array_equal(placed.positions, wide)
    assert np.array_equal(placed.distance_ratio, model.place(rows).distance_ratio)
    for wrong in (0.5, 151, float("nan")):
        with pytest.raises(ParameterError, match="`perplexity` must be"):
            model.transform(rows, perplexity=wrong)


def test_a_plain_function_is_a_callback_and_sees_positions():
    seen = []

    def watch(event):
        seen.append((event.done, event.detail.positions().shape, event.detail.kl))
        return event.done == 12

    model = TSNE(**QUICK).set_callbacks(watch).fit(groups())
    assert [done for done, *_ in seen] == list(range(1, 13))
    assert seen[0][1] == (60, 2)
    assert model.stop_reason_ == "a callback asked to stop"
    assert model.set_callbacks() is model
    with pytest.raises(TypeError, match="callbacks must be instances"):
        TSNE().set_callbacks(3)
