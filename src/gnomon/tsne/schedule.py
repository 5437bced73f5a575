"""Exaggeration, momentum and step of every iteration, and where a run may end.

    30 iterations        exaggeration 12, momentum 0.8
    50 to 200            both change linearly ("annealing"): exaggeration to its last value,
                         momentum to 0.99
    until a rule fires   the last values
    20 iterations        momentum 0.9 ("cooling"), on a copy of the state: see `descent`

A point's step multiplies its gradient by

    r_i = min(1, 2α/(α+1)) · min(c / (ex · deg_i), 2M / ex),    deg_i = Σ_j p_ij w_ij

with c = 0.225 (1 + μ), μ the momentum, ex the exaggeration and M the number of points (or the sum
of their weights). log(1 + d²) is concave in d², so that attraction is at most that of springs
p_ij w_ij. Divided by their degrees those have eigenvalues up to 2, and c keeps the step below where
momentum would make them swing. Where neighbours stay apart (noise) the degree is tiny; the second
bound is for that.

A sudden end of exaggeration freezes the exaggerated map. Annealed, small tables end at the same KL
from every start. The figures are of ``benchmarks/tsne_sets.py`` and of the notes of decision 0023.

A user's own schedule of exaggeration or momentum (`Stages`) takes the place of the first two lines,
for one or for both. The watch, the rules that end a run and cooling begin with the last stage of
both: before it a fall of KL says nothing about the end.

Nothing here depends on how long a run will be, so that a run that is continued is one long run.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gnomon.errors import refuse
from gnomon.inputs import check_integer, check_real
from gnomon.typing import Floats64

# Time against KL, over the tables of `benchmarks/tsne_sets.py` (decision 0023).
EARLY_ITER = 30
ANNEAL_ITER = ((1_500, 200), (10_000, 100), (float("inf"), 50))  # up to so many rows, so long
EARLY_MOMENTUM, LEAST_MOMENTUM = 0.8, 0.8  # the second is what the watch goes down to
LOSS = (0.01, 0.05)  # 1 − μ at the end: least and most
COOLING_ITER, COOLING_MOMENTUM = 20, 0.9
STEP = 0.225  # c / (1 + μ)
LARGEST_STEP = 2.0  # of M / ex
LOOK_EVERY, EARLY_LOOK_EVERY = 10, 50  # iterations between two looks at KL
SETTLING_ITER = 50  # from rest, before a rule may end the run: momentum needs them to build up
MOST_LOWERED = 10  # times that momentum is lowered
ASKED_ITER = 10_000  # iterations for which a function is called
FROM_MAP = 0.1  # of the usual tolerance, for a map that continues another

__all__ = [
    "COOLING_ITER",
    "MOST_LOWERED",
    "QUALITIES",
    "Schedule",
    "make_schedule",
    "parse_stages",
    "usual_iterations",
]


@dataclass(frozen=True)
class Quality:
    """How long a run is.

    Attributes
    ----------
    annealing : float
        Times the usual number of iterations.
    tolerance : float
        The run ends where KL falls by less than this share of itself between two looks.
    usual_iter : int
        What that comes to on most tables: iterations between annealing and cooling.
    """

    annealing: float
    tolerance: float
    usual_iter: int


# Time against KL, over the tables of `benchmarks/tsne_sets.py`.
QUALITIES = {
    "fast": Quality(0.5, 0.05, 50),
    "balanced": Quality(1.0, 0.02, 70),
    "best": Quality(2.0, 0.002, 150),
}


@dataclass(frozen=True)
class Schedule:
    """Exaggeration, momentum and step of every iteration, and when to stop.

    Attributes
    ----------
    mass : float
        n, or the sum of the weights.
    early_exaggeration, exaggeration : float
        Factor of attraction in the beginning and in the end.
    learning_rate : float or None
        Largest step of a point, in place of 2M / ex.
    early_iter, anneal_iter : int
        Iterations at the first exaggeration, and from there to the last one.
    momentum : float
        After that.
    tolerance, usual_iter
        See `Quality`.
    n_iter_without_progress : int
    min_grad_norm : float
    exaggeration_stages, momentum_stages : array (stages, 2) or None
        The user's own: first iteration of each stage, and the value there. `exaggeration` and
        `momentum` are those of the last.
    """

    mass: float
    early_exaggeration: float = 12.0
    exaggeration: float = 1.0
    learning_rate: float | None = None
    early_iter: int = EARLY_ITER
    anneal_iter: int = 100
    momentum: float = 1 - LOSS[0]
    tolerance: float = QUALITIES["balanced"].tolerance
    usual_iter: int = QUALITIES["balanced"].usual_iter
    n_iter_without_progress: int = 300
    min_grad_norm: float = 1e-7
    exaggeration_stages: Floats64 | None = field(default=None, repr=False, compare=False)
    momentum_stages: Floats64 | None = field(default=None, repr=False, compare=False)

    @property
    def annealed(self) -> int:
        """The first iteration with the last exaggeration and the last momentum."""
        usual = self.early_iter + self.anneal_iter
        given = (self.exaggeration_stages, self.momentum_stages)
        return max(usual if stages is None else int(stages[-1, 0]) for stages in given)

    def factor(self, iteration: int) -> float:
        """How strong attraction is."""
        if self.exaggeration_stages is not None:
            return _value_at(self.exaggeration_stages, iteration)
        return self._between(self.early_exaggeration, self.exaggeration, iteration)

    def momentum_at(self, iteration: int, lowered: int, *, cooling: bool = False) -> float:
        """Share of the velocity that is kept.

        Each time that the watch has lowered it, velocities last half as long.
        """
        if self.momentum_stages is not None:
            momentum = _value_at(self.momentum_stages, iteration)
        else:
            momentum = self._between(EARLY_MOMENTUM, self.momentum, iteration)
        if lowered:
            momentum = min(momentum, max(LEAST_MOMENTUM, 1 - self._loss(lowered)))
        return min(momentum, COOLING_MOMENTUM) if cooling else momentum

    def largest_step(self, iteration: int, dof: float) -> float:
        """What no point's gradient is multiplied by more than."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _sharpness(dof) * LARGEST_STEP * self.mass / self.factor(iteration)

    def step_of_degree(self, iteration: int, dof: float, momentum: float, lowered: int) -> float:
        """What the gradient of a point of degree 1 is multiplied by.

        Where momentum is as low as it gets, the watch halves this instead.
        """
        longest_lasting = max(1 - LEAST_MOMENTUM, 1 - self.momentum)
        shorter = min(1.0, longest_lasting / self._loss(lowered))
        return shorter * _sharpness(dof) * STEP * (1 + momentum) / self.factor(iteration)

    def objective(self, kl: float, negative_entropy: float, total: float) -> float:
        """What is minimised in the end, Σ p log p + ex · Σ p log 1/K + log Z, for Z = `total`."""
        stretch = kl - negative_entropy - math.log(total)
        return kl + (self.exaggeration - 1) * stretch

    def looks_at(self, iteration: int) -> bool:
        """Whether KL is looked at before this iteration."""
        if iteration < self.annealed:
            return iteration > 0 and iteration % EARLY_LOOK_EVERY == 0
        return (iteration - self.annealed) % LOOK_EVERY == 0

    def may_end(self, iteration: int, rested: int) -> bool:
        """Whether little progress means something, if the points were at rest at `rested`."""
        return iteration - max(rested, self.annealed) >= SETTLING_ITER

    def cools_from(self, until: int) -> int:
        """Where a run of `until` iterations in all begins to cool: never before it is annealed."""
        return max(until - COOLING_ITER, min(until, self.annealed))

    def expected(self, iteration: int, until: int) -> int:
        """How many iterations a run that is at `iteration` will have in all, as far as known."""
        usual = self.annealed + self.usual_iter
        return min(until, max(usual, iteration) + COOLING_ITER)

    def _loss(self, lowered: int) -> float:
        """1 − μ, as if there were no least momentum."""
        return float(2**lowered * max(1 - self.momentum, 1e-12))

    def _between(self, first: float, last: float, iteration: int) -> float:
        if iteration >= self.early_iter + self.anneal_iter:
            return last
        share = max(0, iteration - self.early_iter) / max(1, self.anneal_iter)
        return first + (last - first) * share


