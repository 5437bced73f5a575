"""A map of a sample, on which every other row is placed: for more rows than memory can map.

1. Up to what memory allows (`pipeline/estimate.py`, `map_bytes`), all rows are mapped; beyond, or
   if a number is given, a sample drawn with a seed is.
2. The sampled rows make a map like any other.
3. Every other row is placed on it (`gnomon.tsne.place`), a block at a time: the map stays as it is,
   and placed rows do not see each other, so blocks can be of any size, on any machine.

What is lost: placed rows neither repel nor attract other rows, so a group of which the sample has
no row gets no place of its own; its rows are called unusual.
"""

import bisect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.budget import readable_bytes
from gnomon.compute.threads import row_blocks
from gnomon.engine import Block, Engine, Source
from gnomon.errors import TooLargeError
from gnomon.events import On, report_rows
from gnomon.inputs import check_integer, is_sparse
from gnomon.records import Record
from gnomon.tsne.estimator import TSNE
from gnomon.tsne.map import Map
from gnomon.tsne.novelty import unusual_words
from gnomon.tsne.place_parts import in_pieces

__all__ = [
    "LEAST_SAMPLE",
    "Placed",
    "PlacedBlock",
    "Sampling",
    "choose_sample",
    "place_array",
    "place_source",
    "rows_of_source",
    "unplaced",
]

LEAST_SAMPLE = 1000  # rows; a map of fewer says little about the others
BLOCK_ROWS = 2**15  # rows placed at a time


@dataclass(frozen=True, eq=False)
class Sampling(Record):
    """Which rows are mapped while the others are placed.

    Attributes
    ----------
    rows : array (m,), int64
        In ascending order.
    n : int
        Rows in all.
    seed : int
    why : str
    """

    rows: NDArray[np.int64] = field(repr=False)
    n: int
    seed: int
    why: str

    @property
    def whole(self) -> bool:
        """Whether the sample holds every row."""
        return self.rows.size == self.n

    def title(self) -> str:
        """What was done, in one sentence that must not be missed."""
        m = self.rows.size
        if self.whole:
            return f"all {m:,} rows are mapped"
        return f"{m:,} rows drawn at random are mapped, the other {self.n - m:,} placed among them"

    def sentence(self) -> str:
        """For a page, or whatever else shows the mapped rows alone."""
        return f"Shown are {self.rows.size:,} of {self.n:,} rows: {self.title()}."

    def lines(self) -> list[tuple[str, str]]:
        """Seed and reason."""
        return [("why", self.why), ("seed", str(self.seed))]

    def to_dict(self) -> dict[str, Any]:
        """Without the rows themselves, which seed and counts give again."""
        m = int(self.rows.size)
        return {
            "mapped": m,
            "placed": self.n - m,
            "seed": self.seed,
            "why": self.why,
            "words": f"{self.title()}: {self.why}.",
        }


def choose_sample(
    n: int, *, asked: int | None, budget: float, needed: Callable[[int], float], seed: int
) -> Sampling | None:
    """Which of `n` rows are mapped; None if all of them are.

    Parameters
    ----------
    asked : int, optional
        How many; by default as many as `budget` bytes allow.
    needed : callable
        Bytes that a map of so many rows takes; never fewer for more rows.
    """
    if asked is not None:
        m = check_integer("sample", asked, 3, way="Leave it out to map all rows.")
        why = f"a sample of {m:,} was requested"
    else:
        m = bisect.bisect_right(range(1, n + 1), budget, key=needed)
        why = (
            f"a map of all would take about {readable_bytes(needed(n))} of memory, and "
            f"{readable_bytes(budget)} may be used"
        )
        if m < min(LEAST_SAMPLE, n):
            raise TooLargeError(
                f"A map needs {readable_bytes(needed(min(LEAST_SAMPLE, n)))} of memory or more; "
                f"{readable_bytes(budget)} may be used. Allow more, or lower the perplexity."
            )
    if m >= n:
        return None
    drawn = np.random.default_rng(seed).choice(n, m, replace=False)
    return Sampling(np.sort(drawn).astype(np.int64), n, seed, why)


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    """Some rows on the map: where, why they are unusual, and how far to trust their places."""

    positions: NDArray[Any]
    reason: NDArray[np.uint8]
    trust: NDArray[np.float64]

    @classmethod
    def of(cls, model: Map, X: NDArray[Any], n_jobs: int | None = None) -> "PlacedBlock":
        """The rows of `X`, shape (m, d), placed on the map."""
        placed = model.place(X, n_jobs=n_jobs)
        return cls(placed.positions, placed.reason, model.trust(placed, n_jobs=n_jobs))


