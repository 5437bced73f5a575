import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PCA, samples
from gnomon.errors import DataWarning, ParameterError, ParameterTypeError, UnavailableError

X = samples.load("wine").X


def test_standardising_equals_scikit_learns_scaler_and_is_undone_in_the_original_units():
    model = PCA(5, standardize=True, ddof=0).fit(X)
    scaled = StandardScaler().fit_transform(X)
    expected = PCA(5, ddof=0).fit(scaled)
    np.testing.assert_allclose(model.transform(X), expected.transform(scaled), atol=1e-9)
    assert abs(PCA(standardize=True).fit(X).total_variance_ - X.shape[1]) < 1e-9
    whole = PCA(standardize=True).fit(X)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, rtol=1e-9)


def test_captured_and_lost_variance_add_up_and_are_the_reconstruction_error():
    model = PCA(3, ddof=0).fit(X)
    assert np.isclose(model.captured_variance_ + model.lost_variance_, model.total_variance_)
    error = (model.residuals(X) ** 2).sum(axis=1).mean()
    assert np.isclose(error, model.lost_variance_)
    assert np.isclose(model.spectrum_[3:].sum(), model.lost_variance_)


def test_whitened_scores_have_unit_variance_and_are_restored():
    model = PCA(4, whiten=True).fit(X)
    np.testing.assert_allclose(np.cov(model.transform(X).T), np.eye(4), atol=1e-9)
    plain = PCA(4).fit(X)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)),
        plain.inverse_transform(plain.transform(X)),
        rtol=1e-9,
    )


def test_a_fraction_keeps_the_fewest_components_that_hold_it():
    for fraction in (0.5, 0.9, 0.99, 0.9999):
        model = PCA(fraction, standardize=True).fit(X)
        held = np.cumsum(PCA(standardize=True).fit(X).explained_variance_ratio_)
        assert model.n_components_ == np.argmax(held >= fraction) + 1


def test_a_fraction_makes_krylov_grow_until_it_is_held():
    Z = np.random.default_rng(0).standard_normal((500, 60)) * np.geomspace(1, 0.1, 60)
    quick = PCA(0.97, solver="krylov", tol=1e-9).fit(Z)
    exact = PCA(0.97, solver="covariance").fit(Z)
    assert quick.n_components_ == exact.n_components_ > 16
    np.testing.assert_allclose(quick.explained_variance_, exact.explained_variance_, rtol=1e-6)


def test_feature_weights_enter_the_scores_as_square_roots():
    weights = np.linspace(0.5, 3, X.shape[1])
    model = PCA(4, feature_weight=weights, standardize=True).fit(X)
    by_hand = PCA(4).fit((X - X.mean(0)) / X.std(0, ddof=1) * np.sqrt(weights))
    np.testing.assert_allclose(model.components_, by_hand.components_, atol=1e-9)
    whole = PCA(feature_weight=weights).fit(X)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, rtol=1e-8)


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "krylov", "deflation"])
@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_feature_weights_at_the_ends_of_their_range_only_scale_the_variances(solver, size):
    weights = np.linspace(0.5, 1, X.shape[1]) * (2 if size < 1 else 1)  # none beyond it
    plain = PCA(3, solver=solver, tol=1e-9, feature_weight=weights).fit(X)
    scaled = PCA(3, solver=solver, tol=1e-9, feature_weight=weights * size).fit(X)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-7)
    expected = plain.explained_variance_ * size
    np.testing.assert_allclose(scaled.explained_variance_, expected, rtol=1e-7)


@pytest.mark.parametrize("weight", [1e308, 1e-300])
@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "krylov", "deflation"])
def test_feature_weights_beyond_the_range_of_their_squares_are_refused(solver, weight):
    """NaN variances without a word before, and LAPACK's own error from krylov."""
    weights = np.ones(X.shape[1])
    weights[2] = weight
    with pytest.raises(ParameterError, match=r"between 1e-100 and 1e\+100; got .* position 2\."):
        PCA(2, solver=solver, feature_weight=weights).fit(X)


