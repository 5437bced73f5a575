"""Intervals and p-values of a comparison."""

import numpy as np
import pytest

from gnomon import compare, permutation_test
from gnomon.procrustes.evidence import find_evidence


def draw(rng, n=200):
    X = rng.normal(size=(n, 3))
    return X, X[:, :2] + rng.normal(size=(n, 2))


def test_intervals_hold_the_value_of_many_rows_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    true = compare(*draw(rng, 40_000))
    held = np.zeros(3)
    for _ in range(40):
        found = find_evidence(compare(*draw(rng)), n_permutations=1)
        for at, (figure, value) in enumerate(
            ((found.disparity, true.disparity), (found.rv, true.rv), (found.cka, true.unbiased_cka))
        ):
            held[at] += figure.low <= value <= figure.high
    # 95 % of 40 are 38; below 33 lie 0.5 % of such counts.
    assert (held >= 33).all()


def test_values_and_p_values_are_those_of_compare_and_of_the_permutation_test():
    X, Y = draw(np.random.default_rng(1), 60)
    alike, test = compare(X, Y), permutation_test(X, Y, 99, random_state=3)
    found = find_evidence(alike, n_permutations=99, random_state=3)
    assert found.disparity.value == alike.disparity
    assert found.cka.value == alike.unbiased_cka
    assert found.neighbors.value == alike.neighbor_overlap
    assert found.disparity.p_value == test.p_value
    assert found.rv.p_value == test.rv_p_value


@pytest.mark.parametrize("related", [False, True])
def test_shared_neighbours_are_counted_in_shuffles(related):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    Y = X + rng.normal(size=X.shape) / 2 if related else rng.normal(size=X.shape)
    found = find_evidence(compare(X, Y), n_permutations=99).neighbors
    assert (found.p_value == 0.01) == related
    assert found.chance == pytest.approx(10 / 79)
    null = [compare(X, Y[rng.permutation(80)]).neighbor_overlap for _ in range(99)]
    share = (1 + sum(each >= found.value for each in null)) / 100
    assert found.p_value == pytest.approx(share, abs=0.2)  # 99 other shuffles


def test_too_few_rows_have_no_interval():
    X, Y = draw(np.random.default_rng(0), 7)
    found = find_evidence(compare(X, Y), n_permutations=9)
    assert np.isnan(found.rv.low)
