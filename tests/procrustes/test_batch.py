import numpy as np
import pytest
from procrustes.sets import orthogonal

from gnomon import Procrustes
from gnomon.errors import DataError, ParameterError

ATTRIBUTES = ["rotation", "scale", "translation", "disparity", "residual_sum", "rmsd", "reflected"]


def problems(p=40, n=12, d=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(p, n, d)) + 3
    R = np.stack([orthogonal(d, k) for k in range(p)])
    return X, 2 * X @ R + 0.3 * random.normal(size=(p, n, d)) - 5


@pytest.mark.parametrize("reflection", ["allow", "forbid", "force"])
@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
@pytest.mark.parametrize("centering", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_batch_is_fitted_like_its_problems(reflection, scaling, centering, d):
    X, Y = problems(d=d)
    model = Procrustes(reflection=reflection, scaling=scaling, centering=centering)
    many = model.fit_many(X, Y)
    for k in range(len(X)):
        one = Procrustes(**model.get_params()).fit(X[k], Y[k])
        for name in ATTRIBUTES:
            found, expected = getattr(many, name)[k], getattr(one, name + "_")
            # uncentred rows lie about 3 from the origin: a few times 1e-15 of their squares
            assert np.allclose(found, expected, rtol=1e-11, atol=1e-12), name


def test_tables_of_different_widths_are_padded():
    X, Y = problems(d=4)
    many = Procrustes().fit_many(X[:, :, :2], Y)
    one = Procrustes().fit(X[3, :, :2], Y[3])
    assert many.rotation.shape == (40, 2, 4)
    assert np.allclose(many.rotation[3], one.rotation_)
    assert many.disparity[3] == pytest.approx(one.disparity_)


def test_problems_that_say_nothing_of_a_rotation_get_the_prior():
    X, Y = problems()
    X[5] = 0.1
    Y[6] = Y[6, :1]
    X[7, :, 1] = 0  # on a line: a rotation and a reflection are as good
    many = Procrustes().fit_many(X, Y)
    assert np.allclose(many.rotation[5], np.eye(2))
    assert np.allclose(many.rotation[6], np.eye(2))
    assert np.allclose(many.rotation[7], Procrustes().fit(X[7], Y[7]).rotation_)
    assert many.disparity[5] == 1
    with pytest.raises(DataError, match="X has norm 0 in problem 5"):
        Procrustes(scaling=True).fit_many(X, Y)


def test_each_problem_has_units_of_its_own():
    X, Y = problems()
    expected = Procrustes(scaling=True).fit_many(X, Y)
    X[3], Y[3] = X[3] * 1e200, Y[3] * 1e200
    X[4], Y[4] = X[4] * 1e-200, Y[4] * 1e-200
    X[5] *= 1e200
    found = Procrustes(scaling=True).fit_many(X, Y)
    assert np.allclose(found.rotation, expected.rotation)
    assert np.allclose(found.disparity, expected.disparity)
    assert found.scale[5] == pytest.approx(expected.scale[5] * 1e-200)
    assert found.rmsd[3] == pytest.approx(expected.rmsd[3] * 1e200)
    plain = Procrustes().fit_many(X, Y)  # X is huge and Y is not: the turn is found nevertheless
    one = Procrustes().fit(X[5], Y[5])
    assert np.allclose(plain.rotation[5], one.rotation_)
    assert plain.rmsd[5] == pytest.approx(one.rmsd_)


def test_bits_do_not_depend_on_threads_or_layout():
    X, Y = problems(p=20_000, n=6)
    first = Procrustes(n_jobs=1).fit_many(X, Y)
    for n_jobs, A in ((2, X), (4, np.asfortranarray(X)), (2, X.astype(">f8"))):
        other = Procrustes(n_jobs=n_jobs).fit_many(A, Y)
        for name in ATTRIBUTES:
            assert np.array_equal(getattr(first, name), getattr(other, name)), name


def test_integers_and_booleans_are_numbers():
    X, Y = (np.round(Z * 10).astype(int) for Z in problems())
    found = Procrustes().fit_many(X, Y)
    assert np.array_equal(found.rotation, Procrustes().fit_many(X.astype(float), Y).rotation)
    assert Procrustes().fit_many(X > 30, Y).scale.shape == (40,)


def test_wrong_batches_are_refused():
    X, Y = problems()
    with pytest.raises(ParameterError, match=r"`X` must be numbers of shape \(problems, rows, col"):
        Procrustes().fit_many(X[0], Y[0])
    with pytest.raises(DataError, match=r"must have equal shapes \(p, n\)"):
        Procrustes().fit_many(X, Y[:, :5])
    with pytest.raises(ParameterError, match="`robust` must be False"):
        Procrustes(robust="huber").fit_many(X, Y)
    with pytest.raises(ParameterError, match="at least 2 rows"):
        Procrustes().fit_many(X[:, :1], Y[:, :1])
    Y[8, 2, 1] = np.nan
    with pytest.raises(
        DataError, match=r"Y holds a missing \(NaN\) or infinite value in problem 8"
    ):
        Procrustes().fit_many(X, Y)


def test_a_batch_reads_as_a_sentence():
    text = str(Procrustes().fit_many(*problems()))
    assert text.startswith("40 Procrustes fits")
    assert "disparity" in text