def test_merging_two_models_is_fitting_all_rows():
    merged = PCA(3).fit(X[:70]).merge(PCA(5).fit(X[70:]))
    whole = PCA(3, solver="covariance").fit(X)
    np.testing.assert_allclose(merged.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(merged.explained_variance_, whole.explained_variance_, rtol=1e-9)
    assert merged.n_samples_ == len(X)
    with pytest.raises(ParameterTypeError, match="`other` must be a fitted PCA"):
        merged.merge("model")


def test_what_cannot_be_merged_says_so():
    wide = PCA(2).fit(X[:5])
    assert wide.solver_ == "gram"
    krylov = PCA(2, solver="krylov").fit(X)
    for model in (wide, krylov):
        with pytest.raises(UnavailableError, match="partial_fit needs the d × d moments"):
            model.partial_fit(X)
        with pytest.raises(UnavailableError, match="merge needs the d × d moments"):
            model.merge(model)


def test_partial_fit_goes_on_after_fit_and_looks_only_when_asked():
    model = PCA(3, solver="covariance").fit(X[:100]).partial_fit(X[100:])
    assert "components_" not in vars(model)
    np.testing.assert_allclose(model.components_, PCA(3).fit(X).components_, atol=1e-9)
    assert "components_" in vars(model)
    assert PCA(3).partial_fit(X).transform(X).shape == (len(X), 3)


def test_fitting_again_forgets_the_former_fit():
    model = PCA(2).fit(X)
    model.fit(X[:, :4])
    assert model.n_features_in_ == 4
    assert model.components_.shape == (2, 4)


def test_like_keeps_the_signs_of_a_former_model():
    former = PCA(4).fit(X[:90])
    former.components_[[0, 2]] *= -1
    model = PCA(4).fit(X, like=former)
    free = PCA(4).fit(X)
    assert ((model.components_ * former.components_).sum(axis=1) > 0).all()
    np.testing.assert_allclose(np.abs(model.components_), np.abs(free.components_), atol=1e-12)
    with pytest.raises(ValueError, match="`like` must have 13 columns; got 4"):
        PCA(2).fit(X, like=PCA(2).fit(X[:, :4]))


def test_like_turns_inside_ties_only():
    rng = np.random.default_rng(0)
    # two directions with exactly the same variance, one with more
    base = np.linalg.qr(rng.standard_normal((40, 3)))[0]
    base -= base.mean(axis=0)
    base = np.linalg.qr(base)[0] * [5.0, 2.0, 2.0]
    former = PCA(3).fit(base)
    turn = np.array([[1, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]])
    former.components_ = turn @ former.components_
    model = PCA(3).fit(base, like=former)
    np.testing.assert_allclose(model.components_, former.components_, atol=1e-9)
    assert model.certificate_.inseparable == ((2, 3),)


def test_pipelines_pickles_and_clones_work():
    pipeline = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.transform(X), pipeline.transform(X))
    model = PCA(2).partial_fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).components_, model.components_)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).transform(X)


