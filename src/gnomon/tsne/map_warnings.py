"""What the reader of a map should know, said once, as a warning."""

import math

import numpy as np

from gnomon.errors import NotConvergedWarning, Parameter, warn_caller
from gnomon.tsne.descent import State
from gnomon.tsne.schedule import Schedule

RISEN, LEAST_RISE = 0.01, 1e-4  # of KL, above its best look; float32 shows no less

__all__ = ["warn_if_risen"]


def warn_if_risen(schedule: Schedule, trunk: State, state: State) -> None:
    """Warn of a run that ends in `state`, more than 1 % above the best look at its trunk.

    As looks do, it takes the forces of the trunk, Z as those compute it, and the map before it is
    laid over another: KL over the whole P is not to be compared with KL over its largest entries.
    """
    if not math.isfinite(best := state.best_objective):
        return
    forces, Y = trunk.forces, state.Y
    if state.order is not trunk.order:  # renumbered while it cooled
        Y = np.empty_like(state.Y)
        Y[state.order] = state.Y
        Y = Y[trunk.order]
    _, total, _ = forces.push(Y, state.low, state.high)
    kl = forces.kl(Y, total)
    now = schedule.objective(kl, forces.negative_entropy, total)
    size = abs(best) if schedule.exaggeration == 1 else abs(kl)
    if now - best > max(RISEN * size, LEAST_RISE):
        what = "KL" if schedule.exaggeration == 1 else "What the descent minimises"
        rate = schedule.largest_step(state.iteration, forces.dof)
        text = (
            f"{what} ended at {now:.4g}, {(now - best) / size:.0%} above its least, {best:.4g} "
            f"at iteration {state.best_iteration}: the points swing. Lower "
            f"{{parameter}}, which was {rate:.3g}."
        )
        warn_caller(NotConvergedWarning(text, parameter=Parameter("learning_rate")))
