"""Errors about files, and the words that they share.

Each names the file and where in it the trouble is; the ways out are options, which Python writes as
arguments and the command line as options:

    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use na="n/a", or
    drop="price".
    prices.csv: column "price" holds text in 3 rows (first: line 812, "n/a"). Use --na n/a, or
    --drop price.
"""

import shlex

from gnomon.errors import DataError, MissingValueError, ParameterError, Way, quoted

__all__ = [
    "COPIED_WHOLE",
    "FileError",
    "GapError",
    "LackingError",
    "NoRowsError",
    "OptionError",
    "Way",
    "as_seen",
    "lacks_columns",
    "listed",
    "option",
    "quoted",
]

COPIED_WHOLE = "Was it copied whole?"  # of a file that is damaged


class FileError(DataError):
    """A file that cannot be used as it is."""


class GapError(MissingValueError):
    """A table with missing values where none are allowed."""


class OptionError(ParameterError):
    """An option that does not fit the file."""


class LackingError(FileError):
    """A file without some of a model's columns."""


class NoRowsError(FileError):
    """A file that holds no rows, which may continue one that does."""


def lacks_columns(file: str, absent: list[str], d: int) -> LackingError:
    """The error about new rows that lack columns of a model of `d` columns."""
    return LackingError(
        "{file} lacks {many:,} of the {d:,} columns of the model: {columns}.",
        "Columns are found by their names, in any order.",
        file=file,
        many=len(absent),
        d=d,
        columns=listed(absent),
    )


def option(name: str, value: str, *, command: bool) -> str:
    """``drop="price"``, or ``--drop price`` on the command line."""
    if command:  # what begins like an option is bound by "="
        joint = "=" if value.startswith("-") else " "
        return f"--{name}{joint}{shlex.quote(value)}"
    return f"{name}={quoted(value)}"


def as_seen(name: str) -> str:
    """A name in a sentence: as it is, unless it needs quotes to be seen."""
    shown = quoted(name)
    return name if shown == f'"{name}"' else shown


def listed(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """``"a", "b" and 7 more``."""
    shown = ", ".join(map(quoted, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
