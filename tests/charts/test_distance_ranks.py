import numpy as np
import pytest
from charts.test_every_chart import assert_sound

from gnomon import charts
from gnomon.charts.distance_ranks import kept_in_order


def test_distances_in_the_same_order_lie_on_the_diagonal(read):
    distances = np.random.default_rng(0).random(1_000)
    assert kept_in_order(distances, distances**3) == (1.0, 1.0)
    chart = charts.distance_ranks(distances, distances**3)
    assert_sound(chart)
    squares = [e for e in read(chart).all("rect") if e.get("class", "").startswith("gn-v")]
    assert len(squares) == 15  # √(1000 / 4) cells a side, those of the diagonal filled
    assert "100 % are in the nearest fifth" in chart.description


def test_distances_in_the_opposite_order_keep_nothing():
    distances = np.random.default_rng(0).random(1_000)
    assert kept_in_order(distances, -distances) == (0.0, 0.0)


def test_ranks_by_chance_keep_a_fifth():
    rng = np.random.default_rng(0)
    near, far = kept_in_order(rng.random(50_000), rng.random(50_000))
    assert near == pytest.approx(0.2, abs=0.012)  # four standard errors: √(0.16 / 10,000)
    assert far == pytest.approx(0.2, abs=0.012)


def test_equal_distances_are_drawn():
    assert_sound(charts.distance_ranks(np.ones(50), np.ones(50)))


@pytest.mark.parametrize("sizes", [(10, 11), (5, 5)])
def test_pairs_that_do_not_belong_together_are_refused(sizes):
    with pytest.raises(ValueError, match="hold a distance for each of at least 10 pairs"):
        charts.distance_ranks(np.ones(sizes[0]), np.ones(sizes[1]))
