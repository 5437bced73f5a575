import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from procrustes.sets import orthogonal, pair, turn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from gnomon import PCA, CrossMoments, Procrustes
from gnomon.errors import DataError, DataWarning, GnomonError, ParameterError, UnavailableError

DIMENSIONS = [1, 2, 3, 5, 8, 9, 20, 50]


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("reflected", [False, True])
@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
def test_a_known_map_is_recovered_from_exact_pairs(d, reflected, scaling):
    random = np.random.default_rng(d)
    X = random.normal(size=(4 * d + 5, d))
    R, t = orthogonal(d, d, reflected=reflected), 10 * random.normal(size=d)
    s = 1.0 if scaling is False else 2.5
    w = random.integers(1, 5, len(X))
    for weights in (None, w):
        for reflection in ("allow", "force" if reflected else "forbid"):
            model = Procrustes(scaling=scaling, reflection=reflection)
            model.fit(X, s * X @ R + t, sample_weight=weights)
            # rounding of XᵀY over its smallest singular value, which is above 0.05 here
            assert np.allclose(model.rotation_, R, atol=1e-13)
            assert model.scale_ == pytest.approx(s, rel=1e-14)
            assert np.allclose(model.translation_, t, atol=1e-12)
            assert model.disparity_ < 1e-26
            assert model.reflected_ is reflected
            assert model.rank_ == d
            assert np.allclose(model.transform(X), s * X @ R + t, atol=1e-12)
            assert np.allclose(model.inverse_transform(s * X @ R + t), X, atol=1e-12)


def test_a_map_without_translation_turns_about_the_origin():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 4
    R = orthogonal(3)
    model = Procrustes(centering=False).fit(X, X @ R)
    assert np.allclose(model.rotation_, R, atol=1e-13)
    assert not model.translation_.any()
    with pytest.warns(DataWarning, match="1 shared row is too few for a verdict"):
        one = Procrustes(centering=False).fit(X[:1], X[:1] @ R)  # one point is enough to turn
    assert one.rank_ == 1
    assert np.allclose(one.transform(X[:1]), X[:1] @ R, atol=1e-12)


def test_attributes_are_what_their_formulas_say():
    X, Y = pair(n=40, d=3, scale=2.0, shift=5.0)
    w = np.random.default_rng(1).uniform(0.5, 2, 40)
    model = Procrustes(scaling=True).fit(X, Y, sample_weight=w)
    x = X - np.average(X, axis=0, weights=w)
    y = Y - np.average(Y, axis=0, weights=w)
    M = (w[:, None] * x).T @ y
    U, sigma, Vt = np.linalg.svd(M)
    sq_x, sq_y = (w @ (x * x)).sum(), (w @ (y * y)).sum()
    assert np.allclose(model.rotation_, U @ Vt)
    assert model.scale_ == pytest.approx(sigma.sum() / sq_x)
    assert model.disparity_ == pytest.approx(1 - sigma.sum() ** 2 / (sq_x * sq_y))
    left = model.scale_ * X @ model.rotation_ + model.translation_ - Y
    assert np.allclose(model.residuals_, np.linalg.norm(left, axis=1))
    assert model.residual_sum_ == pytest.approx(w @ (left**2).sum(axis=1))
    assert model.rmsd_ == pytest.approx(np.sqrt(model.residual_sum_ / w.sum()))
    assert np.allclose(model.singular_values_, sigma / np.sqrt(sq_x * sq_y))
    assert abs(model.reflection_margin_) == pytest.approx(2 * sigma[-1] / np.sqrt(sq_x * sq_y))
    assert np.allclose(model.residuals(X, Y), model.residuals_)
    assert np.allclose(model.transform(X) - Y, left)


def test_a_weight_is_that_many_copies_and_a_weight_of_zero_is_absent():
    X, Y = pair(n=20, d=2)
    w = np.arange(20) % 3
    weighted = Procrustes(scaling=True).fit(X, Y, sample_weight=w)
    copied = Procrustes(scaling=True).fit(np.repeat(X, w, 0), np.repeat(Y, w, 0))
    assert np.allclose(weighted.rotation_, copied.rotation_)
    assert weighted.rmsd_ == pytest.approx(copied.rmsd_)
    assert weighted.residuals_.shape == (20,)


