"""How a run goes on: when it passes the KL that intelex ends at, and what its iterations cost.

Both stop our run every 20 iterations and resume it, which gives the bits of an uninterrupted run.
Stopping costs time that no user pays, cooling among it; so the length found is timed again as one
run, and so are the iterations, by a callback.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import OURS, THREADS, Settings, peer
from benchmarks.memory import Fit
from benchmarks.table import number, verdict
from benchmarks.timing import time_pairs
from benchmarks.tsne_programs import (
    PEERS,
    Points,
    exact_affinities,
    exact_kl,
    fit_intelex,
    images,
    ours,
    shape_cell,
    warm_up,
)
from benchmarks.tsne_section import Section

STRETCH = 20  # iterations of ours
OPENTSNE_STRETCH = 50
WHOLE = 1000
TARGET_TO_KL = 4.0

Stretches = list[dict[str, float]]


def follow(X: Any, whole: int = WHOLE) -> Iterator[Any]:
    """Our model after every stretch of one run."""
    model = ours(max_iter=STRETCH).fit(X)
    yield model
    while model.n_iter_ < whole and model.stop_reason_ == "reached max_iter":
        model.resume(STRETCH)
        yield model


def measure_to_kl(
    load: Callable[[Path | None], Points], settings: Settings, rival: Fit = fit_intelex
) -> dict[str, Any]:
    """How many iterations, and how many seconds, until our KL is below intelex's last."""
    points = load(settings.data)
    X = points.X
    warm_up()
    P = exact_affinities(X)
    goal = exact_kl(P, rival(X, 2))
    passed: dict[int, float] = {}
    for model in follow(X):
        if model.n_iter_ > model._schedule.annealed:  # before, KL is not what is minimised
            passed[model.n_iter_] = exact_kl(P, model)
            if passed[model.n_iter_] < goal:
                break
    length, kl = list(passed.items())[-1]
    fit = partial(_run_of, length, X)
    timing = time_pairs((OURS, fit), {"intelex": partial(rival, X, 2)}, pairs=settings.pairs or 1)
    missed = [] if kl < goal else [f"KL {kl:.4f} not below {goal:.4f} after {length} iterations"]
    if not timing.ratio >= TARGET_TO_KL:
        missed.append(f"ratio {number(timing.ratio, '.2f')} below {TARGET_TO_KL:g}")
    return {
        **points.describe(),
        "goal": goal,
        "iterations": length,
        "kl": kl,
        "kl_by_iteration": {str(at): value for at, value in passed.items()},
        "timing": timing.to_dict(),
        "median_seconds": {name: timing.median_seconds(name) for name in timing.seconds},
        "complaints": missed,
    }


def _run_of(length: int, X: Any) -> Any:
    return ours(max_iter=length).fit(X)


def lines_to_kl(found: Mapping[str, Any]) -> list[list[str]]:
    """The one line."""
    timing, seconds = found["timing"], found["median_seconds"]
    return [
        [
            shape_cell(found),
            number(found["goal"], ".4f"),
            f"{number(found['kl'], '.4f')} after {found['iterations']} iterations",
            number(seconds[OURS]),
            number(seconds["intelex"]),
            number(timing["ratio"], ".2f"),
            f"≥ {TARGET_TO_KL:g}",
            f"{len(timing['ratios'])} of {timing['pairs_wanted']} ({timing['pairs_discarded']})",
            verdict(found["complaints"]),
        ]
    ]


TO_KL = Section(
    name="time to intelex's KL",
    caption="seconds of the shortest of our runs whose KL is below that of intelex's whole one.",
    header=[
        "row",
        "data",
        "KL of intelex",
        "KL of ours",
        f"{OURS}, s",
        "intelex, s",
        "ratio",
        "target",
        "pairs (discarded)",
        "verdict",
    ],
    rows={"mnist-70k": partial(measure_to_kl, images)},
    lines=lines_to_kl,
    notes=(
        f"time to intelex's KL: the length was found in steps of {STRETCH} iterations, by exact "
        "KL, and then timed as one run; intelex's is its whole default run.",
    ),
    peers=("intelex",),
)


