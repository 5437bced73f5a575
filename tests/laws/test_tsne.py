"""t-SNE: P of the data, Q of the map, the divergence between them, and what moves the points."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.tables import SEEDS, Floats
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist, squareform

from gnomon import PCA, TSNE
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint, uniform_rows
from gnomon.tsne.descent import Descent, begin
from gnomon.tsne.forces import AllPairs, OverMesh
from gnomon.tsne.reference import field, kl_divergence, kl_gradient
from gnomon.tsne.schedule import Schedule


class Problem(NamedTuple):
    """Affinities P (n, n) that sum to 1 in float64, and a map Y (n, dimensions)."""

    P: Floats
    Y: Floats


@st.composite
def problems(draw: Any, dimensions: int | None = None) -> Problem:
    """Both kinds of affinities, maps of 1, 2 and 3 dimensions."""
    n = draw(st.integers(5, 12))
    dimensions = draw(st.integers(1, 3)) if dimensions is None else dimensions
    random = np.random.default_rng(draw(SEEDS))
    near = find_neighbors(random.normal(size=(n, 4)), n - 1 if draw(st.booleans()) else 3)
    k = near.indices.shape[1]
    rows = uniform_rows(near) if k == 3 else gaussian_rows(near, draw(st.floats(2, n / 2)))
    P = joint(rows).toarray().astype(float)
    Y = random.normal(size=(n, dimensions)) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    return Problem(P / P.sum(), Y)


def similarities(Y: Floats) -> tuple[Floats, float]:
    """q_ij of (50) and Z of (51), pair by pair."""
    kernel = 1 / (1 + squareform(pdist(Y, "sqeuclidean")))
    np.fill_diagonal(kernel, 0)
    return kernel / kernel.sum(), float(kernel.sum())


@given(n=st.integers(4, 30), seed=SEEDS, data=st.data())
def test_uniform_rows_give_one_kth_to_the_k_nearest_and_have_perplexity_k(n, seed, data):
    """[Selitskii 2025] (44), (47), (48)."""
    k = data.draw(st.integers(1, n - 1))
    X = np.random.default_rng(seed).normal(size=(n, 3))
    conditional = uniform_rows(find_neighbors(X, k))
    dense = np.zeros((n, n))
    np.put_along_axis(dense, conditional.neighbors, conditional.rows, axis=1)
    nearest = np.argsort(cdist(X, X), axis=1)[:, 1 : k + 1]
    by_hand = np.zeros((n, n))
    np.put_along_axis(by_hand, nearest, 1 / k, axis=1)
    np.testing.assert_allclose(dense, by_hand)
    entropy = -np.sum(conditional.rows * np.log2(conditional.rows), axis=1)
    np.testing.assert_allclose(2**entropy, k)


@given(n=st.integers(6, 30), seed=SEEDS, share=st.floats(0.2, 0.8))
def test_gaussian_rows_fall_with_the_squared_distance_and_reach_the_perplexity(n, seed, share):
    """−log p_{i|j} is |x_i − x_j|²/2σ_j² and a constant of the row; 2^H is what was asked for.

    [Selitskii 2025] (47), (49), with σ_j and without k = j.
    """
    perplexity = 1 + share * (n - 2)
    near = find_neighbors(np.random.default_rng(seed).normal(size=(n, 3)), n - 1)
    rows = gaussian_rows(near, perplexity).rows
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    np.testing.assert_allclose(2 ** -np.sum(rows * np.log2(rows), axis=1), perplexity, rtol=1e-8)
    sq = near.distances**2
    slopes = np.log(rows[:, :1] / rows[:, -1:]) / (sq[:, -1:] - sq[:, :1])  # 1/2σ²
    assert (slopes > 0).all()
    by_hand = np.exp(-slopes * sq)
    np.testing.assert_allclose(rows, by_hand / by_hand.sum(axis=1, keepdims=True), rtol=1e-6)


@given(n=st.integers(5, 30), seed=SEEDS, kind=st.sampled_from(["uniform", "gaussian"]))
def test_p_is_the_mean_of_both_conditionals_over_n_and_sums_to_one(n, seed, kind):
    """[Selitskii 2025] (45), (46)."""
    near = find_neighbors(np.random.default_rng(seed).normal(size=(n, 3)), min(n - 1, 12))
    conditional = uniform_rows(near) if kind == "uniform" else gaussian_rows(near, 3)
    given_j = np.zeros((n, n))  # row j: p_{i|j}
    np.put_along_axis(given_j, conditional.neighbors, conditional.rows, axis=1)
    P = joint(conditional).toarray()
    np.testing.assert_allclose(P, (given_j + given_j.T) / (2 * n), rtol=1e-5, atol=1e-9)  # float32
    np.testing.assert_allclose(P.sum(dtype=float), 1, rtol=1e-6)
    assert np.array_equal(P, P.T)
    assert not np.diagonal(P).any()


@given(problems())
def test_the_divergence_is_that_of_p_from_the_normalised_cauchy_kernel(problem: Problem):
    """[Selitskii 2025] (50)–(52), (54), (55): as it is defined, and with the sums pulled apart."""
    P, Y = problem
    q, total = similarities(Y)
    np.testing.assert_allclose(field(Y)[0].sum(), total, rtol=1e-12)
    np.testing.assert_allclose(q.sum(), 1)
    some = P > 0
    kl = np.sum(P[some] * np.log(P[some] / q[some]))
    sq = np.sum(Y**2, axis=1)[:, None] - 2 * Y @ Y.T + np.sum(Y**2, axis=1)  # (54)
    apart = np.sum(P[some] * (np.log(P[some]) + np.log(1 + sq[some]))) + np.log(total)
    np.testing.assert_allclose(kl_divergence(P, Y), kl, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kl_divergence(P, Y), apart, rtol=1e-9, atol=1e-12)
    assert kl >= -1e-12


@given(problems())
def test_a_map_whose_q_is_p_costs_nothing_and_stays_where_it_is(problem: Problem):
    """KL(Q‖Q) = 0 and every term of (59) vanishes. [Selitskii 2025] (52), (59)."""
    q, _ = similarities(problem.Y)
    assert abs(kl_divergence(q, problem.Y)) < 1e-12
    np.testing.assert_allclose(kl_gradient(q, problem.Y), 0, atol=1e-12)


@given(problems())
def test_the_gradient_is_the_finite_difference_of_the_divergence(problem: Problem):
    """Every coordinate of every point. [Selitskii 2025] (56)–(59)."""
    P, Y = problem
    gradient, step = kl_gradient(P, Y), 1e-5
    slopes = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        up, down = Y.copy(), Y.copy()
        up[at] += step
        down[at] -= step
        slopes[at] = (kl_divergence(P, up) - kl_divergence(P, down)) / (2 * step)
    # a difference of numbers of about 1 over 1e-5 is right to about 1e-10
    np.testing.assert_allclose(slopes, gradient, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "rounding"),
    [(AllPairs, 1e-12), (lambda P, dof: OverMesh(P, 2, dof, spacing=0.3), 1e-5)],
    ids=["float64", "float32"],
)
@given(problem=problems(dimensions=2))
def test_what_moves_the_points_is_the_gradient(make: Any, rounding: float, problem: Problem):
    """The forces of the descent against (59) itself, where few points need no mesh.

    [Selitskii 2025] (59).
    """
    P, Y = problem
    forces = make(csr_array(P), 1.0)
    positions = np.ascontiguousarray(Y, forces.dtype)
    pull, _, slope, total = forces.at(positions, Y.min(axis=0), Y.max(axis=0))
    exact = kl_gradient(P, Y)
    gradient = 4 * np.asarray(pull, float) + 2 / total * np.asarray(slope, float)
    push = exact - 4 * np.asarray(pull, float)
    assert np.linalg.norm(gradient - exact) <= rounding * np.linalg.norm(push) + 1e-9


@given(problems())
def test_a_step_goes_against_the_gradient_and_down(problem: Problem):
    """From rest z ← z − η∇KL, where η is below every point's own step. [Selitskii 2025] (53)."""
    P, Y = problem
    Y = Y - Y.mean(axis=0)
    rate = 1e-3
    schedule = Schedule(mass=len(Y), early_exaggeration=1.0, learning_rate=rate)
    run = Descent(begin(Y, AllPairs(csr_array(P), 1.0)), schedule)
    run.step()
    after = run.state.positions()
    gradient = kl_gradient(P, Y)
    np.testing.assert_allclose(after - Y, -rate * gradient, rtol=0, atol=1e-12)
    assert kl_divergence(P, after) <= kl_divergence(P, Y) + 1e-14


def test_groups_that_overlap_on_the_first_component_are_apart_in_the_map():
    """[Selitskii 2025], section 2 and figure 3: two long clouds side by side."""
    random = np.random.default_rng(0)
    along = np.tile(np.linspace(0, 40, 80), 2)
    side = np.repeat([0.0, 6.0], 80)
    X = np.column_stack([along, side]) + random.normal(size=(160, 2)) * 0.4

    def agree(places: Any) -> float:
        """How many rows have their own group's row next to them."""
        nearest = find_neighbors(places, 1).indices[:, 0]
        return float(np.mean(side[nearest] == side))

    scores = PCA(1).fit_transform(X)
    embedding = TSNE(1, perplexity=15, max_iter=500).fit_transform(X)
    assert agree(scores) < 0.7
    assert agree(embedding) > 0.97
