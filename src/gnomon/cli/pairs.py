"""Two tables whose rows belong together: read, their columns chosen, joined by ids or by order."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.cli.asked import Asked
from gnomon.cli.results import say_read
from gnomon.cli.run_lines import RunLines
from gnomon.data.prepare import prepare
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError, listed, option, quoted
from gnomon.data.table import ColumnRoles, LeftOut, Table, count
from gnomon.errors import ParameterError

__all__ = [
    "Pairing",
    "chosen_columns",
    "distinct_ids",
    "ids_asked",
    "join_rows",
    "only",
    "read_pairing",
    "roles_of",
    "say_shared",
    "why_unused",
]

MAP = re.compile(r"tsne[123]")  # columns that `gnomon map` writes beside components and trust


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two tables and their partners.

    Attributes
    ----------
    left, right : Table
        Without missing values, only the columns in use.
    ids_left, ids_right : array of str
        Distinct; numbers of rows where they belong together by their order.
    rows_left, rows_right : array of int (m,)
        Where the shared rows stand, in the order of the left table.
    by : str or None
        The column of ids, or both where they have two names; None where rows belong together by
        their order.
    """

    left: Table
    right: Table
    ids_left: NDArray[np.object_]
    ids_right: NDArray[np.object_]
    rows_left: NDArray[np.intp]
    rows_right: NDArray[np.intp]
    by: str | None

    def shared(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The shared rows of both, partners in the same place; each must have a shape."""
        both = self.left.X[self.rows_left], self.right.X[self.rows_right]
        for table, X in zip((self.left, self.right), both, strict=True):
            if not np.ptp(X, axis=0).any():
                raise FileError(f"{table.name}: all shared rows are the same point: no shape.")
        return both

    def alone(self) -> list[tuple[str, list[str]]]:
        """Each table's name and the ids that have no partner in the other."""
        return [
            (table.name, np.delete(ids, rows).tolist())
            for table, ids, rows in (
                (self.left, self.ids_left, self.rows_left),
                (self.right, self.ids_right, self.rows_right),
            )
        ]

    def say(self, words: RunLines) -> None:
        """How many rows are shared, and which have no partner."""
        sides = (self.left.name, len(self.ids_left)), (self.right.name, len(self.ids_right))
        say_shared(words, len(self.rows_left), *sides, by=self.by)
        for name, ids in self.alone():
            if ids:
                words.say("Alone", f"{len(ids):,} only in {name}: {listed(ids)}")


def say_shared(
    words: RunLines, shared: int, left: tuple[str, int], right: tuple[str, int], *, by: str | None
) -> None:
    """How many rows are shared, of the names and rows of both tables."""
    (a, n), (b, k), how = left, right, "by their order" if by is None else f"by {by}"
    words.say("Shared", f"{count(shared, 'row')} of {n:,} in {a} and {k:,} in {b}, {how}")


def ids_asked(id: tuple[str, ...], left: str, right: str) -> tuple[str | None, str | None]:
    """The columns of ids that --id names, if any: one that both have, or one of each."""
    if len(id) > 2:
        raise ParameterError(
            f"--id may be given twice, for {left} and for {right}; got {len(id)} columns."
        )
    return (id[0], id[-1]) if id else (None, None)


def read_pairing(left: str, right: str, asked: Asked, words: RunLines) -> Pairing:
    """Read both files, choose their columns, and join their rows.

    `asked.ids` names no column, one that both have, or one of each.
    """
    first, second = ids_asked(asked.ids, left, right)
    cells: dict[str, Any] = {"na": list(asked.na) or None, "decimal": asked.decimal}
    if left == right == "-":
        raise ParameterError(
            "Only one table can come from standard input. Name a file for the other."
        )
    for path in (left, right):
        if path != "-" and not Path(path).exists():
            raise ParameterError(f"There is no file '{path}'. Check the name.")

    def read_both(*named: str | None) -> tuple[list[Table], list[float]]:
        tables, seconds = [], []
        for path, column in zip((left, right), named, strict=True):
            start = time.perf_counter()
            table = read(path, id=column, memory=asked.memory, **cells)
            tables.append(table)
            seconds.append(time.perf_counter() - start)
        return tables, seconds

    tables, seconds = read_both(first, second)
    name = None if asked.ids or "-" in (left, right) else _shared_name(tables)
    if name is not None:
        named, again = read_both(name, name)
        keys = [set() if table.ids is None else set(table.ids.tolist()) for table in named]
        if len(keys[0] & keys[1]) > 1:
            tables, seconds = named, again
    # Columns are chosen by --columns here, so none is said to wait for --keep.
    tables = [replace(table, roles=table.roles.final()) for table in tables]
    if tables[0].name == tables[1].name:  # map.parquet of two folders
        tables = [replace(t, name=path) for t, path in zip(tables, (left, right), strict=True)]
    tables = _choose(tables, asked.columns)
    by = _ids_of(tables, asked=bool(asked.ids))
    ids = []
    for at, (table, took) in enumerate(zip(tables, seconds, strict=True)):
        say_read(words, table, took)
        prepared = prepare(table, missing=asked.missing, scale="none")
        for name, text in prepared.preparation.lines():
            if name == "missing":
                words.say("Missing", text)
        kept = np.arange(len(table.X)) if prepared.kept is None else prepared.kept
        tables[at] = replace(prepared.table, X=prepared.X)
        ids.append(kept.astype(str).astype(object) if by is None else distinct_ids(tables[at]))
    return Pairing(tables[0], tables[1], ids[0], ids[1], *join_rows(tables, ids, by), by)


def _choose(tables: list[Table], columns: tuple[str, ...]) -> list[Table]:
    """Only the columns of --columns; those of the map where both tables are of `gnomon map`."""
    names = [list(table.columns) for table in tables]
    wanted = chosen_columns([table.name for table in tables], names, columns)
    return [
        table if len(asked) == len(table.columns) else only(table, asked, why_unused(columns))
        for table, asked in zip(tables, wanted, strict=True)
    ]


def why_unused(columns: tuple[str, ...]) -> str:
    """Why columns of numbers are not used."""
    return "not in --columns" if columns else "not the map: --columns to use others"


def roles_of(roles: ColumnRoles, names: Sequence[str], why: str) -> ColumnRoles:
    """The roles of a table of which only the features `names` are used."""
    rest = tuple(LeftOut(name, why) for name in roles.features if name not in set(names))
    return replace(roles, features=tuple(names), ignored=(*roles.ignored, *rest))


def chosen_columns(
    tables: list[str], names: list[list[str]], columns: tuple[str, ...]
) -> list[list[str]]:
    """Which of the columns `names` of two tables are used."""
    if columns:
        return [_fitting(*each, columns) for each in zip(tables, names, strict=True)]
    maps = [[name for name in there if MAP.fullmatch(name)] for there in names]
    return maps if all(maps) else names


def _fitting(table: str, names: list[str], columns: tuple[str, ...]) -> list[str]:
    for pattern in columns:
        if not any(_fits(name, pattern) for name in names):
            raise OptionError(
                f"{table} has no column of numbers {quoted(pattern)}.", f"It has {listed(names)}."
            )
    return [name for name in names if any(_fits(name, each) for each in columns)]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def only(table: Table, names: list[str], why: str) -> Table:
    """The table with the features `names` alone; `why` the others are not used."""
    at = [j for j, name in enumerate(table.columns) if name in set(names)]
    chosen = table.with_numbers(table.X[:, at], tuple(table.columns[j] for j in at))
    return replace(chosen, roles=roles_of(table.roles, chosen.columns, why))


def _shared_name(tables: list[Table]) -> str | None:
    """The only column of text that names every row in both tables, where none is called an id."""
    if any(table.id_name is not None for table in tables):
        return None
    naming = [
        {left.column for left in table.roles.ignored if left.can_name_rows} for table in tables
    ]
    shared = naming[0] & naming[1]
    return shared.pop() if len(shared) == 1 else None


def _ids_of(tables: list[Table], *, asked: bool) -> str | None:
    """The column of ids that both tables have; None if rows belong together by their order."""
    names = [table.id_name for table in tables]
    if names[0] is not None and names[0] == names[1]:
        return names[0]
    if asked:
        return f"{names[0]} and {names[1]}"
    if names != [None, None]:
        found = " and ".join("nothing" if name is None else quoted(name) for name in names)
        both = " ".join(option("id", name or "COLUMN", command=True) for name in names)
        raise ParameterError(
            f"The rows of {tables[0].name} and {tables[1].name} are named by {found}. Say which "
            f"column names them in both, by --id COLUMN, or in each, such as {both}."
        )
    sizes = [len(table.X) for table in tables]
    if sizes[0] != sizes[1]:
        raise FileError(
            f"{tables[0].name} has {count(sizes[0], 'row')} and {tables[1].name} {sizes[1]:,}: "
            "they do not belong together by their order.",
            ("id", "COLUMN"),
        )
    return None


def distinct_ids(table: Table) -> NDArray[np.object_]:
    """The ids of a table, every row with one of its own."""
    ids: NDArray[np.object_] = table.ids
    assert ids is not None
    seen: dict[Any, int] = {}
    for row, key in enumerate(ids):
        where = table.places.of(row)
        if not key.strip():
            raise FileError(
                f"{table.name}: {where} has no id in column {quoted(table.id_name)}.",
                "Fill it in, or remove the row.",
            )
        first = seen.setdefault(key, row)
        if first != row:
            raise FileError(
                f"{table.name}: column {quoted(table.id_name)} has {quoted(key)} twice, in "
                f"{table.places.of(first)} and {where}.",
                "Remove one of the rows, or name another column by --id.",
            )
    return ids


def join_rows(
    tables: list[Table], ids: list[NDArray[np.object_]], by: str | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the rows with the same id stand in both tables, in the order of the first."""
    place = {key: row for row, key in enumerate(ids[1])}
    pairs = [(row, place[key]) for row, key in enumerate(ids[0]) if key in place]
    if len(pairs) < 2:
        a, b = (table.name for table in tables)
        shares = "no row" if not pairs else "only one row"
        first, second = (listed(keys.tolist(), 3) for keys in ids)
        raise FileError(
            f"{a} and {b} share {shares}"
            + (
                "."
                if by is None
                else f" by column {quoted(by)}: {first} in one, {second} in the other."
            )
        )
    rows = np.array(pairs, np.intp).T
    return rows[0], rows[1]
