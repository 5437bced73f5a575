"""A source made ready: how its columns spread, whether they are scaled, and the scaled blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gnomon.data.names import unique_names
from gnomon.data.preparation import Preparation
from gnomon.data.prepare import SCALES
from gnomon.data.scale import choose_scale
from gnomon.data.spread import Tally
from gnomon.engine import Block, Engine, Partition, Source
from gnomon.engine.source import Seal
from gnomon.inputs import check_choice
from gnomon.numeric.view import view_table

__all__ = ["PreparedSource", "ReadySource", "prepare_source"]


@dataclass(frozen=True)
class PreparedSource:
    """A source that is ready, and how it was made so."""

    source: Source
    preparation: Preparation


class ReadySource(Source):
    """The rows of another source, with their gaps filled in and scaled as `preparation` says.

    Gaps that it does not fill in stay.
    """

    def __init__(self, source: Source, preparation: Preparation) -> None:
        dtype = preparation.scaled_type(source.dtype)
        super().__init__(source.columns, dtype, source.partitions, source.names)
        self.source, self.preparation = source, preparation
        self.seals = source.seals  # of the pass that found the mean, too

    def read(self, partition: Partition) -> NDArray[Any]:
        """The numbers of the source, made ready."""
        return self.sealed(partition)[0]

    def sealed(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """The same, with the checksum of the numbers as the source has them."""
        X, seal = self.source.sealed(partition)
        if self.preparation.fills:
            X = self.preparation.fill_in(X)
        return self.preparation.scaled(X), seal

    def only(self, partitions: Sequence[Partition]) -> Self:
        """Of the source itself, too: it reads in another way where they are scattered."""
        some = super().only(partitions)
        some.source = self.source.only(partitions)
        return some

    def within(self, memory: int | None) -> Self:
        """Of the source itself."""
        some = super().only(self.partitions)
        some.source = self.source.within(memory)
        return some

    def soon(self, partitions: Sequence[Partition]) -> None:
        """Told to the source itself."""
        self.source.soon(partitions)

    def let_go(self, but: Partition | None = None) -> None:
        """Of the source itself."""
        self.source.let_go(but)


def prepare_source(source: Source, scale: str, engine: Engine) -> PreparedSource:
    """`source`, scaled if its columns ask for it, and what was done, as of a table in memory.

    One pass, or none if nothing is to be found out. Missing values are refused when they are met.
    """
    check_choice("scale", scale, tuple(SCALES))
    columns = source.names or tuple(unique_names(None, source.columns)[0])
    asked = SCALES[scale]
    spread = None
    if asked is not False:
        found: Tally = engine.reduce(_measure, source, Tally.__add__)
        spread = found.spread()
        if not np.isfinite(spread.mean).all() or spread.gaps.any():
            view_table(source, engine).refuse_bad_values()
    chosen = choose_scale(np.empty((0, source.columns)), asked, names=columns, spread=spread)
    d = source.columns
    preparation = Preparation(
        columns=columns, missing="error", scale="standard" if chosen.standardize else "none",
        why=chosen.why, n_rows=source.rows, n_missing=0, n_dropped=0, filled="",
        mean=np.zeros(d) if spread is None else spread.mean,
        std=np.ones(d) if spread is None else np.where(spread.std > 0, spread.std, 1.0),
    )  # fmt: skip
    ready = ReadySource(source, preparation) if chosen.standardize else source
    return PreparedSource(ready, preparation)


def _measure(block: Block) -> Tally:
    return Tally.of(block.X, n_jobs=1)
