import numpy as np
import pandas as pd
import pytest
from procrustes.sets import orthogonal, pair

from gnomon import Procrustes, compare, permutation_test
from gnomon.errors import DataError, DataWarning, ParameterError


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


def embeddings(n=60, dx=5, dy=8, seed=0):
    """The same directions in two spaces, with lengths that have nothing in common."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, dx))
    turned = np.column_stack([Z, np.zeros((n, dy - dx))]) @ orthogonal(dy)
    return tuple(T * rng.uniform(0.1, 10, size=(n, 1)) for T in (Z, turned))


def divided(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def test_cosine_compares_directions_and_no_lengths():
    X, Y = embeddings()
    found = compare(X, Y, metric="cosine")
    assert found.neighbor_overlap == 1
    assert found.disparity < 1e-20
    assert compare(X, Y).neighbor_overlap < 0.9
    assert (found.metric, dict(found.lines())["metric"][:6]) == ("cosine", "cosine")


def test_cosine_is_the_comparison_of_rows_divided_by_their_lengths():
    X, _ = embeddings()
    Y = X + np.random.default_rng(1).normal(size=X.shape)
    found, expected = compare(X, Y, metric="cosine"), compare(divided(X), divided(Y))
    for name, value in expected.to_dict().items():
        if name != "metric":
            assert getattr(found, name) == pytest.approx(value, rel=1e-12), name
    tests = permutation_test(X, Y, 9, metric="cosine"), permutation_test(divided(X), divided(Y), 9)
    assert tests[0].null == pytest.approx(tests[1].null, rel=1e-12)


def test_cosine_refuses_rows_without_a_direction_and_names_cells_that_are_no_numbers():
    X, Y = embeddings()
    zero, gap = X.copy(), X.copy()
    zero[7] = 0
    gap[3, 2] = np.nan
    with pytest.raises(DataError, match="row 7 is all 0 and has no direction"):
        compare(zero, Y, metric="cosine")
    with pytest.raises(DataError, match="at row 3, column 2"):
        compare(gap, Y, metric="cosine")
    with pytest.raises(ParameterError, match="`metric` must be"):
        compare(X, Y, metric="manhattan")


def test_rows_are_joined_by_ids_as_in_align():
    X, Y = pair(n=40, d=3)
    order = np.random.default_rng(0).permutation(40)
    ids = np.array([f"r{i}" for i in range(40)])
    found = compare(X[:35], Y[order], ids[:35], ids[order])
    assert found == compare(X[:35], Y[:35])
    assert found.ids == tuple(ids[:35])
    frames = pd.DataFrame(X[:35], index=ids[:35]), pd.DataFrame(Y[order], index=ids[order])
    assert compare(*frames) == found
    assert found.report(n_permutations=9).content.ids[1].tolist() == list(ids[:35])
    with pytest.raises(DataError, match="share no id"):
        compare(X, Y, range(40), ids)
    with pytest.raises(ParameterError, match="`ids_y` must be given"):
        compare(X, Y, range(40))
