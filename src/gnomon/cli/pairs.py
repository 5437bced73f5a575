"""Two tables whose rows belong together: read, their columns chosen, joined by ids or by order.

Rows of tables that are held are joined by ids of any kind. Those of tables in blocks are joined as
they are read: by their order, or by a column of numbers that ascends in both.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.cli import workers
from gnomon.cli.asked import Asked
from gnomon.cli.results import say_read
from gnomon.cli.run_lines import RunLines
from gnomon.data.names import find_name, is_id_like
from gnomon.data.open import open_table
from gnomon.data.preparation import prepare
from gnomon.data.refusals import FileError, OptionError, listed, option, quoted
from gnomon.data.sources import source as source_of
from gnomon.data.table import ROW, LeftOut, Table, count
from gnomon.engine import as_engine
from gnomon.engine.paired_tables import call
from gnomon.errors import Parameter, ParameterError, Remedy

__all__ = [
    "Pairing",
    "chosen_columns",
    "ids_asked",
    "join_rows",
    "only",
    "open_pairing",
    "refuse_unequal",
]

MOST_LISTED = 100  # ids in the JSON; how many there are is always said
MAP = re.compile(r"tsne[123]")  # columns that `gnomon map` writes beside components and trust


@dataclass(frozen=True, eq=False)
class Joined:
    """The rows of two tables in memory, and their partners.

    Attributes
    ----------
    ids_left, ids_right : array of str
        Distinct; numbers of rows where they belong together by their order.
    rows_left, rows_right : array of int (m,)
        Where the shared rows stand, in the order of the left table.
    """

    ids_left: NDArray[np.object_]
    ids_right: NDArray[np.object_]
    rows_left: NDArray[np.intp]
    rows_right: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two tables whose rows belong together.

    Attributes
    ----------
    left, right : Table
        Without missing values, only the columns in use. In blocks, the column `by` is one of them.
    by : str or None
        The column of ids, or both where they have two names; None where rows belong together by
        their order.
    joined : Joined or None
        None where rows are joined as they are read, in blocks.
    """

    left: Table
    right: Table
    by: str | None
    joined: Joined | None = None

    @property
    def id(self) -> str | None:
        """The column of both tables by which rows are joined as they are read, in blocks."""
        return self.by if self.joined is None else None

    def shared(self) -> tuple[Any, Any]:
        """The shared rows of both, partners in the same place; in blocks all rows."""
        if self.joined is None:
            return self.left.X, self.right.X
        return self.left.X[self.joined.rows_left], self.right.X[self.joined.rows_right]

    def alone(self) -> list[list[str]]:
        """The ids of both tables that have no partner in the other; none in blocks."""
        if self.joined is None:
            return []
        both = self.joined
        sides = (both.ids_left, both.rows_left), (both.ids_right, both.rows_right)
        return [np.delete(ids, rows).tolist() for ids, rows in sides]

    def say(self, words: RunLines, shared: int) -> None:
        """How many rows are shared, and which have no partner."""
        tables = self.left, self.right
        a, b = (f"{table.n_rows:,} in {table.name}" for table in tables)
        how = "by their order" if self.by is None else f"by {self.by}"
        words.say("Shared", f"{count(shared, 'row')} of {a} and {b}, {how}")
        for table, ids in zip(tables, self.alone(), strict=False):
            if ids:
                words.say("Alone", f"{len(ids):,} only in {table.name}: {listed(ids)}")

    def numbers(self, shared: int, left: str, right: str) -> dict[str, Any]:
        """What belongs together, for JSON; `left` and `right` are what a command calls them."""
        return {
            left: self.left.name,
            right: self.right.name,
            "id": self.by,
            f"n_only_{left}": self.left.n_rows - shared,
            f"n_only_{right}": self.right.n_rows - shared,
        }

    def lists(self, left: str, right: str) -> dict[str, list[str]]:
        """The first ids of rows without a partner, for JSON."""
        names = f"only_{left}", f"only_{right}"
        return {n: ids[:MOST_LISTED] for n, ids in zip(names, self.alone(), strict=False)}


