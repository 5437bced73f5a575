import pytest
from contract.estimators import ESTIMATORS
from sklearn import config_context
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import PCA

KNOWN = {repr(estimator): expected for estimator, expected in ESTIMATORS}


@parametrize_with_checks(
    [estimator for estimator, _ in ESTIMATORS],
    expected_failed_checks=lambda estimator: KNOWN[repr(estimator)],
)
# The checks fit one constant column, one row of zeros, and other tables that deserve our warnings.
@pytest.mark.filterwarnings("ignore::gnomon.errors.GnomonWarning")
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def known_when_routed(estimator):
    """A pipeline routes weights to every `score`: scikit-learn's own PCA fails over it too."""
    expected = dict(KNOWN[repr(estimator)])
    if isinstance(estimator, PCA):
        expected["check_pipeline_consistency"] = (
            "Pipeline.score routes sample_weight to every score"
        )
    return expected


@parametrize_with_checks(
    [estimator for estimator, _ in ESTIMATORS],
    expected_failed_checks=known_when_routed,
)
@pytest.mark.filterwarnings("ignore::gnomon.errors.GnomonWarning")
def test_scikit_learn_accepts_the_estimator_when_metadata_is_routed(estimator, check):
    with config_context(enable_metadata_routing=True):
        check(estimator)


def test_no_estimator_has_more_than_five_expected_failures():
    assert all(len(expected) <= 5 for _, expected in ESTIMATORS)
