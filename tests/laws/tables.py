"""Tables, fitted models and frames that the laws are tried on."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gnomon import PCA

Floats = NDArray[np.float64]

WHOLE = ("covariance", "gram", "svd")  # know every eigenvalue
EXACT = (*WHOLE, "deflation")  # "krylov" stops at a tolerance
ROUNDING = 1e-9  # of the size of a table; tables are at most 1e4 times as far from zero
SEEDS = st.integers(0, 2**32 - 1)


class Fitted(NamedTuple):
    """A table and its model, with the letters of the notes; the centring is NumPy's own.

    `X` (n, p) holds the centred rows, `W` (p, ℓ) the components as columns, `sigma` (p, p) is the
    covariance with the divisor n.
    """

    table: Floats
    model: PCA
    X: Floats
    W: Floats
    sigma: Floats

    def close(self, a: Any, b: Any, power: int = 1) -> None:
        """Equal up to rounding of numbers that are as large as the table, to some power."""
        size = float(np.linalg.norm(self.X)) ** power
        np.testing.assert_allclose(a, b, rtol=0, atol=ROUNDING * size)


def fit(table: Floats, k: int | None = None, solver: str = "covariance") -> Fitted:
    """The model with the notes' divisor n, beside what NumPy says of the table."""
    model = PCA(k, ddof=0, solver=solver).fit(table)
    X = table - table.mean(axis=0)
    return Fitted(table, model, X, model.components_.T, X.T @ X / len(X))


@st.composite
def tables(draw: Any, *, least_rank: int = 2, wide: bool | None = None) -> tuple[Floats, int]:
    """A table of any shape, unit and mean, and its rank about the mean; no two variances tie."""
    rank = draw(st.integers(least_rank, 5))
    n = draw(st.integers(rank + 1, 14))
    least, most = (n + 1, 20) if wide else (rank, n - 1 if wide is False else 8)
    d = draw(st.integers(least, max(least, most)))
    random = np.random.default_rng(draw(SEEDS))
    rows = random.normal(size=(n, rank))
    U = np.linalg.qr(rows - rows.mean(axis=0))[0]
    V = np.linalg.qr(random.normal(size=(d, rank)))[0]
    spread = np.cumprod(random.uniform(0.4, 0.85, rank))
    mean = random.normal(size=d) * draw(st.sampled_from([0.0, 1.0, 1e3]))
    return (U * spread @ V.T + mean) * 10.0 ** random.uniform(-3, 3), rank


@st.composite
def models(
    draw: Any,
    *,
    solvers: tuple[str, ...] = EXACT,
    within_rank: bool = False,
    spare: int = 0,
    wide: bool | None = None,
) -> Fitted:
    """A fitted model with some of its components, `spare` of the rank left over."""
    table, rank = draw(tables(least_rank=2 + spare, wide=wide))
    most = rank - spare if within_rank or spare else min(table.shape)
    return fit(table, draw(st.integers(1, most)), draw(st.sampled_from(solvers)))


def frames(d: int, k: int, count: int, seed: int = 0) -> Floats:
    """Random matrices with orthonormal columns, (count, d, k)."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).normal(size=(count, d, k)))
    return np.asarray(Q * np.sign(np.einsum("cii->ci", R))[:, None, :])
