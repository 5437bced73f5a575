import numpy as np
import pytest
from sklearn import manifold
from sklearn.metrics import pairwise_distances

from gnomon import PCA, samples, scores
from gnomon.errors import ParameterError

X = samples.load("iris").X[::2] + np.random.default_rng(0).normal(size=(75, 4)) * 1e-3  # no ties
Y = PCA(2).fit_transform(X)
D = pairwise_distances(X)
CLOSE = 1e-6  # rounding of the distances changes the order of a few pairs in thousands


@pytest.mark.parametrize("score", [scores.trustworthiness, scores.continuity, scores.recall])
@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_distances_give_the_scores_of_their_table(score, unit):
    assert score(D * unit, Y, metric="precomputed") == score(X, Y)


def test_trustworthiness_by_any_distance_is_that_of_scikit_learn():
    other = pairwise_distances(X, metric="manhattan")
    theirs = manifold.trustworthiness(other, Y, n_neighbors=7, metric="precomputed")
    assert scores.trustworthiness(other, Y, n_neighbors=7, metric="precomputed") == (
        pytest.approx(theirs, abs=1e-12)
    )


def test_the_summary_of_distances_is_that_of_their_table():
    labels = np.arange(75) // 25
    given, table = (
        scores.score_map(D, Y, labels, metric="precomputed"),
        scores.score_map(X, Y, labels),
    )
    assert given.distances.value == pytest.approx(table.distances.value, abs=CLOSE)
    for name in ("trustworthiness", "continuity", "recall", "class_accuracy_in_data"):
        assert np.array_equal(getattr(given, name).mean, getattr(table, name).mean)
    correlation = scores.rank_correlation(D, Y, metric="precomputed", pairs=500)
    assert correlation.value == pytest.approx(
        scores.rank_correlation(X, Y, pairs=500).value, abs=CLOSE
    )


def test_distances_must_be_square_and_not_negative():
    with pytest.raises(ParameterError, match="be a square table of distances"):
        scores.trustworthiness(X, Y, metric="precomputed")
    with pytest.raises(ParameterError, match="none of them negative"):
        scores.trustworthiness(-D, Y, metric="precomputed")
