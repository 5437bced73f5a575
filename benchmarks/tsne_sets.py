"""KL of many kinds of tables beside that of the first edition's descent: nothing may get worse.

KL is exact, over all pairs, with exact neighbours at perplexity 30, for both. The starts are the
default one and four (two at 70,000 rows, and of copies) changed by 1e-5 of themselves; the medians
are compared.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.environment import Settings
from benchmarks.table import verdict
from benchmarks.tsne_programs import (
    Points,
    exact_affinities,
    exact_kl,
    other_start,
    ours,
    seconds_of,
    shape_cell,
    warm_up,
)
from benchmarks.tsne_section import Section
from benchmarks.tsne_tables import GENERATED, REAL, points

MOST_ABOVE = 0.003  # of the first edition's KL
COMMIT = "0f849c1"  # whose figures these are: 750 iterations, with gains and momentum 0.8
FIRST_EDITION = {
    "digits": (0.7391, 0.7391, 0.7419, 0.7362, 0.7398),
    "faces": (0.5899, 0.5618, 0.5597, 0.5523, 0.6399),
    "coil-20": (0.3606, 0.3591, 0.3661, 0.3572, 0.3567),
    "blood cells": (0.7296, 0.7303, 0.7312, 0.7253, 0.7263),
    "worm neurons": (1.7729, 1.7699, 1.7710, 1.7615, 1.7649),
    "mnist-10k": (1.7039, 1.7011, 1.7022, 1.7029, 1.7081),
    "fashion-20k": (1.8258, 1.8272, 1.8275, 1.8270, 1.8249),
    "glove-20k": (2.9224, 2.9291, 2.9468, 2.9379, 2.9447),
    "mnist-70k": (2.7888, 2.7911, 2.7849),
    "swiss roll": (0.7342, 0.7333, 0.7333, 0.7321, 0.7329),
    "line": (0.2840, 0.2991, 0.2797, 0.3066, 0.2882),
    "cauchy": (1.5751, 1.5804, 1.5719, 1.5797, 1.5723),
    "noise": (4.3592, 4.3556, 4.3632, 4.3572, 4.3633),
    "duplicates": (1.1365, 1.1146, 1.1222, 1.1525, 1.1324),
    "copies": (1.8044, 1.8087, 1.8112),
    "two blobs": (2.1163, 2.1220, 2.1357, 2.1269, 2.1385),
}
TARGETS = {"digits": 0.735, "mnist-10k": 1.66, "mnist-70k": 2.70}  # the design's, beyond that


def load(name: str, settings: Settings) -> Points | None:
    """The table of a row; None where it is a real one and there is no folder."""
    if name in GENERATED:
        return points(GENERATED[name](), "generated")
    if settings.data is None and name != "digits":
        return None
    return REAL[name](settings.data)  # type: ignore[arg-type]


def measure(name: str, settings: Settings) -> dict[str, Any]:
    """KL of every start, and of the other qualities from the default one."""
    table = load(name, settings)
    if table is None:
        return {"shape": None}
    warm_up()
    X, former = table.X, FIRST_EDITION[name]
    P = exact_affinities(X)
    inits = ["pca", *(other_start(X, seed) for seed in range(1, len(former)))]
    runs = [_run(X, P, init=init) for init in inits]
    found: dict[str, Any] = {
        **table.describe(),
        "runs": runs,
        "qualities": {
            "fast": _run(X, P, quality="fast"),
            "balanced": runs[0],
            "best": _run(X, P, quality="best"),
        },
        "first_edition": list(former),
        "kl": float(np.median([run["kl"] for run in runs])),
        "kl_first_edition": float(np.median(former)),
        "target": TARGETS.get(name),
    }
    found["complaints"] = complaints(found)
    return found


def _run(X: Any, P: Any, **options: Any) -> dict[str, Any]:
    seconds, model = seconds_of(lambda: ours(**options).fit(X))
    return {
        "kl": exact_kl(P, model),
        "own_kl": model.kl_divergence_,
        "n_iter": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "seconds": seconds,
    }


def complaints(found: Mapping[str, Any]) -> list[str]:
    """Targets that were missed, in words."""
    kl, former, target = found["kl"], found["kl_first_edition"], found["target"]
    missed = []
    if not kl <= (1 + MOST_ABOVE) * former:
        missed.append(f"KL {kl:.4f} is {_away(kl, former)} of the first edition's")
    if target is not None and not kl <= target:
        missed.append(f"KL {kl:.4f} above {target}")
    return missed


def _away(kl: float, former: float) -> str:
    return f"{100 * (kl / former - 1):+.1f} %"


def lines(found: Mapping[str, Any]) -> list[list[str]]:
    """The one line of a table."""
    if found["shape"] is None:
        return [["needs --data", *["–"] * 8]]
    former, kls = found["first_edition"], [run["kl"] for run in found["runs"]]
    middle, kl = found["kl_first_edition"], found["kl"]
    cells = [
        f"{_away(run['kl'], former[0])} in {run['n_iter']}" for run in found["qualities"].values()
    ]
    target = "–" if found["target"] is None else f"≤ {found['target']}"
    return [
        [
            shape_cell(found),
            f"{middle:.4f} [{min(former):.4f}, {max(former):.4f}]",
            f"{kl:.4f} [{min(kls):.4f}, {max(kls):.4f}]",
            _away(kl, middle),
            target,
            *cells,
            verdict(found["complaints"]),
        ]
    ]


SECTION = Section(
    name="sets",
    caption="KL of the default map against the first edition's, on tables of many kinds.",
    header=[
        "row",
        "data",
        "KL of the first edition [range]",
        "KL now [range]",
        "change",
        "target",
        "fast, iterations",
        "balanced",
        "best",
        "verdict",
    ],
    rows={name: partial(measure, name) for name in FIRST_EDITION},
    lines=lines,
    notes=(
        "sets: KL is exact, over all pairs, with one P for both: perplexity 30, exact neighbours. "
        "Medians and ranges over five starts (three at 70,000 rows, and of copies): the default "
        "one, and others changed by 1e-5 of themselves. Reached: at most 0.3 % above the first "
        "edition's, and below the target where there is one.",
        f"sets: the first edition's figures were measured once, at commit {COMMIT}.",
        "sets: fast, balanced and best are `quality=`, from the default start, against the first "
        "edition's map of that start; the number is that of iterations.",
    ),
)
