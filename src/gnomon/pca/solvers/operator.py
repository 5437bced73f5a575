"""Products with the centred table Z, which is never formed.

Z is (n, d): rows about their mean, columns scaled, rows weighted by √w. Its *side* is the shorter
one: ZᵀZ on columns when n ≥ d, otherwise ZZᵀ on rows. A dense table is read in blocks that are
centred in the cache and used twice while they are there. A sparse one stays sparse:

    Z = D (X − 1μᵀ) F,   Z Q = D (X (F Q) − 1 (μᵀ F Q)),   Zᵀ U = F (Xᵀ (D U) − μ (1ᵀ D U)).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import fold_blocks, map_blocks, row_blocks
from gnomon.inputs import is_sparse
from gnomon.numeric.scaling import Rows, scratch
from gnomon.numeric.view import View
from gnomon.typing import Floats, Matrix, Unsigned32, Vector

TURNED_RANGES = 8  # ranges of rows of a sparse table that is transposed on threads
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
        X, scaling = rows.X, rows.scaling
        factor = np.ones(d) if scaling.factor is None else scaling.factor
        roots = np.ones(n) if rows.roots is None else rows.roots
        data = X.data.astype(rows.work, copy=False)
        if scaling.exponent:
            data = np.ldexp(data, -scaling.exponent)
        if scaling.factor is not None:
            data = data * factor[X.indices].astype(rows.work)
        if rows.roots is not None:
            data = data * np.repeat(roots, np.diff(X.indptr)).astype(rows.work)
        self.by_rows = _Csr(X.indptr.astype(np.uint64), unsigned(X.indices), data)
        self.by_columns = self.by_rows.transposed(d, n_jobs)
        self.mean, self.roots = scaling.mean * factor, roots
        self.uncentred = float((roots @ roots) * (self.mean @ self.mean))

    def forward(self, V: Floats) -> Matrix:
        """Product Z V, shape (n, k)."""
        product: Matrix = self._forward(V, np.dtype(np.float64))
        return product

    def transposed(self, U: Floats) -> Matrix:
        """Product Zᵀ U."""
        product: Matrix = self._transposed(U, np.dtype(np.float64))
        return product

    def apply(self, Q: Floats) -> Matrix:
        """Product on the shorter side."""
        # The product between is rounded, as its factors are.
        short = self.by_rows.data.dtype
        if self.side == self.mean.size:
            return self.transposed(self._forward(Q, short))
        return self.forward(self._transposed(Q, short))

    def apply_columns(self, V: Matrix) -> Matrix:
        """Product ZᵀZ V."""
        return self.transposed(self._forward(V, self.by_rows.data.dtype))

    def _forward(self, V: Floats, dtype: np.dtype[Any]) -> Any:
        return self.by_rows.times(V, self.roots, self.mean @ V, dtype, self.n_jobs)

    def _transposed(self, U: Floats, dtype: np.dtype[Any]) -> Any:
        return self.by_columns.times(U, self.mean, self.roots @ U, dtype, self.n_jobs)


@dataclass(frozen=True)
class _Csr:
    """A CSR array whose products run on threads, with bits independent of threads."""

    indptr: NDArray[np.uint64]
    indices: Unsigned32
    data: Floats

    def times(
        self, Q: Floats, u: Vector, v: Vector, dtype: np.dtype[Any], n_jobs: int | None
    ) -> Any:
        """Product A Q − u vᵀ as `dtype`, for A (n, d), Q (d, k), u (n,) and v (k,)."""
        Q = np.ascontiguousarray(Q, dtype=self.data.dtype)
        n = self.indptr.size - 1
        out = np.empty((n, Q.shape[1]), dtype)

        def run(start: int, stop: int) -> None:
            _csr_times(self.indptr, self.indices, self.data, Q, u, v, out, start, stop)

        map_blocks(run, row_blocks(n, 512), n_jobs=n_jobs)
        return out

    def transposed(self, d: int, n_jobs: int | None) -> "_Csr":
        """The transpose of an array of d columns, also in CSR.

        The entries of a column are in the order of rows. `TURNED_RANGES` ranges of rows know how
        many entries of each column are before theirs, so that they are moved on threads.
        """
        n = self.indptr.size - 1
        ranges = row_blocks(n, max(1, -(-n // TURNED_RANGES)))
        places = np.zeros((len(ranges), d), np.uint64)
        step = ranges[0][1] if ranges else 1

        def count(start: int, stop: int) -> None:
            _count_columns(self.indptr, self.indices, places[start // step], start, stop)

        map_blocks(count, ranges, n_jobs=n_jobs)
        ends = np.cumsum(places.T.ravel(), dtype=np.uint64)
        indptr = np.concatenate([np.zeros(1, np.uint64), ends[len(ranges) - 1 :: len(ranges)]])
        places = np.ascontiguousarray((ends - places.T.ravel()).reshape(d, -1).T)
        indices, data = np.empty_like(self.indices), np.empty_like(self.data)

        def move(start: int, stop: int) -> None:
            _turn(
                self.indptr,
                self.indices,
                self.data,
                places[start // step],
                indices,
                data,
                start,
                stop,
            )

        map_blocks(move, ranges, n_jobs=n_jobs)
        return _Csr(indptr, indices, data)


def unsigned(indices: NDArray[Any]) -> Unsigned32:
    """Column numbers as compiled loops want them, without a copy if possible."""
    return indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)


@kernel
def _count_columns(
    indptr: NDArray[np.uint64],
    indices: Unsigned32,
    counts: NDArray[np.uint64],
    start: int,
    stop: int,
) -> None:
    """Count the entries of every column in rows `start` to `stop`."""
    for entry in range(indptr[start], indptr[stop]):
        counts[indices[entry]] += np.uint64(1)


@kernel
def _turn(
    indptr: NDArray[np.uint64],
    indices: Unsigned32,
    data: Floats,
    places: NDArray[np.uint64],
    rows: Unsigned32,
    turned: Floats,
    start: int,
    stop: int,
) -> None:
    """Move the entries of rows `start` to `stop` to the next places of their columns."""
    for i in range(np.uint64(start), np.uint64(stop)):
        for entry in range(indptr[i], indptr[i + np.uint64(1)]):
            column = indices[entry]
            rows[places[column]] = i
            turned[places[column]] = data[entry]
            places[column] += np.uint64(1)


@kernel
def _csr_times(
    indptr: NDArray[np.uint64],
    indices: Unsigned32,
    data: Floats,
    Q: Floats,
    u: Vector,
    v: Vector,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """Rows `start` to `stop` of A Q − u vᵀ for A in CSR, Q (d, k).

    `SUM_ENTRIES` entries are added in the precision of A, their sums in float64: long sums of few
    distinct values would have an error that grows with their length.
    """
    part, total = np.empty(Q.shape[1], Q.dtype), np.empty(Q.shape[1])
    one, eight = np.uint64(1), np.uint64(8)
    for i in range(np.uint64(start), np.uint64(stop)):
        for c in range(part.size):
            total[c] = -u[i] * v[c]
        at, end = indptr[i], indptr[i + one]
        while at < end:
            until = min(end, at + np.uint64(SUM_ENTRIES))
            for c in range(part.size):
                part[c] = 0.0
            while at + eight <= until:  # eight entries for each load and store of `part`
                a, p = data[at], Q[indices[at]]
                b, q = data[at + one], Q[indices[at + one]]
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
                total[c] += part[c]
        for c in range(part.size):
            out[i, c] = total[c]