@dataclass(frozen=True, eq=False)
class Placed:
    """Every row on the map, the sampled ones where the map has them.

    Attributes
    ----------
    positions : array (n, dimensions)
        NaN where an interrupt came first.
    placed : array (n,), bool
        Rows that are not of the sample.
    reason : array (n,), uint8
        Of placed rows that are like none of the sample, why: 1 near nothing, 2 outside the
        components (see `gnomon.tsne.place.Placement`). Their places mean little. 0 for all others.
    trust : array (n,)
        Of placed rows; NaN for those of the sample.
    finished : bool
        Whether every row has its place.
    """

    positions: NDArray[Any] = field(repr=False)
    placed: NDArray[np.bool_] = field(repr=False)
    reason: NDArray[np.uint8] = field(repr=False)
    trust: NDArray[np.float64] = field(repr=False)
    finished: bool

    @property
    def unusual(self) -> NDArray[np.bool_]:
        """Placed rows that are like none of the sample, shape (n,)."""
        return self.reason > 0

    def with_trust(self, sampling: Sampling, kept: NDArray[np.float64]) -> NDArray[np.float64]:
        """`trust` of every row, `kept` being that of the sampled ones."""
        trust = self.trust.copy()
        trust[sampling.rows] = kept
        return trust

    def title(self) -> str:
        """How many were placed, how many of them are unlike the sample, and why."""
        odd = unusual_words(self.reason, "unlike any of the sample")
        return f"{int(self.placed.sum()):,} rows placed, {odd}"

    def sentence(self) -> str:
        """Summary for a page; empty unless every row was placed, and some were."""
        if not (self.finished and self.placed.any()):
            return ""
        said = self.title()
        return f"{said}: do not read their places." if self.unusual.any() else f"{said}."


def rows_of_source(source: Source, rows: NDArray[np.int64], engine: Engine) -> NDArray[Any]:
    """Some rows of a source, in ascending order, shape (len(rows), d); CSR of a sparse one."""
    parts = engine.map(_chosen, source, beside=_by_partition(source, rows))
    if source.is_sparse:
        stacked: Any = sp.vstack([*map(sp.csr_array, parts)], format="csr")
        return stacked  # type: ignore[no-any-return]
    return np.concatenate(parts)


def place_source(
    tsne: TSNE,
    sampling: Sampling,
    source: Source,
    engine: Engine,
    on: On | None = None,
) -> Placed:
    """Every row of a source on the map of its sample, block by block wherever the engine works."""
    found = _Gathered(tsne, sampling, on)
    beside = _by_partition(source, np.flatnonzero(found.placed))
    model = tsne._model()
    with suppress(KeyboardInterrupt):  # what has its place is kept
        if engine.is_local:
            model.build(engine.workers)
        engine.write(_PlaceOthers(model), source, found.add, beside=beside)
    return found.result()


@dataclass(frozen=True)
class _PlaceOthers:
    model: Map

    def __call__(self, block: Block) -> list[PlacedBlock]:
        return in_pieces(partial(PlacedBlock.of, self.model, n_jobs=1), _chosen(block))


def _chosen(block: Block) -> NDArray[Any]:
    rows = block.X[block.beside]
    return rows if is_sparse(rows) else np.ascontiguousarray(rows)


def _by_partition(source: Source, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each partition, which of its rows are among `rows`."""
    starts = [partition.start for partition in source.partitions]
    parts = np.split(rows, np.searchsorted(rows, starts[1:]))
    return [part - start for part, start in zip(parts, starts, strict=True)]


def place_array(
    tsne: TSNE,
    sampling: Sampling,
    X: NDArray[Any],
    on: On | None = None,
) -> Placed:
    """Place the rows of a table in memory, or of a memory map."""
    found, model = _Gathered(tsne, sampling, on), tsne._model()
    with suppress(KeyboardInterrupt):
        for start, stop in row_blocks(sampling.n, BLOCK_ROWS):
            rows = X[start:stop][found.placed[start:stop]]
            found.add([PlacedBlock.of(model, rows, tsne.n_jobs)])
    return found.result()


def unplaced(tsne: TSNE, sampling: Sampling) -> Placed:
    """The sampled rows alone have their places, where an interrupt came before all others."""
    return _Gathered(tsne, sampling).result()


class _Gathered:
    """Placed blocks, which come in order, and the map together."""

    def __init__(self, tsne: TSNE, sampling: Sampling, on: On | None = None) -> None:
        n, Y = sampling.n, tsne.embedding_
        self.placed = np.ones(n, bool)
        self.placed[sampling.rows] = False
        self.others = np.flatnonzero(self.placed)
        self.positions = np.full((n, Y.shape[1]), np.nan, Y.dtype)
        self.positions[sampling.rows] = Y
        self.reason, self.trust = np.zeros(n, np.uint8), np.full(n, np.nan)
        self.done, self.on = 0, on

    def add(self, pieces: list[PlacedBlock]) -> None:
        """The next rows that are not of the sample."""
        for piece in pieces:
            at = self.others[self.done : self.done + len(piece.positions)]
            self.positions[at], self.reason[at] = piece.positions, piece.reason
            self.trust[at] = piece.trust
            self.done += at.size
        report_rows(self.on, self.done, self.others.size, "place")

    def result(self) -> Placed:
        """All of it, in the order of the table."""
        finished = self.done == self.others.size
        return Placed(self.positions, self.placed, self.reason, self.trust, finished)
