"""`gnomon audit` as a user runs it: maps by other programs, and by `gnomon map`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import first_words, gnomon, refused

from gnomon import audit

N = 120
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 5)) * [3, 2, 0.5, 0.5, 0.5]
NAMES = [f"r{i}" for i in range(N)]
KINDS = np.where(X[:, 0] > 0, "right", "left")
OURS = "data_map_audit", "data_map"
FEATURES = {f"v{j}": X[:, j] for j in range(5)}


def write(path, columns):
    pc.write_csv(pa.table(columns), path)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    turn = rng.permutation(N)
    shown = turn[: N - 10]
    write(folder / "data.csv", {"name": NAMES, "kind": KINDS, **FEATURES})
    np.save(folder / "X.npy", X)
    write(folder / "plain.csv", {"u1": X[:, 0], "u2": X[:, 1]})
    named = {"name": [*(NAMES[i] for i in shown), "elsewhere"]}
    axes = {"u1": [*X[shown, 0], 0.5], "u2": [*X[shown, 1], 0.25]}
    write(folder / "named.csv", named | axes)
    write(folder / "cell.csv", {"cell": named["name"], **axes})
    write(folder / "all.csv", {**FEATURES, "umap1": X[:, 0], "umap2": X[:, 1], "umap3": X[:, 2]})
    return folder, shown


def found_in(folder):
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record, pq.read_table(folder / "map.parquet").to_pydict()


def test_a_map_is_audited_by_the_order_of_its_rows(here):
    folder, _ = here
    done = gnomon("audit", "plain.csv", "--data", "X.npy", folder=folder)
    assert done.returncode == 0, done.stderr
    assert first_words(done)[-8:] == ["Audit", *[""] * 5, "Page", "Wrote"]
    assert "placed" in done.stderr
    assert "by their order" in done.stderr
    record, rows = found_in(folder / "plain_audit")
    expected = audit(X, X[:, :2], random_state=0)
    assert record["audit"]["misplaced"]["rows"] == int(expected.misplaced.sum())
    assert list(rows) == ["u1", "u2", "trust", "trustworthiness", "placement", "misplaced"]
    assert rows["misplaced"] == expected.misplaced.tolist()
    np.testing.assert_allclose(rows["trustworthiness"], expected.trustworthiness)
    page = (folder / "plain_audit" / "report.html").read_text(encoding="utf-8")
    assert "The map was given" in page
    assert sorted(path.name for path in (folder / "plain_audit").iterdir()) == [
        "map.parquet",
        "report.html",
        "run.json",
    ]


@pytest.mark.parametrize("ids", [["named.csv"], ["cell.csv", "--id", "cell", "--id", "name"]])
def test_rows_are_joined_by_ids(here, ids):
    folder, shown = here
    done = gnomon("audit", *ids, "--data", "data.csv", "-o", "ids", "--force", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "110 rows of 111" in done.stderr
    assert "1 only in" in done.stderr
    record, rows = found_in(folder / "ids")
    expected = audit(X[shown], X[shown, :2], random_state=0)
    assert rows["misplaced"] == expected.misplaced.tolist()
    assert rows["name"] == [NAMES[i] for i in shown]
    assert rows["kind"] == KINDS[shown].tolist()
    assert record["audit"]["scores"]["n"] == 110


def test_the_columns_of_the_map_are_named_where_there_are_others(here):
    folder, _ = here
    done = gnomon("audit", "all.csv", "--data", "X.npy", "-o", "all", folder=folder)
    assert refused(done, 2, "8 columns of numbers; a map has one to three", "--columns")
    done = gnomon(
        "audit", "all.csv", "--data", "X.npy", "--columns", "umap*", "-o", "all", folder=folder
    )
    assert done.returncode == 0, done.stderr
    expected = audit(X, X[:, :3], random_state=0)
    assert found_in(folder / "all")[1]["misplaced"] == expected.misplaced.tolist()


def test_scale_metric_and_sample_are_what_was_asked_for(here):
    folder, _ = here
    order = ["audit", "plain.csv", "--data", "X.npy", "-o", "how", "--force"]
    assert gnomon(*order, "--scale", "standard", folder=folder).returncode == 0
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    expected = audit(Z, X[:, :2], random_state=0)
    assert found_in(folder / "how")[1]["misplaced"] == expected.misplaced.tolist()
    assert gnomon(*order, "--metric", "cosine", "--sample", "50", folder=folder).returncode == 0
    record, rows = found_in(folder / "how")
    assert record["audit"]["scores"]["metric"] == "cosine"
    assert record["audit"]["misplaced"]["standard_error"] >= 0
    assert sum(value == value for value in rows["misplaced"]) == 50


def test_a_map_of_ours_is_made_again_from_shuffled_columns(here):
    folder, _ = here
    made = gnomon("map", "data.csv", "--force", folder=folder)
    assert made.returncode == 0, made.stderr
    said = made.stderr
    done = gnomon("audit", "data_map", "--json", "-q", "--force", folder=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["files"] == [
        f"data_map_audit/{n}" for n in ("report.html", "map.parquet", "run.json")
    ]
    assert told["audit"]["shuffles"] == 3
    page = (folder / "data_map_audit" / "report.html").read_text(encoding="utf-8")
    assert "The map was given" not in page
    rows, made = (pq.read_table(folder / f"{of}/map.parquet").to_pydict() for of in OURS)
    assert rows["among"] == made["among"]
    assert rows["among_in_data"] == made["among_in_data"]
    assert {"left", "right"} >= set(rows["among"]) - {None}
    assert any(rows["among"])  # rows at the border of the two kinds
    assert f"{sum(map(bool, rows['among']))} rows lie among another kind than their own" in said
    done = gnomon("audit", "data_map", "--id", "name", "--force", folder=folder)
    assert refused(done, 2, "--id is for")


def test_an_audit_has_the_trust_that_the_run_wrote(here):
    """A new search may have another recall, and two numbers for one row confuse."""
    folder, _ = here
    assert gnomon("map", "data.csv", "-o", "kept", "--force", folder=folder).returncode == 0
    table = pq.read_table(folder / "kept" / "map.parquet")
    other = pa.array(np.linspace(0, 1, N))
    at = table.column_names.index("trust")
    pq.write_table(table.set_column(at, "trust", other), folder / "kept" / "map.parquet")
    assert gnomon("audit", "kept", "--force", folder=folder).returncode == 0
    assert found_in(folder / "kept_audit")[1]["trust"] == other.to_pylist()


def test_a_sampled_map_of_ours_is_audited_without_being_made_again(here):
    folder, _ = here
    order = ["map", "data.csv", "--sample", "60", "-o", "some", "--force"]
    assert gnomon(*order, folder=folder).returncode == 0
    done = gnomon("audit", "some", "--force", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "the map was made of a part of the rows" in done.stderr
    assert len(found_in(folder / "some_audit")[1]["misplaced"]) == N


@pytest.mark.parametrize(
    ("order", "code", "says"),
    [
        (["plain.csv"], 2, "Use --data FILE"),
        (["nothing.csv", "--data", "X.npy"], 2, "MAP 'nothing.csv' is neither a file"),
        (["plain.csv", "--data", "nothing.npy"], 2, "--data 'nothing.npy' is neither"),
        (["named.csv", "--data", "X.npy"], 3, "named.csv has 111 rows and X.npy 120"),
        (["-", "--data", "-"], 2, "Only one table can come from standard input"),
        (["plain.csv", "--data", "X.npy", "--columns", "y*"], 2, 'no column of numbers "y*"'),
        (["plain.csv", "--data", "X.npy", "--shuffles", "2"], 2, "--shuffles"),
        (["words.csv", "--data", "X.npy"], 3, "words.csv"),
        (["cut.csv", "--data", "data.csv", "--id", "name"], 3, '"r1" twice'),
    ],
)
def test_maps_that_do_not_fit_are_refused_in_one_sentence(here, order, code, says):
    folder, _ = here
    write(folder / "words.csv", {"a": ["x", "y", "z"] * 40, "b": ["u", "v", "w"] * 40})
    write(
        folder / "cut.csv",
        {"name": ["r1", "r1", "r3"], "a": [0.5, 1.5, 2.5], "b": [1.25, 2.0, 3.5]},
    )
    done = gnomon("audit", *order, "-o", "refused", folder=folder, stdin="a,b\n1,2\n")
    assert refused(done, code, says)
    assert not (folder / "refused").exists()


def test_results_are_not_overwritten_unasked(here):
    folder, _ = here
    order = ["audit", "plain.csv", "--data", "X.npy", "-o", "twice"]
    assert gnomon(*order, folder=folder).returncode == 0
    assert refused(gnomon(*order, folder=folder), 2, "--force")
