import multiprocessing
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from gnomon.errors import GnomonError
from gnomon.neighbors import search as module
from gnomon.neighbors.inverted_lists import InvertedLists
from gnomon.neighbors.rows import METRICS
from gnomon.neighbors.search import NeighborSearch, find_neighbors

rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 8))


def truth(table, k, **options):
    return NearestNeighbors(n_neighbors=k, **options).fit(table).kneighbors()


@pytest.fixture(params=["brute force", "one list"])
def exact(request, monkeypatch):
    """Both ways of exact search: that of small tables, and that of larger ones."""
    if request.param == "one list":
        monkeypatch.setattr(module, "SMALL_UP_TO", 0)


def test_exact_neighbours_are_scikit_learns(exact):
    found = find_neighbors(X, 12)
    distances, indices = truth(X, 12)
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    assert (found.recall, found.method) == (1.0, "exact search")


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        *((metric, np.asarray) for metric in (*METRICS, "manhattan")),
        *((metric, sp.csr_array) for metric in ("euclidean", "cosine", "hellinger", "manhattan")),
    ],
)
def test_the_table_that_is_kept_has_the_distances_of_the_one_given(metric, kind):
    rows = kind(np.abs(X[:200]) + 100.0 * (metric == "euclidean"))
    search = NeighborSearch(rows, metric=metric)
    again = NeighborSearch(search.table(), metric=metric)
    found, known = again.among_themselves(12), search.among_themselves(12)
    assert np.array_equal(found.indices, known.indices)
    np.testing.assert_allclose(found.distances, known.distances, rtol=1e-9)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_data_far_from_zero_are_searched_right(exact, offset):
    found = find_neighbors((X + offset), 12)
    assert np.mean(found.indices == truth(X, 12)[1]) > 0.999


def test_one_wild_row_does_not_spoil_the_others(exact):
    table = X.copy()
    table[5] = 1e12
    found = find_neighbors(table, 12)
    expected = truth(table - np.median(table, axis=0), 12)[1]
    others = np.arange(len(X)) != 5
    assert np.mean(found.indices[others] == expected[others]) > 0.999


def test_clusters_that_float32_cannot_resolve_are_searched_in_float64(exact):
    table = X * 1e-4
    table[::2] += 1e4
    found = find_neighbors(table, 12)
    same_side = (found.indices % 2) == (np.arange(len(X)) % 2)[:, None]
    assert same_side.all()
    even = find_neighbors(X[::2], 12).indices
    assert np.mean(found.indices[::2] // 2 == even) > 0.95


def test_exact_search_is_exact_where_the_recall_is_not_measured(exact):
    """A group that float32 cannot resolve, none of which is among the rows that are probed."""
    probed = np.random.default_rng(0).choice(1500, module.PROBE, replace=False)
    group = np.setdiff1d(np.arange(1500), probed)[::20]
    table = X.copy()
    table[group] = 1e4 + 1e-4 * X[group]
    found = find_neighbors(table, 12)
    away = np.linalg.norm(table[group][:, None] - table[group], axis=2)
    np.testing.assert_allclose(found.distances[group], np.sort(away, axis=1)[:, 1:13], rtol=1e-6)


def test_of_rows_at_the_same_distance_the_first_are_kept_by_old_and_new_rows_alike(exact):
    table = np.random.default_rng(0).integers(0, 2, (1000, 12)) / 3 + 7.1
    found = find_neighbors(table, 15)
    new, distances = NeighborSearch(table).of(table, 1000)
    for row in range(1000):
        others = new[row] != row
        assert np.array_equal(found.indices[row], new[row][others][:15])
    tied = np.isclose(distances[:, 15], distances[:, 16], rtol=1e-12)
    assert tied.mean() > 0.5  # there was something to choose
    level = np.diff(distances, axis=1) == 0
    assert (np.diff(new, axis=1)[level] > 0).all()


@pytest.fixture
def lists(monkeypatch):
    """Inverted lists already for few rows."""
    monkeypatch.setattr(module, "EXACT_UP_TO", 500)


@pytest.mark.parametrize("recall", [0.6, 0.9, 0.99])
def test_the_recall_asked_for_is_measured_and_reached(lists, recall):
    found = find_neighbors(X, 12, recall=recall)
    expected = truth(X, 12)[1]
    reached = np.mean([np.isin(a, b).mean() for a, b in zip(expected, found.indices, strict=True)])
    assert found.recall >= recall
    assert reached > recall - 0.05
    assert "inverted lists" in found.method
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_few_neighbours_are_looked_for_in_fewer_lists_at_the_same_recall(lists):
    search = NeighborSearch(X, recall=0.95)
    search.among_themselves(120)
    assert search.few_probes < search.n_probes
    far = ((NEW[:, None] - X) ** 2).sum(axis=2)
    expected = np.argsort(far, axis=1)[:, :15]
    found = search.of(NEW, 15)[0]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(expected, found, strict=True)]) > 0.9
    more = search.of(NEW, 16)[0]  # by all the lists that the table itself needed
    assert np.mean([np.isin(a, b).mean() for a, b in zip(expected, more, strict=True)]) > 0.97


