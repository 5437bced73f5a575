"""A folder of files as one table: its files in the order of their names, one below the other.

All files must have the same columns. What a column holds is decided from all of them: where one
file of text has only numbers in a column and another has words, the column is text in both.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.data.formats.sparse import find_10x
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError, listed, quoted
from gnomon.data.table import Places

__all__ = ["different_columns", "files_of", "join_parts", "other_columns", "read_folder"]

ENDINGS = (
    ".npy",
    ".parquet",
    ".feather",
    ".arrow",
    ".csv",
    ".tsv",
    ".txt",
    ".jsonl",
    ".ndjson",
    ".json",
    ".xlsx",
)

# Reads a file; columns of the given names, if they are text, as text.
ReadFile = Callable[[Path, Collection[str]], RawTable]


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files of a folder, by name; anything else in it is refused.

    The files of a 10x folder are one table: the folder stands for it.
    """
    if not path.is_dir() or find_10x(path) is not None:
        return [path]
    called = quoted(path, longest=4096)
    there = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    others = [
        file.name for file in there if not file.is_file() or file.suffix.lower() not in ENDINGS
    ]
    inner = [file.name for file in there if file.is_dir() and _holds_tables(file)]
    if others:
        way = "Put the files of one table into a folder of their own."
        if inner:
            way = f"Name the folder inside: {quoted(path / inner[0], longest=4096)}."
        raise FileError(
            f"{called} holds {listed(others)}, which {'is' if len(others) == 1 else 'are'} "
            f"no table that is read from a folder ({', '.join(ENDINGS)}).",
            way,
        )
    if not there:
        raise FileError(f"{called} has no files that end in {', '.join(ENDINGS)}.")
    return there


def _holds_tables(folder: Path) -> bool:
    return any(file.suffix.lower() in ENDINGS for file in folder.iterdir())


def other_columns(
    name: str, first: str, known: Collection[str], absent: Sequence[str], there: Sequence[str]
) -> FileError:
    """The error of a file that does not have the columns of the first one, and how they differ.

    Often one name is another in a different spelling: ``It lacks "a" and has "A".``
    """
    unknown = [column for column in there if column not in known]
    lacks = [f"lacks {listed(tuple(absent))}"] if absent else []
    has = [f"has {listed(unknown)}"] if unknown else []
    how = f"It {' and '.join([*lacks, *has])}." if lacks or has else "It has them twice."
    return different_columns(name, first, how)


def read_folder(folder: Path, read: ReadFile) -> RawTable:
    """All rows of the files of `folder`, each read by `read`."""
    paths, parts = files_of(folder), []
    for path in paths:
        if len(paths) > 1 and path.stat().st_size == 0:
            continue  # of a table that was written in parts, some may be empty
        try:
            parts.append((path, read(path, ())))
        except NoRowsError:
            if len(paths) == 1:
                raise
    if not parts:
        raise FileError(f"None of {len(paths)} files has rows: {listed([p.name for p in paths])}.")
    first = parts[0][1]
    for _, part in parts[1:]:
        _refuse_other_columns(part, first)
    texts = _texts_in_some(parts)
    raws = [
        read(path, texts) if texts and _holds_numbers(part, texts) else part for path, part in parts
    ]
    return join_parts(folder.name, raws)


def different_columns(name: str, first: str, how: str) -> FileError:
    """The error of a file that does not have the columns of the first one."""
    return FileError(
        f"{name} does not have the same columns as {first}.",
        f"{how} All files of a folder must have the same.",
    )


def _refuse_other_columns(part: RawTable, first: RawTable) -> None:
    if part.named != first.named:
        no = "" if part.named else "no "
        raise different_columns(part.name, first.name, f"It has {no}column names.")
    absent = [name for name in first.names if name not in part.names]
    if absent or len(part.names) != len(first.names):
        raise other_columns(part.name, first.name, first.names, absent, part.names)
    if (part.matrix is None) != (first.matrix is None):
        raise different_columns(
            part.name, first.name, "One is an array of NumPy, the other is not."
        )


def _texts_in_some(parts: Sequence[tuple[Path, RawTable]]) -> tuple[str, ...]:
    """Columns that some files of text hold as text, and others as numbers."""
    kinds: dict[str, set[bool]] = {}
    for _, part in parts:
        for name, cells in part.columns.items():
            if not part.typed:
                kinds.setdefault(name, set()).add(_is_text(cells))
    return tuple(name for name, kind in kinds.items() if len(kind) == 2)


def _holds_numbers(part: RawTable, names: Collection[str]) -> bool:
    return not part.typed and any(not _is_text(part.columns[name]) for name in names)


def _is_text(cells: Any) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def join_parts(name: str, parts: Sequence[RawTable]) -> RawTable:
    """The rows of all parts, in the order of the first one's columns."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, name=name)
    columns = {column: _joined_column(column, parts) for column in first.columns}
    counting = [column for column, cells in columns.items() if _begins_again(cells, parts)]
    notes = [f'"{column}" counts the rows of each file' for column in counting]
    starts = np.cumsum([0, *(part.n_rows for part in parts)])
    places = tuple(
        (int(start), part.name, part.places) for start, part in zip(starts, parts, strict=False)
    )
    return replace(
        first,
        name=name,
        columns=columns,
        matrix=None if first.matrix is None else np.concatenate([p.matrix for p in parts]),
        places=Places(parts=places),
        notes=tuple(dict.fromkeys([*(note for part in parts for note in part.notes), *notes])),
        decimal="," if any(part.decimal == "," for part in parts) else ".",
        categories=frozenset().union(*(part.categories for part in parts)),
        counting=frozenset(counting),
    )


def _joined_column(name: str, parts: Sequence[RawTable]) -> Any:
    """One column of all parts, of a type that holds each."""
    cells = [part.columns[name] for part in parts]
    kinds = list(dict.fromkeys(column.type for column in cells))
    if len(kinds) > 1:
        kind = _common_type([kind for kind in kinds if not pa.types.is_null(kind)])
        if kind is None:
            at = next(i for i, column in enumerate(cells) if column.type != kinds[0])
            raise different_columns(
                parts[at].name,
                parts[0].name,
                f"Its column {quoted(name)} holds {cells[at].type}, the first one's {kinds[0]}.",
            )
        cells = [column.cast(kind) for column in cells]
    return pa.chunked_array([chunk for column in cells for chunk in column.chunks], cells[0].type)


def _common_type(kinds: Sequence[Any]) -> Any:
    """The type that values of all `kinds` fit into; None if there is none."""
    if all(_is_number(kind) for kind in kinds):
        return pa.float64() if any(map(pa.types.is_floating, kinds)) else pa.int64()
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
        return pa.large_string()
    lists = [kind for kind in kinds if pa.types.is_list(kind) or pa.types.is_large_list(kind)]
    if len(lists) == len(kinds) and all(_is_number(kind.value_type) for kind in kinds):
        return pa.large_list(pa.float64())
    return kinds[0] if len(kinds) == 1 else None


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _begins_again(cells: Any, parts: Sequence[RawTable]) -> bool:
    """Whether a column counts the rows of each file, from 0 or from 1 on."""
    if not pa.types.is_integer(cells.type) or cells.null_count:
        return False
    low, start = cells[0].as_py(), 0
    if low not in (0, 1):
        return False
    for part in parts:
        own = cells.slice(start, part.n_rows).combine_chunks()
        start += part.n_rows
        counted = pa.array(np.arange(low, low + part.n_rows), own.type)
        if not pc.all(pc.equal(own, counted)).as_py():
            return False
    return True
