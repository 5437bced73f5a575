import csv
import io
import json
import os
import resource

import numpy as np
import pandas as pd
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from killing import torn_files

from gnomon.data import write as data_write
from gnomon.data.write import TABLES, csv_text, write_json, write_table
from gnomon.errors import ExistingFileError, GnomonError, WriteError


def test_json_is_readable_and_keeps_letters(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"Größe": [1, 2.5, "☃", None, True], "inner": {"k": 3}})
    text = path.read_text(encoding="utf-8")
    assert "Größe" in text
    assert "☃" in text
    assert text.endswith("}\n")
    assert text.count("\n") > 5
    assert json.loads(text) == {"Größe": [1, 2.5, "☃", None, True], "inner": {"k": 3}}


def test_nan_and_infinities_become_null_at_any_depth(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": np.nan, "b": [1.0, -np.inf, {"c": [np.inf]}], "d": np.float64("nan")})

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    read = json.loads(path.read_text(), parse_constant=refuse)
    assert read == {"a": None, "b": [1.0, None, {"c": [None]}], "d": None}


def test_floats_come_back_bit_for_bit(tmp_path):
    values = [*np.random.default_rng(0).standard_normal(50).tolist(), 5e-324, 1.7e308, -0.0]
    write_json(tmp_path / "a.json", {"values": values})
    assert json.loads((tmp_path / "a.json").read_text())["values"] == values


def test_what_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"kept": 1})
    with pytest.raises(TypeError):
        write_json(path, {"kept": object()}, force=True)
    assert json.loads(path.read_text()) == {"kept": 1}
    assert os.listdir(tmp_path) == ["a.json"]


READERS = {
    ".csv": pd.read_csv,
    ".tsv": lambda path: pd.read_csv(path, sep="\t"),
    ".parquet": pd.read_parquet,
    ".feather": pd.read_feather,
    ".arrow": pd.read_feather,
    ".npy": lambda path: pd.DataFrame(np.load(path), columns=["a", "b"]),
}


@pytest.mark.parametrize("ending", TABLES)
def test_numbers_come_back_bit_for_bit_in_every_format(tmp_path, ending):
    rng = np.random.default_rng(0)
    columns = [rng.standard_normal(100), np.append(rng.random(98) * 1e-300, [1e308, -0.0])]
    write_table(tmp_path / f"t{ending}", ["a", "b"], columns)
    read = READERS[ending](tmp_path / f"t{ending}")
    for name, column in zip("ab", columns, strict=True):
        assert read[name].to_numpy().tobytes() == column.tobytes()