def ids_asked(id: tuple[str, ...], left: str, right: str) -> tuple[str | None, str | None]:
    """The columns of ids that --id names, if any: one that both have, or one of each."""
    if len(id) > 2:
        raise ParameterError(
            f"--id may be given twice, for {left} and for {right}; got {len(id)} columns."
        )
    return (id[0], id[-1]) if id else (None, None)


def open_pairing(
    left: str, right: str, asked: Asked, words: RunLines, *, row_names: bool = False
) -> Pairing:
    """Open both tables, choose their columns, and join their rows.

    `asked.ids` names no column, one that both have, or one of each. With `row_names`, labels and
    what else goes with the rows of the left table is read in blocks as well.
    """
    paths, in_blocks = (left, right), workers.in_blocks(asked, left, right)
    ids = ids_asked(asked.ids, left, right)
    _refuse(paths, asked, in_blocks=in_blocks)

    def open_both(*ids: str | None) -> tuple[list[Table], list[float]]:
        tables, seconds = [], []
        for path, id, names in zip(paths, ids, (row_names, False), strict=True):
            start = time.perf_counter()
            tables.append(_open(path, id, asked, in_blocks=in_blocks, row_names=names))
            seconds.append(time.perf_counter() - start)
        return tables, seconds

    tables, seconds = open_both(*ids)
    for table in tables:
        if table.is_sparse:
            raise FileError(
                f"{table.name} is a sparse matrix, and a rotation mixes all columns.",
                "Reduce it by gnomon reduce first.",
            )
    rows: list[NDArray[np.int64] | None] = [None, None]
    totals = [table.n_rows for table in tables]
    if not (asked.ids or in_blocks):
        for at, (table, path) in enumerate(zip(tables, paths, strict=True)):
            tables[at], rows[at], totals[at] = _numbered(table, path)
    name = None if asked.ids or in_blocks or "-" in paths else _shared_name(tables)
    if name is not None:
        named, again = open_both(name, name)
        keys = [set() if table.ids is None else set(table.ids.tolist()) for table in named]
        if len(keys[0] & keys[1]) > 1:
            tables, seconds, rows = named, again, [None, None]
    if tables[0].name == tables[1].name:  # map.parquet of two folders
        tables = [replace(t, name=path) for t, path in zip(tables, paths, strict=True)]
    unused = _unused_ids(tables) if in_blocks and not asked.ids else []
    # Columns are chosen by --columns here, so none is said to wait for --keep.
    tables = [replace(table, roles=table.roles.final()) for table in tables]
    tables = _choose(tables, paths, asked)
    by = None if in_blocks and not asked.ids else _shared_ids(tables, asked=bool(asked.ids))
    if by is None:
        called = [
            table if left is None else replace(table, name=f"the table of {table.name}")
            for table, left in zip(tables, rows, strict=True)
        ]
        refuse_unequal(called, totals)
    engine = as_engine(n_jobs=asked.threads)
    kept: list[NDArray[np.int64] | None] = []
    for at, (table, took) in enumerate(zip(tables, seconds, strict=True)):
        say_read(words, table, took)
        prepared = prepare(
            table, missing=asked.missing, scale="none", engine=engine, memory=asked.memory
        )
        for name, text in prepared.lines():
            if name == "missing":
                words.say("Missing", text)
        tables[at] = replace(prepared.table, X=prepared.X)
        kept.append(_rows_left(rows[at], prepared.kept))
    if unused:
        words.say(
            "Note",
            f"{listed(unused)} not looked at: rows belong together by their order; --id joins by a "
            "column of numbers that ascends",
        )
    if in_blocks:
        return Pairing(_joined_in_blocks(tables[0], by), _joined_in_blocks(tables[1], by), by)
    return join_rows(tables[0], tables[1], kept, by)


