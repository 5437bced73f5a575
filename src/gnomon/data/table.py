"""A table as it was read: its numbers, what its rows are called, and what was left out and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.refusals import option
from gnomon.data.samples import Sample
from gnomon.records import Record

__all__ = ["LeftOut", "Places", "Table", "table_of_sample"]


@dataclass(frozen=True)
class LeftOut(Record):
    """A column that is not among the numbers, and why."""

    column: str
    why: str
    can_be_kept: bool = False  # whether `keep` would make numbers of it


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows stand in their file: lines of a text, otherwise the rows' numbers.

    Attributes
    ----------
    first : int or None
        Line of row 0, when every row is one line.
    lines : array of int, shape (n,), or None
        Line on which each row begins, where rows span lines or lines are blank.
    rows : array of int, shape (n,), or None
        Numbers that the rows had before some were dropped.
    """

    first: int | None = None
    lines: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None

    def of(self, row: int) -> str:
        """``"line 812"``, or ``"row 811 (rows count from 0)"``."""
        row = row if self.rows is None else int(self.rows[row])
        if self.lines is not None:
            return f"line {self.lines[row]}"
        if self.first is not None:
            return f"line {self.first + row}"
        return f"row {row} (rows count from 0)"

    def take(self, rows: NDArray[np.int64]) -> "Places":
        """The places of some of the rows."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


@dataclass(frozen=True, eq=False)
class Table(Record):
    """What was read from a file.

    Attributes
    ----------
    name : str
        The file's name, or "standard input".
    X : array of numbers, shape (n, d)
        The columns in use; NaN where a value is missing. May be a read-only memory map.
    columns : tuple of str, length d
        Their names.
    labels : array of str or None, shape (n,); or None
        A grouping of the rows, good for colour and never part of `X` unless `keep` asked for it.
        None where a row has no label. Texts are those of the file, to the letter.
    label_name : str or None
    ids : array of str, shape (n,), or None
        What each row is called.
    id_name : str or None
    left_out : tuple of LeftOut
        The other columns, and why.
    others : tuple of pairs of str and array of str or None, shape (n,)
        Those of them that group the rows too: further columns to colour by.
    notes : tuple of str
        What had to be assumed about the file.
    n_columns : int
        Columns of the file.
    named : bool
        Whether the columns' names are from the file.
    places : Places
        For errors: where a row stands in the file.
    """

    name: str
    X: NDArray[Any]
    columns: tuple[str, ...]
    labels: NDArray[np.object_] | None = None
    label_name: str | None = None
    ids: NDArray[np.object_] | None = None
    id_name: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    others: tuple[tuple[str, NDArray[np.object_]], ...] = ()
    notes: tuple[str, ...] = ()
    n_columns: int = 0
    named: bool = True
    places: Places = field(default_factory=Places)

    def title(self) -> str:
        """Size and name."""
        n = self.X.shape[0]
        return f"{self.name}: {count(n, 'row')} × {count(self.n_columns, 'column')}"

    def lines(self) -> list[tuple[str, str]]:
        """What is used, what was left out and why, in the words of the library."""
        return self.words(command=False)

    def words(self, *, command: bool) -> list[tuple[str, str]]:
        """The same for the library, or in the words of the command line."""
        rest = _left_out_words(self.left_out, command=command)
        notes = "; ".join(self.notes)
        lines = [("using", self._using()), ("left out", rest), ("note", notes)]
        return [(name, text) for name, text in lines if text]

    def _using(self) -> str:
        if len(self.columns) > 2:
            names = f" ({self.columns[0]} … {self.columns[-1]})"
        else:
            names = f" ({', '.join(self.columns)})"
        text = count(len(self.columns), "numeric column") + names
        text += f", coloured by {self.label_name}" if self.label_name is not None else ""
        return text + (f", rows named by {self.id_name}" if self.id_name is not None else "")

    def take(self, rows: NDArray[np.int64]) -> "Table":
        """The same table with only these rows, in this order."""
        return replace(
            self,
            X=self.X[rows],
            labels=None if self.labels is None else self.labels[rows],
            ids=None if self.ids is None else self.ids[rows],
            others=tuple((name, values[rows]) for name, values in self.others),
            places=self.places.take(rows),
        )

    def with_numbers(self, X: NDArray[Any], columns: tuple[str, ...]) -> "Table":
        """The same rows with other numbers."""
        return replace(self, X=X, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cells, ready for JSON."""
        return {
            "name": self.name,
            "rows": int(self.X.shape[0]),
            "n_columns": self.n_columns,
            "columns": list(self.columns),
            "label": self.label_name,
            "id": self.id_name,
            "left_out": [left.to_dict() for left in self.left_out],
            "notes": list(self.notes),
        }


def table_of_sample(sample: Sample) -> Table:
    """A bundled sample as if it had been read from a file."""

    def texts(values: NDArray[np.str_] | None) -> NDArray[np.object_] | None:
        return None if values is None else values.astype(object)

    return Table(
        name=sample.name,
        X=sample.X,
        columns=sample.columns,
        labels=texts(sample.labels),
        label_name=sample.label_name,
        ids=texts(sample.ids),
        id_name=None if sample.ids is None else "name",
        n_columns=len(sample.columns) + (sample.labels is not None) + (sample.ids is not None),
    )


def count(n: int, what: str) -> str:
    """``"1 row"``, ``"2 rows"``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _left_out_words(left_out: Sequence[LeftOut], *, command: bool, most: int = 5) -> str:
    """Columns grouped by the reason: ``sex, island (text), year (few distinct integers: …)``."""
    reasons: dict[str, list[str]] = {}
    for left in left_out:
        why = left.why
        if left.can_be_kept:
            why += f": {option('keep', left.column, command=command)} to use it"
        reasons.setdefault(why, []).append(left.column)
    return ", ".join(
        f"{', '.join(names[:most])}{f' and {len(names) - most:,} more' * (len(names) > most)} "
        f"({why})"
        for why, names in reasons.items()
    )
