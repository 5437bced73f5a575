"""Procrustes and comparisons of two tables that are read in blocks, here or on a cluster.

Means, variances and XᵀY are sums over rows (`CrossMoments`), so that one pass finds the rotation.
Where little is left of what is subtracted, a second pass adds the residuals up row by row, as for
tables in memory. RV needs XᵀX and YᵀY too, and the unbiased CKA a second pass about the means. The
overlap of neighbourhoods cannot be added up: it is that of a sample of rows.
"""

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.engine import Engine, Source, as_engine
from gnomon.engine.arrays import as_source
from gnomon.engine.pairs import PairedSource, called, pair_by_id, pair_by_row
from gnomon.engine.source import Block
from gnomon.errors import ChangedSourceError, DataError, refuse
from gnomon.inputs import NOTHING_BAD, Found, find_bad_values, refuse_found
from gnomon.moments import CrossMoments
from gnomon.procrustes.frame import Frame
from gnomon.procrustes.pairs import Pair, read_pair

Floats64 = NDArray[np.float64]

SHIFT_PARTITIONS = 8
SHIFT_ROWS = 1024
# Rows that are drawn for what cannot be added up: shares of them are then known to about 0.5 %.
SAMPLE_ROWS = 10_000
SAMPLE_SEED = 0

__all__ = ["SAMPLE_ROWS", "SAMPLE_SEED", "Kernels", "PairStream", "as_sources", "open_pair"]


def as_sources(X: Any, Y: Any, id: str | None, engine: Any) -> tuple[Any, Any] | None:
    """Both as sources, those of Dask arrays too, or None where neither is one.

    What only sources have a use for is then refused: it would do nothing, unseen.
    """
    left, right = as_source(X), as_source(Y)
    if left is not None or right is not None:
        return (X if left is None else left), (Y if right is None else right)
    if id is not None:
        way = "`gnomon.align` joins those by ids; `gnomon.source` makes sources of them."
        refuse("id", "be None for tables in memory", id, way)
    if engine is not None:
        way = "`gnomon.source` makes sources of them."
        refuse("engine", "be None for tables in memory", type(engine).__name__, way)
    return None


def open_pair(X: Any, Y: Any, id: str | None, engine: Any, n_jobs: int | None) -> "PairStream":
    """Two sources whose rows belong together, by row or by a column of ids."""
    for name, source in (("X", X), ("Y", Y)):
        if not isinstance(source, Source):
            raise DataError(
                f"X and Y must both be sources, or both tables in memory; {name} is a "
                f"{type(source).__name__}. `gnomon.source` makes a source of an array too."
            )
        if source.rows == 0:
            raise DataError(f"{called(source, name)} has 0 rows; at least 1 is needed. Add rows.")
    chosen = as_engine(engine, n_jobs=n_jobs)
    pair = pair_by_row(X, Y) if id is None else pair_by_id(X, Y, id, chosen)
    return PairStream.of(pair, chosen)


