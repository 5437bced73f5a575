import json
import re

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import gnomon

from benchmarks import command, data
from benchmarks.environment import BenchmarkError, Settings

ENVIRONMENT = {
    "versions": {},
    **dict.fromkeys(("commit", "measured", "cpu", "cpus", "threads", "load_average", "system"), ""),
}


@pytest.fixture
def images(monkeypatch):
    """Pictures of four pixels in the place of MNIST, and their digits."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (40, 4)).astype(np.float32)
    monkeypatch.setattr(data, "images", lambda folder: X)
    monkeypatch.setattr(data, "image_labels", lambda folder: np.arange(40) % 10)
    return X


def test_both_files_hold_the_pictures_and_their_digits(images, tmp_path):
    digits = data.image_labels(None)
    for name, write in command.FORMATS.items():
        file = tmp_path / f"table.{name}"
        write(file, images, digits)
        table = pc.read_csv(file) if name == "csv" else pq.read_table(file)
        assert table.column_names == ["label", "p0", "p1", "p2", "p3"]
        assert np.array_equal(np.column_stack(table.columns[1:]), images)
        assert table["label"].to_pylist() == digits.tolist()
    assert b"0.0" not in (tmp_path / "table.csv").read_bytes()  # whole numbers stay whole
    fractions = command.columns_of(images / 8, None)
    assert fractions["p0"].dtype == np.float32


def test_the_command_is_run_on_each_file_and_its_stages_are_told(images, monkeypatch, tmp_path):
    def run(order, folder):
        done = gnomon(*order[1:], folder=folder)
        assert done.returncode == 0, done.stderr
        return 100.0, 400_000_000, done.stderr

    monkeypatch.setattr(command, "run", run)
    found = [row for _, row in command.rows(Settings(data=tmp_path))]
    assert [row["name"] for row in found] == ["iris", "csv", "parquet"]
    for row in found[1:]:
        assert row["shape"] == [40, 4]
        assert "\nLabel    label " in row["words"]
        assert set(command.STAGES) == set(row["stages"])
        assert {"neighbors", "descent"} < set(row["tsne"])
        assert set(row["sizes"]) == set(command.RESULTS)
        assert row["file_bytes"] > 0
    text = command.report({"command": json.loads(json.dumps(found))}).to_markdown(ENVIRONMENT)
    assert "| csv     | 40 × 4" in text
    assert re.search(r"csv: of t-SNE, .*neighbors \d+\.\d s, .*descent \d+\.\d s", text)


def test_a_real_process_is_what_is_measured(tmp_path):
    found = command.map_file("iris", tmp_path)
    assert found["shape"] == [150, 4]
    stages = found["stages"]
    assert found["seconds"] > sum(stages.values()) > 0
    assert found["peak_bytes"] > 2e8  # Python and its libraries
    assert found["file_bytes"] is None


def row(**seconds):
    stages = {**dict.fromkeys(command.STAGES, 1.0), "tsne": 9.0, **seconds}
    return {
        "name": "csv",
        "judged": True,
        "shape": [70_000, 784],
        "file_bytes": 10**8,
        "seconds": 20.0,
        "stages": stages,
        "tsne": {"descent": 5.0},
        "peak_bytes": 10**9,
        "sizes": dict.fromkeys(command.RESULTS, 10**6),
    }


@pytest.mark.parametrize(
    ("reading", "says"), [(8.9, "reached"), (9.1, "**missed**: reading is the longest, 9.1 s")]
)
def test_reading_must_not_be_the_longest_stage(reading, says):
    assert says in command.report({"command": [row(read=reading)]}).to_markdown(ENVIRONMENT)


def test_rows_that_are_not_there_are_refused():
    with pytest.raises(BenchmarkError, match="got nothing: iris, csv, parquet"):
        next(command.rows(Settings(only="nothing")))
