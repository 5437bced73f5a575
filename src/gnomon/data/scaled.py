"""A source made ready: how its columns spread, whether they are scaled, and the scaled blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.preparation import Preparation
from gnomon.data.prepare import SCALES
from gnomon.data.scale import choose_scale
from gnomon.data.spread import Tally
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
        # As of a table in memory (`Preparation.ready`): whole numbers have no place for what is
        # scaled, and float16 would round it a second time.
        wide = source.dtype.kind == "f" and source.dtype.itemsize >= 4
        dtype = source.dtype if wide else np.dtype(np.float64)
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
        found: Tally = engine.reduce(_measure, source, Tally.__add__)
        spread = found.spread()
        if not np.isfinite(spread.mean).all() or spread.gaps.any():
            read_source(source, engine).refuse_bad_values()
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


def _measure(block: Block) -> Tally:
    return Tally.of(block.X, n_jobs=1)
