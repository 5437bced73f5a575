"""Inverted lists against plain brute force over the same lists."""

import numpy as np
import pytest

from gnomon.neighbors import inverted_lists as lists
from gnomon.neighbors.inverted_lists import InvertedLists


def table(kind, rows=900, columns=7, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "ties":  # few values: many rows at the same distance, and copies
        return rng.integers(0, 3, (rows, columns)).astype(np.float64)
    Z = rng.standard_normal((rows, columns))
    if kind == "wild":
        Z[::97] *= 1e60
    if kind == "nearly equal":  # float32 cannot tell what float64 can
        Z[:] = np.round(Z) + 1e-9 * rng.standard_normal(Z.shape)
    return Z


def grouped(Z, n_lists=12):
    centres = Z[:: len(Z) // n_lists][:n_lists]
    return InvertedLists(Z, np.clip(centres, -1e16, 1e16).astype(np.float32))


def brute(found, Q, k, n_probes, own=None):
    """The k nearest by (distance, row) of the lists that `found` would look into."""
    rows, distances = [], []
    for i, probed in enumerate(found.nearest(Q, n_probes)):
        held = np.concatenate(
            [found.order[found.starts[at] : found.starts[at + 1]] for at in probed]
        )
        if own is not None:
            held = held[held != own[i]]
        far = np.sqrt(((found.Z[held] - Q[i]) ** 2).sum(axis=1))
        best = np.lexsort([held, far])[:k]
        rows.append(held[best])
        distances.append(far[best])
    return np.array(rows), np.array(distances)


KINDS = ["plain", "ties", "wild", "nearly equal"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_probes", [1, 3, 12])
def test_a_row_alone_gets_the_nearest_of_its_lists(kind, n_probes):
    Z, Q = table(kind), table(kind, 60, seed=1)
    found = grouped(Z)
    rows, distances = found.search(Q, 5, n_probes, alone=True)
    expected, far = brute(found, Q, 5, n_probes)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, far, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_company_and_order_change_nothing(kind):
    Z, Q = table(kind), table(kind, 400, seed=1)
    found = grouped(Z)
    rows, distances = found.search(Q, 6, 4, alone=True)
    for part in (slice(3, 4), slice(10, 200), slice(None, None, -1)):
        some, far = found.search(Q[part], 6, 4, alone=True)
        np.testing.assert_array_equal(some, rows[part])
        assert far.tobytes() == np.ascontiguousarray(distances[part]).tobytes()


def test_a_row_is_no_neighbour_of_itself_but_its_copies_are():
    Z = table("ties")
    found = grouped(Z)
    own = np.arange(len(Z))
    rows, distances = found.search(Z, 5, 12, own=own, alone=True)
    expected, _ = brute(found, Z, 5, 12, own)
    np.testing.assert_array_equal(rows, expected)
    assert not (rows == own[:, None]).any()
    assert (distances[:, 0] == 0).any()


def test_nothing_is_where_the_lists_hold_too_few_rows():
    Z = table("plain", 40)
    found = grouped(Z, 8)
    rows, distances = found.search(Z, 30, 1, own=np.arange(40))
    held = np.diff(found.starts)[found.nearest(Z, 1)[:, 0]] - 1
    np.testing.assert_array_equal((rows >= 0).sum(axis=1), np.minimum(held, 30))
    assert np.isinf(distances[rows < 0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_many_neighbours_are_in_order_too(kind):
    """They are sorted, where few are inserted one after the other."""
    Z = table(kind)
    found, own = grouped(Z), np.arange(len(Z))
    k = 3 * lists.MANY
    rows, distances = found.search(Z, k, 12, own=own, alone=True)
    expected, far = brute(found, Z, k, 12, own)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, far, rtol=1e-12)
    every, _ = found.search(Z, len(Z) - 1, 12, own=own)
    assert all(len(set(row)) == len(Z) - 1 for row in every)
    assert not (every == own[:, None]).any()


def test_threads_change_nothing():
    Z = table("plain", 5000, 20)
    own = np.arange(len(Z))
    found = grouped(Z, 40)
    results = [found.search(Z, 10, 5, own=own, n_jobs=jobs) for jobs in (1, 2, 4)]
    assert len({rows.tobytes() + far.tobytes() for rows, far in results}) == 1


def test_long_lists_and_many_queries_are_taken_in_pieces():
    Z, Q = (
        table("plain", 2 * lists.LONG + 100, 4),
        table("plain", lists.TOGETHER + 50, 4, seed=1),
    )
    found = grouped(Z, 1)
    rows, _ = found.search(Q, 10, 1, alone=True)
    np.testing.assert_array_equal(rows, brute(found, Q, 10, 1)[0])


def test_almost_every_row_is_settled_without_measuring_its_lists(monkeypatch):
    Z, Q = table("plain", 4000, 30), table("plain", 1000, 30, seed=1)
    found, measured = grouped(Z, 20), []
    settle = lists._settle
    monkeypatch.setattr(lists, "_settle", lambda *a: measured.append(len(a[3])) or settle(*a))
    found.search(Q, 15, 5, alone=True)
    assert sum(measured) == len(Q)  # no row was looked at twice


def test_rows_that_must_look_again_do_so_together(monkeypatch):
    """One at a time they are many times slower: in wide tables it is almost all of them."""
    Z, Q = table("ties", 3000), table("ties", 400, seed=1)
    found, measured = grouped(Z), []
    whole = found.search(Q, 15, 4, alone=True)
    settle = lists._settle
    monkeypatch.setattr(lists, "_settle", lambda *a: measured.append(len(a[3])) or settle(*a))
    found.search(Q, 15, 4, alone=True)
    assert sum(measured) > 1.2 * len(Q)
    assert len(measured) <= 8  # four blocks of queries, each once and once again
    measured.clear()
    monkeypatch.setattr(lists, "AGAIN", 7 * np.diff(found.starts).max())  # seven of them
    for part, expected in zip(found.search(Q, 15, 4, alone=True), whole, strict=True):
        assert part.tobytes() == expected.tobytes()
    assert sorted(measured)[-5:] == [7, 16, 128, 128, 128]


@pytest.mark.parametrize("first", [np.float32(1), np.nextafter(np.float32(1), np.float32(2))])
def test_neighbouring_numbers_are_told_apart_without_end(first):
    """The middle of two neighbouring numbers is one of them, whichever is even."""
    second = np.nextafter(first, np.float32(3))
    near = np.repeat(np.array([first, second], np.float32), [5, 60])
    order = np.random.default_rng(0).permutation(65)
    held, names = near[order].copy(), order.astype(np.int32)
    count, bound = lists._select(held, names, 65, 10, np.float32(np.inf))
    assert (count, bound) == (10 + lists.SPARE, second)
    assert (near[names[:count]] == held[:count]).all()
    assert (held[:count] == first).sum() == 5


def test_rounding_far_from_a_lists_centre_does_not_hide_the_nearest():
    """Squared distances 0.002 apart, 1,000 away from the centre: float32 is off by 0.1."""
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((60, 7))
    Q *= 1000 / np.linalg.norm(Q, axis=1, keepdims=True)
    steps = rng.standard_normal((60, 70, 7))
    steps *= np.sqrt(1 + 0.002 * np.arange(70))[:, None] / np.linalg.norm(steps, axis=2)[..., None]
    Z = np.vstack([np.zeros((1, 7)), (Q[:, None] + steps).reshape(-1, 7)])
    found = InvertedLists(Z, np.zeros((1, 7), np.float32))
    rows, _ = found.search(Q, 1, 1, alone=True)
    np.testing.assert_array_equal(rows[:, 0], 1 + 70 * np.arange(60))
    assert (found.search(Q, 1, 1)[0] != rows).any()  # which is what could happen


def test_squares_that_float32_hardly_has_hide_nothing():
    """Squared distances of about 1e-44, where the next number is 1.4e-45 away."""
    rng = np.random.default_rng(0)
    Z, Q = 1e-22 * rng.random((500, 3)), 1e-22 * rng.random((60, 3))
    found = InvertedLists(Z, np.zeros((1, 3), np.float32))
    rows, _ = found.search(Q, 3, 1, alone=True)
    np.testing.assert_array_equal(rows, brute(found, Q, 3, 1)[0])


def test_wild_rows_have_the_nearest_of_wild_lists():
    centres = np.array([[0, 0], [1e10, 0], [1e16, 0]], np.float32)
    found = InvertedLists(centres.astype(np.float64), centres)
    np.testing.assert_array_equal(found.nearest(np.array([[1e60, 0.0]]), 3), [[2, 1, 0]])
