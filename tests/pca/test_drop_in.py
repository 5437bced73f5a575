"""Where scikit-learn's PCA is replaced by this one: parameters and edge cases of its users."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from pca.tables import correlated
from sklearn import config_context, decomposition
from sklearn.utils import get_tags

from gnomon import PCA, Procrustes, load
from gnomon.errors import ParameterError, UnavailableError

SOLVERS = ["covariance", "gram", "svd", "deflation", "krylov"]


def test_every_parameter_of_scikit_learn_is_accepted():
    X, theirs = correlated(), decomposition.PCA(3).get_params()
    theirs |= {"copy": False, "iterated_power": 7, "n_oversamples": 30, "svd_solver": "arpack"}
    before, model = X.copy(), PCA(**theirs).fit(X)
    assert np.array_equal(X, before)
    expected = PCA(3, svd_solver="arpack").fit(X)
    assert np.array_equal(model.components_, expected.components_)


def test_a_parameter_without_effect_is_named_in_the_log(caplog):
    with caplog.at_level(logging.INFO, logger="gnomon"):
        PCA(2).fit(correlated())
        assert not caplog.messages
        PCA(2, n_oversamples=20).fit(correlated())
    assert caplog.messages == [
        "`n_oversamples` has no effect: `tol` decides how exact the components are."
    ]


@pytest.mark.parametrize("options", [{"svd_solver": "arpack"}, {"tol": 0.0, "solver": "krylov"}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arpack_and_a_tolerance_of_zero_are_exact_to_rounding(options, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60)).astype(dtype)  # a flat spectrum, which converges slowly
    model = PCA(4, **options).fit(X)
    exact = PCA(4, solver="svd").fit(X.astype(np.float64))
    eps = np.finfo(dtype).eps
    assert model.certificate_.converged
    assert model.certificate_.residuals.max() < 100 * eps
    np.testing.assert_allclose(model.components_, exact.components_, atol=2000 * eps)
    assert PCA(4, solver="krylov").fit(X).certificate_.tol == 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_components_leave_the_mean_and_the_noise(solver, tmp_path):
    X = correlated()
    model, theirs = PCA(0, solver=solver).fit(X), decomposition.PCA(0).fit(X)
    assert model.components_.shape == (0, 6)
    assert model.transform(X).shape == (len(X), 0)
    np.testing.assert_allclose(model.inverse_transform(np.empty((2, 0))), [X.mean(axis=0)] * 2)
    assert model.noise_variance_ == pytest.approx(theirs.noise_variance_)
    assert model.score(X) == pytest.approx(theirs.score(X))
    np.testing.assert_allclose(model.get_precision(), theirs.get_precision())
    assert model.lost_variance_ == pytest.approx(model.total_variance_)
    np.testing.assert_allclose(model.prediction_error(X), (model.residuals(X) ** 2).sum(axis=1))
    assert model.prediction_error_limit(0.05) > np.median(model.prediction_error(X))
    model.save(tmp_path / "none.gnomon")
    assert load(tmp_path / "none.gnomon").transform(X).shape == (len(X), 0)
    with pytest.raises(UnavailableError, match="the model has none"):
        model.bootstrap(X)


def test_batches_can_be_added_without_components():
    X = correlated()
    model = PCA(0).partial_fit(X[:50]).partial_fit(X[50:])
    assert model.noise_variance_ == pytest.approx(PCA(0).fit(X).noise_variance_)


@pytest.mark.parametrize("solver", [*SOLVERS, "auto", "arpack"])
def test_float32_gives_float32_components_and_the_certificate_counts_their_rounding(solver):
    X = correlated().astype(np.float32)
    model, fine = PCA(3, solver=solver).fit(X), PCA(3, solver=solver).fit(X.astype(np.float64))
    assert model.components_.dtype == model.transform(X).dtype == np.float32
    assert fine.components_.dtype == fine.transform(X.astype(np.float64)).dtype == np.float64
    assert PCA(3).partial_fit(X).components_.dtype == np.float32
    assert PCA(3).fit(correlated().astype(np.int64)).components_.dtype == np.float64
    V = model.components_.astype(np.float64)
    loss = np.abs(V @ V.T - np.eye(3)).max()
    assert model.certificate_.orthogonality == pytest.approx(loss, rel=1e-6)
    C = np.cov(X.astype(np.float64).T)
    truth = np.linalg.norm(C @ V.T - V.T * model.explained_variance_, axis=0)
    stated = model.certificate_.residuals + model.certificate_.formation_error
    assert (truth / model.explained_variance_[0] <= stated).all()
    assert fine.certificate_.residuals.max() < model.certificate_.residuals.max() < 1e-6


def test_float32_components_are_saved_as_they_are(tmp_path):
    X = correlated().astype(np.float32)
    model = PCA(3).fit(X)
    model.save(tmp_path / "model.gnomon")
    again = load(tmp_path / "model.gnomon")
    assert again.components_.dtype == np.float32
    assert np.array_equal(again.transform(X), model.transform(X))


def test_more_components_than_columns_are_refused_with_the_first_batch():
    with pytest.raises(ParameterError, match="from 0 to 6; got 99"):
        PCA(99).partial_fit(correlated())
    assert PCA(6).partial_fit(correlated()[:2]) is not None  # more rows may come


def test_filling_in_does_not_claim_to_take_sparse_tables():
    assert get_tags(PCA()).input_tags.sparse
    assert not get_tags(PCA(missing="em")).input_tags.sparse
    PCA(2).fit(sp.csr_array(correlated()))


def test_strings_and_booleans_of_numpy_are_strings_and_booleans():
    X = correlated()
    model = PCA(np.str_("mle"), solver=np.str_("svd"), whiten=np.bool_(True)).fit(X)
    expected = PCA("mle", solver="svd", whiten=True).fit(X)
    assert np.array_equal(model.transform(X), expected.transform(X))
    with pytest.raises(ParameterError, match="`solver` must be one of"):
        PCA(solver=np.str_("quick")).fit(X)


@pytest.mark.parametrize("model", [PCA(2), Procrustes()])
def test_inverse_transform_takes_its_rows_by_the_name_of_all_transformers(model):
    X = correlated()
    model = model.fit(X, X @ np.linalg.qr(X[:6])[0])
    Z = model.transform(X)
    assert np.array_equal(model.inverse_transform(X=Z), model.inverse_transform(Z))
    with config_context(enable_metadata_routing=True):
        asked = model.get_metadata_routing().inverse_transform.requests
    assert not {"X", "Y", "Z"} & asked.keys()
