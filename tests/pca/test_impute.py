import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gnomon import PCA, samples
from gnomon.errors import (
    DataError,
    DataWarning,
    MissingValueError,
    NotConvergedWarning,
    UnavailableError,
)
from gnomon.numeric.view import view_array
from gnomon.pca import impute as imputing
from gnomon.pca.impute import impute
from gnomon.pca.rank import Request
from gnomon.pca.solvers.problem import Problem


def planted(n=200, d=20, *, noise=0.1, share=0.1, seed=0):
    """Three directions in noise; the same with holes; and where the holes are."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + 3 * rng.standard_normal(d)
    X += noise * rng.standard_normal((n, d))
    holes = rng.uniform(size=X.shape) < share
    holes[np.arange(n), rng.integers(0, d, n)] = False  # no row without a value
    return X, np.where(holes, np.nan, X), holes


X, GAPPY, HOLES = planted()


def problem(table, k, **settings):
    """As the estimator poses it."""
    given = {"weights": None, "standardize": False, "feature_weight": None, **settings}
    return Problem(
        view=view_array(table),
        dtype=table.dtype,
        request=Request(k),
        ddof=1,
        tol=1e-5,
        random=np.random.default_rng(0),
        n_jobs=1,
        **given,
    )


def fill(asked):
    """The table filled in, and the report."""
    filled, filling = impute(asked)
    return filled, filling.report


def error(filled, table=X, holes=HOLES):
    """Root mean square error of the filled cells."""
    return float(np.sqrt(np.mean((filled - table)[holes] ** 2)))


def error_of_means(table=X, holes=HOLES):
    gappy = np.where(holes, np.nan, table)
    return error(np.broadcast_to(np.nanmean(gappy, axis=0), table.shape), table, holes)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(200, 20), (20, 200)], ids=["tall", "wide"])
def test_a_planted_table_is_recovered_far_better_than_by_means(standardize, weighted, shape):
    table, gappy, holes = planted(*shape)
    weights = np.random.default_rng(1).uniform(0.5, 2, shape[0]) if weighted else None
    filled, how = fill(problem(gappy, 3, standardize=standardize, weights=weights))
    assert how.converged
    assert how.n_iter < 100
    # The cells' own noise is 0.1; means are off by the signal's spread.
    assert error(filled, table, holes) < 0.3
    assert error(filled, table, holes) < error_of_means(table, holes) / 5
    assert np.array_equal(filled[~holes], table[~holes])


def test_without_noise_the_planted_table_comes_back():
    table, gappy, _ = planted(noise=0.0)
    filled, how = fill(problem(gappy, 3))
    assert how.converged
    assert np.abs(filled - table).max() < 1e-4


def test_in_pure_noise_the_shrinking_keeps_the_filling_near_the_means():
    table = np.random.default_rng(0).standard_normal((100, 10))
    holes = np.random.default_rng(1).uniform(size=table.shape) < 0.3
    holes[:, 0] = False
    filled, _ = impute(problem(np.where(holes, np.nan, table), 3))
    assert error(filled, table, holes) < 1.25 * error_of_means(table, holes)


def test_what_was_done_is_told():
    how = PCA(3, missing="em").fit(GAPPY).missing_
    assert (how.n_missing, how.n_cells, how.rank) == (HOLES.sum(), X.size, 3)
    assert abs(how.noise_variance / 0.1**2 - 1) < 0.3
    assert 0 < how.moved <= 1e-6
    assert how.title() == (
        f"{HOLES.sum()} missing values (9.8 %) filled in from 3 components; converged after "
        f"{how.n_iter} iterations"
    )
    assert "components" not in json.loads(json.dumps(how.to_dict()))


def test_digits_with_5_percent_of_holes_come_to_rest():
    digits = samples.load("digits").X
    holes = np.random.default_rng(0).uniform(size=digits.shape) < 0.05
    model = PCA(10, missing="em").fit(np.where(holes, np.nan, digits))
    assert model.missing_.converged
    assert model.missing_.n_iter < 300
    full = PCA(10).fit(digits)
    assert (np.abs((model.components_ * full.components_).sum(axis=1))[:3] > 0.99).all()


def test_a_table_without_holes_is_fitted_as_usual():
    model = PCA(3, missing="em").fit(X)
    plain = PCA(3).fit(X)
    assert np.array_equal(model.components_, plain.components_)
    assert (model.missing_.n_missing, model.missing_.n_iter) == (0, 0)
    assert model.missing_.converged
    assert np.array_equal(model.transform(X), plain.transform(X))


def test_integers_have_no_holes():
    assert np.array_equal(
        PCA(2, missing="em").fit(np.arange(40).reshape(10, 4) ** 2 % 17).components_,
        PCA(2).fit(np.arange(40).reshape(10, 4) ** 2 % 17).components_,
    )


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_rows_are_filled_by_transform_as_they_were_in_fit(standardize, weighted):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    filled, _ = impute(problem(GAPPY, 3, standardize=standardize, weights=weights))
    model = PCA(3, missing="em", standardize=standardize).fit(GAPPY, sample_weight=weights)
    # Both have come to rest within 1e-6 of the spreads, at a pace that leaves a few times that.
    np.testing.assert_allclose(model.transform(GAPPY), model.transform(filled), atol=1e-4)
    restored = GAPPY - model.residuals(GAPPY)  # NaN where nothing was seen
    assert np.isnan(restored[HOLES]).all()
    assert np.isfinite(model.residuals(GAPPY)).all()


def test_the_model_is_that_of_the_filled_table():
    filled, _ = impute(problem(GAPPY, 3))
    model, plain = PCA(3, missing="em").fit(GAPPY), PCA(3).fit(filled)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, plain.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(model.mean_, plain.mean_, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rows_filling_does_not_depend_on_the_rows_beside_it(dtype, monkeypatch):
    model = PCA(3, missing="em").fit(GAPPY)
    table = GAPPY.astype(dtype)
    scores = model.transform(table)
    assert scores.dtype == dtype
    for part in (slice(0, 1), slice(7, 8), slice(20, 90), slice(3, 200, 11)):
        assert np.array_equal(model.transform(table[part]), scores[part])
    monkeypatch.setattr(imputing, "CHUNK_NUMBERS", 1)  # one row at a time
    assert np.array_equal(model.transform(table), scores)


def test_a_new_row_is_filled_from_what_it_shows():
    new, gappy, holes = planted(n=230)
    model = PCA(3, missing="em").fit(gappy[:200])
    truth = model.transform(new[200:])
    assert np.abs(model.transform(gappy[200:]) - truth).max() < 0.5 < np.abs(truth).max()
    assert holes[200:].any()


def test_a_new_row_that_shows_nothing_is_the_mean():
    model = PCA(3, missing="em").fit(GAPPY)
    np.testing.assert_allclose(model.transform(np.full((1, 20), np.nan)), 0, atol=1e-12)


def test_diagnostics_fill_rows_in_too():
    model = PCA(3, missing="em").fit(GAPPY)
    assert np.isfinite(model.cos2(GAPPY)).all()
    assert np.isfinite(model.hotelling_t2(GAPPY)).all()
    assert np.isfinite(model.score(GAPPY))


def test_integer_weights_are_repeated_rows():
    weights = np.random.default_rng(2).integers(1, 4, len(X))
    weighted = PCA(3, missing="em").fit(GAPPY, sample_weight=weights)
    repeated = PCA(3, missing="em").fit(np.repeat(GAPPY, weights, axis=0))
    # Each stops within 1e-6 of the spreads, perhaps an iteration apart.
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-5)


def test_a_row_of_weight_zero_does_not_count():
    wild = np.vstack([GAPPY, np.where(np.arange(20) == 3, np.nan, 1e6)])
    weights = np.r_[np.ones(len(GAPPY)), 0]
    model = PCA(3, missing="em").fit(wild, sample_weight=weights)
    plain = PCA(3, missing="em").fit(GAPPY)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-5)


def test_an_absent_row_may_be_empty_and_changes_nothing():
    extra = np.vstack([np.full(20, np.nan), GAPPY[:90], np.full(20, 1e6), GAPPY[90:]])
    extra[91, ::2] = np.nan
    weights = np.ones(len(extra))
    weights[[0, 91]] = 0
    model = PCA(3, missing="em").fit(extra, sample_weight=weights)
    plain = PCA(3, missing="em").fit(GAPPY)
    assert model.missing_.to_dict() == plain.missing_.to_dict()
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-12)
    np.testing.assert_allclose(model.noise_variance_, plain.noise_variance_, rtol=1e-9)
    assert model.plan_ == PCA(3, missing="em").plan(extra)


def test_few_present_rows_are_filled_in_as_if_they_were_alone():
    _, gappy, _ = planted(n=12, d=20)
    weights = np.r_[np.ones(12), np.zeros(30)]
    model = PCA(3, missing="em").fit(np.vstack([gappy, 1e3 * GAPPY[:30]]), sample_weight=weights)
    plain = PCA(3, missing="em").fit(gappy)
    assert model.missing_.to_dict() == plain.missing_.to_dict()
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-9)


def test_a_column_seen_only_in_absent_rows_is_refused_by_name():
    table = GAPPY.copy()
    table[5:, 4] = np.nan
    table[:5, 4] = 1.0
    weights = np.r_[np.zeros(5), np.ones(len(table) - 5)]
    says = r"Column 'c4' of X has no value at all in the rows of weight above 0\. Drop it\."
    with pytest.raises(DataError, match=says):
        PCA(3, missing="em").fit(frame(table), sample_weight=weights)


def test_columns_in_other_units_are_filled_alike_when_standardised():
    units = np.geomspace(1e-3, 1e3, 20)
    plain, _ = impute(problem(GAPPY, 3, standardize=True))
    other, _ = impute(problem(GAPPY * units, 3, standardize=True))
    np.testing.assert_allclose(other / units, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("power", [-664, 664, 900])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_power_of_two_changes_no_bit_of_the_axes(power, standardize):
    plain = PCA(3, missing="em", standardize=standardize).fit(GAPPY)
    scaled = PCA(3, missing="em", standardize=standardize).fit(np.ldexp(GAPPY, power))
    assert np.array_equal(scaled.components_, plain.components_)
    unit = 0 if standardize else power
    scores = np.ldexp(scaled.transform(np.ldexp(GAPPY, power)), -unit)
    assert np.array_equal(scores, plain.transform(GAPPY))


def test_a_large_mean_does_not_matter():
    far, near = PCA(3, missing="em").fit(GAPPY + 1e8), PCA(3, missing="em").fit(GAPPY)
    np.testing.assert_allclose(far.components_, near.components_, atol=1e-6)


@pytest.mark.parametrize(
    ("k", "rank"), [(None, 3), ("parallel", 3), (0.9, 3), (5, 5), (20, 19)], ids=str
)
def test_the_components_filled_from_are_those_asked_for_but_never_all(k, rank):
    model = PCA(k, missing="em").fit(GAPPY)
    assert model.missing_.rank == rank
    assert model.missing_.converged


def test_an_iteration_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(imputing, "MOST_ITERATIONS", 3)
    with pytest.warns(NotConvergedWarning, match=r"still moving by .* after 3 iterations"):
        model = PCA(3, missing="em").fit(GAPPY)
    assert not model.missing_.converged
    assert "NOT converged" in model.missing_.title()


def test_a_callback_can_stop_it():
    asked = problem(GAPPY, 3)
    told = []

    def step(*, iteration, moved):
        told.append((iteration, moved))
        return iteration == 4

    _, how = fill(Problem(**{**vars(asked), "step": step}))
    assert [iteration for iteration, _ in told] == [0, 1, 2, 3, 4]
    moves = [moved for _, moved in told][1:]
    assert moves == sorted(moves, reverse=True)
    assert how.n_iter == 4
    assert not how.converged


def frame(table):
    return pd.DataFrame(table, columns=[f"c{i}" for i in range(table.shape[1])])


def test_a_column_without_any_value_is_refused_by_name():
    table = GAPPY.copy()
    table[:, 4] = np.nan
    with pytest.raises(DataError, match=r"Column 4 of X has no value at all\. Drop it\."):
        PCA(3, missing="em").fit(table)
    with pytest.raises(DataError, match="Column 'c4' of X"):
        PCA(3, missing="em").fit(frame(table))


def test_a_row_without_any_value_is_refused_by_number():
    table = GAPPY.copy()
    table[17] = np.nan
    with pytest.raises(DataError, match=r"Row 17 of X has no value at all\. Drop it\."):
        PCA(3, missing="em").fit(table)
    absent = np.where(np.arange(len(table)) < 5, 0.0, 1.0)  # still counted, in the message
    with pytest.raises(DataError, match=r"Row 17 of X"):
        PCA(3, missing="em").fit(table, sample_weight=absent)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinities_are_refused_with_their_place_in_fit_and_transform(bad):
    table = GAPPY.copy()
    table[7, 3] = bad
    model = PCA(3, missing="em")
    with pytest.raises(DataError, match=r"1 infinite value .*row 7, column 3"):
        model.fit(table)
    with pytest.raises(DataError, match="row 7, column 'c3'"):
        model.fit(frame(table))
    model.fit(GAPPY)
    with pytest.raises(DataError, match="row 7, column 3"):
        model.transform(table)


def test_sparse_tables_are_refused_with_the_way_out():
    with pytest.raises(DataError, match=r"needs a dense table; got a sparse one\. Use X\.toarray"):
        PCA(3, missing="em").fit(sp.csr_array(GAPPY))
    with pytest.raises(DataError, match="needs a dense table"):
        PCA(3, missing="em").plan(sp.csr_array(GAPPY))


def test_a_model_fitted_without_it_refuses_holes():
    with pytest.raises(MissingValueError, match="missing='em'"):
        PCA(3).fit(GAPPY)
    with pytest.raises(MissingValueError, match="first at row"):
        PCA(3).fit(X).transform(GAPPY)


def test_masked_none_and_nullable_cells_are_holes():
    expected = PCA(3, missing="em").fit(GAPPY).components_
    objects = GAPPY.astype(object)
    objects[HOLES] = None
    masked = np.ma.masked_array(np.where(HOLES, 1e9, X), mask=HOLES)
    for table in (objects, masked):
        assert np.array_equal(PCA(3, missing="em").fit(table).components_, expected)
    nullable = PCA(3, missing="em").fit(frame(GAPPY).astype("Float64"))
    np.testing.assert_allclose(nullable.components_, expected, atol=1e-9)


def test_the_table_is_left_alone():
    before = GAPPY.copy()
    PCA(3, missing="em").fit(GAPPY).transform(GAPPY)
    assert np.array_equal(GAPPY, before, equal_nan=True)


def test_a_constant_column_with_holes_is_filled_with_its_constant():
    table = np.column_stack([GAPPY, np.where(HOLES[:, 0], np.nan, 5.0)])
    for standardize in (False, True):
        filled, how = fill(problem(table, 3, standardize=standardize))
        assert how.converged
        np.testing.assert_allclose(filled[:, 20], 5.0, atol=1e-9)
    with pytest.warns(DataWarning, match="1 constant column"):
        PCA(3, missing="em", standardize=True).fit(table)


def test_feature_weights_count_in_the_filling():
    heavy = np.where(np.arange(20) < 10, 1.0, 1e-6)
    filled, _ = impute(problem(GAPPY, 3, feature_weight=heavy))
    alone, _ = impute(problem(GAPPY[:, :10], 3))
    light, both = HOLES[:, 10:], HOLES[:, :10]
    np.testing.assert_allclose(filled[:, :10][both], alone[both], atol=0.05)
    assert error(filled[:, 10:], X[:, 10:], light) < error_of_means(X[:, 10:], light)


def test_a_fit_that_filled_values_in_is_not_merged_or_continued():
    """The certificate of both could not say what the missing values cost."""
    gappy, whole = (PCA(3, solver="covariance", missing="em").fit(T) for T in (GAPPY, X))
    assert gappy.certificate_.missing_angles is not None
    for first, second in ((gappy, whole), (whole, gappy)):
        with pytest.raises(UnavailableError, match=f"{HOLES.sum()} values were filled in"):
            first.merge(second)
    with pytest.raises(UnavailableError, match="Fit all rows together"):
        gappy.set_params(missing="error").partial_fit(X)
    twice = whole.merge(whole)  # nothing was filled in
    np.testing.assert_allclose(twice.mean_, X.mean(axis=0), rtol=1e-12)
