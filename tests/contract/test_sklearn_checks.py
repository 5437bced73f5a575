import pytest
from contract.estimators import ESTIMATORS
from sklearn.utils.estimator_checks import parametrize_with_checks

KNOWN = {repr(estimator): expected for estimator, expected in ESTIMATORS}


@parametrize_with_checks(
    [estimator for estimator, _ in ESTIMATORS],
    expected_failed_checks=lambda estimator: KNOWN[repr(estimator)],
)
# The checks fit one constant column, one row of zeros, and other tables that deserve our warnings.
@pytest.mark.filterwarnings("ignore::gnomon.errors.GnomonWarning")
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_no_estimator_has_more_than_five_expected_failures():
    assert all(len(expected) <= 5 for _, expected in ESTIMATORS)
