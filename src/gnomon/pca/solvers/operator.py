"""Products with the centred table Z, which is never formed.

Z is (n, d): rows about their mean, columns scaled, rows weighted by √w. Its *side* is the shorter
one: ZᵀZ on columns when n ≥ d, otherwise ZZᵀ on rows. A dense table is read in blocks that are
centred in the cache and used twice while they are there. A sparse one stays sparse:

    Z = D (X − 1μᵀ) F,   Z Q = D (X (F Q) − 1 (μᵀ F Q)),   Zᵀ U = F (Xᵀ (D U) − μ (1ᵀ D U)).
"""

from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import fold_blocks, map_blocks, row_blocks
from gnomon.inputs import is_sparse
from gnomon.numeric.scaling import Rows, scratch
from gnomon.numeric.view import View
from gnomon.typing import Floats, Matrix, Table, Unsigned32, Vector

SUM_ENTRIES = 256  # entries per float32 sum: long sums are less accurate


class Operator(Protocol):
    """Σ times its divisor, on the shorter side and on the columns' side."""

    side: int
    uncentred: float  # size of the products before the mean is subtracted

    def apply(self, Q: Matrix) -> Matrix:
        """ZᵀZ Q or ZZᵀ Q, whichever is on the shorter side."""

    def apply_columns(self, V: Matrix) -> Matrix:
        """ZᵀZ V, always on the columns' side, shape (d, k)."""

    def transposed(self, U: Matrix) -> Matrix:
        """Zᵀ U, shape (d, k)."""


def operator_for(view: View, sq_deviation: float = 0.0) -> Operator:
    """The operator of a centred table (`View.centred`), whose Σ‖z‖² is `sq_deviation` if known."""
    rows = view.array
    if rows is not None and is_sparse(rows.X):
        return SparseOperator(rows, view.n_jobs)
    if rows is not None and view.shape[0] < view.shape[1]:
        return WideOperator(rows, view.n_jobs)
    return TallOperator(view, sq_deviation)


class TallOperator:
    """Dense, at least as many rows as columns: blocks of rows B, ZᵀZ Q = Σ Bᵀ(B Q).

    A table of any shape that is not in memory is multiplied in the same way, part by part on
    its engine.

    The rows are read about their mean μ in the working type, which is off by a rounding
    δ; its known contribution W δδᵀ is subtracted from the products. Where μ is no larger than
    the rows' deviations from it, the table itself is multiplied, with δ = μ: reading it again costs
    as much as the products, and nothing large is subtracted then.
    """

    def __init__(self, view: View, sq_deviation: float = 0.0) -> None:
        (n, self.side), scaling, self.roots = view.shape, view.scaling, view.roots
        self.weight = float(n) if self.roots is None else float(self.roots @ self.roots)
        about, self.delta = scaling.about_rounded_mean()
        self.plain, self.uncentred = False, 0.0
        plain = scaling.as_they_are(view.dtype)
        if plain is not None and self.roots is None:
            moment = n * float(scaling.mean @ scaling.mean)
            if moment <= sq_deviation:
                about, self.delta, self.uncentred, self.plain = plain, scaling.mean, moment, True
        self.view = replace(view, scaling=about)

    def apply(self, Q: Matrix) -> Matrix:
        """Product on the shorter side."""
        total: Matrix = self.view.total(partial(_image, plain=self.plain, Q=Q), np.add)
        image: Matrix = total - self.weight * np.outer(self.delta, self.delta @ Q)
        return image

    def apply_columns(self, V: Matrix) -> Matrix:
        """Product ZᵀZ V."""
        return self.apply(V)

    def transposed(self, U: Matrix) -> Matrix:
        """Product Zᵀ U."""
        rows = self.view.array
        assert rows is not None  # only tables in memory use the rows' side
        total = np.zeros((self.side, U.shape[1]))
        read = rows.view if self.plain else rows.read

        def product(start: int, stop: int) -> Any:
            return read(start, stop).T @ U[start:stop].astype(rows.work)

        blocks = row_blocks(rows.shape[0], rows.scaling.block_rows())
        fold_blocks(product, blocks, total.__iadd__, n_jobs=self.view.n_jobs)
        roots = np.ones(rows.shape[0]) if self.roots is None else self.roots
        total -= np.outer(self.delta, roots @ U)
        return total


