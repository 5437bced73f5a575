import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.data.lines import BrokenRecordError, line_of_byte, locate, read_records, survey


def as_bytes(text):
    return np.frombuffer(text.encode(), np.uint8)


def test_records_know_their_line_and_their_end():
    records = list(read_records(as_bytes('a,b\n\n"x\ny",2\r\nü,4'), ","))
    assert [record.fields for record in records] == [["a", "b"], ["x\ny", "2"], ["ü", "4"]]
    assert [record.line for record in records] == [1, 3, 5]
    assert [record.end for record in records] == [4, 14, 18]


def test_only_ends_of_lines_end_lines():
    (record,) = read_records(as_bytes("a\u2028b\x0bc\x85d,1\n"), ",")
    assert record.fields == ["a\u2028b\x0bc\x85d", "1"]


def test_a_field_without_end_has_its_line():
    text = 'a,b\n1,"' + "x" * 200_000
    with pytest.raises(BrokenRecordError) as info:
        list(read_records(as_bytes(text), ","))
    assert info.value.line == 2


@pytest.mark.parametrize(("at", "line"), [(0, 1), (2, 1), (3, 2), (5, 3), (6, 4), (8, 4), (9, 5)])
def test_a_byte_has_a_line(at, line):
    assert line_of_byte(as_bytes("ab\nc\r\rd\r\ne"), at) == line


def test_a_survey_counts_over_all_parts(monkeypatch):
    monkeypatch.setattr("gnomon.data.lines.STEP", 4)
    seen = survey(as_bytes('"ab"\ncd\n"ü"\n'))
    assert (seen.nul, seen.ascii, seen.newlines, seen.quotes) == (False, False, 3, 4)
    assert survey(as_bytes("aaaaaaaa\0")).nul
    assert survey(as_bytes("")).newlines == 0


cells = st.sampled_from(["1", "x y", '"a\nb"', '"q""q"', '"\n\n"', '"', 'in"ch', ""])


@given(
    rows=st.lists(st.tuples(cells.filter(lambda c: c != '"'), cells.filter(lambda c: c != '"'))),
    blanks=st.lists(st.integers(0, 3)),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.booleans(),
)
def test_every_row_is_found_on_its_line(rows, blanks, end, last):
    text, lines, line = "a,b" + end, [], 2
    for i, row in enumerate(rows):
        blank = blanks[i] if i < len(blanks) else 0
        text += end * blank
        line += blank
        lines.append(line)
        body = ",".join(row)
        text += body + (end if last or i + 1 < len(rows) else "")
        line += 1 + body.count("\n")
    data = as_bytes(text)
    places = locate(data, survey(data), delimiter=",", skipped=1, rows=len(rows))
    assert [places.of(i) for i in range(len(rows))] == [f"line {line}" for line in lines]
