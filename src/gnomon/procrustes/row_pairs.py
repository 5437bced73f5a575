"""Two tables read in parallel, wherever they are stored: their moments, and numbers per row.

A `PairView` is a pair of tables, a `Scaling` of each, and the engine that reads them. Work
is a function of a range of rows of a `Pair`, which is two arrays: the whole tables if both
are in memory, or one part of them. Ranges depend only on a part's shape, and parts on the columns
of both tables (`engine.paired_tables`). Ranges are added up within their part, in order, and parts
in the tree of the engines. So arrays, memory maps and files give the same bits, on any number of
threads or workers.

A `numeric.view.View` gives a function whole parts, which divide themselves; a `PairView` divides
both tables into ranges itself. So threads share the ranges of all parts of arrays in memory, and a
fit of a few rows calls its work directly, without an engine's tasks.

`PairView.moments` are the tables' `CrossMoments`, from one reading of both.
Tables of up to `narrow.WIDEST` columns go through compiled loops, wider ones through BLAS.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import fold_blocks, quiet, row_blocks
from gnomon.engine import Block, Engine, LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.engine.paired_tables import Both, PairedSource, called, pair_by_row
from gnomon.engine.tree_sum import Tree
from gnomon.inputs import Found, find_bad_values, refuse_bad_values, refuse_found
from gnomon.numeric.moments import FLUSH_ROWS, RANGE_NUMBERS, Moments, within_range
from gnomon.numeric.roundoff import ROUNDINGS
from gnomon.numeric.scaling import (
    Rows,
    Scaling,
    ShiftSample,
    amplitude,
    choose_scaling,
    exponent_for,
    sample_size,
    scratch,
)
from gnomon.numeric.view import rows_at, sample_rows
from gnomon.procrustes.cross_moments import CrossMoments
from gnomon.procrustes.narrow import BLOCK, WIDEST, column_block, pair_sums
from gnomon.typing import Floats64, Table

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Weights = Floats64 | None
Shifts = tuple[NDArray[Any] | None, NDArray[Any] | None]
Parts = list[tuple[int, int]]  # rows from, to

ONES = np.ones(BLOCK)
WIDE = np.dtype(np.float64)
LEAST_SQUARE = 1e-280  # a sum of squares below has lost digits to underflow

__all__ = [
    "Pair",
    "PairView",
    "RowWork",
    "Work",
    "draw_rows",
    "pair_block_rows",
    "view_arrays",
    "view_pair",
]


@dataclass(frozen=True)
class Pair:
    """X (n, dx) and Y (n, dy) as arrays, with their scalings."""

    left: Rows
    right: Rows

    @property
    def is_narrow(self) -> bool:
        """Whether the compiled loops are used."""
        return bool(max(self.left.X.shape[1], self.right.X.shape[1]) <= WIDEST)


class Work(Protocol[T_co]):
    """Work on a range of rows; picklable."""

    def step(self, pair: Pair, rows: int, /) -> int:
        """Rows per range, in a part of `rows` rows."""

    def __call__(self, pair: Pair, weights: Weights, start: int, stop: int, /) -> T_co:
        """Compute the result of rows `start` to `stop`; `weights` are those of all rows."""


class RowWork(Protocol):
    """Work on every row of a range; picklable."""

    def step(self, pair: Pair, rows: int, /) -> int:
        """Rows per range, in a part of `rows` rows."""

    def __call__(
        self, pair: Pair, weights: Weights, start: int, stop: int, out: Floats64, /
    ) -> None:
        """Write the numbers of rows `start` to `stop` into `out` (lines, stop − start)."""


OfPair = Callable[[Pair, Weights, int | None], T]  # rows of a pair, their weights, threads


def draw_rows(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """Draw at most `most` of n rows with a seed, ascending."""
    return np.sort(np.random.default_rng(seed).choice(n, min(most, n), replace=False))


@dataclass(frozen=True)
class PairView:
    """Two tables, their scalings, and the engine that reads them (see the module).

    Attributes
    ----------
    table : PairedSource
    left, right : Scaling
    engine : Engine
    names : array (dx,) or None
        Column names of X, for error messages.
    """

    table: PairedSource
    left: Scaling
    right: Scaling
    engine: Engine
    names: NDArray[Any] | None = None

    @property
    def rows(self) -> int:
        """Number of pairs of rows."""
        return self.table.rows

    @property
    def is_float64(self) -> bool:
        """Whether products of both tables are in float64."""
        return self.left.work == self.right.work == WIDE

    def in_units_of(self, moments: CrossMoments) -> "PairView":
        """Copy that reads both tables with the exponents of `moments`."""
        return self._with_exponents(moments.x.exponent, moments.y.exponent)

    def in_float64(self) -> "PairView":
        """Copy whose products are in float64."""
        left, right = (replace(side, work=WIDE) for side in (self.left, self.right))
        return replace(self, left=left, right=right)

    def total(self, work: Work[T], weights: Weights = None) -> T:
        """Add up `work` over all ranges, in a fixed order."""
        array = self._array
        if array is not None:
            return _total(work, array, weights, self._n_jobs, self._parts)
        function, beside = self._of_block(partial(_total, work)), self._beside(weights)
        total: T = self.engine.reduce(function, self.table, operator.add, beside=beside)
        return total

    def each_row(self, work: RowWork, weights: Weights = None, lines: int = 1) -> Floats64:
        """Compute `lines` numbers for every row, shape (lines, n)."""
        array = self._array
        if array is not None:
            return _each_row(work, lines, array, weights, self._n_jobs, self._parts)
        out, done = np.empty((lines, self.rows)), 0

        def add(part: Floats64) -> None:
            nonlocal done
            out[:, done : done + part.shape[1]] = part
            done += part.shape[1]

        function = self._of_block(partial(_each_row, work, lines))
        self.engine.write(function, self.table, add, beside=self._beside(weights))
        return out

    def row_total(self, values: Floats64, weights: Weights = None) -> float:
        """Weighted sum of one number per row, part by part, with the bits of `total`."""
        tree: Tree[float] = Tree(operator.add)
        for start, stop in self._parts:
            own = None if weights is None else weights[start:stop]
            tree.add(sum_rows(values[start:stop], own))
        return tree.total()

    def rows_at(self, at: NDArray[np.intp]) -> Both:
        """Unscaled rows of both tables, by their ascending numbers."""
        both: Both = rows_at(self.table, self.engine, at)
        return both

    def some_or_all(self, most: int, seed: int) -> Both:
        """All rows of tables in memory; otherwise at most `most` rows, drawn with a seed."""
        array = self.table.array()
        if array is not None:
            return array
        n = self.rows
        found = self.rows_at(draw_rows(n, most, seed))
        if not all(np.isfinite(Z).all() for Z in found):
            self.refuse_bad_values()
        return found

    def moments(self, weights: Weights = None) -> CrossMoments:
        """Count, means, column variances and Σ w (x − μₓ)(y − μᵧ)ᵀ."""
        found = _Sums(self, self.total(_PAIR_SUMS, weights), weights)
        finite = found.finite
        if not finite:
            self.refuse_bad_values()
        if not finite or found.vanished:  # too large or small to square
            view = self._measured()
            found = _Sums(view, view.total(_PAIR_SUMS, weights), weights)
        return found.about_the_means()

    def refuse_bad_values(self) -> None:
        """Raise an error that names the row, and the file, of the first bad value."""
        tables = (self.table.left, "X"), (self.table.right, "Y")
        array = self.table.array()
        if array is not None:
            for side, (Z, (table, name)) in enumerate(zip(array, tables, strict=True)):
                refuse_bad_values(Z, names=self._names_of(side), table=called(table, name))
            return
        found = self.engine.map(_bad_values, self.table)
        for side, (table, name) in enumerate(tables):
            refuse_found(
                [part[side] for part in found],
                names=self._names_of(side),
                table=called(table, name),
                origin=partial(self._origin, side),
            )

    @property
    def _n_jobs(self) -> int | None:
        """Threads for work in one process."""
        return self.engine.n_jobs if isinstance(self.engine, LocalEngine) else 1

    @cached_property
    def _array(self) -> Pair | None:
        """Both tables as arrays, if they are in memory and processed in this process."""
        both = self.table.array() if self.engine.is_local else None
        return None if both is None else Pair(Rows(both.X, self.left), Rows(both.Y, self.right))

    def _names_of(self, side: int) -> NDArray[Any] | None:
        names = self.table.names_of(side)
        return self.names if names is None and side == 0 else names

    def _beside(self, weights: Weights) -> Sequence[Any] | None:
        if weights is None:
            return None
        return [weights[start:stop] for start, stop in self._parts]

    def _of_block(self, of: OfPair[T]) -> "_OfBlock":
        """Wrap `of` as a function of blocks."""
        return _OfBlock(self.left, self.right, of, self._n_jobs)

    @cached_property
    def _parts(self) -> Parts:
        return [(part.start, part.stop) for part in self.table.partitions]

    def _origin(self, side: int, at: int, row: int) -> tuple[str, int]:
        return self.table.origin(self.table.partitions[at], side, row)

    def _with_exponents(self, x: int, y: int) -> "PairView":
        left, right = replace(self.left, exponent=x), replace(self.right, exponent=y)
        return replace(self, left=left, right=right)

    def amplitudes(self) -> Floats64:
        """Largest |x − shift| and |y − shift| of the whole tables, in one pass."""
        array = self._array
        if array is not None:
            return np.array(_largest(array, None, self._n_jobs))
        parts = self.engine.map(self._of_block(_largest), self.table)
        largest: Floats64 = np.max(parts, axis=0)
        return largest

    def _measured(self) -> "PairView":
        """Copy with exponents for the largest numbers of the whole tables."""
        x, y = self.amplitudes()
        return self._with_exponents(
            exponent_for(float(x), self.left.work), exponent_for(float(y), self.right.work)
        )


def view_arrays(
    X: Table,
    Y: Table,
    weights: Weights = None,
    *,
    shifts: Shifts = (None, None),
    n_jobs: int | None = None,
) -> PairView:
    """View of two arrays (`view_pair`), on threads of this process."""
    left, right = ArraySource(X, checked=False), ArraySource(Y, checked=False)
    return view_pair(pair_by_row(left, right), LocalEngine(n_jobs), weights, shifts=shifts)


def view_pair(
    table: PairedSource,
    engine: Engine,
    weights: Weights = None,
    *,
    shifts: Shifts = (None, None),
    names: NDArray[Any] | None = None,
) -> PairView:
    """View of `table` with shifts and exponents chosen from a sample of its rows.

    Only a few parts are read, however large the tables are. Rows of weight 0 are left out.
    """
    rows, own = sample_rows(table, engine, weights, sample_size(max(table.widths)))
    work = WIDE if max(table.widths) <= WIDEST else None
    left, right = (
        choose_scaling(side.dtype, ShiftSample(Z, own), shift, work, weights)
        for side, Z, shift in zip((table.left, table.right), rows, shifts, strict=True)
    )
    return PairView(table, left, right, engine, names)


def pair_block_rows(pair: Pair) -> int:
    """Number of rows of both tables that stay in the cache."""
    return min(pair.left.scaling.block_rows(), pair.right.scaling.block_rows())


def sum_rows(values: Floats64, weights: Weights) -> float:
    """Weighted sum of the numbers of a part's rows."""
    return float(values.sum() if weights is None else weights @ values)


