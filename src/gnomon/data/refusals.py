"""Errors about files, in two wordings: for whoever wrote Python and for whoever typed a command.

``str(error)`` speaks of arguments, ``error.command_line()`` of options; all else is the same:

    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use na="n/a", or
    drop="price".
    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use --na n/a, or
    --drop price.
"""

import shlex
from collections.abc import Container
from functools import partial
from typing import Any, TypeAlias

from gnomon.errors import (
    DataError,
    GnomonError,
    MissingValueError,
    ParameterError,
    TooLargeError,
)
from gnomon.memory import LIBRARIES, readable_bytes

__all__ = [
    "FileError",
    "GapError",
    "LackingError",
    "NoRowsError",
    "OptionError",
    "RoomError",
    "TwoWordingsError",
    "Way",
    "as_seen",
    "lacks_columns",
    "libraries_words",
    "listed",
    "option",
    "quoted",
]

# A way out is an option and its value, or a sentence of its own.
Way: TypeAlias = tuple[str, str] | str

LONGEST = 60


class TwoWordingsError(GnomonError):
    """A problem and its ways out.

    Parameters
    ----------
    problem : str
        A sentence, with its full stop.
    *ways : (option, value) or str
        What the user can do. Options are written as an argument or as a command's option.
    """

    def __init__(self, problem: str, *ways: Way) -> None:
        super().__init__(_sentence(problem, ways, command=False))
        self.problem, self.ways = problem, ways

    def command_line(self, known: Container[str] | None = None) -> str:
        """The same for a command that has the options `known`; ways by others are left out."""
        ways = [way for way in self.ways
                if isinstance(way, str) or known is None or way[0] in known]  # fmt: skip
        return _sentence(self.problem, tuple(ways), command=True)


class FileError(TwoWordingsError, DataError):
    """A file that cannot be used as it is."""


class GapError(TwoWordingsError, MissingValueError):
    """A table with missing values where none are allowed."""


class OptionError(TwoWordingsError, ParameterError):
    """An option that does not fit the file."""


class LackingError(FileError):
    """A file without some of a model's columns."""


class NoRowsError(FileError):
    """A file that holds no rows, which may continue one that does."""


class RoomError(TwoWordingsError, TooLargeError):
    """Work that does not fit into the memory allowed.

    Parameters
    ----------
    what : str
        What needs it: ``"cells.csv: its table"``.
    needed : float or None
        Bytes; None where only `room` is known to be too little.
    room : float
        Bytes there are for it.
    asked : bool
        Whether `room` is what the user allowed; otherwise it is what the machine has free.
    processes : int
        Whose libraries were taken from what the user allowed; their memory is counted again in
        what is said. 0 from Python.
    """

    def __init__(
        self, what: str, needed: float | None, room: float, *, asked: bool, processes: int = 0
    ) -> None:
        super().__init__(*_room_words(what, needed, room, asked, processes))
        self.parts, self.asked, self.processes = (what, needed, room), asked, processes

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from its parts; an exception would be from its message."""
        again = partial(type(self), asked=self.asked, processes=self.processes)
        return again, self.parts, self.__dict__


def _room_words(
    what: str, needed: float | None, room: float, asked: bool, processes: int
) -> tuple[str, *tuple[Way, ...]]:
    """What needs how much, what there is, and the ways out."""
    beside = processes * LIBRARIES
    has = f"{readable_bytes(room + beside)} that {'are allowed' if asked else 'are free'}"
    whose = libraries_words(processes)
    others = f" beside the {readable_bytes(beside)} of {whose}" if beside else ""
    if needed is None:
        problem, enough = f"{what} needs more memory{others} than the {has}.", "SIZE"
    else:
        much = f"{readable_bytes(needed)} of memory{others}"
        problem = f"{what} needs about {much}, more than the {has}."
        # A little more than that, so that asking for the rounded number is enough.
        enough = readable_bytes(1.1 * (needed + beside)).replace(" ", "").replace("bytes", "B")
    fewer = "fewer rows or columns."
    return (
        (problem, ("memory", enough), f"Or take {fewer}") if asked else (problem, f"Take {fewer}")
    )


def libraries_words(processes: int) -> str:
    """``"the libraries"``, or whose they are where there are several processes."""
    return "the libraries" if processes <= 1 else f"the libraries of {processes} processes"


def lacks_columns(file: str, absent: list[str], d: int) -> LackingError:
    """The error about new rows that lack columns of a model of `d` columns."""
    return LackingError(
        f"{file} lacks {len(absent):,} of the {d:,} columns of the model: {listed(absent)}.",
        "Columns are found by their names, in any order.",
    )


def option(name: str, value: str, *, command: bool) -> str:
    """``drop="price"``, or ``--drop price`` on the command line."""
    # What a shell quotes over several lines, or what begins like an option, is bound by "=".
    if command:
        joint = "=" if value.startswith("-") else " "
        return f"--{name}{joint}{shlex.quote(value)}"
    return f"{name}={quoted(value)}"


def quoted(text: object, longest: int = LONGEST) -> str:
    """`text` in quotes on one line: cut where it is long, escaped where it cannot be seen."""
    whole = str(text)
    cut = whole if len(whole) <= longest else whole[: longest - 1] + "…"
    seen = "".join(
        "\\" + c if c in '"\\' else c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in cut
    )
    return f'"{seen}"'


def as_seen(name: str) -> str:
    """A name in a sentence: as it is, unless it needs quotes to be seen."""
    shown = quoted(name)
    return name if shown == f'"{name}"' else shown


def listed(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """``"a", "b" and 7 more``."""
    shown = ", ".join(map(quoted, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _sentence(problem: str, ways: tuple[Way, ...], *, command: bool) -> str:
    options = [option(*way, command=command) for way in ways if isinstance(way, tuple)]
    text = [problem]
    if options:
        first, last = ", ".join(options[:-1]), options[-1]
        text.append(f"Use {first}{', or ' if first else ''}{last}.")
    return " ".join([*text, *(way for way in ways if isinstance(way, str))])
