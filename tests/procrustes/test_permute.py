import numpy as np
import pytest
from procrustes.sets import pair
from references.tables import read

from gnomon import compare, permutation_test
from gnomon.errors import DataError
from gnomon.procrustes.permute import seed_of, shuffled_rows


def test_the_correlation_is_that_of_vegans_protest():
    X, Y = read("vegan_vare_inputX")[2], read("vegan_vare_inputY")[2]
    found = permutation_test(Y, X)
    assert found.correlation == pytest.approx(read("vegan_vare_protest_corr")[2][0, 0], rel=1e-14)
    assert permutation_test(X, Y).correlation == pytest.approx(found.correlation, rel=1e-14)
    assert found.p_value < 0.01


def test_the_p_value_is_never_zero_and_counts_the_true_pairing():
    X, _ = pair(n=40, d=2)
    found = permutation_test(X, X, 99)
    assert found.as_large == 0
    assert found.p_value == 1 / 100
    assert found.null.max() < found.correlation


def test_unrelated_sets_have_p_values_spread_evenly():
    random = np.random.default_rng(0)
    p = [
        permutation_test(random.normal(size=(12, 2)), random.normal(size=(12, 2)), 49).p_value
        for _ in range(150)
    ]
    # 150 uniform numbers: a mean within 4 standard errors of a half
    assert np.mean(p) == pytest.approx(0.5, abs=4 * 0.29 / np.sqrt(150))
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.1)


def test_shuffles_that_tie_with_the_truth_count_against_it():
    # a square: 8 of the 24 orders are as good as the true one
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    found = permutation_test(X, X, 999)
    assert (found.as_large, found.n_permutations) == (7, 23)
    assert found.p_value == 1 / 3
    drawn = permutation_test(X, X, 22)  # not all of them: as often as chance has it
    assert drawn.as_large / 22 == pytest.approx(1 / 3, abs=0.3)


def test_the_null_is_that_of_shuffled_fits():
    X, Y = pair(n=10, d=3)
    for reflection in ("allow", "forbid", "force"):
        found = permutation_test(X, Y, 20, reflection=reflection, random_state=3)
        assert found.null.max() <= 1
        assert (found.null >= 0).all()
    wide = permutation_test(X, Y[:, :2], 20)
    assert wide.correlation > 0
    with pytest.raises(ValueError, match="`reflection` must be 'allow'"):
        permutation_test(X, Y[:, :2], 20, reflection="forbid")


def test_shuffles_depend_on_the_seed_and_not_on_threads():
    X, Y = pair(n=30, d=2)
    found = [permutation_test(X, Y, 100, n_jobs=n).null for n in (1, 2, 4)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[0], permutation_test(X, Y, 100, random_state=0).null)
    assert not np.array_equal(found[0], permutation_test(X, Y, 100, random_state=1).null)
    generator = np.random.default_rng(7)
    assert permutation_test(X, Y, 9, random_state=generator).null.shape == (9,)
    assert permutation_test(X, Y, 9, random_state=np.random.RandomState(0)).null.shape == (9,)


def test_wrong_arguments_are_refused():
    X, Y = pair(n=30, d=2)
    with pytest.raises(ValueError, match="`n_permutations` must be an integer ≥ 1; got 0"):
        permutation_test(X, Y, 0)
    with pytest.raises(TypeError, match="`random_state` must be None"):
        permutation_test(X, Y, random_state="seed")
    with pytest.raises(DataError, match="X has norm 0"):
        permutation_test(np.ones((30, 2)), Y)
    assert "p = " in str(permutation_test(X, Y, 9))


def test_rv_and_cka_have_the_p_values_of_comparing_each_shuffle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = X[:, :2] + 6 * rng.normal(size=(30, 2))
    test, true = permutation_test(X, Y, 99), compare(X, Y)
    shuffled = [compare(X, Y[shuffled_rows(seed_of(None), at, 30)]) for at in range(99)]
    assert 0.01 < test.rv_p_value < 1
    rv = sum(each.rv >= true.rv - 1e-12 for each in shuffled)
    cka = sum(each.unbiased_cka >= true.unbiased_cka - 1e-12 for each in shuffled)
    assert (test.rv_p_value, test.cka_p_value) == ((1 + rv) / 100, (1 + cka) / 100)
