"""Which solver, what it will cost, and why: decided from the shape before any work is done.

Operations are counted as multiplications with additions at the speed of a matrix product. The
reduction of a matrix to tridiagonal form runs at the speed of memory, so its d³ counts
`EIGEN`-fold; that factor and the crossovers were measured by ``benchmarks/crossovers.py``.
"""

from dataclasses import dataclass
from typing import Any

from gnomon.errors import TooLargeError
from gnomon.memory import available_bytes, readable_bytes
from gnomon.pca.krylov import BLOCK, MOST_BLOCKS
from gnomon.pca.rank import Request
from gnomon.records import Record

EIGEN = 14.0  # one unit of d³ in `eigen.py`, in units of one n·d² of the covariance
THIN = 2.0  # how much slower a product with so few columns is, a column
SMALL = 4e10  # operations that nobody waits for (about half a second): be exact
PATIENCE = 3.0  # how many times longer the exact answer may take before krylov is chosen

FILLING = 6.0  # float64 tables that `impute.py` holds at most; 5.3 to 5.6 were measured

ALIASES = {
    "full": "svd",
    "covariance_eigh": "covariance",
    "arpack": "krylov",
    "randomized": "krylov",
}
SOLVER_NAMES = ("auto", "covariance", "gram", "svd", "deflation", "krylov", *ALIASES)


@dataclass(frozen=True)
class Plan(Record):
    """What `PCA.fit` will do, or did.

    Attributes
    ----------
    solver : str
    why : str
    shape : tuple of int
    dtype : str
        Precision of the products.
    passes : int
        Times the table is read.
    operations : float
        Multiplications with additions.
    peak_bytes : int
        Memory beyond the table itself.
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
        """One sentence."""
        return f"PCA of {self.shape[0]:,} × {self.shape[1]:,} {self.dtype} by {self.solver}"

    def lines(self) -> list[tuple[str, str]]:
        """The numbers in words."""
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
) -> Plan:
    """Choose a solver for an (n, d) table.

    `stored` is the number of entries when it is sparse; `filled` when missing values are filled in
    first.
    """
    side = min(n, d)
    k = request.first_guess(side)
    costs = {name: _cost(name, n, d, k, itemsize, stored, threads) for name in _PASSES}
    solver = ALIASES.get(solver, solver)
    room = available_bytes() if memory is None else memory
    filling = FILLING * 8.0 * n * d if filled else 0.0
    costs = {name: (operations, peak + filling) for name, (operations, peak) in costs.items()}
    name, why = (
        (solver, "asked for by name")
        if solver != "auto"
        else _choose(n, d, k, request, stored, costs, room)
    )
    operations, peak = costs[name]
    copies = f"makes a dense copy of the sparse table, {readable_bytes(8.0 * n * d)}"
    densifies = name == "svd" and d > n and stored is not None
    plan = Plan(
        solver=name,
        why=f"{why}; {copies}" if densifies else why,
        shape=(n, d),
        n_components=request.asked,
        dtype="float32" if itemsize == 4 else "float64",
        passes=_PASSES[name] if name != "krylov" else _krylov_blocks(k) + 2,
        operations=operations,
        peak_bytes=int(peak),
    )
    if peak > room:
        what = f" (it {copies})" if densifies else ""
        raise TooLargeError(
            f"{plan.title()} needs {readable_bytes(peak)} beyond the table{what}, and "
            f"{readable_bytes(room)} are free. {_way_out(name, n, d, costs, room, filling)}"
        )
    return plan


def _way_out(
    name: str, n: int, d: int, costs: dict[str, tuple[float, float]], room: int, filling: float
) -> str:
    if filling and costs[name][1] - filling <= room:
        return "Fill the missing values in beforehand, or take fewer rows."
    exact = "covariance" if n >= d else "gram"
    if name == "svd" and costs[exact][1] <= room:
        return f"Use `solver='{exact}'`, which is exact too and copies nothing."
    return "Use fewer components with `solver='krylov'`."


_PASSES = {"covariance": 1, "gram": 3, "svd": 2, "deflation": 1, "krylov": 0}


def _cost(
    name: str, n: int, d: int, k: int, itemsize: int, stored: int | None, threads: int
) -> tuple[float, float]:
    """Operations, and bytes beyond the table."""
    precision = itemsize / 4  # float64 products take twice as long
    buffers = 64e6
    if name in ("covariance", "deflation"):
        steps = EIGEN * float(d) ** 3 if name == "covariance" else 60.0 * d * d * 8 * k
        # a sum and a product for each thread, one sum that waits, and the total; later three
        squares = 8.0 * max(4.0, 1 + (2 * threads + 1) * itemsize / 8)
        return n * float(d) ** 2 * precision + steps, buffers + squares * d * d
    if name == "gram":
        return (
            float(n) ** 2 * d * precision + EIGEN * float(n) ** 3 + 2.0 * n * d * k * precision,
            buffers + 8.0 * n * n * 4 + 24.0 * d * k,
        )
    if name == "svd":
        side = min(n, d)
        # the centred table, LAPACK's copy of it, its answer, and what the residuals take
        copy = 8.0 * d * (4 * n + k) if d > n else 0.0
        return 8.0 * n * d * side + 20.0 * float(side) ** 3, buffers + 8.0 * side * side * 6 + copy
    side, columns = min(n, d), BLOCK * _krylov_blocks(k)
    basis = min(side, BLOCK * max(MOST_BLOCKS, 4 * k // BLOCK))
    products = 4.0 * THIN * columns * (4.0 * stored if stored else n * d * precision)
    return (
        products + 4.0 * side * columns**2,
        buffers + 8.0 * (side * (basis + 6 * BLOCK) + 4 * d * (k + BLOCK)) + 24.0 * (stored or 0),
    )


def _krylov_blocks(k: int) -> int:
    """How many blocks krylov typically needs for `k` components."""
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
    """The solver and the reason, in one sentence."""
    side = min(n, d)
    exact = "covariance" if n >= d else "gram"
    shape = "at least as many rows as columns" if n >= d else "more columns than rows"
    if 2 * k > side and max(n, d) < 10 * side and side <= 2000 and not stored:
        return "svd", "nearly all components of a small table: nothing is lost by squaring"
    needs_all = isinstance(request.asked, str) or 3 * (k + 10) > side
    operations, peak = costs[exact]
    if needs_all or not (stored or operations > SMALL):
        return exact, f"{shape}; exact, in {operations:.0e} operations"
    quick = costs["krylov"][0]
    if operations <= PATIENCE * quick and peak <= room:
        return exact, f"{shape}; exact, and no iteration would be {PATIENCE:g} times faster"
    if operations <= PATIENCE * quick:
        return "krylov", f"an exact solver would need {readable_bytes(peak)} of memory"
    what = "sparse, and stays so" if stored else "both sides large, few components wanted"
    return "krylov", f"{what}: {operations / quick:.0f} times fewer operations than an exact solver"