@dataclass(frozen=True)
class _OfBlock:
    """A function of a pair as a function of blocks."""

    left: Scaling
    right: Scaling
    function: OfPair[Any]
    n_jobs: int | None

    def __call__(self, block: Block) -> Any:
        both: Any = block.X
        pair = Pair(Rows(both.X, self.left), Rows(both.Y, self.right))
        return self.function(pair, block.beside, self.n_jobs)


def _ranges(work: Work[Any] | RowWork, pair: Pair, parts: Parts | None) -> Parts:
    """Ranges of the parts of a pair, which is a single part by default."""
    return [
        (first + start, first + stop)
        for first, last in parts or [(0, pair.left.shape[0])]
        for start, stop in row_blocks(last - first, work.step(pair, last - first))
    ]


def _total(
    work: Work[T], pair: Pair, weights: Weights, n_jobs: int | None, parts: Parts | None = None
) -> T:
    """Add up ranges within their part, and the parts in the engines' tree."""
    ranges = _ranges(work, pair, parts)
    if len(ranges) == 1:
        return quiet(partial(work, pair, weights))(*ranges[0])
    ends = {last for _, last in parts or ranges[-1:]}
    tree: Tree[T] = Tree(operator.add)
    found: list[T] = []  # sum of the current part
    done = iter(ranges)

    def add(value: T) -> None:
        if found:
            found[0] += value  # type: ignore[operator]  # sums
        else:
            found.append(value)
        if next(done)[1] in ends:
            tree.add(found.pop())

    fold_blocks(quiet(partial(work, pair, weights)), ranges, add, n_jobs=n_jobs)
    return tree.total()