@pytest.mark.parametrize("ending", TABLES)
def test_a_table_replaces_another_only_when_forced(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    write_table(path, ["a"], [np.zeros(3)])
    before = path.read_bytes()
    with pytest.raises(ExistingFileError, match="exists"):
        write_table(path, ["a"], [np.ones(3)])
    assert path.read_bytes() == before
    write_table(path, ["a"], [np.ones(3)], force=True)
    assert path.read_bytes() != before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("ending", [*TABLES, ".json"])
def test_a_disk_that_is_full_leaves_the_old_file_whole(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    noise = np.random.default_rng(0).standard_normal(200_000)

    def write(values):
        if ending == ".json":
            write_json(path, {"a": values.tolist()}, force=True)
        else:
            write_table(path, ["a"], [values], force=True)

    write(noise[:100])
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))  # a write beyond it fails
    try:
        with pytest.raises(WriteError, match=rf"t\{ending} could not be written .*no file was"):
            write(noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_table_comes_back_with_its_names_types_and_bits(tmp_path):
    labels = np.array(["x", "ÿ", "="])
    numbers = np.array([1.5, np.nan, -0.0])
    short = np.array([1, 2, 3], np.float32)
    for path, read in (
        (tmp_path / "a.parquet", pq.read_table),
        (tmp_path / "a.feather", feather.read_table),
    ):
        write_table(path, ["label", "pc1", "pc2"], [labels, numbers, short])
        table = read(path)
        assert table.column_names == ["label", "pc1", "pc2"]
        assert table["label"].to_pylist() == ["x", "ÿ", "="]  # no spreadsheet runs these
        assert table["pc1"].to_numpy().tobytes() == numbers.tobytes()
        assert table["pc2"].to_numpy().dtype == np.float32


def test_columns_that_lie_apart_in_memory_are_written_right(tmp_path):
    scores = np.random.default_rng(0).standard_normal((20, 3))
    write_table(tmp_path / "a.parquet", ["a", "b", "c"], list(scores.T))
    table = pq.read_table(tmp_path / "a.parquet")
    assert np.array_equal(np.column_stack([table[name].to_numpy() for name in "abc"]), scores)


def test_parquet_is_written_one_row_group_after_the_other(tmp_path, monkeypatch):
    """Text that begins with gaps is text all the same, and of numbers no whole copy is made."""
    monkeypatch.setattr(data_write, "ROW_GROUP", 4)
    path = tmp_path / "a.parquet"
    text = np.array([None] * 6 + ["x", "y", None, "z"], object)
    numbers = np.random.default_rng(0).standard_normal((10, 2)).astype(np.float32)
    write_table(path, ["label", "pc1", "pc2"], [text, *numbers.T])
    meta, table = pq.read_metadata(path), pq.read_table(path)
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [4, 4, 2]
    assert table["label"].to_pylist() == text.tolist()
    assert np.array_equal(np.column_stack([table["pc1"], table["pc2"]]), numbers)
    for lengths in ((4, 5), (5, 4)):
        with pytest.raises(ValueError, match="length"):
            write_table(path, ["a", "b"], [np.arange(n) for n in lengths], force=True)
    write_table(path, ["a"], [np.empty(0)], force=True)
    assert pq.read_table(path).num_rows == 0


def test_a_table_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_table(path, ["a"], [np.arange(3)])
    with pytest.raises(ValueError, match="length"):
        write_table(path, ["a", "b"], [np.arange(3), np.arange(4)], force=True)
    assert pq.read_table(path).num_rows == 3
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_an_unknown_ending_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(GnomonError, match=r"\.csv.*\.parquet.*got.*t\.xlsx"):
        write_table(tmp_path / "t.xlsx", ["a"], [np.zeros(2)])
    assert os.listdir(tmp_path) == []


def test_text_in_an_array_file_is_refused_and_never_pickled(tmp_path):
    with pytest.raises(GnomonError, match=r"\.parquet"):
        write_table(tmp_path / "t.npy", ["a"], [np.array(["x"])])
    assert os.listdir(tmp_path) == []


# Case 46: the full-width forms, and blanks and invisible marks before a sign.
UNSEEN = (" ", "\u00a0", "\ufeff", "\u200b", "\u2060", "\u3000", "\x01", "\xad")
FORMULAS = [
    *("=", "+", "-", "@", "\t", "\r", "\n"),
    *"＝＋－＠﹦﹢﹣﹫",
    *(f"{unseen}=" for unseen in UNSEEN),
    " \ufeff\u200b＝",
    "  -",
    "\u2003@",
]


def read_cells(text, delimiter=","):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("begin", FORMULAS, ids=ascii)
def test_text_that_a_spreadsheet_would_run_is_neutralised(tmp_path, begin, ending):
    hostile = f'{begin}cmd|" /C calc"!A0'
    columns = [np.array([hostile, "plain = text"]), np.array([-1.5, 2.0]), np.array([-3, 4])]
    write_table(tmp_path / f"t{ending}", [f"{begin}name", "x", "n"], columns)
    text = (tmp_path / f"t{ending}").read_bytes().decode()
    head, first, second = read_cells(text, "\t" if ending == ".tsv" else ",")
    assert head == [f"'{begin}name", "x", "n"]
    assert first == [f"'{hostile}", "-1.5", "-3"]  # numbers stay numbers
    assert second == ["plain = text", "2", "4"]


def test_categories_and_objects_are_neutralised_too(tmp_path):
    columns = [pd.Categorical(["=1+1", "b"]), np.array(["@x", None], object)]
    write_table(tmp_path / "t.csv", ["a", "b"], columns)
    cells = read_cells((tmp_path / "t.csv").read_text())
    assert cells[1:] == [["'=1+1", "'@x"], ["b", ""]]


def test_standard_output_gets_the_same_text_as_a_file(tmp_path):
    columns = [np.array(["=1", "ü"]), np.array([-1.0, 2.5])]
    write_table(tmp_path / "t.csv", ["a", "b"], columns)
    assert csv_text(["a", "b"], columns) == (tmp_path / "t.csv").read_bytes()


@pytest.mark.rounds(test=15, soak=300, long=5000)
def test_a_table_whose_writer_is_killed_is_never_torn(tmp_path, rounds):
    prepare = """
    import numpy as np, pyarrow.parquet as pq
    from gnomon.data.write import write_table
    versions = [np.full(20_000, 1.0), np.full(20_000, 2.0)]

    def write(version):
        write_table(path, ["a"], [versions[version] + np.arange(20_000)], force=True)

    def is_whole():
        try:
            column = pq.read_table(path, use_threads=False)["a"].to_numpy()
        except Exception:
            return False
        return any(np.array_equal(column, v + np.arange(20_000)) for v in versions)
    """
    assert torn_files(prepare, tmp_path / "t.parquet", rounds) == 0
