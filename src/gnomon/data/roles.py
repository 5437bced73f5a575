"""Which columns are numbers, which say what rows are called or how they are grouped; and why.

1. What the user named is done: `id`, `label`, `keep`, `drop`, `columns`.
2. Rows are called by a column of distinct values: one whose name says so, or the first of text.
3. Rows are coloured by a column of few values: one whose name says so, or the first of text.
4. Numbers are used. Two kinds of them are left out: ids that repeat, and whole numbers of few
   values where fewer columns are such than have fractions (a year beside measurements; but all
   pixels, counts and answers stay).
5. All else is left out: text, dates, columns without values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.data.columns import Column, as_column
from gnomon.data.names import find_name, is_id_like, is_label_like, is_strict_id
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, OptionError, Way, lacks_columns, quoted
from gnomon.data.table import LeftOut

__all__ = ["Roles", "Wishes", "assign_roles"]

FEW = 20  # distinct whole numbers that may be categories
MOST_LABELS = 50  # more groups than this cannot be told apart by colour
GROUPING = ("text", "codes", "numbers", "truth", "dates")
MOST_OTHERS = 8  # further columns to colour by
LOOK = 10_000  # rows that are looked at before all are


@dataclass(frozen=True)
class Wishes:
    """What the user said about columns, as the options' values."""

    label: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Roles:
    """What each column is for.

    `numbers` are in the order of the file, or of `columns` where these were given. `others` are
    left out and group the rows as well.
    """

    numbers: tuple[str, ...]
    label: str | None
    id: str | None
    left_out: tuple[LeftOut, ...]
    seen: dict[str, Column] = field(repr=False)
    others: tuple[str, ...] = ()


def assign_roles(raw: RawTable, wishes: Wishes) -> Roles:
    """Decide about every column of `raw`."""
    wishes = _found(wishes, raw)
    seen = {
        name: as_column(name, cells, wishes.na, raw.decimal) for name, cells in raw.columns.items()
    }
    for name in (wishes.label, wishes.id):
        if name is not None and name in raw.matrix_names:
            seen[name] = _matrix_column(raw, name)
    spoken_for = {*wishes.keep, *wishes.drop, *(wishes.columns or ())}
    free = [name for name in raw.columns if name not in spoken_for]
    n = raw.n_rows
    id_name = wishes.id if wishes.id is not None else _guess_id(free, seen, raw, n)
    others = [name for name in free if name != id_name]
    label = wishes.label if wishes.label is not None else _guess_label(others, seen, n)
    taken = {name for name in (id_name, label) if name is not None}
    if wishes.columns is not None:
        numbers = list(wishes.columns)
        used = taken.union(numbers)
        rest = [name for name in raw.names if name not in used]
        left = [LeftOut(name, "not among the model's columns") for name in rest]
    else:
        numbers, left = _numbers(raw, seen, wishes, taken)
    if not numbers:
        raise FileError(f"{raw.name} has no column of numbers to use.", *_instead(raw, taken, left))
    asked = set(wishes.drop)
    free = [each.column for each in left if each.column not in asked]
    grouping = () if wishes.columns is not None else _others(free, seen, n)
    return Roles(tuple(numbers), label, id_name, tuple(left), seen, grouping)


def _instead(raw: RawTable, taken: set[str], left: list[LeftOut]) -> list[Way]:
    """What could be used, and what the columns are."""
    why = {each.column: each.why for each in left} | dict.fromkeys(taken, "names or groups rows")
    shown = [f"{quoted(name)} ({why[name]})" for name in raw.names[:5]]
    more = len(raw.names) - len(shown)
    rest = f" and {more:,} more" if more > 0 else ""
    kept = [each.column for each in left if each.can_be_kept]
    return [*(("keep", name) for name in kept[:1]), f"Its columns are {', '.join(shown)}{rest}."]


