import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from procrustes.sets import orthogonal, pair

from gnomon import Procrustes, consensus
from gnomon.errors import DataError, NotConvergedWarning


def many(m=4, n=30, d=3, noise=0.2, seed=0):
    """Noisy, turned, scaled and shifted copies of one set."""
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, d))
    sets = []
    for k in range(m):
        X = Z + noise * random.normal(size=(n, d))
        sets.append(random.uniform(0.5, 2) * X @ orthogonal(d, seed + k) + random.normal(size=d))
    return sets


def never_rises(found):
    return all(b <= a for a, b in zip(found.objective, found.objective[1:], strict=False))


def left_over(found):
    """Σ ‖A − Z‖² of the sets as they are returned, each row where its id says."""
    place = {key: i for i, key in enumerate(found.ids)}
    ids = getattr(found, "given", [found.ids] * len(found.aligned))
    total = 0.0
    for A, own in zip(found.aligned, ids, strict=True):
        total += ((A - found.mean[[place[key] for key in own]]) ** 2).sum()
    return total


@given(
    seed=st.integers(0, 10_000),
    m=st.integers(2, 6),
    n=st.integers(2, 25),
    d=st.integers(1, 5),
    scaling=st.booleans(),
    forbid=st.booleans(),
    centering=st.booleans(),
)
def test_the_objective_never_rises(seed, m, n, d, scaling, forbid, centering):
    random = np.random.default_rng(seed)
    sets = [random.normal(size=(n, d)) * 10 ** random.uniform(-3, 3) for _ in range(m)]
    found = consensus(
        sets,
        scaling=scaling,
        reflection="forbid" if forbid else "allow",
        centering=centering,
        max_iter=2000,
        tol=1e-9,
    )
    assert never_rises(found)
    assert found.converged
    for R in found.rotations:
        assert np.allclose(R @ R.T, np.eye(d), atol=1e-12)
        assert not forbid or np.linalg.det(R) > 0


@given(seed=st.integers(0, 10_000), m=st.integers(2, 5), d=st.integers(1, 4), scaling=st.booleans())
def test_the_objective_never_rises_where_points_are_missing(seed, m, d, scaling):
    random = np.random.default_rng(seed)
    n = 20
    held = [np.sort(random.choice(n, random.integers(8, n), replace=False)) for _ in range(m)]
    held[0] = np.arange(n)  # so that all are connected
    sets = [random.normal(size=(len(rows), d)) for rows in held]
    found = consensus(sets, ids=held, scaling=scaling, max_iter=2000, tol=1e-9)
    assert never_rises(found)
    assert found.converged
    assert np.array_equal(found.counts, sum(np.isin(np.arange(n), rows) for rows in held))


def test_two_sets_are_laid_on_each_other_as_procrustes_does():
    X, Y = pair(d=3)
    found = consensus([Y, X])
    model = Procrustes().fit(X, Y)
    assert np.allclose(found.aligned[1], model.transform(X))
    assert np.allclose(found.aligned[0], Y)  # the first set keeps its axes and its centre
    assert np.allclose(found.mean, (Y + model.transform(X)) / 2)


def test_copies_of_one_set_fall_together():
    sets = many(noise=0.0)
    found = consensus(sets, scaling=True)
    assert found.objective[-1] < 1e-14
    assert found.spread.max() < 1e-6
    assert np.allclose(found.aligned[1], found.aligned[0])
    sizes = np.array([((X - X.mean(axis=0)) ** 2).sum() for X in sets])
    assert (found.scales**2 * sizes).sum() == pytest.approx(sizes.sum())  # the norm constraint


def test_results_fit_together():
    sets = many()
    found = consensus(sets, scaling=True)
    for k, X in enumerate(sets):
        placed = found.scales[k] * X @ found.rotations[k] + found.translations[k]
        assert np.allclose(placed, found.aligned[k])
    assert np.allclose(np.mean(found.aligned, axis=0), found.mean)
    away = [((A - found.mean) ** 2).sum(axis=1) for A in found.aligned]
    assert np.allclose(found.spread, np.sqrt(np.mean(away, axis=0)))
    sizes = sum(((X - X.mean(axis=0)) ** 2).sum() for X in sets)
    assert left_over(found) == pytest.approx(found.objective[-1] * sizes)
    assert np.array_equal(found.rotations[0], np.eye(3))


