import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tsne.problems import COPIES, MASS, ROWS, WEIGHTS, affinities, all_neighbors

from gnomon import samples
from gnomon.neighbors.search import Neighbors, find_neighbors
from gnomon.tsne.affinities import _exp, gaussian_rows, joint, uniform_rows

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


@pytest.mark.parametrize("scales", [[5, 30], [60, 1.5, 30], [89, 2], [2, 89]])
def test_several_perplexities_give_the_mean_of_rows_that_reach_each_of_them(scales):
    """In any order: a search that began where the last one ended would miss some."""
    each = [gaussian_rows(NEAR, scale).rows for scale in scales]
    for rows, scale in zip(each, scales, strict=True):
        np.testing.assert_allclose(perplexities(rows), scale, rtol=1e-8)
    np.testing.assert_allclose(gaussian_rows(NEAR, scales).rows, np.mean(each, axis=0), rtol=1e-12)


@pytest.mark.parametrize("perplexity", [1.001, 2, 15, 39.9])
@pytest.mark.parametrize("name", ["powers", "two groups", "nearly equal", "far", "subnormal"])
def test_hard_rows_reach_the_asked_perplexity(name, perplexity):
    """Where entropy is a steep or a flat function of σ, or σ has an extreme unit."""
    rng = np.random.default_rng(0)
    distances = np.sort(
        {
            "powers": 10.0 ** rng.uniform(-12, 12, (50, 40)),
            "two groups": np.where(np.arange(40) < 15, 1.0, 1e8) * rng.uniform(1, 2, (50, 40)),
            "nearly equal": 1 + 1e-9 * rng.uniform(0, 1, (50, 40)),
            "far": 1e300 * rng.uniform(1, 2, (50, 40)),
            "subnormal": 1e-318 * rng.uniform(1, 2, (50, 40)),
        }[name],
        axis=1,
    )
    near = Neighbors(np.zeros((50, 40), np.int32), distances, 1.0, 0, "")
    rows = gaussian_rows(near, perplexity).rows
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    # equal digits of "nearly equal" and "subnormal" distances stand for a group of them
    np.testing.assert_allclose(perplexities(rows), perplexity, rtol=1e-8)


def test_nearer_neighbours_are_never_less_likely():
    assert (np.diff(gaussian_rows(NEAR, 20).rows, axis=1) <= 1e-16).all()


def test_copies_share_the_probability_when_there_are_more_of_them_than_the_perplexity():
    table = np.vstack([np.zeros((20, 3)), np.random.default_rng(0).standard_normal((30, 3)) + 5])
    near = find_neighbors(table, 30)
    rows = gaussian_rows(near, 8).rows
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[:20, :19], 1 / 19, rtol=1e-6)
    np.testing.assert_allclose(perplexities(rows[20:]), 8, rtol=1e-6)


def test_a_nearest_row_with_more_copies_than_the_perplexity_gets_all_the_probability():
    """No σ reaches the perplexity then; β grows until every rounding of a distance is blown up."""
    rng = np.random.default_rng(0)
    distances = np.sort(rng.uniform(1.7, 2.6, (200, 6)), axis=1)
    near = Neighbors(
        np.tile(np.arange(1, 7, dtype=np.int32), (200, 1)), distances, 1.0, 200, "given"
    )
    weights = np.where(np.arange(200) < 7, 3.0, 1.0)
    conditional = gaussian_rows(near, 2, weights=weights, copies=6)
    alone = weights == 1
    np.testing.assert_array_equal(conditional.rows[alone], np.eye(1, 6).repeat(193, axis=0))
    np.testing.assert_array_equal(conditional.own[alone], 0)
    np.testing.assert_allclose(conditional.rows.sum(axis=1) + conditional.own, 1, rtol=1e-12)


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
    assert np.array_equal(P.data, Q.data)
    assert np.array_equal(P.indices, Q.indices)


