"""Repulsion from a tree, against the exact sum in float64."""

import numpy as np
import pytest

from gnomon.tsne.forces import ROUGH_ANGLE
from gnomon.tsne.reference import field
from gnomon.tsne.tree import ANGLE, LEAF, tree_push

rng = np.random.default_rng(0)


def grouped(n, size=20.0, groups=12):
    """Points in groups, as on a map."""
    centres = rng.standard_normal((groups, 3)) * size
    return (centres[rng.integers(groups, size=n)] + rng.standard_normal((n, 3)) * size / 8).astype(
        np.float32
    )


def errors(Y, dof=1.0, charges=None, angle=ANGLE):
    """Of the force, relative to its size, and of Z."""
    found, phi = tree_push(Y, charges, dof, angle=angle)
    ones = np.ones(len(Y)) if charges is None else charges.astype(float)
    exact, push = field(Y, dof, charges=ones)
    expected = -(dof + 1) / dof * push
    return (
        np.linalg.norm(found - expected) / np.linalg.norm(expected),
        abs((phi.astype(float) @ ones) / (exact @ ones) - 1),
    )


@pytest.mark.parametrize("dof", [0.2, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("size", [1e-4, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("charged", [False, True])
def test_the_force_is_within_a_few_per_cent_at_any_size(dof, size, charged):
    Y = grouped(3000, size)
    charges = rng.uniform(1, 5, len(Y)).astype(np.float32) if charged else None
    force, total = errors(Y, dof, charges)
    assert force < 0.03  # the mesh is held to 0.035
    assert total < 0.01


def test_a_smaller_angle_is_more_exact_and_none_is_the_exact_sum():
    Y = grouped(3000)
    found = [errors(Y, angle=angle)[0] for angle in (ROUGH_ANGLE, ANGLE, 0.25, 0.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] < 0.035  # rough forces are within the mesh's tolerance, too
    assert found[-1] < 1e-5


@pytest.mark.parametrize("n", [1, 2, LEAF - 1, LEAF, LEAF + 1, 8 * LEAF, 8 * LEAF + 1, 999])
def test_any_number_of_points_is_summed(n):
    Y = grouped(n)
    gradient, phi = tree_push(Y, None, 1.0, angle=0.0)
    exact, push = field(Y)
    np.testing.assert_allclose(phi, exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, -2 * push, rtol=1e-3, atol=1e-5 * max(1, n))


def test_points_in_one_place_and_on_a_line_push_as_they_should():
    same = np.ones((100, 3), np.float32)
    gradient, phi = tree_push(same, None, 1.0)
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    np.testing.assert_allclose(phi, 99, rtol=1e-6)
    line = np.zeros((2000, 3), np.float32)
    line[:, 1] = np.linspace(0, 50, 2000)
    gradient, _ = tree_push(line, None, 1.0)
    expected = -2 * field(line)[1]  # between the ends, the push of both sides cancels
    assert np.abs(gradient - expected).max() < 0.1 * np.abs(expected).max()


def test_a_weight_counts_as_so_many_points():
    Y = grouped(1000)
    weights = rng.integers(1, 4, len(Y))
    gradient, phi = tree_push(Y, weights.astype(np.float32), 1.0)
    copies, _ = tree_push(np.repeat(Y, weights, axis=0), None, 1.0)
    first = np.cumsum(weights) - weights
    away = np.linalg.norm(gradient - copies[first]) / np.linalg.norm(copies[first])
    assert away < 0.01  # two trees over the same charges
    assert phi.shape == (1000,)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(n_jobs):
    Y = grouped(5000)
    for one, several in zip(
        tree_push(Y, None, 1.0, 1), tree_push(Y, None, 1.0, n_jobs), strict=True
    ):
        assert one.tobytes() == several.tobytes()


def test_the_order_of_the_points_matters_only_for_rounding():
    Y = grouped(3000)
    order = rng.permutation(len(Y))
    here, there = tree_push(Y, None, 1.0)[0], tree_push(Y[order], None, 1.0)[0]
    assert np.linalg.norm(here[order] - there) < 1e-4 * np.linalg.norm(here)
