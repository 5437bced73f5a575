from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from gnomon import TSNE, samples
from gnomon.errors import UnavailableError
from gnomon.tsne import place
from gnomon.tsne.novelty import distance_ratios
from gnomon.tsne.place import PlacingField
from gnomon.tsne.reference import field

DIGITS = samples.load("digits").X
DIGIT = np.asarray(samples.load("digits").labels).astype(int)
KNOWN, NEW = DIGITS[:1400], DIGITS[1400:]
MODEL = TSNE(max_iter=300).fit(KNOWN)
rng = np.random.default_rng(0)


def nearest_digits(places):
    """The digit that most of the 10 nearest rows of the map have."""
    away = np.linalg.norm(places[:, None] - MODEL.embedding_[None], axis=2)
    near = DIGIT[:1400][np.argsort(away, axis=1)[:, :10]]
    return np.array([np.bincount(row).argmax() for row in near])


def test_new_rows_land_among_their_own_kind():
    right = np.mean(nearest_digits(MODEL.transform(NEW)) == DIGIT[1400:])
    assert right > 0.93  # 0.952, as by the nearest ten rows in 64 dimensions


def test_a_row_gets_the_same_place_in_any_company_and_order():
    together = MODEL.transform(NEW)
    order = rng.permutation(len(NEW))
    assert np.array_equal(MODEL.transform(NEW[order]), together[order])
    assert np.array_equal(MODEL.transform(NEW[:1]), together[:1])
    alone = np.vstack([MODEL.transform(row[None]) for row in NEW[:40]])
    assert np.array_equal(alone, together[:40])
    halves = np.vstack([MODEL.transform(NEW[:133]), MODEL.transform(NEW[133:])])
    assert np.array_equal(halves, together)


def test_rows_of_the_data_come_back_to_their_own_places():
    assert np.array_equal(MODEL.transform(KNOWN), MODEL.embedding_)


def test_a_row_with_copies_comes_back_to_their_middle():
    table = np.vstack([KNOWN[:200], KNOWN[:200]])
    model = TSNE(perplexity=10, max_iter=260).fit(table)
    middle = (model.embedding_[:200] + model.embedding_[200:]) / 2
    np.testing.assert_allclose(model.transform(KNOWN[:200]), middle, atol=1e-5)  # float32 means


def test_no_rows_have_no_places():
    placed = MODEL.place(NEW[:0])
    assert placed.positions.shape == (0, 2)
    assert placed.positions.dtype == MODEL.embedding_.dtype
    assert placed.distance_ratio.shape == placed.residual.shape == placed.unusual.shape == (0,)
    assert placed.why.shape == (0,)
    assert "0 rows placed" in str(placed)


def test_rows_unlike_the_data_are_flagged():
    odd = np.vstack([KNOWN[:5] + 40, rng.uniform(0, 16, (5, 64)), NEW[:100]])
    placed = MODEL.place(odd)
    assert placed.unusual[:10].all()
    assert placed.unusual[10:].mean() < 0.1
    assert (placed.distance_ratio[:10] > placed.distance_limit).all()
    assert placed.residual[10:].mean() == pytest.approx(1, abs=0.15)
    beyond = placed.distance_ratio > placed.distance_limit
    assert np.array_equal(placed.unusual, beyond | (placed.residual > placed.residual_limit))
    assert set(placed.why[placed.unusual]) <= {"near nothing", "outside the components"}
    assert not placed.why[~placed.unusual].any()
    assert placed.distance_ratio[10:].mean() == pytest.approx(1, abs=0.15)
    assert np.isfinite(placed.positions).all()
    assert "110 rows placed" in str(placed)
    assert "distance ratio" in str(placed)
    assert placed.to_dict()["why"] == placed.why.tolist()
    assert placed.to_dict()["unusual"] == placed.unusual.tolist()


def test_a_row_at_no_distance_is_like_the_data_and_others_are_not_where_all_is_copies():
    ratios = distance_ratios(np.array([[0], [0]]), np.array([[0.0], [1.0]]), np.zeros(1))
    assert np.array_equal(ratios, [1.0, np.inf])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [1.0, 2.0])
