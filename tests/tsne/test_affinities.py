import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon import samples
from gnomon.neighbors import find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint, uniform_rows

X = samples.load("wine").X
X = (X - X.mean(0)) / X.std(0)
NEAR = find_neighbors(X, 90)


def perplexities(rows):
    positive = np.where(rows > 0, rows, 1.0)
    return np.exp(-(rows * np.log(positive)).sum(axis=1))


@pytest.mark.parametrize("perplexity", [1.5, 5, 30, 60, 89.0])
def test_rows_reach_the_asked_perplexity(perplexity):
    rows = gaussian_rows(NEAR, perplexity).rows
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(perplexities(rows), perplexity, rtol=1e-8)


def test_the_perplexity_of_a_uniform_row_is_k():
    np.testing.assert_allclose(perplexities(uniform_rows(NEAR).rows), 90)


def test_several_perplexities_give_the_mean_of_their_rows():
    both, five, thirty = (gaussian_rows(NEAR, scale).rows for scale in ([5, 30], 5, 30))
    np.testing.assert_allclose(both, (five + thirty) / 2)


def test_nearer_neighbours_are_never_less_likely():
    assert (np.diff(gaussian_rows(NEAR, 20).rows, axis=1) <= 1e-16).all()


def test_copies_share_the_probability_when_there_are_more_of_them_than_the_perplexity():
    table = np.vstack([np.zeros((20, 3)), np.random.default_rng(0).standard_normal((30, 3)) + 5])
    near = find_neighbors(table, 30)
    rows = gaussian_rows(near, 8).rows
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[:20, :19], 1 / 19, rtol=1e-6)
    np.testing.assert_allclose(perplexities(rows[20:]), 8, rtol=1e-6)


@pytest.mark.parametrize("conditional", [uniform_rows(NEAR), gaussian_rows(NEAR, 30)])
def test_p_is_symmetric_sums_to_one_and_has_no_diagonal(conditional):
    P = joint(conditional)
    assert P.dtype == np.float32
    assert P.indices.dtype == np.int32
    assert abs(P.data.astype(float).sum() - 1) < 1e-6
    assert abs(P - P.T).max() == 0
    assert (P.diagonal() == 0).all()
    assert P.has_sorted_indices
    dense = np.zeros((len(X), len(X)))
    np.put_along_axis(dense, NEAR.indices, conditional.rows, axis=1)
    np.testing.assert_allclose(P.toarray(), (dense + dense.T) / (2 * len(X)), atol=1e-9)


@given(st.integers(-600, 600))
def test_scaling_by_a_power_of_two_leaves_p_exactly_the_same(power):
    scaled = find_neighbors(np.ldexp(X, power), 30)
    plain = find_neighbors(X, 30)
    assert np.array_equal(scaled.indices, plain.indices)
    assert np.array_equal(gaussian_rows(scaled, 10).rows, gaussian_rows(plain, 10).rows)


def test_turning_and_shifting_leave_p_the_same():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((13, 13)))[0]
    moved = find_neighbors(X @ turn + 100, 30)
    plain = find_neighbors(X, 30)
    P, Q = joint(gaussian_rows(moved, 10)), joint(gaussian_rows(plain, 10))
    assert abs(P - Q).max() < 1e-8


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    big = find_neighbors(np.random.default_rng(0).standard_normal((5000, 4)), 30, n_jobs=n_jobs)
    one = find_neighbors(np.random.default_rng(0).standard_normal((5000, 4)), 30, n_jobs=1)
    assert np.array_equal(big.distances, one.distances)
    many, alone = gaussian_rows(big, 10, n_jobs=n_jobs), gaussian_rows(one, 10, n_jobs=1)
    assert np.array_equal(many.rows, alone.rows)
    P, Q = joint(many, n_jobs=n_jobs), joint(alone, n_jobs=1)
    assert np.array_equal(P.data, Q.data) and np.array_equal(P.indices, Q.indices)


@pytest.mark.parametrize("wrong", [0.5, 91, -1, float("nan")])
def test_a_perplexity_out_of_range_is_refused_with_its_limit(wrong):
    with pytest.raises(ValueError, match=r"`perplexity` must be from 1 to .* 90; got"):
        gaussian_rows(NEAR, wrong)
