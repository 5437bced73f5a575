import numpy as np
import pytest

from gnomon.scores import score_map
from gnomon.scores.map_verdict import verdict

rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("noise", "near", "far"),
    [
        (0.0, "Close pairs: good", "far distances: mostly in order"),
        (0.65, "Close pairs: fair", "far distances: in order only in part"),
        (20.0, "Close pairs: poor", "far distances: do not read them"),
    ],
)
def test_a_map_is_judged_by_close_pairs_and_by_far_distances(noise, near, far):
    rng = np.random.default_rng(0)
    data = rng.uniform(-2, 2, size=(300, 2))
    said = verdict(score_map(data, data + noise * rng.standard_normal((300, 2))))
    assert said.startswith(near), said
    assert far in said


def test_a_map_of_few_rows_is_not_judged():
    data = rng.standard_normal((15, 2))
    assert verdict(score_map(data, data)) == ""


def test_distances_that_do_not_differ_are_not_judged():
    data = rng.standard_normal((40, 3))
    same = np.eye(40)
    assert "far distances" not in verdict(score_map(same, data[:, :2]))
