"""What a page is made from: computed where it is not given, and right."""

import numpy as np
import pandas as pd
import pytest
from report.pages import fitted, groups_of_rows

from gnomon import PCA, TSNE
from gnomon.report.content import draw_pairs, gather, lay_scores, sizes


@pytest.fixture(scope="module")
def rows():
    return groups_of_rows()[0]


@pytest.fixture(scope="module")
def content(rows):
    pca, tsne = fitted(rows)
    return gather(rows, pca=pca, tsne=tsne, names=tuple("abcde"))


def nearest(Z, k):
    sq = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    np.fill_diagonal(sq, np.inf)
    return np.argsort(sq, axis=1, kind="stable")[:, :k]


def test_neighbours_are_those_in_the_data_nearest_first(content, rows):
    assert np.array_equal(content.neighbors, nearest(rows, 5))
    assert content.neighbors.dtype == np.int32
    assert content.space == "all 5 columns"


def test_trust_is_the_share_of_fifteen_neighbours_kept(content, rows):
    here, there = nearest(content.Y.astype(float), 15), nearest(rows, 15)
    kept = [len(set(a) & set(b)) / 15 for a, b in zip(here, there, strict=True)]
    assert content.trust.tolist() == kept


def test_what_is_given_is_not_computed_again(rows):
    pca, tsne = fitted(rows, max_iter=50)
    trust, near = np.full(90, 0.5), np.zeros((90, 5), np.int32)
    content = gather(rows, pca=pca, tsne=tsne, names="abcde", trust=trust, neighbors=near)
    assert content.trust is trust
    assert np.array_equal(content.neighbors, near)


def test_the_pca_map_lies_on_the_map_as_well_as_it_can_and_is_as_large():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 4)) * [3, 2, 1, 1]
    turned = 7 * scores[:, :2] @ [[0.0, 1.0], [1.0, 0.0]] + [100, -5]  # a reflection
    assert np.allclose(lay_scores(scores, turned), turned)
    other = rng.normal(size=(50, 2))
    laid = lay_scores(scores, other)
    assert np.isclose(np.linalg.norm(laid - laid.mean(0)), np.linalg.norm(other - other.mean(0)))
    assert np.array_equal(lay_scores(scores, None), scores[:, :2])
    assert lay_scores(scores[:, :1], other).shape == (50, 2)


def test_pairs_are_all_pairs_or_a_sample_of_them(rows):
    Y = rows[:, :2]
    in_data, in_map = draw_pairs(rows, Y)
    assert in_data.size == 90 * 89 // 2
    i, j = np.triu_indices(90, 1)
    assert np.allclose(in_data, np.linalg.norm(rows[i] - rows[j], axis=1))
    assert np.allclose(in_map, np.linalg.norm(Y[i] - Y[j], axis=1))
    assert draw_pairs(rows[:5], Y[:5]) is None
    many = np.random.default_rng(0).normal(size=(400, 3))
    sampled, _ = draw_pairs(many, many)
    assert sampled.size == 20_000
    assert sampled.min() > 0  # no row is paired with itself


def test_sizes_of_neighbourhoods_stay_below_half_of_the_rows():
    assert sizes(90) == [5, 10, 15, 25]
    assert sizes(1_000) == [5, 10, 15, 25, 50, 100, 200]
    assert sizes(3) == [1]


def test_a_metric_of_the_map_is_that_of_its_neighbours(rows):
    tsne = TSNE(perplexity=10, max_iter=50, metric="cosine").fit(rows)
    content = gather(rows, pca=PCA(2).fit(rows), tsne=tsne, names="abcde")
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.array_equal(content.neighbors, nearest(unit, 5))
    assert content.quality.metric == "cosine"
    tsne = TSNE(perplexity=10, max_iter=50, metric="manhattan").fit(rows)
    content = gather(rows, pca=PCA(2).fit(rows), tsne=tsne, names="abcde")
    assert content.quality is None  # scores know only the other two
    assert content.trust is not None


def test_neighbours_are_those_that_the_map_can_look_up_already(rows, monkeypatch):
    def from_scratch(*_, **__):
        raise AssertionError("a new search was made")

    monkeypatch.setattr("gnomon.report.content.find_neighbors", from_scratch)
    pca, tsne = PCA(2).fit(rows), TSNE(perplexity=10, max_iter=50).fit(rows)
    tsne._search.n_probes = 7
    content = gather(rows, pca=pca, tsne=tsne, names="abcde")
    assert np.array_equal(content.neighbors, nearest(rows, 5))
    assert tsne._search.n_probes == 7  # by which new rows are placed
    other = TSNE(perplexity=10, max_iter=50).fit(rows[:, :4])  # knows other neighbours
    with pytest.raises(AssertionError, match="a new search"):
        gather(rows, pca=pca, tsne=other, names="abcde")


def test_models_keep_their_names_and_the_page_has_its_own(rows):
    pca = PCA(2).fit(pd.DataFrame(rows, columns=list("vwxyz")))
    content = gather(rows, pca=pca, names=tuple("abcde"))
    assert pca.feature_names_in_.tolist() == list("vwxyz")
    assert content.named.feature_names_in_.tolist() == list("abcde")
    assert content.pca is pca  # neither copied nor changed
