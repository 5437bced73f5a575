import numpy as np
import pytest
import scipy.sparse as sp

from gnomon import samples
from gnomon.errors import DataError, GnomonError
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.graph import (
    Affinity,
    all_identical,
    given_affinities,
    given_neighbors,
    reduce,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
NEAR = find_neighbors(X, 12)
DISTANCES = np.linalg.norm(X[:, None] - X[None], axis=2)


def parse(kind="gaussian", perplexity=10.0, n_neighbors=None, n=60, mass=None, exact=False):
    return Affinity.parse(kind, perplexity, n_neighbors, n, float(mass or n), exact)


def options(X, pca="auto", metric="euclidean"):
    return reduce(X, pca, metric, names=None, weights=None, n_jobs=None)


@pytest.mark.parametrize(
    ("asked", "rows", "copies"),
    [
        ({}, 30, 30),
        ({"perplexity": 9.5}, 29, 29),
        ({"perplexity": 40}, 59, 59),
        ({"n_neighbors": 15}, 15, 15),
        ({"exact": True}, 59, 59),
        ({"kind": "uniform"}, 15, 15),
        ({"kind": "uniform", "n": 10}, 9, 9),
        ({"kind": "uniform", "n_neighbors": 7}, 7, 7),
        ({"kind": "multiscale", "perplexity": [5, 12]}, 36, 36),
        ({"mass": 200, "perplexity": 50}, 59, 150),
        ({"mass": 200, "perplexity": 190}, 59, 199),
        ({"mass": 200, "exact": True}, 59, 199),
        ({"mass": 200, "kind": "uniform", "n_neighbors": 100}, 59, 100),
    ],
    ids=str,
)
def test_three_times_the_perplexity_are_neighbours_unless_something_else_is_asked(
    asked, rows, copies
):
    """Counted in copies: 60 rows may stand for 200."""
    affinity = parse(**asked)
    assert (affinity.n_neighbors, affinity.copies) == (rows, copies)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"perplexity": 60}, "`perplexity` must be from 1 to 59, one less than the rows; got 60"),
        ({"perplexity": 0}, "`perplexity` must be a number from 1 to 59; got 0"),
        ({"perplexity": -1}, "`perplexity` must be a number from 1 to 59; got -1"),
        ({"perplexity": float("nan")}, "`perplexity` must be a number from 1 to 59; got nan"),
        ({"perplexity": "30"}, "`perplexity` must be a number from 1 to 59; got '30'"),
        ({"perplexity": True}, "`perplexity` must be a number from 1 to 59; got True"),
        ({"perplexity": [5, 10]}, "a list goes with affinity='multiscale'"),
        ({"kind": "multiscale"}, "be a list of numbers for affinity='multiscale'"),
        ({"kind": "multiscale", "perplexity": []}, "hold at least one number"),
        (
            {"kind": "multiscale", "perplexity": [5, 60]},
            "from 1 to 59, one less than the rows; got 60",
        ),
        ({"n_neighbors": 9}, "`n_neighbors` must be an integer from 10 to 59; got 9"),
        ({"n_neighbors": 60}, "`n_neighbors` must be an integer from 10 to 59; got 60"),
        ({"kind": "uniform", "n_neighbors": 0}, "from 1 to 59; got 0. The table has 60 rows"),
        ({"kind": "uniform", "n_neighbors": 2.0}, "`n_neighbors` must be an integer"),
        ({"mass": 200, "perplexity": 200}, "from 1 to 199, one less than the rows; got 200"),
    ],
    ids=str,
)
def test_what_cannot_be_reached_is_refused_with_the_limit(asked, says):
    with pytest.raises((ValueError, TypeError), match=says.replace("[", r"\[")) as caught:
        parse(**asked)
    assert isinstance(caught.value, GnomonError)


def test_wide_and_sparse_tables_are_reduced_and_others_are_not():
    wide = rng.standard_normal((80, 120))
    assert options(X).Z is X
    assert options(X).pca is None
    assert options(wide).Z.shape == (80, 50)
    assert "120 columns to 50 by PCA" in options(wide).note
    assert options(wide, pca=None).Z is wide
    assert options(wide, pca=7).Z.shape == (80, 7)
    assert options(wide, metric="cosine").Z is wide
    assert options(sp.csr_array(X)).Z.shape == (60, 4)
    narrow = samples.load("digits").X[:30]  # fewer rows than 50
    assert options(sp.csr_array(narrow)).Z.shape == (30, 30)


@pytest.mark.parametrize("pca", [0, 5, True, 2.0, "no"])
def test_a_wrong_number_of_components_is_refused(pca):
    with pytest.raises((ValueError, TypeError), match="`pca` must be an integer from 1 to 4"):
        options(X, pca=pca)