def _each_row(
    work: RowWork,
    lines: int,
    pair: Pair,
    weights: Weights,
    n_jobs: int | None,
    parts: Parts | None = None,
) -> Floats64:
    out = np.empty((lines, pair.left.shape[0]))

    def run(start: int, stop: int) -> None:
        work(pair, weights, start, stop, out[:, start:stop])

    ranges = _ranges(work, pair, parts)
    # Counting CPUs takes as long as a small fit.
    threads = 1 if len(ranges) == 1 else n_jobs
    fold_blocks(quiet(run), ranges, _nothing, n_jobs=threads)
    return out


def _nothing(_: object) -> None:
    pass


@dataclass(frozen=True)
class _PairSums:
    """Compute Σwx, Σwy, Σwx², Σwy² and Σwxyᵀ about the shifts, concatenated."""

    def step(self, pair: Pair, rows: int) -> int:
        if pair.is_narrow:
            return BLOCK
        widest = max(pair.left.shape[1], pair.right.shape[1])
        longest = FLUSH_ROWS * max(1, -(-RANGE_NUMBERS // (FLUSH_ROWS * widest)))
        return min(side.scaling.range_rows(rows, longest) for side in (pair.left, pair.right))

    def __call__(self, pair: Pair, weights: Weights, start: int, stop: int) -> Floats64:
        return (_narrow_sums if pair.is_narrow else _wide_sums)(pair, weights, start, stop)


_PAIR_SUMS = _PairSums()


def _narrow_sums(pair: Pair, weights: Weights, start: int, stop: int) -> Floats64:
    columns = column_block(pair.left, pair.right, start, stop)
    w = ONES[: stop - start] if weights is None else weights[start:stop]
    dx, d = pair.left.X.shape[1], len(columns)
    out = np.empty(2 * d + dx * (d - dx))
    pair_sums(columns, dx, w, out)
    return out


def _wide_sums(pair: Pair, weights: Weights, start: int, stop: int) -> Floats64:
    left, right = pair.left, pair.right
    dx, dy, step = left.shape[1], right.shape[1], pair_block_rows(pair)
    x_block = scratch((step, dx), left.work)
    y_block = scratch((step, dy), right.work, slot=1)
    product = np.empty((dx, dy), np.result_type(left.work, right.work))
    total = np.zeros(2 * (dx + dy) + dx * dy)
    cross = total[2 * (dx + dy) :].reshape(dx, dy)
    for at in range(start, stop, step):
        end = min(at + step, stop)
        a, b = left.read(at, end, x_block), right.read(at, end, y_block)
        roots = np.ones(end - at)
        if weights is not None:
            roots = np.sqrt(weights[at:end])
            a *= roots[:, None].astype(a.dtype)
            b *= roots[:, None].astype(b.dtype)
        total[:dx] += roots.astype(a.dtype) @ a
        total[dx : dx + dy] += roots.astype(b.dtype) @ b
        total[dx + dy : 2 * dx + dy] += np.einsum("ij,ij->j", a, a)
        total[2 * dx + dy : 2 * (dx + dy)] += np.einsum("ij,ij->j", b, b)
        np.matmul(a.T, b, out=product)
        cross += product
    return total


def _largest(pair: Pair, _: Weights, n_jobs: int | None) -> tuple[float, float]:
    return amplitude(pair.left, n_jobs), amplitude(pair.right, n_jobs)


def _bad_values(block: Block) -> list[tuple[Found, Found]]:
    return [*map(find_bad_values, block.X)]


class _Sums:
    """Result of `_PairSums` for a whole pair."""

    def __init__(self, view: PairView, sums: Floats64, weights: Weights) -> None:
        self.view, self.sums = view, sums
        self.n = view.rows if weights is None else int(np.count_nonzero(weights))
        self.weight = float(self.n) if weights is None else float(weights.sum())
        self.dx, self.dy = view.table.widths

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.sums).all())

    @property
    def vanished(self) -> bool:
        """Whether a table's squares underflow, though it is not zero."""
        first = self.dx + self.dy
        squares = self.sums[first : 2 * first]
        if squares.min() >= LEAST_SQUARE:
            return False
        small = [
            scaling.exponent == 0 and side.max() < LEAST_SQUARE
            for scaling, side in (
                (self.view.left, squares[: self.dx]),
                (self.view.right, squares[self.dx :]),
            )
        ]
        return any(small) and bool((self.view.amplitudes()[small] > 0).any())

    def about_the_means(self) -> CrossMoments:
        """Convert sums about the shifts into sums about the means."""
        dx, dy = self.dx, self.dy
        first, second = self.sums[: dx + dy], self.sums[dx + dy : 2 * (dx + dy)]
        cross = self.sums[2 * (dx + dy) :].reshape(dx, dy)
        x = self._side(self.view.left, first[:dx], second[:dx])
        y = self._side(self.view.right, first[dx:], second[dx:])
        return CrossMoments(x, y, cross - self.weight * np.outer(x.offset, y.offset))

    def _side(self, scaling: Scaling, first: Floats64, second: Floats64) -> Moments:
        offset = first / self.weight
        scatter = np.maximum(second - self.weight * offset * offset, 0.0)
        rounding = ROUNDINGS * float(np.finfo(scaling.work).eps) * float(second.max(initial=0.0))
        shift, exponent = scaling.shift, scaling.exponent
        found = Moments(self.n, self.weight, shift, offset, scatter, exponent, rounding)
        return within_range(found)
