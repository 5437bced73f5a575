"""Names of columns: made unique, found again, and what they give away."""

import difflib
import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gnomon.data.refusals import OptionError, listed, quoted
from gnomon.errors import Parameter, refuse

__all__ = [
    "are_components",
    "as_names",
    "find_name",
    "find_names",
    "is_id_like",
    "is_index_like",
    "is_label_like",
    "is_strict_id",
    "stem_of",
    "unique_names",
    "vector_of",
]

ALIKE = 0.7  # share of letters from which a name is taken for a misspelled one
MOST_LISTED = 12

_STRICT_ID = re.compile(r"(.*[ _.-])?(id|ids|uuid|guid)")
_CAMEL_ID = re.compile(r".*[a-z](Id|ID)")
# `refractive_index` and `price_index` measure something: only these are numbers of rows. `row` is
# what results have whose table lost some rows.
_INDEX = re.compile(
    r"((row|sample|cell|item|case|record|obs|observation|data|original)[ _.-]?)?(index|idx)"
    r"|row|__index_level_\d+__|unnamed: \d+(\.\d+)*"
)
_ID = re.compile(
    r"(.*[ _.-])?names?|key|rownames?|barcode|accession|sample|subject|patient|cell|gene|code|title"
    r"|country|city|town|state|player|team|company|product|model|car|compound|molecule|smiles"
    r"|doi|isbn|sku|url|email|username|phone|(.*[ _.-])?(no\.?|nr\.?|number)"
)
_LABEL = re.compile(
    r"(.*[ _.-])?(labels?|class|classes|targets?|species|subspecies|category|groups?|clusters?"
    r"|diagnosis|outcome|cultivar|variety|celltype|cell[ _.-]type|leiden|louvain)"
    r"|type|digit|y|survived|churn"
)
_COMPONENT = re.compile(r"(?:pca|pcs?)[ _]?(\d+)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def unique_names(header: Sequence[str] | None, width: int) -> tuple[list[str], list[str]]:
    """A name for every column, and what had to be done for that.

    Columns without a name are called by their place, from 1; of several with the same name, the
    second is called "name (2)".
    """
    given = [""] * width if header is None else list(header)
    taken, used = set(given), set[str]()
    names: list[str] = []
    notes = []
    for j, name in enumerate(given):
        unique = name
        if not name.strip():
            unique = f"column {j + 1}"
        elif name in used:
            unique = _numbered(name, taken)
            notes.append(
                f"more than one column is called {quoted(name)}: column {j + 1} is called "
                f"{quoted(unique)} here"
            )
        if unique != name and unique in taken:
            unique = _numbered(unique, taken)
        taken.add(unique)
        used.add(unique)
        names.append(unique)
    nameless = [j + 1 for j, name in enumerate(given) if not name.strip()]
    if header is not None and nameless:
        one = f"column {nameless[0]} has no name"
        many = f"{len(nameless)} columns have no name, the first is column {nameless[0]}"
        notes.append(one if len(nameless) == 1 else many)
    return names, notes[:3]


def _numbered(name: str, taken: Collection[str]) -> str:
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def as_names(option: str, value: Any) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        refuse(option, "be a name or a list of names", value, kind=True)
    return tuple(value)


def find_name(option: str, name: str, names: Collection[str], file: str) -> str:
    """`name` as the file spells it."""
    if name in names:
        return name
    for loosely in (str.strip, lambda text: text.strip().casefold()):
        same = [there for there in names if loosely(there) == loosely(name)]
        if len(same) == 1:
            return same[0]
    close = difflib.get_close_matches(name, list(names), 1, cutoff=ALIKE)
    raise OptionError(
        "{file} has no column {column}, named by the option {parameter}.",
        f"Did you mean {quoted(close[0])}?" if close else _there(name, names),
        file=file,
        column=quoted(name),
        parameter=Parameter(option),
    )


def _there(name: str, names: Collection[str]) -> str:
    """What names there are, those that look like `name` first; a hint where it lists several."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and any(fnmatchcase(each, part) for part in parts for each in names):
        return "Give the option once for each name."
    near = difflib.get_close_matches(name, list(names), MOST_LISTED, cutoff=0.3)
    return f"It has {listed([*near, *(each for each in names if each not in near)], MOST_LISTED)}."


def find_names(
    option: str,
    wanted: Sequence[str],
    names: Collection[str],
    file: str,
    beside: Collection[str] = (),
) -> tuple[str, ...]:
    """The columns that `wanted` names outright or by patterns such as ``pc*``, in the file's order.

    A column whose name is the pattern itself is meant rather than what the pattern fits. Patterns
    do not fit the columns `beside` a matrix.
    """
    found: set[str] = set()
    for each in wanted:
        if each in names or not any(mark in each for mark in "*?["):
            found.add(find_name(option, each, names, file))
            continue
        fitting = [name for name in names if name not in beside and fnmatchcase(name, each)]
        if not fitting:
            raise OptionError(
                "{file} has no column that fits {pattern}, named by the option {parameter}.",
                _there(each, names),
                file=file,
                pattern=quoted(each),
                parameter=Parameter(option),
            )
        found.update(fitting)
    return tuple(name for name in names if name in found)


def stem_of(name: str) -> str | None:
    """``V#`` of ``V12``, ``pixel_#_#`` of ``pixel_3_7``, ``#`` of ``402.5``; or None."""
    stem, numbers = _NUMBER.subn("#", name.strip())
    return stem if numbers else None


def are_components(names: Sequence[str]) -> bool:
    """Whether columns are principal components already: ``pca_1``, ``pca_2`` … or ``PC1`` …."""
    found = [_COMPONENT.fullmatch(name.strip().casefold()) for name in names]
    return len(found) > 1 and [int(each[1]) if each else 0 for each in found] == [
        *range(1, len(found) + 1)
    ]


def vector_of(name: str) -> str:
    """The column ``embedding`` that ``embedding[3]`` is an entry of."""
    return name.rpartition("[")[0]


def is_strict_id(name: str) -> bool:
    """Whether a column of this name never measures anything."""
    name = name.strip()
    lower = name.casefold()
    return bool(_STRICT_ID.fullmatch(lower) or _CAMEL_ID.fullmatch(name) or _INDEX.fullmatch(lower))


def is_index_like(name: str) -> bool:
    """Whether a column of this name numbers the rows."""
    return _INDEX.fullmatch(name.strip().casefold()) is not None


def is_id_like(name: str) -> bool:
    """Whether a column of this name may say what rows are called."""
    return is_strict_id(name) or _ID.fullmatch(name.strip().casefold()) is not None


def is_label_like(name: str) -> bool:
    """Whether a column of this name may group the rows."""
    return _LABEL.fullmatch(name.strip().casefold()) is not None