def _image(rows: Rows, _: Any, n_jobs: int | None, *, plain: bool, Q: Matrix) -> Matrix:
    """Product BᵀB Q for the rows B as read, or as stored in memory if `plain`."""
    work, total = Q.astype(rows.work, copy=False), np.zeros(Q.shape)
    read, step = rows.view if plain else rows.read, rows.scaling.block_rows(SUM_ENTRIES)

    def product(start: int, stop: int) -> Any:
        buffer, image = scratch((step, rows.shape[1]), rows.work), None
        for at in range(start, stop, step):
            B = read(at, min(at + step, stop), buffer)
            part = B.T @ (B @ work)
            image = part if image is None else np.add(image, part, out=image)
        return image

    blocks = row_blocks(rows.shape[0], rows.range_rows(4096))
    fold_blocks(product, blocks, total.__iadd__, n_jobs=n_jobs)
    return total


class WideOperator:
    """Dense, more columns than rows: blocks of columns C, ZZᵀ Q = Σ C(Cᵀ Q)."""

    def __init__(self, rows: Rows, n_jobs: int | None) -> None:
        self.rows, self.n_jobs = rows, n_jobs
        self.side, self.uncentred = rows.shape[0], 0.0
        self.blocks = row_blocks(rows.shape[1], rows.block_columns())

    def apply(self, Q: Matrix) -> Matrix:
        """Product on the shorter side."""
        rows, work, total = self.rows, Q.astype(self.rows.work, copy=False), np.zeros(Q.shape)

        def product(start: int, stop: int) -> Any:
            C = rows.read_columns(start, stop, scratch((rows.shape[0], stop - start), rows.work))
            return C @ (C.T @ work)

        fold_blocks(product, self.blocks, total.__iadd__, n_jobs=self.n_jobs)
        return total

    def apply_columns(self, V: Matrix) -> Matrix:
        """Product ZᵀZ V."""
        rows, work = self.rows, V.astype(self.rows.work)
        scores = np.zeros((rows.shape[0], V.shape[1]))

        def product(start: int, stop: int) -> Any:
            return rows.read_columns(start, stop) @ work[start:stop]

        fold_blocks(product, self.blocks, scores.__iadd__, n_jobs=self.n_jobs)
        return self.transposed(scores)

    def transposed(self, U: Matrix) -> Matrix:
        """Product Zᵀ U."""
        rows, work = self.rows, U.astype(self.rows.work)

        image = np.empty((rows.shape[1], U.shape[1]))

        def product(start: int, stop: int) -> None:
            C = rows.read_columns(start, stop, scratch((rows.shape[0], stop - start), rows.work))
            image[start:stop] = C.T @ work

        map_blocks(product, self.blocks, n_jobs=self.n_jobs)
        return image


