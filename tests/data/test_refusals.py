import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data.refusals import (
    FileError,
    GapError,
    OptionError,
    RoomError,
    listed,
    option,
    quoted,
)
from gnomon.errors import DataError, MissingValueError, ParameterError, TooLargeError


def test_an_error_speaks_to_those_who_wrote_python_and_to_those_who_typed_a_command():
    error = FileError("Bad.", ("na", "n/a"), ("drop", "my price"), "Or mend it.")
    assert str(error) == 'Bad. Use na="n/a", or drop="my price". Or mend it.'
    assert error.command_line() == "Bad. Use --na n/a, or --drop 'my price'. Or mend it."
    assert str(FileError("Bad.")) == FileError("Bad.").command_line() == "Bad."


@pytest.mark.parametrize(
    ("kind", "base"),
    [(FileError, DataError), (GapError, MissingValueError), (OptionError, ParameterError)],
)
def test_every_error_is_in_the_one_tree(kind, base):
    assert issubclass(kind, base)
    assert issubclass(kind, ValueError)


def test_values_that_begin_like_options_are_bound_to_theirs():
    assert option("na", "-999", command=True) == "--na=-999"
    assert option("na", "-999", command=False) == 'na="-999"'


@given(st.text())
def test_a_shell_gives_the_value_back(value):
    words = shlex.split(option("drop", value, command=True))
    given = "".join(words).removeprefix("--drop").removeprefix("=" * value.startswith("-"))
    assert given == value


@given(st.text())
def test_what_is_quoted_is_one_printable_line(text):
    shown = quoted(text)
    assert shown.isprintable()
    assert shown[0] == shown[-1] == '"'


def test_what_cannot_be_seen_is_escaped_and_what_is_long_is_cut():
    assert quoted('a\n\x1b[31m"\u202e') == '"a\\n\\x1b[31m\\"\\u202e"'
    assert quoted("x" * 100) == '"' + "x" * 59 + '…"'


def test_long_lists_are_cut():
    assert listed(["a", "b"]) == '"a", "b"'
    assert listed([str(i) for i in range(9)]) == '"0", "1", "2", "3", "4" and 4 more'


def test_ways_by_options_that_a_command_has_not_are_left_out():
    error = FileError("Bad.", ("na", "x"), ("drop", "price"), "Or mend it.")
    assert error.command_line({"na", "id"}) == "Bad. Use --na x. Or mend it."
    assert error.command_line(set()) == "Bad. Or mend it."
    assert str(error) == 'Bad. Use na="x", or drop="price". Or mend it.'


@pytest.mark.parametrize(
    ("needed", "asked", "says"),
    [
        (2e9, True, "It needs about 2.0 GB of memory{}, more than the {} that are allowed. Use "
         "{}. Or take fewer rows or columns."),
        (2e9, False, "It needs about 2.0 GB of memory, more than the 1.0 MB that are free. Take "
         "fewer rows or columns."),
        (None, True, "It needs more memory{} than the {} that are allowed. Use {}. Or take fewer "
         "rows or columns."),
    ],
)  # fmt: skip
def test_too_little_memory_is_said_with_what_is_needed_and_there(needed, asked, says):
    error = RoomError("It", needed, 1e6, asked=asked)
    assert isinstance(error, TooLargeError)
    assert str(error) == says.format("", "1.0 MB", f'memory="{"2.2GB" if needed else "SIZE"}"')
    enough = f"--memory {'2.2GB' if needed else 'SIZE'}"
    assert error.command_line() == says.format("", "1.0 MB", enough)
    if not asked:
        return
    # What a command is allowed is for its libraries too, and for those of its workers.
    error = RoomError("It", needed, 1e6, asked=True, processes=1)
    enough = f"--memory {'2.5GB' if needed else 'SIZE'}"
    libraries = " beside the 300 MB of the libraries"
    assert error.command_line() == says.format(libraries, "301 MB", enough)
    error = RoomError("It", needed, 1e6, asked=True, processes=3)
    enough = f"--memory {'3.2GB' if needed else 'SIZE'}"
    libraries = " beside the 900 MB of the libraries of 3 processes"
    assert error.command_line() == says.format(libraries, "901 MB", enough)