@pytest.mark.parametrize("angle", [-3.0, -0.4, 0.0, 1.0, 3.1])
def test_the_angle_is_the_turn_and_that_of_a_reflection_its_mirror(angle):
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert Procrustes().fit(X, X @ turn(angle)).angle_ == pytest.approx(angle)
    mirror = np.array([np.cos(angle / 2), np.sin(angle / 2)])
    flipped = 2 * np.outer(X @ mirror, mirror) - X
    model = Procrustes().fit(X, flipped)
    assert model.reflected_
    assert model.angle_ == pytest.approx(angle / 2)
    assert np.allclose(mirror @ model.rotation_, mirror)  # the mirror itself stays
    assert Procrustes().fit(X[:, :1], X[:, :1]).angle_ is None


def test_reflection_force_and_forbid_differ_by_the_margin():
    X, Y = pair(d=3)
    both = {r: Procrustes(reflection=r).fit(X, Y) for r in ("allow", "forbid", "force")}
    best = {r: np.sqrt(1 - m.disparity_) for r, m in both.items()}
    margin = both["allow"].reflection_margin_
    assert best["force"] - best["forbid"] == pytest.approx(margin)
    assert best["allow"] == pytest.approx(max(best["force"], best["forbid"]))
    assert len({m.reflection_margin_ for m in both.values()}) == 1


def test_a_negative_scale_is_clipped_where_reflections_are_forbidden_in_one_dimension():
    x = np.arange(5.0)[:, None]
    model = Procrustes(scaling=True, reflection="forbid").fit(x, -x)
    assert model.scale_ == 0
    assert model.disparity_ == 1
    assert model.rotation_.tolist() == [[1.0]]
    with pytest.raises(UnavailableError, match="scale_` is 0"):
        model.inverse_transform(x)


def test_fitting_backwards_is_the_inverse_with_the_ratio_of_norms():
    X, Y = pair(d=3, scale=4.0, shift=2.0)
    there = Procrustes(scaling="norm-ratio").fit(X, Y)
    back = Procrustes(scaling="norm-ratio").fit(Y, X)
    assert there.scale_ * back.scale_ == pytest.approx(1)
    assert np.allclose(there.rotation_.T, back.rotation_)
    assert np.allclose(back.transform(there.transform(X)), X)


@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
def test_disparity_is_symmetric_and_does_not_depend_on_the_scaling(scaling):
    X, Y = pair(d=4, scale=3.0)
    expected = Procrustes().fit(X, Y).disparity_
    assert Procrustes(scaling=scaling).fit(X, 7 * Y).disparity_ == pytest.approx(expected)
    assert Procrustes(scaling=scaling).fit(Y, X).disparity_ == pytest.approx(expected)


def test_a_narrower_table_is_padded_and_distances_are_kept():
    X, Y = pair(d=4)
    into_wider = Procrustes().fit(X[:, :2], Y)
    assert into_wider.rotation_.shape == (2, 4)
    assert into_wider.transform(X[:, :2]).shape == (60, 4)
    assert np.allclose(into_wider.rotation_ @ into_wider.rotation_.T, np.eye(2))
    padded = Procrustes().fit(np.c_[X[:, :2], np.zeros((60, 2))], Y)
    assert into_wider.disparity_ == pytest.approx(padded.disparity_)
    into_narrower = Procrustes().fit(X, Y[:, :2])
    assert into_narrower.rotation_.shape == (4, 4)
    assert into_narrower.disparity_ == pytest.approx(Procrustes().fit(Y[:, :2], X).disparity_)
    assert np.allclose(into_narrower.inverse_transform(into_narrower.transform(X)), X)
    assert into_narrower.inverse_transform(Y[:, :2]).shape == (60, 4)
    assert into_narrower.reflected_ is None
    with pytest.raises(ParameterError, match=r"`reflection` must be 'allow'.*\(4 and 2\).*forbid"):
        Procrustes(reflection="forbid").fit(X, Y[:, :2])


def test_a_one_dimensional_target_is_one_column():
    X, Y = pair(d=2)
    a, b = Procrustes().fit(X, Y[:, 0]), Procrustes().fit(X, Y[:, :1])
    assert np.array_equal(a.rotation_, b.rotation_)
    assert np.array_equal(Procrustes().fit(X, Y[:, 0].tolist()).rotation_, a.rotation_)


def test_five_points_in_twenty_dimensions_stay_where_they_are():
    # SciPy's orthogonal_procrustes(X, X) is 5.4 away from the identity here
    X = np.random.default_rng(0).normal(size=(5, 20))
    with pytest.warns(DataWarning, match="5 shared rows in 20 dimensions"):
        model = Procrustes().fit(X, X)
    assert np.allclose(model.rotation_, np.eye(20), atol=1e-13)
    assert model.rank_ == 4
    assert not model.certificate_.unique
    prior = orthogonal(20, 3)
    with pytest.warns(DataWarning, match="5 shared rows in 20 dimensions"):
        turned = Procrustes(prior=prior).fit(X, X)
    assert np.allclose(turned.transform(X), X)
    assert np.linalg.norm(turned.rotation_ - prior) < np.linalg.norm(np.eye(20) - prior)


