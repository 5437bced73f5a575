"""A whole table as shifted, scaled rows, in memory or not: the input of every sum of a fit.

A `View` is a table, a `Scaling`, and the engine that reads it. It is not indexed by row numbers: a
function of `Rows` runs on every part of the table, wherever the engine has capacity, and the
results are added up in the order of the parts (`View.total`). The boundaries of parts depend only
on the number of columns, and the ranges within a part only on its shape. So an array, a memory map
and a file give the same bits, on any number of threads or workers.

All parts share one shift, chosen from evenly spaced rows of a few evenly spaced parts, so that the
sums of parts can be added directly.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnomon.engine import Block, Engine, LocalEngine, Source
from gnomon.engine.arrays import ArraySource
from gnomon.engine.paired_tables import Both
from gnomon.errors import DataError, MissingValueError
from gnomon.events import On
from gnomon.inputs import Found, find_bad_values, is_sparse, refuse_bad_values, refuse_found
from gnomon.numeric import scaling as scaled
from gnomon.numeric.scaling import (
    Rows,
    Scaling,
    ShiftSample,
    amplitude,
    choose_scaling,
    evenly_spaced,
    sample_size,
)
from gnomon.typing import Table

T = TypeVar("T")
Weights = NDArray[np.float64] | None
OfRows = Callable[[Rows, Weights, int | None], T]  # rows, their weights, threads

SAMPLE_PARTS = 8  # parts that are read to choose a shift

__all__ = [
    "View",
    "naming_rows",
    "rows_at",
    "sample_passes",
    "sample_rows",
    "view_array",
    "view_table",
]


@dataclass(frozen=True)
class View:
    """A table, the scaling of its rows, and the engine that reads it (see the module).

    Attributes
    ----------
    table : Source
    scaling : Scaling
    engine : Engine
    roots : array (n,) or None
        √weight of every row, a factor of the row.
    names : array (d,) or None
        Column names, for error messages.
    sample : ShiftSample or None
        The rows that the scaling was chosen from.
    on : callable or None
        Called with an `Event` after every part of a pass.
    """

    table: Source
    scaling: Scaling
    engine: Engine = field(default_factory=LocalEngine)
    roots: Weights = None
    names: NDArray[Any] | None = None
    sample: ShiftSample | None = None
    on: On | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.table.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the table's numbers."""
        return self.table.dtype

    @property
    def work(self) -> np.dtype[Any]:
        """The working type."""
        return self.scaling.work

    @property
    def array(self) -> Rows | None:
        """The whole table as one array, if it is in memory and processed in this process."""
        X = self.table.array() if self.engine.is_local else None
        return None if X is None else Rows(X, self.scaling, self.roots, self.names)

    @property
    def is_sparse(self) -> bool:
        """Whether the table is a sparse array in memory."""
        return self.table.is_sparse

    @property
    def sample_passes(self) -> int:
        """Passes over the table that choosing the scaling took."""
        return sample_passes(self.table, self.engine)

    @property
    def n_jobs(self) -> int | None:
        """Threads for work in this process."""
        return self.engine.n_jobs if isinstance(self.engine, LocalEngine) else None

    def total(
        self,
        of: OfRows[T],
        add: Callable[[T, T], T],
        weights: Weights = None,
        *,
        grow: Callable[[T, T], T] | None = None,
    ) -> T:
        """Add up ``of(rows, weights, n_jobs)`` over all parts by `add`, in a fixed order.

        `grow` is `add` in the memory of its first operand. It is used in this process only: a
        cluster may request the results of its tasks again.
        """
        combine = grow if grow is not None and self.engine.is_local else add
        total: T = self.engine.reduce(
            self._of_block(of), self.table, combine, beside=self._beside(weights), on=self.on
        )
        return total

    def collect(self, of: OfRows[T], weights: Weights = None) -> list[T]:
        """List ``of(rows, weights, n_jobs)`` of every part, in order."""
        return self.engine.map(
            self._of_block(of), self.table, beside=self._beside(weights), on=self.on
        )

    def scaled(self, **changes: Any) -> "View":
        """Copy with `changes` to the fields of its scaling."""
        return replace(self, scaling=replace(self.scaling, **changes))

    def centred(
        self, offset: NDArray[np.float64], factor: NDArray[np.float64] | None, roots: Weights = None
    ) -> "View":
        """Copy centred on the mean, with columns and rows scaled."""
        return replace(self.scaled(offset=offset, factor=factor), roots=roots)

    def about(self, weights: Weights, shift: NDArray[Any], work: DTypeLike) -> "View":
        """Copy with another shift and another precision."""
        return view_table(
            self.table,
            self.engine,
            shift=shift,
            work=work,
            weights=weights,
            names=self.names,
            on=self.on,
        )

    def amplitude(self) -> float:
        """Largest |x − shift| of the whole table, in one pass."""
        plain = Scaling(self.scaling.work, self.scaling.shift)
        return max(replace(self, scaling=plain, roots=None).collect(_largest), default=0.0)

    def refuse_bad_values(self) -> None:
        """Raise an error that names the row, and the file, of the first bad value."""
        if self.table.held_from is not None:
            replace(self, table=self.table.held_from).refuse_bad_values()
            return
        array = self.array
        if array is not None:
            refuse_bad_values(array.X, names=self.names)
            return

        def origin(at: int, row: int) -> tuple[str, int]:
            partition = self.table.partitions[at]
            return partition.file, partition.first + row

        refuse_found(self.collect(_bad_values), names=self.names, origin=origin)

    def _of_block(self, of: OfRows[T]) -> "_OfBlock":
        """Wrap `of` as a function of blocks, without anything that belongs to single rows."""
        long = self.shape[0] * self.shape[1] >= scaled.LONG_NUMBERS
        n_jobs = self.engine.n_jobs if isinstance(self.engine, LocalEngine) else 1
        return _OfBlock(self.scaling, long, of, n_jobs)

    def _beside(self, weights: Weights) -> Sequence[Any] | None:
        if weights is None and self.roots is None:
            return None
        return [
            tuple(
                None if array is None else array[partition.start : partition.stop]
                for array in (weights, self.roots)
            )
            for partition in self.table.partitions
        ]


