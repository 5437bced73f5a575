import numpy as np
import pytest
from tsne.problems import COPIES, ROWS, WEIGHTS, affinities

from gnomon import samples
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint
from gnomon.tsne.attraction import Attraction, log_masses
from gnomon.tsne.reference import field, kl_divergence, kl_gradient

rng = np.random.default_rng(0)
X = samples.load("digits").X[:900]
NEAR = find_neighbors(X, 60)
P = joint(gaussian_rows(NEAR, 20))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0])
def test_pull_and_push_make_the_exact_gradient(dimensions, dof):
    Y = (rng.standard_normal((900, dimensions)) * 5).astype(np.float32)
    phi, push = field(Y, dof)
    pull = Attraction(P, dof).pull(Y)[0].astype(float)
    gradient = 2 * (dof + 1) / dof * (pull - push / phi.sum())
    expected = kl_gradient(P, Y, dof)
    assert np.linalg.norm(gradient - expected) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0])
def test_the_degree_is_the_sum_of_the_springs(dimensions, dof):
    Y = (rng.standard_normal((900, dimensions)) * 5).astype(np.float32)
    sq = ((Y[:, None] - Y[None]).astype(float) ** 2).sum(axis=2)
    expected = (P.toarray() / (1 + sq / dof)).sum(axis=1)
    np.testing.assert_allclose(Attraction(P, dof).pull(Y)[1], expected, rtol=1e-5)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [1e-4, 5.0, 1e4])
def test_kl_from_the_same_loop_is_the_exact_one(dimensions, dof, size):
    Y = (rng.standard_normal((900, dimensions)) * size).astype(np.float32)
    kl = Attraction(P, dof).kl(Y, float(field(Y, dof)[0].sum()))
    assert abs(kl - kl_divergence(P, Y, dof)) < 2e-5  # float32, of logarithms up to 50


def test_renumbering_the_points_changes_only_their_order():
    Y = (rng.standard_normal((900, 2)) * 5).astype(np.float32)
    attraction = Attraction(P, 1.0)
    before, kl = attraction.pull(Y), attraction.kl(Y, 1000.0)
    order = rng.permutation(900)
    attraction = attraction.reordered(order)
    for mine, yours in zip(attraction.pull(Y[order]), before, strict=True):
        np.testing.assert_allclose(mine, yours[order], rtol=1e-3, atol=1e-9)
    assert abs(attraction.kl(Y[order], 1000.0) - kl) < 1e-6


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    Y = rng.standard_normal((900, 2)).astype(np.float32)
    one, many = Attraction(P, 1.0, n_jobs=1), Attraction(P, 1.0, n_jobs=n_jobs)
    for mine, yours in zip(one.pull(Y), many.pull(Y), strict=True):
        assert np.array_equal(mine, yours)
    assert one.kl(Y, 10.0) == many.kl(Y, 10.0)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_the_pull_on_a_weighted_point_is_that_on_each_of_its_copies(dimensions, kind):
    Y = (rng.standard_normal((40, dimensions)) * 3).astype(np.float32)
    few = Attraction(affinities(kind, ROWS, WEIGHTS), 2.0, weights=WEIGHTS)
    many = Attraction(affinities(kind, ROWS[COPIES]), 2.0)
    for mine, expected in zip(few.pull(Y), many.pull(Y[COPIES]), strict=True):
        away = np.linalg.norm(mine[COPIES] - expected)
        assert away < 1e-5 * np.linalg.norm(expected)  # float32
    assert abs(few.kl(Y, 50.0) - many.kl(Y[COPIES], 50.0)) < 1e-5


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "multiscale"])
def test_the_entropy_of_weighted_affinities_is_that_of_their_copies(kind):
    few = log_masses(affinities(kind, ROWS, WEIGHTS), WEIGHTS)
    many = log_masses(affinities(kind, ROWS[COPIES]))
    assert abs(few - many) < 1e-6  # P is float32


def test_points_in_one_place_do_not_pull_each_other():
    pull, degree = Attraction(P, 1.0).pull(np.ones((900, 2), np.float32))
    assert np.array_equal(pull, np.zeros((900, 2)))
    np.testing.assert_allclose(degree, P.sum(axis=1), rtol=1e-5)  # springs all the same
