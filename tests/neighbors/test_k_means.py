import numpy as np
import pytest

from gnomon.neighbors.k_means import _halve_largest, find_centres

rng = np.random.default_rng(0)
GROUPS = rng.standard_normal((8, 5)) * 20
ROWS = GROUPS[rng.integers(8, size=5000)] + rng.standard_normal((5000, 5))


def spread(rows, centres):
    """Mean squared distance to the nearest centre."""
    return ((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1).mean()


def test_centres_are_as_good_as_scikit_learns():
    from sklearn.cluster import KMeans

    theirs = KMeans(64, init="random", n_init=1, max_iter=10, random_state=0).fit(ROWS)
    ours = find_centres(ROWS, 64, largest=1e16, seed=0)
    assert ours.shape == (64, 5)
    assert ours.dtype == np.float32
    assert spread(ROWS, ours) < 1.1 * spread(ROWS, theirs.cluster_centers_)


def test_as_many_centres_as_rows_are_the_rows():
    rows = rng.standard_normal((40, 3))
    found = find_centres(rows, 40, largest=1e16, seed=1)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(rows, axis=0), rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    one, many = (find_centres(ROWS, 70, largest=1e16, seed=3, n_jobs=j) for j in (1, n_jobs))
    assert one.tobytes() == many.tobytes()
    assert one.tobytes() != find_centres(ROWS, 70, largest=1e16, seed=4).tobytes()


def test_copies_leave_no_centre_without_a_place():
    """Of first centres at the same place one gets all rows: the others take half of a group."""
    copies = np.repeat(GROUPS[:3], 100, axis=0)
    found = find_centres(copies, 16, largest=1e16, seed=0)
    assert np.isfinite(found).all()
    assert spread(copies, found) < 1e-3


def test_a_group_without_rows_takes_half_of_the_largest():
    sums, counts = np.array([[10.0, 20.0], [0.0, 0.0], [3.0, 3.0]]), np.array([10, 0, 3])
    _halve_largest(sums, counts)
    assert counts.tolist() == [5, 5, 3]
    means = sums / counts[:, None]
    np.testing.assert_allclose(means[:2], [[1, 2], [1, 2]], rtol=2e-3)
    assert (means[0] != means[1]).all()


def test_wild_numbers_are_held_within_bounds():
    rows = ROWS.copy()
    rows[7] = 1e30
    assert np.abs(find_centres(rows, 70, largest=1e6, seed=0)).max() <= 1e6
