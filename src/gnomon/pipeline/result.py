"""The result of a run: the table, its components, its map, and how far to trust it."""

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
from gnomon.scores.neighbor_labels import NeighborLabels
from gnomon.tsne import TSNE
from gnomon.tsne.sampled import Placed, Sampling

__all__ = ["Result", "once_each"]


def once_each(warnings: Iterable[Warning | str]) -> tuple[Warning | str, ...]:
    """Remove duplicates from warnings, keeping their order."""
    return tuple({str(warning): warning for warning in [*warnings][::-1]}.values())[::-1]


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run.

    Attributes
    ----------
    table : Table
        The table as read, with what was left out and why.
    prepared : Prepared
        The rows that were used, and their preparation.
    pca : PCA
    components : array (n, k) or None
        Scores of the rows. For a table in blocks the first ten if there is a map,
        otherwise None.
    tsne : TSNE or None
        The map; None if none was requested, or the run was interrupted before it began.
    trust : array (n,) or None
        Share of each row's 15 nearest neighbours that are among its 15 nearest on the map; of half
        of the other rows if there are fewer than 31.
    quality : MapScores or None
        Scores of the whole map.
    neighbor_labels : NeighborLabels or None
        Which label each row's nearest rows bear, in the data and on the map; None without a label
        that groups the rows, or if some rows were placed.
    seconds : dict
        Time of each stage.
    warned : tuple of Warning
        Warnings about the results, with the fields of each message.
    sampling : Sampling or None
        Rows that the map was computed from; None if all.
    rows : Placed or None
        Position of every row on the map, if some were placed on it afterwards.
    replay : tuple of pairs of int and array (n, dimensions)
        Iterations and the positions of the rows at each, if requested.
    scores : Path or None
        File of all components of a table in blocks.
    """

    table: Table
    prepared: Prepared
    pca: PCA
    components: NDArray[Any] | None = None
    tsne: TSNE | None = None
    trust: NDArray[np.float64] | None = None
    quality: MapScores | None = None
    neighbor_labels: NeighborLabels | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warned: tuple[Warning | str, ...] = ()
    sampling: Sampling | None = None
    rows: Placed | None = None
    replay: tuple[tuple[int, NDArray[Any]], ...] = ()
    scores: Path | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Text of the warnings, worded for Python."""
        return tuple(map(str, self.warned))

    @property
    def interrupted(self) -> bool:
        """Whether the map was interrupted, was not scored, or lacks positions of some rows."""
        cut = self.rows is not None and not self.rows.finished
        return self.tsne is not None and (self.trust is None or cut)

    def of_the_map(self) -> "Result":
        """Result of only the rows that the map was computed from, with a note.

        Returns this result if the map was computed from all rows. For a table in blocks it has the
        names and colours of these rows, without their numbers.
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
            neighbor_labels=None
            if self.neighbor_labels is None
            else self.neighbor_labels.take(rows),
            sampling=None,
            rows=None,
        )

    def _repr_mimebundle_(self, **limits: Any) -> dict[str, Any]:
        # The map itself where a notebook's kernel can answer it; `_repr_html_` adds the card.
        return dict(late("result_bundle")(self))

    def _repr_html_(self) -> str:
        return str(late("result_card")(self).html())

    @property
    def preparation(self) -> Preparation:
        """Preparation of the rows."""
        return self.prepared.preparation

    @property
    def positions(self) -> NDArray[Any] | None:
        """Position of every row on the map, shape (n, dimensions)."""
        if self.rows is not None:
            return self.rows.positions
        return None if self.tsne is None else self.tsne.embedding_
