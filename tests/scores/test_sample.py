import numpy as np
import pytest

from gnomon.inputs import random_generator
from gnomon.scores.sample import EXACT_UP_TO, SAMPLE, PointScores, choose_rows


def rows(n, sample, random_state=None):
    return choose_rows(n, sample, random_generator(random_state))


def test_all_rows_are_scored_up_to_a_size_and_a_sample_beyond_it():
    assert np.array_equal(rows(EXACT_UP_TO, None), np.arange(EXACT_UP_TO))
    assert rows(EXACT_UP_TO + 1, None).size == SAMPLE
    assert rows(EXACT_UP_TO + 1, "all").size == EXACT_UP_TO + 1


def test_a_sample_is_drawn_once_each_ascending_and_the_same_for_the_same_seed():
    sample = rows(1000, 300)
    assert (np.diff(sample) > 0).all()
    assert np.array_equal(sample, rows(1000, 300, 0))
    assert np.array_equal(sample, rows(1000, 300, np.random.default_rng(0)))
    assert not np.array_equal(sample, rows(1000, 300, 1))
    assert rows(1000, 300, np.random.RandomState(0)).size == 300


@pytest.mark.parametrize("bad", [0, 1, 1001, -5, "some", 2.0, True])
def test_a_sample_is_a_number_of_rows(bad):
    with pytest.raises((ValueError, TypeError), match=r"`sample` must be .* 2 to 1000"):
        rows(1000, bad)


def test_the_standard_error_covers_the_mean_of_all_rows():
    """Over 400 samples, 95 % of the means within 1.96 errors: 380 ± 4.4 of them."""
    scores = np.random.default_rng(0).beta(5, 2, (500, 1))
    inside = 0
    for seed in range(400):
        some = PointScores((5,), scores[rows(500, 200, seed)], 500)
        inside += abs(some.mean[0] - scores.mean()) < 1.96 * some.standard_error[0]
    assert 367 <= inside <= 393  # without the factor √(1 − m/n) all but 4 would be


def test_all_rows_have_no_sampling_error():
    score = PointScores((5, 15), np.random.default_rng(0).random((50, 2)), 50)
    assert (score.standard_error == 0).all()
    assert "±" not in str(score)


def test_points_without_a_score_do_not_count():
    score = PointScores((1, 2), np.array([[np.nan, 1.0], [np.nan, np.nan], [np.nan, 0.0]]), 9)
    assert np.isnan(score.mean[0])
    assert score.mean[1] == 0.5
    assert score.standard_error[1] == pytest.approx(0.5 * np.sqrt(1 - 3 / 9))
    assert score.to_dict()["mean"] == [None, 0.5]
    assert str(score).splitlines()[1].split() == ["1", "–"]
