import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.manifold import MDS

from gnomon import PCA, TSNE, samples, stability
from gnomon.procrustes.stability import _samples

X = samples.load("iris").X
rng = np.random.default_rng(0)
PLACES = rng.normal(size=(60, 2)) * 10


class Scripted(BaseEstimator):
    """A map that turns as it likes, and moves the rows whose first column says so."""

    seed = 0

    def __init__(self, move="nothing"):
        self.move = move

    def fit_transform(self, rows, y=None):
        Scripted.seed += 1
        draw = np.random.default_rng(Scripted.seed)
        numbers = rows[:, 0].astype(int)
        Y = PLACES[numbers].copy()
        if self.move == "one":
            Y[numbers == 7] += draw.normal(size=2) * 30
        if self.move == "group":
            near = np.linalg.norm(PLACES - PLACES[7], axis=1).argsort()[:8]
            Y[np.isin(numbers, near)] += draw.normal(size=2) * 6
        turn = np.linalg.qr(draw.normal(size=(2, 2)))[0]
        return Y @ turn * draw.uniform(0.5, 2) + draw.normal(size=2)


NUMBERS = np.arange(60)[:, None]


def test_maps_that_only_turn_scale_and_mirror_are_perfectly_stable():
    found = stability(Scripted(), NUMBERS, runs=5, n_neighbors=5)
    assert found.score == 1.0
    assert found.spread.max() < 1e-6
    assert found.runs.max() < 1e-6
    assert (found.counts >= 4).all()


def test_a_point_that_jumps_by_itself_is_seen_to_move_alone():
    found = stability(Scripted("one"), NUMBERS, runs=6, n_neighbors=5)
    assert np.argmax(found.moved_alone) == 7
    assert found.moved_alone[7] > 3 * found.moved_with[7]
    assert found.spread[7] > 1


def test_a_group_that_jumps_together_is_seen_to_move_with_its_neighbours():
    near = np.linalg.norm(PLACES - PLACES[7], axis=1).argsort()[:8]
    found = stability(Scripted("group"), NUMBERS, runs=6, n_neighbors=3)
    assert np.median(found.moved_with[near]) > np.median(found.moved_alone[near])
    others = np.setdiff1d(np.arange(60), near)
    assert np.median(found.spread[near]) > 2 * np.median(found.spread[others])


def test_every_row_is_left_out_about_equally_often():
    parts = _samples(53, 8, 0.9, np.random.default_rng(0))
    held = np.bincount(np.concatenate(parts), minlength=53)
    assert {len(part) for part in parts} == {48}
    assert held.max() - held.min() <= 1


@pytest.mark.parametrize("vary", ["rows", "start"])
def test_it_works_for_t_sne_and_gives_the_same_answer_again(vary):
    model = TSNE(perplexity=10, max_iter=260, n_jobs=1)
    first = stability(model, X, runs=3, vary=vary, random_state=3)
    again = stability(model, X, runs=3, vary=vary, random_state=3)
    assert np.array_equal(first.mean, again.mean)
    assert first.mean.shape == (150, 2)
    assert (first.runs > 0).all()
    assert vary in str(first)
    assert not hasattr(model, "embedding_")


def test_any_estimator_with_an_embedding_will_do():
    found = stability(MDS(2, n_init=1, init="random"), X[:60], runs=2)
    assert found.mean.shape == (60, 2)


def test_distances_are_cut_on_both_sides():
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = TSNE(perplexity=10, max_iter=260, metric="precomputed", init="random")
    assert stability(model, D, runs=2).mean.shape == (150, 2)


def test_an_interrupted_map_stops_everything(monkeypatch):
    class Interrupted(Scripted):
        def fit_transform(self, rows, y=None):
            self.stop_reason_ = "interrupted"
            return super().fit_transform(rows)

    with pytest.raises(KeyboardInterrupt):
        stability(Interrupted(), NUMBERS, runs=3)


def test_columns_are_ready_for_a_report():
    found = stability(PCA(2), X, runs=3)
    assert list(found.columns()) == ["spread", "moved_with", "moved_alone"]
    assert len(found.to_dict()["spread"]) == 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 1}, "`runs` must be an integer ≥ 2"),
        ({"vary": "weather"}, "`vary` must be one of"),
        ({"fraction": 1.0}, "`fraction` must be from 0.5 to below 1"),
        ({"fraction": 0.1}, "`fraction` must be a number from 0.5"),
        ({"n_neighbors": 0}, "`n_neighbors` must be an integer ≥ 1"),
        ({"vary": "start", "estimator": Scripted()}, "`vary` must be 'rows'"),
    ],
)
def test_wrong_options_are_refused_with_their_limits(options, message):
    estimator = options.pop("estimator", PCA(2))
    with pytest.raises(ValueError, match=message):
        stability(estimator, X, **options)