@pytest.mark.parametrize("n_jobs", [0, [], "2"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_a_wrong_number_of_threads_is_refused_with_every_metric(metric, n_jobs):
    with pytest.raises(GnomonError, match="n_jobs"):
        find_neighbors(X, 5, metric=metric, n_jobs=n_jobs)


def test_full_recall_searches_exactly(lists):
    assert find_neighbors(X, 12, recall=1.0).method == "exact search"


def test_lists_that_hold_too_few_rows_are_filled_up(lists):
    table = np.vstack([X[:700], X[:5] + 100])  # five rows far away: their list has only them
    found = find_neighbors(table, 30, recall=0.1)
    assert (found.indices >= 0).all()
    assert all(len(set(row)) == 30 for row in found.indices)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_and_repetition_do_not_change_anything(lists, n_jobs):
    big = rng.standard_normal((9000, 6))
    one, many = find_neighbors(big, 15, n_jobs=1), find_neighbors(big, 15, n_jobs=n_jobs)
    assert np.array_equal(one.indices, many.indices)
    assert np.array_equal(one.distances, many.distances)


def find_in_child(queue):
    queue.put(find_neighbors(X, 12))


# Python warns of every fork of a process with threads; that it is safe here is what is tested.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_finds_the_same_lists(lists):
    """Threads are not forked: the child has to start its own."""
    found = find_neighbors(X, 12)
    assert "inverted lists" in found.method
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=find_in_child, args=(queue,))
    child.start()
    try:
        again = queue.get(timeout=30)
    finally:
        child.kill()
        child.join()
    assert np.array_equal(again.indices, found.indices)
    assert np.array_equal(again.distances, found.distances)


def test_neighbours_that_were_not_found_do_not_count_as_found():
    """−1 is no row, and not the last one either."""
    index = InvertedLists(X[:50], X[:4].astype(np.float32))
    probe = module._Probe(index, 49, 0, None)
    assert probe.recall(np.full((50, 49), -1)) == 0


@pytest.mark.parametrize("wild", [1.0, 1e-6])
def test_recall_is_measured_against_the_true_neighbours(wild):
    """Also of rows that float32 hardly tells apart, in lists that are far from them."""
    table = np.vstack([X[:300], 1e3 + wild * X[300:600]])
    index = InvertedLists(table, table[::60].astype(np.float32))
    probe = module._Probe(index, 20, 0, None)
    away = np.linalg.norm(table[probe.rows][:, None] - table, axis=2)
    nearest = np.sort(away, axis=1)  # each row itself first
    np.testing.assert_allclose(probe.sq_radius[15], nearest[:, 15] ** 2, rtol=1e-9)
    np.testing.assert_allclose(probe.sq_radius[20], nearest[:, 20] ** 2, rtol=1e-9)
    order = np.argsort(away, axis=1)
    assert probe.recall(order[:, 1:21]) == 1
    assert abs(probe.recall(order[:, 6:26]) - 0.75) < 1e-12


def test_measuring_the_recall_of_a_wide_table_takes_no_room():
    """All differences at once would be 340 MB here, and 4 GB for 20,000 columns."""
    table = np.random.default_rng(0).standard_normal((310, 2000))
    find_neighbors(table[:50, :5], 3)  # compiles
    tracemalloc.start()
    try:
        assert find_neighbors(table, 70).recall == 1.0
        assert tracemalloc.get_traced_memory()[1] < 10 * table.nbytes
    finally:
        tracemalloc.stop()


def test_a_row_is_not_its_own_neighbour_even_among_copies(exact):
    table = np.repeat(X[:20], 10, axis=0)
    found = find_neighbors(table, 12)
    assert (found.indices != np.arange(200)[:, None]).all()
    assert (found.distances[:, :9] == 0).all()
    assert (found.distances[:, 9:] > 0).all()
    # ordered by distance, then by row
    assert (np.diff(found.indices[:, :9], axis=1) > 0).all()


def test_cosine_is_the_angle_between_rows(exact):
    found = find_neighbors(X * rng.uniform(0.1, 10, (1500, 1)), 12, metric="cosine")
    distances, indices = truth(X, 12, metric="cosine")
    assert np.mean(found.indices == indices) > 0.999
    np.testing.assert_allclose(np.cos(found.distances), 1 - distances, atol=1e-6)
    with pytest.raises(ValueError, match="Row 3 of X is all 0"):
        find_neighbors(np.where(np.arange(1500)[:, None] == 3, 0, X), 12, metric="cosine")


def test_other_metrics_are_exact():
    found = find_neighbors(X[:300], 5, metric="manhattan")
    distances, indices = truth(X[:300], 5, metric="manhattan")
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances)
    with pytest.raises(ValueError, match="metric"):
        find_neighbors(X[:300], 5, metric="furlongs")


