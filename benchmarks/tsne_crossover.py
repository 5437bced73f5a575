"""The sum over all pairs against the mesh: what a pair, a node and a point cost.

``gnomon.tsne.forces`` chooses between the two by PAIR_NS, ANY_DOF_PAIR_NS, NODE_NS, POINT_NS and
FIXED_NS, which are read off this table. A sum costs time for each of n² pairs. A mesh costs time
for each node that is transformed, for each point, and for being there at all; they are told apart
by a larger mesh and by more points.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environment import THREADS, Settings
from benchmarks.table import number, verdict
from benchmarks.tsne_programs import seconds_of
from benchmarks.tsne_section import Section

POINTS = 4_000
MORE_POINTS = 40_000
SPACING = 0.5
# Spans of a small and of a large mesh: what maps of some thousand points have, and then some.
SPANS = {1: (20_000.0, 80_000.0), 2: (100.0, 300.0), 3: (15.0, 30.0)}
DOF = 0.5
RUNS = 9
APART = 2.0  # a constant further off than this can choose the slower way


def measure(dimensions: int, settings: Settings, points: int = POINTS) -> dict[str, Any]:
    """Nanoseconds of a pair, a node and a point in one number of dimensions."""
    from gnomon.tsne import forces
    from gnomon.tsne.direct import direct_push

    small, large = SPANS[dimensions]
    Y = scattered(points, dimensions, small)
    pair, any_dof = (
        best_seconds(partial(direct_push, Y, None, dof, THREADS)) * 1e9 / points**2
        for dof in (1.0, DOF)
    )
    many = points * MORE_POINTS // POINTS
    base = mesh_seconds(Y)
    larger = mesh_seconds(scattered(points, dimensions, large))
    fuller = mesh_seconds(scattered(many, dimensions, small))
    nodes = nodes_of(dimensions, large) - nodes_of(dimensions, small)
    node, point = (larger - base) * 1e9 / nodes, (fuller - base) * 1e9 / (many - points)
    found = {
        "dimensions": dimensions,
        "pair_ns": pair,
        "any_dof_pair_ns": any_dof,
        "node_ns": node,
        "point_ns": point,
        "fixed_ns": base * 1e9 - node * nodes_of(dimensions, small) - point * points,
        "nodes": [nodes_of(dimensions, span) for span in (small, large)],
        "constants": {
            "pair_ns": forces.PAIR_NS[dimensions],
            "any_dof_pair_ns": forces.ANY_DOF_PAIR_NS,
            "node_ns": forces.NODE_NS[dimensions],
            "point_ns": forces.POINT_NS[dimensions],
        },
    }
    found["complaints"] = complaints(found)
    return found


def scattered(n: int, dimensions: int, span: float) -> NDArray[np.float32]:
    """Points all over a cube of this span, in the order of their first coordinate."""
    Y = np.random.default_rng(0).random((n, dimensions), dtype=np.float32) * np.float32(span)
    Y[0], Y[-1] = 0, span
    return Y[np.argsort(Y[:, 0])]


def nodes_of(dimensions: int, span: float) -> int:
    """Nodes that are transformed, as `forces` counts them."""
    from gnomon.tsne.convolve import padded_nodes
    from gnomon.tsne.mesh import nodes_for

    return int(padded_nodes([nodes_for(span / SPACING)] * dimensions, 1.0, SPACING))


def mesh_seconds(Y: NDArray[np.float32]) -> float:
    """Spreading, transforming and reading, once the mesh has its size."""
    from gnomon.tsne.mesh import Mesh

    mesh = Mesh(Y.shape[1], 1.0, SPACING, THREADS)
    low, high = (bound(axis=0).astype(np.float64) for bound in (Y.min, Y.max))
    charges, phi, gradient = np.ones(len(Y), "f4"), np.empty(len(Y), "f4"), np.empty_like(Y)

    def once() -> None:
        mesh.read(Y, charges, *mesh.potential(Y, charges, low, high), phi, gradient)

    return best_seconds(once)


def best_seconds(work: Any) -> float:
    """The least disturbed of several runs, after one untimed: only our own ways are compared."""
    work()
    return min(seconds_of(work)[0] for _ in range(RUNS))


def complaints(found: Mapping[str, Any]) -> list[str]:
    """Constants that are not what was measured."""
    missed = []
    for name, quoted in found["constants"].items():
        measured = found[name]
        if not quoted / APART <= measured <= quoted * APART:
            missed.append(f"{name.upper()} is {quoted:g}, measured {measured:.2g}")
    return missed


def lines(found: Mapping[str, Any]) -> list[list[str]]:
    """The one line of a dimension."""
    small, large = found["nodes"]
    cells = [
        f"{number(found[name], '.2g')} ({quoted:g})" for name, quoted in found["constants"].items()
    ]
    fixed = number(found["fixed_ns"], ".2g")
    return [[*cells, fixed, f"{small:,} to {large:,}", verdict(found["complaints"])]]


SECTION = Section(
    name="crossover",
    caption="nanoseconds of the repulsion on two threads, and what `tsne/forces.py` quotes.",
    header=[
        "row",
        "a pair, dof 1 (quoted)",
        f"a pair, dof {DOF} (quoted)",
        "a node (quoted)",
        "a point on the mesh (quoted)",
        "any mesh",
        "nodes transformed",
        "verdict",
    ],
    rows={f"d={dimensions}": partial(measure, dimensions) for dimensions in SPANS},
    lines=lines,
    notes=(
        f"crossover: best of {RUNS} runs; a node is the difference of two meshes, a point that of "
        f"{POINTS:,} and {MORE_POINTS:,} points on one mesh, adding up the meshes of their blocks "
        f"included. Reached: the constants quoted are within {APART:g}-fold of what was measured.",
    ),
)