def test_names_go_in_and_come_out():
    import pandas as pd

    frame = pd.DataFrame(X, columns=samples.load("wine").columns)
    model = PCA(2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["pca0", "pca1"]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_scikit_learns_names_are_understood():
    for theirs, ours in (
        ("full", "svd"),
        ("covariance_eigh", "covariance"),
        ("arpack", "krylov"),
        ("randomized", "krylov"),
    ):
        assert PCA(2, svd_solver=theirs).fit(X).solver_ == ours
        assert PCA(2, solver=theirs).fit(X).solver_ == ours
    with pytest.raises(ValueError, match="agree with `solver`"):
        PCA(2, solver="gram", svd_solver="full").fit(X)


def test_the_same_fit_gives_the_same_bits_twice_and_takes_any_kind_of_seed():
    for seed in (None, 3, np.random.default_rng(1), np.random.RandomState(0)):
        PCA(2, solver="krylov", random_state=seed).fit(X)
    one, two = (PCA(2, solver="krylov").fit(X) for _ in range(2))
    assert np.array_equal(one.components_, two.components_)


def test_the_certificate_reads_well_and_is_ready_for_json():
    model = PCA(3).fit(X)
    text = str(model.certificate_)
    assert "PCA by covariance" in text
    assert "passes" in text
    assert json.loads(json.dumps(model.certificate_.to_dict()))["converged"] is True
    assert "<table>" in model.certificate_._repr_html_()


def test_near_ties_are_named():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((400, 4))
    base = np.linalg.qr(base - base.mean(axis=0))[0] * [9.0, 3.0, 3.0, 1.0]
    certificate = PCA(3).fit(base).certificate_
    assert certificate.inseparable == ((2, 3),)
    assert "components 2 and 3: only the space they span is determined" in str(certificate)
    assert certificate.angle_bounds[0] < 1e-9
    assert certificate.angle_bounds[1] > 0.1


def test_a_tie_across_the_cut_is_named_too():
    base = np.random.default_rng(0).standard_normal((400, 4))
    base = np.linalg.qr(base - base.mean(axis=0))[0] * [9.0, 3.0, 3.0, 1.0]
    assert PCA(2).fit(base).certificate_.inseparable == ((2, 3),)


def test_the_angle_bound_holds_for_a_float32_table():
    rng = np.random.default_rng(0)
    Z = (rng.standard_normal((3000, 20)) * np.geomspace(3, 1, 20)).astype(np.float32)
    model = PCA(5).fit(Z)
    truth = PCA(5, solver="svd").fit(Z.astype(np.float64))
    V = model.components_.astype(np.float64)
    along = (V * truth.components_).sum(axis=1, keepdims=True)
    true = np.linalg.norm(V - along * truth.components_, axis=1)
    assert (true <= model.certificate_.angle_bounds + 1e-7).all()
    assert (model.certificate_.angle_bounds < 1e-3).all()


def test_callbacks_hear_of_every_step_and_can_stop():
    heard = []

    class Listener:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, metadata):
            heard.append(metadata)
            return len(heard) == 2

    Z = np.random.default_rng(0).standard_normal((400, 200))
    with pytest.warns(UserWarning, match="krylov stopped"):
        PCA(5, solver="krylov", tol=1e-12).set_callbacks(Listener()).fit(Z)
    steps = [entry for entry in heard if entry]
    assert [entry["products"] for entry in steps] == [1, 2]
    assert steps[0]["residual"] > steps[1]["residual"] > 0


def test_a_direction_in_the_null_space_is_said_to_be_arbitrary():
    """Twenty rows of 64 columns: the twentieth component has no variance and any direction."""
    model = PCA().fit(samples.load("digits").X[:20])
    assert model.certificate_.angle_bounds[-1] > 1.5
    assert model.certificate_.angle_bounds[0] < 1e-6


def test_a_model_of_long_integers_takes_floats_and_far_rows():
    model = PCA(1).fit(np.array([[2**60], [2**60 + 4], [2**60 + 9]]))
    exact = model.transform(np.array([[2**60]]))
    np.testing.assert_allclose(exact, [[-13 / 3]])
    rounded = model.transform(np.array([[float(2**60)]]))  # the mean itself has no such digits
    assert abs(rounded[0, 0] - exact[0, 0]) < 200
    far = (
        PCA(1)
        .fit(np.array([[2**63], [2**63 + 4]], np.uint64))
        .transform(np.array([[0]], np.uint64))
    )
    np.testing.assert_allclose(far, [[-(2.0**63)]], rtol=1e-9)


def test_models_of_other_columns_do_not_merge():
    import pandas as pd

    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    with pytest.raises(ValueError, match="fitted on different columns, or in another order"):
        PCA(2).fit(frame).merge(PCA(2).fit(frame[["c", "b", "a"]]))


