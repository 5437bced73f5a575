import json
import sys

import numpy as np
import pytest
from scipy import stats

from gnomon.errors import ParameterError, ParameterTypeError
from gnomon.pca import PCA
from gnomon.pca.bootstrap import match

BOOTSTRAP = sys.modules["gnomon.pca.bootstrap"]


def normal_rows(n, variances, seed, turn=None):
    """Normal rows with known variances along the axes, or along the rows of `turn`."""
    rows = np.random.default_rng(seed).normal(size=(n, len(variances))) * np.sqrt(variances)
    return rows if turn is None else rows @ turn


def rotation(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def test_intervals_cover_the_truth_as_often_as_they_say():
    variances, turn = np.array([9.0, 3.0, 1.0]), rotation(3)
    truth = turn.T * np.sqrt(variances)  # loadings (d, k)
    eigen_hits, loading_hits = np.zeros(2), np.zeros((3, 2))
    tables = 40
    for seed in range(tables):
        X = normal_rows(150, variances, seed, turn)
        model = PCA(2, solver="covariance", n_jobs=1).fit(X)
        found = model.bootstrap(X, n_boot=60, level=0.9)
        low, high = found.eigenvalues.T
        eigen_hits += (low <= variances[:2]) & (variances[:2] <= high)
        signs = np.sign((truth[:, :2] * model.loadings_).sum(axis=0))
        want = truth[:, :2] * signs
        loading_hits += (found.loadings[..., 0] <= want) & (want <= found.loadings[..., 1])
    # An interval that keeps its word stays below this once in a thousand times; one that covers
    # 70 % does so more often than not.
    least = stats.binom.ppf(0.001, tables, 0.9)
    assert (eigen_hits >= least).all(), eigen_hits
    assert (loading_hits >= least).all(), loading_hits
    # and they are not merely wide: at 90 %, some truths lie outside
    assert loading_hits.sum() + eigen_hits.sum() < 8 * tables


def test_a_lower_level_gives_intervals_inside_those_of_a_higher_one():
    X = normal_rows(80, [9.0, 3.0, 1.0], 0, rotation(3))
    model = PCA(2).fit(X)
    wide, narrow = (model.bootstrap(X, 50, level) for level in (0.95, 0.5))
    assert (wide.eigenvalues[:, 0] < narrow.eigenvalues[:, 0]).all()
    assert (wide.loadings[..., 1] > narrow.loadings[..., 1]).all()


def flipping():
    """A first component along (1, −1, 0): which of the two is larger decides its sign."""
    turn = np.array([[1.0, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    X = normal_rows(60, [9.0, 1.0, 0.3], 2, turn)
    return X, PCA(2).fit(X)


def test_signs_are_aligned_before_loadings_are_averaged(monkeypatch):
    X, model = flipping()
    strongest = np.abs(model.loadings_[:2, 0])
    aligned = model.bootstrap(X, 60)
    ratio = aligned.mean_loadings[:2, 0] / model.loadings_[:2, 0]
    np.testing.assert_allclose(ratio, 1, atol=0.05)

    def as_they_come(first, second):
        mine, theirs, signs, cosines = match(first, second)
        return mine, theirs, np.ones_like(signs), cosines

    monkeypatch.setattr(BOOTSTRAP, "match", as_they_come)
    careless = model.bootstrap(X, 60)
    assert (np.abs(careless.mean_loadings[:2, 0]) < 0.5 * strongest).all()
    assert (careless.loadings[:2, 0, 0] < 0).all()
    assert (careless.loadings[:2, 0, 1] > 0).all()


def test_components_that_change_places_are_matched(monkeypatch):
    X = normal_rows(100, [4.2, 4.0, 0.2], 1)
    model = PCA(2).fit(X)
    matched = model.bootstrap(X, 60)
    assert 0 < matched.swapped < 60

    def by_place(first, second):
        k = np.arange(len(first))
        pairs = (first * second).sum(axis=1)
        return k, k, np.where(pairs < 0, -1.0, 1.0), np.abs(pairs)

    monkeypatch.setattr(BOOTSTRAP, "match", by_place)
    careless = model.bootstrap(X, 60)
    assert (matched.agreement > careless.agreement).all()
    assert careless.swapped == 0


def test_a_well_separated_component_agrees_and_a_tied_one_does_not():
    X = normal_rows(200, [50.0, 1.0, 1.0, 1.0], 3)
    agreement = PCA(4).fit(X).bootstrap(X, 40).agreement
    assert agreement[0] > 0.99
    assert (agreement[1:] < 0.95).all()


def test_matching_finds_a_permutation_and_its_signs():
    W = rotation(5)
    order, signs = np.array([2, 0, 1, 4, 3]), np.array([1.0, -1, -1, 1, -1])
    mine, theirs, found, cosines = match(W, (W * signs[:, None])[order])
    np.testing.assert_array_equal(mine, np.arange(5))
    np.testing.assert_array_equal(order[theirs], np.arange(5))
    np.testing.assert_array_equal(found, signs)
    np.testing.assert_allclose(cosines, 1)


def test_a_turn_within_the_components_is_measured_not_undone():
    W = rotation(4)[:2]
    c, s = np.cos(0.5), np.sin(0.5)
    _, theirs, _, cosines = match(W, np.array([[c, s], [-s, c]]) @ W)
    np.testing.assert_array_equal(theirs, [0, 1])
    np.testing.assert_allclose(cosines, c)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads():
    X = normal_rows(9000, [5.0, 3.0, 1.0], 4, rotation(3))
    first, *others = (PCA(2, n_jobs=jobs).fit(X).bootstrap(X, 4) for jobs in (1, 2, 4))
    for other in others:
        np.testing.assert_array_equal(first.eigenvalues, other.eigenvalues)
        np.testing.assert_array_equal(first.loadings, other.loadings)
    another = PCA(2).fit(X).bootstrap(X, 4, random_state=1)
    assert (first.eigenvalues != another.eigenvalues).any()


def test_a_generator_of_the_model_is_not_drawn_from():
    X = normal_rows(40, [9.0, 4.0, 1.0, 0.5], 5)
    model = PCA(2, solver="krylov", random_state=np.random.default_rng(3)).fit(X)
    first, second = model.bootstrap(X, 4), model.bootstrap(X, 4)
    np.testing.assert_array_equal(first.loadings, second.loadings)


@pytest.mark.parametrize("solver", ["gram", "svd", "krylov"])
def test_every_solver_gives_the_same_intervals(solver):
    X = normal_rows(40, [9.0, 4.0, 1.0, 0.5], 5)
    want = PCA(2, solver="covariance").fit(X).bootstrap(X, 10)
    got = PCA(2, solver=solver, tol=1e-12).fit(X).bootstrap(X, 10)
    np.testing.assert_allclose(got.loadings, want.loadings, atol=1e-8)
    np.testing.assert_allclose(got.eigenvalues, want.eigenvalues, rtol=1e-8)


def test_replicates_are_fits_of_the_resampled_rows():
    X = normal_rows(30, [9.0, 4.0, 1.0], 6)
    model = PCA(1, standardize=True).fit(X)
    random = np.random.default_rng(7)
    draws = [random.integers(0, 30, 30) for _ in range(5)]
    variances = [PCA(1, standardize=True).fit(X[rows]).explained_variance_[0] for rows in draws]
    found = model.bootstrap(X, 5, random_state=7)
    assert found.mean_eigenvalues[0] == pytest.approx(np.mean(variances), rel=1e-10)
    np.testing.assert_allclose(found.eigenvalues[0], np.quantile(variances, [0.025, 0.975]))


def test_a_fraction_keeps_the_fitted_number_of_components_in_every_replicate():
    X = normal_rows(40, [5.0, 4.0, 3.0, 2.0, 1.0], 8)
    model = PCA(0.75).fit(X)
    assert model.bootstrap(X, 10).loadings.shape == (5, model.n_components_, 2)


def test_frequencies_of_one_change_nothing_and_others_are_drawn_as_often():
    X = normal_rows(40, [9.0, 4.0, 1.0], 9)
    plain, weighed = PCA(2).fit(X).bootstrap(X, 8), PCA(2).fit(X)
    np.testing.assert_array_equal(
        weighed.bootstrap(X, 8, sample_weight=np.ones(40)).loadings, plain.loadings
    )
    times = np.arange(40) % 3
    repeated = np.repeat(X, times, axis=0)
    got = PCA(2).fit(X, sample_weight=times).bootstrap(X, 8, sample_weight=times)
    want = PCA(2).fit(repeated).bootstrap(repeated, 8)
    np.testing.assert_allclose(got.eigenvalues, want.eigenvalues, rtol=1e-10)


def test_tables_with_fewer_distinct_rows_than_components_have_intervals():
    X = np.random.default_rng(10).normal(size=(8, 20))
    found = PCA().fit(X).bootstrap(X, 20)
    assert found.loadings.shape == (20, 8, 2)
    assert np.isfinite(found.loadings).all()
    assert found.eigenvalues[6, 0] == 0  # a resampled table hardly ever has seven directions


def test_two_rows_and_constant_columns_are_no_reason_to_warn():
    X = np.array([[0.0, 1.0], [1.0, 3.0]])
    assert PCA(1).fit(X).bootstrap(X, 10).eigenvalues[0, 0] == 0
    Y = np.column_stack([np.arange(6.0), [0, 0, 0, 0, 0, 1.0]])  # often constant when resampled
    assert np.isfinite(PCA(standardize=True).fit(Y).bootstrap(Y, 10).loadings).all()


@pytest.mark.parametrize("exponent", [600, -600])
def test_extreme_units_scale_the_intervals(exponent):
    X = normal_rows(40, [9.0, 4.0, 1.0], 11)
    want = PCA(2).fit(X).bootstrap(X, 10)
    far = np.ldexp(X, exponent)
    got = PCA(2).fit(far).bootstrap(far, 10)
    np.testing.assert_allclose(np.ldexp(got.loadings, -exponent), want.loadings, atol=1e-10)
    assert not np.isnan(got.eigenvalues).any()


def test_other_rows_and_bad_parameters_are_refused():
    X = normal_rows(40, [9.0, 4.0, 1.0], 12)
    model = PCA(2).fit(X)
    with pytest.raises(ParameterError, match="40 rows that the model was fitted on"):
        model.bootstrap(X[:30])
    with pytest.raises(ParameterError, match="n_boot"):
        model.bootstrap(X, n_boot=1)
    with pytest.raises(ParameterTypeError, match="n_boot"):
        model.bootstrap(X, n_boot=10.0)
    with pytest.raises(ParameterError, match="level"):
        model.bootstrap(X, level=95)
    with pytest.raises(ParameterError, match="whole numbers"):
        model.bootstrap(X, sample_weight=np.full(40, 0.5))


def test_the_result_is_readable_and_ready_for_json():
    X = normal_rows(40, [9.0, 4.0, 1.0], 13)
    found = PCA(2).fit(X).bootstrap(X, 10)
    assert "component 2" in str(found)
    assert "of 10" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["n_boot"] == 10
