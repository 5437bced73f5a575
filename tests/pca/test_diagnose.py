import numpy as np
import pytest
import scipy.sparse as sp
from pca.tables import FACTOMINER, assert_same_columns, correlated, factominer
from references.tables import read

from gnomon.errors import MissingValueError
from gnomon.pca import PCA


@pytest.mark.parametrize("name", FACTOMINER)
def test_columns_agree_with_factominer(name):
    _, model = factominer(name)
    table = {what: read(f"factominer_{name}_var_{what}")[2] for what in ("coord", "cor")}
    assert_same_columns(model.loadings_, table["coord"])
    assert_same_columns(model.correlations(), table["cor"])
    for what, got in (("cos2", model.cos2()), ("contrib", model.contributions())):
        assert_same_columns(got, read(f"factominer_{name}_var_{what}")[2], signed=True)


@pytest.mark.parametrize("name", FACTOMINER)
def test_rows_agree_with_factominer(name):
    X, model = factominer(name)
    assert_same_columns(model.transform(X), read(f"factominer_{name}_ind_coord")[2])
    for what, got in (
        ("cos2", model.cos2(X)),
        ("contrib", model.contributions(X)),
        ("dist", model.distances(X)[:, None]),
    ):
        assert_same_columns(got, read(f"factominer_{name}_ind_{what}")[2], signed=True)


@pytest.mark.parametrize("name", FACTOMINER)
def test_eigenvalues_agree_with_factominer(name):
    _, model = factominer(name)
    eig = np.column_stack(
        [
            model.explained_variance_,
            100 * model.explained_variance_ratio_,
            100 * np.cumsum(model.explained_variance_ratio_),
        ]
    )
    assert_same_columns(eig, read(f"factominer_{name}_eig")[2], signed=True)


@pytest.mark.parametrize(
    ("name", "table", "standardize"),
    [
        ("iris_unscaled", "iris", False),
        ("usarrests_scaled", "usarrests", True),
        ("usarrests_unscaled", "usarrests", False),
    ],
)
def test_components_and_scores_agree_with_prcomp(name, table, standardize):
    X = read(table)[2][:, :4].astype(float)
    model = PCA(standardize=standardize).fit(X)
    assert_same_columns(model.components_.T, read(f"prcomp_{name}_rotation")[2])
    assert_same_columns(model.transform(X), read(f"prcomp_{name}_scores")[2])
    sdev = read(f"prcomp_{name}_importance")[2][:, :1]
    assert_same_columns(np.sqrt(model.explained_variance_)[:, None], sdev, signed=True)
    centre = np.column_stack([model.mean_, model.scale_])
    assert_same_columns(centre, read(f"prcomp_{name}_center_scale")[2], signed=True)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "krylov", "deflation"])
def test_contributions_of_training_rows_and_of_columns_add_up_to_100(solver, ddof):
    X = correlated()
    model = PCA(3, solver=solver, ddof=ddof, tol=1e-12).fit(X)
    np.testing.assert_allclose(model.contributions(X).sum(axis=0), 100, rtol=1e-10)
    np.testing.assert_allclose(model.contributions().sum(axis=0), 100, rtol=1e-10)


@pytest.mark.parametrize("solver", ["covariance", "gram"])
def test_weighted_contributions_add_up_to_100_with_the_weights_of_the_fit(solver):
    X, weights = correlated(), np.random.default_rng(1).uniform(0.5, 3.0, 60)
    model = PCA(3, solver=solver).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.contributions(X, weights).sum(axis=0), 100, rtol=1e-10)


def test_cos2_of_rows_is_of_the_whole_distance_not_of_the_kept_components():
    X = correlated()
    all_of_it, two = PCA().fit(X), PCA(2).fit(X)
    np.testing.assert_allclose(all_of_it.cos2(X).sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose(two.cos2(X), all_of_it.cos2(X)[:, :2], rtol=1e-8)


def test_distances_are_euclidean_in_standardised_and_weighted_columns():
    X, w = correlated(), np.array([1.0, 2, 3, 4, 5, 6])
    model = PCA(2, standardize=True, feature_weight=w).fit(X)
    working = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1) * np.sqrt(w)
    np.testing.assert_allclose(model.distances(X), np.linalg.norm(working, axis=1), rtol=1e-12)


def test_correlations_are_those_of_the_columns_with_the_scores():
    X, w = correlated(), np.array([1.0, 2, 3, 4, 5, 6])
    for options in ({}, {"standardize": True}, {"feature_weight": w}, {"whiten": True}):
        model = PCA(3, **options).fit(X)
        want = np.corrcoef(X.T, model.transform(X).T)[:6, 6:]
        np.testing.assert_allclose(model.correlations(), want, atol=1e-12)


@pytest.mark.parametrize("solver", ["gram", "svd", "krylov"])
def test_correlations_of_wide_tables_need_no_covariance(solver):
    X = correlated(n=20, d=50)
    model = PCA(4, solver=solver, tol=1e-12).fit(X)
    want = np.corrcoef(X.T, model.transform(X).T)[:50, 50:]
    np.testing.assert_allclose(model.correlations(), want, atol=1e-10)


