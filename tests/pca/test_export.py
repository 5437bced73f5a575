import numpy as np
import pytest
from pca.tables import correlated
from sklearn import decomposition
from sklearn.base import clone

from gnomon import PCA
from gnomon.errors import UnavailableError


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", [{}, {"whiten": True}, {"ddof": 0}])
def test_the_exported_model_gives_the_same_numbers(options, dtype):
    X = correlated().astype(dtype)
    ours = PCA(3, **options).fit(X)
    theirs = ours.to_sklearn()
    assert type(theirs) is decomposition.PCA
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    scores = ours.transform(X)
    np.testing.assert_allclose(theirs.transform(X), scores, **close)
    np.testing.assert_allclose(
        theirs.inverse_transform(scores), ours.inverse_transform(scores), **close
    )
    assert theirs.components_.dtype == theirs.transform(X).dtype == dtype
    assert theirs.noise_variance_ == pytest.approx(ours.noise_variance_, rel=1e-6)
    assert theirs.n_samples_ == len(X)


def test_the_exported_model_is_what_scikit_learn_would_have_fitted():
    X = correlated()
    exported = PCA(3).fit(X).to_sklearn()
    fitted = decomposition.PCA(3, svd_solver="full").fit(X)
    assert vars(exported).keys() == vars(fitted).keys()
    np.testing.assert_allclose(exported.get_covariance(), fitted.get_covariance(), rtol=1e-9)
    assert exported.score(X) == pytest.approx(fitted.score(X), rel=1e-9)
    again = clone(exported).fit(X)
    np.testing.assert_allclose(again.explained_variance_, exported.explained_variance_, rtol=1e-9)


def test_names_of_columns_are_exported(pandas_frame):
    assert list(PCA(2).fit(pandas_frame).to_sklearn().feature_names_in_) == ["a", "b", "c"]


@pytest.fixture
def pandas_frame():
    import pandas as pd

    return pd.DataFrame(correlated()[:, :3], columns=["a", "b", "c"])


@pytest.mark.parametrize(
    "options", [{"standardize": True}, {"feature_weight": np.arange(1.0, 7.0)}, {"missing": "em"}]
)
def test_what_scikit_learn_has_no_place_for_is_refused(options):
    with pytest.raises(UnavailableError, match=f"does not support `{next(iter(options))}`"):
        PCA(2, **options).fit(correlated()).to_sklearn()
