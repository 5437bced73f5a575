from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tsne.problems import MASS, ROWS, WEIGHTS, affinities, gradient

from gnomon.errors import GnomonError
from gnomon.tsne.descent import Descent, Stop, begin
from gnomon.tsne.forces import AllPairs, OverMesh
from gnomon.tsne.schedule import Schedule

rng = np.random.default_rng(0)
P = affinities("gaussian", ROWS)
SCHEDULE = Schedule(mass=40.0)


def start(dimensions=2, size=1e-4):
    return np.random.default_rng(3).standard_normal((40, dimensions)) * size


def descent(forces=None, schedule=SCHEDULE, Y=None, n_jobs=None):
    forces = AllPairs(P, 1.0) if forces is None else forces
    return Descent(begin(start() if Y is None else Y, forces), schedule, n_jobs)


class Scripted:
    """Forces that push every point with `slopes(Y)` and whose KL is read from a list.

    Degrees are so small that every point takes the largest step.
    """

    dof, dtype, negative_entropy = 1.0, np.float64, 0.0

    def __init__(self, slopes, kls):
        self.slopes, self.kls = slopes, iter(kls)

    def reordered(self, order):
        return self

    def apart(self):
        return self

    def refined(self, order):
        return self

    def at(self, Y, low, high):
        return np.zeros_like(Y), np.full(len(Y), 1e-9, self.dtype), self.slopes(Y), 1.0

    def kl(self, Y, total):
        return next(self.kls)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0])
def test_two_steps_are_those_of_the_formula(dimensions, dof, weighted):
    weights = WEIGHTS if weighted else None
    light = affinities("gaussian", ROWS, weights)
    forces, mass = AllPairs(light, dof, weights=weights), 40.0 if weights is None else MASS
    Y = start(dimensions, 1.0)
    Y -= Y.mean(axis=0)
    run = descent(forces, Schedule(mass=mass, early_exaggeration=3.0), Y)
    velocity, sharp = np.zeros_like(Y), min(1, 2 * dof / (dof + 1))
    masses = np.ones(40) if weights is None else weights
    for _ in range(2):
        run.step()
        pull, _, slope, total = forces.at(Y, Y.min(axis=0), Y.max(axis=0))
        g = 3.0 * 2 * (dof + 1) / dof * pull + 2 / total * slope
        sq = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
        degree = (light.toarray() / (1 + sq / dof)).sum(axis=1) / masses
        rate = sharp * np.minimum(0.225 * 1.8 / (3.0 * degree), 2 * mass / 3.0)
        velocity = 0.8 * velocity - rate[:, None] * g
        length = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity *= np.minimum(1, 5 / np.maximum(length, 1e-300))
        Y = Y + velocity
    # sums over renumbered points, in another order
    np.testing.assert_allclose(run.state.positions(), Y - Y.mean(axis=0), atol=1e-12)


def test_a_step_is_never_longer_than_five():
    run = descent(Scripted(lambda Y: 1e6 * np.ones_like(Y), []))
    before = run.state.positions()[run.state.order]
    run.step()
    length = np.linalg.norm(run.state.velocity, axis=1)
    np.testing.assert_allclose(length, 5)
    assert before.shape == run.state.Y.shape


def test_positions_are_in_the_order_of_the_data_and_about_their_mean():
    run = descent(Scripted(np.zeros_like, []), Y=start(size=3.0) + 50)
    run.step()
    assert not np.array_equal(run.state.order, np.arange(40))
    assert np.array_equal(np.sort(run.state.order), np.arange(40))
    given = start(size=3.0)
    np.testing.assert_allclose(run.state.positions(), given - given.mean(axis=0), atol=1e-12)


def test_points_are_renumbered_along_a_curve():
    """Neighbours in memory are nearer to each other in the map than rows of the data are."""
    run = descent(Scripted(np.zeros_like, []), Y=rng.uniform(size=(2000, 2)))
    jumps = np.linalg.norm(np.diff(run.state.Y, axis=0), axis=1).mean()
    run.step()
    assert np.linalg.norm(np.diff(run.state.Y, axis=0), axis=1).mean() < jumps / 10


