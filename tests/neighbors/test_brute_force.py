"""Exact search of small tables, against distances that are sorted one row at a time."""

import numpy as np
import pytest

from gnomon.neighbors import brute_force
from gnomon.neighbors.brute_force import BruteForce
from gnomon.neighbors.inverted_lists import InvertedLists


def table(kind, rows=300, columns=7, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "ties":  # few values: many rows at the same distance, and copies
        return rng.integers(0, 3, (rows, columns)).astype(np.float64)
    Z = rng.standard_normal((rows, columns))
    if kind == "wild":
        Z[::97] *= 1e149
    if kind == "nearly equal":  # products of float64 cannot tell what differences can
        Z[:] = 1e6 + np.round(Z) + 1e-6 * rng.standard_normal(Z.shape)
    return Z


def truth(Z, Q, k, own=None):
    """The k nearest by (distance, row), as long doubles have them, rounded to float64."""
    rows, distances = [], []
    for i, q in enumerate(Q):
        others = np.arange(len(Z)) if own is None else np.delete(np.arange(len(Z)), own[i])
        away = (Z[others] - q).astype(np.longdouble)
        far = np.sqrt((away**2).sum(axis=1))
        nearest = np.lexsort([others, far])[:k]
        rows.append(others[nearest])
        distances.append(far[nearest].astype(np.float64))
    return np.array(rows), np.array(distances)


KINDS = ["plain", "ties", "wild", "nearly equal"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 5, 299])
def test_new_rows_get_the_nearest_rows_in_order(kind, k):
    Z, Q = table(kind), table(kind, 60, seed=1)
    rows, distances = BruteForce(Z).search(Q, k)
    expected, far = truth(Z, Q, k)
    np.testing.assert_allclose(distances, far, rtol=1e-14)
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_no_neighbour_of_itself_but_its_copies_are(kind):
    Z, own = table(kind), np.arange(300)
    rows, distances = BruteForce(Z).search(Z, 6, own=own)
    expected, far = truth(Z, Z, 6, own)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, far, rtol=1e-14)
    assert not (rows == own[:, None]).any()


def test_all_other_rows_can_be_asked_for():
    Z, own = table("plain", 12), np.arange(12)
    rows, _ = BruteForce(Z).search(Z, 11, own=own)
    assert (np.sort(np.column_stack([rows, own])) == own).all()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_sample_that_is_unlike_the_table_changes_no_neighbour(scale):
    """Rows from which the limit of the candidates is drawn are nearer, or farther, than others."""
    Z, Q = table("plain"), 1e-3 * table("plain", 60, seed=1)
    Z[:: brute_force.EVERY] *= scale
    rows, distances = BruteForce(Z).search(Q, 20)
    expected, far = truth(Z, Q, 20)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, far, rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 2, 7, 40])
def test_company_order_and_threads_change_no_bit(kind, columns):
    Z, Q = table(kind, columns=columns), table(kind, 200, columns, seed=1)
    search = BruteForce(Z)
    rows, distances = search.search(Q, 6, n_jobs=1)
    for part in (slice(3, 4), slice(10, 150), slice(None, None, -1)):
        for n_jobs in (1, 2, 4):
            some, far = search.search(Q[part], 6, n_jobs=n_jobs)
            np.testing.assert_array_equal(some, rows[part])
            assert far.tobytes() == np.ascontiguousarray(distances[part]).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_one_inverted_list_finds_the_same(kind):
    Z, own = table(kind), np.arange(300)
    rows, distances = BruteForce(Z).search(Z, 9, own=own)
    lists = InvertedLists(Z, np.zeros((1, Z.shape[1]), np.float32))
    expected, far = lists.search(Z, 9, 1, own=own, alone=True)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, far, rtol=1e-13)


def test_queries_that_rounding_could_have_changed_measure_every_row(monkeypatch):
    """Without the second look the product's rounding decides which of these are neighbours."""
    Z = table("nearly equal")
    expected = truth(Z, Z, 6, np.arange(300))[0]
    monkeypatch.setattr(brute_force, "EPSILON", 0.0)
    monkeypatch.setattr(brute_force, "SMALLEST", 0.0)
    unguarded = BruteForce(Z).search(Z, 6, own=np.arange(300))[0]
    assert not np.array_equal(unguarded, expected)