@pytest.mark.parametrize("wrong", [0.5, 91, -1, float("nan")])
def test_a_perplexity_out_of_range_is_refused_with_its_limit(wrong):
    with pytest.raises(ValueError, match=r"`perplexity` must be from 1 to .* 90; got"):
        gaussian_rows(NEAR, wrong)


def copies_together(P):
    """P of repeated rows, added up over the copies of each."""
    together = np.zeros((40, 40))
    np.add.at(together, (COPIES[:, None], COPIES[None]), P.toarray())
    return together


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "multiscale"])
def test_p_of_weighted_rows_is_that_of_their_copies_together(kind):
    light = affinities(kind, ROWS, WEIGHTS)
    full = affinities(kind, ROWS[COPIES])
    assert abs(light - light.T).max() == 0
    assert abs(light.data.astype(float).sum() - 1) < 1e-6
    # float32, of numbers up to 0.01
    np.testing.assert_allclose(light.toarray(), copies_together(full), atol=1e-8)


@pytest.mark.parametrize("k", [3, 20, 39, 60])
def test_as_many_copies_count_as_were_asked_for(k):
    """The last neighbour may count with some of its copies only."""
    rows = uniform_rows(find_neighbors(ROWS, min(k, 39)), WEIGHTS, k)
    masses = rows.rows.sum(axis=1) + rows.own
    np.testing.assert_allclose(masses, 1)
    expected = copies_together(joint(uniform_rows(find_neighbors(ROWS[COPIES], k))))
    np.testing.assert_allclose(joint(rows, weights=WEIGHTS).toarray(), expected, atol=1e-8)


@pytest.mark.parametrize("perplexity", [5.0, 30.0, 60.0])
def test_weighted_rows_reach_the_perplexity_counted_in_copies(perplexity):
    """60 is more than there are rows, and fewer than there are copies."""
    rows = gaussian_rows(all_neighbors(ROWS), perplexity, weights=WEIGHTS, copies=MASS - 1)
    theirs = WEIGHTS[rows.neighbors]
    mine = WEIGHTS - 1
    entropy = -(rows.rows * np.log(rows.rows / theirs)).sum(axis=1)
    entropy -= rows.own * np.log(np.where(mine > 0, rows.own / np.maximum(mine, 1), 1))
    np.testing.assert_allclose(np.exp(entropy), perplexity, rtol=1e-8)


def test_weights_may_be_fractions_above_one():
    weights = WEIGHTS + 0.5
    P = affinities("gaussian", ROWS, weights)
    assert abs(P - P.T).max() == 0
    assert abs(P.data.astype(float).sum() - 1) < 1e-6
    assert (P.diagonal() > 0).all()


def test_with_weights_the_perplexity_may_not_exceed_the_copies():
    with pytest.raises(ValueError, match=f"be from 1 to the number of neighbours, {MASS - 1}; got"):
        gaussian_rows(all_neighbors(ROWS), MASS, weights=WEIGHTS, copies=MASS - 1)


def test_p_of_many_rows_is_the_sum_with_its_transpose():
    near = find_neighbors(np.random.default_rng(1).standard_normal((3000, 3)), 12)
    rows = gaussian_rows(near, 4).rows
    one_way = sp.csr_array((rows.ravel(), near.indices.ravel(), np.arange(0, 36_001, 12)))
    wanted = (one_way + one_way.T) / (2 * 3000)
    found = joint(gaussian_rows(near, 4))
    assert found.nnz == wanted.nnz
    np.testing.assert_allclose((found - wanted).data, 0, atol=1e-7 * wanted.max())


def test_the_exponential_is_that_of_numpy():
    x = -np.concatenate([np.linspace(0, 30, 3001), np.geomspace(1e-12, 699.9, 2000)])
    mine = np.array([_exp(value) for value in x])
    np.testing.assert_allclose(mine, np.exp(x), rtol=5e-16)
    assert (_exp(-700.5), _exp(-1e300), _exp(-np.inf)) == (0, 0, 0)
