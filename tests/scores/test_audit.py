import json

import numpy as np
import pytest
from scipy import stats
from scores import brute

import gnomon
from gnomon import TSNE, scores
from gnomon.errors import DataError, ParameterError, ParameterTypeError
from gnomon.scores import audit as audit_function
from gnomon.scores.placement import placement_p_values
from gnomon.scores.table_pair import read_pair

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 6))
Y = X[:, :2] + 0.3 * rng.standard_normal((60, 2))
SOLID = rng.uniform(size=(200, 3)) * [1, 1, 0.6]
CENTRES = rng.standard_normal((10, 20))
CLUSTERS = CENTRES[np.arange(200) % 10] + 0.2 * rng.standard_normal((200, 20))


def brute_p_values(X, Y, k):
    """The definition, placement by placement: row i is moved onto j and scored there."""
    n, r = len(X), brute.ranks(X)
    own = brute.trustworthiness(X, Y, k)
    scale = 2 / (k * (2 * n - 3 * k - 1))
    p = np.empty(n)
    for i in range(n):
        as_good = 0
        for j in range(n):
            if j == i:
                continue
            away = ((Y - Y[j]) ** 2).sum(axis=1)
            away[i] = np.inf
            near = np.lexsort((np.arange(n), away))[:k]
            score = 1 - scale * np.maximum(r[i, near] - k, 0).sum()
            as_good += score >= own[i] - 1e-12
        p[i] = (1 + as_good) / n
    return p


@pytest.mark.parametrize("k", [1, 5, 15])
def test_placements_have_the_p_values_of_the_definition(k):
    Z, W = read_pair(X, Y, "euclidean")
    found = placement_p_values(Z, W, np.arange(60), k, np.random.default_rng(0))
    np.testing.assert_allclose(found, brute_p_values(X, Y, k), rtol=1e-14)


def test_drawn_placements_estimate_the_p_values_of_all(monkeypatch):
    Z, W = read_pair(X, Y, "euclidean")
    every = placement_p_values(Z, W, np.arange(60), 5, np.random.default_rng(0))
    monkeypatch.setattr("gnomon.scores.placement.MOST_PLACEMENTS", 40)
    some = placement_p_values(Z, W, np.arange(60), 5, np.random.default_rng(0))
    whole = np.minimum(*(np.abs(some * m - np.rint(some * m)) for m in (40, 41)))
    assert whole.max() < 1e-12  # of 39 or 40 placements, and the row's own
    # 40 of 59 placements: a standard error of at most √(0.25/40 · 19/58) = 0.045.
    assert np.abs(some - every).max() < 5 * 0.045
    assert np.abs(some - every).max() > 0


def test_p_values_of_random_maps_are_uniform():
    """The test of a row is exact where its null hypothesis holds."""
    data, junk = rng.standard_normal((2000, 5)), rng.standard_normal((2000, 2))
    p = gnomon.audit(data, junk).p_misplaced
    # Neighbouring rows share placements, so that p-values are not independent: a wide margin.
    assert stats.kstest(p, "uniform").statistic < 0.1


def test_half_of_the_rows_of_a_random_map_are_misplaced_and_none_of_a_true_one():
    junk = gnomon.audit(CLUSTERS, rng.standard_normal((200, 2)))
    assert junk.placed.mean() <= 0.05
    # p is uniform; p of neighbouring rows is not independent: a wide margin about a half.
    assert 0.35 <= junk.misplaced.mean() <= 0.65
    assert junk.at_random == pytest.approx(min(1.0, 2 * junk.misplaced.mean()))
    for axes in (2, 3):
        true = gnomon.audit(X[:, :axes], 7 * X[:, :axes] + 1)
        assert true.placed.all()
        assert not true.misplaced.any()
        assert true.at_random == 0


def test_a_row_is_placed_undecided_or_misplaced():
    positions = SOLID[:, :2].copy()
    positions[180:] = positions[:20]  # twenty rows at the places of others
    found = gnomon.audit(SOLID[:, :2], positions)
    answers = found.columns()["placement"]
    assert set(answers) == {"placed", "undecided", "misplaced"}
    np.testing.assert_array_equal(answers == "placed", found.placed)
    np.testing.assert_array_equal(answers == "undecided", found.undecided)
    np.testing.assert_array_equal(answers == "misplaced", found.p_misplaced >= 0.5)


