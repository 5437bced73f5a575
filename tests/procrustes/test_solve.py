import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from procrustes.sets import orthogonal, turn

from gnomon.errors import TooLargeError
from gnomon.procrustes.solve import refuse_too_large, solve, solve_many, solve_plane

# M is (d, d) with entries about 1: rounding of a decomposition is a few d · 1e-16.
ROUNDING = 1e-13


def random_matrix(d, D=None, seed=0):
    return np.random.default_rng(seed).normal(size=(d, D or d))


def trace(R, M):
    return float(np.sum(R * M))


@given(d=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_no_orthogonal_matrix_has_a_larger_trace(d, seed):
    M = random_matrix(d, seed=seed)
    found = solve(M)
    assert np.allclose(found.matrix @ found.matrix.T, np.eye(d), atol=ROUNDING)
    assert found.trace == pytest.approx(trace(found.matrix, M), abs=ROUNDING)
    for other in range(20):
        assert trace(orthogonal(d, seed + other), M) <= found.trace + ROUNDING


@given(d=st.integers(1, 6), seed=st.integers(0, 10_000), force=st.booleans())
def test_the_best_of_one_sign_has_that_sign_and_the_largest_trace_of_it(d, seed, force):
    M = random_matrix(d, seed=seed)
    found = solve(M, reflection="force" if force else "forbid")
    assert np.linalg.det(found.matrix) == pytest.approx(-1 if force else 1)
    assert found.reflected is force
    for other in range(20):
        rival = orthogonal(d, seed + other, reflected=force)
        assert trace(rival, M) <= found.trace + ROUNDING


def test_the_sign_goes_to_the_smallest_singular_value():
    M = np.diag([3.0, 2.0, -1.0])
    found = solve(M, reflection="forbid")
    assert np.allclose(found.matrix, np.eye(3), atol=ROUNDING)
    assert found.singular.tolist() == pytest.approx([3, 2, -1])
    assert found.trace == pytest.approx(4)
    assert found.margin == pytest.approx(2)  # a reflection would have the trace 6


def test_the_margin_is_negative_where_a_rotation_is_better_and_zero_where_nobody_can_tell():
    assert solve(np.diag([3.0, 2.0, 1.0])).margin == pytest.approx(-2)
    assert solve(np.diag([3.0, 2.0, 0.0])).margin == 0
    assert solve(np.diag([3.0, -2.0]), reflection="forbid").margin == pytest.approx(4)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-10, 1e-3])
def test_nearly_tied_smallest_values_still_give_the_best_rotation(gap):
    U, V = orthogonal(4, 1, reflected=False), orthogonal(4, 2, reflected=True)
    sigma = np.array([3.0, 2.0, 1.0 + gap, 1.0])
    M = U * sigma @ V.T
    found = solve(M, reflection="forbid")
    assert np.linalg.det(found.matrix) == pytest.approx(1)
    assert np.allclose(found.matrix @ found.matrix.T, np.eye(4), atol=ROUNDING)
    assert trace(found.matrix, M) == pytest.approx(5.0 + gap, abs=ROUNDING)


def test_among_tied_rotations_the_one_nearest_to_the_prior_is_taken():
    M = np.diag([1.0, -1.0])  # every rotation has the trace 0
    prior = turn(0.7)
    assert np.allclose(solve(M, reflection="forbid", prior=prior).matrix, prior, atol=ROUNDING)
    assert np.allclose(solve(M, reflection="forbid").matrix, np.eye(2), atol=ROUNDING)


def test_what_the_data_leave_open_is_taken_from_the_prior():
    x, y = random_matrix(20, 4, seed=1), random_matrix(20, 4, seed=2)
    prior = orthogonal(20, 3)
    found = solve(x @ y.T, prior=prior)
    assert found.rank == 4
    assert np.allclose(found.matrix @ found.matrix.T, np.eye(20), atol=ROUNDING)
    # of all minimisers, none is nearer: turn the open directions and see
    U, _, Vt = np.linalg.svd(x @ y.T)
    nearest = np.linalg.norm(found.matrix - prior)
    for seed in range(20):
        other = U[:, :4] @ Vt[:4] + U[:, 4:] @ orthogonal(16, seed) @ Vt[4:]
        assert trace(other, x @ y.T) == pytest.approx(found.trace)
        assert np.linalg.norm(other - prior) >= nearest


@pytest.mark.parametrize("reflection", ["forbid", "force"])
def test_open_directions_take_the_sign_at_no_cost(reflection):
    x, y = random_matrix(6, 3, seed=1), random_matrix(6, 3, seed=2)
    found = solve(x @ y.T, reflection=reflection)
    assert np.linalg.det(found.matrix) == pytest.approx(-1 if reflection == "force" else 1)
    assert found.trace == pytest.approx(solve(x @ y.T).trace)


def test_a_zero_matrix_gives_the_prior():
    wide = solve(np.zeros((3, 5)), same_width=False)
    assert np.allclose(wide.matrix, np.eye(3, 5), atol=ROUNDING)
    assert solve(np.zeros((3, 3))).rank == 0


def test_the_rank_does_not_depend_on_the_size_of_the_numbers():
    M = np.diag([1.0, 1e-8, 0.0])
    assert [solve(M * f).rank for f in (1e-150, 1.0, 1e150)] == [2, 2, 2]


def test_a_rectangular_map_keeps_distances():
    M = random_matrix(3, 5)
    found = solve(M, same_width=False)
    assert np.allclose(found.matrix @ found.matrix.T, np.eye(3), atol=ROUNDING)
    assert found.reflected is None
    assert found.trace == pytest.approx(np.linalg.svd(M, compute_uv=False).sum())


@pytest.mark.parametrize("reflection", ["allow", "forbid", "force"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 4)])
def test_a_stack_is_solved_like_its_matrices(reflection, shape):
    if shape[0] != shape[1] and reflection != "allow":
        reflection = "allow"
    M = np.random.default_rng(0).normal(size=(30, *shape))
    M[3], M[4] = 0.0, np.outer(M[4, :, 0], M[4, 0])  # nothing, and one direction
    same = shape[0] == shape[1]
    R, traces, reflected = solve_many(
        M, reflection=reflection, prior=None, floors=np.zeros(30), same_width=same
    )
    for k in range(30):
        one = solve(M[k], reflection=reflection, same_width=same)
        assert np.allclose(R[k], one.matrix, atol=1e-12)
        assert traces[k] == pytest.approx(one.trace, abs=1e-13)
        assert reflected[k] == bool(one.reflected)


@pytest.mark.parametrize("reflection", ["allow", "forbid", "force"])
def test_angles_are_as_exact_as_a_decomposition_in_the_plane(reflection):
    M = np.random.default_rng(0).normal(size=(500, 2, 2))
    R, traces, reflected, sigma = solve_plane(M, reflection)
    assert np.allclose(R @ R.transpose(0, 2, 1), np.eye(2), atol=1e-15)
    assert np.allclose(sigma, np.linalg.svd(M, compute_uv=False), atol=3e-15)
    one = [solve(m, reflection=reflection) for m in M]
    assert np.allclose(traces, [r.trace for r in one], atol=4e-15)
    assert reflected.tolist() == [r.reflected for r in one]


def test_a_rotation_that_does_not_fit_into_memory_is_refused_before_any_work():
    with pytest.raises(TooLargeError, match=r"10,000,000 columns needs about .*PCA"):
        refuse_too_large(3, 10_000_000)
    refuse_too_large(300, 300)