@dataclass(frozen=True)
class _OfBlock:
    """A function of rows as a function of blocks.

    Threads that are not busy with other parts share the ranges of this one: `n_jobs` matters only
    if the table has a single part.
    """

    scaling: Scaling
    long: bool
    function: Callable[[Rows, Weights, int | None], Any]
    n_jobs: int | None

    def __call__(self, block: Block) -> Any:
        weights, roots = (None, None) if block.beside is None else block.beside
        rows = Rows(block.X, self.scaling, roots, long=self.long)
        return self.function(rows, weights, self.n_jobs)


def _largest(rows: Rows, _: Weights, n_jobs: int | None) -> float:
    return amplitude(rows, n_jobs)


def _bad_values(rows: Rows, _: Weights, __: int | None) -> tuple[Found, Found]:
    return find_bad_values(rows.X)


def view_array(
    X: Table,
    n_jobs: int | None = None,
    *,
    shift: NDArray[Any] | None = None,
    work: DTypeLike | None = None,
    weights: Weights = None,
    names: NDArray[Any] | None = None,
) -> View:
    """View of an array or a CSR array (`view_table`), on threads of this process."""
    engine = LocalEngine(n_jobs)
    return view_table(
        ArraySource(X, checked=False), engine, shift=shift, work=work, weights=weights, names=names
    )


