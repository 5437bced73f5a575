import gzip
import io
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from mutating import mutate

from gnomon.data.read import read
from gnomon.data.refusals import FileError
from gnomon.errors import GnomonError, TooLargeError

ROWS = [
    {"name": "ash", "height": 1.5, "width": 2, "where": {"x": 0.25, "deep": {"y": 1}}},
    {"name": "oak", "height": 2.5, "width": 3, "where": {"x": 0.75, "deep": {"y": 4}}},
    {"name": "fir", "height": 3.5, "width": 9, "where": {"x": 0.5, "deep": {"y": 2}}},
]


def written(tmp_path, rows, name="trees.jsonl"):
    file = tmp_path / name
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def test_keys_are_columns_and_objects_within_objects_too(tmp_path):
    table = read(written(tmp_path, ROWS))
    assert table.columns == ("height", "width", "where.x", "where.deep.y")
    np.testing.assert_array_equal(table.X, [[1.5, 2, 0.25, 1], [2.5, 3, 0.75, 4], [3.5, 9, 0.5, 2]])


def test_a_file_by_polars_is_the_table_that_polars_has(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "group": ["a", "b", "c", "a"] * 25,
            "one": rng.normal(size=100),
            "two": rng.integers(0, 1000, 100),
            "vector": rng.normal(size=(100, 3)).tolist(),
        }
    )
    frame.write_ndjson(tmp_path / "frame.ndjson")
    table = read(tmp_path / "frame.ndjson", features=["one", "two"])
    np.testing.assert_array_equal(table.X, frame.select("one", "two").to_numpy())
    assert list(table.labels) == frame["group"].to_list()
    vectors = read(tmp_path / "frame.ndjson", features=["vector"])
    np.testing.assert_array_equal(vectors.X, np.array(frame["vector"].to_list()))


def test_a_key_that_a_line_does_not_have_is_a_missing_value(tmp_path):
    table = read(written(tmp_path, [*ROWS[:2], {"name": "elm", "height": 9.0}]))
    assert np.isnan(table.X).sum(axis=0).tolist() == [0, 1, 1, 1]


def test_blank_lines_are_no_rows_and_places_count_them(tmp_path):
    file = tmp_path / "gaps.jsonl"
    file.write_text('\n{"a": 1.5, "b": 2}\n \n{"a": 2.5, "b": 4}\r\n{"a": 3.5, "b": 7}')
    table = read(file)
    assert table.X.shape == (3, 2)
    assert [table.places.of(row) for row in range(3)] == ["line 2", "line 4", "line 5"]


def test_compressed_lines_and_standard_input_are_read(tmp_path, monkeypatch):
    text = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(text))
    expected = read(written(tmp_path, ROWS)).X
    np.testing.assert_array_equal(read(tmp_path / "t.jsonl.gz").X, expected)

    class Input:
        buffer = io.BytesIO(text)

    monkeypatch.setattr("sys.stdin", Input())
    np.testing.assert_array_equal(read("-").X, expected)


def test_a_folder_of_such_files_is_one_table(tmp_path):
    written(tmp_path, ROWS[:1], "a.jsonl")
    written(tmp_path, ROWS[1:], "b.jsonl")
    assert read(tmp_path).X[:, 0].tolist() == [1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": }\n', "line 2: this is not one JSON object"),
        ('{"a": 1}\n[1, 2]\n', "line 2: an array, where each line holds an object"),
        ('{"a": 1}\n\n{"a": "x"}\n', 'line 3: column "a" holds text, and a number on line 1'),
        ('{"a": 1} {"a": 2}\n{"a": 3}\n', "line 1: this is not one JSON object"),
        ('{"a":\n1}\n', "line 1: this is not one JSON object"),
        ('{"a": {"b": 1}}\n{"a": 3}\n', 'line 2: column "a" holds a number, and an object'),
        ("{}\n{}\n", "has 2 rows and no keys in them"),
        ("\n \n", "has no rows"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}\n", "t.jsonl"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, text, said):
    file = tmp_path / "t.jsonl"
    file.write_text(text)
    with pytest.raises(FileError) as error:
        read(file)
    assert said in str(error.value)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_objects_is_the_table_of_its_objects_one_a_line(tmp_path, indent, monkeypatch):
    rows = [*ROWS, {"name": 'line\u2028, [quoted] \\" }', "height": 4.5, "width": None}]
    text = json.dumps(rows, indent=indent, ensure_ascii=False)
    (tmp_path / "trees.json").write_text(text)
    array, lines = read(tmp_path / "trees.json"), read(written(tmp_path, rows))
    assert array.columns == lines.columns
    np.testing.assert_array_equal(array.X, lines.X)
    named = read(tmp_path / "trees.json", label="name")
    assert named.labels.tolist() == [row["name"] for row in rows]
    assert array.places.of(1) == ("line 1" if indent is None else "line 13")

    class Input:
        buffer = io.BytesIO(text.encode())

    monkeypatch.setattr("sys.stdin", Input())
    np.testing.assert_array_equal(read("-").X, array.X)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"a": 1},\n{"a": }]', "line 2: this is not JSON"),
        ('[{"a": 1},\n[1, 2]]', "line 2: an array, where the array holds objects"),
        ('[{"a": 1}\n{"a": 2}]', "line 1: a comma or ] is missing behind this object"),
        ('[{"a": 1}', "line 1: a comma or ] is missing"),
        ('[{"a": 1},', "this is not JSON"),
        ('[{"a": 1}] 7', "goes on behind the array"),
        ('[{"a": 1},\n\n{"a": "x"}]', 'line 3: column "a" holds text, and a number on line 1'),
        ("[]", "has no rows"),
        ("[{}, {}]", "has 2 rows and no keys in them"),
        ('[{"a": ' + "[" * 50_000, "it cannot be read"),
        ('[{"a": ' * 500, "is not JSON"),
    ],
)
def test_an_array_that_cannot_be_read_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(FileError) as error:
        read(tmp_path / "t.json")
    assert said in str(error.value)


def test_an_array_takes_no_more_memory_than_is_allowed(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([{"a": 1.5, "text": "x" * 200}] * 500))
    with pytest.raises(TooLargeError):
        read(tmp_path / "t.json", memory=500_000)


@pytest.mark.rounds(test=150, soak=400, long=3000)
def test_a_damaged_array_is_read_or_refused_in_a_sentence(tmp_path, rounds):
    content = json.dumps(ROWS * 3, indent=1).encode()
    found = Counter()
    for number in range(rounds):
        (tmp_path / "t.json").write_bytes(mutate(content, np.random.default_rng([0, number])))
        try:
            read(tmp_path / "t.json", memory="1GB")
            found["read"] += 1
        except GnomonError:
            found["refused"] += 1
    assert min(found["read"], found["refused"]) > rounds // 20