def test_points_that_are_all_the_same_warn_and_give_the_prior():
    X, Y = pair(d=2)
    with pytest.warns(DataWarning, match="All rows of X are the same point"):
        model = Procrustes().fit(np.full_like(X, 0.1), Y)
    assert np.array_equal(model.rotation_, np.eye(2))
    assert (model.rank_, model.disparity_) == (0, 1.0)
    with pytest.warns(DataWarning, match="All rows of Y"):
        Procrustes().fit(X, np.full_like(X, 0.1))


@pytest.mark.parametrize("scaling", [True, "norm-ratio"])
@pytest.mark.parametrize("d", [2, 12])
def test_a_set_without_size_is_refused_where_a_scale_is_asked_for(scaling, d):
    X, Y = pair(d=d)
    for value in (0.0, 0.1, 1e9 + 0.1):
        with pytest.raises(DataError, match=r"X has norm 0.*scaling=.*Use `scaling=False`"):
            Procrustes(scaling=scaling).fit(np.full_like(X, value), Y)
        with pytest.raises(DataError, match="Y has norm 0"):
            Procrustes(scaling=scaling).fit(X, np.full_like(X, value))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [2, 12])
def test_rounding_of_weighted_sums_is_not_taken_for_a_size(dtype, d):
    # equal rows whose weighted mean is rounded: what is left of the squares is not always zero
    random = np.random.default_rng(0)
    for value in random.normal(size=30):
        X, Y = np.full((7, d), value, dtype), random.normal(size=(7, d)).astype(dtype)
        with pytest.raises(DataError, match="X has norm 0"):
            Procrustes(scaling=True).fit(X, Y, sample_weight=random.uniform(size=7))


def test_any_batches_give_what_one_fit_gives():
    X, Y = pair(n=200, d=3, scale=2.0, shift=7.0)
    w = np.random.default_rng(2).uniform(0, 2, 200)
    whole = Procrustes(scaling=True).fit(X, Y, sample_weight=w)
    parts = Procrustes(scaling=True)
    for rows in np.split(np.arange(200), [1, 5, 90]):
        parts.partial_fit(X[rows], Y[rows], sample_weight=w[rows])
    assert np.allclose(parts.rotation_, whole.rotation_, atol=1e-13)
    assert np.allclose(parts.translation_, whole.translation_, atol=1e-12)
    for name in ("scale_", "disparity_", "residual_sum_", "rmsd_", "reflection_margin_"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-11), name
    assert np.allclose(parts.transform(X), whole.transform(X))
    assert np.allclose(parts.residuals(X, Y), whole.residuals_)


def test_models_and_counted_moments_are_merged():
    X, Y = pair(n=100, d=2)
    whole = Procrustes().fit(X, Y)
    merged = Procrustes().fit(X[:30], Y[:30]).merge(Procrustes().fit(X[30:], Y[30:]))
    counted = Procrustes().merge(CrossMoments.of(X, Y))
    added = Procrustes().fit(X[:30], Y[:30]).merge(CrossMoments.of(X[30:], Y[30:]))
    for model in (merged, counted, added):
        assert np.allclose(model.rotation_, whole.rotation_, atol=1e-13)
        assert model.n_features_in_ == 2
    with pytest.raises(NotFittedError):
        Procrustes().fit(X, Y).merge(Procrustes())
    with pytest.raises(TypeError, match="`other` must be a Procrustes or CrossMoments"):
        whole.merge(3)


def test_models_of_other_columns_are_not_merged():
    X, Y = pair(n=100, d=2)
    a = Procrustes().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    b = Procrustes().fit(pd.DataFrame(X, columns=["b", "a"]), Y)
    with pytest.raises(DataError, match=r"different columns.*\['a', 'b'\] and \['b', 'a'\]"):
        a.merge(b)
    assert a.merge(a).feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(DataError, match="columns"):
        Procrustes().fit(X, Y).merge(Procrustes().fit(X[:, :1], Y))


def test_parameters_set_after_the_fit_do_not_change_the_map():
    X, Y = pair(d=2, shift=9.0)
    model = Procrustes().fit(X, Y)
    expected = model.transform(X)
    model.set_params(centering=False, scaling=True)
    assert np.array_equal(model.transform(X), expected)
    assert np.allclose(model.inverse_transform(expected), X)


