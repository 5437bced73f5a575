"""A map of a sample, on which every other row is placed: for more rows than memory can map.

1. A map of n rows with k neighbours each takes about 80·n·k bytes. Up to what is free, all rows are
   mapped; beyond, or if a number is asked for, a sample drawn with a seed is.
2. The sampled rows make a map like any other.
3. Every other row is placed on it (`gnomon.tsne.place`), a block at a time: the map stays as it is,
   and placed rows do not see each other, so blocks can be of any size, on any machine.

What is lost: placed rows push nobody away and draw nobody near, so a group of which the sample has
no row gets no place of its own; its rows are called unusual.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import TooLargeError
from gnomon.inputs import check_integer
from gnomon.memory import readable_bytes
from gnomon.neighbors import NeighborSearch
from gnomon.parallel import row_blocks
from gnomon.records import Record
from gnomon.tsne.estimator import TSNE
from gnomon.tsne.place import NEIGHBORS

__all__ = ["Placed", "PlacedBlock", "Placer", "Sampling", "choose_sample", "map_bytes", "place_all"]

# Measured, see `gnomon.cli.estimate`: lists, affinities and their transpose; meshes and buffers.
EDGE_BYTES = 80.0
REST_BYTES = 2e7
PER_PERPLEXITY = 3  # neighbours
LEAST_SAMPLE = 1000  # rows; a map of fewer says little about the others
BLOCK_ROWS = 2**15  # rows placed at a time


def map_bytes(n: int, perplexity: float) -> float:
    """Memory that a map of `n` rows takes beside the table, about."""
    return REST_BYTES + EDGE_BYTES * n * min(PER_PERPLEXITY * perplexity, max(n - 1, 1))


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

    def title(self) -> str:
        """What was done, in one sentence that must not be missed."""
        m = self.rows.size
        return f"{m:,} rows drawn at random are mapped, the other {self.n - m:,} placed among them"

    def lines(self) -> list[tuple[str, str]]:
        """Seed and reason."""
        return [("why", self.why), ("seed", str(self.seed))]

    def to_dict(self) -> dict[str, Any]:
        """Without the rows themselves, which seed and counts give again."""
        m = int(self.rows.size)
        return {"mapped": m, "placed": self.n - m, "seed": self.seed, "why": self.why,
                "words": f"{self.title()}: {self.why}."}  # fmt: skip


def choose_sample(
    n: int, *, asked: int | None, budget: float, perplexity: float, seed: int
) -> Sampling | None:
    """Which of `n` rows are mapped; None if all of them are.

    Parameters
    ----------
    asked : int, optional
        How many; by default as many as `budget` bytes allow.
    """
    if asked is not None:
        m = check_integer("sample", asked, 3, way="Leave it out to map all rows.")
        why = f"a sample of {m:,} was asked for"
    else:
        whole = map_bytes(n, perplexity)
        m = int((budget - REST_BYTES) / (EDGE_BYTES * PER_PERPLEXITY * perplexity))
        why = (
            f"a map of all would take about {readable_bytes(whole)} of memory, and "
            f"{readable_bytes(budget)} may be used"
        )
        if whole > budget and m < min(LEAST_SAMPLE, n):
            raise TooLargeError(
                f"A map needs {readable_bytes(map_bytes(min(LEAST_SAMPLE, n), perplexity))} or "
                f"more; {readable_bytes(budget)} may be used. Allow more memory, or lower the "
                "perplexity."
            )
        m = n if whole <= budget else m
    if m >= n:
        return None
    drawn = np.random.default_rng(seed).choice(n, m, replace=False)
    return Sampling(np.sort(drawn).astype(np.int64), n, seed, why)


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    """Some rows on the map: where, which are unusual, and the share of neighbours they keep."""

    positions: NDArray[Any]
    unusual: NDArray[np.bool_]
    trust: NDArray[np.float64]


class Placer:
    """Places blocks of rows on a finished map, and says how far to trust each place.

    `trust` is the share of the 15 mapped rows nearest to a row that are among the 15 nearest to its
    place. What is built for searching is left out of pickles and built again, with the same bits.
    """

    def __init__(self, tsne: TSNE) -> None:
        self.tsne = tsne
        Y = tsne.embedding_.astype(np.float64)
        self.k = min(NEIGHBORS, len(Y))
        self.plane = NeighborSearch(Y, n_jobs=tsne.n_jobs)

    def __call__(self, X: Any) -> PlacedBlock:
        """Place the rows of `X`, shape (m, d)."""
        placed = self.tsne.place(X)
        if not len(placed.positions):
            return PlacedBlock(placed.positions, placed.unusual, np.empty(0))
        there, _ = self.plane.of(placed.positions.astype(np.float64), self.k)
        return PlacedBlock(placed.positions, placed.unusual, shared(placed.neighbors, there))


def shared(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.float64]:
    """For each row, the share of the indices in `a` that `b` has too; both are (m, k)."""
    kept = np.empty(len(a))
    for start, stop in row_blocks(len(a), 4096):
        here = a[start:stop, :, None] == b[start:stop, None, :]
        kept[start:stop] = here.any(axis=2).mean(axis=1)
    return kept


@dataclass(frozen=True, eq=False)
class Placed:
    """Every row on the map, the sampled ones where the map has them.

    Attributes
    ----------
    positions : array (n, dimensions)
        NaN where an interrupt came first.
    placed : array (n,), bool
        Rows that are not of the sample.
    unusual : array (n,), bool
        Placed rows that are like none of the sample; their places mean little.
    trust : array (n,)
        Of placed rows; NaN for those of the sample.
    finished : bool
        Whether every row has its place.
    """

    positions: NDArray[Any] = field(repr=False)
    placed: NDArray[np.bool_] = field(repr=False)
    unusual: NDArray[np.bool_] = field(repr=False)
    trust: NDArray[np.float64] = field(repr=False)
    finished: bool

    def title(self) -> str:
        """How many were placed, and how many of them are unlike the sample."""
        rows, odd = int(self.placed.sum()), int(self.unusual.sum())
        return f"{rows:,} rows placed, {odd:,} of them unlike any of the sample"


def place_all(
    tsne: TSNE,
    sampling: Sampling,
    blocks: Iterable[tuple[int, PlacedBlock]],
    told: Callable[[int, int], object] = lambda done, of: None,
) -> Placed:
    """Put placed blocks and the map together, in the order of the table.

    Parameters
    ----------
    blocks : iterable of (int, PlacedBlock)
        Consecutive rows from the given one on, of all rows but the sampled ones; they are numbered
        among themselves.
    told : callable, optional
        Told after each block how many rows have their place, and of how many.
    """
    n, dimensions = sampling.n, tsne.embedding_.shape[1]
    placed = np.ones(n, bool)
    placed[sampling.rows] = False
    others = np.flatnonzero(placed)
    positions = np.full((n, dimensions), np.nan, tsne.embedding_.dtype)
    positions[sampling.rows] = tsne.embedding_
    unusual, trust = np.zeros(n, bool), np.full(n, np.nan)
    done = 0
    try:
        for start, block in blocks:
            at = others[start : start + len(block.positions)]
            positions[at], unusual[at], trust[at] = block.positions, block.unusual, block.trust
            done += at.size
            told(done, others.size)
    except KeyboardInterrupt:  # what has its place is kept
        pass
    return Placed(positions, placed, unusual, trust, done == others.size)


def blocks_of_array(
    place: Callable[[Any], PlacedBlock], X: NDArray[Any], sampling: Sampling
) -> Iterable[tuple[int, PlacedBlock]]:
    """All rows of `X` but the sampled ones, placed a block at a time; `X` may be a memory map."""
    chosen = np.zeros(sampling.n, bool)
    chosen[sampling.rows] = True
    at = 0
    for start, stop in row_blocks(sampling.n, BLOCK_ROWS):
        rows = X[start:stop][~chosen[start:stop]]
        yield at, place(rows)
        at += len(rows)
