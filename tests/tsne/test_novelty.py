"""Rows unlike the data, told from rows like it: the truth is how they were made."""

import numpy as np
import pytest
import scipy.sparse as sp
from models.same import there_and_back
from scipy.stats import beta, binom
from sklearn.pipeline import make_pipeline
from tsne.kinds import noise, rows, shuffled

from gnomon import PCA, TSNE, source
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.novelty import (
    REASONS,
    Novelty,
    distance_ratios,
    joint_limits,
    left_out_ratios,
)

RARE = 0.01
WIDE, NARROW = 200, 60  # with and without a PCA before the map
N, NEW = 400, 500


def fitted(X, **parameters):
    """A map that is hardly one: its limits do not depend on the descent."""
    return TSNE(**{"perplexity": 10, "max_iter": 1, "random_state": 0, **parameters}).fit(X)


HOW = {
    "wide": (WIDE, {}),
    "wide without PCA": (WIDE, {"pca": None}),
    "narrow": (NARROW, {}),
    "narrow with PCA": (NARROW, {"pca": 25}),
    "cosine": (WIDE, {"metric": "cosine"}),
}


def few_beyond(count, total, tables, n):
    """Whether `count` of `total` new rows is about 1 %, the limits being those of `n` rows.

    The share beyond a limit that is one of n rows' largest numbers is itself random, as Beta is;
    the mean over `tables` of them is known to 4 standard deviations. Limits for the two together
    are a little too wide or too narrow: 0.5 to 1.6 of the share asked for.
    """
    t = max(1, round(RARE * n))
    spread = beta(t, n + 1 - t).std() / np.sqrt(tables)
    low, high = 0.5 * RARE - 4 * spread, 1.6 * RARE + 4 * spread
    return binom.sf(count - 1, total, high) > 1e-4 and binom.cdf(count, total, max(low, 0)) > 1e-4


@pytest.mark.rounds(test=5, soak=30, long=300)
@pytest.mark.parametrize("how", HOW)
def test_about_a_hundredth_of_new_rows_and_nearly_all_foreign_ones_are_flagged(how, rounds):
    d, parameters = HOW[how]
    beyond = {"new": 0, "noise": 0, "shuffled": 0}
    for seed in range(rounds):
        rng = np.random.default_rng([seed, 19])
        model = fitted(rows(rng, N, d), **parameters)
        for kind, make in (("new", rows), ("noise", noise), ("shuffled", shuffled)):
            beyond[kind] += int(model.place(make(rng, NEW, d)).unusual.sum())
    total = rounds * NEW
    assert few_beyond(beyond["new"], total, rounds, N), beyond
    assert beyond["noise"] >= 0.99 * total, beyond
    assert beyond["shuffled"] >= 0.99 * total, beyond


@pytest.mark.parametrize("how", ["wide", "wide without PCA"])
def test_distances_alone_would_flag_hardly_any_noise(how):
    """What this is for: with the residual taken away, nearly all noise passes for usual."""
    d, parameters = HOW[how]
    rng = np.random.default_rng(0)
    model = fitted(rows(rng, N, d), **parameters)
    placed = model.place(noise(rng, NEW, d))
    assert (placed.why == "outside the components").mean() > 0.99
    assert (placed.distance_ratio > placed.distance_limit).mean() < 0.05


@pytest.mark.parametrize("how", HOW)
def test_foreign_rows_are_placed_where_they_always_were(how):
    """They are flagged and not moved: the place is that of the nearest rows alone."""
    d, parameters = HOW[how]
    rng = np.random.default_rng(1)
    model = fitted(rows(rng, 150, d), **parameters)
    new = np.vstack([noise(rng, 20, d), rows(rng, 20, d)])
    placed = model.place(new)
    assert np.array_equal(placed.positions, model.transform(new))
    table = new if model.pca_ is None else model.pca_.transform(new)
    assert np.array_equal(
        placed.positions, model._map.placing_field.place(*model._search.of(table, 15))
    )


