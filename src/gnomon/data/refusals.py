"""Errors about files, in two wordings: for whoever wrote Python and for whoever typed a command.

``str(error)`` speaks of arguments, ``error.command_line`` of options; all else is the same:

    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use na="n/a", or
    drop="price".
    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use --na n/a, or
    --drop price.
"""

import shlex
from typing import TypeAlias

from gnomon.errors import DataError, GnomonError, MissingValueError, ParameterError

__all__ = [
    "FileError",
    "GapError",
    "OptionError",
    "Way",
    "lacks_columns",
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
        self.command_line = _sentence(problem, ways, command=True)


class FileError(TwoWordingsError, DataError):
    """A file that cannot be used as it is."""


class GapError(TwoWordingsError, MissingValueError):
    """A table with missing values where none are allowed."""


class OptionError(TwoWordingsError, ParameterError):
    """An option that does not fit the file."""


def lacks_columns(file: str, absent: list[str], d: int) -> FileError:
    """The error about new rows that lack columns of a model of `d` columns."""
    return FileError(
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
