"""`gnomon inspect` and `gnomon map --dry-run` as a user runs them: nothing is made."""

import json
import os

import numpy as np
import pytest
from commands import first_words, gnomon, refused

from gnomon import PCA, samples
from gnomon.pipeline.estimate import about, estimate

LINES = [
    "Read",
    "Features",
    "Label",
    "Scale",
    "Table",
    "PCA",
    "Why",
    "t-SNE",
    "Trust",
    "Page",
    "Time",
    "Memory",
]


def test_it_says_what_would_be_used_and_what_it_costs_and_writes_nothing(tmp_path):
    done = gnomon("inspect", "iris", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert first_words(done) == LINES
    plan = PCA(0.95).plan(samples.load("iris").X)
    assert f"{plan.solver}, {plan.passes} pass" in done.stderr
    assert f"{plan.operations:.1e} operations" in done.stderr
    assert "2-D, perplexity 30, about 320 iterations" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_dry_run_of_map_says_the_same(tmp_path):
    def said(*order):
        done = gnomon(*order, folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return [line for line in done.stderr.splitlines() if line[:6] not in ("Read  ", "Memory")]

    options = ("wine", "-k", "3", "--scale", "standard", "--threads", "1")
    assert said("map", *options, "--dry-run") == said("inspect", *options)
    assert os.listdir(tmp_path) == []


def test_json_holds_table_preparation_plan_and_estimate(tmp_path):
    order = ("inspect", "wine", "--json", "-q", "--threads", "2", "--dimensions", "3")
    done = gnomon(*order, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == [
        "command",
        "files",
        "table",
        "preparation",
        "pca",
        "sampling",
        "tsne",
        "estimate",
    ]
    assert found["table"]["rows"] == 178
    assert found["preparation"]["scale"] == "standard"
    assert found["pca"]["shape"] == [178, 13]
    assert found["tsne"] == {"perplexity": 30.0, "dimensions": 3, "iterations": 320}
    assert found["estimate"]["threads"] == 2
    assert found["estimate"]["seconds"] > 0
    assert found["estimate"]["peak_bytes"] >= found["pca"]["peak_bytes"]


def test_options_about_columns_and_gaps_are_those_of_map(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"r{i},{i % 3 or ''},{x:.3f},{y:.3f},u" for i, (x, y) in enumerate(rng.normal(size=(30, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,n,x,y,note", *rows]) + "\n")
    order = ("inspect", "t.csv", "--keep", "n", "--drop", "y", "--json")
    assert refused(gnomon(*order, folder=tmp_path), 3, "10 missing values", "--missing em")
    done = gnomon(*order, "--missing", "drop", folder=tmp_path)
    found = json.loads(done.stdout)
    assert found["table"]["features"] == ["n", "x"]
    assert found["pca"]["shape"] == [20, 2]
    assert "10 rows dropped" in done.stderr
    done = gnomon(*order, "--missing", "em", folder=tmp_path)
    assert json.loads(done.stdout)["preparation"]["missing"] == "em"
    assert "10 values to be filled in from the other columns" in done.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("order", "code", "says"),
    [
        (["nope.csv"], 2, "neither a file nor a bundled sample"),
        (["iris", "--perplexity", "500"], 2, "from 1 to 149; got 500"),
        (["iris", "-k", "9"], 2, "must be an integer from 0 to 4; got 9"),
        (["text.csv"], 3, "no column of numbers"),
        (["t.csv", "--id", "nope"], 2, 'no column "nope"'),
    ],
)
def test_what_map_would_refuse_is_refused(tmp_path, order, code, says):
    (tmp_path / "text.csv").write_text("a,b\nu,v\ns,t\n")
    (tmp_path / "t.csv").write_text("a,b\n1.5,2\n3,4\n5,6\n")
    assert refused(gnomon("inspect", *order, folder=tmp_path), code, says)


def test_a_dry_run_does_not_mind_results_that_exist(tmp_path):
    (tmp_path / "iris_map").mkdir()
    (tmp_path / "iris_map" / "map.parquet").write_bytes(b"mine")
    assert gnomon("map", "iris", "--dry-run", folder=tmp_path).returncode == 0
    assert (tmp_path / "iris_map" / "map.parquet").read_bytes() == b"mine"


def cost(n, d=50, dimensions=2, perplexity=30.0, threads=2, iterations=750):
    plan = PCA(2).plan(np.broadcast_to(np.float32(1), (n, d)))
    return estimate(
        plan, dimensions=dimensions, perplexity=perplexity, iterations=iterations, threads=threads
    )


# Seconds of maps, as benchmarks/tsne.py ("maps", "3-D") and a run of 20,000 rows measured them.
@pytest.mark.parametrize(
    ("n", "d", "dimensions", "iterations", "seconds"),
    [
        (1_797, 64, 2, 210, 0.256),
        (10_000, 50, 2, 220, 0.699),
        (20_000, 50, 2, 190, 1.44),
        (70_000, 50, 2, 180, 2.73),
        (20_000, 50, 3, 170, 6.27),
    ],
)
def test_maps_take_about_what_they_are_expected_to(n, d, dimensions, iterations, seconds):
    found = cost(n, d, dimensions, iterations=iterations).tsne_seconds
    assert seconds / 1.6 < found < 1.6 * seconds


# Seconds of the scores, and MB above the table, as measured (see estimate.py).
@pytest.mark.parametrize(
    ("n", "d", "dimensions", "perplexity", "trust", "megabytes"),
    [
        (300, 50, 2, 30, 0.06, None),
        (1_000, 50, 2, 30, 0.40, None),
        (3_000, 50, 2, 30, 0.93, None),
        (10_000, 50, 2, 30, 1.75, 65),
        (30_000, 50, 2, 30, 1.74, 151),
        (10_000, 50, 2, 100, 1.66, 196),
        (10_000, 50, 1, 30, 1.49, 59),
        (300, 50, 3, 30, 0.09, None),
        (3_000, 50, 3, 30, 0.84, None),
        (10_000, 50, 3, 30, 1.24, 64),
        (20_000, 300, 2, 30, 1.13, None),
        (70_000, 784, 2, 30, 3.7, 481),
    ],
)
def test_estimates_are_within_twice_of_what_was_measured(
    n, d, dimensions, perplexity, trust, megabytes
):
    found = cost(n, d, dimensions, perplexity)
    assert trust / 2.1 < found.trust_seconds < 2.1 * trust
    if megabytes is not None:  # below, PCA's buffers are more
        assert megabytes / 2 < found.peak_bytes / 1e6 < 2 * megabytes


# Seconds of maps on a line and in space: the first edition's, not measured again.
@pytest.mark.parametrize(
    ("n", "dimensions", "seconds"),
    [(10_000, 1, 3.52), (300, 3, 0.47), (3_000, 3, 3.29), (10_000, 3, 12.6)],
)
def test_maps_beside_the_plane_are_within_twice_of_what_was_measured(n, dimensions, seconds):
    assert seconds / 2 < cost(n, dimensions=dimensions).tsne_seconds < 2 * seconds


# CPU seconds and MB of the page, by benchmarks/page_cost.py.
@pytest.mark.parametrize(
    ("n", "d", "seconds", "megabytes"),
    [
        (300, 10, 0.062, 0.457),
        (3_000, 10, 0.128, 0.742),
        (3_000, 300, 0.729, 2.995),
        (10_000, 50, 0.474, 2.368),
        (30_000, 50, 1.957, 2.956),
    ],
)
def test_the_page_is_part_of_the_estimate(n, d, seconds, megabytes):
    found = cost(n, d)
    assert seconds / 2 < found.page_seconds < 2 * seconds
    assert megabytes / 1.1 < found.page_bytes / 1e6 < 1.1 * megabytes
    without = found.pca_seconds + found.tsne_seconds + found.trust_seconds + found.place_seconds
    assert found.seconds == without + found.page_seconds


def test_a_small_page_is_small_and_maps_made_again_for_it_take_time(tmp_path):
    def seen(*asked):
        order = ("map", "digits", "--dry-run", "--json", "-q", *asked)
        return json.loads(gnomon(*order, folder=tmp_path).stdout)["estimate"]

    usual, small, again = seen(), seen("--page-budget", "500000"), seen("--stability", "4")
    assert small["page_bytes"] == 500_000 < usual["page_bytes"]
    assert usual["page_seconds"] < again["page_seconds"]
    assert again["seconds"] - usual["seconds"] == pytest.approx(4 * usual["tsne_seconds"])


def test_more_threads_take_less_time_and_more_rows_more(tmp_path):
    assert cost(20_000, threads=1).seconds > cost(20_000).seconds > cost(20_000, threads=4).seconds
    assert cost(20_000).seconds < cost(40_000).seconds


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0.4, "under a second"), (12.3, "about 12 s"), (200, "about 3 min"), (9000, "about 2.5 h")],
)
def test_times_are_said_roughly(seconds, says):
    assert about(seconds) == says
