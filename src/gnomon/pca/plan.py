"""The plan of a fit: solver, cost and reason, decided from the shape before any work is done.

Operations are counted as multiplications with additions at the speed of a matrix product. The
reduction of a matrix to tridiagonal form runs at the speed of memory, so its d³ counts
`EIGEN_COST`-fold; that factor and the crossovers were measured by ``benchmarks/crossovers.py``.
"""

from dataclasses import dataclass
from typing import Any

from gnomon.budget import available_bytes, readable_bytes
from gnomon.engine.tree_sum import FAN
from gnomon.errors import Remedy, TooLargeError, Way, refuse
from gnomon.pca.rank import Request
from gnomon.pca.solvers import covariance, deflation, gram, krylov, svd
from gnomon.pca.solvers.krylov import BLOCK, block_count, block_width
from gnomon.pca.solvers.problem import Solver
from gnomon.records import Record

EIGEN_COST = 14.0  # cost of d³ in `eigen.py`, in units of n·d² of the covariance
THIN_COST = 2.0  # slowdown per column of a product with few columns
SMALL_OPERATIONS = 4e10  # operations, about half a second: always use an exact solver
EXACT_SLOWDOWN = 3.0  # slowdown of an exact solver up to which it is preferred to krylov

# How often krylov reads a large table at most: blocks are as wide as there are components, and a
# spectrum that needs more of them is so flat that its components are hardly separated.
MOST_PASSES = 16  # `benchmarks/outofcore.py` has times and residuals
LARGE_BYTES = 2**30  # above this, a pass over the table costs more than wider blocks

FILLING_TABLES = 6.0  # float64 tables that `impute.py` holds at most; 5.3 to 5.6 were measured

ALIASES = {
    "full": "svd",
    "covariance_eigh": "covariance",
    "arpack": "krylov",
    "randomized": "krylov",
}
SOLVERS: dict[str, Solver] = {
    "covariance": covariance,
    "gram": gram,
    "svd": svd,
    "deflation": deflation,
    "krylov": krylov,
}
SOLVER_NAMES = ("auto", *SOLVERS, *ALIASES)
STREAMED = tuple(name for name, solver in SOLVERS.items() if not solver.NEEDS_ARRAY)


@dataclass(frozen=True)
class Plan(Record):
    """Plan of `PCA.fit`: solver, passes, operations and memory.

    Attributes
    ----------
    solver : str
    why : str
    shape : tuple of int
    dtype : str
        Precision of the products.
    passes : int
        Passes over the table; for a source, at most.
    operations : float
        Multiplications with additions.
    peak_bytes : int
        Memory in bytes beyond the table itself.
    """

    solver: str
    why: str
    shape: tuple[int, int]
    n_components: Any
    dtype: str
    passes: int
    operations: float
    peak_bytes: int

    def title(self) -> str:
        """One-line summary."""
        return f"PCA of {self.shape[0]:,} × {self.shape[1]:,} {self.dtype} by {self.solver}"

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
        return [
            ("why", self.why),
            ("passes", f"{self.passes} over the table"),
            ("operations", f"{self.operations:.1e}"),
            ("memory", f"{readable_bytes(self.peak_bytes)} beyond the table"),
        ]


