import numpy as np
import pytest
import scipy.linalg

from gnomon.pca.solvers.eigen import Eigen

EPS = np.finfo(np.float64).eps


def symmetric(values, seed=0):
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))[0]
    A = (frame * values) @ frame.T
    return (A + A.T) / 2


def assert_good(A, eigen, k):
    """As LAPACK's own tests: residual and orthogonality below 60 · d · eps · ‖A‖."""
    d = len(A)
    V, top = eigen.vectors(k), max(float(np.abs(eigen.values).max()), 1e-300)
    assert V.shape == (d, k)
    residual = np.abs((A @ V - V * eigen.values[:k]) / top).max()
    assert residual < 60 * d * EPS
    assert np.abs(V.T @ V - np.eye(k)).max() < 60 * d * EPS


SPECTRA = {
    "decaying": np.geomspace(1, 1e-12, 60),
    "flat": np.linspace(1, 0.9, 60),
    "repeated": np.r_[np.full(20, 3.0), np.ones(40)],
    "rank-deficient": np.r_[np.linspace(5, 1, 7), np.zeros(53)],
    "all the same": np.ones(60),
    "with negative values": np.linspace(4, -1, 60),
}


@pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA)
@pytest.mark.parametrize("k", [1, 5, 30, 31, 60])  # beyond half, LAPACK's other road is taken
def test_eigenpairs_are_those_of_numpy(values, k):
    A = symmetric(values)
    eigen = Eigen(A)
    expected = np.linalg.eigvalsh(A)[::-1]
    np.testing.assert_allclose(eigen.values, expected, atol=1e-14 * np.abs(values).max())
    assert_good(A, eigen, k)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_small_matrices_are_solved_too(d):
    A = symmetric(np.arange(1.0, d + 1))
    eigen = Eigen(A)
    np.testing.assert_allclose(eigen.values, np.arange(d, 0.0, -1), rtol=1e-14)
    for k in range(1, d + 1):
        assert_good(A, eigen, k)


@pytest.mark.parametrize("d", [1, 2, 3, 20])
def test_zeros_have_zero_eigenvalues_and_an_orthonormal_frame(d):
    eigen = Eigen(np.zeros((d, d)))
    assert (eigen.values == 0).all()
    assert_good(np.zeros((d, d)), eigen, d)
    assert_good(np.zeros((d, d)), eigen, 1)


def test_diagonal_matrices_give_the_axes_in_order():
    values = np.array([3.0, 9.0, 1.0, 5.0, 7.0])
    eigen = Eigen(np.diag(values))
    assert np.array_equal(eigen.values, np.sort(values)[::-1])
    np.testing.assert_allclose(np.abs(eigen.vectors(2)), np.eye(5)[:, [1, 4]], atol=1e-15)


def test_vectors_do_not_depend_on_how_many_were_asked_for_before():
    A = symmetric(np.geomspace(1, 0.01, 40))
    eigen = Eigen(A)
    first = eigen.vectors(5)
    eigen.vectors(12)
    assert np.array_equal(eigen.vectors(5), first)
    assert np.array_equal(Eigen(A).vectors(5), first)
    np.testing.assert_allclose(np.abs(eigen.vectors(12)[:, :5]), np.abs(first), atol=1e-13)


def test_both_roads_lead_to_the_same_vectors():
    A = symmetric(np.geomspace(1, 0.01, 40))
    eigen = Eigen(A)
    few, many = eigen.vectors(10), eigen.vectors(35)[:, :10]
    np.testing.assert_allclose(np.abs((few * many).sum(axis=0)), 1, atol=1e-13)


@pytest.mark.parametrize("power", [-900, -500, -2, 2, 500, 900])
@pytest.mark.parametrize("d", [2, 30])
def test_other_units_change_no_bit_of_the_vectors(power, d):
    A = symmetric(np.geomspace(1, 0.01, d))
    plain, scaled = Eigen(A), Eigen(np.ldexp(A, power))
    assert np.array_equal(scaled.values, np.ldexp(plain.values, power))
    for k in (1, d):
        assert np.array_equal(scaled.vectors(k), plain.vectors(k))


def test_the_matrix_is_left_alone():
    A = symmetric(np.geomspace(1, 0.01, 30))
    before = A.copy()
    eigen = Eigen(A)
    eigen.vectors(3)
    eigen.vectors(30)
    assert np.array_equal(A, before)


def test_small_eigenvalues_are_as_good_as_scipys():
    values = np.geomspace(1, 1e-10, 50)
    A = symmetric(values)
    ours = np.abs(Eigen(A).values - values).max()
    theirs = np.abs(scipy.linalg.eigh(A, eigvals_only=True)[::-1] - values).max()
    assert ours < 4 * theirs + 1e-16


def test_vectors_are_c_ordered_so_that_bits_downstream_do_not_depend_on_the_road():
    eigen = Eigen(symmetric(np.geomspace(1, 0.01, 30)))
    assert eigen.vectors(4).flags.c_contiguous
    assert eigen.vectors(29).flags.c_contiguous


def test_where_the_selection_of_eigenvectors_gives_up_all_are_computed(monkeypatch):
    def give_up(*_, **__):
        raise np.linalg.LinAlgError("stemr (eigh_tridiagonal) did not converge (LAPACK info=11)")

    monkeypatch.setattr("gnomon.pca.solvers.eigen.eigh_tridiagonal", give_up)
    A = symmetric(np.geomspace(1, 1e-12, 60))
    assert_good(A, Eigen(A), 5)