class SparseOperator:
    """Sparse: the table and its transpose in CSR, the mean subtracted from the products."""

    def __init__(self, rows: Rows, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        n, d = rows.shape
        self.side = min(n, d)
        scaling = rows.scaling
        factor = np.ones(d) if scaling.factor is None else scaling.factor
        roots = np.ones(n) if rows.roots is None else rows.roots
        scaled = sp.csr_array(rows.X, dtype=rows.work, copy=True)
        if scaling.exponent:
            scaled.data = np.ldexp(scaled.data, -scaling.exponent)
        if scaling.factor is not None:
            scaled.data *= factor[scaled.indices].astype(rows.work)
        if rows.roots is not None:
            scaled.data *= np.repeat(roots, np.diff(scaled.indptr)).astype(rows.work)
        self.by_rows, self.by_columns = _Csr(scaled), _Csr(sp.csr_array(scaled.T))
        self.mean, self.roots = scaling.mean * factor, roots
        self.uncentred = float((roots @ roots) * (self.mean @ self.mean))

    def forward(self, V: Matrix) -> Matrix:
        """Product Z V, shape (n, k)."""
        return self.by_rows.times(V, self.roots, self.mean @ V, self.n_jobs)

    def transposed(self, U: Matrix) -> Matrix:
        """Product Zᵀ U."""
        return self.by_columns.times(U, self.mean, self.roots @ U, self.n_jobs)

    def apply(self, Q: Matrix) -> Matrix:
        """Product on the shorter side."""
        if self.side == self.mean.size:
            return self.transposed(self.forward(Q))
        return self.forward(self.transposed(Q))

    def apply_columns(self, V: Matrix) -> Matrix:
        """Product ZᵀZ V."""
        return self.transposed(self.forward(V))


class _Csr:
    """Product of a CSR array and a dense block on threads, with bits independent of threads."""

    def __init__(self, array: Table) -> None:
        self.indptr = array.indptr.astype(np.uint64)
        self.indices = array.indices.astype(np.uint32)
        self.data = array.data
        self.n_rows = array.shape[0]

    def times(self, Q: Matrix, u: Vector, v: Vector, n_jobs: int | None) -> Matrix:
        """Product A Q − u vᵀ, for A (n, d), Q (d, k), u (n,) and v (k,)."""
        Q = np.ascontiguousarray(Q, dtype=self.data.dtype)
        out = np.empty((self.n_rows, Q.shape[1]))

        def run(start: int, stop: int) -> None:
            _csr_times(self.indptr, self.indices, self.data, Q, u, v, out, start, stop)

        map_blocks(run, row_blocks(self.n_rows, 512), n_jobs=n_jobs)
        return out


@kernel
def _csr_times(
    indptr: NDArray[np.uint64],
    indices: Unsigned32,
    data: Floats,
    Q: Floats,
    u: Vector,
    v: Vector,
    out: Matrix,
    start: int,
    stop: int,
) -> None:
    """Rows `start` to `stop` of A Q − u vᵀ for A in CSR, Q (d, k).

    `SUM_ENTRIES` entries are added in the precision of A, their sums in float64: long sums of few
    distinct values would have an error that grows with their length.
    """
    part = np.empty(Q.shape[1], Q.dtype)
    one, eight = np.uint64(1), np.uint64(8)
    for i in range(np.uint64(start), np.uint64(stop)):
        for c in range(part.size):
            out[i, c] = -u[i] * v[c]
        at, end = indptr[i], indptr[i + 1]
        while at < end:
            until = min(end, at + np.uint64(SUM_ENTRIES))
            for c in range(part.size):
                part[c] = 0.0
            while at + eight <= until:  # fewer loads and stores of `part`: half the time
                a, p = data[at], Q[indices[at]]
                b, q = data[at + np.uint64(1)], Q[indices[at + np.uint64(1)]]
                d, r = data[at + np.uint64(2)], Q[indices[at + np.uint64(2)]]
                e, s = data[at + np.uint64(3)], Q[indices[at + np.uint64(3)]]
                f, t = data[at + np.uint64(4)], Q[indices[at + np.uint64(4)]]
                g, w = data[at + np.uint64(5)], Q[indices[at + np.uint64(5)]]
                h, x = data[at + np.uint64(6)], Q[indices[at + np.uint64(6)]]
                j, y = data[at + np.uint64(7)], Q[indices[at + np.uint64(7)]]
                for c in range(part.size):
                    part[c] += (a * p[c] + b * q[c] + d * r[c] + e * s[c]) + (
                        f * t[c] + g * w[c] + h * x[c] + j * y[c]
                    )
                at += eight
            while at < until:
                a, p = data[at], Q[indices[at]]
                for c in range(part.size):
                    part[c] += a * p[c]
                at += one
            for c in range(part.size):
                out[i, c] += part[c]
