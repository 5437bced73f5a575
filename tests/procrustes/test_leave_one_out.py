import numpy as np
import pytest
from procrustes.sets import pair

from gnomon import Procrustes
from gnomon.errors import DataError, ParameterError


def by_hand(model, X, Y, w=None):
    out = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        one = Procrustes(**model.get_params())
        one.fit(X[rest], Y[rest], None if w is None else w[rest])
        out.append(one.residuals(X[i : i + 1], Y[i : i + 1])[0])
    return np.array(out)


@pytest.mark.parametrize("reflection", ["allow", "forbid", "force"])
@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_each_row_is_foretold_by_the_others(reflection, scaling, centering, d):
    X, Y = pair(n=15, d=d, scale=2.0, shift=0.5)
    model = Procrustes(reflection=reflection, scaling=scaling, centering=centering)
    # downdating loses a digit or two where a row holds much of the whole
    assert np.allclose(model.loo_residuals(X, Y), by_hand(model, X, Y), rtol=1e-10)


def test_weights_and_other_widths_are_foretold_too():
    X, Y = pair(n=20, d=4)
    w = np.random.default_rng(0).uniform(0.5, 3, 20)
    model = Procrustes(scaling=True)
    found = model.loo_residuals(X[:, :3], Y, sample_weight=w)
    assert np.allclose(found, by_hand(model, X[:, :3], Y, w), rtol=1e-10)


def test_left_out_rows_lie_farther_away_than_fitted_ones():
    X, Y = pair(n=12, d=3)
    model = Procrustes().fit(X, Y)
    assert (model.loo_residuals(X, Y) > model.residuals_).mean() > 0.9


def test_it_is_the_same_for_any_number_of_threads_and_does_not_fit_the_model():
    X, Y = pair(n=3000, d=3)
    found = [Procrustes(n_jobs=n).loo_residuals(X, Y) for n in (1, 2, 4)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    model = Procrustes()
    model.loo_residuals(X, Y)
    assert not hasattr(model, "rotation_")


def test_extreme_numbers_are_foretold():
    X, Y = pair(n=15, d=2)
    expected = Procrustes().loo_residuals(X, Y)
    assert np.allclose(Procrustes().loo_residuals(X * 1e200, Y * 1e200) / 1e200, expected)


def test_too_few_rows_and_robust_fits_are_refused():
    X, Y = pair(n=15, d=2)
    with pytest.raises(DataError, match=r"at least 3 rows.*got 2"):
        Procrustes().loo_residuals(X[:2], Y[:2])
    with pytest.raises(ParameterError, match="`robust` must be False"):
        Procrustes(robust="huber").loo_residuals(X, Y)
    lonely = np.zeros((5, 2))
    lonely[3] = 1.0
    with pytest.raises(DataError, match="Without row 3 all other rows"):
        Procrustes(scaling=True).loo_residuals(lonely, Y[:5])
