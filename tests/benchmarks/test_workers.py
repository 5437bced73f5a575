import pytest

from benchmarks import workers
from benchmarks.environment import BenchmarkError, Settings


def test_threads_are_timed_and_have_the_same_bytes(tmp_path):
    file = workers.write(tmp_path / "table.npy", 90_000)
    found = [workers.measure(file, "threads", count, 2) for count in (1, 2)]
    assert [len(row["seconds"]) for row in found] == [2, 2]
    assert found[0]["blocks"] == 5
    assert len({row["digest"] for row in found}) == 1
    other = workers.measure(workers.write(tmp_path / "other.npy", 80_000), "threads", 1, 1)
    assert other["digest"] != found[0]["digest"]


def row(name, digest="a" * 64):
    return {"name": name, "seconds": [0.5, 0.48, 0.9], "blocks": 48, "digest": digest}


def test_other_bytes_are_a_miss():
    raw = {"rows": [row("1 thread"), row("1 worker"), row("4 workers", "b" * 64)]}
    cells = workers.report(raw).tables[0].rows
    assert [line[-1] for line in cells] == ["reached", "reached", "**missed**: other bytes"]
    assert cells[0][1:4] == ["0.50", "10.4", "a" * 12]


def test_an_unknown_row_is_named():
    with pytest.raises(BenchmarkError, match=r"got nine: 1 thread, 2 threads, an array, 1 worker"):
        next(workers.rows(Settings(only="nine")))
