"""A verdict from too few rows is refused where it is empty, and warned of where it is weak."""

import math
import warnings

import numpy as np
import pytest
import scipy.spatial
from procrustes.sets import pair

from gnomon import Procrustes, align, compare, permutation_test, source
from gnomon.errors import DataError, DataWarning

WIDTHS = [(1, 1), (2, 2), (3, 3), (10, 10), (2, 7), (40, 5)]


def random_sets(n, dx, dy, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, dx)), random.normal(size=(n, dy))


VERDICTS = {
    "compare": compare,
    "compare in blocks": lambda X, Y: compare(source(X), source(Y)),
    "align": align,
    "align by ids": lambda X, Y: align(
        X, Y[::-1], list(range(len(X))), list(reversed(range(len(X))))
    ),
}


def chance(n, dx, dy, draws=200):
    """Mean Procrustes correlation of unrelated sets, by SciPy."""
    found = []
    for seed in range(draws):
        both = random_sets(n, dx, dy, seed)
        wide = [np.pad(Z, ((0, 0), (0, max(dx, dy) - Z.shape[1]))) for Z in both]
        found.append(math.sqrt(1 - min(1.0, scipy.spatial.procrustes(*wide)[2])))
    return found


@pytest.mark.parametrize("widths", WIDTHS)
def test_two_points_have_the_same_shape_by_construction_and_three_have_not(widths):
    """What the rule is about, by SciPy: 0 for every pair of sets of two points, and of no more."""
    assert np.allclose(chance(2, *widths, 20), 1)
    assert min(chance(3, *widths)) < 0.99