def view_table(
    table: Source,
    engine: Engine,
    *,
    shift: NDArray[Any] | None = None,
    work: DTypeLike | None = None,
    weights: Weights = None,
    names: NDArray[Any] | None = None,
    on: On | None = None,
) -> View:
    """View of `table` with a shift and an exponent chosen from a sample of its rows.

    Only a few parts are read, however large the table is. Rows of weight 0 are left out.
    """
    rows, own = sample_rows(table, engine, weights, sample_size(table.columns))
    sample = ShiftSample(np.ascontiguousarray(rows, table.dtype), own)
    scaling = choose_scaling(table.dtype, sample, shift, work, weights)
    return View(table, scaling, engine, names=names, sample=sample, on=on)


@contextmanager
def naming_rows(
    source: Source, engine: Engine, names: NDArray[Any] | None = None
) -> Iterator[None]:
    """Rename the rows in errors about bad numbers: file and row instead of the row of a block.

    `names` are the column names; by default those of the source.
    """
    try:
        yield
    except DataError as error:
        if type(error) not in (DataError, MissingValueError):  # a file error names the row already
            raise
        if names is None and source.names is not None:
            names = np.array(source.names, object)
        scaling = Scaling(np.dtype(np.float64), np.zeros(source.columns))
        View(source, scaling, engine, names=names).refuse_bad_values()
        raise


def sample_passes(table: Source, engine: Engine) -> int:
    """Passes over `table` to choose a shift: 1 if it has so few parts that all of them are read.

    Rows of an array in memory are read directly, which is no pass.
    """
    in_memory = engine.is_local and table.array() is not None
    return int(not in_memory and len(table.partitions) <= SAMPLE_PARTS)


def sample_rows(source: Source, engine: Engine, weights: Weights, size: int) -> tuple[Any, Weights]:
    """About `size` rows of a table (`rows_at`) and their weights.

    They are evenly spaced rows of at most eight evenly spaced partitions. Rows of weight 0 are left
    out.
    """
    present = [
        partition
        for partition in source.partitions
        if partition.rows and (weights is None or weights[partition.start : partition.stop].any())
    ]
    if not present:
        raise DataError("There are no rows, or every weight is 0. Add rows or weights.")
    chosen = [present[i] for i in evenly_spaced(len(present), SAMPLE_PARTS)]
    each = max(1, size // len(chosen))
    wanted = []
    for partition in chosen:
        if weights is None:
            rows = evenly_spaced(partition.rows, each)
        else:
            rows = np.flatnonzero(weights[partition.start : partition.stop])
            rows = rows[evenly_spaced(rows.size, each)]
        wanted.append(partition.start + rows)
    at = np.concatenate(wanted)
    return rows_at(source, engine, at), None if weights is None else weights[at]


def rows_at(source: Source, engine: Engine, at: NDArray[np.intp]) -> Any:
    """Unscaled rows of a table by their ascending numbers, dense and in C order.

    Those of a pair of tables are `Both`.
    """
    X: Any = source.array() if engine.is_local else None
    if X is not None:
        return _take(X, at)
    chosen = np.split(at, np.searchsorted(at, [part.start for part in source.partitions[1:]]))
    wanted = {
        part.index: rows - part.start
        for part, rows in zip(source.partitions, chosen, strict=True)
        if rows.size
    }
    some = source.only([part for part in source.partitions if part.index in wanted])
    found = engine.map(_RowsAt(wanted), some)
    if isinstance(found[0], Both):
        return Both(*map(np.concatenate, zip(*found, strict=True)))
    return np.concatenate(found)


def _take(X: Any, at: NDArray[np.intp]) -> Any:
    if isinstance(X, Both):
        return Both(_take(X.X, at), _take(X.Y, at))
    if is_sparse(X):
        return X[at].toarray()
    # Copying a thousand rows takes 0.4 µs, choosing each of them 7.
    return np.array(X, order="C") if at.size == X.shape[0] else np.ascontiguousarray(X[at])


@dataclass(frozen=True)
class _RowsAt:
    """Chosen rows of a block; `wanted` maps the number of a partition to its rows."""

    wanted: dict[int, NDArray[np.intp]]

    def __call__(self, block: Block) -> Any:
        return _take(block.X, self.wanted[block.partition.index])
