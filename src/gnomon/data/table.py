"""A table as it was read: its features, what names and colours rows, what is ignored and why."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.names import are_components
from gnomon.data.refusals import as_seen, option
from gnomon.data.samples import Sample
from gnomon.engine.source import Source
from gnomon.inputs.csr import is_sparse
from gnomon.records import Record

__all__ = ["ROW", "SHOWN", "ColumnRoles", "LeftOut", "Places", "Table", "count", "table_of_sample"]

# Columns that commands write.
OURS = re.compile(
    r"(tsne|pc)\d+|trust|among|among_in_data|placed|distance_ratio|residual|unusual|why"
)
MOST_NAMED = 12  # columns of one role that are all named
BESIDE = "numbers beside the table"
# Column that holds the rows' numbers in the table that was given, where some were dropped.
ROW = "row"
# Roles of columns that a page shows, only where the user names them.
SHOWN = ("text", "image", "link")


@dataclass(frozen=True)
class LeftOut(Record):
    """A column that is no feature, and why."""

    column: str
    why: str
    can_be_kept: bool = False  # whether `keep` would make a feature of it
    can_name_rows: bool = False  # whether `id` would name the rows by it


@dataclass(frozen=True)
class ColumnRoles(Record):
    """What each column is used for; the same for files, folders and blocks.

    Attributes
    ----------
    features : tuple of str
        The numbers that a result is made of; of a vector ``name[0]``, ``name[1]`` and so on.
    label, id : str or None
        The column that colours the rows, and the one that names them.
    kept_for_colour : tuple of LeftOut
        Columns that rows can be coloured by as well.
    ignored : tuple of LeftOut
        All others.
    label_why, id_why : str
        Why a column of numbers was taken for them; empty where that needs no reason.
    text, image, link : str or None
        Columns that a page shows, because the user named them.
    """

    features: tuple[str, ...]
    label: str | None = None
    id: str | None = None
    kept_for_colour: tuple[LeftOut, ...] = ()
    ignored: tuple[LeftOut, ...] = ()
    label_why: str = ""
    id_why: str = ""
    text: str | None = None
    image: str | None = None
    link: str | None = None

    def title(self) -> str:
        """How many columns are features."""
        return count(len(self.features), "feature")

    def lines(self) -> list[tuple[str, str]]:
        """One line for each role, in the words of the library."""
        return self.words(command=False)

    def words(self, *, command: bool) -> list[tuple[str, str]]:
        """One line for each role, in the words of the library or of the command line."""
        names = [as_seen(name) for name in self.features]
        what = "numeric column"
        shown = f"{names[0]} … {names[-1]}" if len(names) > MOST_NAMED else ", ".join(names)
        if are_components(self.features):
            what, shown = "principal component", f"{names[0]} … {names[-1]}"
        kept = _left_out_words(self.kept_for_colour, command=command)
        lines = [
            ("features", f"{count(len(names), what)} ({shown})"),
            ("label", _guess_words(self.label, self.label_why, command=command)),
            ("id", _guess_words(self.id, self.id_why, command=command)),
            *((role, as_seen(name)) for role in SHOWN if (name := getattr(self, role))),
            ("colour", f"kept for colour: {kept}" if kept else ""),
            ("ignored", _left_out_words(self.ignored, command=command)),
        ]
        return [(name, text) for name, text in lines if text]

    def final(self) -> "ColumnRoles":
        """The roles where no option makes features of other columns."""
        kept, ignored = (
            tuple(replace(left, can_be_kept=False, can_name_rows=False) for left in part)
            for part in (self.kept_for_colour, self.ignored)
        )
        return replace(self, kept_for_colour=kept, ignored=ignored, label_why="", id_why="")

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "ColumnRoles":
        """The roles that `to_dict` gave, without the ways to others."""

        def left_out(role: str) -> tuple[LeftOut, ...]:
            return tuple(LeftOut(str(left["column"]), str(left["why"])) for left in stored[role])

        features = tuple(map(str, stored["features"]))
        kept, ignored = left_out("kept_for_colour"), left_out("ignored")
        shown: dict[str, Any] = {role: stored.get(role) for role in SHOWN}
        return cls(features, stored["label"], stored["id"], kept, ignored, **shown)

    def to_dict(self) -> dict[str, Any]:
        """Columns by role, ready for JSON."""
        return {
            "features": list(self.features),
            "label": self.label,
            "id": self.id,
            "kept_for_colour": [left.to_dict() for left in self.kept_for_colour],
            "ignored": [left.to_dict() for left in self.ignored],
            **{role: name for role in SHOWN if (name := getattr(self, role))},
        }


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
    parts : tuple of (int, str, Places)
        Of a folder: the first row of each file, its name, and where its rows stand in it.
    """

    first: int | None = None
    lines: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None
    parts: "tuple[tuple[int, str, Places], ...]" = ()

    def of(self, row: int) -> str:
        """``"line 812"``, ``"row 811 (rows count from 0)"``, or either ``"… of b.csv"``."""
        row = row if self.rows is None else int(self.rows[row])
        if self.parts:
            start, name, places = next(part for part in self.parts[::-1] if part[0] <= row)
            return f"{places.of(row - start)} of {name}"
        if self.lines is not None:
            return f"line {self.lines[row]}"
        if self.first is not None:
            return f"line {self.first + row}"
        return f"row {row} (rows count from 0)"

    def below(self, lines: int) -> "Places":
        """The places of rows that stand so many lines further down."""
        first = None if self.first is None else self.first + lines
        return replace(self, first=first, lines=None if self.lines is None else self.lines + lines)

    def take(self, rows: NDArray[np.int64]) -> "Places":
        """The places of some of the rows."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


@dataclass(frozen=True, eq=False)
class Table(Record):
    """What was read from a file, or is read from it in blocks.

    Attributes
    ----------
    name : str
        The file's name, or "standard input".
    X : array of numbers, shape (n, d), or Source
        The columns in use; NaN where a value is missing. May be a read-only memory map. A `Source`
        where the table is read in blocks.
    columns : tuple of str, length d
        Their names.
    labels : array of str or None, shape (n,); or None
        A grouping of the rows, good for colour and never part of `X` unless `keep` names it.
        None where a row has no label. Texts are those of the file, to the letter.
    label_name : str or None
    ids : array of str, shape (n,), or None
        What each row is called.
    id_name : str or None
    roles : ColumnRoles
        What every column of the file is used for, and why; `columns` are its features.
    others : tuple of pairs of str and array, shape (n,)
        The columns that are kept for colour: str or None, or float64 where they are quantities.
    text, link : pair of str and array (n,) of str, or None
        What the rows say, and addresses that they lead to.
    image : pair of str and array (n,), or None
        Pictures of the rows: bytes, or paths below `folder`; None where a row has none.
    folder : Path or None
        Where the file is.
    notes : tuple of str
        What had to be assumed about the file.
    n_columns : int
        Columns of the file.
    named : bool
        Whether the columns' names are from the file.
    places : Places
        For errors: where a row stands in the file.
    size : str
        Size of the file in words; rows × columns if empty.
    """

    name: str
    X: Any
    columns: tuple[str, ...]
    labels: Any = None
    label_name: str | None = None
    ids: Any = None
    id_name: str | None = None
    roles: ColumnRoles = None  # type: ignore[assignment]  # set below: features are the columns
    others: tuple[tuple[str, NDArray[Any]], ...] = ()
    text: tuple[str, NDArray[np.object_]] | None = None
    link: tuple[str, NDArray[np.object_]] | None = None
    image: tuple[str, NDArray[np.object_]] | None = None
    folder: Path | None = None
    notes: tuple[str, ...] = ()
    n_columns: int = 0
    named: bool = True
    places: Places = field(default_factory=Places)
    size: str = ""

    def __post_init__(self) -> None:
        if self.roles is None:
            roles = ColumnRoles(self.columns, self.label_name, self.id_name)
            object.__setattr__(self, "roles", roles)

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return int(self.X.shape[0])

    @property
    def in_blocks(self) -> bool:
        """Whether the numbers are read in blocks, again and again, and never held as a whole."""
        return isinstance(self.X, Source)

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array, or are read as such."""
        return self.X.is_sparse if isinstance(self.X, Source) else is_sparse(self.X)

    def title(self) -> str:
        """Size and name."""
        plain = f"{count(self.n_rows, 'row')} × {count(self.n_columns, 'column')}"
        return f"{self.name}: {self.size or plain}"

    def lines(self) -> list[tuple[str, str]]:
        """What columns are used for and why, in the words of the library."""
        return self.words(command=False)

    def words(self, *, command: bool) -> list[tuple[str, str]]:
        """What columns are used for, in the words of the library or of the command line."""
        lines = [*self.roles.words(command=command), ("note", "; ".join(self.notes))]
        if self.in_blocks:
            blocks = count(len(self.X.partitions), "block")
            lines.append(("blocks", f"read in {blocks}; rows keep their order"))
        return [(name, text) for name, text in lines if text]

    def take(self, rows: NDArray[np.int64]) -> "Table":
        """The table with only these rows, in this order."""
        return self.with_rows(self.X[rows], rows)

    def with_rows(self, X: Any, rows: NDArray[np.int64]) -> "Table":
        """The rows `rows` of this table, whose numbers are `X`."""
        shown: dict[str, Any] = {
            role: (pair[0], pair[1][rows])
            for role in SHOWN
            if (pair := getattr(self, role)) is not None
        }
        return replace(
            self,
            X=X,
            labels=None if self.labels is None else self.labels[rows],
            ids=None if self.ids is None else self.ids[rows],
            others=tuple((name, values[rows]) for name, values in self.others),
            **shown,
            places=self.places.take(rows),
        )

    def names_of_rows(self) -> dict[str, Any]:
        """The columns that name, colour and describe the rows, by their names unless ours.

        If some rows of the file are left out, column ``row`` has the numbers of the others.
        """
        columns: dict[str, Any] = {}
        ours = {} if self.places.rows is None else {ROW: self.places.rows}
        named = (self.id_name, self.ids), (self.label_name, self.labels), self.text or (None, None)
        for name, values in named:
            if values is not None:
                taken = OURS.fullmatch(str(name)) or name in ours
                columns[f"{name} (file)" if taken else str(name)] = values
        return columns | ours

    def with_numbers(self, X: Any, columns: tuple[str, ...]) -> "Table":
        """The table with other numbers in the same rows."""
        return replace(self, X=X, columns=columns, roles=replace(self.roles, features=columns))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the cells, ready for JSON."""
        return {
            "name": self.name,
            "rows": self.n_rows,
            "n_columns": self.n_columns,
            **self.roles.to_dict(),
            "notes": list(self.notes),
            **({"blocks": len(self.X.partitions)} if self.in_blocks else {}),
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


def _guess_words(name: str | None, why: str, *, command: bool) -> str:
    """``quality (few whole numbers: --keep quality to use it as a feature)``, or nothing."""
    if name is None or not why:
        return "" if name is None else as_seen(name)
    return (
        f"{as_seen(name)} ({why}: {option('keep', name, command=command)} to use it as a feature)"
    )


def _left_out_words(left_out: Sequence[LeftOut], *, command: bool) -> str:
    """Columns grouped by the reason: ``sex, island (text), year (few whole numbers: …)``."""
    reasons: dict[LeftOut, list[str]] = {}
    # Numbers last: they are many beside a matrix, and groups are what one looks for.
    for left in sorted(left_out, key=lambda left: left.why == BESIDE):
        reasons.setdefault(replace(left, column=""), []).append(left.column)
    return ", ".join(
        f"{', '.join(map(as_seen, names[:MOST_NAMED]))}"
        f"{f' and {len(names) - MOST_NAMED:,} more' * (len(names) > MOST_NAMED)} "
        f"({reason.why}{_way_words(reason, names, command=command)})"
        for reason, names in reasons.items()
    )


def _way_words(reason: LeftOut, names: Sequence[str], *, command: bool) -> str:
    """``: --keep year to use it as a feature``, or ``NAME`` of several."""
    alone = len(names) == 1
    name = names[0] if alone else "NAME"
    if reason.can_be_kept:
        by = "it" if alone else "one"
        return f": {option('keep', name, command=command)} to use {by} as a feature"
    if reason.can_name_rows:
        by = "it" if alone else "one"
        return f": {option('id', name, command=command)} to name the rows by {by}"
    return ""
