"""The error of the repulsive force, ours and openTSNE's, on the same positions.

The force Σ_j K w (y_i − y_j) of our final map is computed by each program at its defaults and
compared with the exact sum on sampled points: the root mean square of what is wrong over the root
mean square of what is right. Z, which every force is divided by, is compared on its own.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environment import OURS, THREADS, Settings, peer
from benchmarks.table import number, verdict
from benchmarks.tsne_programs import Points, digits, fit_gnomon, images, seconds_of, shape_cell
from benchmarks.tsne_section import Section

SAMPLED = 1_000
RUNS = 5
TREE_BELOW = 10_000  # rows, where openTSNE takes Barnes and Hut's tree by default

Floats64 = NDArray[np.float64]
Push = Callable[[], tuple[Floats64, float]]  # the force on every point, and Z


def push_gnomon(forces: Any, state: Any) -> tuple[Floats64, float]:
    """As the descent computes it, with the points in the descent's own order."""
    gradient, total, _ = forces.push(state.Y, state.low, state.high)
    slope = -forces.dof / (forces.dof + 1)
    return slope * gradient.astype(np.float64), total


def push_fft(Y: Floats64) -> tuple[Floats64, float]:
    """By openTSNE's interpolation, which gives back −Σ K w (y_i − y_j) / Z."""
    estimate = peer("openTSNE._tsne", "estimate_negative_gradient_fft_2d", "openTSNE")
    out = np.zeros_like(Y)
    total = estimate(
        Y, out, n_interpolation_points=3, min_num_intervals=50, ints_in_interval=1, dof=1
    )
    return -out * total, total


def push_tree(Y: Floats64) -> tuple[Floats64, float]:
    """By openTSNE's tree; likewise."""
    estimate = peer("openTSNE._tsne", "estimate_negative_gradient_bh", "openTSNE")
    tree = peer("openTSNE.quad_tree", "QuadTree", "openTSNE")(Y)
    out = np.zeros_like(Y)
    total = estimate(
        tree, Y, out, theta=0.5, dof=1, num_threads=THREADS, pairwise_normalization=True
    )
    return -out * total, total


class Truth:
    """The exact force on sampled points of a map."""

    def __init__(self, Y: NDArray[Any], sampled: int = SAMPLED) -> None:
        from gnomon.tsne.reference import field

        n = len(Y)
        self.rows = np.sort(np.random.default_rng(0).choice(n, min(n, sampled), replace=False))
        self.push = field(Y, at=Y[self.rows], n_jobs=THREADS)[1]
        self.total = float(field(Y, n_jobs=THREADS)[0].sum())

    def errors(self, push: Floats64, total: float) -> dict[str, float]:
        """Relative errors of a force and of Z."""
        wrong = np.linalg.norm(push[self.rows] - self.push)
        return {
            "force_error": float(wrong / np.linalg.norm(self.push)),
            "z_error": abs(total / self.total - 1),
        }


def judge(truth: Truth, push: Push) -> dict[str, float]:
    """Errors of one way, and milliseconds of its best run."""
    taken, found = zip(*(seconds_of(push) for _ in range(RUNS)), strict=True)
    return {**truth.errors(*found[0]), "milliseconds": 1e3 * min(taken)}


def measure(
    load: Callable[[Path | None], Points],
    settings: Settings,
    peers: Mapping[str, Callable[[Floats64], tuple[Floats64, float]]] | None = None,
) -> dict[str, Any]:
    """Errors of everybody at the end of our descent."""
    points = load(settings.data)
    model = fit_gnomon(points.X, 2)
    state, forces = model._state, forces_of(model)
    Y = np.ascontiguousarray(state.Y, np.float64)
    truth = Truth(Y)
    found = {OURS: judge(truth, partial(push_gnomon, forces, state))}
    if peers is None:
        peers = {"openTSNE FFT": push_fft}
        if len(Y) < TREE_BELOW:
            peers["openTSNE tree"] = push_tree
    for name, push in peers.items():
        found[name] = judge(truth, partial(push, Y))
    asked = ours_tolerance()
    error = found[OURS]["force_error"]
    return {
        **points.describe(),
        "span": float(np.ptp(Y, axis=0).max()),
        "repulsion": model.certificate_.repulsion,
        "sampled": len(truth.rows),
        "programs": found,
        "tolerance": asked,
        "complaints": [] if error <= asked else [f"force error {error:.2%} above {asked:.1%}"],
    }


def forces_of(model: Any) -> Any:
    """What moves the points of a fitted map."""
    from gnomon.tsne.forces import make_forces

    return make_forces(model)


def ours_tolerance() -> float:
    """What `force_tol` promises by default."""
    from gnomon.tsne.forces import AUTO_FORCE_TOL

    return AUTO_FORCE_TOL


def lines(found: Mapping[str, Any]) -> list[list[str]]:
    """One line a program."""
    table = []
    for name, errors in found["programs"].items():
        mine = name == OURS
        table.append(
            [
                shape_cell(found),
                number(found["span"], ".0f"),
                f"{name}: {found['repulsion']}" if mine else name,
                f"{errors['force_error']:.2%}" if errors["force_error"] > 1e-5 else "< 0.001%",
                f"{errors['z_error']:.1e}",
                number(errors["milliseconds"]),
                f"≤ {found['tolerance']:.1%}" if mine else "–",
                verdict(found["complaints"]) if mine else "–",
            ]
        )
    return table


SECTION = Section(
    name="force error",
    caption="error of the repulsive force on our final map, relative to the exact sum.",
    header=[
        "row",
        "data",
        "span",
        "program",
        "force error",
        "error of Z",
        "ms",
        "target",
        "verdict",
    ],
    rows={
        "digits": partial(measure, digits),
        "mnist-10k": partial(measure, partial(images, rows=10_000)),
        "mnist-70k": partial(measure, images),
    },
    lines=lines,
    notes=(
        f"force error: root mean square on {SAMPLED:,} sampled points, relative to that of the "
        f"exact force; ms is the best of {RUNS} runs of the repulsion alone. openTSNE takes its "
        "tree below 10,000 rows and its FFT above, at its defaults, in float64.",
    ),
    peers=("openTSNE",),
)
