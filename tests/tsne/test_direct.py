import numpy as np
import pytest

from gnomon.tsne.direct import AT_ONCE, TILE, direct_push
from gnomon.tsne.reference import field

rng = np.random.default_rng(0)
DIMENSIONS = [1, 2, 3]


def points(n, dimensions, size=3.0):
    return (rng.standard_normal((n, dimensions)) * size).astype(np.float32)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [0.1, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("size", [1e-4, 3.0, 300.0])
@pytest.mark.parametrize("charged", [False, True])
def test_the_direct_sum_is_the_exact_one_up_to_rounding(dimensions, dof, size, charged):
    Y = points(500, dimensions, size)
    charges = rng.uniform(1, 5, 500).astype(np.float32) if charged else None
    ones = np.ones(500) if charges is None else charges.astype(float)
    slopes, total = direct_push(Y, charges, dof)
    phi, push = field(Y, dof, charges=ones)
    expected = -(dof + 1) / dof * push
    assert abs(total / (phi @ ones) - 1) < 1e-6
    assert np.linalg.norm(slopes - expected) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [1.0, 2.0])
@pytest.mark.parametrize("n", [1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE, 3 * TILE + 7, 6 * TILE])
def test_every_pair_is_met_once_however_many_tiles_there_are(n, dimensions, dof):
    """One block or several, an odd number of tiles or an even one, the last one full or not."""
    Y = points(n, dimensions)
    slopes, total = direct_push(Y, None, dof)
    phi, push = field(Y, dof)
    expected = -(dof + 1) / dof * push
    np.testing.assert_allclose(total, phi.sum(), rtol=1e-6)
    assert np.linalg.norm(slopes - expected) <= 1e-5 * np.linalg.norm(expected)


def test_a_nearly_gaussian_kernel_is_still_right():
    """(1 + d/α)^(−(α+1)/2) magnifies roundings α/2 times; 10,000 is the largest α allowed."""
    Y = points(300, 2)
    slopes = direct_push(Y, None, 1e4)[0]
    expected = -(1 + 1e-4) * field(Y, 1e4)[1]
    assert np.linalg.norm(slopes - expected) < 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("dof", [1.0, 2.0])
def test_a_point_does_not_push_itself_nor_those_in_its_place(dof):
    Y = np.array([[1.0, 2.0], [1.0, 2.0], [4.0, 2.0]], np.float32)
    slopes, total = direct_push(Y, None, dof)
    far = (1 + 9 / dof) ** (-(dof + 1) / 2)
    np.testing.assert_allclose(total, 2 + 4 * far, rtol=1e-6)
    np.testing.assert_allclose(slopes[:, 1], 0)
    np.testing.assert_allclose(slopes[:2, 0], -slopes[2, 0] / 2, rtol=1e-6)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [1.0, 2.0])
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(dimensions, dof, n_jobs):
    Y, charges = points(3500, dimensions), rng.uniform(1, 5, 3500).astype(np.float32)
    assert len(Y) > AT_ONCE
    one, many = direct_push(Y, charges, dof, n_jobs=1), direct_push(Y, charges, dof, n_jobs)
    assert np.array_equal(one[0], many[0])
    assert one[1] == many[1]
