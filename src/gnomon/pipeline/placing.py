"""New rows on the map of a run: made ready as its own rows were, then placed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.data.dropped import Dropped
from gnomon.data.open import open_table
from gnomon.data.preparation import Preparation
from gnomon.data.refusals import lacks_columns
from gnomon.data.table import Table, count
from gnomon.engine import Engine
from gnomon.engine.arrays import as_source
from gnomon.errors import DataError
from gnomon.tsne import TSNE
from gnomon.tsne.place import PERPLEXITY, Placement
from gnomon.tsne.place_parts import place_parts

__all__ = ["PlacedRows", "open_new", "place_table"]

# Bytes of a row in blocks: its place, ratio, residual and neighbours; and the words when written.
PLACE_BYTES = 220


@dataclass(frozen=True, eq=False)
class PlacedRows(Placement):
    """Where the rows of a table were placed, and which rows these are.

    Has all that `Placement` has, and:

    Attributes
    ----------
    rows : array (m,)
        Number of each row in the table that was given, from 0; rows with missing values may have
        been dropped.
    names : dict of str to array (m,)
        ID, label and text of each row, and its number as ``row`` if rows were dropped.
    dropped : Dropped or None
        The rows that were dropped: their numbers as `dropped.rows`.
    """

    rows: NDArray[np.int64] = field(repr=False, kw_only=True)
    names: dict[str, Any] = field(repr=False, kw_only=True)
    dropped: Dropped | None = field(default=None, repr=False, kw_only=True)

    def lines(self) -> list[tuple[str, str]]:
        """Rows that were dropped; ranges of distance ratio and residual, and their limits."""
        return [*([("dropped", self.dropped_words())] if self.dropped else []), *super().lines()]

    def dropped_words(self) -> str:
        """How many rows were dropped, and the names of the first."""
        if self.dropped is None:
            return "0 rows"
        return f"{count(len(self.dropped.rows), 'row')}: {self.dropped}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, the reasons in words."""
        names = {name: np.asarray(values).tolist() for name, values in self.names.items()}
        dropped = [] if self.dropped is None else self.dropped.rows.tolist()
        return {**super().to_dict(), "names": names, "dropped": dropped}

    def to_columns(self) -> dict[str, Any]:
        """Columns of the table that `gnomon place` writes, by their names."""
        columns = dict(self.names)
        for j, axis in enumerate(self.positions.T):
            columns[f"tsne{j + 1}"] = axis
        columns["distance_ratio"] = self.distance_ratio
        if self.residual_limit is not None:
            columns["residual"] = self.residual
        return columns | {"unusual": self.unusual, "why": self.why}


def open_new(
    new: Any,
    columns: Sequence[str],
    *,
    memory: Memory = None,
    in_blocks: bool = False,
    spool: Any = None,
    **reading: Any,
) -> Table:
    """Open a table with the columns of a model: by name, or in their order if it has no names."""
    if as_source(new) is None:
        return open_table(
            new,
            memory=memory,
            in_blocks=in_blocks,
            spool=spool,
            columns=list(columns),
            **reading,
        )
    table = open_table(new, memory=memory, **reading)
    absent = [name for name in columns if name not in table.columns] if table.named else []
    if absent or len(table.columns) != len(columns):
        raise lacks_columns(table.name, absent or list(columns), len(columns))
    if table.named and table.columns != tuple(columns):
        raise DataError(
            f"{table.name} has the columns of the model in another order. Give them to "
            f"gnomon.source as columns={list(columns)}."
        )
    return table


def place_table(
    table: Table,
    preparation: Preparation,
    tsne: TSNE,
    engine: Engine,
    *,
    missing: str | None = None,
    memory: Memory = None,
) -> PlacedRows:
    """Make the rows of a table ready as those of a run were, and place them on its map.

    `missing` says what is done about missing values, by default what the run did.
    """
    how = preparation if missing is None else replace(preparation, missing=missing)
    prepared = how.apply(table, engine)
    if table.in_blocks:
        what = f"{table.name}: the places of {table.n_rows:,} rows"
        Budget.from_memory(memory).check(what, PLACE_BYTES * table.n_rows)
        # Errors name columns as the file does.
        model = replace(tsne._model(), names=np.array(preparation.columns, object))
        placed = place_parts(model, prepared.X, engine)
    else:
        # Not by `tsne.place`: its columns are named as standardised, and these have no names.
        placed = tsne._model().place(prepared.X, n_jobs=tsne.n_jobs, perplexity=PERPLEXITY)
    kept = prepared.kept
    return PlacedRows(
        **vars(placed),
        rows=np.arange(table.n_rows) if kept is None else kept,
        names=prepared.table.names_of_rows(),
        dropped=prepared.dropped,
    )
