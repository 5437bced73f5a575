"""PROTEST, a permutation test of the similarity of two sets [Peres-Neto & Jackson 2001].

The rows of Y are shuffled, which preserves its shape and destroys the pairing, and the
Procrustes correlation Σσ / (‖X‖‖Y‖) is computed for each shuffle. Shuffles that correlate as well
as the true pairing count against it. The true pairing is one of the possible ones, so the p-value
is (1 + count) / (1 + permutations), and never 0 [Phipson & Smyth 2010].

n rows have n! orders. If those are no more than the requested shuffles, each is used
once: the p-value is exact, and 1/n! is its smallest value. Shuffles drawn with
replacement could fall below it. Three rows have 6 orders, so no p-value reaches 0.05, which raises
a warning; two rows have the same shape in either order, which is refused (`verdict.py`).
"""

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.engine import as_engine
from gnomon.errors import DataError, DataWarning, refuse
from gnomon.inputs import check_choice, check_integer
from gnomon.numeric.scaling import Rows
from gnomon.procrustes.compare import SAMPLE_ROWS, SAMPLE_SEED
from gnomon.procrustes.matched_tables import pair_tables
from gnomon.procrustes.row_pairs import view_arrays, view_pair
from gnomon.procrustes.similarity import Rules, fit_similarity
from gnomon.procrustes.solve import REFLECTIONS, solve_many
from gnomon.procrustes.verdict import refuse_empty_verdict
from gnomon.records import Record
from gnomon.typing import Floats64, Table

SHUFFLES = 8  # shuffles per block, for any number of threads
ALPHA = 0.05  # a warning is raised if few rows cannot reach this p-value
SAME = 1e-10  # smaller differences are ties: rounding must not favour the true pairing

__all__ = ["PermutationTest", "permutation_test", "seed_of", "shuffled_rows"]


@dataclass(frozen=True, eq=False)
class PermutationTest(Record):
    """Comparison of the true pairing with shuffled ones.

    Attributes
    ----------
    correlation : float
        Procrustes correlation of the true pairing, √(1 − disparity).
    p_value : float
        (1 + as_large) / (1 + n_permutations).
    as_large : int
        Shuffles whose correlation is at least as large.
    n_permutations : int
        Shuffles: the requested number, or all other orders of the rows if those are fewer.
        The smallest possible p-value is 1 / (1 + n_permutations).
    rv_p_value, cka_p_value : float
        p-values of RV and of the unbiased CKA of `compare`, from the same shuffles.
    rows : int
        Pairs that were shuffled: all, or a sample if the tables are read in blocks.
    null : array (n_permutations,)
        Correlations of the shuffles.
    """

    correlation: float
    p_value: float
    as_large: int
    n_permutations: int
    rv_p_value: float
    cka_p_value: float
    rows: int
    null: Floats64 = field(repr=False)

    def title(self) -> str:
        """One-line summary."""
        return f"Procrustes correlation {self.correlation:.4f}, p = {self.p_value:.3g}"

    def lines(self) -> list[tuple[str, str]]:
        """Counts of shuffles, and the correlations expected by chance."""
        low, high = np.quantile(self.null, [0.5, 0.95])
        orders = 1 + self.n_permutations
        every = f" (all {orders:,} orders)" if _orders(self.rows, orders) == orders else ""
        return [
            ("as large", f"{self.as_large:,} of {self.n_permutations:,} shuffles{every}"),
            ("by chance", f"median {low:.4f}, 95 % below {high:.4f}"),
        ]


