from dataclasses import replace

import numpy as np
import pytest

from gnomon import TSNE, load, samples
from gnomon.errors import ParameterError
from gnomon.tsne.descent import Stop
from gnomon.tsne.schedule import QUALITIES, Schedule, make_schedule, parse_stages

SCHEDULE = Schedule(mass=600.0, exaggeration=2.0, anneal_iter=100)


def make(n=600, **options):
    usual = {"dof": 1.0, "exaggeration": 1.0, "quality": "balanced"}
    return make_schedule(n, float(n), **{**usual, **options})


def test_exaggeration_and_momentum_are_annealed_together():
    """30 iterations at the first values, 100 in between, then the last ones."""
    found = [(SCHEDULE.factor(i), SCHEDULE.momentum_at(i, 0)) for i in (0, 30, 80, 129, 130, 999)]
    expected = [(12, 0.8), (12, 0.8), (7, 0.895), (2.1, 0.9881), (2, 0.99), (2, 0.99)]
    np.testing.assert_allclose(found, expected)


def test_the_largest_step_follows_the_exaggeration_unless_a_learning_rate_is_given():
    assert [SCHEDULE.largest_step(i, 1.0) for i in (0, 130)] == [100.0, 600.0]
    assert SCHEDULE.largest_step(130, 0.2) == pytest.approx(200.0)  # 2α/(α+1) = 1/3
    assert SCHEDULE.largest_step(130, 9.0) == 600.0
    given = replace(SCHEDULE, learning_rate=7.0)
    assert [given.largest_step(i, 0.2) for i in (0, 130)] == [7.0, 7.0]