@pytest.mark.parametrize("k", [0, 1500, -1])
def test_k_must_be_below_the_number_of_rows(k):
    with pytest.raises(ValueError, match="`k` must be an integer from 1 to 1499"):
        find_neighbors(X, k)


def test_it_reads_well():
    found = find_neighbors(X, 12)
    assert "12 neighbours of 1,500 rows by exact search, recall 1.000" in str(found)
    assert found.to_dict()["k"] == 12


NEW = rng.standard_normal((700, 8))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_new_rows_find_the_rows_of_the_table(metric):
    search = NeighborSearch(X, metric=metric)
    indices, distances = search.of(NEW, 12)
    expected = NearestNeighbors(n_neighbors=12, metric=metric).fit(X).kneighbors(NEW)
    assert np.mean(indices == expected[1]) > 0.999
    found = 1 - np.cos(distances) if metric == "cosine" else distances
    np.testing.assert_allclose(found, expected[0], atol=1e-7)
    itself, nothing = search.of(X[:50], 1)
    assert np.array_equal(itself[:, 0], np.arange(50))
    assert nothing.max() < 1e-7


@pytest.mark.parametrize(("small", "exact_rows"), [(10_000, 10_000), (0, 10_000), (0, 500)])
@pytest.mark.parametrize(("columns", "rows"), [(8, 700), (64, 2100), (9000, 33)])
def test_what_a_new_row_finds_does_not_depend_on_its_company(
    monkeypatch, small, exact_rows, columns, rows
):
    """Among equal distances too, which products round by their company and differences do not."""
    monkeypatch.setattr(module, "SMALL_UP_TO", small)
    monkeypatch.setattr(module, "EXACT_UP_TO", exact_rows)
    local = np.random.default_rng(0)
    table, new = np.zeros((600, columns)), np.zeros((rows, columns))
    few = min(columns, 40)  # columns that are not constant
    table[:, :few] = local.integers(-2, 3, (600, few)) / 10
    new[:, :few] = local.integers(-2, 3, (rows, few)) / 10
    search = NeighborSearch(table)
    together = search.of(new, 12)
    order = local.permutation(rows)
    for part in (order, order[:1], order[:17], order[20:33]):
        for found, whole in zip(search.of(new[part], 12), together, strict=True):
            assert np.array_equal(found, whole[part])