def test_bounds_hold_the_map():
    run = descent()
    for _ in range(5):
        run.step()
        assert np.array_equal(run.state.low, run.state.Y.min(axis=0))
        assert np.array_equal(run.state.high, run.state.Y.max(axis=0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: AllPairs(P, 1.0),
        lambda: OverMesh(P, 2, 1.0, 0.5),
        lambda: OverMesh(P, 2, 1.0, 0.5, always_mesh=True),
        lambda: OverMesh(P, 2, 1.0, 0.5, always_mesh=True, rough=True),
    ],
    ids=["float64", "pairs", "mesh", "rough"],
)
def test_a_run_in_parts_has_the_bits_of_a_whole_one(make):
    """However often it cooled on the way, and whichever phase it stopped in."""
    schedule = replace(SCHEDULE, tolerance=0.0)
    whole, parts = descent(make(), schedule), descent(make(), schedule)
    assert whole.run(320) is Stop.MAX_ITER
    for until in (1, 29, 30, 99, 100, 101, 130, 131, 140, 150, 151, 250, 320):
        assert parts.run(until) is Stop.MAX_ITER
        assert parts.end.iteration == until
        assert parts.state.iteration == schedule.cools_from(until)
    assert np.array_equal(whole.end.positions(), parts.end.positions())
    assert np.array_equal(whole.state.positions(), parts.state.positions())
    assert whole.state.kl == parts.state.kl
    assert whole.state.best_iteration == parts.state.best_iteration


def test_cooling_runs_on_a_branch_with_less_momentum():
    run = descent()
    run.run(200)
    assert (run.state.iteration, run.end.iteration) == (180, 200)
    trunk = Descent(run.state, SCHEDULE)
    for _ in range(20):
        trunk.step()
    moving, cooled = (np.linalg.norm(state.velocity) for state in (trunk.state, run.end))
    assert cooled < 0.6 * moving
    by_hand = Descent(run.state, replace(SCHEDULE, momentum=0.9, tolerance=0.0))
    for _ in range(20):
        by_hand.step()
    assert np.array_equal(by_hand.state.Y, run.end.Y)


@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_the_state_given_is_never_written_over(size):
    """Whoever gave it goes back to it when a run fails; one that is enlarged first, too."""
    first = descent()
    first.run(120)
    bounds = {"low": size * first.state.low, "high": size * first.state.high}
    given = replace(first.state, Y=size * first.state.Y, **bounds)
    copies = [array.copy() for array in (given.Y, given.velocity)]
    second = Descent(given, SCHEDULE)
    second.run(170)
    trunk = second.state.Y.copy(), second.state.velocity.copy()
    second.run(171)  # cools again, from one iteration later
    assert second.state.iteration == 151
    for array, copy in zip((given.Y, given.velocity), copies, strict=True):
        assert np.array_equal(array, copy)
    third = Descent(replace(second.state, Y=trunk[0], velocity=trunk[1], iteration=150), SCHEDULE)
    third.step()
    assert np.array_equal(third.state.Y, second.state.Y)  # cooling had not touched the trunk


@pytest.mark.parametrize("call", [1, 57, 101, 160, 175, 180])
def test_an_interrupt_in_the_middle_of_an_iteration_loses_only_that_iteration(call):
    class Interrupted(AllPairs):
        calls = 0

        def at(self, Y, low, high):
            Interrupted.calls += 1
            if Interrupted.calls == call:
                raise KeyboardInterrupt
            return super().at(Y, low, high)

        def reordered(self, order):
            new = super().reordered(order)
            new.__class__ = Interrupted
            return new

    whole, broken = descent(), descent(Interrupted(P, 1.0))
    assert broken.run(180) is Stop.INTERRUPTED
    assert broken.end.iteration == call - 1
    assert broken.state.iteration == min(call - 1, 160)  # where cooling began
    assert broken.run(180) is Stop.MAX_ITER
    whole.run(180)
    assert np.array_equal(whole.end.positions(), broken.end.positions())
    assert np.array_equal(whole.state.positions(), broken.state.positions())


def test_a_callback_is_told_iteration_kl_and_time_left_and_can_stop_the_run():
    run, told = descent(), []

    def listen(report):
        told.append(report)
        return report.iteration == 60

    assert run.run(200, listen) is Stop.CALLBACK
    assert [report.iteration for report in told] == list(range(1, 61))
    assert {report.of for report in told} == {200}
    assert run.end.iteration == run.state.iteration == 60
    assert told[0].kl == np.inf  # before the first look
    assert 0 < told[-1].kl < np.inf
    assert all(report.seconds_left > 0 for report in told)


def test_a_callback_can_stop_the_cooling():
    run, whole = descent(), descent()
    assert run.run(200, lambda report: report.iteration == 190) is Stop.CALLBACK
    assert (run.state.iteration, run.end.iteration) == (180, 190)
    run.run(200)
    whole.run(200)
    assert np.array_equal(run.end.positions(), whole.end.positions())