def _found(wishes: Wishes, raw: RawTable) -> Wishes:
    """The names as the file spells them; contradictions are refused."""

    def find(option: str, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(find_name(option, name, raw.names, raw.name) for name in names)

    label, id_name = find("label", _one(wishes.label)), find("id", _one(wishes.id))
    keep, drop = find("keep", wishes.keep), find("drop", wishes.drop)
    for option, names in (("label", label), ("id", id_name), ("keep", keep)):
        both = set(names) & set(drop)
        if both:
            raise OptionError(
                f"Column {quoted(min(both))} is named by both {option} and drop.", "Name it once."
            )
    return Wishes(
        label[0] if label else None,
        id_name[0] if id_name else None,
        keep,
        drop,
        wishes.na,
        _model_columns(wishes.columns, raw),
    )


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _model_columns(columns: tuple[str, ...] | None, raw: RawTable) -> tuple[str, ...] | None:
    """The columns that a model needs; a file without names has them in the model's order."""
    if columns is None:
        return None
    if not raw.named and len(raw.names) == len(columns):
        return raw.names
    there = set(raw.names)
    vectors = {name for name in columns if name not in there and _stem(name) in raw.columns}
    absent = [name for name in columns if name not in there and name not in vectors]
    if absent:
        raise lacks_columns(raw.name, absent, len(columns))
    return tuple(dict.fromkeys(_stem(name) if name in vectors else name for name in columns))


def _stem(name: str) -> str:
    """``embedding`` of ``embedding[3]``."""
    return name.rpartition("[")[0]


def _guess_id(free: list[str], seen: dict[str, Column], raw: RawTable, n: int) -> str | None:
    named = [name for name in free if is_id_like(name)]
    if raw.named and free[:1] == ["column 1"]:  # what pandas writes before the first name
        named.append("column 1")
    texts = [
        name for name in free if seen[name].kind in ("text", "codes") and not is_label_like(name)
    ]
    for name in (*named, *texts):
        column = seen[name]
        if (
            column.kind in ("text", "codes", "numbers", "mixed")
            and n > 1
            and _distinct(column.cells) == n
        ):
            return name
    return None


def _guess_label(free: list[str], seen: dict[str, Column], n: int) -> str | None:
    named = [name for name in free if is_label_like(name)]
    texts = [name for name in free if seen[name].kind in ("text", "codes")]
    for name in (*named, *texts):
        column = seen[name]
        if column.kind == "numbers" and not _is_whole(column.values):
            continue
        # A name that says so is enough where some values repeat.
        most = min(MOST_LABELS, n - 1 if name in named else max(2, n // 2))
        if (
            column.kind in ("text", "codes", "numbers", "truth", "mixed")
            and 2 <= _distinct(column.cells) <= most
        ):
            return name
    return None


def _others(left: list[str], seen: dict[str, Column], n: int) -> tuple[str, ...]:
    """The first columns of few values among those that are left out."""
    some = (
        name for name in left if name in seen and seen[name].kind in GROUPING
        and 2 <= _distinct(seen[name].cells) <= min(MOST_LABELS, max(2, n // 2))
    )  # fmt: skip
    return tuple(islice(some, MOST_OTHERS))


def _numbers(
    raw: RawTable, seen: dict[str, Column], wishes: Wishes, taken: set[str]
) -> tuple[list[str], list[LeftOut]]:
    """Columns in use, and the others with the reason."""
    keep, drop = set(wishes.keep), set(wishes.drop)
    spoken_for = taken | keep | drop
    few = _few_valued(
        [seen[name] for name in raw.columns if name not in spoken_for],
        fractions=raw.matrix is not None and raw.matrix.dtype.kind == "f",
    )
    numbers: list[str] = []
    left: list[LeftOut] = []
    for name in raw.names:
        kind = seen[name].kind if name in seen else "numbers"
        if name in drop:
            left.append(LeftOut(name, "as asked"))
        elif name in keep:
            numbers.append(name)
        elif name in taken:
            continue
        elif kind == "codes":
            left.append(LeftOut(name, "codes with leading zeros", can_be_kept=True))
        elif name in few:
            left.append(LeftOut(name, few[name], can_be_kept=True))
        elif is_strict_id(name) and kind == "numbers" and name in seen:
            left.append(LeftOut(name, "named like an id, but repeated", can_be_kept=True))
        elif kind in ("numbers", "vectors", "truth", "mixed"):
            numbers.append(name)  # if it is mixed, the error comes when its numbers are wanted
        else:
            left.append(LeftOut(name, "no values" if kind == "empty" else kind))
    return numbers, left


def _few_valued(columns: list[Column], *, fractions: bool) -> dict[str, str]:
    """Columns that are categories rather than measurements, by rule 4; and why."""
    numeric = [column for column in columns if column.kind == "numbers"]
    whole = [column for column in numeric if _is_whole(column.values.slice(0, LOOK))]
    fractional = len(numeric) - len(whole) + fractions
    if not fractional:
        return {}
    few = {
        column.name: "few distinct integers" if _distinct(column.values) > 1 else "constant"
        for column in whole
        if not is_strict_id(column.name)
        and _distinct(column.values.slice(0, LOOK)) <= FEW
        and _distinct(column.values) <= min(FEW, max(2, len(column.values) // 10))
    }
    few |= {column.name: "true and false" for column in columns if column.kind == "truth"}
    return few if len(few) < fractional else {}


def _distinct(cells: Any) -> int:
    return int(pc.count_distinct(cells, mode="only_valid").as_py())


def _is_whole(cells: Any) -> bool:
    if pa.types.is_integer(cells.type):
        return True
    values = cells.drop_null().to_numpy()
    return bool((np.rint(values) == values).all())


def _matrix_column(raw: RawTable, name: str) -> Column:
    assert raw.matrix is not None
    values: NDArray[Any] = raw.matrix[:, raw.matrix_names.index(name)]
    cells = pa.chunked_array([pa.array(np.ascontiguousarray(values))])
    return Column(name, "numbers", cells, cells)
