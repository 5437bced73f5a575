"""The descent: positions that follow −∂KL/∂y, with strong momentum and a step for every point.

One iteration:

1. Attraction over the rows of P, repulsion from the mesh (or both over all pairs), and Z.
2. Velocities and positions (`update`), with the exaggeration, momentum and steps of `schedule`.

**The watch.** Once exaggeration has its last value, KL is looked at every 10 iterations, with the Z
at hand. Where it has risen since the last look, all velocities become 0 and momentum is lowered.
(With a last exaggeration other than 1 the descent does not minimise KL; what it does minimise,
Σ p log p + ex · Σ p log 1/K + log Z, is what is watched.)

**The branch.** Momentum as strong as that leaves points swinging, which 20 iterations of less
momentum end: "cooling". They run on a copy of the state, the branch, which is the map; the state
that is kept, the trunk, goes on from before them. So a run of M iterations that is continued for E
has the bits of one of M + E. The trunk follows rough forces, and the branch refined ones in its
last 8 iterations: with 20 of them KL ends 0.02 % lower (decision 0025). KL is looked at on the
trunk only, so that no two looks are about different P.

Strong attraction can draw a map together, up to where float32 no longer tells its points
apart. A map that has become so small is moved to its mean and enlarged, velocities with it: at that
size forces grow with distances, so that it goes on as it would have, but for the rounding of a
mesh, which is largest there.

Points are renumbered along a space-filling curve now and then (`State.order` undoes it). Nothing
depends on how long the run will be, and every iteration replaces the state in one assignment: a run
that is interrupted, kept and continued has the bits of one that was not.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.errors import GnomonError
from gnomon.tsne.curve import along_curve
from gnomon.tsne.schedule import COOLING_ITER, MOST_LOWERED, Schedule
from gnomon.tsne.update import Factors, update
from gnomon.typing import Floats, Floats64

SMALLEST, SMALL = 1e-5, 1e-4  # a map smaller than the one is enlarged to the other
STILL = 1e-5  # of KL: less than this is no change
REFINED_ITER = 8  # the last iterations of the branch, under refined forces
REORDERED = (0, 30, 100, 250)  # iterations before which points are renumbered; then every 500

__all__ = ["Descent", "DescentReport", "Forces", "State", "Stop", "begin"]


class Stop(Enum):
    """The ways a descent can end; the values are what people read."""

    MAX_ITER = "reached max_iter"
    CONVERGED = "converged: KL hardly falls any more"
    NO_PROGRESS = "no progress of KL in n_iter_without_progress iterations"
    SMALL_GRADIENT = "gradient below min_grad_norm"
    INTERRUPTED = "interrupted"
    CALLBACK = "a callback asked to stop"


class Forces(Protocol):
    """What moves the points: implemented over a mesh and over all pairs (`forces.py`)."""

    dof: float
    dtype: Any

    @property
    def negative_entropy(self) -> float:
        """Σ p log p."""

    def reordered(self, order: NDArray[np.intp]) -> "Forces":
        """Forces for renumbered points."""

    def apart(self) -> "Forces":
        """Forces for a branch, whose moves leave these as they are."""

    def refined(self, order: NDArray[np.intp]) -> "Forces":
        """The forces of the last iterations, for points in this order of the data."""

    def mesh_cells(self) -> dict[float, tuple[int, ...]]:
        """Sizes of the meshes, if there are any, by their spacing."""

    def at(self, Y: Floats, low: Floats64, high: Floats64) -> tuple[Floats, Floats, Floats, float]:
        """Pull Σ p w (y_i − y_j), degree Σ p w, ∇φ, and Z."""

    def push(self, Y: Floats, low: Floats64, high: Floats64) -> tuple[Floats, float, Floats | None]:
        """∇φ, Z, and φ without the point itself, but for sums over all pairs: their Z is exact."""

    def kl(self, Y: Floats, total: float) -> float:
        """KL(P‖Q) for Z = `total`."""


@dataclass(frozen=True, eq=False)
class State:
    """All that the next iteration depends on, in the descent's own order of points.

    Attributes
    ----------
    iteration : int
        Iterations done.
    Y, velocity : array (n, dimensions)
    order : array (n,)
        The i-th point here is row order[i] of the data.
    low, high : array (dimensions,)
        Bounds of the map.
    lowered, rested : int
        How often the watch has lowered the momentum, and the iteration of the last time.
    kl, objective : float
        At the last look; they are the same where the last exaggeration is 1.
    best_objective : float
        The least of any look, at `best_iteration`.
    ended : Stop or None
        The rule that has ended the run. None does so twice: a run that is continued goes on.
    """

    iteration: int
    Y: Floats
    velocity: Floats
    order: NDArray[np.intp]
    low: Floats64
    high: Floats64
    forces: Forces = field(repr=False)
    lowered: int = 0
    rested: int = 0
    kl: float = np.inf
    objective: float = np.inf
    best_objective: float = np.inf
    best_iteration: int = 0
    ended: Stop | None = None

    def positions(self) -> Floats:
        """In the order of the data, about their mean."""
        Y = np.empty_like(self.Y)
        Y[self.order] = self.Y - self.Y.mean(axis=0, dtype=np.float64).astype(self.Y.dtype)
        return Y


@dataclass(frozen=True)
class DescentReport:
    """An iteration, for callbacks.

    `of` is how many there will be, as far as that is known: a rule may end the run before or after.
    `kl` is that of the last look, over the P in use: on large tables not the whole one.
    `positions()` gathers the map, in the order of the data, until the next iteration begins.
    """

    iteration: int
    of: int
    kl: float
    seconds_left: float
    positions: Callable[[], Floats]


def begin(Y: Floats64, forces: Forces) -> State:
    """The state before the first iteration, from starting positions in the order of the data."""
    Y = np.ascontiguousarray(Y - Y.mean(axis=0), dtype=forces.dtype)
    return State(
        iteration=0,
        Y=Y,
        velocity=np.zeros_like(Y),
        order=np.arange(len(Y)),
        low=Y.min(axis=0).astype(np.float64),
        high=Y.max(axis=0).astype(np.float64),
        forces=forces,
    )


class Descent:
    """A run that can be continued.

    Attributes
    ----------
    state : State
        The trunk, after its last whole iteration.
    end : State
        The map: the cooled branch, or the trunk where the run was too short for one or was stopped
        before.
    """

    def __init__(
        self, state: State, schedule: Schedule, n_jobs: int | None = None, *, cooling: bool = False
    ) -> None:
        self.state, self.schedule, self.n_jobs, self.cooling = state, schedule, n_jobs, cooling
        self._given = state.Y  # kept by the caller, to return to if this run fails
        self._last: State | None = None  # its arrays are written over by the next iteration
        self._branch: Descent | None = None

    @property
    def end(self) -> State:
        """See the class."""
        return self.state if self._branch is None else self._branch.state

    @one_blas_thread()
    def run(self, until: int, report: Callable[[DescentReport], bool] | None = None) -> Stop:
        """Go on until iteration `until` in all, or until a rule, a callback or Ctrl-C stops it."""
        self._branch = None
        first = self.state.iteration
        cools, tell = max(first, self.schedule.cools_from(until)), _Clock(first, report).tell
        try:
            reason = self._advance(cools, until, tell) if first < cools else self.state.ended
            if reason is Stop.CALLBACK:
                return reason
            until = min(until, self.state.iteration + COOLING_ITER)
            if self.state.iteration < until:
                copy = replace(self.state, forces=self.state.forces.apart())
                self._branch = Descent(copy, self.schedule, self.n_jobs, cooling=True)
                reason = self._branch._cool(until, tell) or reason
        except KeyboardInterrupt:
            return Stop.INTERRUPTED
        return reason or Stop.MAX_ITER

    def _cool(self, until: int, tell: Callable[[State, int], bool]) -> Stop | None:
        """Go on to iteration `until`, the last few under refined forces; why it ended before."""
        reason = self._advance(until - REFINED_ITER, until, tell)
        if reason is not None:
            return reason
        forces = self.state.forces.refined(self.state.order)
        self.state = replace(self.state, forces=forces)
        return self._advance(until, until, tell)

    def _advance(self, last: int, until: int, tell: Callable[[State, int], bool]) -> Stop | None:
        """Go on to iteration `last` of `until`; why it ended before that, if it did."""
        while (before := self.state.iteration) < last:
            reason, state = self.step(), self.state
            known = self.cooling or state.ended is not None
            of = until if known else self.schedule.expected(state.iteration, until)
            if state.iteration > before and tell(state, of):
                return Stop.CALLBACK
            if reason is not None:
                return reason
        return None

    def step(self) -> Stop | None:
        """One iteration, or none where a rule ends the run before it; then says which."""
        now, schedule = self.state, self.schedule
        if _reorders_at(now.iteration):
            now = self.state = _reordered(now, self.n_jobs)
        if 0 < (now.high - now.low).max() < SMALLEST:
            now = self.state = _enlarged(now)
        pull, degree, gradient, total = now.forces.at(now.Y, now.low, now.high)
        looks = not self.cooling and schedule.looks_at(now.iteration)
        if looks:
            now, reason = self._look(now, total)
            if reason is not None:
                self.state = replace(now, ended=reason)
                return reason
        dof, iteration = now.forces.dof, now.iteration
        momentum = schedule.momentum_at(iteration, now.lowered, cooling=self.cooling)
        factors = Factors(
            pull=2 * (dof + 1) / dof * schedule.factor(iteration),
            push=2 / total,
            step_of_degree=schedule.step_of_degree(iteration, dof, momentum, now.lowered),
            largest_step=schedule.largest_step(iteration, dof),
            momentum=momentum,
        )
        to = self._buffers(now)
        at, forces = (now.Y, now.velocity), (pull, degree, gradient)
        moved = update(at, forces, factors, to, self.n_jobs)
        if not math.isfinite(moved.sq_step):
            raise GnomonError("The descent left the range of numbers. Lower `learning_rate`.")
        small = math.sqrt(moved.sq_gradient) <= schedule.min_grad_norm
        ends = looks and small and now.ended is None and schedule.may_end(iteration, 0)
        self._last, self.state = (
            now,
            replace(
                now,
                iteration=iteration + 1,
                Y=to[0],
                velocity=to[1],
                low=moved.low,
                high=moved.high,
                ended=Stop.SMALL_GRADIENT if ends else now.ended,
            ),
        )
        return Stop.SMALL_GRADIENT if ends else None

    def _buffers(self, now: State) -> tuple[Floats, Floats]:
        """Arrays that no state uses: those of the state before `now`."""
        last = self._last
        if last is None or last.Y is now.Y or last.Y is self._given:
            return np.empty_like(now.Y), np.empty_like(now.Y)
        return last.Y, last.velocity

    def _look(self, now: State, total: float) -> tuple[State, Stop | None]:
        """KL before this step, the watch, and whether a rule ends the run."""
        schedule, forces = self.schedule, now.forces
        kl = forces.kl(now.Y, total)
        if now.iteration < schedule.annealed:
            return replace(now, kl=kl), None
        objective = schedule.objective(kl, forces.negative_entropy, total)
        fallen = now.objective - objective  # infinite at the first look
        now = replace(now, kl=kl, objective=objective)
        if objective < now.best_objective - STILL * abs(kl):
            now = replace(now, best_objective=objective, best_iteration=now.iteration)
        if fallen < -STILL * abs(kl):
            lowered = min(now.lowered + 1, MOST_LOWERED)
            rest = np.zeros_like(now.velocity)
            now = replace(now, velocity=rest, lowered=lowered, rested=now.iteration)
        if now.ended is not None:
            return now, None
        if now.iteration - now.best_iteration >= schedule.n_iter_without_progress:
            return now, Stop.NO_PROGRESS
        slow = fallen <= schedule.tolerance * abs(kl)
        if slow and schedule.may_end(now.iteration, now.rested):
            return now, Stop.CONVERGED
        return now, None


class _Clock:
    """Tells a callback how far the run is, and how long it will take."""

    def __init__(self, first: int, report: Callable[[DescentReport], bool] | None) -> None:
        self.begun, self.first, self.report = time.perf_counter(), first, report

    def tell(self, state: State, of: int) -> bool:
        """Report an iteration; True when the callback asks to stop."""
        if self.report is None:
            return False
        each = (time.perf_counter() - self.begun) / (state.iteration - self.first)
        left = each * (of - state.iteration)
        return self.report(DescentReport(state.iteration, of, state.kl, left, state.positions))


def _reorders_at(iteration: int) -> bool:
    return iteration in REORDERED or iteration % 500 == 0


def _reordered(state: State, n_jobs: int | None) -> State:
    """Order the points of a state along a space-filling curve."""
    order = along_curve(state.Y, state.low, state.high, n_jobs)
    return replace(
        state,
        Y=state.Y[order],
        velocity=state.velocity[order],
        order=state.order[order],
        forces=state.forces.reordered(order),
    )


def _enlarged(state: State) -> State:
    """Centre a state and scale it to an extent of `SMALL`."""
    factor = SMALL / (state.high - state.low).max()  # float64: there may be no such float32
    Y = ((state.Y - state.Y.mean(axis=0, dtype=np.float64)) * factor).astype(state.Y.dtype)
    velocity = (state.velocity * factor).astype(state.velocity.dtype)
    return replace(
        state,
        Y=Y,
        velocity=velocity,  # both are written over later
        low=Y.min(axis=0).astype(np.float64),
        high=Y.max(axis=0).astype(np.float64),
    )
