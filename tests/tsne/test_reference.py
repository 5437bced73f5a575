import numpy as np
import pytest
from references.tables import read

from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint
from gnomon.tsne.reference import field, kl_divergence, kl_gradient, row_costs

rng = np.random.default_rng(0)
TABLE = rng.standard_normal((60, 5))
NEAR = find_neighbors(TABLE, 59)
P = joint(gaussian_rows(NEAR, 12)).astype(np.float64)
P.data /= P.data.sum()

DIMENSIONS = [1, 2, 3]
DOF = [0.3, 1.0, 2.0, 10.0]


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", DOF)
def test_the_gradient_is_the_finite_difference_of_kl(dimensions, dof):
    Y = rng.standard_normal((60, dimensions))
    gradient = kl_gradient(P, Y, dof)
    step = 1e-5
    for i, c in [(0, 0), (7, dimensions - 1), (59, 0), (33, dimensions - 1)]:
        up, down = Y.copy(), Y.copy()
        up[i, c] += step
        down[i, c] -= step
        slope = (kl_divergence(P, up, dof) - kl_divergence(P, down, dof)) / (2 * step)
        assert abs(slope - gradient[i, c]) < 1e-8


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", DOF)
def test_forces_sum_to_zero_and_kl_is_not_negative(dimensions, dof):
    Y = rng.standard_normal((60, dimensions)) * 3
    np.testing.assert_allclose(kl_gradient(P, Y, dof).sum(axis=0), 0, atol=1e-15)
    assert kl_divergence(P, Y, dof) > 0


@pytest.mark.parametrize("dof", DOF)
def test_the_push_is_the_gradient_of_one_field(dof):
    """∇φ = −((α+1)/α) Σ K w (y − y_j): why one charge is enough on the mesh."""
    Y, at, step = rng.standard_normal((60, 2)), rng.standard_normal((5, 2)), 1e-6
    push = field(Y, dof, at=at)[1]
    for c in range(2):
        shift = np.eye(2)[c] * step
        slope = (field(Y, dof, at=at + shift)[0] - field(Y, dof, at=at - shift)[0]) / (2 * step)
        np.testing.assert_allclose(slope, -(dof + 1) / dof * push[:, c], rtol=1e-6, atol=1e-8)


def test_at_one_degree_of_freedom_it_is_equation_59():
    Y = rng.standard_normal((60, 2))
    sq = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    w = 1 / (1 + sq)
    np.fill_diagonal(w, 0)
    q = w / w.sum()
    p = P.toarray()
    by_hand = 4 * np.einsum("ij,ij,ijc->ic", p - q, w, Y[:, None] - Y[None])
    np.testing.assert_allclose(kl_gradient(P, Y), by_hand, atol=1e-14)
    np.testing.assert_allclose(kl_gradient(p, Y), by_hand, atol=1e-14)


def test_kl_and_row_costs_agree_with_rtsne():
    table = read("iris")[2][:, :4].astype(float)
    _, first = np.unique(table, axis=0, return_index=True)
    table = table[np.sort(first)]
    assert len(table) == 149
    near = find_neighbors(table, 148)
    rows = gaussian_rows(near, 30).rows
    dense = np.zeros((149, 149))
    np.put_along_axis(dense, near.indices, rows, axis=1)
    p = (dense + dense.T) / (2 * 149)
    Y = read("rtsne_iris_unique_p30_theta0_Y")[2]
    costs = read("rtsne_iris_unique_p30_theta0_pointcosts")[2][:, 0]
    final = read("rtsne_iris_unique_p30_theta0_itercosts")[2][-1, 0]
    assert abs(kl_divergence(p, Y) / final - 1) < 1e-4
    np.testing.assert_allclose(row_costs(p, Y), costs, atol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    Y = rng.standard_normal((500, 2))
    one, many = field(Y, n_jobs=1), field(Y, n_jobs=n_jobs)
    assert np.array_equal(one[0], many[0])
    assert np.array_equal(one[1], many[1])


@pytest.mark.parametrize("dof", DOF)
def test_charges_are_copies_and_other_places_are_asked_like_points(dof):
    Y, charges = rng.standard_normal((60, 2)), rng.integers(1, 4, 60)
    copies, at = np.repeat(Y, charges, axis=0), rng.standard_normal((7, 2))
    for places in (at, None):
        phi, push = field(Y, dof, at=places, charges=charges.astype(float))
        expected, expected_push = field(copies, dof, at=Y if places is None else places)
        own = charges if places is None else 0  # a point does not count itself
        np.testing.assert_allclose(phi, expected - own, rtol=1e-12)
        np.testing.assert_allclose(push, expected_push, atol=1e-12)


def test_a_diagonal_of_p_costs_nothing():
    """Copies that a weight stands for lie in one place: they are no pairs of this formula."""
    Y = rng.standard_normal((60, 2))
    with_diagonal = P.toarray() + np.diag(np.full(60, 0.01))
    np.testing.assert_allclose(kl_gradient(with_diagonal, Y), kl_gradient(P, Y), atol=1e-15)
    np.testing.assert_allclose(row_costs(with_diagonal, Y), row_costs(P, Y), atol=1e-15)
