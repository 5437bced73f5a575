"""A source made ready: how its columns spread, whether they are scaled, and the scaled blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.preparation import Preparation
from gnomon.data.prepare import SCALES
from gnomon.data.scale import choose_scale
from gnomon.data.spread import Spread, measure_spread
from gnomon.engine import Block, Engine, Partition, Source
from gnomon.engine.source import Seal
from gnomon.inputs import check_choice
from gnomon.streams import read_source

__all__ = ["PreparedSource", "ScaledSource", "prepare_source"]


@dataclass(frozen=True)
class PreparedSource:
    """A source that is ready, and how it was made so."""

    source: Source
    preparation: Preparation


class ScaledSource(Source):
    """The rows of another source, (x − mean) / std."""

    def __init__(self, source: Source, preparation: Preparation) -> None:
        floats = source.dtype.kind == "f"  # whole numbers have no place for what is scaled
        dtype = source.dtype if floats else np.dtype(np.float64)
        super().__init__(source.columns, dtype, source.partitions, source.names)
        self.source, self.mean, self.std = source, preparation.mean, preparation.std
        self.seals = source.seals  # of the pass that found the mean, too

    def read(self, partition: Partition) -> NDArray[Any]:
        """The numbers of the source, scaled in float64."""
        return self.sealed(partition)[0]

    def sealed(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """The same, with the checksum of the numbers as the source has them."""
        X, seal = self.source.sealed(partition)
        scaled: NDArray[Any] = (X - self.mean) / self.std
        return scaled.astype(self.dtype), seal

    def let_go(self) -> None:
        """Of the source itself."""
        self.source.let_go()


def prepare_source(source: Source, scale: str, engine: Engine) -> PreparedSource:
    """`source`, scaled if its columns ask for it, and what was done, as of a table in memory.

    One pass, or none if nothing is to be found out. Missing values are refused when they are met.
    """
    check_choice("scale", scale, tuple(SCALES))
    columns = source.names or tuple(f"x{j + 1}" for j in range(source.columns))
    asked = SCALES[scale]
    spread = None
    if asked is not False:
        found: _Part = engine.reduce(_measure, source, _Part.__add__)
        if not np.isfinite(found.spread.mean).all() or found.spread.gaps.any():
            read_source(source, engine).refuse_bad_values()
        spread = found.spread
    chosen = choose_scale(np.empty((0, source.columns)), asked, names=columns, spread=spread)
    d = source.columns
    preparation = Preparation(
        columns=columns, missing="error", scale="standard" if chosen.standardize else "none",
        why=chosen.why, n_rows=source.rows, n_missing=0, n_dropped=0, filled="",
        mean=np.zeros(d) if spread is None else spread.mean,
        std=np.ones(d) if spread is None else np.where(spread.std > 0, spread.std, 1.0),
    )  # fmt: skip
    ready = ScaledSource(source, preparation) if chosen.standardize else source
    return PreparedSource(ready, preparation)


@dataclass(frozen=True)
class _Part:
    """The spread of some rows; two of them make that of both (Chan's formula)."""

    rows: int
    spread: Spread

    def __add__(self, other: "_Part") -> "_Part":
        a, b = self.spread, other.spread
        na, nb = self.rows - a.gaps, other.rows - b.gaps
        n = np.maximum(na + nb, 1)
        apart = b.mean - a.mean
        squares = a.std**2 * np.maximum(na - 1, 0) + b.std**2 * np.maximum(nb - 1, 0)
        squares += apart**2 * (na * nb / n)
        both = Spread(
            mean=a.mean + apart * (nb / n),
            std=np.sqrt(squares / np.maximum(na + nb - 1, 1)),
            low=np.fmin(a.low, b.low),
            high=np.fmax(a.high, b.high),
            gaps=a.gaps + b.gaps,
            whole=a.whole and b.whole,
        )
        return _Part(self.rows + other.rows, both)


def _measure(block: Block) -> _Part:
    return _Part(len(block.X), measure_spread(block.X, n_jobs=1))
