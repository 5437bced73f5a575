import gzip
import io
import json

import numpy as np
import polars as pl
import pytest

from gnomon.data.read import read
from gnomon.data.refusals import FileError

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


def test_json_that_is_not_lines_says_what_to_write(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": 1}]')
    with pytest.raises(FileError, match=r"is JSON, which is not read. Write one object a line"):
        read(tmp_path / "t.json")
