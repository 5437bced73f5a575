"""All columns of a file as they were read, before anything is decided about them."""

from dataclasses import dataclass, field
from typing import Any

from gnomon.data.table import Places

__all__ = ["RawTable"]


@dataclass(frozen=True, eq=False)
class RawTable:
    """What the readers of the several formats have in common.

    Attributes
    ----------
    name : str
        The file.
    columns : dict
        Name → pyarrow ChunkedArray of numbers, text, booleans, dates or lists.
    matrix : array or CSR array (n, m), or None
        Columns that are an array already.
    matrix_names : tuple of str, length m
    places : Places
    notes : tuple of str
    named : bool
        Whether the names are from the file.
    decimal : str
        The decimal point inside of texts.
    categories : frozenset of str
        Columns that the file itself calls categories (Arrow's dictionaries of text or of whole
        numbers).
    beside : frozenset of str
        Arrays of one dimension that stand beside the table (.npz): labels, not features.
    counting : frozenset of str
        Columns that count the rows of each file of a folder.
    typed : bool
        Whether the file says of its columns what they hold, so that numbers in text are unusual.
    size : str
        Size of the file in words; rows × columns if empty.
    more : bool
        Whether these are the first rows alone: a column with one value may have others further on.
    """

    name: str
    columns: dict[str, Any]
    matrix: Any = None
    matrix_names: tuple[str, ...] = ()
    places: Places = field(default_factory=Places)
    notes: tuple[str, ...] = ()
    named: bool = True
    decimal: str = "."
    categories: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    counting: frozenset[str] = frozenset()
    typed: bool = False
    size: str = ""
    more: bool = False

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.matrix_names, *self.columns)
