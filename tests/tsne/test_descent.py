from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tsne.problems import ROWS, affinities, gradient

from gnomon.errors import GnomonError
from gnomon.tsne.descent import Descent, Schedule, Stop, begin
from gnomon.tsne.forces import AllPairs, OverMesh

rng = np.random.default_rng(0)
P = affinities("gaussian", ROWS)
SCHEDULE = Schedule(mass=40.0)


def start(dimensions=2, size=1e-4):
    return np.random.default_rng(3).standard_normal((40, dimensions)) * size


def descent(forces=None, schedule=SCHEDULE, Y=None, n_jobs=None):
    forces = AllPairs(P, 1.0) if forces is None else forces
    return Descent(begin(start() if Y is None else Y, forces), schedule, n_jobs)


class Scripted:
    """Forces that push every point with `slopes(Y)` and whose KL is read from a list."""

    dof, dtype = 1.0, np.float64

    def __init__(self, slopes, kls):
        self.slopes, self.kls = slopes, iter(kls)

    def reordered(self, order):
        return self

    def at(self, Y, low, high):
        return np.zeros_like(Y), self.slopes(Y), 1.0

    def kl(self, Y, total):
        return next(self.kls)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0])
def test_two_steps_are_those_of_the_formula(dimensions, dof):
    forces = AllPairs(P, dof)
    Y = start(dimensions, 1.0)
    Y -= Y.mean(axis=0)
    run = descent(forces, Schedule(mass=40.0, early_exaggeration=3.0), Y)
    velocity, gains = np.zeros_like(Y), np.ones_like(Y)
    for _ in range(2):
        run.step()
        pull, slope, total = forces.at(Y, Y.min(axis=0), Y.max(axis=0))
        g = 3.0 * 2 * (dof + 1) / dof * pull + 2 / total * slope
        downhill = ((g > 0) & (velocity <= 0)) | ((g < 0) & (velocity >= 0))
        gains = np.where(downhill, gains + 0.2, np.maximum(0.8 * gains, 0.01))
        velocity = 0.8 * velocity - 40.0 / 3.0 * gains * g
        length = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity *= np.minimum(1, 5 / np.maximum(length, 1e-300))
        Y = Y + velocity
    # sums over renumbered points, in another order
    np.testing.assert_allclose(run.state.positions(), Y - Y.mean(axis=0), atol=1e-12)


def test_exaggeration_and_learning_rate_follow_the_phase():
    schedule = Schedule(mass=600.0, early_exaggeration=12.0, exaggeration=2.0)
    assert [schedule.factor(i) for i in (0, 249, 250)] == [12.0, 12.0, 2.0]
    assert [schedule.rate(i) for i in (0, 249, 250)] == [50.0, 50.0, 300.0]
    assert replace(schedule, learning_rate=7.0).rate(0) == 7.0


def test_a_step_is_never_longer_than_five():
    run = descent(Scripted(lambda Y: 1e6 * np.ones_like(Y), []))
    before = run.state.positions()[run.state.order]
    run.step()
    length = np.linalg.norm(run.state.velocity, axis=1)
    np.testing.assert_allclose(length, 5)
    assert before.shape == run.state.Y.shape


def test_gains_do_not_fall_below_a_hundredth():
    """A velocity that goes uphill is braked, but not for ever."""
    state = begin(start(), Scripted(lambda Y: np.full_like(Y, 1e-9), []))
    uphill = replace(state, velocity=np.ones((40, 2)), gains=np.full((40, 2), 0.02))
    run = Descent(uphill, SCHEDULE)
    gains = []
    for _ in range(5):
        run.step()
        gains.append(run.state.gains.max())
    np.testing.assert_allclose(gains, [0.016, 0.0128, 0.01024, 0.01, 0.01])


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


@pytest.mark.parametrize("make", [lambda: AllPairs(P, 1.0), lambda: OverMesh(P, 2, 1.0, 0.5)])
def test_a_run_in_parts_has_the_bits_of_a_whole_one(make):
    whole, parts = descent(make()), descent(make())
    assert whole.run(320) is Stop.MAX_ITER
    for until in (1, 99, 100, 101, 250, 320):
        assert parts.run(until) is Stop.MAX_ITER
    assert np.array_equal(whole.state.positions(), parts.state.positions())
    assert whole.state.kl == parts.state.kl
    assert whole.state.best_iteration == parts.state.best_iteration


