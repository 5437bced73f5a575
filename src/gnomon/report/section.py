"""The parts of a section of a page; `page.html` defines their look."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnomon.charts import Chart
from gnomon.charts.text import clean
from gnomon.report.content import PageContent

__all__ = [
    "Block",
    "Bullets",
    "Code",
    "Facts",
    "Figures",
    "Grid",
    "Pictures",
    "RowLink",
    "Section",
    "Words",
    "names",
    "row_link",
    "shown",
]

LONGEST = 60  # characters of a name in a sentence or a cell


@dataclass(frozen=True)
class Bullets:
    """A list of sentences under a heading."""

    kind: ClassVar[str] = "bullets"
    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Figures:
    """Charts, and optionally a list, side by side if there is room."""

    kind: ClassVar[str] = "figures"
    charts: tuple[Chart, ...]
    beside: Bullets | None = None


@dataclass(frozen=True)
class RowLink:
    """Link to a row on the map, counted from 0."""

    row: int
    text: str


@dataclass(frozen=True)
class Grid:
    """A table; columns named in `words` hold words, the others numbers."""

    kind: ClassVar[str] = "grid"
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | RowLink, ...], ...]
    words: frozenset[str] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Pictures:
    """Small pictures with a name each, in lines; `lines` are pairs of a name and its pictures.

    A picture is a pair of its name, which may be empty, and its data URL.
    """

    kind: ClassVar[str] = "pictures"
    caption: str
    note: str
    lines: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    width: int  # width of a picture, in pixels of the page


@dataclass(frozen=True)
class Facts:
    """Names with a text each."""

    kind: ClassVar[str] = "facts"
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Code to type."""

    kind: ClassVar[str] = "code"
    caption: str
    text: str


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    kind: ClassVar[str] = "words"
    text: str


Block = Figures | Grid | Pictures | Facts | Bullets | Code | Words


@dataclass(frozen=True)
class Section:
    """One section: sentences written from the numbers, the numbers themselves, and help.

    Attributes
    ----------
    id : str
        Anchor of the section.
    title : str
    lead : tuple of str
        Findings of the section, in plain sentences.
    blocks : tuple of blocks
    help : tuple of str
        Paragraphs of "What does this mean?".
    warnings : tuple of str
        Warnings shown first.
    """

    id: str
    title: str
    lead: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    help: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def shown(name: object, longest: int = LONGEST) -> str:
    """Clean a name from the data for a sentence: one line, of limited length."""
    return clean(name, longest)


def row_link(content: PageContent, row: int) -> RowLink:
    """Link to a row by its name, or its number."""
    if content.ids is not None:
        return RowLink(int(row), shown(content.ids[1][row], 40))
    number = row if content.numbers is None else content.numbers[row]
    return RowLink(int(row), f"row {number}")


def names(texts: Sequence[object], most: int = 3) -> str:
    """Format some names as a list: ``"a, b, c and 4 more"``."""
    said = [shown(text) for text in texts[:most]]
    if len(texts) > most:
        return f"{', '.join(said)} and {len(texts) - most:,} more"
    return " and ".join(filter(None, [", ".join(said[:-1]), *said[-1:]]))
