import numpy as np
import pytest

from gnomon import PCA, TSNE, samples
from gnomon.errors import ParameterError
from gnomon.tsne.start import given_start, pca_start, random_start

X = samples.load("wine").X
RNG = np.random.default_rng


def test_the_pca_start_is_the_first_scores_with_a_deviation_of_a_ten_thousandth():
    start = pca_start(None, X, 2, RNG(0))
    scores = PCA(2).fit_transform(X)
    np.testing.assert_allclose(start, scores * 1e-4 / scores[:, 0].std(), rtol=1e-12)
    assert abs(start[:, 0].std() / 1e-4 - 1) < 1e-12


def test_known_scores_are_not_computed_again():
    scores = PCA(5).fit_transform(X)
    np.testing.assert_allclose(pca_start(scores, X, 3, RNG(0)), pca_start(None, X, 3, RNG(0)))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_axes_that_the_data_do_not_have_get_a_little_noise(dimensions):
    """Or the map would stay on a line."""
    line = np.outer(np.arange(50.0), [1.0, 2.0, 3.0])
    for table in (line, line[:, :1]):
        start = pca_start(None, table, dimensions, RNG(0))
        deviations = start.std(axis=0)
        assert abs(deviations[0] / 1e-4 - 1) < 1e-12
        assert (deviations[1:] > 1e-7).all()
        assert (deviations[1:] < 1e-5).all()


@pytest.mark.parametrize("power", [-1000, -664, 664, 1000])
def test_the_unit_of_the_data_does_not_matter(power):
    start = pca_start(None, X, 2, RNG(0))
    assert np.array_equal(pca_start(None, np.ldexp(X, power), 2, RNG(0)), start)


def test_weighted_rows_start_where_their_copies_would():
    weights = RNG(0).integers(1, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weights)
    weighted = pca_start(None, X, 2, RNG(0), weights=weights.astype(float))
    np.testing.assert_allclose(weighted[copies], pca_start(None, X[copies], 2, RNG(0)), atol=1e-12)


def test_the_random_start_is_seeded_and_small():
    start = random_start(5000, 2, RNG(1))
    assert np.array_equal(start, random_start(5000, 2, RNG(1)))
    np.testing.assert_allclose(start.std(axis=0), 1e-4, rtol=0.03)  # 3 standard errors


def test_an_array_or_a_former_map_is_taken_as_it_is():
    Y = RNG(0).standard_normal((20, 2)).astype(np.float32)
    assert np.array_equal(given_start(Y, 20, 2), Y)
    assert np.array_equal(given_start(Y.tolist(), 20, 2), Y)
    former = TSNE(perplexity=5, max_iter=5).fit(X[:20])
    assert np.array_equal(given_start(former, 20, 2), former.embedding_)


REFUSED = [
    ("another number of rows", np.ones((19, 2)), r"shape \(20, 2\); got 'shape \(19, 2\)'"),
    ("another dimension", np.ones((20, 3)), r"got 'shape \(20, 3\)'"),
    ("text", np.full((20, 2), "a"), r"finite positions of shape .*; got 'dtype <U1'"),
    ("NaN", np.full((20, 2), np.nan), r"got 'NaN or infinity among them'"),
    ("infinity", np.full((20, 2), np.inf), r"got 'NaN or infinity among them'"),
    ("too far apart", np.arange(40.0).reshape(20, 2) * 1e6, r"within 1e\+06 of its mean; got 1"),
    ("one place for all", np.ones((20, 2)), r"more than one place; got .* Use 'pca' or 'random'"),
]


@pytest.mark.parametrize(
    ("init", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_start_that_cannot_be_used_is_refused(init, says):
    with pytest.raises(ParameterError, match=says):
        given_start(init, 20, 2)
