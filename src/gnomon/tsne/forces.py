"""What moves the points: P and a mesh, a tree or few pairs in float32; or all pairs in float64.

Both answer the same three questions (`descent.Forces`), so the descent is written once.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import check_free
from gnomon.compute.kernels import kernel
from gnomon.compute.threads import beside, map_blocks, row_blocks
from gnomon.tsne.attraction import Attraction, log_masses
from gnomon.tsne.convolve import kernel_width, padded_nodes
from gnomon.tsne.direct import direct_push
from gnomon.tsne.largest_entries import cut
from gnomon.tsne.mesh import Mesh, nodes_for
from gnomon.tsne.tree import ANGLE, tree_push
from gnomon.typing import Floats32, Floats64, Table

if TYPE_CHECKING:
    from gnomon.tsne.estimator import TSNE

ROWS = 64  # of all pairs at a time
PULL_ROWS = 1024  # of P at a time
WORTH_WAKING = 150_000  # entries of P worth a second thread (benchmarks/crossovers.py, "pull")
FINEST = 4  # halvings of the spacing while the map is small
CUT_FROM = 20_000  # rows for which rough forces leave small entries of P out
ROUGH = 1.4  # times the spacing, for rough forces
ROUGH_ANGLE = 0.8  # of the tree, for rough forces
CHEAP = {1: 400.0, 2: 100.0, 3: 48.0}  # nodes on an axis that cost little for any number of points
# Measured nanoseconds (benchmarks/tsne.py, "crossover"): a pair by direct sum, a node of the mesh,
# a point by the tree.
PAIR_NS = {1: 0.085, 2: 0.085, 3: 0.15}
ANY_DOF_PAIR_NS = 5.0
NODE_NS = {1: 19.0, 2: 8.0, 3: 15.0}
POINT_NS = {1: 30.0, 2: 50.0, 3: 250.0}  # a point on the mesh, whatever its size
FIXED_NS = 300_000.0  # any mesh
TREE_NS, ANY_DOF_TREE_NS = 600.0, 6_000.0  # in three dimensions

AUTO_FORCE_TOL = 0.035
# The mesh's force error at a spacing of half the kernel's width, and the power of the spacing with
# which it falls (benchmarks/tsne.py, "force error"). Sharper kernels need a little less.
ERROR_AT_HALF = 0.035
ORDER = 3.7
SHARPNESS = 0.17  # (h / width) of equal error goes with this power of dof, where that is below 1

__all__ = ["AUTO_FORCE_TOL", "AllPairs", "OverMesh", "make_forces", "node_spacing"]


def make_forces(model: "TSNE") -> "AllPairs | OverMesh":
    """By the parameters of `model`, for its P in the order of the data."""
    P, weights, dof = model.affinities_, model._sample_weight, float(model.dof)
    if model.method == "exact":
        n = P.shape[0]
        what = f"method='exact' with all pairs of {n:,} rows"
        check_free(what, 2 * 8 * n**2, "Use method='auto'.")
        return AllPairs(P, dof, weights=weights, n_jobs=model.n_jobs)
    forces = OverMesh(
        P,
        int(model.n_components),
        dof,
        node_spacing(model.force_tol, dof),
        weights=weights,
        always_mesh=model.method == "mesh",
        rough=True,
        n_jobs=model.n_jobs,
    )
    forces.restore(model._mesh_cells)
    return forces


def node_spacing(force_tol: Any, dof: float) -> float:
    """Distance of the mesh's nodes with which the force error stays below `force_tol`."""
    tol = AUTO_FORCE_TOL if force_tol == "auto" else float(force_tol)
    halves = (tol / ERROR_AT_HALF) ** (1 / ORDER)
    sharp = min(dof, 1.0) ** SHARPNESS
    return float(0.5 * kernel_width(dof) * sharp * min(max(halves, 0.1), 2.0))


