"""What names, colours and describes the rows of a table that is read in blocks.

These columns are read once, as a whole, and kept as Arrow has them: a text takes its letters and a
few bytes, a label of a few groups four bytes, where a string of Python takes sixty. What takes more
than its share of the memory allowed is left out, and the table says so.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory, readable_bytes
from gnomon.data.columns import Column, as_column, as_text, colour_of, shown_of
from gnomon.data.dialect import MISSING
from gnomon.data.raw import RawTable
from gnomon.data.refusals import listed
from gnomon.data.sources import FileSource
from gnomon.data.table import SHOWN, ColumnRoles, LeftOut

__all__ = ["TextColumn", "read_row_names"]

SHARE = 4  # names may take one part in so many of the memory allowed
FEW = 4  # a column of so many times fewer different texts than rows is kept as codes


class TextColumn:
    """Texts of all rows, None where a row has none, in the memory that Arrow takes.

    It is used as the array of objects that it stands for: rows are taken by an array of numbers or
    truth values, and NumPy and pyarrow make arrays of it.
    """

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, cells: Any) -> None:
        self.cells = cells

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def shape(self) -> tuple[int]:
        """Shape of the cells as an array."""
        return (len(self.cells),)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return int(self.cells.nbytes)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return _objects(self.cells[rows])
        rows = np.asarray(rows)
        if rows.ndim == 0:
            return self.cells[int(rows)].as_py()
        return _objects(self.cells.take(pa.array(np.arange(len(self))[rows])))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        return _objects(self.cells)

    def __arrow_array__(self, type: Any = None) -> Any:
        return _plain(self.cells)

    def tolist(self) -> list[str | None]:
        """Strings of Python."""
        texts: list[str | None] = self.cells.to_pylist()
        return texts

    @classmethod
    def from_column(cls, column: Column, na: Collection[str], *, gaps: bool) -> "TextColumn":
        """The cells as text, to the letter; with `gaps`, None where a value is missing."""
        cells = pa.chunked_array(column.cells).combine_chunks()
        if isinstance(cells, pa.ChunkedArray):  # of no rows
            cells = pa.nulls(0, pa.large_string())
        encoded = cells.dictionary_encode()
        words = [as_text(value) for value in encoded.dictionary.to_pylist()]
        if gaps:
            missing = {*MISSING, *na}
            words = [None if word is None or word.strip() in missing else word for word in words]
        texts = pa.array(words, pa.large_string())
        if not gaps and encoded.null_count:
            return cls(pc.fill_null(texts.take(encoded.indices), ""))
        if FEW * len(words) > len(encoded):
            return cls(texts.take(encoded.indices))
        return cls(pa.DictionaryArray.from_arrays(encoded.indices, texts))


def _objects(cells: Any) -> NDArray[np.object_]:
    """Texts as objects of Python; the same object for rows of the same group."""
    found = np.empty(len(cells), dtype=object)
    if pa.types.is_dictionary(cells.type):
        words = np.array([*cells.dictionary.to_pylist(), None], dtype=object)
        found[:] = words[cells.indices.fill_null(len(words) - 1).to_numpy()]
    else:
        found[:] = cells.to_pylist()
    return found


def _plain(cells: Any) -> Any:
    """Texts as pyarrow has those of Python."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(pa.large_string())
    return cells.cast(pa.string()) if cells.nbytes < 2**31 else cells


def read_row_names(source: FileSource, memory: Memory) -> dict[str, Any]:
    """Labels, ids and what else goes with the rows, as fields of a `Table`, with roles and notes.

    Where all of it takes too much, label and id alone are read; where these do, nothing is.
    """
    most_bytes, roles = Budget.from_memory(memory).bytes // SHARE, source.roles
    first = [name for name in (roles.label, roles.id) if name is not None]
    shown = [name for role in SHOWN if (name := getattr(roles, role)) is not None]
    colours = [left.column for left in roles.kept_for_colour]
    wanted = list(dict.fromkeys([*first, *shown, *colours]))
    raw: RawTable | None = None
    for names in (wanted, first, []):
        raw = source.cells(names, most_bytes) if names else RawTable("", {})
        if raw is not None:
            break
    assert raw is not None
    left_out, notes = [name for name in wanted if name not in raw.columns], list(source.notes)
    if left_out:
        notes.append(
            f"{listed(left_out)} left out of the results: of all rows more than the "
            f"{readable_bytes(most_bytes)} that may be used for it"
        )
    guessed = roles.id if source.options.id is None else None
    if guessed in raw.columns and pc.count_distinct(raw.columns[guessed]).as_py() < source.rows:
        again = LeftOut(guessed, "names rows more than once", can_name_rows=True)
        roles = replace(roles, id=None, id_why="", ignored=(*roles.ignored, again))
    return {**_fields(source, roles, raw), "roles": roles, "notes": tuple(notes)}


def _fields(source: FileSource, roles: ColumnRoles, raw: RawTable) -> dict[str, Any]:
    how, na, texts = source.options.reading(raw.decimal), source.options.na, TextColumn.from_column
    seen = {
        name: replace(as_column(name, cells, how), category=name in raw.categories)
        for name, cells in raw.columns.items()
    }
    fields: dict[str, Any] = {
        "others": tuple(
            (left.column, colour_of(seen[left.column], na, texts))
            for left in roles.kept_for_colour
            if left.column in seen
        )
    }
    if roles.label in seen:
        fields["label_name"] = roles.label
        fields["labels"] = texts(seen[roles.label], na, gaps=True)
    if roles.id in seen:
        fields["id_name"] = roles.id
        fields["ids"] = texts(seen[roles.id], na, gaps=False)
    for role in SHOWN:
        if (name := getattr(roles, role)) in seen:
            fields[role] = shown_of(seen[name], role, texts)
    return fields
