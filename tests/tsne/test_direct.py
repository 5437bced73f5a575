import numpy as np
import pytest

from gnomon.tsne.direct import direct_field
from gnomon.tsne.exact import field

rng = np.random.default_rng(0)
DIMENSIONS = [1, 2, 3]


def points(n, dimensions, size=3.0):
    return (rng.standard_normal((n, dimensions)) * size).astype(np.float32)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [0.1, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("size", [1e-4, 3.0, 300.0])
def test_the_direct_sum_is_the_exact_one_up_to_rounding(dimensions, dof, size):
    Y = points(500, dimensions, size)
    charges = rng.uniform(1, 5, 500)
    phi, slopes = direct_field(Y, charges.astype(np.float32), dof)
    exact, push = field(Y, dof, charges=charges)
    expected = -(dof + 1) / dof * push
    # The point's own charge, up to 5, is in a sum of 500 float32 numbers until its end.
    np.testing.assert_allclose(phi, exact, rtol=1e-5, atol=5e-5)
    assert np.linalg.norm(slopes - expected) < 1e-5 * np.linalg.norm(expected)


def test_a_nearly_gaussian_kernel_is_still_right():
    """(1 + d/α)^(−(α+1)/2) magnifies roundings α/2 times; 10,000 is the largest α allowed."""
    Y = points(300, 2)
    slopes = direct_field(Y, np.ones(300, np.float32), 1e4)[1]
    expected = -(1 + 1e-4) * field(Y, 1e4)[1]
    assert np.linalg.norm(slopes - expected) < 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("dof", [1.0, 2.0])
def test_a_point_does_not_push_itself_nor_those_in_its_place(dof):
    Y = np.array([[1.0, 2.0], [1.0, 2.0], [4.0, 2.0]], np.float32)
    phi, slopes = direct_field(Y, np.ones(3, np.float32), dof)
    far = (1 + 9 / dof) ** (-(dof + 1) / 2)
    np.testing.assert_allclose(phi, [1 + far, 1 + far, 2 * far], rtol=1e-6)
    np.testing.assert_allclose(slopes[:, 1], 0)
    np.testing.assert_allclose(slopes[:2, 0], -slopes[2, 0] / 2, rtol=1e-6)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [1.0, 2.0])
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(dimensions, dof, n_jobs):
    Y, charges = points(700, dimensions), np.ones(700, np.float32)
    one, many = direct_field(Y, charges, dof, n_jobs=1), direct_field(Y, charges, dof, n_jobs)
    assert np.array_equal(one[0], many[0])
    assert np.array_equal(one[1], many[1])
