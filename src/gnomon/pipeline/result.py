"""The result of a run: the table, its components, its map, and how far to trust it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.names import are_components
from gnomon.data.preparation import Preparation, Prepared
from gnomon.data.table import Table, count
from gnomon.late import late
from gnomon.pca import PCA
from gnomon.pipeline.placing import PlacedRows
from gnomon.pipeline.run_model import RunModel
from gnomon.records import Record
from gnomon.report.report import Report, report
from gnomon.scores import MapScores
from gnomon.scores.neighbor_labels import NeighborLabels
from gnomon.tsne import TSNE
from gnomon.tsne.sampled import Placed, Sampling

__all__ = ["Result", "once_each"]


def once_each(warnings: Iterable[Warning | str]) -> tuple[Warning | str, ...]:
    """Remove duplicates from warnings, keeping their order."""
    return tuple({str(warning): warning for warning in [*warnings][::-1]}.values())[::-1]


@dataclass(frozen=True, eq=False, repr=False)
class Result(Record):
    """Result of a run; `print` shows which columns it took and what it found.

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
    arguments : dict
        Arguments of `gnomon.run` that are not defaults; `source` if it is a name or a path.
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
    arguments: dict[str, Any] = field(default_factory=dict)

    def title(self) -> str:
        """The table."""
        return f"Result for {self.table.title()}"

    def lines(self) -> list[tuple[str, str]]:
        """Columns and their roles, preparation, components, map, and how far to trust it."""
        pca = self.pca
        share = float(np.nan_to_num(pca.explained_variance_ratio_).sum())
        held = f"{count(int(pca.n_components_), 'component')}, {100 * share:.1f} % of the variance"
        if self.tsne is not None and are_components(self.prepared.table.columns):
            held = f"{len(self.prepared.table.columns)} principal components, taken from the file"
        lines = [*self.table.lines(), *self.prepared.lines(), ("PCA", held)]
        if self.tsne is not None:
            lines.append(("t-SNE", self.tsne.certificate_.title()))
        if self.sampling is not None:
            lines.append(("sample", self.sampling.title()))
        if self.trust is not None:
            kept = 100 * float(np.nanmean(self.trust))
            lines.append(("trust", f"the map keeps {kept:.0f} % of each row's nearest rows"))
        warnings = "; ".join(text.split("\n")[0] for text in self.warnings)
        return [*lines, ("warnings", warnings)] if warnings else lines

    def to_dict(self) -> dict[str, Any]:
        """The readable form."""
        return dict(self.lines())

    def __repr__(self) -> str:
        return str(self)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Number of each row of the result in the table that was given, from 0, shape (n,).

        Rows with missing values may have been dropped; their numbers are
        ``result.prepared.dropped.rows``.
        """
        kept = self.prepared.kept
        return np.arange(self.table.n_rows) if kept is None else kept

    def place(self, new: Any, **how: Any) -> PlacedRows:
        """Place new rows on the map: rows as the table has them, not prepared ones.

        `new` is a dataframe, array, path or source; its columns are found by name and made ready as
        those of the run were. The result is that of `gnomon place`. `how` is as for
        `RunModel.place`: missing, label, id, na, memory and others.
        """
        return self._model().place(new, **how)

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the model, for `gnomon.load` and ``gnomon place -m``.

        The file holds the preparation, the components and the map with the rows that it was
        computed from.
        """
        self._model().save(path, force=force)

    def report(self, path: Path | str | None = None, *, force: bool = False, **how: Any) -> Report:
        """Build the page of the run, and write it to `path` if one is given.

        `how` is as for `gnomon.report`: title, stability, pixels, page_budget and n_jobs.
        """
        page = report(self, **how)
        if path is not None:
            page.save(path, force=force)
        return page

    def _model(self) -> RunModel:
        return RunModel(self.preparation, self.pca, self.tsne)

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
