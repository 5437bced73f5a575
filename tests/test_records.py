import json
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from gnomon.records import Record, plain


@dataclass(frozen=True)
class Inner(Record):
    values: np.ndarray


@dataclass(frozen=True)
class Outer(Record):
    name: str
    count: int
    share: float
    table: np.ndarray
    inner: Inner
    parts: tuple


RECORD = Outer(
    "iris", np.int64(3), np.float32(0.5), np.eye(2), Inner(np.arange(3)), (np.float64(1.5), "x")
)


def test_a_record_becomes_plain_numbers_lists_and_words():
    assert RECORD.to_dict() == {
        "name": "iris",
        "count": 3,
        "share": 0.5,
        "table": [[1.0, 0.0], [0.0, 1.0]],
        "inner": {"values": [0, 1, 2]},
        "parts": [1.5, "x"],
    }


def test_a_record_goes_through_json_unchanged():
    assert json.loads(json.dumps(RECORD.to_dict())) == RECORD.to_dict()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.bool_(True), True),
        (np.float32(0.25), 0.25),
        (np.uint8(7), 7),
        (np.array(3.5), 3.5),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.zeros((0, 2)), []),
        ((1, (2, [np.int8(3)])), [1, [2, [3]]]),
        ({1: np.float64(2.0), "b": {"c": (np.int64(1),)}}, {"1": 2.0, "b": {"c": [1]}}),
        (None, None),
        ("text", "text"),
    ],
)
def test_values_become_pythons_own(value, expected):
    got = plain(value)
    assert got == expected
    assert type(got) is type(expected)


def test_a_record_reads_as_aligned_lines_under_its_title():
    assert str(Inner(np.arange(2))) == "Inner\n  values  [0, 1]"
    lines = str(RECORD).splitlines()
    assert lines[0] == "Outer"
    assert lines[1] == "  name   iris"
    assert lines[2] == "  count  3"
    starts = [line.index(text) for line, (_, text) in zip(lines[1:], RECORD.lines(), strict=True)]
    assert len(set(starts)) == 1


@dataclass(frozen=True)
class Sentence(Record):
    word: str

    def title(self):
        return f"About {self.word}"

    def lines(self):
        return [(self.word, f"{self.word} is said")]


def test_a_record_says_its_own_sentences():
    assert str(Sentence("this")) == "About this\n  this  this is said"


def test_a_record_without_lines_is_its_title():
    class Nothing(Sentence):
        def lines(self):
            return []

    assert str(Nothing("none")) == "About none"


def test_notebooks_show_a_table():
    shown = Sentence("this")._repr_html_()
    assert shown.startswith("<table><caption>About this</caption><tr>")
    assert shown.count("<tr>") == 1
    assert "this is said" in shown


def test_names_and_values_cannot_inject_html():
    wicked = "</td><script>alert('x')</script><img onerror=\"y\">&"
    shown = Sentence(wicked)._repr_html_()
    for tag in ("<script", "<img", "</td><script"):
        assert tag not in shown
    assert shown.count("&lt;script&gt;") == 3  # title, name and value
    assert "&amp;" in shown


def test_a_record_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        RECORD.count = 4
