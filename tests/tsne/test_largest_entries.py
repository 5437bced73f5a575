import numpy as np
import pytest
import scipy.sparse as sp

from gnomon import TSNE, samples
from gnomon.models import load, save
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne import forces
from gnomon.tsne.affinities import gaussian_rows, joint
from gnomon.tsne.largest_entries import SHARE, cut

DIGITS = samples.load("digits").X[:1200]
P = joint(gaussian_rows(find_neighbors(DIGITS, 60), 20))


def reference(P, share):
    """By sorting every row in float64."""
    dense = P.toarray().astype(np.float64)
    ordered = -np.sort(-dense, axis=1)
    held = np.cumsum(ordered, axis=1) / dense.sum(axis=1, keepdims=True)
    limits = np.take_along_axis(ordered, np.argmax(held >= share, axis=1)[:, None], axis=1)
    kept = np.where(dense >= np.minimum(limits, limits.T), dense, 0.0)
    return kept / kept.sum()


@pytest.mark.parametrize("share", [0.5, SHARE, 0.99])
def test_every_row_keeps_its_share_in_no_more_entries_than_needed(share):
    found = cut(P, share)
    kept = P.multiply(found > 0).sum(axis=1) / P.sum(axis=1)
    assert kept.min() >= share - 1e-6  # float32
    wanted = reference(P, share)
    differing = (found.toarray() > 0) != (wanted > 0)
    assert differing.sum() <= 0.001 * found.nnz  # limits are found by halving, to 1 in 65,000
    np.testing.assert_allclose(found.toarray()[~differing], wanted[~differing], rtol=1e-4)


def test_what_is_left_is_symmetric_and_sums_to_one():
    found = cut(P)
    assert 0.3 * P.nnz < found.nnz < 0.6 * P.nnz
    assert (found != found.T).nnz == 0
    assert abs(found.data.sum(dtype=np.float64) - 1) < 1e-6
    assert found.has_sorted_indices
    assert (found.data > 0).all()


def test_equal_entries_all_stay():
    ring = sp.csr_array(np.roll(np.eye(50), 1, axis=1) + np.roll(np.eye(50), -1, axis=1))
    P = sp.csr_array((ring.data.astype(np.float32) / 100, ring.indices, ring.indptr), (50, 50))
    assert cut(P).nnz == P.nnz


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    P = joint(gaussian_rows(find_neighbors(samples.load("digits").X, 60), 20))
    one, many = cut(P, n_jobs=1), cut(P, n_jobs=n_jobs)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(one, name), getattr(many, name))


@pytest.fixture
def cuts_small(monkeypatch):
    """Rough forces leave entries out of small tables too."""
    monkeypatch.setattr(forces, "CUT_FROM", 100)


def run(max_iter, **options):
    return TSNE(perplexity=10, max_iter=max_iter, quality="best", random_state=0, **options)


@pytest.mark.usefixtures("cuts_small")
@pytest.mark.parametrize("saved", [False, True])
def test_a_run_that_is_continued_across_the_change_of_p_has_the_bits_of_a_long_one(saved, tmp_path):
    X = DIGITS[:300]
    whole = run(480).fit(X)
    parts = run(450).fit(X)
    cooled = parts.embedding_.copy()
    if saved:
        save(parts, tmp_path / "map.gnomon")
        parts = load(tmp_path / "map.gnomon")
    parts.resume(30)
    assert whole.n_iter_ == parts.n_iter_ == 480
    assert np.array_equal(whole.embedding_, parts.embedding_)
    assert not np.array_equal(cooled, parts.embedding_)


@pytest.mark.usefixtures("cuts_small")
@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize("method", ["auto", "mesh"])
def test_threads_do_not_change_the_bits_of_a_map_of_a_cut_p(n_jobs, method):
    one, many = (run(60, method=method, n_jobs=jobs).fit(DIGITS[:300]) for jobs in (1, n_jobs))
    assert np.array_equal(one.embedding_, many.embedding_)


@pytest.mark.usefixtures("cuts_small")
def test_the_map_is_judged_by_the_whole_p():
    for max_iter in (40, 1000):  # without cooling and with it
        tsne = TSNE(perplexity=10, max_iter=max_iter, random_state=0).fit(DIGITS[:300])
        Y, P = tsne.embedding_.astype(np.float64), tsne.affinities_.toarray().astype(np.float64)
        kernel = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
        np.fill_diagonal(kernel, 0)
        Q, there = kernel / kernel.sum(), P > 0
        kl = (P[there] * np.log(P[there] / Q[there])).sum()
        assert abs(tsne.kl_divergence_ - kl) < 1e-3


@pytest.mark.usefixtures("cuts_small")
def test_a_map_is_held_against_its_looks_over_the_same_p():
    """Over the whole P of copies KL is 8 % higher than over the cut one, and no point swings."""
    X = np.repeat(np.random.default_rng(0).standard_normal((400, 10)), 5, axis=0)
    TSNE().fit(X)  # warnings are errors