def make_schedule(
    n: int,
    mass: float,
    *,
    dof: float,
    exaggeration: float,
    quality: str,
    from_map: bool = False,
    exaggeration_stages: Floats64 | None = None,
    momentum_stages: Floats64 | None = None,
    **options: float | None,
) -> Schedule:
    """The schedule for a table of `n` rows.

    Narrow tails of the kernel (dof above 1), or a last exaggeration above 1, make a small map,
    which strong momentum would let swing. A map that continues a former one (`from_map`) has no
    exaggerated phase; it begins near its end, so that momentum and tolerance are smaller.
    """
    wanted = QUALITIES[quality]
    loss = min(max(LOSS[0] * (dof * exaggeration) ** 2, LOSS[0]), LOSS[1])
    anneal_iter = next(length for most, length in ANNEAL_ITER if n < most)
    schedule = Schedule(
        mass=mass,
        exaggeration=exaggeration,
        anneal_iter=int(wanted.annealing * anneal_iter),
        momentum=1 - loss,
        tolerance=wanted.tolerance,
        usual_iter=wanted.usual_iter,
        **options,  # type: ignore[arg-type]
    )
    if from_map:
        schedule = replace(
            schedule,
            early_iter=0,
            anneal_iter=0,
            momentum=1 - LOSS[1],
            tolerance=FROM_MAP * wanted.tolerance,
            usual_iter=2 * wanted.usual_iter,
        )
    if momentum_stages is not None:
        schedule = replace(schedule, momentum=float(momentum_stages[-1, 1]))
    return replace(
        schedule, exaggeration_stages=exaggeration_stages, momentum_stages=momentum_stages
    )


