import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from references.tables import HERE, read
from scipy import stats
from sklearn import datasets, decomposition

from gnomon.errors import MissingValueError, ParameterError, UnavailableError
from gnomon.pca import PCA


def correlated(n=60, d=6, seed=0):
    """Rows with every direction occupied, away from zero."""
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) @ random.normal(size=(d, d)) + 3.0


def assert_same_columns(got, want, *, signed=False):
    """Every column to 1e-8 of its norm; the sign of each is free unless `signed`."""
    signs = np.ones(want.shape[1]) if signed else np.sign((got * want).sum(axis=0))
    error = np.linalg.norm(got * signs - want, axis=0)
    assert (error <= 1e-8 * np.linalg.norm(want, axis=0)).all(), error


# -- FactoMineR and prcomp ---------------------------------------------------------------------

FACTOMINER = {"decathlon": True, "usarrests": True, "usarrests_unscaled": False}


def factominer(name):
    """The active columns, and the model with FactoMineR's divisor."""
    X = read(name.removesuffix("_unscaled"))[2]
    X = X[:, :10].astype(float) if name == "decathlon" else X
    return X, PCA(standardize=FACTOMINER[name], ddof=0).fit(X)


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


def test_supplementary_numbers_agree_with_factominer():
    X, model = factominer("decathlon")
    Z = read("decathlon")[2][:, 10:12].astype(float)
    r = model.correlate(X, Z) * signs_of(model)
    assert_same_columns(r, read("factominer_decathlon_quantisup_cor")[2], signed=True)
    # FactoMineR standardises supplementary columns too: their coordinates are correlations.
    assert_same_columns(r, read("factominer_decathlon_quantisup_coord")[2], signed=True)
    assert_same_columns(r**2, read("factominer_decathlon_quantisup_cos2")[2], signed=True)


def signs_of(model):
    """FactoMineR's sign of each component, relative to ours."""
    coord = read("factominer_decathlon_var_coord")[2]
    return np.sign((coord * model.loadings_).sum(axis=0))


def test_supplementary_categories_agree_with_factominer():
    X, model = factominer("decathlon")
    found = model.correlate(X, read("decathlon")[2][:, 12])
    names, _, coord = read("factominer_decathlon_qualisup_coord")
    assert list(found.names) == names
    assert found.counts.tolist() == [13, 28]
    signs = signs_of(model)
    assert_same_columns(found.coordinates * signs, coord, signed=True)
    v_test = read("factominer_decathlon_qualisup_v.test")[2]
    assert_same_columns(found.v_test * signs, v_test, signed=True)
    cos2 = read("factominer_decathlon_qualisup_cos2")[2]
    assert_same_columns(found.cos2, cos2, signed=True)


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


# -- laws of contributions and cos² ------------------------------------------------------------


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


def test_supplementary_copies_of_the_columns_correlate_like_the_columns():
    X = correlated()
    model = PCA(4).fit(X)
    np.testing.assert_allclose(model.correlate(X, X), model.correlations(), atol=1e-12)


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


# -- labels ------------------------------------------------------------------------------------


def test_integer_weights_are_repeated_rows():
    X, labels = correlated(), np.array(["a", "b", "c"] * 20)
    numbers = np.random.default_rng(2).normal(size=60)
    times = np.arange(60) % 4
    model = PCA(3).fit(X, sample_weight=times)
    rows = np.repeat(np.arange(60), times)
    weighted = model.categories(X, labels, times)
    repeated = model.categories(X[rows], labels[rows])
    assert weighted.counts.tolist() == repeated.counts.tolist()
    for field in ("coordinates", "cos2", "v_test"):
        np.testing.assert_allclose(getattr(weighted, field), getattr(repeated, field), rtol=1e-9)
    np.testing.assert_allclose(
        model.correlate(X, numbers, times), model.correlate(X[rows], numbers[rows]), rtol=1e-9
    )


def test_the_v_test_counts_standard_errors_of_a_random_draw():
    X = correlated(n=50)
    model = PCA(2).fit(X)
    scores, members = model.transform(X), np.arange(50) < 12
    random = np.random.default_rng(3)
    means = np.array([scores[random.permutation(50)[:12]].mean(axis=0) for _ in range(4000)])
    v = model.categories(X, members).v_test[1]
    # 4,000 draws know a standard deviation to 1.1 %; three times that
    np.testing.assert_allclose(v, scores[members].mean(axis=0) / means.std(axis=0), rtol=0.034)


