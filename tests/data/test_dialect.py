import numpy as np
import pytest

from gnomon.data.dialect import is_number, sniff
from gnomon.data.lines import BrokenRecordError, read_records


def guess(text):
    return sniff(np.frombuffer(text.encode(), np.uint8), "t.csv")


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal"),
    [
        ("a,b\n1.5,2\n", ",", "."),
        ("a;b\n1,5;2,5\n", ";", ","),
        ("1,5;2,5\n3,5;4,5\n", ";", ","),
        ("a;b\n1.5;2\n", ";", "."),
        ("a\tb\n1,5\t2\n", "\t", ","),
        ('a,b\n"1,5","2,75"\n', ",", ","),
        ('a,b\n"1,500","2,750"\n', ",", "."),
        ('name;x\n"a,b";1,5\n"c,d";2,5\n', ";", ","),
        ("a,b\n1,x;y\n2,z;w\n", ",", "."),
        ('text,n\n"one; two; three",5\nnone,6\n', ",", "."),
        ("x\n1.5\n2.5\n", ",", "."),
        ("x\n1,5\n2,5\n", ";", ","),
        ("a|b\n1|2\n", "|", "."),
        ("sep=;\na;b\n1,5;2,5\n", ";", ","),
        ("sep=,\r\na;b,c\r\n1,2\r\n", ",", "."),
        ("1.0 2.0 3.0\n4.0 5.0 6.0\n", " ", "."),
    ],
)
def test_delimiter_and_decimal_point_are_guessed_together(text, delimiter, decimal):
    found = guess(text)
    assert (found.delimiter, found.decimal) == (delimiter, decimal)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b\n1,2\n", ["a", "b"]),
        ("1,2\n3,4\n", None),
        ("1,NA\n3,4\n", None),
        ("1,2x\n3,4\n", ["1", "2x"]),
        ("0,1,2\n5,6,7\n", ["0", "1", "2"]),  # as pandas names columns
        (",0,1\n5,6,7\n", ["", "0", "1"]),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"]),
        ("\n\na,b\n1,2\n", ["a", "b"]),
        ("sep=;\na;b\n1;2\n", ["a", "b"]),
        ("sep=;\n1;2\n3;4\n", None),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n6.3,2.5,virginica\n", None),  # as UCI has them
        ("842302,M,17.99\n842517,M,20.57\n84300903,B,19.69\n", None),
        ("the 0.418 -0.25 0.1\nof 0.708 0.57 -0.4\nto 0.68 -0.03 0.3\n", None),  # GloVe
        ("sample,7157,672,675\na,1,2,3\nb,4,5,6\n", ["sample", "7157", "672", "675"]),
        ("drug,0.1,0.5,1.0\na,0.2,0.6,0.9\nb,0.3,0.4,0.8\n", ["drug", "0.1", "0.5", "1.0"]),
        ("drug,dose 1.5,2.5\ndrug,1,2\nb,2,3\n", ["drug", "dose 1.5", "2.5"]),
        ("kind,2019\nkind,x\nb,y\n", ["kind", "2019"]),
    ],
)
def test_the_line_of_names_is_told_from_a_row(text, header):
    found = guess(text)
    assert found.header == header
    body = np.frombuffer(text.encode(), np.uint8)[found.body :]
    rows = [record.fields for record in read_records(body, found.delimiter)]
    assert rows == found.sample
    assert text[: found.body].count("\n") == found.skipped


@pytest.mark.parametrize("text", ["1", "-1.5e-3", "+.5", "5.", " 7 ", "inf", "-Infinity", "NaN"])
def test_numbers(text):
    assert is_number(text)
    assert float(text) is not None


@pytest.mark.parametrize("text", ["", "x", "1_0", "0x10", "1,5", "1.2.3", "e5", "--1", "١", "1 2"])
def test_what_is_no_number(text):
    assert not is_number(text)


def test_with_a_decimal_comma_a_point_is_no_number():
    assert is_number("1,5", ",")
    assert is_number("15", ",")
    assert not is_number("1.5", ",")
    assert not is_number("1.234,5", ",")


def test_the_sample_is_long_enough_for_wide_tables():
    names = ",".join(f"a_long_name_of_column_{j}" for j in range(30_000))
    row = ",".join(["0.5"] * 30_000)
    found = guess("\n".join([names, *[row] * 30]))
    assert found.width == 30_000
    assert all(len(row) == 30_000 for row in found.sample)
    assert len(found.sample) >= 5


def test_a_field_too_long_to_be_one_does_not_hide_the_rest():
    text = "a,b\n1,2\n3," + '"' + "x" * 200_000 + '"\n'
    assert guess(text).sample == [["1", "2"]]
    with pytest.raises(BrokenRecordError):
        list(read_records(np.frombuffer(text.encode(), np.uint8), ","))