def test_a_callback_is_told_how_long_the_run_will_be_once_a_rule_has_ended_it():
    told = []
    kls = [5, 4, 3, 2, 1, 1, 1, 1]
    run = descent(Scripted(swinging, kls))
    run.run(1000, lambda report: bool(told.append(report)))
    assert told[0].of == 30 + 100 + 70 + 20  # usually
    assert told[-1].iteration == told[-1].of == run.end.iteration
    assert told[-1].seconds_left == 0
    assert all(report.iteration <= report.of for report in told)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [0, 17, 39])
def test_a_run_that_leaves_the_numbers_is_an_error_with_a_way_out(dtype, at):
    """One number is enough: the next mesh would write beyond its end."""
    forces = Scripted(lambda Y: np.where(np.arange(40)[:, None] == at, np.nan, Y).astype(dtype), [])
    forces.dtype = dtype
    run = descent(forces)
    with pytest.raises(GnomonError, match=r"left the range of numbers\. Lower `learning_rate`"):
        run.run(5)


SWING = [-1.0]


def swinging(Y):
    SWING[0] = -SWING[0]
    return SWING[0] * np.ones_like(Y)


# slopes, KL at iterations 50, 100, 130, 140, …, schedule, why and when the trunk stops
EARLY = [9.0, 9.0]
RULES = [
    ("no gradient", np.zeros_like, [*EARLY, *range(40, 0, -1)], {}, Stop.SMALL_GRADIENT, 181),
    (
        "a small gradient",
        lambda Y: np.full_like(Y, 1e-4),
        [*EARLY, *range(40, 0, -1)],
        {"min_grad_norm": 1e-2},
        Stop.SMALL_GRADIENT,
        181,
    ),
    ("KL stays", swinging, [1.0] * 20, {}, Stop.CONVERGED, 180),
    (
        "KL falls by less than 2 % from the start",
        swinging,
        [*EARLY, *0.99 ** np.arange(20)],
        {},
        Stop.CONVERGED,
        180,
    ),
    (
        "KL falls by less than 2 % in the end",
        swinging,
        [*EARLY, *0.9 ** np.arange(8), *0.9**7 * 0.99 ** np.arange(1, 9)],
        {},
        Stop.CONVERGED,
        210,
    ),
    (
        "KL falls by 1 %, which is enough",
        swinging,
        [*EARLY, *0.99 ** np.arange(90)],
        {"tolerance": 0.002},
        Stop.MAX_ITER,
        880,
    ),
    ("KL rises once", swinging, [*EARLY, 1, 1, 1, 2, *[1.0] * 20], {}, Stop.CONVERGED, 210),
    ("KL rises", swinging, range(1, 90), {}, Stop.NO_PROGRESS, 430),
    (
        "KL rises, less patience",
        swinging,
        range(1, 90),
        {"n_iter_without_progress": 60},
        Stop.NO_PROGRESS,
        190,
    ),
    ("KL falls", swinging, [*EARLY, *range(100, 10, -1)], {"tolerance": 0.0}, Stop.MAX_ITER, 880),
]


@pytest.mark.parametrize(
    ("slopes", "kls", "options", "reason", "iteration"),
    [row[1:] for row in RULES],
    ids=[row[0] for row in RULES],
)
def test_the_run_ends_when_its_rule_says_so(slopes, kls, options, reason, iteration):
    """Never before momentum has built up, and then it cools."""
    run = descent(Scripted(slopes, kls), replace(SCHEDULE, **options))
    assert run.run(900) is reason
    assert run.state.iteration == iteration
    assert run.end.iteration == iteration + 20
    assert run.state.ended is (None if reason is Stop.MAX_ITER else reason)


def test_a_rule_ends_a_run_once():
    run = descent(Scripted(swinging, [1.0] * 90))
    assert run.run(900) is Stop.CONVERGED
    assert run.run(200) is Stop.CONVERGED  # nothing to do but to cool again
    assert (run.state.iteration, run.end.iteration) == (180, 200)
    assert run.run(300) is Stop.MAX_ITER
    assert (run.state.iteration, run.end.iteration) == (280, 300)


def test_the_watch_stops_the_points_where_kl_has_risen():
    """Each step adds 2e-3 to velocities; after the rise at iteration 150 they are that and no more.

    A rise of 2e-6 of itself, at 170, is rounding.
    """
    kls = [*EARLY, 1.0, 1.0, 1.0 + 3e-5, 1.0, 1.0 + 2e-6]
    run = descent(Scripted(np.ones_like, kls), replace(SCHEDULE, learning_rate=1e-3))
    while run.state.iteration < 150:
        run.step()
    assert run.state.velocity.max() < -0.02
    run.step()
    assert (run.state.lowered, run.state.rested) == (1, 150)
    np.testing.assert_allclose(run.state.velocity, -2e-3)
    run.step()
    np.testing.assert_allclose(run.state.velocity, -2e-3 * 1.98)  # momentum was 0.99
    while run.state.iteration < 171:
        run.step()
    assert (run.state.lowered, run.state.rested) == (1, 150)