def test_a_search_survives_a_pickle(lists):
    search = NeighborSearch(X)
    search.among_themselves(12)
    again = pickle.loads(pickle.dumps(search))
    for found, expected in zip(again.of(NEW, 12), search.of(NEW, 12), strict=True):
        assert np.array_equal(found, expected)


def test_new_rows_near_lists_that_hold_too_few_are_given_the_nearest_of_all(lists):
    table = np.vstack([X[:700], X[:5] + 100])
    search = NeighborSearch(table, recall=0.1)
    search.among_themselves(30)
    indices, distances = search.of(X[:5] + 100.1, 30)
    assert (indices >= 0).all()
    assert all(set(row[:5]) == set(range(700, 705)) for row in indices)
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.parametrize("power", [-1060, -664, 664, 1000])
def test_new_rows_are_found_in_any_unit(power):
    whole = np.round(X * 64) / 64  # few enough digits to survive as subnormals
    new = np.round(NEW * 64) / 64
    expected = NeighborSearch(whole).of(new, 12)
    found = NeighborSearch(np.ldexp(whole, power)).of(np.ldexp(new, power), 12)
    assert np.mean(found[0] == expected[0]) > 0.999


def test_rows_without_a_distance_are_named():
    """A metric of the user's may know none for some rows."""

    def spreads(a, b):
        return np.abs(a - b).sum() / (np.ptp(a) * np.ptp(b) or np.nan)

    table = np.vstack([X[:50], np.ones((1, 8))])
    with pytest.raises(ValueError, match=r"Row 50 of X has no spreads distance"):
        find_neighbors(table, 50, metric=spreads)
    search = NeighborSearch(X[:50], metric=spreads)
    with pytest.raises(ValueError, match=r"Row 0 of X has no spreads distance"):
        search.of(np.ones((1, 8)), 5)


def test_a_metric_may_be_a_function_of_two_rows():
    found = find_neighbors(X[:100], 5, metric=lambda a, b: float(np.abs(a - b).sum()))
    distances, indices = truth(X[:100], 5, metric="manhattan")
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)


def test_parameters_of_a_metric_are_passed_on():
    found = find_neighbors(X[:300], 5, metric="minkowski", metric_params={"p": 3})
    distances, indices = truth(X[:300], 5, metric="minkowski", p=3)
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances)


@pytest.mark.parametrize("columns", [8, 30])
def test_rows_that_float32_cannot_resolve_are_found_again(exact, columns):
    table = rng.standard_normal((1000, columns)) * 1e-4
    table[::2] += 1e4
    search = NeighborSearch(table)
    search.among_themselves(12)
    indices, distances = search.of(table, 12)
    assert np.array_equal(indices[:, 0], np.arange(1000))
    assert (distances[:, 0] == 0).all()
    apart = np.arange(1000)[::-37]
    for found, whole in zip(search.of(table[apart], 12), (indices, distances), strict=True):
        assert np.array_equal(found, whole[apart])


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_what_was_found_is_not_searched_again(metric, monkeypatch):
    search = NeighborSearch(X[:200], metric=metric)
    found = search.among_themselves(30).indices

    def never(*_):
        raise AssertionError("a second search")

    monkeypatch.setattr(NeighborSearch, "_search_all", never)
    for k in (1, 5, 15):
        assert np.array_equal(search.nearest(k), found[:, :k])
    with pytest.raises(AssertionError, match="a second search"):
        search.nearest(16)


def test_more_neighbours_than_are_known_are_searched_and_the_lists_of_new_rows_stay(lists):
    search = NeighborSearch(X, recall=0.95)
    search.among_themselves(5)
    search.n_probes = 7
    near = search.nearest(20)
    assert near.shape == (len(X), 20)
    expected = truth(X, 20)[1]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(expected, near, strict=True)]) > 0.9
    assert search.n_probes == 7
    assert np.array_equal(pickle.loads(pickle.dumps(search)).nearest(20), near)