@pytest.mark.parametrize("dof", [0.2, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("momentum", [0.8, 0.9, 0.99])
def test_springs_do_not_swing(dof, momentum):
    """v ← μv − r F ex λ y comes to rest if r F ex λ < 2(1+μ); the stiffest spring has λ = 2 deg.

    The matrix of one step then has no eigenvalue beyond 1.
    """
    schedule = replace(SCHEDULE, momentum=momentum)
    step = schedule.step_of_degree(200, dof, momentum, 0) * schedule.factor(200)
    stiffness = 2 * (dof + 1) / dof * step * 2
    turn = np.array([[momentum, -stiffness], [momentum, 1 - stiffness]])  # of (v, y)
    assert np.abs(np.linalg.eigvals(turn)).max() < 1
    if dof <= 1:  # beyond, the step is not made longer, though it might be
        longer = np.array([[momentum, -1.2 * stiffness], [momentum, 1 - 1.2 * stiffness]])
        assert np.abs(np.linalg.eigvals(longer)).max() > 1


def test_the_watch_lowers_momentum_and_then_the_step():
    momenta = [SCHEDULE.momentum_at(200, k) for k in range(7)]
    np.testing.assert_allclose(momenta, [0.99, 0.98, 0.96, 0.92, 0.84, 0.8, 0.8])
    steps = np.array([SCHEDULE.step_of_degree(200, 1.0, 0.8, k) for k in range(11)])
    assert (steps[:5] == steps[0]).all()
    np.testing.assert_allclose(steps[5] / steps[0], 0.2 / 0.32)
    np.testing.assert_allclose(steps[6:] / steps[5:-1], 0.5)


def test_cooling_lowers_momentum_and_never_raises_it():
    assert SCHEDULE.momentum_at(200, 0, cooling=True) == 0.9
    assert SCHEDULE.momentum_at(200, 5, cooling=True) == 0.8


def test_kl_is_looked_at_often_once_exaggeration_has_ended():
    looks = [i for i in range(171) if SCHEDULE.looks_at(i)]
    assert looks == [50, 100, 130, 140, 150, 160, 170]


def test_where_cooling_begins_never_goes_back_as_a_run_gets_longer():
    """So that the state that is kept can always be continued."""
    trunks = [SCHEDULE.cools_from(until) for until in range(1, 400)]
    assert trunks == sorted(trunks)
    assert trunks[99] == 100  # annealing has not ended: none
    assert trunks[139] == 130  # only after it
    assert trunks[299] == 280


def test_a_run_may_end_once_momentum_has_built_up():
    assert not SCHEDULE.may_end(179, 0)
    assert SCHEDULE.may_end(180, 0)
    assert not SCHEDULE.may_end(249, 200)  # the watch stopped the points at 200


def test_the_expected_length_is_between_where_the_run_is_and_its_ceiling():
    assert SCHEDULE.expected(0, 1000) == 130 + QUALITIES["balanced"].usual_iter + 20
    assert SCHEDULE.expected(0, 50) == 50
    assert SCHEDULE.expected(400, 1000) == 420


@pytest.mark.parametrize(
    ("n", "annealing"), [(50, 200), (1_499, 200), (1_500, 100), (9_999, 100), (10_000, 50)]
)
def test_annealing_is_the_longer_the_fewer_rows_there_are(n, annealing):
    assert make(n).anneal_iter == annealing
    assert make(n, quality="best").anneal_iter == 2 * annealing
    assert make(n, quality="fast").anneal_iter == annealing // 2


def test_better_maps_take_longer():
    lengths = [make(quality=quality).expected(0, 10_000) for quality in QUALITIES]
    tolerances = [make(quality=quality).tolerance for quality in QUALITIES]
    assert lengths == sorted(lengths)
    assert tolerances == sorted(tolerances, reverse=True)


@pytest.mark.parametrize(
    ("dof", "exaggeration", "momentum"),
    [(0.2, 1, 0.99), (1, 1, 0.99), (1, 0.5, 0.99), (2, 1, 0.96), (10, 1, 0.95), (1, 4, 0.95)],
)
def test_small_maps_get_less_momentum(dof, exaggeration, momentum):
    found = make(dof=dof, exaggeration=exaggeration)
    assert found.momentum == pytest.approx(momentum)


def test_a_map_that_continues_another_has_no_exaggerated_phase():
    schedule = make(from_map=True, early_exaggeration=12.0)
    assert schedule.annealed == 0
    assert schedule.factor(0) == 1.0
    assert schedule.momentum == 0.95
    assert schedule.tolerance < make().tolerance
    assert schedule.cools_from(10) == 0


STAGES = [(20, 6.0), (30, 3.0), (10, 1.0)]


def by_function(iteration):
    return 6.0 if iteration < 20 else 3.0 if iteration < 50 else 1.0


def test_stages_and_functions_say_the_same():
    from_list, from_function = (
        parse_stages("exaggeration", value, 1e-30, 1e30) for value in (STAGES, by_function)
    )
    assert from_list.tolist() == from_function.tolist() == [[0, 6], [20, 3], [50, 1]]
    schedule = make(exaggeration_stages=from_list)
    assert [schedule.factor(i) for i in (0, 19, 20, 49, 50, 10**6)] == [6, 6, 3, 3, 1, 1]
    # momentum has its usual course, 30 + 200 iterations: the last of both counts
    assert schedule.annealed == 230
    momenta = parse_stages("momentum", [(70, 0.5), (1, 0.9)], 0.0, 0.999)
    both = make(exaggeration_stages=from_list, momentum_stages=momenta)
    assert [both.momentum_at(i, 0) for i in (0, 69, 70)] == [0.5, 0.5, 0.9]
    assert (both.annealed, both.momentum) == (70, 0.9)
    assert not both.may_end(100, 0)
    assert both.may_end(120, 0)
    assert both.cools_from(60) == 60  # no cooling before the last stage


def test_the_watch_never_raises_a_momentum():
    low = make(momentum_stages=parse_stages("momentum", 0.5, 0.0, 0.999))
    assert [low.momentum_at(300, lowered) for lowered in range(4)] == [0.5] * 4
    steps = [low.step_of_degree(300, 1.0, 0.5, lowered) for lowered in range(3)]
    np.testing.assert_allclose(steps, steps[0] * np.array([1, 0.5, 0.25]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exaggeration": []}, "at least one stage"),
        ({"exaggeration": [4.0]}, r"`exaggeration\[0\]`.* pair \(n_iter, value\)"),
        ({"exaggeration": [(0, 4.0)]}, r"exaggeration\[0\]\[0\]"),
        ({"exaggeration": [(5, 0.0)]}, r"exaggeration\[0\]\[1\]"),
        ({"exaggeration": lambda i: -1.0}, r"exaggeration\(0\)"),
        ({"momentum": 1.0}, "from 0 to 0.999"),
        ({"momentum": lambda i: "much"}, r"momentum\(0\)"),
    ],
)
def test_schedules_that_are_none_are_refused(options, message):
    with pytest.raises((ParameterError, TypeError), match=message):
        TSNE(perplexity=5, **options).fit(samples.load("iris").X)


@pytest.mark.parametrize("exaggeration", [STAGES, by_function])
def test_a_run_by_stages_that_is_kept_and_continued_is_one_run(exaggeration, tmp_path):
    X = samples.load("iris").X
    options = {
        "perplexity": 10,
        "exaggeration": exaggeration,
        "momentum": [(40, 0.5), (1, 0.8)],
        "quality": "best",
    }
    whole = TSNE(**options, max_iter=130).fit(X)
    part = TSNE(**options, max_iter=45).fit(X)
    part.save(tmp_path / "part.gnomon")
    kept = load(tmp_path / "part.gnomon")
    assert kept.exaggeration == [[20, 6.0], [30, 3.0], [1, 1.0]]
    for model in (part, kept):
        assert model.resume(85).embedding_.tobytes() == whole.embedding_.tobytes()
        assert model.n_iter_ == 130
    # what the file says is a schedule that gives the same map
    again = TSNE(**{**options, "exaggeration": kept.exaggeration}, max_iter=130).fit(X)
    assert again.embedding_.tobytes() == whole.embedding_.tobytes()


def test_stages_end_as_well_as_the_usual_schedule():
    X = samples.load("digits").X[:500]
    usual = TSNE().fit(X)
    given = TSNE(exaggeration=[(100, 12), (100, 4), (1, 1)], momentum=[(100, 0.5), (1, 0.95)])
    given.fit(X)
    assert given._stop is Stop.CONVERGED
    assert given.n_iter_ >= 200 + 50  # no rule before the last stage has settled
    assert given.kl_divergence_ < 1.05 * usual.kl_divergence_
    strong = TSNE(exaggeration=[(50, 12), (1, 4)], momentum=0.8).fit(X)
    assert np.ptp(strong.embedding_) < 0.7 * np.ptp(usual.embedding_)  # attraction holds it small
