"""The descent: positions that follow −∂KL/∂y, with momentum and a gain for every coordinate.

One iteration:

1. Attraction over the rows of P, repulsion from the mesh (or both over all pairs), and Z.
2. For every coordinate, with the gradient g of [Selitskii 2025], eq. (59), where attraction is
   multiplied by the exaggeration of the phase:

       gain ← gain + 0.2 where the velocity goes downhill already, × 0.8 elsewhere, at least 0.01
       v    ← 0.8 v − learning_rate · gain · g,      shortened to 5 where it is longer
       y    ← y + v

   in one pass, which also finds the bounds of the new map for the next mesh.

A phase of strong attraction (early exaggeration) comes first. The learning rate multiplies the
whole gradient, factor 4 included; "auto" is n / exaggeration in each phase.

Strong attraction can draw a map together, up to where float32 no longer tells its points
apart. A map that has become so small is moved to its mean and enlarged, velocities with it: at that
size forces grow with distances, so that it goes on as it would have, but for the rounding of a
mesh, which is largest there.

Points are renumbered along a space-filling curve now and then, so that neighbours in the map are
neighbours in memory (`State.order` undoes it). Nothing depends on how long the run will be, and
every iteration replaces the state in one assignment: a run that is interrupted, kept and continued
has the bits of one that was not.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnomon.blas import one_blas_thread
from gnomon.errors import GnomonError
from gnomon.kernels import kernel
from gnomon.parallel import map_blocks, row_blocks

Floats = NDArray[np.floating[Any]]
Floats64 = NDArray[np.float64]

EARLY_ITER = 250
MOMENTUM = 0.8
GAINS = (0.2, 0.8, 0.01)  # added downhill, multiplied otherwise, at least
LONGEST_STEP = 5.0
HUGE = 1e15  # of a step before it is shortened, so that its square exists
SMALLEST, SMALL = 1e-5, 1e-4  # a map smaller than the one is enlarged to the other
CHECK_EVERY = 50  # iterations between two looks at KL
STILL_KL = 1e-5  # of KL in CHECK_EVERY iterations: no progress
STILL_STEP = 1e-5  # of the map's size in one iteration: no movement
ROWS = 16_384
CURVE_BITS = 16  # of the space-filling curve, on each axis

__all__ = ["EARLY_ITER", "Descent", "Forces", "Report", "Schedule", "State", "Stop", "begin"]


class Stop(Enum):
    """The ways a descent can end; the values are what people read."""

    MAX_ITER = "reached max_iter"
    CONVERGED = "converged: neither KL nor the points move any more"
    NO_PROGRESS = "no progress of KL in n_iter_without_progress iterations"
    SMALL_GRADIENT = "gradient below min_grad_norm"
    INTERRUPTED = "interrupted"
    CALLBACK = "a callback asked to stop"


class Forces(Protocol):
    """What moves the points: implemented over a mesh and over all pairs (`forces.py`)."""

    dof: float
    dtype: Any

    def reordered(self, order: NDArray[np.intp]) -> "Forces":
        """The same forces for renumbered points."""

    def at(self, Y: Floats, low: Floats64, high: Floats64) -> tuple[Floats, Floats, float]:
        """Pull Σ p w (y_i − y_j), ∇φ, and Z."""

    def push(self, Y: Floats, low: Floats64, high: Floats64) -> tuple[Floats, float, Floats | None]:
        """∇φ, Z, and φ without the point itself, but for sums over all pairs: their Z is exact."""

    def kl(self, Y: Floats, total: float) -> float:
        """KL(P‖Q) for Z = `total`."""


@dataclass(frozen=True)
class Schedule:
    """Exaggeration and learning rate of every iteration, and when to stop.

    `mass` is n, or the sum of the weights.
    """

    mass: float
    early_exaggeration: float = 12.0
    exaggeration: float = 1.0
    learning_rate: float | None = None
    early_iter: int = EARLY_ITER
    n_iter_without_progress: int = 300
    min_grad_norm: float = 1e-7

    def factor(self, iteration: int) -> float:
        """How strong attraction is."""
        return self.early_exaggeration if iteration < self.early_iter else self.exaggeration

    def rate(self, iteration: int) -> float:
        """The learning rate."""
        automatic = self.mass / self.factor(iteration)
        return automatic if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True, eq=False)
class State:
    """All that the next iteration depends on, in the descent's own order of points."""

    iteration: int
    Y: Floats
    velocity: Floats
    gains: Floats
    order: NDArray[np.intp]  # the i-th point here is row order[i] of the data
    low: Floats64
    high: Floats64
    forces: Forces = field(repr=False)
    kl: float = np.inf  # at the last look
    best_kl: float = np.inf
    best_iteration: int = 0

    def positions(self) -> Floats:
        """In the order of the data, about their mean."""
        Y = np.empty_like(self.Y)
        Y[self.order] = self.Y - self.Y.mean(axis=0, dtype=np.float64).astype(self.Y.dtype)
        return Y