def test_what_needs_the_rows_is_refused_after_partial_fit():
    X, Y = pair()
    model = Procrustes().partial_fit(X, Y)
    with pytest.raises(UnavailableError, match=r"residuals_.*needs the rows.*residuals\(X, Y\)"):
        _ = model.residuals_
    with pytest.raises(UnavailableError, match="weights_"):
        _ = model.weights_
    assert not hasattr(model, "residuals_")
    with pytest.raises(ParameterError, match="`robust` must be False for partial_fit"):
        Procrustes(robust="huber").partial_fit(X, Y)
    robust = Procrustes(robust="huber").fit(X, Y)
    with pytest.raises(UnavailableError, match="robust fit does not have"):
        model.merge(robust)
    with pytest.raises(ParameterError, match="`robust` must be False for merge"):
        robust.merge(model)
    with pytest.raises(ParameterError, match="`Y` must have 3 columns, as before"):
        model.partial_fit(X, Y[:, :2])


def test_residuals_of_a_large_fit_are_computed_when_asked_for(monkeypatch):
    X, Y = pair(n=50, d=10)
    monkeypatch.setattr("gnomon.procrustes.estimator.CHEAP", 100)
    model = Procrustes().fit(X, Y)
    with pytest.raises(UnavailableError, match="would double the time"):
        _ = model.residuals_
    assert model.rmsd_ == pytest.approx(np.sqrt(np.mean(model.residuals(X, Y) ** 2)))
    # unless what is left is too small to be a difference of sums
    exact = Procrustes().fit(X, X @ orthogonal(10))
    assert exact.residuals_.max() < 1e-13
    assert exact.disparity_ < 1e-26


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("robust", [False, "tukey"])
def test_a_fit_has_the_same_bits_for_any_number_of_threads(d, robust):
    X, Y = pair(n=20_000, d=d)
    models = [Procrustes(scaling=True, robust=robust, n_jobs=n).fit(X, Y) for n in (1, 2, 4)]
    for other in models[1:]:
        assert np.array_equal(models[0].rotation_, other.rotation_)
        assert np.array_equal(models[0].residuals_, other.residuals_)
        assert np.array_equal(models[0].transform(X), other.transform(X))
        assert models[0].scale_ == other.scale_


def test_a_row_is_carried_alike_whatever_stands_beside_it():
    X, Y = pair(n=600, d=12)
    model = Procrustes().fit(X, Y)
    whole = model.transform(X)
    assert np.array_equal(model.transform(X[100:101]), whole[100:101])
    assert np.array_equal(model.transform(X[::-1]), whole[::-1])


def test_float32_stays_float32_and_hidden_directions_are_found_in_float64():
    random = np.random.default_rng(0)
    X = (random.normal(size=(500, 12)) * np.logspace(0, -5, 12)).astype(np.float32)
    R = orthogonal(12)
    Y = X.astype(np.float64) @ R
    model = Procrustes().fit(X, Y.astype(np.float32))
    assert model.rank_ == 12
    assert model.transform(X).dtype == np.float32
    # the smallest direction is 1e-5 of the largest, and float32 holds 6e-8 of that
    assert np.allclose(model.rotation_, R, atol=0.05)


def test_the_certificate_measures_the_rotation_that_is_returned():
    X, Y = pair(d=6)
    sure = Procrustes().fit(X, Y).certificate_
    assert sure.orthogonality < 1e-14
    assert sure.asymmetry < 1e-14
    assert sure.least_eigenvalue > 0
    assert sure.unique
    assert 0 < sure.rotation_error < 1e-12
    assert "within" in str(sure)
    other = Procrustes(reflection="forbid").fit(X, X @ orthogonal(6, reflected=True)).certificate_
    assert other.least_eigenvalue > -1e-14  # two smallest eigenvalues: σ − σ′, signs included


def test_the_error_of_a_rotation_is_in_the_frobenius_norm():
    """The worst change of M of the size of its rounding reaches the bound in that norm alone."""
    X, Y = pair(d=3)
    model = Procrustes().fit(X, Y)
    U, sigma, Vt = np.linalg.svd(model._frame.cross)
    size = 1e-6 * sigma[0]
    turn = np.zeros((3, 3))
    turn[1, 2], turn[2, 1] = 1.0, -1.0
    U1, _, Vt1 = np.linalg.svd(model._frame.cross + size / np.sqrt(2) * U @ turn @ Vt)
    change = U1 @ Vt1 - U @ Vt
    said = model.certificate_
    bound = said.rotation_error * size / (said.formation_error * sigma[0])
    assert np.linalg.norm(change) == pytest.approx(bound, rel=1e-4)
    assert np.linalg.norm(change, 2) < 0.8 * bound
    assert "Frobenius norm" in str(said)
    assert said.to_dict()["rotation_error_norm"] == "Frobenius"