@pytest.mark.parametrize(("pca", "metric"), [(None, "euclidean"), ("auto", "cosine")])
def test_sparse_tables_stay_as_they_are_without_pca_and_for_other_metrics(pca, metric):
    table = sp.csr_array(X)
    found = options(table, pca=pca, metric=metric)
    assert found.Z is table
    assert found.pca is None


def nearest(k):
    """`k` neighbours that all count the same."""
    return Affinity("uniform", (), k, k)


def test_neighbours_from_distances_are_those_of_the_table():
    near = given_neighbors(DISTANCES, nearest(12))
    assert np.array_equal(near.indices, NEAR.indices)
    np.testing.assert_allclose(near.distances, NEAR.distances)


def test_neighbours_from_a_graph_are_those_of_the_table():
    """Whether or not it holds each row's distance to itself."""
    for first in (0, 1):
        keep = np.argsort(DISTANCES, axis=1)[:, first:18]
        rows = np.repeat(np.arange(60), keep.shape[1])
        values = DISTANCES[rows, keep.ravel()]
        near = given_neighbors(
            sp.csr_array((values, (rows, keep.ravel())), shape=(60, 60)), nearest(12)
        )
        assert np.array_equal(near.indices, NEAR.indices)
        np.testing.assert_allclose(near.distances, NEAR.distances)


def test_a_distance_of_zero_in_a_graph_is_a_neighbour():
    graph = sp.csr_array((np.zeros(6), ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1])), shape=(3, 3))
    assert np.array_equal(given_neighbors(graph, nearest(2)).indices, [[1, 2], [0, 2], [0, 1]])


def negative(table):
    table = table.copy()
    table[3, 5] = -1
    return table


def missing(table):
    table = table.copy()
    table[3, 5] = np.nan
    return table


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_distances_that_are_none_are_refused(kind):
    with pytest.raises(ValueError, match=r"distances, none of them negative; got -1\.0"):
        given_neighbors(kind(negative(DISTANCES)), nearest(12))
    with pytest.raises(ValueError, match=r"missing value.*row 3, column 5"):
        given_neighbors(kind(missing(DISTANCES)), nearest(12))
    with pytest.raises(ValueError, match=r"square table of distances; got 'shape \(60, 59\)'"):
        given_neighbors(kind(DISTANCES[:, :-1]), nearest(12))


def test_a_graph_with_too_few_neighbours_is_refused():
    graph = np.where(np.sort(DISTANCES, axis=1)[:, [9]] > DISTANCES, DISTANCES, 0)
    with pytest.raises(DataError, match=r"Row \d+ of the graph has 8 neighbours, .* 12 are wanted"):
        given_neighbors(sp.csr_array(graph), nearest(12))


def test_rows_all_the_same_are_refused():
    for same in (np.full((9, 3), 0.1), sp.csr_array(np.full((9, 3), 0.1)), sp.csr_array((9, 3))):
        assert all_identical(same)
        assert not all_identical(same + sp.csr_array(([1.0], ([4], [1])), shape=(9, 3)))
    with pytest.raises(DataError, match="All rows are identical"):
        given_neighbors(np.zeros((9, 9)), nearest(3))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_array])
def test_given_affinities_become_symmetric_and_sum_to_one(kind):
    W = np.where(rng.uniform(size=(60, 60)) < 0.3, rng.uniform(size=(60, 60)), 0)
    P = given_affinities(kind(W))
    assert P.dtype == np.float32
    assert P.indices.dtype == np.int32
    assert abs(P - P.T).max() == 0
    assert (P.diagonal() == 0).all()
    assert abs(P.data.astype(float).sum() - 1) < 1e-6
    both = W + W.T
    np.fill_diagonal(both, 0)
    np.testing.assert_allclose(P.toarray(), both / both.sum(), atol=1e-9)


def test_affinities_that_are_none_are_refused():
    W = rng.uniform(size=(60, 60))
    with pytest.raises(ValueError, match=r"affinities, none of them negative; got -1\.0"):
        given_affinities(negative(W))
    with pytest.raises(ValueError, match="missing value"):
        given_affinities(missing(W))
    with pytest.raises(ValueError, match="square table of affinities"):
        given_affinities(W[:, :-1])
    W[7], W[:, 7] = 0, 0
    with pytest.raises(DataError, match=r"without a neighbour: 1 \(first: 7\)"):
        given_affinities(W)
    with pytest.raises(DataError, match="without a neighbour"):
        given_affinities(np.zeros((5, 5)))