def test_no_set_can_be_laid_better_on_the_mean_of_the_others():
    found = consensus(many(), tol=1e-14)
    for k, A in enumerate(found.aligned):
        others = np.mean([B for j, B in enumerate(found.aligned) if j != k], axis=0)
        again = Procrustes().fit(A, others)
        assert np.allclose(again.rotation_, np.eye(3), atol=1e-5)


def test_products_and_rows_lead_to_the_same_place():
    sets = many(m=3)
    ids = [list(range(30))] * 3
    whole = consensus(sets, ids=ids, tol=1e-14)
    # one more point that only the last set holds: the rows are used, and it has no say
    extra = [*sets[:2], np.r_[sets[2], sets[2][:1] + 0.1]]
    partly = consensus(extra, ids=[*ids[:2], [*ids[2], "new"]], tol=1e-14)
    assert np.allclose(partly.mean[:30], whole.mean, atol=1e-5)
    assert partly.ids[-1] == "new"
    assert partly.counts.tolist() == [3] * 30 + [1]
    assert partly.spread[-1] < 1e-12


def test_the_order_of_rows_is_settled_by_ids():
    sets = many(m=3)
    order = np.random.default_rng(0).permutation(30)
    shuffled = [sets[0], sets[1][order], sets[2]]
    ids = [np.arange(30), order, np.arange(30)]
    expected, found = consensus(sets), consensus(shuffled, ids=ids)
    assert np.allclose(found.mean, expected.mean, atol=1e-10)
    assert np.allclose(found.aligned[1], expected.aligned[1][order], atol=1e-10)


def test_narrower_sets_are_padded():
    sets = many(d=3)
    found = consensus([sets[0][:, :2], *sets[1:]])
    assert found.mean.shape == (30, 3)
    assert found.rotations[0].shape == (2, 3)
    assert np.array_equal(found.rotations[0], np.eye(2, 3))
    with pytest.raises(ValueError, match=r"`reflection` must be 'allow' where sets have different"):
        consensus([sets[0][:, :2], *sets[1:]], reflection="forbid")


def test_extreme_numbers_are_numbers_like_others():
    sets = many()
    expected = consensus(sets)
    for factor in (1e200, 1e-200):
        found = consensus([X * factor for X in sets])
        assert np.allclose(found.mean / factor, expected.mean, atol=1e-10)
    mixed = consensus([sets[0], sets[1] * 1e200, sets[2] * 1e-200, sets[3]], scaling=True)
    assert np.allclose(mixed.objective[-1], consensus(sets, scaling=True).objective[-1], rtol=1e-6)


def test_scales_are_never_negative():
    # on a line, without reflections, the best scale of the second set would be negative
    x = np.arange(5.0)[:, None]
    found = consensus([x, -x], scaling=True, reflection="forbid")
    assert (found.scales > 0).all()
    ids = [range(5), [0, 1, 2, 3, 9]]
    assert (consensus([x, -x], ids=ids, scaling=True, reflection="forbid").scales > 0).all()


def test_bits_do_not_depend_on_threads():
    sets = many(n=5000)
    found = [consensus(sets, scaling=True, n_jobs=n) for n in (1, 2, 4)]
    for other in found[1:]:
        assert np.array_equal(found[0].mean, other.mean)
        assert found[0].objective == other.objective


def test_wrong_sets_are_refused():
    sets = many()
    for bad, kwargs, says in (
        (sets[:1], {}, "`sets` must be at least 2 tables; got 1"),
        ([sets[0], sets[1][:5]], {}, r"same number of rows; got \[30, 5\]. Give `ids`"),
        (sets, {"ids": [[1]]}, "`ids` must be 4 lists"),
        (sets[:2], {"ids": [range(30), [1] * 30]}, r"`ids\[1\]` must be distinct"),
        (sets[:2], {"ids": [range(30), range(30, 60)]}, "set 1 shares no id"),
        ([sets[0], np.full((30, 3), 0.1)], {"scaling": True}, "set 1 has norm 0"),
        ([sets[0], np.full((30, 3), np.nan)], {}, "^set 1 holds 90 missing values"),
        (sets, {"reflection": "force"}, "`reflection` must be one of"),
        (sets, {"max_iter": 0}, "`max_iter` must be"),
    ):
        with pytest.raises(ValueError, match=says) as caught:
            consensus(bad, **kwargs)
        assert isinstance(caught.value, (DataError, ValueError))
    with pytest.warns(NotConvergedWarning, match="max_iter=1"):
        consensus(many(noise=2.0), max_iter=1, tol=0.0)


def test_a_consensus_reads_as_sentences():
    text = str(consensus(many()))
    assert text.startswith("4 sets of 30 points")
    assert "converged" in text