class OverMesh:
    """Attraction over the rows of P; repulsion from a mesh, a tree or pair by pair.

    Whichever costs least: all pairs where points are few; otherwise a mesh, or in three dimensions
    a tree where the mesh would have too many nodes.

    The mesh's spacing is halved, up to four times, while the map is so small that the mesh costs
    next to nothing; it grows beyond `spacing` where the mesh would not fit into `most_nodes`. All
    of that depends on the number of points and the map's extent only.

    Rough forces are enough until the map is nearly at rest: of a P without its small entries, where
    points are many, and of a mesh with a wider spacing or a tree with a wider angle. `refined`
    gives the others.

    Parameters
    ----------
    P : CSR array (n, n)
    dimensions : {1, 2, 3}
    dof : float
    spacing : float
        Distance of the nodes when the map is grown.
    weights : array (n,), optional
    most_nodes : int
        That are transformed, zeros included.
    always_mesh : bool
        Neither a tree nor pair by pair.
    rough : bool
    """

    dtype: Any = np.float32

    def __init__(
        self,
        P: Table,
        dimensions: int,
        dof: float,
        spacing: float,
        *,
        weights: Floats64 | None = None,
        most_nodes: int = 2**26,
        always_mesh: bool = False,
        rough: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.dimensions, self.dof = dimensions, dof
        self.spacing = ROUGH * spacing if rough else spacing
        self.angle = ROUGH_ANGLE if rough else ANGLE
        self.always_mesh = always_mesh
        self.most_nodes, self.n_jobs = most_nodes, n_jobs
        self._fine = (P, spacing, weights) if rough else None
        followed = cut(P, n_jobs=n_jobs) if rough and P.shape[0] >= CUT_FROM else P
        self.attraction = Attraction(followed, dof, n_jobs, weights)
        self.charges = self.attraction.weights.astype(np.float32)
        self.copies = float(self.attraction.weights @ (self.attraction.weights - 1))
        self.meshes: dict[float, Mesh] = {}

    def reordered(self, order: NDArray[np.intp]) -> "OverMesh":
        """Forces for renumbered points; the meshes are shared."""
        new = object.__new__(OverMesh)
        new.__dict__.update(self.__dict__)
        new.attraction = self.attraction.reordered(order)
        new.charges = self.charges[order]
        return new

    def apart(self) -> "OverMesh":
        """Forces whose meshes grow apart from the meshes of these."""
        new = object.__new__(OverMesh)
        new.__dict__.update(self.__dict__, meshes={})
        return new

    def refined(self, order: NDArray[np.intp]) -> "OverMesh":
        """Forces of the whole P and the finer mesh, for points in this order of the data.

        Their meshes grow apart from the meshes of these.
        """
        if self._fine is None:
            return self.apart()
        P, spacing, weights = self._fine
        fine = OverMesh(
            P,
            self.dimensions,
            self.dof,
            spacing,
            weights=weights,
            most_nodes=self.most_nodes,
            always_mesh=self.always_mesh,
            n_jobs=self.n_jobs,
        )
        return fine.reordered(order)

    def mesh_cells(self) -> dict[float, tuple[int, ...]]:
        """Sizes of the meshes, by their spacing."""
        return {spacing: mesh.cells for spacing, mesh in self.meshes.items()}

    def restore(self, cells: dict[float, tuple[int, ...]]) -> None:
        """Give the meshes the sizes that they had: a continued run goes on in the same ones."""
        for spacing, counts in cells.items():
            self.meshes[spacing] = Mesh(self.dimensions, self.dof, spacing, self.n_jobs)
            self.meshes[spacing].resize(counts)

    @property
    def negative_entropy(self) -> float:
        """Σ p log p."""
        return self.attraction.negative_entropy

    def at(
        self, Y: NDArray[Any], low: Floats64, high: Floats64
    ) -> tuple[Floats32, Floats32, Floats32, float]:
        """Pull Σ p w (y_i − y_j), degree Σ p w, ∇φ, and Z."""
        pull, degree, block = self.attraction.pull_by_blocks(Y)
        helped = self.attraction.values.size >= WORTH_WAKING
        gradient, total, _ = beside(
            block,
            row_blocks(len(Y), PULL_ROWS),
            lambda: self.push(Y, low, high),
            n_jobs=self.n_jobs if helped else 1,
        )
        return pull, degree, gradient, total

    def push(
        self, Y: NDArray[Any], low: Floats64, high: Floats64
    ) -> tuple[Floats32, float, Floats32 | None]:
        """∇φ, Z = Σ_i w_i (φ_i + w_i − 1), as copies of a point lie on it; φ but for all pairs."""
        mesh = self.mesh_for(high - low)
        charges = self.charges if self.attraction.weighted else None
        if mesh is None and not self.uses_tree:
            gradient, total = direct_push(Y, charges, self.dof, self.n_jobs)
            return gradient, total + self.copies, None
        if mesh is None:
            gradient, phi = tree_push(Y, charges, self.dof, self.n_jobs, self.angle)
        else:
            phi, gradient = np.empty(len(Y), np.float32), np.empty(Y.shape, np.float32)
            potential, origin = mesh.potential(Y, self.charges, low, high)
            mesh.read(Y, self.charges, potential, origin, phi, gradient)
        charged = phi if self.copies == 0 else phi * self.attraction.weights
        return gradient, float(charged.sum(dtype=np.float64)) + self.copies, phi

    def kl(self, Y: NDArray[Any], total: float) -> float:
        """KL(P‖Q) for Z = `total`."""
        return self.attraction.kl(Y, total)

    @property
    def uses_tree(self) -> bool:
        """Whether a tree takes the place of all pairs."""
        return self._tree_cost() < self._pairs_cost()

    def describe(self, extent: Floats64) -> str:
        """How the push between the points of a map of this extent is computed."""
        mesh = self.mesh_for(extent)
        if mesh is None and self.uses_tree:
            return f"tree with an angle of {self.angle:g}"
        if mesh is None:
            return "sum over all pairs"
        count = " × ".join(str(nodes) for nodes in mesh.cells)
        return f"mesh of {count} nodes, {mesh.spacing:.3g} apart"

    def _pairs_cost(self) -> float:
        pair = PAIR_NS[self.dimensions] if self.dof == 1.0 else ANY_DOF_PAIR_NS
        return pair * float(len(self.charges)) ** 2

    def _tree_cost(self) -> float:
        if self.dimensions < 3:
            return math.inf
        return (TREE_NS if self.dof == 1.0 else ANY_DOF_TREE_NS) * len(self.charges)

    def mesh_for(self, extent: Floats64) -> Mesh | None:
        """The mesh for a map of this extent; None where a tree or all pairs cost less."""
        n, spans = len(self.charges), extent.tolist()
        cheap = min(max((n / 2) ** (1 / self.dimensions), CHEAP[self.dimensions]), 4096.0)
        spacing = self.spacing
        for _ in range(FINEST):
            if max(spans) / spacing > cheap / 2:
                break
            spacing /= 2
        while self._nodes(spans, spacing) > self.most_nodes:
            spacing *= 1.25
        nodes = NODE_NS[self.dimensions] * self._nodes(spans, spacing)
        mesh = nodes + POINT_NS[self.dimensions] * n + FIXED_NS
        if not self.always_mesh and min(self._pairs_cost(), self._tree_cost()) < mesh:
            return None
        if spacing not in self.meshes:
            self.meshes[spacing] = Mesh(self.dimensions, self.dof, spacing, self.n_jobs)
        return self.meshes[spacing]

    def _nodes(self, spans: list[float], spacing: float) -> float:
        """That are transformed for a map of this extent."""
        return padded_nodes([nodes_for(span / spacing) for span in spans], self.dof, spacing)


class AllPairs:
    """Equation (59) as it stands: every pair, P dense, float64.

    Parameters
    ----------
    P : CSR array or array (n, n)
    dof : float
    weights : array (n,), optional
    """

    dtype: Any = np.float64

    def __init__(
        self, P: Table, dof: float, *, weights: Floats64 | None = None, n_jobs: int | None = None
    ) -> None:
        self.dof, self.n_jobs = dof, n_jobs
        self.P = np.ascontiguousarray(P.toarray(), np.float64)
        self.weights = np.ones(len(self.P)) if weights is None else weights
        self.negative_entropy = log_masses(P, weights)

    def reordered(self, order: NDArray[np.intp]) -> "AllPairs":
        """Forces for renumbered points."""
        new = object.__new__(AllPairs)
        new.__dict__.update(self.__dict__)
        new.P, new.weights = self.P[np.ix_(order, order)], self.weights[order]
        return new

    def apart(self) -> "AllPairs":
        """These forces, which have no meshes."""
        return self

    def refined(self, order: NDArray[np.intp]) -> "AllPairs":
        """These forces: none are finer."""
        return self

    def mesh_cells(self) -> dict[float, tuple[int, ...]]:
        """None: there is no mesh."""
        return {}

    def at(
        self, Y: NDArray[Any], low: Floats64, high: Floats64
    ) -> tuple[Floats64, Floats64, Floats64, float]:
        """Pull Σ p w (y_i − y_j) and degree Σ p w of one copy, ∇φ, and Z."""
        pull, gradient = np.empty(Y.shape), np.empty(Y.shape)
        degree, phi = np.empty(len(Y)), np.empty(len(Y))

        def block(start: int, stop: int) -> None:
            _all_pairs(self.P, Y, self.weights, self.dof, pull, degree, gradient, phi, start, stop)

        map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=self.n_jobs)
        return pull, degree, gradient, float((phi + self.weights - 1) @ self.weights)

    def push(
        self, Y: NDArray[Any], low: Floats64, high: Floats64
    ) -> tuple[Floats64, float, Floats64 | None]:
        """∇φ and Z; nothing about φ, for Z needs no correction."""
        _, _, gradient, total = self.at(Y, low, high)
        return gradient, total, None

    def kl(self, Y: NDArray[Any], total: float) -> float:
        """KL(P‖Q) for Z = `total`."""

        def block(start: int, stop: int) -> float:
            return _log_sum(self.P, Y, self.dof, start, stop)

        parts = map_blocks(block, row_blocks(len(Y), ROWS), n_jobs=self.n_jobs)
        return float(self.negative_entropy + (self.dof + 1) / 2 * sum(parts) + np.log(total))