def test_far_rows_are_near_nothing_and_rows_off_the_components_are_outside():
    rng = np.random.default_rng(2)
    X = rows(rng, N, WIDE)
    model = fitted(X)
    W = model.pca_.components_
    along = rows(rng, 50, WIDE) + 500 * W[0]
    off = rng.standard_normal((50, WIDE))
    off -= off @ W.T @ W
    placed = model.place(np.vstack([along, rows(rng, 50, WIDE) + 5 * off]))
    assert set(placed.why[:50]) == {"near nothing"}
    assert set(placed.why[50:]) == {"outside the components"}
    assert "100 of them unusual (50 near nothing, 50 outside the components)" in str(placed)
    assert set(model.place(along + 500 * off).why) == {"outside the components"}  # further beyond


def test_the_residual_is_that_of_the_pca_that_reduced_the_table():
    rng = np.random.default_rng(3)
    X, new = rows(rng, N, WIDE), rows(rng, 60, WIDE)
    model = fitted(X)
    expected = np.sqrt(model.pca_.prediction_error(new))
    ratio = model.place(new).residual / expected
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    given = PCA(20, standardize=True, whiten=True).fit(np.vstack([X, rows(rng, N, WIDE)]))
    ratio = fitted(X, pca=given).place(new).residual / np.sqrt(given.prediction_error(new))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)


@pytest.mark.parametrize("pca", ["auto", None])
def test_the_pca_of_all_rows_serves_a_map_of_some(pca):
    """As in a run: rows of the table that are placed are like it, noise is not."""
    rng = np.random.default_rng(4)
    X = rows(rng, 4 * N, WIDE)
    given = PCA(30).fit(X) if pca == "auto" else None
    model = fitted(X[:N], pca=given)
    assert model.place(X[N:]).unusual.mean() < 0.03
    assert model.place(noise(rng, NEW, WIDE)).unusual.mean() > 0.99


