"""What a run found: the table, its components, its map, and how far to trust it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.preparation import Preparation, Prepared
from gnomon.data.table import Table
from gnomon.late import late
from gnomon.pca import PCA
from gnomon.scores import MapScores
from gnomon.tsne import TSNE
from gnomon.tsne.sampled import Placed, Sampling

__all__ = ["Result", "once_each"]


def once_each(warnings: Iterable[Warning | str]) -> tuple[Warning | str, ...]:
    """Warnings in their order, without those that say the same as an earlier one."""
    return tuple({str(warning): warning for warning in [*warnings][::-1]}.values())[::-1]


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes
    ----------
    table : Table
        What was read, and what was left out and why.
    prepared : Prepared
        The rows that were used, and how they were made ready.
    pca : PCA
    components : array (n, k) or None
        The rows in the components' frame. Of a table in blocks the first ten where there is a map,
        otherwise None.
    tsne : TSNE or None
        The map; None if none was asked for, or the run was interrupted before it began.
    trust : array (n,) or None
        Share of each row's 15 nearest neighbours that are among its 15 nearest on the map; of half
        of the other rows where there are fewer than 31.
    quality : MapScores or None
        How far the map can be trusted, in all.
    seconds : dict
        Time of each stage.
    warned : tuple of Warning
        What the reader of the results should know, with the fields of each message.
    sampling : Sampling or None
        Which rows the map was made of; None if it was made of all.
    rows : Placed or None
        Where every row is on the map, if some were placed on it afterwards.
    replay : tuple of pairs of int and array (n, dimensions)
        Iterations and where the rows were then, if that was asked for.
    scores : Path or None
        The file that all components of a table in blocks were written to.
    """

    table: Table
    prepared: Prepared
    pca: PCA
    components: NDArray[Any] | None = None
    tsne: TSNE | None = None
    trust: NDArray[np.float64] | None = None
    quality: MapScores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warned: tuple[Warning | str, ...] = ()
    sampling: Sampling | None = None
    rows: Placed | None = None
    replay: tuple[tuple[int, NDArray[Any]], ...] = ()
    scores: Path | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader of the results should know, in the words of Python."""
        return tuple(map(str, self.warned))

    @property
    def interrupted(self) -> bool:
        """Whether the map was cut short, or was not scored, or rows are left without a place."""
        cut = self.rows is not None and not self.rows.finished
        return self.tsne is not None and (self.trust is None or cut)

    def of_the_map(self) -> "Result":
        """The rows that the map was made of, as a result of their own, which says so.

        That is this result where the map was made of all rows. Of a table in blocks it has what
        names and colours these rows, without their numbers.
        """
        if self.sampling is None:
            return self
        rows = self.sampling.rows
        return replace(
            self,
            table=replace(self.table, notes=(*self.table.notes, self.sampling.sentence())),
            prepared=self.prepared.take(rows),
            components=None if self.components is None else self.components[rows],
            trust=None if self.trust is None else self.trust[rows],
            sampling=None,
            rows=None,
        )

    def _repr_html_(self) -> str:
        return str(late("result_card")(self))

    @property
    def preparation(self) -> Preparation:
        """How the rows were made ready."""
        return self.prepared.preparation

    @property
    def positions(self) -> NDArray[Any] | None:
        """Where every row is on the map, shape (n, dimensions)."""
        if self.rows is not None:
            return self.rows.positions
        return None if self.tsne is None else self.tsne.embedding_
