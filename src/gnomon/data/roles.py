"""Which columns are features, which name or colour the rows, which are ignored; and why.

One rule for files, folders and tables in blocks. Guessing needs two signals, is said, and can be
reversed by an option.

1. What the user named is done: `id`, `label`, `features`, `keep`, `drop`; or `columns`, those of a
   model.
2. Id: distinct whole numbers or texts *and* a name like an id, or 0, 1, 2 … or 1, 2, 3 … row by
   row, or the first column without a name, or texts beside an array (.npz). Numbers with fractions
   are never ids. Named like an id, numbers that count from 1 again and again number the rows of
   each group, and are no feature. Without any, a column shown as `text` is the id, too, if it has
   another word in every row.
3. Label: text, categories, true and false; or few distinct whole numbers *and* a name like a label,
   or at most two such columns beside more columns of numbers of another kind. Arrays of one
   dimension beside a table (.npz) are labels.
4. Features: numbers, and text that is all numbers. Where one kind has 50 columns or more, columns
   of another kind are none (`gnomon.data.kinds`). True and false are features only where hardly
   anything else is numbers.
5. What is no feature is kept for colour if it groups the rows or is a quantity; otherwise ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gnomon.data.column_options import ColumnOptions, found_in
from gnomon.data.columns import Column, as_column
from gnomon.data.guess import Guess, matrix_column
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, Way, quoted
from gnomon.data.table import ColumnRoles

__all__ = ["Roles", "assign_roles"]


@dataclass(frozen=True, eq=False)
class Roles:
    """What each column is for.

    `numbers` are the features as columns of the file, in its order, or in that of `columns` where
    these were given. `names` says the same of all columns; its features are those of the file.
    """

    numbers: tuple[str, ...]
    names: ColumnRoles
    seen: dict[str, Column] = field(repr=False)
    notes: tuple[str, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)  # by which option a feature was named
    shown: Mapping[str, str] = field(default_factory=dict)  # columns that a page shows, by role


def assign_roles(raw: RawTable, options: ColumnOptions) -> Roles:
    """Decide about every column of `raw`."""
    options = found_in(options, raw)
    how = options.reading(raw.decimal)
    seen = {name: as_column(name, cells, how) for name, cells in raw.columns.items()}
    for name in raw.categories:
        seen[name] = replace(seen[name], category=True)
    for given in (options.label, options.id):
        if given is not None and given in raw.matrix_names:
            seen[given] = matrix_column(raw, given)
    guess = Guess(raw, options, seen)
    if not guess.numbers:
        raise FileError(f"{raw.name} has no column of numbers to use.", *_instead(raw, guess))
    names = ColumnRoles(
        tuple(guess.numbers),
        guess.label,
        guess.id,
        tuple(guess.kept),
        tuple(guess.ignored),
        guess.label_why,
        guess.id_why,
        **options.shown,
    )
    notes = _notes(raw, seen, guess.numbers)
    return Roles(tuple(guess.numbers), names, seen, notes, options.asked, options.shown)


def _instead(raw: RawTable, guess: Guess) -> list[Way]:
    """What could be used, and what the columns are."""
    why = guess.why | dict.fromkeys((guess.label, guess.id), "names or groups rows")
    shown = [f"{quoted(name)} ({why[name]})" for name in raw.names[:5]]
    more = len(raw.names) - len(shown)
    rest = f" and {more:,} more" if more > 0 else ""
    kept = [each.column for each in (*guess.kept, *guess.ignored) if each.can_be_kept]
    return [*(("keep", name) for name in kept[:1]), f"Its columns are {', '.join(shown)}{rest}."]


def _notes(raw: RawTable, seen: dict[str, Column], numbers: Sequence[str]) -> tuple[str, ...]:
    """What had to be assumed about the features: text that is numbers, and thousands."""
    used = [seen[name] for name in numbers if name in seen and seen[name].kind == "numbers"]
    notes = []
    texts = [column.name for column in used if column.is_text and column.marks is None]
    if texts and raw.typed:
        notes.append(f"{_some(texts)}: text that is all numbers, read as numbers")
    marks = {column.marks for column in used if column.marks is not None}
    for each in sorted(marks):
        names = [column.name for column in used if column.marks == each]
        notes.append(f"{_some(names)}: thousands are separated by {each}")
    return tuple(notes)


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