def test_places_are_minima_of_each_rows_own_kl(dimensions, dof):
    Y = (rng.standard_normal((400, dimensions)) * (8 if dimensions < 3 else 3)).astype(np.float32)
    indices = np.array([np.argsort(((Y - Y[i]) ** 2).sum(axis=1))[1:16] for i in range(30)])
    distances = np.sort(rng.uniform(1, 3, (30, 15)), axis=1)
    places = PlacingField(Y, dof, 0.1 if dimensions < 3 else 0.35).place(
        indices.astype(np.int32), distances
    )
    p = probabilities(distances)

    def kl(at):
        away = ((at[:, None] - Y[indices]) ** 2).sum(axis=2)
        pull = (dof + 1) / 2 * (p * np.log1p(away / dof)).sum(axis=1)
        return pull + np.log(field(Y, dof, at=at)[0])

    lowest = kl(places.astype(float))
    mean = np.einsum("ik,ikc->ic", p, Y[indices].astype(float))
    assert (lowest <= kl(mean) + 1e-5).all()
    for _ in range(20):
        step = rng.standard_normal(places.shape)
        nearby = places + 0.05 * step / np.linalg.norm(step, axis=1, keepdims=True)
        # A step of 1e-4 ended the search, and the mesh has an error of its own.
        assert (kl(nearby) >= lowest - 2e-4).all()


def test_most_rows_are_in_their_place_after_eight_trials(monkeypatch):
    """82 % are; with steps along the gradient as it stands, 22 %."""
    whole = MODEL.transform(NEW)
    monkeypatch.setattr(place, "STEPS", 8)
    assert (MODEL.transform(NEW) == whole).all(axis=1).mean() > 0.7


def probabilities(distances):
    """Rows of perplexity 5, by bisection."""
    low, high = np.full((len(distances), 1), -30.0), np.full((len(distances), 1), 30.0)
    for _ in range(100):
        middle = (low + high) / 2
        weight = np.exp(-np.exp(middle) * (distances**2 - distances[:, :1] ** 2))
        p = weight / weight.sum(axis=1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1, keepdims=True)
        low, high = (
            np.where(entropy > np.log(5), middle, low),
            np.where(entropy > np.log(5), high, middle),
        )
    return p


def test_places_stay_near_the_map():
    far = MODEL.transform(KNOWN[:3] * 1e9)
    assert len(str(MODEL.place(KNOWN[:1] * 1e300))) < 300  # whatever the ratio
    assert np.abs(far).max() < np.abs(MODEL.embedding_).max() + 5.1


def test_places_do_not_leave_the_field(monkeypatch):
    """A crowd pushes its outermost members' neighbour away; beyond the mesh is nothing."""
    Y = (np.random.default_rng(0).standard_normal((400, 2)) * 0.5).astype(np.float32)
    outermost = np.argsort(-Y[:, 0])[None, :2].astype(np.int32)
    edge = Y[:, 0].max()
    assert (
        edge < PlacingField(Y, 1.0, 0.1).place(outermost, np.array([[1.0, 1.1]]))[0, 0] < edge + 5
    )
    monkeypatch.setattr(place, "MARGIN", 0.0)
    assert PlacingField(Y, 1.0, 0.1).place(outermost, np.array([[1.0, 1.1]]))[0, 0] == edge


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    model = TSNE(max_iter=300, n_jobs=n_jobs).fit(KNOWN)
    assert np.array_equal(model.transform(NEW), MODEL.transform(NEW))


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_other_metrics_place_rows_too(metric):
    model = TSNE(metric=metric, perplexity=10, max_iter=60).fit(KNOWN[:300])
    together = model.transform(NEW[:50])
    assert np.array_equal(model.transform(NEW[10:11]), together[10:11])
    np.testing.assert_allclose(model.transform(KNOWN[:300]), model.embedding_, atol=1e-6)


def test_the_length_of_a_row_means_nothing_to_cosine():
    model = TSNE(metric="cosine", perplexity=10, max_iter=60).fit(KNOWN[:300])
    places = model.transform(NEW[:50])
    # power of two: the same bits
    assert np.array_equal(model.transform(NEW[:50] * 4), places)


