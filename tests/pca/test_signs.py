import numpy as np
import pytest

from gnomon.pca.signs import NEAR, align_to, settle


def frame(k, d, seed=0):
    """k orthonormal rows."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0].T


def turn(k, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0]


def test_each_components_largest_loading_is_positive():
    V = frame(5, 12)
    settled = settle(V, ())
    largest = np.abs(settled).argmax(axis=1)
    assert (settled[np.arange(5), largest] > 0).all()
    assert np.array_equal(np.abs(settled), np.abs(V))


def test_signs_do_not_depend_on_the_signs_that_came_in():
    V = frame(5, 12)
    for flips in ([1, -1, 1, -1, -1], [-1] * 5):
        assert np.array_equal(settle(V * np.array(flips)[:, None], ()), settle(V, ()))


def test_near_ties_among_the_loadings_are_settled_by_the_first_of_them():
    # The second loading is larger by a rounding only, and of the other sign.
    v = np.array([[0.1, -0.7, 0.7 * (1 + NEAR / 2)]])
    assert settle(v, ())[0, 1] > 0
    assert settle(-v, ())[0, 1] > 0
    clear = np.array([[0.1, -0.7, 0.7 * (1 + 3 * NEAR)]])
    assert settle(clear, ())[0, 2] > 0


def test_rounding_cannot_flip_a_sign():
    rng = np.random.default_rng(0)
    v = np.array([[0.5, -0.5, 0.5, -0.5]])
    for _ in range(20):
        noisy = settle(v + 1e-12 * rng.standard_normal(v.shape), ())
        np.testing.assert_allclose(noisy, v, atol=1e-11)


def test_what_came_in_is_left_alone():
    V = -np.abs(frame(3, 6))
    before = V.copy()
    settle(V, ((1, 2),))
    align_to(V, frame(3, 6, seed=2), ((1, 2),))
    assert np.array_equal(V, before)


@pytest.mark.parametrize("group", [(1, 2), (2, 3, 4), (1, 2, 3, 4, 5)])
def test_a_tied_groups_basis_depends_on_its_span_only(group):
    V = frame(5, 12)
    rows = [i - 1 for i in group]
    expected = settle(V, (group,))
    for seed in range(5):
        turned = V.copy()
        turned[rows] = turn(len(rows), seed) @ V[rows]
        np.testing.assert_allclose(settle(turned, (group,)), expected, atol=1e-12)


def test_a_settled_basis_is_orthonormal_and_spans_the_same():
    V = frame(4, 9)
    settled = settle(V, ((2, 3, 4),))
    np.testing.assert_allclose(settled @ settled.T, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(settled[1:].T @ settled[1:], V[1:].T @ V[1:], atol=1e-13)
    np.testing.assert_allclose(np.abs(settled[0]), np.abs(V[0]), atol=0)


def test_a_tied_plane_of_two_axes_gives_the_axes():
    V = np.zeros((2, 6))
    V[:, [1, 4]] = turn(2)
    np.testing.assert_allclose(settle(V, ((1, 2),)), np.eye(6)[[1, 4]], atol=1e-14)


def test_the_whole_space_tied_gives_the_axes_in_order():
    np.testing.assert_allclose(settle(turn(5), ((1, 2, 3, 4, 5),)), np.eye(5), atol=1e-13)


def test_a_group_cut_by_the_number_kept_is_not_rebuilt():
    # What was not kept is part of the space: no basis of the rest is better than another.
    V = frame(3, 8)
    assert np.array_equal(np.abs(settle(V, ((3, 4),))), np.abs(V))


def test_several_groups_are_settled_each_on_its_own():
    V = frame(5, 10)
    groups = ((1, 2), (4, 5))
    turned = V.copy()
    turned[:2], turned[3:] = turn(2) @ V[:2], turn(2, seed=3) @ V[3:]
    np.testing.assert_allclose(settle(turned, groups), settle(V, groups), atol=1e-12)


def test_aligning_takes_the_former_signs():
    former = frame(4, 9)
    later = former * np.array([1, -1, -1, 1])[:, None]
    assert np.array_equal(align_to(later, former, ()), former)


def test_aligning_turns_inside_a_tied_group_only():
    former = frame(4, 9)
    later = former.copy()
    later[1:3] = turn(2) @ former[1:3]
    later[3] *= -1
    np.testing.assert_allclose(align_to(later, former, ((2, 3),)), former, atol=1e-13)
    apart = align_to(later, former, ())
    np.testing.assert_allclose(np.abs(apart), np.abs(later), atol=0)


def test_aligning_gives_an_orthonormal_frame_of_the_same_span():
    former, later = frame(4, 9), frame(4, 9, seed=5)
    aligned = align_to(later, former, ((1, 2, 3),))
    np.testing.assert_allclose(aligned @ aligned.T, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(aligned[:3].T @ aligned[:3], later[:3].T @ later[:3], atol=1e-13)


@pytest.mark.parametrize("kept", [2, 6])
def test_aligning_to_a_model_with_fewer_or_more_components_aligns_those_in_common(kept):
    former = frame(6, 9)
    later = -former[:4]
    aligned = align_to(later, former[:kept], ((3, 4),))
    k = min(kept, 4)
    np.testing.assert_allclose(aligned[:k], former[:k], atol=1e-13)
    assert np.array_equal(aligned[k:], later[k:])