@dataclass(frozen=True)
class PairStream:
    """A pair of sources, what is subtracted from their rows, and who reads them."""

    source: PairedSource
    engine: Engine
    shifts: tuple[NDArray[Any], NDArray[Any]]

    @classmethod
    def of(cls, source: PairedSource, engine: Engine) -> "PairStream":
        """With shifts near the means, from a few rows."""
        chosen = source.partitions[:: max(1, -(-len(source.partitions) // SHIFT_PARTITIONS))]
        each = max(1, SHIFT_ROWS // max(1, len(chosen)))
        some = np.concatenate(engine.map(_Evenly(each), source.only(chosen)))
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.nan_to_num(some.mean(axis=0, dtype=np.float64), posinf=0.0, neginf=0.0)
        kind = source.dtype if source.dtype.kind == "f" else np.dtype(np.float64)
        return cls(source, engine, source.split(mean[None].astype(kind)))._flat()

    def _flat(self) -> "PairStream":
        return replace(self, shifts=(self.shifts[0][0], self.shifts[1][0]))

    def moments(self, *, float64: bool = False) -> CrossMoments:
        """Σ w (x − μₓ)(y − μᵧ)ᵀ and what goes with it, in one pass."""
        reader = _Reader(self.source, self.shifts, float64)
        try:
            found: CrossMoments = self.engine.reduce(_CrossOf(reader), self.source, operator.add)
        except ChangedSourceError:
            raise
        except DataError:
            self.refuse_bad_values()  # by the file and the row in it, which a block does not know
            raise
        return found

    def refuse_bad_values(self) -> None:
        """Raise an error that names the file and row of the first infinity or missing value."""
        found = self.engine.map(_BadValues(self.source), self.source)
        tables = (self.source.left, "X"), (self.source.right, "Y")
        for side, (table, name) in enumerate(tables):
            for kind in range(2):
                there = [part[side][kind] for part in found if part[side][kind][1].many]
                if not there:
                    continue
                file, first = there[0]
                told = [NOTHING_BAD, NOTHING_BAD]
                told[kind] = first._replace(many=sum(each.many for _, each in there))
                try:
                    refuse_found(*told, names=self.source.names_of(side), file=file)
                except DataError as error:  # which speaks of X
                    said = called(table, name) + str(error).removeprefix("X")
                    raise type(error)(said) from None

    def with_rows(self, frame: Frame) -> Frame:
        """`frame` with its residuals added up row by row, in one pass."""
        reader = _Reader(self.source, self.shifts, float64=True)
        left, best = self.engine.reduce(_Residuals(reader, frame), self.source, np.add)
        disparity = frame.disparity
        if frame.sq_x > 0 and frame.sq_y > 0:
            disparity = min(1.0, float(best) / frame.sq_y)
        return replace(frame, residual_sum=float(left), disparity=disparity)

    def kernels(self, moments: CrossMoments) -> "Kernels":
        """What RV and the unbiased CKA are made of, in one pass about the means of `moments`."""
        reader = _Reader(self.source, self.shifts, float64=True)
        found: Kernels = self.engine.reduce(_KernelsOf(reader, moments), self.source, operator.add)
        return found

    def sample(self, rows: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """At most so many rows of both, drawn with a seed, in order."""
        n = self.source.rows
        drawn = np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
        stops = np.cumsum([partition.rows for partition in self.source.partitions])
        at = np.split(drawn, np.searchsorted(drawn, stops[:-1]))
        beside = [
            rows - partition.start
            for rows, partition in zip(at, self.source.partitions, strict=True)
        ]
        found = np.concatenate(self.engine.map(_chosen, self.source, beside=beside))
        if not np.isfinite(found).all():
            self.refuse_bad_values()
        return self.source.split(found)


@dataclass(frozen=True)
class Kernels:
    """Sums over rows x, y about the means: XᵀX, YᵀY, and of k = ‖x‖² and m = ‖y‖².

    `sums` are Σk, Σm, Σk², Σm², Σkm.
    """

    xx: Floats64
    yy: Floats64
    sums: Floats64

    def __add__(self, other: "Kernels") -> "Kernels":
        return Kernels(self.xx + other.xx, self.yy + other.yy, self.sums + other.sums)


@dataclass(frozen=True)
class _Reader:
    """A block as a pair of tables, with the shifts that all blocks have."""

    source: PairedSource
    shifts: tuple[NDArray[Any], NDArray[Any]]
    float64: bool

    def __call__(self, block: Block) -> Pair:
        X, Y = self.source.split(block.X)
        pair = read_pair(X, Y, None, shifts=self.shifts, n_jobs=1)
        return pair.in_float64() if self.float64 else pair


@dataclass(frozen=True)
class _CrossOf:
    read: _Reader

    def __call__(self, block: Block) -> CrossMoments:
        try:
            return self.read(block).moments()
        except DataError as error:  # about a row of this block
            raise type(error)(f"{block.partition}: {error}") from None


@dataclass(frozen=True)
class _Residuals:
    read: _Reader
    frame: Frame

    def __call__(self, block: Block) -> Floats64:
        frame = self.frame
        pair = self.read(block).in_units_of(frame.moments)
        sq = pair.sq_residuals(frame, frame.scale, frame.factor)
        best = sq
        if frame.sq_x > 0 and frame.sq_y > 0 and not frame.is_best:
            best = pair.sq_residuals(frame, frame.least_squares_scale, 1.0)
        return np.array([sq.sum(), best.sum()])


@dataclass(frozen=True)
class _KernelsOf:
    read: _Reader
    moments: CrossMoments

    def __call__(self, block: Block) -> Kernels:
        pair = self.read(block).in_units_of(self.moments)
        sides = [
            rows.centred(m.offset, None).read(0, pair.rows())
            for rows, m in ((pair.left, self.moments.x), (pair.right, self.moments.y))
        ]
        k, m = (np.einsum("ij,ij->i", z, z) for z in sides)
        sums = np.array([k.sum(), m.sum(), k @ k, m @ m, k @ m])
        return Kernels(sides[0].T @ sides[0], sides[1].T @ sides[1], sums)


@dataclass(frozen=True)
class _BadValues:
    """Of both tables the infinities and missing values of a block, and the file of the first."""

    source: PairedSource

    def __call__(self, block: Block) -> list[list[tuple[str, Found]]]:
        return [
            [self._placed(block, side, found) for found in find_bad_values(Z)]
            for side, Z in enumerate(self.source.split(block.X))
        ]

    def _placed(self, block: Block, side: int, found: Found) -> tuple[str, Found]:
        if not found.many:
            return "", found
        file, row = self.source.origin(block.partition, side, found.row)
        return file, found._replace(row=row)


@dataclass(frozen=True)
class _Evenly:
    most: int

    def __call__(self, block: Block) -> NDArray[Any]:
        return np.ascontiguousarray(block.X[:: max(1, -(-len(block.X) // self.most))])


def _chosen(block: Block) -> NDArray[Any]:
    return np.ascontiguousarray(block.X[block.beside])