def test_a_good_map_of_few_groups_is_undecided_and_not_misplaced():
    """A random place is in the right one of three groups too often to be told from a good one."""
    centres = 4 * np.eye(3, 20)
    groups = centres[np.arange(300) % 3] + rng.standard_normal((300, 20))
    shuffled_within = np.vstack([centres[i % 3, :3] for i in range(300)])
    found = gnomon.audit(groups, shuffled_within + 0.3 * rng.standard_normal((300, 3)))
    assert found.undecided.mean() > 0.5
    assert found.misplaced.mean() < 0.05


def test_a_row_moved_across_the_map_is_found():
    data = rng.uniform(size=(500, 2))
    moved = data.copy()
    far = int(np.argmin(((data - [0, 0]) ** 2).sum(axis=1)))
    moved[far] = [1.1, 1.1]
    found = np.flatnonzero(gnomon.audit(data, moved).misplaced)
    beside = np.argsort(((data - 1.1) ** 2).sum(axis=1))[:15]  # a stranger is among their nearest
    assert found.tolist() == [far]
    assert not gnomon.audit(data, moved).undecided[np.setdiff1d(np.arange(500), beside)].any()


def test_benjamini_and_hochbergs_limit_is_over_all_rows():
    found = gnomon.audit(SOLID, SOLID[:, :2])
    p = np.sort(found.p_misplaced)
    below = np.flatnonzero(p <= 0.05 * np.arange(1, 201) / 200)
    rejected = 0 if not below.size else below[-1] + 1
    assert 0 < rejected < 200
    assert found.placed.sum() == rejected


def test_a_t_sne_is_made_again_of_shuffled_columns():
    noise = rng.standard_normal((200, 20))
    # Noise is its own null: every row unsupported. Clusters are not.
    assert gnomon.audit(noise, TSNE(random_state=0).fit(noise)).unsupported.mean() >= 0.95
    found = gnomon.audit(CLUSTERS, TSNE(random_state=0).fit(CLUSTERS))
    assert found.unsupported.mean() <= 0.15
    assert found.shuffles == 3
    assert found.null_mean < found.trustworthiness.mean()


def test_pooled_scores_of_shuffled_tables_give_the_p_values():
    seen = []

    def refit(table):
        assert table.shape == X.shape
        np.testing.assert_array_equal(np.sort(table, axis=0), np.sort(X, axis=0))
        assert not np.array_equal(table, X)
        seen.append(table)
        return table[:, :2]

    found = gnomon.audit(X, X[:, :2], refit=refit, shuffles=4)
    null = np.concatenate([brute.trustworthiness(t, t[:, :2], 15) for t in seen])
    own = brute.trustworthiness(X, X[:, :2], 15)
    expected = [(1 + (null >= s - 1e-12).sum()) / (1 + 240) for s in own]
    assert len(seen) == 4
    np.testing.assert_allclose(found.p_unsupported, expected, rtol=1e-14)
    assert found.null_mean == pytest.approx(null.mean())


def test_unsupported_is_withheld_where_it_says_nothing():
    few = gnomon.audit(X[:, :3], X[:, :2], refit=lambda table: table[:, :2])
    assert few.unsupported is None
    assert "3 columns" in few.withheld
    narrow = X * [1, 1, 1e-3, 1e-3, 1e-3, 1e-3]
    kept = gnomon.audit(narrow, narrow[:, :2], refit=lambda table: table[:, :2])
    assert kept.unsupported is None
    assert kept.null_mean > 0.95
    assert "too much to tell them apart" in str(kept)
    assert "unsupported" not in kept.columns()


def test_unsupported_is_withheld_for_principal_components():
    scores = gnomon.PCA(6).fit_transform(CLUSTERS)
    found = gnomon.audit(scores, scores[:, :2], refit=lambda table: table[:, :2])
    assert found.unsupported is None
    assert found.shuffles == 0
    assert "does not work for a table of uncorrelated columns" in found.withheld
    assert "principal components" in found.withheld
    # Independent columns are correlated by chance: noise is still tested.
    noise = rng.standard_normal((200, 6))
    assert gnomon.audit(noise, noise[:, :2], refit=lambda t: t[:, :2]).unsupported is not None