@one_blas_thread()
def permutation_test(
    X: Any,
    Y: Any,
    n_permutations: int = 999,
    *,
    reflection: str = "allow",
    random_state: Any = None,
    n_jobs: int | None = None,
    metric: str = "euclidean",
    id: str | None = None,
    engine: Any = None,
) -> PermutationTest:
    """Test whether `X` (n, dx) and `Y` (n, dy) are paired better than by chance.

    Rows must be exchangeable: not for rows that follow each other in time or space.

    Parameters
    ----------
    X, Y : arrays, dataframes, sources or Dask arrays
        For tables that are not in memory, 10,000 rows drawn at random are tested, always with the
        same seed.
    n_permutations : int, default=999
        Maximum number; if there are fewer other orders of the rows, each is used once.
    reflection : {"allow", "forbid", "force"}
    random_state : int, Generator or None
        Seed of the shuffles, which do not depend on `n_jobs`. None means 0.
    metric, id, engine
        Parameters of `compare`.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import permutation_test
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> permutation_test(X, X[:, ::-1], 99).p_value
    0.01
    """
    count = check_integer("n_permutations", n_permutations, 1)
    check_choice("reflection", reflection, REFLECTIONS)
    workers = as_engine(engine, n_jobs=n_jobs)
    view = view_pair(pair_tables(X, Y, id, workers, metric), workers)
    left, right = view.some_or_all(SAMPLE_ROWS, SAMPLE_SEED)
    if left.shape[1] != right.shape[1] and reflection != "allow":
        refuse("reflection", "be 'allow' where X and Y have different widths", reflection)
    refuse_empty_verdict(len(left), min(left.shape[1], right.shape[1]))
    seed, orders = seed_of(random_state), _orders(len(left), count + 1)
    every, count = orders <= count + 1, min(count, orders - 1)
    if 1 / orders > ALPHA:
        warnings.warn(
            f"{len(left)} rows have {orders} orders, so the p-value cannot be below "
            f"{1 / orders:.2g} for any tables. At least 4 rows are needed to reach {ALPHA}.",
            DataWarning,
            stacklevel=3,
        )
    x, y, correlation = _unit_sets(left, right, reflection, n_jobs)
    null, kernels = np.empty(count), np.empty((2, count))
    k, m = (np.einsum("ij,ij->i", z, z) for z in (x, y))

    def block(start: int, stop: int) -> None:
        M = np.zeros((stop - start, x.shape[1], max(x.shape[1], y.shape[1])))
        for at in range(start, stop):
            order = _order(at + 1, len(y)) if every else shuffled_rows(seed, at, len(y))
            M[at - start, :, : y.shape[1]] = x.T @ y[order]
            kernels[:, at] = _kernels(M[at - start], k, m[order])
        null[start:stop] = _traces(M, reflection, left.shape[1] == right.shape[1])

    map_blocks(block, row_blocks(count, SHUFFLES), n_jobs=n_jobs)
    as_large = int(np.count_nonzero(null >= correlation - SAME))
    p_value = (1 + as_large) / (1 + count)
    true = _kernels(x.T @ y, k, m)
    same = kernels >= true[:, None] - SAME * true[0]
    also = (1 + np.count_nonzero(same, axis=1)) / (1 + count)
    rv, cka = also.tolist()
    return PermutationTest(correlation, p_value, as_large, count, rv, cka, len(left), null)


def _kernels(M: Floats64, k: Floats64, m: Floats64) -> Floats64:
    """Terms of RV and of the unbiased CKA that depend on the order of the rows (see `compare`).

    `M` is XᵀY, and `k` and `m` are squared lengths of the rows of X and Y in the same order.
    """
    shared, n = float(np.sum(M * M)), len(k)
    return np.array([shared, shared - float(k @ m) * n / max(1, n - 2)])


def _orders(n: int, most: int) -> int:
    """n!, or a number above `most` if n! is larger."""
    return math.factorial(n) if n < 20 else max(most + 1, math.factorial(20))


def _order(number: int, n: int) -> list[int]:
    """One of the n! orders of n rows, by its number; 0 is the original order."""
    left, order = list(range(n)), []
    for size in range(n - 1, -1, -1):
        at, number = divmod(number, math.factorial(size))
        order.append(left.pop(at))
    return order


def shuffled_rows(seed: int, at: int, n: int) -> NDArray[np.int64]:
    """Shuffle number `at` of n rows."""
    return np.random.default_rng([seed, at]).permutation(n)


def _traces(M: Floats64, reflection: str, same_width: bool) -> Floats64:
    if reflection == "allow":  # no vectors are needed
        total: Floats64 = np.linalg.svd(M, compute_uv=False).sum(axis=1)
        return total
    _, trace, _ = solve_many(
        M, reflection=reflection, prior=None, floors=np.zeros(len(M)), same_width=same_width
    )
    return np.maximum(trace, 0.0)


def _unit_sets(
    X: Table, Y: Table, reflection: str, n_jobs: int | None
) -> tuple[Floats64, Floats64, float]:
    """Both sets centred, with norm 1, in float64, and their correlation."""
    view = view_arrays(X, Y, n_jobs=n_jobs).in_float64()
    found = fit_similarity(view.moments(), Rules(reflection=reflection))
    for name, sq in (("X", found.sq_x), ("Y", found.sq_y)):
        if sq == 0:
            raise DataError(f"{name} has norm 0 (all rows are the same point): it has no shape.")
    x, y = (
        Rows(Z, scaling).read(0, len(Z)) / np.sqrt(sq)
        for Z, scaling, sq in zip((X, Y), found.scalings(), (found.sq_x, found.sq_y), strict=True)
    )
    return x, y, min(1.0, max(found.rotation.trace, 0.0) / found.norms)


def seed_of(random_state: Any) -> int:
    """Seed that all shuffles are derived from."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    try:
        generator = np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        must = "be None, a non-negative integer or a NumPy generator"
        refuse("random_state", must, random_state, kind=True)
    return int(generator.integers(2**63))
