import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gnomon import TSNE, samples
from gnomon.tsne.aligned import Shared, find_shared, lay_over, row_keys, start_from

X = samples.load("wine").X
X = (X - X.mean(0)) / X.std(0)
QUICK = {"perplexity": 10, "n_jobs": 1}
FORMER = TSNE(**QUICK).fit(X[:140])


def test_a_grown_table_keeps_the_frame_of_the_former_map():
    grown = TSNE(**QUICK, align_to=FORMER).fit(X)
    alignment = grown.alignment_
    assert (alignment.shared, alignment.only_new, alignment.only_former) == (140, 38, 0)
    places = FORMER.embedding_.astype(float)
    size = np.sqrt(((places - places.mean(0)) ** 2).sum(1).mean())
    moved = np.median(np.linalg.norm(grown.embedding_[:140] - places, axis=1)) / size
    assert alignment.movement == pytest.approx(moved, rel=1e-3)
    # A tenth is the design's bound for 16,000 shared rows. These 140 stayed within 0.09 in twelve
    # maps of almost equal tables; the same maps cut short after 300 iterations moved up to 0.25.
    assert moved < 0.15
    assert alignment.movement < alignment.movement_unaligned / 3
    assert "140 shared rows" in str(alignment)


def test_new_rows_land_beside_their_neighbours():
    grown = TSNE(**QUICK, align_to=FORMER).fit(X)
    Y = grown.embedding_.astype(float)
    size = np.sqrt(((Y - Y.mean(0)) ** 2).sum(1).mean())
    near = [grown.affinities_[[row]].toarray()[0].argsort()[-5:] for row in range(140, 178)]
    away = [
        np.linalg.norm(Y[others] - Y[row], axis=1).min()
        for row, others in zip(range(140, 178), near, strict=True)
    ]
    # A map of 178 rows may leave a row or two behind, aligned or not; rows placed anywhere would
    # be about 1.4 sizes from each other.
    assert np.quantile(away, 0.9) < 0.2 * size
    assert max(away) < size


def test_kl_and_certificate_are_those_of_the_map_as_it_is_laid():
    from gnomon.tsne.reference import kl_divergence

    grown = TSNE(**QUICK, align_to=FORMER).fit(X)
    exact = kl_divergence(grown.affinities_, grown.embedding_.astype(float))
    assert grown.kl_divergence_ == pytest.approx(exact, abs=1e-4)
    assert grown.certificate_.force_error < 0.035


def test_rows_in_another_order_are_found_by_their_numbers_and_by_their_ids():
    order = np.random.default_rng(0).permutation(178)
    keys = row_keys(X[order], None, 1)
    shared = find_shared(FORMER, keys, 2)
    assert np.array_equal(order[shared.new], shared.old)
    names = np.array([f"row {i}" for i in range(178)])
    named = TSNE(**QUICK).fit(X[:140], ids=names[:140])
    changed = TSNE(**QUICK, align_to=named).fit(X[order] + 1e-9, ids=names[order])
    assert changed.alignment_.shared == 140
    assert changed.alignment_.movement < 0.15


def test_a_dataframes_own_index_is_its_ids():
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(178)])
    former = TSNE(**QUICK).fit(frame[:140])
    grown = TSNE(**QUICK, align_to=former).fit(frame[::-1] * 1.0001)
    assert grown.alignment_.shared == 140


def test_copies_are_matched_one_to_one():
    table = np.vstack([X[:20], X[:20], X[20:60]])
    former = TSNE(**QUICK).fit(table)
    shared = find_shared(former, row_keys(table, None, 1), 2)
    assert np.array_equal(shared.new, np.arange(80))
    assert np.array_equal(shared.old, np.arange(80))


def test_sparse_and_dense_rows_have_the_same_keys():
    table = np.where(np.abs(X) < 0.5, 0, X)
    assert np.array_equal(row_keys(table, None, 1), row_keys(sp.csr_array(table), None, 2))
    assert np.array_equal(row_keys(-0.0 * table, None, 1), row_keys(0.0 * table, None, 1))


def test_too_few_shared_rows_are_refused():
    with pytest.raises(ValueError, match="at least 4 rows that both maps hold; found 2"):
        TSNE(**QUICK, align_to=FORMER).fit(X[138:])


@pytest.mark.parametrize(
    ("former", "ids", "message"),
    [
        (FORMER, np.arange(178), "One map was given ids and the other was not"),
        (FORMER, np.zeros(178), "`ids` must be different for every row"),
        (FORMER, np.full(178, "cell 1"), r"got 'cell 1'\. It is the id of 178 rows\."),
        (FORMER, np.arange(7), "`ids` must be 178 names"),
        (TSNE(), None, "`align_to` must be a fitted TSNE"),
        (TSNE(3, **QUICK).fit(X[:60]), None, "`align_to` must be a map in 2 dimensions"),
    ],
)
def test_what_cannot_be_matched_is_refused(former, ids, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TSNE(**QUICK, align_to=former).fit(X, ids=ids)


def test_an_aligned_run_continues_with_the_same_bits():
    whole = TSNE(**{**QUICK, "max_iter": 120}, align_to=FORMER).fit(X)
    parts = TSNE(**{**QUICK, "max_iter": 70}, align_to=FORMER).fit(X).resume(50)
    assert np.array_equal(whole.embedding_, parts.embedding_)


def test_islands_without_a_shared_row_start_somewhere_on_the_map():
    P = sp.block_diag([sp.csr_array(np.ones((6, 6)) - np.eye(6))] * 2, format="csr") / 60
    shared = Shared(np.arange(6), np.arange(6), np.random.default_rng(0).normal(size=(6, 2)))
    start = start_from(shared, sp.csr_array(P), np.random.default_rng(0))
    assert np.array_equal(start[:6], shared.places)
    assert np.isfinite(start).all()
    assert np.ptp(start[6:], axis=0).min() > 0


def test_laying_over_undoes_any_similarity():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(50, 2))
    turn = np.array([[0.0, 1.0], [1.0, 0.0]])  # a reflection
    Y = (places @ turn) * 3 + 7
    shared = Shared(np.arange(50), np.arange(50), places)
    laid, alignment = lay_over(Y, shared, 60)
    np.testing.assert_allclose(laid, places, atol=1e-12)
    assert alignment.reflected
    assert alignment.scale == pytest.approx(1 / 3)
    assert alignment.only_former == 10