def test_a_map_of_a_reduced_table_is_scored_where_it_was_made():
    wide = np.hstack([CLUSTERS, 0.1 * rng.standard_normal((200, 120))])
    tsne = TSNE(random_state=0, max_iter=50).fit(wide)
    assert tsne.pca_ is not None
    found = gnomon.audit(wide, tsne)
    direct = gnomon.audit(tsne.pca_.transform(wide), tsne.embedding_)
    np.testing.assert_array_equal(found.p_misplaced, direct.p_misplaced)
    assert found.scores.n_columns == tsne.pca_.n_components_


def test_a_sample_is_tested_against_all_rows_with_its_standard_error():
    every = gnomon.audit(SOLID, SOLID[:, :2])
    some = gnomon.audit(SOLID, SOLID[:, :2], sample=50, random_state=3)
    np.testing.assert_array_equal(some.p_misplaced, every.p_misplaced[some.rows])
    told = some.to_dict()["placed"]
    share = some.placed.mean()
    assert 0 < share < 1
    assert told["standard_error"] == pytest.approx(np.sqrt(share * (1 - share) / 49 * 0.75))
    assert every.to_dict()["placed"]["standard_error"] == 0
    assert "50 of 200 rows, drawn at random" in str(some)
    assert "drawn at random" not in str(every)
    answers = some.columns()["placement"]
    assert sum(answer is None for answer in answers) == 150
    column = some.columns()["misplaced"]
    assert np.isnan(np.delete(column, some.rows)).all()
    np.testing.assert_array_equal(column[some.rows], some.misplaced)


@pytest.mark.parametrize("threads", [2, 4])
def test_results_have_the_same_bits_on_any_number_of_threads(threads):
    one, more = (
        gnomon.audit(CLUSTERS, CLUSTERS[:, :3], refit=lambda t: t[:, :3], n_jobs=n)
        for n in (1, threads)
    )
    assert one.p_misplaced.tobytes() == more.p_misplaced.tobytes()
    assert one.p_unsupported.tobytes() == more.p_unsupported.tobytes()


def test_an_audit_reads_as_sentences_and_as_json():
    found = gnomon.audit(X, X[:, :2], refit=lambda table: table[:, :2])
    text = str(found)
    assert text.startswith("Audit of a map of 60 rows, 6 columns to 2")
    assert "placed" in text
    assert "no better than at random" not in text
    told = json.loads(json.dumps(found.to_dict()))
    assert told["unsupported"]["rows"] == int(found.unsupported.sum())
    assert audit_function is gnomon.audit is scores.audit


def test_cosine_distances_are_those_of_the_data():
    scaled = CLUSTERS * rng.uniform(0.1, 10, size=(200, 1))
    unit = CLUSTERS / np.linalg.norm(CLUSTERS, axis=1, keepdims=True)
    by_angle = gnomon.audit(scaled, unit[:, :2], metric="cosine")
    np.testing.assert_array_equal(by_angle.p_misplaced, gnomon.audit(unit, unit[:, :2]).p_misplaced)


def test_a_t_sne_brings_its_own_metric():
    tsne = TSNE(metric="cosine", random_state=0, max_iter=30).fit(CLUSTERS)
    assert gnomon.audit(CLUSTERS, tsne).scores.metric == "cosine"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"Y": Y[:59]}, ParameterError, "`Y` must have 60 rows, as many as `X`; got 59"),
        ({"Y": np.full((60, 2), np.nan)}, DataError, "Y"),
        ({"shuffles": 2}, ParameterError, "`shuffles` must be an integer ≥ 3; got 2"),
        ({"metric": "manhattan"}, ParameterError, "`metric` must be"),
        ({"refit": 3}, ParameterTypeError, "`refit` must be a function"),
        ({"refit": lambda t: t[:3, :2]}, DataError, "`refit` must return a map of the 60 rows"),
        ({"sample": 61}, ParameterError, "`sample` must be"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_sentence(change, error, message):
    given = {"X": X, "Y": Y} | change
    with pytest.raises(error, match=message):
        gnomon.audit(given.pop("X"), given.pop("Y"), **given)


def test_a_t_sne_is_not_made_again_in_two_ways():
    tsne = TSNE(random_state=0, max_iter=20).fit(X)
    with pytest.raises(ParameterError, match="`refit` must be None"):
        gnomon.audit(X, tsne, refit=lambda t: t[:, :2])


def test_sparse_tables_are_refused_with_a_way_out():
    from scipy import sparse

    with pytest.raises(ParameterTypeError, match="reduced table"):
        gnomon.audit(sparse.csr_array(X), Y)