@pytest.mark.parametrize("widths", WIDTHS)
def test_below_dimensions_plus_two_unrelated_sets_look_alike_on_average(widths):
    """The number that the warning names; at ten times as many rows it is far lower."""
    d = min(widths)
    if d > 1:
        assert np.mean(chance(d + 1, *widths)) > 0.7
    assert np.mean(chance(10 * d + 2, *widths, 30)) < 0.4


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_dimensions_plus_two_rows_foretell_each_other_and_fewer_do_not(d):
    """Why dimensions + 2: without one of them the others still determine the map."""

    def unique(n):
        X, Y = random_sets(n, d, d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return [
                Procrustes().fit(np.delete(X, i, 0), np.delete(Y, i, 0)).certificate_.unique
                for i in range(n)
            ]

    assert all(unique(d + 2))
    if d > 1:
        assert not any(unique(d + 1))


@pytest.mark.parametrize("how", VERDICTS)
@pytest.mark.parametrize("widths", WIDTHS)
def test_two_shared_rows_are_refused(how, widths):
    X, Y = random_sets(2, *widths)
    needed = min(widths) + 2
    says = rf"2 shared rows.*same shape.*{needed} rows or more"
    with pytest.raises(DataError, match=says):
        VERDICTS[how](X, Y)


@pytest.mark.parametrize("how", VERDICTS)
@pytest.mark.parametrize("widths", [(2, 2), (3, 3), (10, 10), (4, 7), (40, 5)])
def test_fewer_rows_than_dimensions_plus_two_are_warned_of(how, widths):
    d = min(widths)
    for n in {3, d + 1}:
        X, Y = random_sets(n, *widths)
        says = rf"{n} shared rows in {d} dimensions.*0\.7.*{d + 2} rows or more"
        with pytest.warns(DataWarning, match=says) as caught:
            VERDICTS[how](X, Y)
        assert len(caught) == 1


@pytest.mark.parametrize("how", VERDICTS)
@pytest.mark.parametrize("widths", WIDTHS)
def test_as_many_rows_as_a_verdict_needs_pass_without_a_word(how, widths):
    VERDICTS[how](*random_sets(min(widths) + 2, *widths))  # warnings are errors here


def test_rows_are_those_that_are_shared_not_those_of_the_tables():
    X, Y = random_sets(30, 2, 2)
    ids = [list(range(30)), list(range(28, 58))]
    with pytest.raises(DataError, match="2 shared rows"):
        align(X, Y, *ids)
    with pytest.warns(DataWarning, match="3 shared rows in 2 dimensions"):
        align(X, Y, ids[0], list(range(27, 57)))
    left, right = (
        source(np.column_stack([i, Z]), names=["id", "a", "b"])
        for i, Z in zip(ids, (X, Y), strict=True)
    )
    with pytest.raises(DataError, match="2 shared rows"):
        compare(left, right, id="id")


def test_rows_without_weight_are_not_shared():
    X, Y = random_sets(30, 2, 2)
    weights = np.zeros(30)
    weights[:2] = 1.0
    with pytest.raises(DataError, match="2 shared rows"):
        align(X, Y, sample_weight=weights)


def test_without_a_translation_one_row_less_is_needed():
    X, Y = random_sets(3, 2, 2)
    align(X, Y, centering=False)
    with pytest.warns(DataWarning, match=r"2 shared rows in 2 dimensions.*3 rows or more"):
        align(X[:2], Y[:2], centering=False)
    with pytest.raises(DataError, match=r"1 shared row .*same shape.*3 rows or more"):
        align(X[:1], Y[:1], centering=False)


def test_the_estimator_fits_two_points_and_warns_of_what_it_says():
    """Two points of the plane may be all there is; the map is wanted then, not the verdict."""
    X, Y = random_sets(2, 2, 2)
    with pytest.warns(DataWarning, match=r"2 shared rows.*same shape"):
        model = Procrustes(scaling=True).fit(X, Y)
    assert model.disparity_ < 1e-12
    with pytest.warns(DataWarning, match="2 shared rows"):
        model = Procrustes().fit(source(X), source(Y))
    assert model.disparity_ < 1e-12
    later = Procrustes().partial_fit(X, Y).partial_fit(X[:1] + 1, Y[:1])
    with pytest.warns(DataWarning, match="3 shared rows in 2 dimensions"):
        assert later.rotation_.shape == (2, 2)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_a_test_of_few_rows_goes_through_every_order(n):
    """The p-value is then exact, and never below one in n!."""
    X, Y = random_sets(n, 2, 2, seed=n)
    if n == 3:
        with pytest.warns(DataWarning, match=r"3 rows.*6 orders.*0\.17.*At least 4 rows"):
            found = permutation_test(X, Y, random_state=1)
    else:
        found = permutation_test(X, Y, random_state=1)
    assert found.n_permutations == math.factorial(n) - 1
    assert found.p_value >= 1 / math.factorial(n)
    assert found.p_value * math.factorial(n) == pytest.approx(1 + found.as_large)
    assert f"all {math.factorial(n):,} orders" in str(found)


def test_every_order_is_gone_through_once():
    """Against every order written out, by SciPy."""
    from itertools import permutations

    X, Y = random_sets(4, 2, 2)
    found = permutation_test(X, Y)
    orders = list(permutations(range(4)))[1:]
    expected = [math.sqrt(1 - scipy.spatial.procrustes(X, Y[list(o)])[2]) for o in orders]
    assert np.allclose(np.sort(found.null), np.sort(expected), atol=1e-7)


def test_fewer_shuffles_than_orders_are_drawn_as_before():
    X, Y = random_sets(7, 2, 2)
    assert permutation_test(X, Y, 999).n_permutations == 999  # of 5,039
    assert permutation_test(X[:5], Y[:5], 50).n_permutations == 50  # of 119
    assert "all" not in dict(permutation_test(X, Y, 99).lines())["as large"]


@pytest.mark.parametrize("kind", ["tables", "sources"])
def test_a_test_of_two_rows_is_refused(kind):
    X, Y = random_sets(2, 3, 3)
    both = (X, Y) if kind == "tables" else (source(X), source(Y))
    with pytest.raises(DataError, match=r"2 shared rows.*same shape"):
        permutation_test(*both)


def test_neighbours_are_fewer_than_half_of_the_others():
    """All other rows are the nearest of both sets, whatever the sets are."""
    X, Y = random_sets(9, 2, 2)
    found = compare(X, Y)
    assert found.n_neighbors == 4
    assert "by chance 50 %" in str(found)
    overlaps = [compare(*random_sets(9, 2, 2, seed)).neighbor_overlap for seed in range(40)]
    # the mean of 40 × 9 × 4 draws of about a half
    assert np.mean(overlaps) == pytest.approx(0.5, abs=0.08)
    assert compare(*pair(n=50, d=2)).n_neighbors == 10