def make_plan(
    *,
    n: int,
    d: int,
    request: Request,
    itemsize: int,
    stored: int | None = None,
    solver: str = "auto",
    memory: int | None = None,
    threads: int = 2,
    filled: bool = False,
    blocks: int | None = None,
    partitions: int = 0,
    processes: int = 0,
    held: int = 0,
    before: int = 0,
) -> Plan:
    """Choose a solver for an (n, d) table.

    `stored` is the number of entries of a sparse table; `filled` says that missing values are
    filled in first; `blocks` is the size in bytes of all blocks in memory at a time if the table is
    a source of `partitions`, which `processes` of this machine process besides this one; `held` is
    the size in bytes of a table that is read into memory first; `before` is the number of passes
    before the solver's, for reading or to choose a shift.
    """
    side = min(n, d)
    k = request.first_guess(side)
    solver = ALIASES.get(solver, solver)
    room = available_bytes() if memory is None else memory
    if blocks is None:
        costs = {name: _cost(name, n, d, k, itemsize, stored, threads) for name in SOLVERS}
    else:
        sums = _sums_at_a_time(threads, partitions, processes)
        costs = {name: _source_cost(name, n, d, k, itemsize, sums, blocks) for name in STREAMED}
        if solver not in ("auto", *STREAMED):
            must = f"be 'auto' or one of {', '.join(map(repr, STREAMED))} for a source"
            refuse("solver", must, solver, "The others need the whole table in memory.")
    filling = FILLING_TABLES * 8.0 * n * d if filled else 0.0
    costs = {
        name: (operations, peak + filling + held) for name, (operations, peak) in costs.items()
    }
    bytes_ = float(itemsize) * n * d if stored is None else (itemsize + 4.0) * stored
    name, why = (
        (solver, "requested by name")
        if solver != "auto"
        else _choose(n, d, k, request, stored, costs, room)
        if blocks is None
        else _choose_for_source(k, n, d, bytes_, itemsize, request, costs, room, before)
    )
    if held:
        why += f"; the table is read into memory, {readable_bytes(held)}"
    if processes:
        whose = "1 worker" if processes == 1 else f"{processes} workers"
        why += f"; the memory is that of this process and {whose}"
    operations, peak = costs[name]
    copies = f"makes a dense copy of the sparse table, {readable_bytes(8.0 * n * d)}"
    densifies = name == "svd" and d > n and stored is not None
    plan = Plan(
        solver=name,
        why=f"{why}; {copies}" if densifies else why,
        shape=(n, d),
        n_components=request.asked,
        dtype="float32" if itemsize == 4 else "float64",
        passes=before + _passes(name, k, n, d, itemsize, streamed=blocks is not None),
        operations=operations,
        peak_bytes=int(peak),
    )
    if peak > room:
        what = f" (it {copies})" if densifies else ""
        raise TooLargeError(
            "{what} needs {needed} {beyond}{copies}, and {room} {may}.",
            _way_out(name, n, d, costs, room, filling),
            what=plan.title(),
            beyond="with the table itself" if held else "beyond the table",
            needed=readable_bytes(peak),
            copies=what,
            room=readable_bytes(room),
            may="are free" if memory is None else "may be used",
            solver="covariance" if n >= d else "gram",
        )
    return plan


def krylov_passes(n: int, d: int, itemsize: int, *, in_memory: bool) -> int | None:
    """How often krylov may read a table; None if reading it takes no time.

    With at least as many rows as columns it depends only on shape and type, never on where the
    table is stored; so do the bits of the result. Wider tables in memory are read by columns.
    """
    if n < d:
        return None if in_memory else MOST_PASSES
    return MOST_PASSES if float(n) * d * itemsize >= LARGE_BYTES else None


def _passes(name: str, k: int, n: int, d: int, itemsize: int, *, streamed: bool) -> int:
    """Passes over the table; for one that is not in memory, at most."""
    if name != "krylov":
        return SOLVERS[name].PASSES
    most = krylov_passes(n, d, itemsize, in_memory=not streamed)
    return (
        block_count(k, most) if streamed or most is not None else _krylov_blocks(k)
    ) + krylov.PASSES


def _way_out(
    name: str, n: int, d: int, costs: dict[str, tuple[float, float]], room: int, filling: float
) -> Way:
    if filling and costs[name][1] - filling <= room:
        return "Fill in the missing values beforehand, or use fewer rows."
    if name == "krylov":
        return "Allow more memory, or request fewer components."
    exact = "covariance" if n >= d else "gram"
    if name == "svd" and costs[exact][1] <= room:
        return Remedy.EXACT_SOLVER
    if costs["krylov"][1] > room:
        return "Allow more memory, or use fewer columns."
    return Remedy.FEWER_COMPONENTS


def _cost(
    name: str, n: int, d: int, k: int, itemsize: int, stored: int | None, threads: int
) -> tuple[float, float]:
    """Operations, and bytes beyond the table."""
    precision = itemsize / 4  # float64 products take twice as long
    buffers = 64e6
    if name in ("covariance", "deflation"):
        steps = EIGEN_COST * float(d) ** 3 if name == "covariance" else 60.0 * d * d * 8 * k
        # a sum and a product per thread, one sum that waits, and the total; later three
        squares = 8.0 * max(4.0, 1 + (2 * threads + 1) * itemsize / 8)
        return n * float(d) ** 2 * precision + steps, buffers + squares * d * d
    if name == "gram":
        return (
            float(n) ** 2 * d * precision
            + EIGEN_COST * float(n) ** 3
            + 2.0 * n * d * k * precision,
            buffers + 8.0 * n * n * 4 + 24.0 * d * k,
        )
    if name == "svd":
        side = min(n, d)
        # the centred table, LAPACK's copy of it, its result, and memory for the residuals
        copy = 8.0 * d * (4 * n + k) if d > n else 0.0
        return 8.0 * n * d * side + 20.0 * float(side) ** 3, buffers + 8.0 * side * side * 6 + copy
    most = None if stored else krylov_passes(n, d, itemsize, in_memory=True)
    side, width = min(n, d), block_width(k, most)
    columns = BLOCK * _krylov_blocks(k) if most is None else width * most
    basis = min(side, width * block_count(k, most))
    products = 4.0 * THIN_COST * columns * (4.0 * stored if stored else n * d * precision)
    return (
        products + 4.0 * side * columns**2,
        buffers + 8.0 * (side * (basis + 6 * BLOCK) + 4 * d * (k + BLOCK)) + 24.0 * (stored or 0),
    )