def test_the_v_test_compares_with_the_rows_at_hand():
    X, labels = correlated(), np.arange(60) % 3
    model = PCA(2).fit(X)
    here, elsewhere = model.categories(X, labels), model.categories(X + 5, labels)
    np.testing.assert_allclose(elsewhere.v_test, here.v_test, rtol=1e-9)
    assert (np.abs(elsewhere.coordinates - here.coordinates) > 0.1).all()


LABELS = ["low", "high", "mid"] * 20


@pytest.mark.parametrize(
    ("labels", "variables", "names"),
    [
        (LABELS, [""], ["high", "low", "mid"]),
        (np.array(LABELS), [""], ["high", "low", "mid"]),
        (pd.Series(LABELS, name="size"), ["size"], ["high", "low", "mid"]),
        (pd.Categorical(LABELS, ["low", "mid", "high", "huge"]), [""], ["low", "mid", "high"]),
        (pd.DataFrame({"a": LABELS, "b": LABELS}), ["a", "b"], ["high", "low", "mid"]),
        (pl.Series("s", LABELS, pl.Enum(["low", "mid", "high"])), ["s"], ["low", "mid", "high"]),
        (pa.table({"size": LABELS}), ["size"], ["high", "low", "mid"]),
        ([None if label == "low" else label for label in LABELS], [""], ["high", "mid"]),
        ([np.nan if label == "low" else label for label in LABELS], [""], ["high", "mid"]),
        (np.array(LABELS) == "low", [""], ["False", "True"]),
    ],
)
def test_labels_of_every_kind_are_read(labels, variables, names):
    X = correlated()
    found = PCA(2).fit(X).correlate(X, labels)
    assert list(found.names) == names * len(variables)
    assert list(found.variables) == list(np.repeat(variables, len(names)))
    values = np.array(LABELS)
    groups = {name: values == name for name in names}
    if "True" in names:
        groups = {"True": values == "low", "False": values != "low"}
    scores = PCA(2).fit(X).transform(X)
    for i, name in enumerate(found.names):
        assert found.counts[i] == groups[name].sum()
        np.testing.assert_allclose(found.coordinates[i], scores[groups[name]].mean(axis=0))


def test_numbers_can_be_names_of_groups():
    X = correlated()
    codes = np.arange(60) % 12
    assert PCA(2).fit(X).correlate(X, codes).shape == (1, 2)
    assert PCA(2).fit(X).categories(X, codes).names == tuple(map(str, range(12)))


@pytest.mark.parametrize(
    ("Z", "error", "words"),
    [
        (np.zeros((5, 2)), ParameterError, "60 rows"),
        (["a"] * 5, ParameterError, "60 rows"),
        (np.r_[np.zeros(59), np.nan], MissingValueError, "row 59"),
        (pd.DataFrame({"a": LABELS, "b": np.zeros(60)}), ParameterError, "its own call"),
    ],
)
def test_supplementary_columns_that_do_not_fit_are_refused(Z, error, words):
    X = correlated()
    with pytest.raises(error, match=words):
        PCA(2).fit(X).correlate(X, Z)


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


def test_categories_are_readable_and_ready_for_json():
    X = correlated()
    found = PCA(2).fit(X).correlate(X, pd.Series(LABELS, name="size"))
    assert "size: high" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["counts"] == [20, 20, 20]


# -- rows that do not fit ----------------------------------------------------------------------


def test_t2_and_prediction_error_are_the_parts_of_a_row():
    X = correlated()
    model = PCA(2, whiten=True).fit(X)
    np.testing.assert_allclose(model.hotelling_t2(X), (model.transform(X) ** 2).sum(axis=1))
    np.testing.assert_allclose(model.prediction_error(X), (model.residuals(X) ** 2).sum(axis=1))


def test_the_mean_prediction_error_of_training_rows_is_the_lost_variance():
    X = correlated()
    model = PCA(2, standardize=True, ddof=0).fit(X)
    assert model.prediction_error(X).mean() == pytest.approx(model.lost_variance_, rel=1e-10)


@pytest.mark.parametrize("ddof", [0, 1])
def test_t2_limits_are_those_of_f_and_beta(ddof):
    model = PCA(3, ddof=ddof).fit(correlated(n=40))
    new = 3 * (40**2 - 1) / (40 * 37) * stats.f.isf(0.01, 3, 37) * (40 - ddof) / 39
    old = 39**2 / 40 * stats.beta.isf(0.01, 1.5, 18) * (40 - ddof) / 39
    assert model.t2_limit(0.01) == pytest.approx(new, rel=1e-10)
    assert model.t2_limit(0.01, new=False) == pytest.approx(old, rel=1e-10)