def stretches_gnomon(X: Any) -> Stretches:
    """Seconds of every stretch of our run, timed as one, and the span of the map after it."""
    from gnomon.progress import Watch as Told

    times: list[float] = []
    told = Told(lambda _: times.append(time.perf_counter()))
    ours().set_callbacks(told).fit(X)
    found, done = [], 1  # the first iteration has no time of its own
    for model in follow(X):
        until = min(model.n_iter_, len(times))
        if until == done:  # a rule ended the run where the last stretch had begun to cool
            continue
        seconds = times[until - 1] - times[done - 1]
        found.append(_stretch(until, until - done, seconds, model.embedding_))
        done = until
    return found


def stretches_opentsne(X: Any) -> Stretches:
    """The same of openTSNE's, told by its own callbacks."""
    watch = Watch()
    TSNE = peer(*PEERS["openTSNE"])
    TSNE(
        n_jobs=THREADS, random_state=0, callbacks=watch, callbacks_every_iters=OPENTSNE_STRETCH
    ).fit(X)
    return watch.found


class Watch:
    """A callback of openTSNE that notes the time; its phases count from 1 each."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.found: Stretches = []
        self.clock, self.begun = clock, 0.0

    def optimization_about_to_start(self) -> None:
        """Called by openTSNE at the start of each phase."""
        self.begun = self.clock()

    def __call__(self, iteration: int, error: float, embedding: Any) -> bool:
        """Called by openTSNE after each stretch; True would stop it."""
        seconds = self.clock() - self.begun
        at = OPENTSNE_STRETCH * (len(self.found) + 1)
        self.found.append(_stretch(at, OPENTSNE_STRETCH, seconds, embedding))
        self.begun = self.clock()
        return False


def _stretch(until: int, count: int, seconds: float, Y: Any) -> dict[str, float]:
    span = float(np.ptp(np.asarray(Y), axis=0).max())
    return {"until": until, "iterations": count, "seconds": seconds, "span": span}


def measure_iterations(
    load: Callable[[Path | None], Points],
    settings: Settings,
    programs: Mapping[str, Callable[[Any], Stretches]] | None = None,
) -> dict[str, Any]:
    """Milliseconds an iteration of both programs, all along their runs."""
    points = load(settings.data)
    if programs is None:
        warm_up()
        programs = {OURS: stretches_gnomon, "openTSNE": stretches_opentsne}
    found = {name: program(points.X) for name, program in programs.items()}
    slower = {name: _slowest_over_quickest(course) for name, course in found.items()}
    mine, theirs = slower[OURS], slower["openTSNE"]
    return {
        **points.describe(),
        "programs": found,
        "slowest_over_quickest": slower,
        "complaints": [] if mine < theirs else [f"{mine:.1f}-fold, openTSNE's {theirs:.1f}-fold"],
    }


def _slowest_over_quickest(course: Stretches) -> float:
    each = [_milliseconds(stretch) for stretch in course]
    return max(each) / min(each)


def _milliseconds(stretch: Mapping[str, float]) -> float:
    """Of one iteration."""
    return 1e3 * stretch["seconds"] / stretch["iterations"]


def lines_of_iterations(found: Mapping[str, Any]) -> list[list[str]]:
    """One line a stretch, and one of what it comes to."""
    mine, theirs = (
        {stretch["until"]: stretch for stretch in found["programs"][name]}
        for name in (OURS, "openTSNE")
    )
    table = []
    for until in sorted({*mine, *theirs}):
        cells = []
        for course in (mine, theirs):
            if until in course:
                stretch = course[until]
                cells += [number(_milliseconds(stretch)), number(stretch["seconds"])]
                cells.append(number(stretch["span"]))
            else:
                cells += ["–"] * 3
        table.append([f"to {until:.0f}", *cells, "–"])
    times = [f"{found['slowest_over_quickest'][name]:.1f}-fold" for name in (OURS, "openTSNE")]
    result = verdict(found["complaints"])
    table.append(["slowest / quickest", times[0], "–", "–", times[1], "–", "–", result])
    return table


ITERATIONS = Section(
    name="iterations",
    caption="milliseconds an iteration in each stretch, and how far the map has spread.",
    header=[
        "row",
        "iterations",
        f"{OURS}, ms",
        "s a stretch",
        "span",
        "openTSNE, ms",
        "s a stretch",
        "span",
        "verdict",
    ],
    rows={"mnist-70k": partial(measure_iterations, images)},
    lines=lines_of_iterations,
    notes=(
        "iterations: reached if ours slow down less from their quickest stretch to their slowest "
        "than openTSNE's do. Neighbours, affinities and the start are not counted; renumbering of "
        "points and looking at KL are.",
    ),
    peers=("openTSNE",),
)
