"""Which rows of the user's table a map in a notebook holds, in which order, and what is in them.

A page holds very many rows in the order of its map, and not always all of them. What is selected on
it is turned into rows of the user's table here, and back.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.report.compared.pair_content import ComparedContent
from gnomon.report.content import PageContent

__all__ = ["WidgetRows"]


@dataclass(frozen=True, eq=False)
class WidgetRows:
    """Rows of the map and rows of the table.

    Attributes
    ----------
    total : int
        Rows of the user's table, counted from 0.
    of_map : array (m,) of int
        Which row of the table each row of the map is.
    columns : tuple of pairs of str and array (m,)
        What is known of the rows of the map.
    frame : dataframe or None
        The user's own, whose rows are given back as they are.
    """

    total: int
    of_map: NDArray[np.int64]
    columns: tuple[tuple[str, NDArray[Any]], ...]
    frame: Any = None

    @classmethod
    def of_content(cls, content: PageContent, total: int, frame: Any = None) -> "WidgetRows":
        """The rows of a page's content, in the order in which the page holds them."""
        rows = np.arange(content.n) if content.numbers is None else content.numbers
        columns: list[tuple[str, NDArray[Any]]] = [] if content.ids is None else [content.ids]
        columns += content.labels
        if content.X is not None:
            columns += zip(content.names, np.asarray(content.X).T, strict=True)
        if content.Y is not None:
            stem = "map" if content.made_elsewhere else "tsne"
            columns += [(f"{stem}{i + 1}", axis) for i, axis in enumerate(content.Y.T)]
        else:
            columns += [(f"pc{i + 1}", axis) for i, axis in enumerate(content.scores.T[:2])]
        if content.trust is not None:
            columns.append(("trust", content.trust))
        known = frame if nw.dependencies.is_into_dataframe(frame) else None
        return cls(total, rows.astype(np.int64), tuple(columns), known)

    @classmethod
    def of_comparison(cls, content: ComparedContent) -> "WidgetRows":
        """The rows that two tables share."""
        columns: list[tuple[str, NDArray[Any]]] = [] if content.ids is None else [content.ids]
        columns += content.labels
        for name, Y in zip(content.names, content.maps, strict=True):
            columns += [(f"{name}{i + 1}", axis) for i, axis in enumerate(Y.T)]
        columns += [
            ("neighbours kept", content.kept),
            ("moved", content.moved),
            ("changed", content.changed),
        ]
        return cls(content.found.n, content.rows.astype(np.int64), tuple(columns))

    def check(self, rows: Any) -> NDArray[np.int64]:
        """Rows of the table as the user gives them, ascending, each once; None for none.

        Numbers, or one boolean a row.
        """
        given = np.asarray([] if rows is None else rows)
        if given.dtype == bool:
            if given.shape != (self.total,):
                must = f"hold one boolean for each of the {self.total:,} rows"
                refuse("selection", must, f"shape {given.shape}")
            given = np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            what = f"{given.dtype} of shape {given.shape}"
            refuse("selection", "be a list of row numbers, or one boolean a row", what, kind=True)
        if given.size and not (given.min() >= 0 and given.max() < self.total):
            wrong = int(given[(given < 0) | (given >= self.total)][0])
            refuse("selection", f"hold row numbers from 0 to {self.total - 1:,}", wrong)
        chosen = np.unique(given).astype(np.int64)
        unseen = chosen[self._places(chosen) < 0]
        if unseen.size:
            raise DataError(
                f"The map does not show row {unseen[0]:,} of `selection`: it shows "
                f"{len(self.of_map):,} of {self.total:,} rows. Its `rows` says which."
            )
        return chosen

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows of the table stand on the map; −1 for those that it does not show."""
        order = np.argsort(self.of_map, kind="stable")
        ranked = self.of_map[order]
        at = np.searchsorted(ranked, rows).clip(max=max(0, len(ranked) - 1))
        found = np.where(ranked[at] == rows, order[at], -1) if len(ranked) else at - 1
        return found.astype(np.int64)

    def to_map(self, rows: NDArray[np.int64]) -> bytes:
        """Rows of the table as rows of the map, four bytes each."""
        return np.sort(self._places(rows)).astype("<u4").tobytes()

    def from_map(self, chosen: bytes) -> NDArray[np.int64]:
        """Rows of the map, four bytes each, as rows of the table, ascending."""
        places = np.frombuffer(chosen, "<u4").astype(np.int64)
        return np.sort(self.of_map[places[places < len(self.of_map)]])

    def take(self, rows: NDArray[np.int64]) -> Any:
        """A dataframe of these rows: the user's own, or one of what is known of them.

        pandas if there is pandas, otherwise polars or pyarrow; pandas has the row numbers as its
        index, the others as a column.
        """
        if self.frame is not None:
            return nw.from_native(self.frame, eager_only=True)[rows.tolist()].to_native()
        places = self._places(rows)
        named: dict[str, Any] = {}
        for name, values in self.columns:
            column = values[places]
            named.setdefault(name, column.tolist() if column.dtype.kind == "O" else column)
        if find_spec("pandas") is not None:
            import pandas as pd

            return pd.DataFrame(named, index=pd.Index(rows, name="row"))
        named = {"row": rows, **named}
        if find_spec("polars") is not None:
            import polars as pl

            return pl.DataFrame(named)
        import pyarrow as pa

        return pa.table(named)