@pytest.mark.parametrize("ddof", [0, 1])
def test_normal_rows_pass_the_t2_limits_as_often_as_promised(ddof):
    random = np.random.default_rng(4)
    new = old = 0
    for _ in range(150):
        X = random.normal(size=(12, 3))
        model = PCA(ddof=ddof).fit(X)
        new += (model.hotelling_t2(random.normal(size=(80, 3))) > model.t2_limit(0.1)).sum()
        old += (model.hotelling_t2(X) > model.t2_limit(0.1, new=False)).sum()
    # Rows of one fit share its errors: its 80 new ones count about as much as 10.
    assert abs(new / (150 * 80) - 0.1) < 3.3 * np.sqrt(0.09 / (150 * 10))
    assert abs(old / (150 * 12) - 0.1) < 3.3 * np.sqrt(0.09 / (150 * 12))


def test_normal_rows_pass_the_prediction_error_limit_as_often_as_promised():
    random = np.random.default_rng(5)
    spread = np.array([9.0, 5, 2, 1.5, 1, 0.5, 0.2])
    model = PCA(2).fit(random.normal(size=(20_000, 7)) * spread)
    new = random.normal(size=(20_000, 7)) * spread
    for alpha in (0.05, 0.01):
        beyond = (model.prediction_error(new) > model.prediction_error_limit(alpha)).mean()
        # Box's two moments are an approximation: within a fifth in these tails
        assert beyond == pytest.approx(alpha, rel=0.2)


def test_nothing_is_beyond_a_model_that_keeps_everything():
    assert PCA().fit(correlated()).prediction_error_limit() == 0


def test_limits_that_a_model_cannot_know_are_refused():
    X = correlated()
    with pytest.raises(UnavailableError, match="all eigenvalues"):
        PCA(2, solver="krylov").fit(X).prediction_error_limit()
    with pytest.raises(UnavailableError, match="fewer components"):
        PCA(solver="svd").fit(X[:5]).t2_limit(new=False)


# -- the probabilistic model -------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 6])
def test_likelihood_covariance_and_precision_are_scikit_learns(k):
    X = correlated()
    ours, theirs = PCA(k).fit(X), decomposition.PCA(k, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-9)
    np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["iris", "digits", "wine"])
def test_the_mean_likelihood_is_the_one_kept_from_scikit_learn(name):
    want = json.loads((Path(HERE) / "sklearn_pca_tables.json").read_text(encoding="utf-8"))[name]
    X = getattr(datasets, f"load_{name}")().data
    model = PCA(want["k"]).fit(X)
    assert model.score(X) == pytest.approx(want["mean_log_likelihood"], rel=1e-9)
    assert model.noise_variance_ == pytest.approx(want["noise_variance"], rel=1e-9)


@pytest.mark.parametrize("options", [{"standardize": True}, {"feature_weight": np.arange(1.0, 7)}])
def test_likelihood_of_scaled_columns_is_a_density_in_the_tables_units(options):
    X = correlated()
    model = PCA(3, whiten=True, **options).fit(X)
    normal = stats.multivariate_normal(X.mean(axis=0), model.get_covariance())
    np.testing.assert_allclose(model.score_samples(X), normal.logpdf(X), rtol=1e-9)
    np.testing.assert_allclose(
        model.get_precision() @ model.get_covariance(), np.eye(6), atol=1e-10
    )


def test_with_all_components_the_covariance_is_that_of_the_rows():
    X = correlated()
    for options in ({}, {"standardize": True}, {"feature_weight": np.arange(1.0, 7)}):
        np.testing.assert_allclose(PCA(**options).fit(X).get_covariance(), np.cov(X.T), rtol=1e-9)


def test_the_likelihood_follows_the_unit():
    X = correlated()
    ours = PCA(2).fit(np.ldexp(X, 700)).score_samples(np.ldexp(X, 700))
    want = PCA(2).fit(X).score_samples(X) - 6 * 700 * np.log(2)
    np.testing.assert_allclose(ours, want, rtol=1e-12)


@pytest.mark.parametrize("exponent", [700, -1050])
@pytest.mark.parametrize("standardize", [False, True])
def test_covariances_beyond_floating_point_are_infinite_or_zero_without_a_warning(
    exponent, standardize
):
    X = np.ldexp(correlated(), exponent)
    model = PCA(2, standardize=standardize).fit(X)
    large, small = model.get_covariance(), model.get_precision()
    large, small = (large, small) if exponent > 0 else (small, large)
    assert np.isinf(large).all()
    np.testing.assert_array_equal(small, 0)


def test_a_likelihood_without_noise_is_refused():
    X = correlated()[:5]  # five rows of six columns leave a direction without variance
    with pytest.raises(UnavailableError, match="every direction"):
        PCA().fit(X).score(X)
