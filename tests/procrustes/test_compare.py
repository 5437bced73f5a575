import numpy as np
import pytest
from procrustes.sets import orthogonal, pair

from gnomon import Procrustes, compare
from gnomon.errors import DataError, DataWarning


def centred(Z):
    return Z - Z.mean(axis=0)


def hsic_unbiased(K, L):
    """The estimate of Song et al. from n × n kernels, as it is written."""
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    one = np.ones(n)
    total = np.trace(K @ L) + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
    return (total - 2 * (one @ K @ L @ one) / (n - 2)) / (n * (n - 3))


@pytest.mark.parametrize("d", [2, 15])
def test_every_number_is_what_its_definition_says(d):
    X, Y = pair(n=50, d=d, scale=3.0)
    Y = Y[:, : d - 1]
    found = compare(X, Y, n_neighbors=5)
    model = Procrustes().fit(X, Y)
    x, y = centred(X), centred(Y)
    assert found.disparity == pytest.approx(model.disparity_)
    assert found.rmsd == pytest.approx(model.rmsd_)
    assert np.cos(found.angular_distance) == pytest.approx(found.correlation)
    K, L = x @ x.T, y @ y.T
    assert found.rv == pytest.approx(np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L)))
    K, L = X @ X.T, Y @ Y.T  # the unbiased estimate does not ask for centred kernels
    expected = hsic_unbiased(K, L) / np.sqrt(hsic_unbiased(K, K) * hsic_unbiased(L, L))
    assert found.unbiased_cka == pytest.approx(expected)
    near = [np.argsort(((Z[:, None] - Z) ** 2).sum(-1), axis=1)[:, 1:6] for Z in (X, Y)]
    shared = [len(set(a) & set(b)) / 5 for a, b in zip(*near, strict=True)]
    assert found.neighbor_overlap == pytest.approx(np.mean(shared))


def test_everything_but_the_units_is_symmetric():
    X, Y = pair(n=50, d=3, scale=2.0)
    there, back = compare(X, Y).to_dict(), compare(Y, X).to_dict()
    for name in set(there):
        assert there[name] == pytest.approx(back[name]), name


@pytest.mark.parametrize("factor", [1.0, 1e200, 1e-200])
def test_a_turned_and_scaled_copy_is_the_same(factor):
    X = np.random.default_rng(0).normal(size=(50, 4))
    found = compare(X * factor, X @ orthogonal(4) * (2 * factor) + factor)
    assert found.disparity < 1e-28
    assert found.angular_distance < 1e-14  # arccos of a rounded 1 would be 1e-8
    assert found.rv == pytest.approx(1, abs=1e-12)
    assert found.unbiased_cka == pytest.approx(1, abs=1e-12)
    assert found.neighbor_overlap == 1


def test_a_small_angle_keeps_its_digits():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    found = compare(X, X + 1e-6 * random.normal(size=X.shape))
    # sin θ = √disparity; arccos of a correlation so near to 1 would be off by 1e-4
    assert found.angular_distance == pytest.approx(np.sqrt(found.disparity), rel=1e-9)


def test_sets_with_nothing_in_common_look_alike_to_rv_but_not_to_the_unbiased_alignment():
    random = np.random.default_rng(0)
    with pytest.warns(DataWarning, match="60 shared rows in 100 dimensions"):
        found = compare(random.normal(size=(60, 100)), random.normal(size=(60, 100)))
    assert found.rv > 0.5
    assert abs(found.unbiased_cka) < 0.1


def test_few_rows_and_sets_without_shape_are_handled():
    X, Y = pair(n=3, d=1)
    found = compare(X, Y)
    assert found.n_neighbors == 1
    assert np.isnan(found.unbiased_cka)
    with pytest.raises(DataError, match="Y has norm 0"):
        compare(X, np.zeros((3, 1)))
    with pytest.raises(DataError, match="1 shared row is too few"):
        compare(X[:1], Y[:1])
    with pytest.raises(ValueError, match="`n_neighbors` must be an integer ≥ 1"):
        compare(X, Y, n_neighbors=0)


def test_a_comparison_reads_as_sentences_and_does_not_depend_on_threads():
    X, Y = pair(n=3000, d=3)
    found = [compare(X, Y, n_jobs=n) for n in (1, 2, 4)]
    assert found[0] == found[1] == found[2]
    assert "Procrustes correlation" in str(found[0])
