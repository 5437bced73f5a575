import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from gnomon.data.write import write_json, write_table, writing


def test_what_was_written_takes_the_place_of_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with writing(path) as part:
        assert part.parent == tmp_path  # the same file system: a rename is one step
        assert part.name.startswith(".a.txt.")
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_new_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with writing(str(path)) as part:
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError(28, "disk full")])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with writing(path) as part:
            part.write_text("half of the n")
            raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_where_there_was_no_file_leaves_nothing(tmp_path):
    def fail():
        with writing(tmp_path / "a.txt"):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = (
        "import os, signal, sys\n"
        "from gnomon.data.write import writing\n"
        "with writing(sys.argv[1]) as part:\n"
        "    part.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], timeout=60)
    assert done.returncode == -9
    assert path.read_text() == "old"


def test_a_failed_rename_leaves_no_part_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), writing(tmp_path / "folder") as part:
        part.write_text("text")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"), writing(tmp_path / "nowhere" / "a"):
        pass


def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "ordinary").touch()
    with writing(tmp_path / "ours") as part:
        part.touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


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
        write_json(path, {"kept": object()})
    assert json.loads(path.read_text()) == {"kept": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_table_comes_back_with_its_names_types_and_bits(tmp_path):
    path = tmp_path / "a.parquet"
    labels = np.array(["x", "ÿ", "="])
    numbers = np.array([1.5, np.nan, -0.0])
    short = np.array([1, 2, 3], np.float32)
    write_table(path, ["label", "pc1", "pc2"], [labels, numbers, short])
    table = pq.read_table(path)
    assert table.column_names == ["label", "pc1", "pc2"]
    assert table["label"].to_pylist() == ["x", "ÿ", "="]
    assert table["pc1"].to_numpy().tobytes() == numbers.tobytes()
    assert table["pc2"].to_numpy().dtype == np.float32


def test_columns_that_lie_apart_in_memory_are_written_right(tmp_path):
    scores = np.random.default_rng(0).standard_normal((20, 3))
    write_table(tmp_path / "a.parquet", ["a", "b", "c"], list(scores.T))
    table = pq.read_table(tmp_path / "a.parquet")
    assert np.array_equal(np.column_stack([table[name].to_numpy() for name in "abc"]), scores)


def test_a_table_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_table(path, ["a"], [np.arange(3)])
    with pytest.raises(ValueError, match="length"):
        write_table(path, ["a", "b"], [np.arange(3), np.arange(4)])
    assert pq.read_table(path).num_rows == 3
    assert os.listdir(tmp_path) == ["a.parquet"]