@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
@pytest.mark.parametrize("shape", [(5000, 3), (40, 9000)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_huge_row_that_the_sample_missed_is_scaled_for_every_solver(solver, shape, n_jobs):
    if solver in ("covariance", "deflation") and shape[1] > 100:
        shape = (3000, 40)
    if solver == "gram" and shape[0] > 1000:
        shape = (900, 300)
    Z = np.random.default_rng(0).standard_normal(shape)
    Z[1] *= 1e200
    with pytest.warns(DataWarning, match="Row 1 "):
        model = PCA(2, solver=solver, n_jobs=n_jobs).fit(Z)
    direction = Z[1] / 1e200
    assert abs(model.components_[0] @ direction / np.linalg.norm(direction)) > 1 - 1e-9
    assert model.explained_variance_ratio_[0] > 1 - 1e-9


def test_tiny_weights_of_float32_rows_are_weights():
    Z = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    tiny = PCA(2, ddof=0).fit(Z, sample_weight=np.full(50, 1e-50))
    np.testing.assert_allclose(tiny.components_, PCA(2, ddof=0).fit(Z).components_, atol=1e-5)


def test_a_warning_points_at_the_line_that_asked_for_the_fit():
    with pytest.warns(DataWarning) as caught:
        PCA(1).fit(np.ones((5, 3)))
    assert caught[0].filename == __file__


def test_a_rows_diagnostics_do_not_depend_on_the_rows_beside_it():
    Z = np.random.default_rng(0).standard_normal((300, 30))
    model = PCA(7).fit(Z)
    for method in (model.hotelling_t2, model.prediction_error, model.score_samples):
        whole = method(Z)
        assert all(np.array_equal(method(Z[i : i + 1])[0], whole[i]) for i in range(0, 300, 7))


@pytest.mark.parametrize("seed", ["x", -1])
def test_a_wrong_seed_is_named(seed):
    with pytest.raises(TypeError, match="`random_state` must be None, a non-negative integer"):
        PCA(2, random_state=seed).fit(X)


def test_plan_checks_parameters_too():
    with pytest.raises(ValueError, match="`solver` must be one of"):
        PCA(2, solver="fast").plan(X)


def test_a_column_that_dwarfs_the_others_is_the_first_component():
    Z = np.random.default_rng(0).standard_normal((200, 4))
    Z[:, 2] *= 1e9
    with pytest.warns(DataWarning):  # what it says is in contract/test_hard_cases.py
        model = PCA(2).fit(Z)
    assert abs(model.components_[0, 2]) > 1 - 1e-9


def test_krylov_finds_every_copy_of_a_repeated_variance():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((400, 200))
    table = np.linalg.qr(table - table.mean(axis=0))[0] * np.sqrt([10.0] * 60 + [1.0] * 140)
    model = PCA(50, solver="krylov").fit(table)
    exact = PCA(50, solver="covariance").fit(table)
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-6)


@pytest.mark.parametrize("power", [-280, -130, 130, 280])
@pytest.mark.parametrize("solver", ["covariance", "gram", "svd", "deflation", "krylov"])
def test_scales_whose_squares_exist_but_not_their_squares(solver, power):
    table = np.random.default_rng(0).standard_normal((300, 6)) * np.geomspace(3, 1, 6)
    plain = PCA(3, solver=solver).fit(table)
    scaled = PCA(3, solver=solver).fit(np.ldexp(table, power))
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-9)
    assert np.isfinite(scaled.certificate_.residuals).all()


def test_a_callback_that_stops_krylov_at_once_stops_it_for_good():
    steps = []

    class Stopper:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, metadata):
            steps.append(metadata)
            return True

    table = np.random.default_rng(0).standard_normal((400, 200))
    with pytest.warns(UserWarning, match="krylov stopped"):
        model = PCA(100, solver="krylov").set_callbacks(Stopper()).fit(table)
    assert len([step for step in steps if step]) == 1
    assert model.n_components_ < 100


def test_a_sparse_float32_table_far_from_zero_is_read_in_float64():
    rng = np.random.default_rng(0)
    dense = (rng.standard_normal((400, 20)) * np.geomspace(3, 1, 20) + 1e4).astype(np.float32)
    exact = PCA(3, solver="svd").fit(dense)
    for solver in ("gram", "krylov"):
        model = PCA(3, solver=solver, tol=1e-9).fit(sparse.csr_array(dense))
        np.testing.assert_allclose(model.components_, exact.components_, atol=1e-6)