def _sums_at_a_time(threads: int, partitions: int, processes: int) -> float:
    """Number of sums over blocks in memory, here and in the workers of this machine.

    Each thread has a block's sum, a share of it and a product; results wait for their turn, one
    more than there are threads; the tree has a sum on each of three levels. Workers have as many
    in progress, and keep results until adjacent ones are ready, up to sixteen on each level of the
    tree. Measured for 60,000 × 1,500 in 43 partitions: 44 sums in two workers, 64 in four.
    """
    here = 4.0 * threads + 5.0
    return here + 5.0 * processes + min(partitions, 3 * FAN) if processes else here


def _source_cost(
    name: str, n: int, d: int, k: int, itemsize: int, sums: float, blocks: int
) -> tuple[float, float]:
    """Operations, and total bytes: blocks of the table, their sums, and the results."""
    buffers = 64e6 + blocks
    if name != "krylov":
        operations, _ = _cost(name, n, d, k, itemsize, None, 1)
        return operations, buffers + 8.0 * sums * d * d
    most = krylov_passes(n, d, itemsize, in_memory=False)
    width = block_width(k, most)
    columns = min(d, width * block_count(k, most))
    operations = 4.0 * THIN_COST * columns * n * d * (itemsize / 4) + 4.0 * d * columns**2
    return operations, buffers + 8.0 * d * (columns + (sums + 6) * width + 4 * k)


def _krylov_blocks(k: int) -> int:
    """Number of blocks that krylov typically needs for `k` components."""
    return max(6, -(-4 * k // BLOCK))


def _choose(
    n: int,
    d: int,
    k: int,
    request: Request,
    stored: int | None,
    costs: dict[str, tuple[float, float]],
    room: int,
) -> tuple[str, str]:
    """Choose the solver; return it and the reason in one sentence."""
    side = min(n, d)
    exact = "covariance" if n >= d else "gram"
    shape = "at least as many rows as columns" if n >= d else "more columns than rows"
    if 2 * k > side and max(n, d) < 10 * side and side <= 2000 and not stored:
        return "svd", "nearly all components of a small table: nothing is lost by squaring"
    needs_all = isinstance(request.asked, str) or 3 * (k + 10) > side
    operations, peak = costs[exact]
    if needs_all or not (stored or operations > SMALL_OPERATIONS):
        return exact, f"{shape}; exact, in {operations:.0e} operations"
    quick = costs["krylov"][0]
    if operations <= EXACT_SLOWDOWN * quick and peak <= room:
        return exact, f"{shape}; exact, and no iteration would be {EXACT_SLOWDOWN:g} times faster"
    if operations <= EXACT_SLOWDOWN * quick:
        return "krylov", f"an exact solver would need {readable_bytes(peak)} of memory"
    what = "sparse, and stays so" if stored else "both sides large, few components requested"
    return "krylov", f"{what}: {operations / quick:.0f} times fewer operations than an exact solver"


def _choose_for_source(
    k: int,
    n: int,
    d: int,
    bytes_: float,
    itemsize: int,
    request: Request,
    costs: dict[str, tuple[float, float]],
    room: int,
    before: int,
) -> tuple[str, str]:
    """Choose one pass if d × d sums fit; otherwise a number of passes known beforehand."""
    operations, peak = costs["covariance"]
    fits, quick = peak <= room, costs["krylov"][0]
    needs_all = isinstance(request.asked, str) or 3 * (k + 10) > min(n, d)
    if needs_all or (
        fits and (operations <= SMALL_OPERATIONS or operations <= EXACT_SLOWDOWN * quick)
    ):
        once = f"a source of {readable_bytes(bytes_)}, read {'twice' if before else 'once'}"
        return "covariance", f"{once}; exact, in {operations:.0e} operations"
    most = before + _passes("krylov", k, n, d, itemsize, streamed=True)
    often = f"at most {most} passes over a source, {readable_bytes(most * bytes_)}"
    if not fits:
        return "krylov", f"{often}: an exact solver would need {readable_bytes(peak)} of memory"
    fewer = f"{operations / quick:.0f} times fewer operations than an exact solver"
    return "krylov", f"{often}: {fewer}"