@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_the_state_given_is_never_written_over(size):
    """Whoever gave it goes back to it when a run fails; one that is enlarged first, too."""
    first = descent()
    first.run(120)
    bounds = {"low": size * first.state.low, "high": size * first.state.high}
    given = replace(first.state, Y=size * first.state.Y, **bounds)
    copies = [array.copy() for array in (given.Y, given.velocity, given.gains)]
    second = Descent(given, SCHEDULE)
    second.run(150)
    for array, copy in zip((given.Y, given.velocity, given.gains), copies, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.parametrize("call", [1, 57, 101])
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
    assert broken.run(130) is Stop.INTERRUPTED
    assert broken.state.iteration == call - 1
    assert broken.run(130) is Stop.MAX_ITER
    whole.run(130)
    assert np.array_equal(whole.state.positions(), broken.state.positions())


def test_a_callback_is_told_iteration_kl_and_time_left_and_can_stop_the_run():
    run, told = descent(), []

    def listen(report):
        told.append(report)
        return report.iteration == 60

    assert run.run(200, listen) is Stop.CALLBACK
    assert [report.iteration for report in told] == list(range(1, 61))
    assert run.state.iteration == 60
    assert told[0].kl == np.inf  # before the first look
    assert 0 < told[-1].kl < np.inf
    assert all(report.seconds_left > 0 for report in told)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [0, 17, 39])
def test_a_run_that_leaves_the_numbers_is_an_error_with_a_way_out(dtype, at):
    """One number is enough: the next mesh would write beyond its end."""
    forces = Scripted(lambda Y: np.where(np.arange(40)[:, None] == at, np.nan, Y).astype(dtype), [])
    forces.dtype = dtype
    run = descent(forces)
    with pytest.raises(GnomonError, match=r"left the range of numbers\. Lower `learning_rate`"):
        run.run(5)


# slopes, what KL is at each look, schedule, why and when it stops
SWING = [-1.0]


def swinging(Y):
    SWING[0] = -SWING[0]
    return SWING[0] * np.ones_like(Y)


RULES = [
    ("no gradient", np.zeros_like, [1.0] * 9, {}, Stop.SMALL_GRADIENT, 350),
    ("a small gradient", lambda Y: np.full_like(Y, 1e-4), [1.0] * 9, {"min_grad_norm": 1e-2},
     Stop.SMALL_GRADIENT, 350),
    ("nothing moves", lambda Y: 1e-9 * Y, [1.0] * 9, {"min_grad_norm": 0.0}, Stop.CONVERGED, 350),
    ("KL falls and then stays", lambda Y: 1e-9 * Y, [9, 8, 7, 6, 5, 4, 3, 2, 2, 2],
     {"min_grad_norm": 0.0}, Stop.CONVERGED, 450),
    ("KL stays and points move", swinging, [1.0] * 20, {}, Stop.NO_PROGRESS, 600),
    ("KL rises", swinging, range(1, 20), {}, Stop.NO_PROGRESS, 600),
    ("KL rises, less patience", swinging, range(1, 20), {"n_iter_without_progress": 60},
     Stop.NO_PROGRESS, 400),
    ("KL falls", swinging, range(40, 0, -1), {}, Stop.MAX_ITER, 900),
]  # fmt: skip


@pytest.mark.parametrize(("slopes", "kls", "options", "reason", "iteration"),
                         [row[1:] for row in RULES], ids=[row[0] for row in RULES])  # fmt: skip
def test_the_run_ends_when_its_rule_says_so(slopes, kls, options, reason, iteration):
    """Never before the second look after the early phase, whose KL means nothing."""
    run = descent(Scripted(slopes, kls), replace(SCHEDULE, **options))
    assert run.run(900) is reason
    assert run.state.iteration == iteration


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
    monkeypatch.setattr("gnomon.tsne.descent.SMALLEST", 0.0)
    lost = descent(OverMesh(EVEN, 2, 1.0, 0.5), schedule)
    lost.run(2000)
    assert len(np.unique(lost.state.Y, axis=0)) == 1


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


def test_kl_falls_after_the_early_phase():
    run, told = descent(), {}
    run.run(500, lambda report: bool(told.update({report.iteration: report.kl})))
    assert told[500] < told[350] < told[300]
    assert np.linalg.norm(gradient(run.state.forces, run.state.Y)[0]) < 1e-2