def _refuse(paths: tuple[str, str], asked: Asked, *, in_blocks: bool) -> None:
    """Refuse tables that do not exist, and options that their way of reading does not have."""
    if paths == ("-", "-"):
        raise ParameterError(
            "Only one table can come from standard input. Name a file for the other."
        )
    if in_blocks and "-" in paths:
        raise ParameterError(
            "Standard input is not read in blocks, and the other table is. Save it as a file."
        )
    for path in paths:
        if path != "-" and not Path(path).exists():
            what = "file" if Path(path).suffix else "file or folder"
            raise ParameterError(f"There is no {what} '{path}'. Check the name.")
    if not in_blocks:
        return
    workers.refuse_copies(asked, *paths)
    # Rows that were dropped have no partner by order, and ids that were filled in have a wrong one.
    if asked.missing in (("mean", "em") if asked.ids else ("drop",)):
        raise ParameterError(
            f"--missing {asked.missing} needs the whole table in memory, and this one is read in "
            "blocks. Fill the gaps in beforehand."
        )


def _open(path: str, id: str | None, asked: Asked, *, in_blocks: bool, row_names: bool) -> Table:
    """A table whose rows are named by the column `id`; in blocks that is one of its numbers."""
    if not in_blocks or id is None:
        return _read(path, asked, in_blocks=in_blocks, row_names=row_names, id=id)
    try:
        table = _read(path, asked, in_blocks=True, row_names=row_names, keep=[id])
    except (FileError, OptionError) as error:
        raise _about_ids(error) from None
    own, roles = find_name("id", id, table.columns, table.name), table.roles
    other = () if roles.id is None else (LeftOut(roles.id, "another id"),)
    features = tuple(name for name in roles.features if name != own)
    roles = replace(roles, features=features, id=own, ignored=(*roles.ignored, *other))
    return replace(table, ids=None, id_name=own, roles=roles)


def _read(path: str, asked: Asked, **how: Any) -> Table:
    how |= {"na": list(asked.na) or None, "decimal": asked.decimal}
    table = open_table(path, memory=asked.memory, spool=asked.spool, **how)
    if table.in_blocks and not how["in_blocks"]:
        raise ParameterError(
            f"{table.name} does not fit into memory. Save it as a file, which is read in blocks."
        )
    return workers.limit_reading(table, asked)


def _about_ids(error: FileError | OptionError) -> FileError | OptionError:
    """Name --id in an error about --keep, which stands for it here."""
    if error.fields.get("parameter") != "keep":
        return error
    ways = [way for way in error.ways if way is not Remedy.LEAVE_OUT]
    ascends = "In blocks --id must be a column of numbers that ascends."
    return error.replace(ways=(*ways, ascends), parameter=Parameter("id"))


def _unused_ids(tables: list[Table]) -> list[str]:
    """Columns that would name rows in memory and are not looked at in blocks."""
    return list(
        dict.fromkeys(
            name
            for table in tables
            for name in table.X.files[0].all_names
            if is_id_like(name) and name not in table.columns
        )
    )


def _choose(tables: list[Table], paths: tuple[str, str], asked: Asked) -> list[Table]:
    """Only the columns of --columns; those of the map where both tables are of `gnomon map`."""
    names = [list(table.roles.features) for table in tables]
    wanted = chosen_columns([table.name for table in tables], names, asked.columns)
    why = "not in --columns" if asked.columns else "not the map: --columns to use others"

    def reopen(path: str, columns: list[str]) -> Any:
        return _read(path, asked, in_blocks=True, row_names=False, columns=columns).X

    return [
        only(table, used, why, partial(reopen, path))
        for table, path, used in zip(tables, paths, wanted, strict=True)
    ]


def _joined_in_blocks(table: Table, by: str | None) -> Table:
    """The table with its ids under the name that they have in the other table too."""
    names = tuple(str(by) if name == table.id_name else name for name in table.columns)
    return replace(table, X=call(source_of(table.X, names=names), table.name), columns=names)


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