def test_a_pca_of_other_rows_is_no_reason_to_flag():
    """Its residuals are those of new rows already."""
    rng = np.random.default_rng(5)
    model = fitted(rows(rng, N, WIDE), pca=PCA(30).fit(rows(rng, N // 2, WIDE)))
    assert model.place(rows(rng, 2000, WIDE)).unusual.mean() < 0.03
    assert model.place(noise(rng, NEW, WIDE)).unusual.mean() > 0.99


@pytest.mark.parametrize("n", [40, 90])
def test_more_columns_than_rows_are_judged_by_rows_left_out(n):
    """All of a small table lies in its own components, and no new row does."""
    rng = np.random.default_rng(n)
    model = fitted(rows(rng, n, 300), perplexity=5)
    new = model.place(rows(rng, NEW, 300))
    assert new.unusual.mean() < 0.1  # limits of n rows: 2 / (n + 1) at most, and luck
    inside = model.place(rows(rng, 1, 300)).residual_limit * model._novelty.residual_unit
    assert np.sqrt(model.pca_.prediction_error(rows(rng, 1, 300)))[0] > 0.1 * inside
    assert model.place(3 * noise(rng, NEW, 300)).unusual.mean() > 0.99


def test_sparse_rows_are_judged_like_dense_ones():
    rng = np.random.default_rng(6)
    X, new = (np.where(rows(rng, n, WIDE) > 3, 2.0, 0.0) for n in (300, 80))
    dense, sparse = fitted(X), fitted(sp.csr_array(X))
    a, b = dense.place(new), sparse.place(sp.csr_array(new))
    np.testing.assert_allclose(b.residual, a.residual, rtol=1e-8)
    assert np.array_equal(a.unusual, b.unusual)


def test_weights_count_as_copies_do():
    """Heavy rows decide more of the limits: as many copies of each would."""
    rng = np.random.default_rng(7)
    a, b = rng.gamma(2, size=200), rng.gamma(2, size=200)
    weights = rng.integers(1, 9, 200).astype(float)
    copies = np.repeat(np.arange(200), weights.astype(int))
    far, outside = joint_limits(a, b, weights)
    beyond = (a[copies] > far) | (b[copies] > outside)
    assert beyond.mean() <= RARE
    model = fitted(rows(rng, 200, NARROW))
    weighted = TSNE(perplexity=10, max_iter=1).fit(rows(rng, 200, NARROW), sample_weight=weights)
    assert weighted.place(rows(rng, NEW, NARROW)).unusual.mean() < 0.06
    assert weighted._novelty.distance_limit != model._novelty.distance_limit


def test_files_and_blocks_give_the_same_answer(tmp_path):
    rng = np.random.default_rng(8)
    for d, parameters in HOW.values():
        model = fitted(rows(rng, 150, d), **parameters)
        new = np.vstack([rows(rng, 40, d), noise(rng, 40, d)])
        whole = model.place(new)
        assert whole.unusual[40:].mean() > 0.9
        for other in (
            there_and_back(model, tmp_path).place(new),
            model.place(source(new, rows=17)),
        ):
            for name in ("positions", "distance_ratio", "residual", "reason"):
                assert getattr(other, name).tobytes() == getattr(whole, name).tobytes()
            assert other.distance_limit == whole.distance_limit
            assert other.residual_limit == whole.residual_limit
        alone = model.place(new[41:42])
        assert alone.residual[0] == whole.residual[41]
        assert alone.why[0] == whole.why[41]


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    rng = np.random.default_rng(9)
    X, new = rows(rng, 600, WIDE), noise(rng, 300, WIDE)
    one, more = (fitted(X, n_jobs=jobs) for jobs in (1, n_jobs))
    assert one._novelty.residual_limit == more._novelty.residual_limit
    assert np.array_equal(one.place(new).residual, more.place(new).residual)


def test_the_data_are_not_changed():
    rng = np.random.default_rng(10)
    X, new = rows(rng, 100, WIDE), noise(rng, 30, WIDE)
    before = X.copy(), new.copy()
    for parameters in ({}, {"pca": None}, {"metric": "cosine"}):
        fitted(X, **parameters).place(new)
    assert np.array_equal(X, before[0])
    assert np.array_equal(new, before[1])


def test_a_row_in_float32_is_as_usual_as_in_float64():
    """Rows of a table that its components hold to rounding are not outside by rounding."""
    rng = np.random.default_rng(11)
    turn = rng.standard_normal((4, WIDE))
    model = fitted(rng.standard_normal((200, 4)) @ turn)
    new = rng.standard_normal((300, 4)) @ turn
    assert model.pca_.n_components_ > 4
    for dtype in (np.float64, np.float32):
        placed = model.place(new.astype(dtype))
        assert not (placed.why == "outside the components").any()
    off = new + 0.01 * np.abs(turn).mean() * rng.standard_normal((300, WIDE))
    assert (model.place(off).why == "outside the components").all()


def test_the_length_of_a_row_means_nothing_to_cosine():
    rng = np.random.default_rng(12)
    model = fitted(rows(rng, 200, NARROW), metric="cosine")
    new = rows(rng, 50, NARROW)
    np.testing.assert_allclose(model.place(16 * new).residual, model.place(new).residual)


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(13)
    X, new = rows(rng, 150, WIDE), np.vstack([rows(rng, 30, WIDE), noise(rng, 30, WIDE)])
    plain, scaled = fitted(X).place(new), fitted(X * scale).place(new * scale)
    np.testing.assert_allclose(scaled.residual, plain.residual, rtol=1e-6)
    assert np.array_equal(scaled.why, plain.why)


def test_maps_of_distances_judge_by_distances_and_say_so():
    rng = np.random.default_rng(14)
    X, new = rows(rng, 200, NARROW), rows(rng, 500, NARROW)
    away = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = fitted(away, metric="precomputed", init="random")
    placed = model.place(np.linalg.norm(new[:, None] - X[None], axis=2))
    assert np.isnan(placed.residual).all()
    assert placed.residual_limit is None
    assert "not measured" in str(placed)
    assert set(placed.why) <= {"", "near nothing"}
    assert placed.unusual.mean() < 0.05


def test_scores_of_a_pca_know_nothing_of_what_it_left_out():
    """Why the table should be given to TSNE itself: a pipeline hides the residual from it."""
    rng = np.random.default_rng(15)
    X, odd = rows(rng, N, WIDE), noise(rng, NEW, WIDE)
    hidden = make_pipeline(PCA(50), TSNE(perplexity=10, max_iter=1)).fit(X)
    assert hidden[-1].place(hidden[0].transform(odd)).unusual.mean() < 0.9
    assert fitted(X).place(odd).unusual.mean() > 0.99


@pytest.mark.parametrize("n", [3, 4, 7])
def test_maps_of_few_rows_have_limits_too(n):
    rng = np.random.default_rng(n)
    for d in (1, 2, 200):
        model = fitted(rng.standard_normal((n, d)), perplexity=1)
        placed = model.place(rng.standard_normal((5, d)))
        assert np.isfinite(placed.residual).all()
        assert placed.residual_limit >= 1


def test_copies_do_not_make_every_row_unusual():
    rng = np.random.default_rng(16)
    X = np.repeat(rng.standard_normal((30, 5)), 20, axis=0)
    placed = fitted(X).place(X[::20])
    assert not placed.unusual.any()
    assert fitted(X).place(X[::20] + 100).unusual.all()


@pytest.mark.parametrize("k", [3, 15])
def test_ratios_of_rows_left_out_are_those_of_new_rows_on_a_map_of_the_others(k):
    """The truth: each row in turn is taken away, and comes back as a new one."""
    X = rows(np.random.default_rng(17), 60, 8)
    found = left_out_ratios(find_neighbors(X, k + 1), np.arange(60), k)
    for i in range(60):
        others = np.delete(X, i, axis=0)
        near = find_neighbors(others, k)
        away = np.linalg.norm(others - X[i], axis=1)
        order = np.argsort(away)[:k]
        expected = distance_ratios(order[None], away[order][None], near.distances.mean(axis=1))
        assert found[i] == pytest.approx(expected[0], rel=1e-9)
    known = find_neighbors(X, k)  # where the next neighbour is not known, that of all rows
    typical = known.distances.mean(axis=1)
    assert np.array_equal(
        left_out_ratios(known, np.arange(60), k),
        distance_ratios(known.indices, known.distances, typical),
    )


class TestJointLimits:
    """For new rows of the same kind: the share beyond one of two limits, whatever they share."""

    @pytest.mark.parametrize("shared", [0.0, 0.7, 1.0])
    @pytest.mark.parametrize("m", [150, 400, 5000])
    def test_the_share_beyond_either_is_the_share_asked_for(self, m, shared):
        tables, beyond = 300, []
        rng = np.random.default_rng([m, int(10 * shared)])
        for _ in range(tables):
            common = rng.standard_normal(m)
            a, b = (shared * common + (1 - shared) * rng.standard_normal(m) for _ in range(2))
            far, outside = joint_limits(a, b)
            new = rng.standard_normal(500)
            c, d = (shared * new + (1 - shared) * rng.standard_normal(500) for _ in range(2))
            beyond.append(((c > far) | (d > outside)).mean())
        mean = np.mean(beyond)
        error = np.std(beyond) / np.sqrt(tables)
        # 150 rows have one largest each: 2 / 151 at most
        assert 0.6 * RARE - 4 * error < mean < max(RARE, 2 / (m + 1)) + 4 * error

    def test_a_number_that_never_differs_leaves_the_share_to_the_other(self):
        a = np.arange(1000.0)
        assert joint_limits(a, np.zeros(1000)) == (990.0, 0.0)
        assert joint_limits(a, a) == (990.0, 990.0)
        assert joint_limits(a, -a)[0] == 995.0

    def test_the_limits_of_few_rows_are_their_largest(self):
        assert joint_limits(np.array([1.0, 3.0, 2.0]), np.array([5.0, 1.0, 0.0])) == (3.0, 5.0)

    def test_infinite_ratios_of_copies_are_no_trouble(self):
        a = np.r_[np.ones(50), np.full(950, np.inf)]
        far, outside = joint_limits(a, np.arange(1000.0))
        assert far == np.inf
        judge = Novelty(far, outside)
        found = judge.reasons(np.array([np.inf, 1.0, np.inf]), np.array([0.0, 2000.0, 2000.0]))
        assert found.tolist() == [0, 2, 2]


def test_the_reason_is_the_number_further_beyond_its_limit():
    judge = Novelty(2.0, 4.0)
    ratio = np.array([1.0, 3.0, 1.0, 5.0, 3.0, np.inf])
    residual = np.array([1.0, 1.0, 9.0, 5.0, 100.0, 5.0])
    assert [REASONS[code] for code in judge.reasons(ratio, residual)] == [
        "",
        "near nothing",
        "outside the components",
        "near nothing",
        "outside the components",
        "near nothing",
    ]