@dataclass(frozen=True)
class Report:
    """What a callback is told about an iteration."""

    iteration: int
    kl: float
    seconds_left: float


def begin(Y: Floats64, forces: Forces) -> State:
    """The state before the first iteration, from starting positions in the order of the data."""
    Y = np.ascontiguousarray(Y - Y.mean(axis=0), dtype=forces.dtype)
    return State(
        iteration=0,
        Y=Y,
        velocity=np.zeros_like(Y),
        gains=np.ones_like(Y),
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
        After the last whole iteration.
    """

    def __init__(self, state: State, schedule: Schedule, n_jobs: int | None = None) -> None:
        self.state, self.schedule, self.n_jobs = state, schedule, n_jobs
        self._given = state.Y  # kept by whoever gave it, to go back to if this run fails
        self._last: State | None = None  # its arrays are written over by the next iteration

    @one_blas_thread()
    def run(self, until: int, report: Callable[[Report], bool] | None = None) -> Stop:
        """Go on until iteration `until` in all, or until a rule, a callback or Ctrl-C stops it."""
        begun, first = time.perf_counter(), self.state.iteration
        try:
            while self.state.iteration < until:
                reason, enough = self.step(), False
                if report is not None:
                    done = self.state.iteration - first
                    each = (time.perf_counter() - begun) / done
                    left = 0.0 if reason else each * (until - self.state.iteration)
                    enough = report(Report(self.state.iteration, self.state.kl, left))
                if reason is not None or enough:
                    return reason or Stop.CALLBACK
        except KeyboardInterrupt:
            return Stop.INTERRUPTED
        return Stop.MAX_ITER

    def step(self) -> Stop | None:
        """One iteration; says why the run should end here, if it should."""
        now = self.state
        if _reorders_at(now.iteration):
            now = self.state = _reordered(now, self.n_jobs)
        if 0 < (now.high - now.low).max() < SMALLEST:
            now = self.state = _enlarged(now)
        pull, gradient, total = now.forces.at(now.Y, now.low, now.high)
        schedule, dof = self.schedule, now.forces.dof
        new_Y, new_velocity, new_gains = self._buffers(now)
        factors = np.array(
            [
                2 * (dof + 1) / dof * schedule.factor(now.iteration), 2 / total,
                schedule.rate(now.iteration), MOMENTUM, *GAINS, LONGEST_STEP, HUGE,
            ],
            now.Y.dtype,
        )  # fmt: skip
        blocks = row_blocks(len(now.Y), ROWS)
        sums = np.empty((len(blocks), 2 * now.Y.shape[1] + 2))

        Y, velocity, gains = (a.reshape(-1) for a in (now.Y, now.velocity, now.gains))
        pull, gradient = pull.reshape(-1), gradient.reshape(-1)
        to_Y, to_velocity, to_gains = (a.reshape(-1) for a in (new_Y, new_velocity, new_gains))

        def block(start: int, stop: int) -> None:
            _update(
                Y, velocity, gains, pull, gradient, factors, to_Y, to_velocity, to_gains,
                sums[start // ROWS], now.Y.shape[1], start, stop,
            )  # fmt: skip

        map_blocks(block, blocks, n_jobs=self.n_jobs)
        d = now.Y.shape[1]
        low, high = sums[:, :d].min(axis=0), sums[:, d : 2 * d].max(axis=0)
        sq_gradient, sq_step = sums[:, 2 * d :].sum(axis=0)
        if not np.isfinite(sq_step):
            raise GnomonError("The descent left the range of numbers. Lower `learning_rate`.")
        after = State(
            now.iteration + 1, new_Y, new_velocity, new_gains, now.order, low, high, now.forces,
            now.kl, now.best_kl, now.best_iteration,
        )  # fmt: skip
        reason = None
        if after.iteration % CHECK_EVERY == 0:
            after, reason = self._look(after, now, total, sq_gradient, sq_step)
        self._last, self.state = now, after
        return reason

    def _buffers(self, now: State) -> tuple[Floats, ...]:
        """Arrays that no state uses: those of the state before `now`."""
        last = self._last
        if last is None or last.Y is now.Y or last.Y is self._given:
            return tuple(np.empty_like(now.Y) for _ in range(3))
        return last.Y, last.velocity, last.gains

    def _look(
        self, after: State, now: State, total: float, sq_gradient: float, sq_step: float
    ) -> tuple[State, Stop | None]:
        """KL before this step, and whether anything still happens."""
        schedule = self.schedule
        kl = now.forces.kl(now.Y, total)
        size = float(np.linalg.norm(after.high - after.low))
        movement = np.sqrt(sq_step / len(after.Y)) / max(size, 1e-300)
        before = after.kl
        better = kl < after.best_kl * (1 - STILL_KL)
        after = replace(
            after, kl=kl,
            best_kl=kl if better else after.best_kl,
            best_iteration=after.iteration if better else after.best_iteration,
        )  # fmt: skip
        if after.iteration <= schedule.early_iter + CHECK_EVERY:
            return replace(after, best_kl=kl, best_iteration=after.iteration), None
        if np.sqrt(sq_gradient) <= schedule.min_grad_norm:
            return after, Stop.SMALL_GRADIENT
        if abs(before - kl) <= STILL_KL * abs(kl) and movement <= STILL_STEP:
            return after, Stop.CONVERGED
        if after.iteration - after.best_iteration >= schedule.n_iter_without_progress:
            return after, Stop.NO_PROGRESS
        return after, None


def _reorders_at(iteration: int) -> bool:
    return iteration in (0, 100, 250) or iteration % 500 == 0


def _reordered(state: State, n_jobs: int | None) -> State:
    """The same state with its points along a space-filling curve, about their mean."""
    order = _along_curve(state.Y, state.low, state.high, n_jobs)
    Y = state.Y[order]
    return replace(
        state, Y=Y, velocity=state.velocity[order], gains=state.gains[order],
        order=state.order[order], forces=state.forces.reordered(order),
    )  # fmt: skip


def _enlarged(state: State) -> State:
    """The same state about its mean, with an extent of `SMALL`."""
    factor = SMALL / (state.high - state.low).max()  # float64: there may be no such float32
    Y = ((state.Y - state.Y.mean(axis=0, dtype=np.float64)) * factor).astype(state.Y.dtype)
    velocity = (state.velocity * factor).astype(state.velocity.dtype)
    return replace(
        state, Y=Y, velocity=velocity, gains=state.gains.copy(),  # all three are written over later
        low=Y.min(axis=0).astype(np.float64), high=Y.max(axis=0).astype(np.float64),
    )  # fmt: skip


def _along_curve(Y: Floats, low: Floats64, high: Floats64, n_jobs: int | None) -> NDArray[np.intp]:
    codes = np.empty(len(Y), np.uint64)
    span = np.maximum(high - low, 1e-300)
    scale = (2**CURVE_BITS - 1) / span

    def block(start: int, stop: int) -> None:
        _interleave(Y, low, scale, codes, start, stop)

    map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=n_jobs)
    return np.argsort(codes, kind="stable")


@kernel
def _interleave(
    Y: Floats, low: Floats64, scale: Floats64, codes: Any, start: int, stop: int
) -> None:
    """Morton code: the bits of the coordinates, one of each axis in turn."""
    axes = Y.shape[1]
    for i in range(start, stop):
        code = np.uint64(0)
        for c in range(axes):
            place = np.uint64((Y[i, c] - low[c]) * scale[c])
            for bit in range(CURVE_BITS):
                on = (place >> np.uint64(bit)) & np.uint64(1)
                code |= on << np.uint64(bit * axes + c)
        codes[i] = code


@kernel
def _update(
    Y: Floats, velocity: Floats, gains: Floats, pull: Floats, gradient: Floats, factors: Floats,
    new_Y: Floats, new_velocity: Floats, new_gains: Floats, sums: Floats64,
    dimensions: int, start: int, stop: int,
) -> None:  # fmt: skip
    """Step 2 for some points of flat arrays; `sums` receives the bounds, Σ|g|² and Σ|v|².

    Coordinates first, as if there were no points: that loop has no branches and vectorises. Then
    points, whose steps are shortened, and the bounds an axis at a time. `factors` are those of
    pull, push, learning rate, momentum, and the five constants of gains and steps, in the type of
    the arrays: a float64 constant would make everything float64.
    """
    d, one = np.uint64(dimensions), np.uint64(1)
    first, last = np.uint64(start) * d, np.uint64(stop) * d
    pull_factor, push_factor, rate, momentum = factors[0], factors[1], factors[2], factors[3]
    more, less, least, longest, huge = factors[4], factors[5], factors[6], factors[7], factors[8]
    sq_gradient = 0.0
    for at in range(first, last):
        g = pull_factor * pull[at] + push_factor * gradient[at]
        v, gain = velocity[at], gains[at]
        downhill = ((g > 0) & (v <= 0)) | ((g < 0) & (v >= 0))
        gain = gain + more if downhill else max(gain * less, least)
        v = momentum * v - rate * gain * g
        new_gains[at], new_velocity[at] = gain, min(max(v, -huge), huge)
        sq_gradient += np.float64(g) * np.float64(g)
    sq_step = 0.0
    for point in range(first, last, d):
        sq_length = longest * 0
        for at in range(point, point + d):
            sq_length += new_velocity[at] * new_velocity[at]
        if sq_length > longest * longest:
            shorten = longest / np.sqrt(sq_length)
            for at in range(point, point + d):
                new_velocity[at] *= shorten
            sq_length = longest * longest
        sq_step += sq_length
        for at in range(point, point + d):
            new_Y[at] = Y[at] + new_velocity[at]
    for c in range(d):
        low = high = new_Y[first + c]
        for at in range(first + c, last, d):
            low, high = min(low, new_Y[at]), max(high, new_Y[at])
        sums[c], sums[d + c] = low, high
    sums[d + d], sums[d + d + one] = sq_gradient, sq_step