def parse_stages(
    name: str, value: float | Sequence[Any] | Callable[[int], float], low: float, high: float
) -> Floats64:
    """First iteration and value of each stage, shape (stages, 2), from what a user gives.

    Parameters
    ----------
    value : number, list of (n_iter, value), or function of the iteration
        The last value of a list holds to the end of the run. A function is called once for each of
        the first 10,000 iterations, from 0 on, and what it says of the last holds from there.
    """
    if callable(value):
        values = [check_real(f"{name}({i})", value(i), low, high) for i in range(ASKED_ITER)]
        changes = [i for i in range(ASKED_ITER) if i == 0 or values[i] != values[i - 1]]
        return np.array([[i, values[i]] for i in changes], np.float64)
    if not isinstance(value, (list, tuple, np.ndarray)):
        return np.array([[0.0, check_real(name, value, low, high)]])
    found, start = [], 0
    for at, stage in enumerate(value):
        if not isinstance(stage, (list, tuple, np.ndarray)) or len(stage) != 2:
            refuse(f"{name}[{at}]", "be a pair (n_iter, value)", stage)
        found.append([float(start), check_real(f"{name}[{at}][1]", stage[1], low, high)])
        start += check_integer(f"{name}[{at}][0]", stage[0], 1)
    if not found:
        refuse(name, "have at least one stage (n_iter, value)", value)
    return np.array(found, np.float64)


def _value_at(stages: Floats64, iteration: int) -> float:
    return float(stages[np.searchsorted(stages[:, 0], iteration, side="right") - 1, 1])


def usual_iterations(n: int) -> int:
    """How many iterations a map of `n` rows usually takes, cooling included."""
    schedule = make_schedule(n, n, dof=1.0, exaggeration=1.0, quality="balanced")
    return schedule.annealed + schedule.usual_iter + COOLING_ITER


def _sharpness(dof: float) -> float:
    """Heavy tails (α < 1) need shorter steps."""
    return min(1.0, 2 * dof / (dof + 1))