@pytest.mark.parametrize("exaggeration", [0.5, 2.0])
def test_the_watch_looks_at_what_is_minimised(exaggeration):
    """With Z = 1 and no entropy that is the exaggeration times KL, which may rise or fall."""
    schedule = replace(SCHEDULE, exaggeration=exaggeration)
    run = descent(AllPairs(P, 1.0), schedule)
    run.run(190)
    state = run.state
    total = state.forces.at(state.Y, state.low, state.high)[-1]
    kl = state.forces.kl(state.Y, total)
    stretch = kl - state.forces.negative_entropy - np.log(total)
    objective = state.forces.negative_entropy + exaggeration * stretch + np.log(total)
    run.step()  # looks at 170
    assert run.state.iteration == 171
    assert run.state.objective == pytest.approx(objective, abs=1e-12)
    assert run.state.kl == pytest.approx(kl, abs=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(n_jobs):
    """With more points than one block of the update holds."""
    Y = rng.standard_normal((20_000, 2))

    def positions(jobs):
        run = descent(Scripted(lambda Y: np.sin(Y), []), Y=Y, n_jobs=jobs)
        run.run(3)
        return run.state.positions()

    assert np.array_equal(positions(1), positions(n_jobs))


EVEN = sp.csr_array((np.ones((40, 40)) - np.eye(40)) / (40 * 39))  # all attract each other alike


def test_a_map_drawn_together_is_enlarged_before_its_points_are_one(monkeypatch):
    """In float32 they would be in one place for good."""
    schedule = Schedule(mass=40.0, early_iter=10_000)
    forces_at = OverMesh.at

    def at(self, Y, low, high):
        np.testing.assert_array_equal((low, high), (Y.min(axis=0), Y.max(axis=0)))
        return forces_at(self, Y, low, high)

    monkeypatch.setattr(OverMesh, "at", at)  # a mesh is laid between these bounds
    run = descent(OverMesh(EVEN, 2, 1.0, 0.5), schedule)
    run.run(2000)
    assert len(np.unique(run.state.Y, axis=0)) == 40
    assert np.ptp(run.state.Y) > 0.1 * np.abs(run.state.Y).max()
    monkeypatch.setattr("gnomon.tsne.descent.SMALLEST", 0.0)
    lost = descent(OverMesh(EVEN, 2, 1.0, 0.5), schedule)
    lost.run(2000)
    # How many of them are equal to the last bit depends on the machine's rounding.
    assert np.ptp(lost.state.Y, axis=0).max() < 1e-5 * np.abs(lost.state.Y).max()


def test_a_start_of_hardly_any_size_is_enlarged_too():
    """By 1e39, which float32 does not have."""
    run = descent(OverMesh(P, 2, 1.0, 0.5), Y=start(size=1e-44))
    run.run(60)
    assert np.isfinite(run.state.Y).all()
    assert (run.state.high - run.state.low).max() > 1e-5


def test_an_enlarged_map_goes_on_as_the_small_one_would_have(monkeypatch):
    """In float64, which tells points apart at any size, both have one shape."""
    shapes = []
    for smallest in (1e-5, 0.0):
        monkeypatch.setattr("gnomon.tsne.descent.SMALLEST", smallest)
        run = descent(AllPairs(EVEN, 1.0))
        run.run(150)
        shapes.append(run.state.positions())
    large, small = (Y / np.abs(Y).max() for Y in shapes)
    assert np.abs(shapes[0]).max() > 100 * np.abs(shapes[1]).max()
    np.testing.assert_allclose(large, small, atol=1e-4)


def test_kl_falls_once_exaggeration_has_ended():
    run, told = descent(schedule=replace(SCHEDULE, tolerance=0.0)), {}
    run.run(500, lambda report: bool(told.update({report.iteration: report.kl})))
    looks = [told[i] for i in range(131, 480, 10)]
    assert looks[0] > looks[4] > looks[-1]
    rises = np.diff(looks) > 1e-5 * looks[-1]
    assert rises.sum() == run.state.lowered  # the watch has seen every one
    assert np.linalg.norm(gradient(run.end.forces, run.end.Y)[0]) < 1e-3