def test_a_row_has_the_same_bits_alone_and_among_others():
    X = correlated(n=700)
    model = PCA(3).fit(X)
    for method in ("contributions", "cos2", "distances", "prediction_error", "score_samples"):
        ask = getattr(model, method)
        np.testing.assert_array_equal(ask(X)[300:310], ask(X[300:310]))


def everything(model, X):
    labels = np.arange(X.shape[0]) % 3
    groups = model.categories(X, labels)
    return {
        "contributions": model.contributions(X),
        "cos2": model.cos2(X),
        "hotelling_t2": model.hotelling_t2(X),
        "correlate": model.correlate(X, labels.astype(float)),
        "group cos2": groups.cos2,
        "v_test": groups.v_test,
        "distances": model.distances(X),
        "prediction_error": model.prediction_error(X),
        "coordinates": groups.coordinates,
    }


WITHOUT_UNITS = ("contributions", "cos2", "hotelling_t2", "correlate", "group cos2", "v_test")


@pytest.mark.parametrize("other", ["whitened", "sparse", "fortran", "streamed", "float32"])
def test_the_form_of_the_table_and_whitening_change_no_diagnostic(other):
    X = correlated()
    want = everything(PCA(3).fit(X), X)
    if other == "streamed":
        got = everything(PCA(3).partial_fit(X[:20]).partial_fit(X[20:]), X)
    else:
        table = {
            "whitened": X,
            "sparse": sp.csr_array(X),
            "fortran": np.asfortranarray(X),
            "float32": X.astype(np.float32),
        }[other]
        got = everything(PCA(3, whiten=other == "whitened").fit(table), table)
    # float32 holds 7 digits, and residuals are a small part of what they are left of
    tolerance = 1e-4 if other == "float32" else 1e-10
    for name, value in want.items():
        np.testing.assert_allclose(
            got[name], value, atol=tolerance * np.abs(value).max(), rtol=0, err_msg=name
        )


@pytest.mark.parametrize("exponent", [664, -664, 1000, -900])
def test_units_of_extreme_size_change_no_share(exponent):
    X = correlated()
    want = everything(PCA(3).fit(X), X)
    got = everything(PCA(3).fit(np.ldexp(X, exponent)), np.ldexp(X, exponent))
    for name in WITHOUT_UNITS:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(np.ldexp(got["distances"], -exponent), want["distances"], rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_directions_without_variance_give_zeros_not_nan(standardize):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3)) @ random.normal(size=(3, 8))
    model = PCA(standardize=standardize).fit(X)
    assert model.rank_ == 3
    found = everything(model, X)
    for name, value in found.items():
        assert np.isfinite(value).all(), name
    np.testing.assert_array_equal(found["contributions"][:, 3:], 0)
    np.testing.assert_array_equal(found["v_test"][:, 3:], 0)
    np.testing.assert_array_equal(found["correlate"][:, 3:], 0)
    np.testing.assert_allclose(found["contributions"][:, :3].sum(axis=0), 100)
    assert np.isfinite(model.correlations()).all()
    np.testing.assert_array_equal(model.correlations()[:, 3:], 0)


def test_a_row_at_the_mean_has_no_direction():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0], [2.0, 1.0], [-2.0, -1.0]])
    np.testing.assert_array_equal(PCA().fit(X).cos2(X)[0], 0)


def test_a_constant_column_correlates_with_nothing():
    X = np.column_stack([correlated(d=3), np.full(60, 0.1)])
    model = PCA(2).fit(X)
    np.testing.assert_array_equal(model.correlations()[3], 0)
    np.testing.assert_array_equal(model.correlate(X, np.full(60, 0.1)), 0)


def test_a_column_that_differs_by_rounding_only_correlates_with_nothing():
    last_digit = np.where(np.arange(60) % 2, 1e8, np.nextafter(1e8, 2e8))
    X = np.column_stack([correlated(d=3), last_digit])
    np.testing.assert_array_equal(PCA(2).fit(X).correlations()[3], 0)


def test_a_missing_value_in_a_diagnosed_row_is_named():
    X = correlated()
    model = PCA(2).fit(X)
    X[7, 3] = np.nan
    for method in ("contributions", "cos2", "distances", "hotelling_t2", "score_samples"):
        with pytest.raises(MissingValueError, match="row 7, column 3"):
            getattr(model, method)(X)


def test_missing_values_are_filled_in_where_the_model_does_so():
    X = correlated()
    X[7, 3] = np.nan
    model = PCA(2, missing="em").fit(X)
    np.testing.assert_allclose(
        model.hotelling_t2(X), (model.transform(X) ** 2 / model.explained_variance_).sum(axis=1)
    )
    assert np.isfinite(model.cos2(X)).all()
    assert np.isfinite(model.bootstrap(X, 3).loadings).all()


def test_no_rows_have_no_diagnostics():
    X = correlated()
    model = PCA(2).fit(X)
    assert model.cos2(X[:0]).shape == model.contributions(X[:0]).shape == (0, 2)
    assert model.prediction_error(X[:0]).shape == model.score_samples(X[:0]).shape == (0,)
