import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import outofcore
from benchmarks.environment import BenchmarkError, Settings
from gnomon.compute.blas import one_blas_thread


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(outofcore, "BLOCK", 1000)
    npy = outofcore.write_npy(tmp_path / "table.npy", 0.004)
    return {"npy": npy, "parquet": outofcore.write_parquet(tmp_path / "table.parquet", npy)}


def test_both_files_hold_the_same_table_and_are_read_to_the_end(files):
    n, d = outofcore.shape_of(files["npy"])
    assert (n, d) == (10_000, 100)
    assert outofcore.read_once(files["npy"])["rows"] == n
    assert outofcore.decode_once(files["parquet"])["rows"] == n
    whole = np.concatenate(list(outofcore.read_blocks(files["npy"])))
    assert np.array_equal(np.concatenate(list(outofcore.decoded_blocks(files["parquet"]))), whole)
    default = outofcore.write_parquet(files["parquet"], files["npy"], by_default=True)
    assert np.array_equal(np.concatenate(list(outofcore.decoded_blocks(default))), whole)
    assert pq.read_metadata(default).row_group(0).column(0).has_dictionary_page
    np.testing.assert_allclose(outofcore.covariance(files["npy"]), np.cov(whole.T), rtol=1e-4)


def test_ours_is_exact_and_the_peer_is_measured_by_the_same_rule(files, monkeypatch):
    exact = outofcore.covariance(files["npy"])
    errors = {}

    class Done:
        returncode = 0

    for task, file in (("ours", "npy"), ("ours", "parquet"), ("incremental", "parquet")):
        with one_blas_thread():  # its small products are no work for two
            answer = outofcore.TASKS[task](files[file])
        done = Done()
        done.stdout = outofcore.json.dumps({**answer, "resident": outofcore.resident_bytes()})
        monkeypatch.setattr(outofcore.subprocess, "run", lambda *_, done=done, **__: done)
        errors[task, file] = outofcore.measure(task, files[file], exact)["error"]
    assert errors["ours", "npy"] < 1e-6
    assert errors["ours", "parquet"] < 1e-6
    assert errors["incremental", "parquet"] > 10 * errors["ours", "npy"]


def row(**changes):
    return {
        "name": "npy 8 GB",
        "shape": [20_000_000, 100],
        "plan": "read once",
        "arrow": None,
        "seconds": 8.0,
        "reading": 5.0,
        "times": 1.6,
        "resident": 5e8,
        "error": 1e-9,
        "peer_seconds": 100.0,
        "peer_error": 1e-3,
        "ratio": 12.5,
        **changes,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "reached"),
        ({"times": 2.02}, "2.0 times reading"),
        ({"resident": 1.3e9}, "1,300 MB resident"),
        ({"ratio": 9.9}, "9.9 times IncrementalPCA"),
        ({"error": 2e-3}, "less exact"),
        ({"ratio": None, "peer_seconds": None, "peer_error": None, "times": 9}, "| –  "),
    ],
)
def test_a_target_that_is_missed_is_said(change, said):
    assert said in outofcore.report({"rows": [row(**change)]}).to_markdown(
        {
            "versions": {},
            **dict.fromkeys(
                ("commit", "measured", "cpu", "cpus", "threads", "load_average", "system"), ""
            ),
        }
    )


def test_all_are_measured_in_turn_and_ratios_are_medians_of_pairs(files, monkeypatch):
    times = {
        "read": [2.0, 4.0, 1.0],
        "ours": [9.0, 4.0, 6.0, 5.0],
        "incremental": [80.0, 66.0, 45.0],
    }
    done = []

    def measure(task, file, *_):
        done.append((task, file.suffix))
        which = sum(earlier == task for earlier, _ in done) - 1
        seconds = times.get(task, [7.0])[which]
        return {"seconds": seconds, "resident": 10 * seconds, "error": 0.1, "plan": "once"}

    monkeypatch.setattr(outofcore, "measure", measure)
    both = files["npy"], files["parquet"]
    found = outofcore.measure_row("parquet 8 GB", *both, np.eye(2), Settings())
    turn = [("read", ".npy"), ("ours", ".parquet"), ("incremental", ".parquet")]
    assert done == [turn[1], *turn, *turn, *turn, ("arrow", ".parquet")]
    assert (found["reading"], found["seconds"], found["peer_seconds"]) == (2.0, 5.0, 66.0)
    assert (found["times"], found["ratio"]) == (2.0, 11.0)
    assert (found["resident"], found["arrow"]) == (60.0, 7.0)
    done.clear()
    found = outofcore.measure_row("parquet by default 8 GB", *both, np.eye(2), Settings())
    assert done == [turn[1], *turn[:2], *turn[:2], *turn[:2], ("arrow", ".parquet")]
    assert (found["times"], found["ratio"], found["peer_seconds"]) == (2.0, None, None)


def test_small_rows_are_measured_only_when_asked_for():
    with pytest.raises(
        BenchmarkError, match=r"npy 8 GB, parquet 8 GB, parquet by default 8 GB, npy 0\.5"
    ):
        next(outofcore.rows(Settings(only="nothing")))
