import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.cli.failures import sentence
from gnomon.data.refusals import (
    FileError,
    GapError,
    OptionError,
    listed,
    option,
    quoted,
)
from gnomon.errors import DataError, MissingValueError, ParameterError


def test_an_error_speaks_to_those_who_wrote_python_and_to_those_who_typed_a_command():
    error = FileError("Bad.", ("na", "n/a"), ("drop", "my price"), "Or mend it.")
    assert str(error) == 'Bad. Use na="n/a", or drop="my price". Or mend it.'
    assert sentence(error) == "Bad. Use --na n/a, or --drop 'my price'. Or mend it."
    assert str(FileError("Bad.")) == sentence(FileError("Bad.")) == "Bad."


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
    assert sentence(error, {"na", "id"}) == "Bad. Use --na x. Or mend it."
    assert sentence(error, set()) == "Bad. Or mend it."
    assert str(error) == 'Bad. Use na="x", or drop="price". Or mend it.'