def test_reduced_tables_place_rows_through_their_pca():
    wide = np.hstack([DIGITS, DIGITS[:, ::-1] ** 2])[:500]
    model = TSNE(perplexity=10, max_iter=60).fit(wide[:400])
    assert model.pca_ is not None
    places = model.transform(wide[400:])
    assert np.array_equal(model.transform(wide[417:418]), places[17:18])
    assert np.array_equal(model.transform(wide[:400]), model.embedding_)
    sparse = TSNE(perplexity=10, max_iter=60).fit(sp.csr_array(KNOWN[:300]))
    sparse_places = sparse.transform(sp.csr_array(NEW[:30]))
    np.testing.assert_allclose(sparse_places, sparse.transform(NEW[:30]), atol=1e-3)


def test_distances_place_rows_as_the_table_does():
    away = np.linalg.norm(KNOWN[:300, None] - KNOWN[None, :300], axis=2)
    new = np.linalg.norm(NEW[:40, None] - KNOWN[None, :300], axis=2)
    model = TSNE(metric="precomputed", init="random", perplexity=10, max_iter=60).fit(away)
    table = TSNE(init=model.embedding_, perplexity=10, max_iter=1).fit(KNOWN[:300])
    table._map = replace(table._map, positions=model.embedding_)
    np.testing.assert_allclose(model.transform(new), table.transform(NEW[:40]), atol=1e-3)
    np.testing.assert_allclose(
        model.place(new).distance_ratio, table.place(NEW[:40]).distance_ratio
    )
    assert np.array_equal(model.transform(away), model.embedding_)


def test_what_cannot_be_placed_is_refused():
    bad = NEW[:3].copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"missing value.*row 1, column 2"):
        MODEL.transform(bad)
    bad[1, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinite value.*row 1, column 2"):
        MODEL.transform(bad)
    with pytest.raises(ValueError, match="63 features, but TSNE is expecting 64"):
        MODEL.transform(NEW[:, :63])
    with pytest.raises(NotFittedError):
        TSNE().transform(NEW)
    with pytest.raises(NotFittedError):
        TSNE().resume(5)


def test_columns_must_come_in_the_same_order():
    frame = pd.DataFrame(KNOWN[:100, 10:14], columns=list("abcd"))
    model = TSNE(perplexity=5, max_iter=20).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("badc")])
    frame.loc[3, "c"] = np.nan
    with pytest.raises(ValueError, match="row 3, column 'c'"):
        model.transform(frame)


def test_precomputed_input_has_its_own_limits():
    W = rng.uniform(size=(60, 60))
    model = TSNE(affinity="precomputed", init="random", max_iter=20).fit(W)
    with pytest.raises(UnavailableError, match="cannot place new rows"):
        model.transform(W)
    model = TSNE(metric="precomputed", init="random", perplexity=5, max_iter=20).fit(W)
    with pytest.raises(ValueError, match="none of them negative"):
        model.transform(-W)
    with pytest.raises(ValueError, match="be a dense table of distances"):
        model.transform(sp.csr_array(W))
    with pytest.raises(ValueError, match="missing value"):
        model.transform(np.full((1, 60), np.nan))


def test_weighted_rows_push_new_ones_as_their_copies_would():
    weights = rng.integers(1, 4, 200)
    Y = (rng.standard_normal((200, 2)) * 5).astype(np.float32)
    indices = np.argsort(((Y[:20, None] - Y[None]) ** 2).sum(axis=2), axis=1)[:, :15]
    distances = np.sort(rng.uniform(1, 3, (20, 15)), axis=1)
    weighted = PlacingField(Y, 1.0, 0.25, weights.astype(float))
    copies = PlacingField(np.repeat(Y, weights, axis=0), 1.0, 0.25)
    first = np.concatenate([[0], np.cumsum(weights)[:-1]])  # of each row's copies
    np.testing.assert_allclose(
        weighted.place(indices.astype(np.int32), distances),
        copies.place(first[indices].astype(np.int32), distances),
        atol=2e-3,  # steps end at 1e-4; float32 sums in another order
    )