def test_names_pickles_pipelines_and_frames_work():
    X, Y = pair(d=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = Procrustes().fit(frame, pd.DataFrame(Y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.get_feature_names_out().tolist() == ["procrustes0", "procrustes1", "procrustes2"]
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(frame), model.transform(frame))
    assert model.set_output(transform="pandas").transform(frame).shape == (60, 3)
    pipe = make_pipeline(PCA(2), Procrustes()).fit(X, Y[:, :2])
    assert pipe.transform(X).shape == (60, 2)
    assert clone(model).get_params() == Procrustes().get_params()


WRONG = [
    ("reflection", "maybe"),
    ("scaling", "yes"),
    ("scaling", 1),
    ("centering", 0),
    ("robust", True),
    ("robust", "mean"),
    ("prior", np.eye(2)),
    ("prior", np.full((3, 3), np.nan)),
    ("prior", [["a"] * 3] * 3),
    ("n_jobs", 0),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_parameter_is_named_with_its_value(name, value):
    X, Y = pair(d=3)
    with pytest.raises((ValueError, TypeError), match=rf"`{name}` must .*; got ") as caught:
        Procrustes(**{name: value}).fit(X, Y)
    assert isinstance(caught.value, GnomonError)


def test_the_target_is_checked_like_the_data_and_called_by_its_name():
    X, Y = pair(d=3)
    for bad, error, says in (
        (None, ValueError, "requires y to be passed"),
        (Y[:59], ValueError, "same number of rows; got 60 and 59"),
        (Y[:0], ValueError, "Y must have at least one row"),
        (Y + 1j, ValueError, "[Cc]omplex"),
        (Y.astype(str), TypeError, "^Y holds .*not numbers"),
        ((Y * 1e6).astype("datetime64[s]"), TypeError, "^Y holds dates.*Choose an encoding"),
        ([[1.0], [2.0, 3.0]], ValueError, "^Y must be a table"),
        (Y[None], ValueError, r"got shape \(1, 60, 3\)"),
        (np.ma.masked_greater(Y, 2.5), ValueError, "^Y holds .*missing"),
    ):
        with pytest.raises(error, match=says):
            Procrustes().fit(X, bad)
    import scipy.sparse as sp

    with pytest.raises(DataError, match="Y is a sparse matrix"):
        Procrustes().fit(X, sp.csr_array(Y))
    for weights in (np.ones(3), -np.ones(60), np.zeros(60)):
        with pytest.raises(ValueError, match="`sample_weight` must"):
            Procrustes().fit(X, Y, sample_weight=weights)
    with pytest.raises(ParameterError, match=r"at least 2 rows when `centering`; got '1 sample'"):
        Procrustes().fit(X[:1], Y[:1])


STORES = [
    ("Fortran order", np.asfortranarray),
    ("big-endian", lambda Y: Y.astype(">f8")),
    ("a list of lists", np.ndarray.tolist),
    ("objects", lambda Y: Y.astype(object)),
    ("a mask over nothing", np.ma.masked_array),
    ("pandas", pd.DataFrame),
    ("nullable pandas", lambda Y: pd.DataFrame(Y).astype("Float64")),
    ("polars", pl.DataFrame),
    ("pyarrow", lambda Y: pa.table(dict(zip("abc", Y.T, strict=False)))),
]


@pytest.mark.parametrize("store", [row[1] for row in STORES], ids=[row[0] for row in STORES])
def test_the_target_gives_the_same_bits_however_it_is_stored(store):
    X, Y = pair(d=3)
    for width in (3, 1):
        expected = Procrustes().fit(X, Y[:, :width])
        found = Procrustes().fit(X, store(Y[:, :width]))
        assert np.array_equal(found.rotation_, expected.rotation_)
        assert np.array_equal(found.residuals_, expected.residuals_)


@pytest.mark.parametrize("series", [pd.Series, pl.Series, pa.array, list])
def test_a_series_is_one_column(series):
    X, Y = pair(d=3)
    expected = Procrustes().fit(X, Y[:, 0]).rotation_
    assert np.array_equal(Procrustes().fit(X, series(Y[:, 0])).rotation_, expected)
