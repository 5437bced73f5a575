"""Numbers with thousands separators: read where every cell agrees and one leaves no doubt."""

import pyarrow as pa
import pytest

import gnomon
from gnomon.cli.failures import sentence
from gnomon.data.columns import Reading, as_column
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError

NBSP, NARROW = "\u00a0", "\u202f"


def column(cells, **how):
    return as_column("x", pa.chunked_array([pa.array(cells, pa.large_string())]), Reading(**how))


@pytest.mark.parametrize(
    ("cells", "numbers", "group"),
    [
        (["1,234,567", "12", "1,234"], [1234567, 12, 1234], ","),
        (["1,234.5", "999", "-1,000"], [1234.5, 999, -1000], ","),
        (["1.234,5", "7", "12.000"], [1234.5, 7, 12000], "."),
        (["1.234.567", "1.234", "5,25"], [1234567, 1234, 5.25], "."),
        (["1'234'567", "1'000.5"], [1234567, 1000.5], "'"),
        (["1\u2019234\u2019567", "8"], [1234567, 8], "\u2019"),
        (["1 234 567", "12 000,5"], [1234567, 12000.5], " "),
        ([f"1{NBSP}234{NBSP}567", "8"], [1234567, 8], NBSP),
        ([f"1{NARROW}234,5", "8"], [1234.5, 8], NARROW),
        (["+1,234,567", None, " 5 ", "NA"], [1234567, None, 5, None], ","),
        (["12,345,678.90", ".5"], [12345678.9, 0.5], ","),
    ],
)
def test_marks_are_known_by_two_groups_or_by_both(cells, numbers, group):
    found = column(cells)
    assert found.kind == "numbers"
    assert found.values.to_pylist() == numbers
    assert found.marks.group == group


@pytest.mark.parametrize(
    "cells",
    [
        ["1,234,567", "12,34"],  # a group of two
        ["1,234,567", "1234,567"],
        ["1,234,567", "1.234.567"],  # one of them is wrong
        ["12,34,567", "1,234,567"],
        ["1,234,567", "many"],
        ["1,234,567,", "1,234,567"],
        ["192.168.001", "10.0.0.1"],
    ],
)
def test_one_cell_that_does_not_agree_leaves_them_text(cells):
    assert column(cells).kind not in ("numbers", "unclear")


def test_a_point_and_three_digits_are_decimals():
    found = column(["1.234", "5.678", "12.000"])
    assert (found.kind, found.values.to_pylist(), found.marks) == (
        "numbers",
        [1.234, 5.678, 12.0],
        None,
    )


@pytest.mark.parametrize(
    ("decimal", "numbers"), [(".", [1234.0, 56789.0, 7.0]), (",", [1.234, 56.789, 7.0])]
)
def test_a_comma_and_three_digits_are_what_the_user_says(decimal, numbers):
    cells = ["1,234", "56,789", "7"]
    assert column(cells).kind == "unclear"
    assert column(cells, decimal=decimal, stated=True).values.to_pylist() == numbers


def write(folder, cells, name="t.csv"):
    path = folder / name
    path.write_text(
        "sales;share\n" + "".join(f"{cell};0.{i + 1}5\n" for i, cell in enumerate(cells))
    )
    return path


@pytest.mark.parametrize("opened", [read, gnomon.source])
def test_what_may_be_either_is_refused_with_the_cause_and_the_option(tmp_path, opened):
    path = write(tmp_path, ["1,234", "56,789", "7"])
    with pytest.raises(FileError) as told:
        opened(path)
    assert sentence(told.value) == (
        't.csv: column "sales" holds "1,234" (line 2), whose mark may divide thousands or '
        "decimals, and no other cell says which. Use --decimal ., --decimal ,, or --drop sales."
    )
    assert opened(path, decimal=".").roles.features == ("sales", "share")
    assert opened(path, drop="sales").roles.features == ("share",)


def test_blocks_read_what_the_first_rows_showed_and_name_what_does_not_agree(tmp_path):
    cells = ["1,234,567", *["2,345"] * 20_000, "3,456,789"]
    path = write(tmp_path, cells)
    source = gnomon.source(path, rows=5_000)
    blocks = [source.read(part)[:, 0] for part in source.partitions]
    assert (blocks[0][0], blocks[-1][-1], blocks[1][0]) == (1234567.0, 3456789.0, 2345.0)
    path = write(tmp_path, [*cells, "12,34"], "u.csv")
    with pytest.raises(FileError, match=r'"sales" holds text \(first: line 20004, "12,34"\)'):
        gnomon.source(path, rows=5_000)


def test_a_decimal_mark_is_one_of_two(tmp_path):
    with pytest.raises(ValueError, match=r"`decimal` must be one of '\.', ','; got ';'"):
        read(write(tmp_path, ["1"]), decimal=";")
    with pytest.raises(OptionError, match="decimal are for files"):
        gnomon.source([[1.0, 2.0]], decimal=",")
