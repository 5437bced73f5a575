import numpy as np
import pytest

from gnomon import PCA, TSNE
from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.errors import ParameterError, TooLargeError
from gnomon.events import Event
from gnomon.models import load, save
from gnomon.tsne.map import Map
from gnomon.tsne.sampled import (
    PlacedBlock,
    choose_sample,
    place_array,
    place_source,
    rows_of_source,
)


def clusters(n, d=5, groups=4, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(groups, size=n)
    return (8 * rng.standard_normal((groups, d)))[which] + rng.standard_normal((n, d)), which


def needed(rows):
    return 2e7 + 7200.0 * rows


@pytest.fixture(scope="module")
def mapped():
    X, which = clusters(900)
    sampling = choose_sample(900, asked=300, budget=1e9, needed=needed, seed=4)
    tsne = TSNE(perplexity=20, random_state=0, max_iter=400, n_jobs=1).fit(X[sampling.rows])
    return X, which, sampling, tsne


def test_all_rows_are_mapped_as_long_as_memory_allows():
    n, enough = 10_000, needed(10_000)
    assert choose_sample(n, asked=None, budget=enough, needed=needed, seed=0) is None
    sampling = choose_sample(n, asked=None, budget=enough / 2, needed=needed, seed=0)
    m = sampling.rows.size
    assert needed(m) <= enough / 2 < needed(m + 1)
    assert sampling.why == (
        "a map of all would take about 92.0 MB of memory, and 46.0 MB may be used"
    )
    assert sampling.to_dict()["words"] == (
        "3,611 rows drawn at random are mapped, the other 6,389 placed among them: a map of all "
        "would take about 92.0 MB of memory, and 46.0 MB may be used."
    )


def test_too_little_memory_for_any_map_is_refused():
    with pytest.raises(TooLargeError, match=r"A map needs 27.2 MB of memory or more; 21.0 MB may"):
        choose_sample(10_000, asked=None, budget=2.1e7, needed=needed, seed=0)


def test_the_sample_is_drawn_by_the_seed_and_its_rows_are_in_order():
    first, again, other = (
        choose_sample(500, asked=50, budget=1e9, needed=needed, seed=seed).rows
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (np.diff(first) > 0).all()
    assert choose_sample(500, asked=500, budget=1e9, needed=needed, seed=0) is None
    with pytest.raises(ParameterError, match="`sample` must be an integer ≥ 3; got 2"):
        choose_sample(500, asked=2, budget=1e9, needed=needed, seed=0)


def test_sampled_rows_keep_their_places_and_the_others_land_among_their_kind(mapped):
    X, which, sampling, tsne = mapped
    told = []
    found = place_array(tsne, sampling, X, told.append)
    assert told == [Event("place", 600, 600)]
    assert found.finished
    assert np.array_equal(found.positions[sampling.rows], tsne.embedding_)
    assert np.array_equal(np.flatnonzero(~found.placed), sampling.rows)
    assert np.isnan(found.trust[sampling.rows]).all()
    assert np.array_equal(found.positions[found.placed], tsne.transform(X[found.placed]))
    # The groups are 8 spreads apart: the nearest mapped row of nearly all is of their kind.
    gaps = np.linalg.norm(found.positions[:, None] - tsne.embedding_, axis=2)
    gaps[sampling.rows, np.arange(300)] = np.inf
    same = which[sampling.rows][gaps.argmin(axis=1)] == which
    assert same[found.placed].mean() > 0.97
    odd = f"{found.unusual.sum()} of them unlike any of the sample"
    assert found.title().startswith(f"600 rows placed, {odd}")


def test_a_rows_place_and_trust_do_not_depend_on_the_blocks(mapped, monkeypatch):
    X, _, sampling, tsne = mapped
    whole = place_array(tsne, sampling, X)
    monkeypatch.setattr("gnomon.tsne.sampled.BLOCK_ROWS", 37)
    monkeypatch.setattr("gnomon.tsne.place_parts.PIECE_ROWS", 7)
    place, most = Map.place, []
    monkeypatch.setattr(
        Map, "place", lambda *of, **how: most.append(len(of[1])) or place(*of, **how)
    )
    source = ArraySource(X, rows=41)
    told = []
    for parts in (
        place_array(tsne, sampling, X),
        place_source(tsne, sampling, source, LocalEngine(2), told.append),
    ):
        for name in ("positions", "placed", "reason", "trust"):
            assert getattr(whole, name).tobytes() == getattr(parts, name).tobytes(), name
        assert parts.finished
    assert told[-1] == Event("place", 600, 600)
    assert most[-1] <= 7
    assert np.array_equal(rows_of_source(source, sampling.rows, LocalEngine(2)), X[sampling.rows])


def test_trust_is_the_share_of_the_nearest_sampled_rows_that_stay_nearest(mapped):
    X, _, sampling, tsne = mapped
    rows = np.setdiff1d(np.arange(900), sampling.rows)[:50]
    block = PlacedBlock.of(tsne._model(), X[rows])
    data = np.linalg.norm(X[rows][:, None] - X[sampling.rows], axis=2).argsort(axis=1)[:, :15]
    there = np.linalg.norm(block.positions[:, None] - tsne.embedding_, axis=2)
    expected = [
        np.isin(a, b).mean() for a, b in zip(data, there.argsort(axis=1)[:, :15], strict=True)
    ]
    assert np.allclose(block.trust, expected)
    assert 0.2 < block.trust.mean() < 1


def test_an_interrupt_keeps_what_has_its_place(mapped, monkeypatch):
    X, _, sampling, tsne = mapped

    def interrupted(event):
        if event.done > 100:
            raise KeyboardInterrupt

    found = place_source(tsne, sampling, ArraySource(X, rows=50), LocalEngine(1), interrupted)
    assert not found.finished
    assert 101 <= (~np.isnan(found.positions[found.placed])).all(axis=1).sum() < 150
    monkeypatch.setattr("gnomon.tsne.sampled.BLOCK_ROWS", 50)
    again = place_array(tsne, sampling, X, interrupted)
    assert np.array_equal(found.positions, again.positions, equal_nan=True)


def test_rows_unlike_the_sample_are_called_unusual(mapped):
    X, _, _, tsne = mapped
    far = PlacedBlock.of(tsne._model(), X[:5] + 500.0)
    assert far.reason.all()
    assert PlacedBlock.of(tsne._model(), X[:0]).trust.shape == (0,)


def test_a_pca_of_all_rows_reduces_a_sample_and_what_is_placed(tmp_path):
    X, _ = clusters(400, d=30)
    pca = PCA(6).fit(X)
    others = {"init": "random", "perplexity": 10, "max_iter": 60, "n_jobs": 1}
    tsne = TSNE(pca=pca, **others).fit(X[:150])
    assert tsne.pca_ is pca
    assert "30 columns to 6 by a PCA that was given" in tsne.certificate_.reduced
    bare = TSNE(pca=None, **others).fit(pca.transform(X[:150]))
    assert np.array_equal(tsne.embedding_, bare.embedding_)
    new = tsne.transform(X[150:])
    assert np.array_equal(new, bare.transform(pca.transform(X[150:])))
    save(tsne, tmp_path / "map.gnomon")
    back = load(tmp_path / "map.gnomon")
    assert back.pca == 6
    assert np.array_equal(back.transform(X[150:]), new)


def test_a_pca_that_was_given_must_be_fitted_and_goes_with_euclidean_distances():
    X, _ = clusters(60)
    with pytest.raises(Exception, match="not fitted"):
        TSNE(pca=PCA(2), perplexity=5).fit(X)
    with pytest.raises(ParameterError, match="unless the metric is euclidean"):
        TSNE(pca=PCA(2).fit(X), metric="cosine", perplexity=5).fit(X)