def only(
    table: Table, names: list[str], why: str, reopen: Callable[[list[str]], Any] | None = None
) -> Table:
    """The table with the features `names` alone; `why` the others are not used.

    `reopen` gives some columns of a table in blocks as a source.
    """
    features = table.roles.features
    if len(names) == len(features):
        return table
    kept = [name for name in table.columns if name in set(names) or name not in features]
    rest = tuple(LeftOut(name, why) for name in features if name not in set(names))
    roles = replace(table.roles, features=tuple(names), ignored=(*table.roles.ignored, *rest))
    if table.in_blocks and reopen is not None:
        X = reopen(kept)
    else:
        X = table.X[:, [table.columns.index(name) for name in kept]]
    return replace(table, X=X, columns=tuple(kept), roles=roles)


def _numbered(table: Table, path: str) -> tuple[Table, NDArray[np.int64] | None, int]:
    """The rows of a run that dropped some: under their numbers in its table, and that table's rows.

    Any other table is returned as it is.
    """
    from gnomon.cli.pages import read_record

    record = read_record(Path(path).parent)
    total = record.of("table", {}).get("rows")
    if table.id_name != ROW or not record.of("preparation", {}).get("n_dropped") or not total:
        return table, None, table.n_rows
    roles = replace(table.roles, id=None, id_why="")
    rows = np.array(table.ids.tolist(), np.int64)
    return replace(table, ids=None, id_name=None, roles=roles), rows, int(total)


def _rows_left(
    rows: NDArray[np.int64] | None, kept: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Numbers of the rows that are left; None for 0, 1, 2 and so on."""
    if rows is None or kept is None:
        return kept if rows is None else rows
    return rows[kept]


def _shared_name(tables: list[Table]) -> str | None:
    """The only column of text that names every row in both tables, where none is called an id."""
    if any(table.id_name is not None for table in tables):
        return None
    naming = [
        {left.column for left in table.roles.ignored if left.can_name_rows} for table in tables
    ]
    shared = naming[0] & naming[1]
    return shared.pop() if len(shared) == 1 else None


def _shared_ids(tables: list[Table], *, asked: bool) -> str | None:
    """The column of ids that both tables have; None if rows belong together by their order."""
    names = [table.id_name for table in tables]
    if names[0] == names[1]:
        return names[0]
    if asked:
        return f"{names[0]} and {names[1]}"
    found = " and ".join("nothing" if name is None else quoted(name) for name in names)
    both = " ".join(option("id", name or "COLUMN", command=True) for name in names)
    raise ParameterError(
        f"The rows of {tables[0].name} and {tables[1].name} are named by {found}. Say which "
        f"column names them in both, by --id COLUMN, or in each, such as {both}."
    )


def refuse_unequal(tables: list[Table], rows: list[int]) -> None:
    """Refuse tables of different numbers of rows, which have no order in common."""
    if rows[0] != rows[1]:
        raise FileError(
            f"{tables[0].name} has {count(rows[0], 'row')} and {tables[1].name} {rows[1]:,}: "
            "they do not belong together by their order.",
            ("id", "COLUMN"),
        )


def _distinct_ids(table: Table) -> NDArray[np.object_]:
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
    left: Table, right: Table, kept: list[NDArray[np.int64] | None], by: str | None
) -> Pairing:
    """Join tables in memory by their ids, or where `by` is None by the numbers of their rows.

    `kept` are these numbers, where rows were dropped.
    """
    ids = [
        _numbers(table, rows) if by is None else _distinct_ids(table)
        for table, rows in zip((left, right), kept, strict=True)
    ]
    place = {key: row for row, key in enumerate(ids[1])}
    pairs = [(row, place[key]) for row, key in enumerate(ids[0]) if key in place]
    if len(pairs) < 2:
        shares = "no row" if not pairs else "only one row"
        first, second = (listed(keys.tolist(), 3) for keys in ids)
        raise FileError(
            f"{left.name} and {right.name} share {shares}"
            + (
                "."
                if by is None
                else f" by column {quoted(by)}: {first} in one, {second} in the other."
            )
        )
    rows = np.array(pairs, np.intp).T
    return Pairing(left, right, by, Joined(ids[0], ids[1], rows[0], rows[1]))


def _numbers(table: Table, kept: NDArray[np.int64] | None) -> NDArray[np.object_]:
    rows = np.arange(table.n_rows) if kept is None else kept
    return rows.astype(str).astype(object)