@kernel
def _all_pairs(
    P: Floats64,
    Y: Floats64,
    weights: Floats64,
    dof: float,
    pull: Floats64,
    degree: Floats64,
    gradient: Floats64,
    phi: Floats64,
    start: int,
    stop: int,
) -> None:
    d = Y.shape[1]
    power = (dof + 1) / 2
    for i in range(start, stop):
        for c in range(d):
            pull[i, c] = gradient[i, c] = 0.0
        total, springs = 0.0, P[i, i]
        for j in range(Y.shape[0]):
            if i == j:
                continue
            sq = 0.0
            for c in range(d):
                sq += (Y[i, c] - Y[j, c]) ** 2
            w = 1.0 / (1.0 + sq / dof)
            value = weights[j] * (w if dof == 1.0 else w**power)
            total += value
            near, far = P[i, j] * w, value * w
            springs += near
            for c in range(d):
                step = Y[i, c] - Y[j, c]
                pull[i, c] += near * step
                gradient[i, c] += far * step
        phi[i], degree[i] = total, springs / weights[i]
        for c in range(d):
            pull[i, c] /= weights[i]
            gradient[i, c] *= -(dof + 1) / dof


@kernel
def _log_sum(P: Floats64, Y: Floats64, dof: float, start: int, stop: int) -> float:
    """Σ p log(1 + d/α) over some rows."""
    total = 0.0
    for i in range(start, stop):
        for j in range(Y.shape[0]):
            if P[i, j] > 0:
                sq = 0.0
                for c in range(Y.shape[1]):
                    sq += (Y[i, c] - Y[j, c]) ** 2
                total += P[i, j] * np.log1p(sq / dof)
    return total
