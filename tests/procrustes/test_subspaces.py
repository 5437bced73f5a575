import numpy as np
import pytest
from procrustes.sets import orthogonal
from scipy.linalg import subspace_angles

from gnomon import PCA, align_subspaces, principal_angles
from gnomon.errors import DataError, ParameterError


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (5, 2), (4, 4)])
def test_angles_are_those_of_scipy_smallest_first(shape):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(shape[0], 9)), random.normal(size=(shape[1], 9))
    assert np.allclose(principal_angles(a, b), subspace_angles(a.T, b.T)[::-1], atol=1e-14)
    assert np.allclose(principal_angles(b, a), principal_angles(a, b), atol=1e-14)


@pytest.mark.parametrize("angle", [1e-200, 1e-12, 1e-8, 1e-3, 1.0, np.pi / 2 - 1e-9, np.pi / 2])
def test_small_and_large_angles_keep_their_digits(angle):
    a = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    b = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    (found,) = principal_angles(a, b)
    assert found == pytest.approx(angle, rel=1e-7, abs=1e-16)
    assert np.pi / 2 - found == pytest.approx(np.pi / 2 - angle, rel=1e-6, abs=1e-15)


def test_neither_length_nor_basis_of_the_rows_matters():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 6)), random.normal(size=(3, 6))
    expected = principal_angles(a, b)
    assert np.allclose(principal_angles(1e200 * a, 1e-200 * b), expected)
    assert np.allclose(principal_angles(random.normal(size=(2, 2)) @ a, b), expected)
    assert np.allclose(principal_angles(np.r_[a, a[:1] + a[1:]], b), expected)  # rank 2


def domains(seed=0):
    """The same two factors seen through two instruments, far apart."""
    random = np.random.default_rng(seed)
    factors = random.normal(size=(400, 2)) * [3, 1]
    frame = orthogonal(8, 1)[:2]
    skewed = frame @ orthogonal(8, 2) * 0.3 + frame
    turned = np.linalg.qr(skewed.T)[0].T
    turned *= np.sign(np.sum(turned * skewed, axis=1, keepdims=True))
    noise = 0.05 * random.normal(size=(2, 400, 8))
    return factors @ turned + noise[0] + 10, factors @ frame + noise[1] - 5


def test_models_are_compared_by_their_components():
    source, target = domains()
    a, b = PCA(2).fit(source), PCA(2).fit(target)
    assert np.allclose(principal_angles(a, b), principal_angles(a.components_, b.components_))
    assert principal_angles(a, a).max() < 1e-14


@pytest.mark.parametrize("keep_lengths", [False, True])
def test_source_features_land_in_the_frame_of_the_target(keep_lengths):
    source, target = domains()
    a, b = PCA(2).fit(source), PCA(2).fit(target)
    found = align_subspaces(a, b, keep_lengths=keep_lengths)
    moved, there = found.transform(source), b.transform(target)
    assert moved.shape == (400, 2)
    for k in range(2):  # the same factors: coordinates that go together
        assert np.corrcoef(moved[:, k], there[:, k])[0, 1] > 0.95
    if keep_lengths:
        assert np.allclose(
            np.linalg.norm(moved, axis=1), np.linalg.norm(a.transform(source), axis=1)
        )
    else:
        assert np.allclose(found.matrix, a.components_ @ b.components_.T)
        cosines = np.linalg.svd(found.matrix, compute_uv=False)
        assert np.allclose(np.cos(found.angles), cosines)


def test_arrays_serve_as_frames():
    source, target = domains()
    a, b = PCA(2).fit(source), PCA(2).fit(target)
    found = align_subspaces(a.components_, b)
    expected = align_subspaces(a, b).transform(source)
    assert np.allclose(found.transform(source - a.mean_), expected)
    assert "source directions" in str(found)
    assert set(found.to_dict()) == {"matrix", "angles", "keep_lengths"}


def test_wrong_frames_are_refused():
    source, target = domains()
    a, b = PCA(3).fit(source), PCA(2).fit(target)
    with pytest.raises(DataError, match="same columns; got 8 and 5"):
        principal_angles(a, np.eye(5))
    with pytest.raises(DataError, match="`a` spans nothing"):
        principal_angles(np.zeros((2, 3)), np.eye(3))
    with pytest.raises(DataError, match=r"^b holds 1 missing value"):
        principal_angles(np.eye(2), [[np.nan, 1.0]])
    with pytest.raises(ParameterError, match="`source` must have orthonormal rows"):
        align_subspaces(2 * a.components_, b)
    with pytest.raises(ParameterError, match=r"`target` must have at least as many directions.*3"):
        align_subspaces(a, b, keep_lengths=True)
    with pytest.raises(ParameterError, match="`X` must have 8 columns"):
        align_subspaces(a.components_, b).transform(np.eye(3))
