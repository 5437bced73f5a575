"""Rows that changed company: found by brute force, and known movers found again."""

import numpy as np
import pytest
from procrustes.sets import orthogonal

from gnomon.neighbors.search import NeighborSearch
from gnomon.procrustes import changes
from gnomon.procrustes.changes import FAR, find_changes


def drift(d, spread, noise, share, *, n=3000, groups=10, seed=0):
    """Groups of rows; a share of the rows moves into another group; then all is turned and scaled.

    Groups stand in a row, so far apart that no row of one is a neighbour of another's.
    """
    rng = np.random.default_rng(seed)
    centres = np.zeros((groups, d))
    centres[:, 0] = spread * np.arange(groups)
    group = rng.integers(groups, size=n)
    X = centres[group] + rng.normal(size=(n, d))
    movers = rng.random(n) < share
    there = (group + rng.integers(1, groups, size=n)) % groups
    Y = X + noise * rng.normal(size=X.shape)
    Y[movers] += (centres[there] - centres[group])[movers]
    return X, 3 * Y @ orthogonal(d) + 5, np.flatnonzero(movers)


@pytest.mark.parametrize(
    ("d", "noise", "share"), [(2, 0.05, 0.05), (2, 0.2, 0.2), (10, 0.3, 0.05), (50, 0.5, 0.03)]
)
def test_known_movers_are_found_with_precision_and_recall_above_95_percent(d, noise, share):
    X, Y, movers = drift(d, 12, noise, share)
    found = set(find_changes(X, Y, 10).changed.tolist())
    right = len(found & set(movers.tolist()))
    assert right / len(found) >= 0.95
    assert right / len(movers) >= 0.95


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_without_movers_hardly_any_row_changed_company(noise):
    X, Y, _ = drift(10, 12, noise, 0.0)
    assert find_changes(X, Y, 10).share <= 0.002


def test_unrelated_tables_have_no_row_that_changed_more_than_the_others():
    rng = np.random.default_rng(0)
    found = find_changes(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)), 10)
    assert found.kept.mean() < 0.05
    assert found.limit > 10 * FAR


def test_shares_are_those_of_all_pairs_of_rows():
    X, Y, _ = drift(3, 12, 0.3, 0.1, n=200)
    found = find_changes(X, Y, 5)
    D = [np.linalg.norm(Z[:, None] - Z, axis=2) for Z in (X, Y)]
    near = [np.argsort(d + np.diag([np.inf] * 200), axis=1)[:, :5] for d in D]
    kept = [len(set(a) & set(b)) / 5 for a, b in zip(*near, strict=True)]
    assert found.kept == pytest.approx(np.array(kept))
    both = []
    for d, others in ((D[1], near[0]), (D[0], near[1])):
        middle = np.sort(np.take_along_axis(d, others, 1), axis=1)[:, 2]
        both.append(((d < middle[:, None] * (1 - 1e-9)).sum(axis=1) - 1) / 199)
    # A neighbour at the very distance may be counted or not, by rounding.
    assert found.between == pytest.approx(np.minimum(*both), abs=1.01 / 199)


def test_exchanged_tables_have_the_same_changes():
    X, Y, _ = drift(3, 12, 0.3, 0.1, n=300)
    there, back = find_changes(X, Y, 5), find_changes(Y, X, 5)
    assert there.changed.tolist() == back.changed.tolist()
    assert there.kept.tolist() == back.kept.tolist()


def test_many_rows_are_sampled_and_their_neighbours_are_those_among_all_rows(monkeypatch):
    X, Y, movers = drift(2, 12, 0.05, 0.05)
    whole = find_changes(X, Y, 10)
    monkeypatch.setattr(changes, "MOST_SEARCHED", 2_999)
    monkeypatch.setattr(changes, "SEARCHED", 500)
    some = find_changes(X, Y, 10)
    assert len(some.rows) == 500
    assert (some.near_x == whole.near_x[some.rows]).all()
    assert some.kept.tolist() == whole.kept[some.rows].tolist()
    assert set(some.changed) <= set(whole.changed) | set(movers)


def test_some_rows_of_lists_have_the_neighbours_that_all_rows_have():
    Z = np.random.default_rng(0).normal(size=(13_000, 2))
    rows = np.arange(0, 13_000, 7)
    search = NeighborSearch(Z, recall=0.999)
    some, every = search.among_themselves(10, rows), search.among_themselves(10)
    assert (some.indices == every.indices[rows]).all()
    again = NeighborSearch(Z, recall=0.999).among_themselves(10)
    assert (again.indices == every.indices).all()


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_number_of_threads_changes_no_bit(n_jobs):
    X, Y, _ = drift(10, 12, 0.3, 0.05)
    one, other = find_changes(X, Y, 10, 1), find_changes(X, Y, 10, n_jobs)
    assert one.between.tobytes() == other.between.tobytes()
    assert one.kept.tobytes() == other.kept.tobytes()
