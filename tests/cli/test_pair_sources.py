"""`gnomon align` and `gnomon compare` of folders, which are read in blocks."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import first_words, gnomon, refused
from engine.clusters import processes, within

from gnomon import Procrustes, compare
from gnomon.engine.cluster import connected

N = 90

pytestmark = pytest.mark.usefixtures("folders_in_blocks")


def pair():
    """Points, and the same turned, moved and blurred."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(N, 2)) * [3, 1]
    return Y[:, ::-1] * [1, -1] + 10 + 0.01 * rng.normal(size=(N, 2)), Y


def write(folder, X, names, ids=None, files=3):
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(X)), files)):
        columns = {} if ids is None else {ids[0]: ids[1][rows]}
        columns |= {name: X[rows, j] for j, name in enumerate(names)}
        pq.write_table(pa.table(columns), folder / f"part{i}.parquet")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    X, Y = pair()
    ids = 3 * np.arange(N)
    write(folder / "new", X, ["u", "v"])
    gap = X.copy()
    gap[35, 0] = np.nan
    write(folder / "gap", gap, ["u", "v"])
    write(folder / "old", Y, ["x", "y"], files=2)
    write(folder / "few", Y[::2], ["x", "y"])
    write(folder / "new_ids", X[::2], ["u", "v"], ("cell", ids[::2]))
    write(folder / "old_ids", Y[::3], ["x", "y"], ("cell", ids[::3]), files=2)
    write(folder / "other_ids", Y[::3], ["x", "y"], ("row", ids[::3]), files=2)
    write(folder / "mixed_ids", Y[::-1], ["x", "y"], ("cell", ids[::-1]))
    write(folder / "far_ids", Y, ["x", "y"], ("cell", ids + 1))
    write(folder / "large_ids", Y, ["x", "y"], ("cell", ids + 2**53))
    write(folder / "text_ids", X, ["u", "v"], ("id", np.array([f"r{i}" for i in ids])))
    pc.write_csv(pa.table({"x": Y[:, 0], "y": Y[:, 1]}), folder / "old.csv")
    np.save(folder / "old.npy", Y)
    return folder


def numbers(path):
    table = pq.read_table(path)
    return table.column_names, np.column_stack([column.to_numpy() for column in table.columns])


@pytest.mark.parametrize("old", ["old", "old.csv", "old.npy"])
def test_folders_are_aligned_by_the_order_of_their_rows(here, tmp_path, old):
    out = tmp_path / "out.parquet"
    done = gnomon("align", "new", "--to", old, "-o", out, "--json", folder=here)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == [*2 * ["Read", "Features", "Blocks"], "Shared", "Fit", "Wrote"]
    assert f"90 rows of 90 in new and 90 in {old}, by their order" in done.stderr
    X, Y = pair()
    model = Procrustes().fit(X, Y)
    names, moved = numbers(out)
    assert names == (["column 1", "column 2"] if old == "old.npy" else ["x", "y"])
    np.testing.assert_allclose(moved, model.transform(X), atol=1e-9)
    found = json.loads(done.stdout)
    assert found["files"] == [str(out)]
    assert (found["new"], found["old"], found["id"], found["shared"]) == ("new", old, None, 90)
    assert found["rmsd"] == pytest.approx(model.rmsd_)
    assert found["scale"] == 1
    assert found["certificate"].keys() == model.certificate_.to_dict().keys()


@pytest.mark.parametrize("old", ["old_ids", "other_ids"])
def test_folders_are_joined_by_ids_that_ascend(here, tmp_path, old):
    out = tmp_path / "out.parquet"
    ids = ["--id", "cell"] if old == "old_ids" else ["--id", "cell", "--id", "row"]
    done = gnomon("align", "new_ids", "--to", old, *ids, "-o", out, "--json", folder=here)
    assert done.returncode == 0, done.stderr
    assert f"15 rows of 45 in new_ids and 30 in {old}, by cell" in done.stderr
    X, Y = pair()
    model = Procrustes().fit(X[::6], Y[::6])
    names, moved = numbers(out)
    assert names == ["cell", "x", "y"]
    assert moved[:, 0].tolist() == list(range(0, 3 * N, 6))  # all rows of NEW move along
    np.testing.assert_allclose(moved[:, 1:], model.transform(X[::2]), atol=1e-9)
    found = json.loads(done.stdout)
    assert (found["n_only_new"], found["n_only_old"]) == (30, 15)


def test_options_reach_the_fit(here, tmp_path):
    out = tmp_path / "out.npy"
    order = ("align", "new", "--to", "old", "-o", out, "--scaling", "yes", "--reflection", "force")
    done = gnomon(*order, "--threads", "1", folder=here)
    assert done.returncode == 0, done.stderr
    assert ", mirrored" in done.stderr
    X, Y = pair()
    expected = Procrustes(scaling=True, reflection="force").fit(X, Y).transform(X)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-9)
    assert refused(gnomon(*order, folder=here), 2, "exists. Use --force")


def test_a_robust_fit_of_folders_is_that_of_the_tables(here, tmp_path):
    X, Y = pair()
    Y[:9] += 20
    write(tmp_path / "moved", Y, ["x", "y"])
    order = ("align", "new", "--to", tmp_path / "moved", "-o", tmp_path / "out.npy")
    done = gnomon(*order, "--robust", "tukey", folder=here)
    assert done.returncode == 0, done.stderr
    expected = Procrustes(robust="tukey").fit(X, Y)
    assert expected.weights_[:9].max() == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected.transform(X), atol=1e-9)


def test_folders_are_compared_by_cosine(here):
    order = ("compare", "new", "old", "--permutations", "9", "--metric", "cosine", "--json")
    done = gnomon(*order, folder=here)
    found, expected = json.loads(done.stdout), compare(*pair(), metric="cosine")
    for name in ("n", "correlation", "rmsd", "rv", "unbiased_cka", "neighbor_overlap"):
        assert found[name] == pytest.approx(getattr(expected, name)), name
    assert "cosine: rows divided by their lengths" in done.stderr
    assert refused(
        gnomon(*order, "--rows", "r.csv", folder=here), 2, "--rows needs tables that fit"
    )


def test_folders_are_compared(here):
    done = gnomon("compare", "new", "old", "--permutations", "99", "--json", folder=here)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == [
        *2 * ["Read", "Features", "Blocks"],
        "Shared",
        "Distance",
        "Alike",
        "RV",
        "Near",
        "Changed",
        "p-value",
    ]
    found, expected = json.loads(done.stdout), compare(*pair())
    for name in ("n", "correlation", "rmsd", "rv", "unbiased_cka", "neighbor_overlap"):
        assert found[name] == pytest.approx(getattr(expected, name)), name
    assert found["p_value"] == 0.01
    assert found["shuffled_rows"] == N
    joined = gnomon(
        "compare",
        "new_ids",
        "old_ids",
        "--id",
        "cell",
        "--permutations",
        "9",
        "--json",
        "--columns",
        "u",
        "--columns",
        "x*",
        folder=here,
    )
    assert "no column of numbers" in joined.stderr  # the one has no u, the other no x
    joined = gnomon(
        "compare",
        "new_ids",
        "old_ids",
        "--id",
        "cell",
        "--permutations",
        "9",
        "--json",
        folder=here,
    )
    assert json.loads(joined.stdout)["n"] == 15
    assert json.loads(joined.stdout)["n_only_a"] == 30


def test_of_a_sample_it_is_said_that_it_is_one(here, monkeypatch):
    for name in ("compare", "permute"):
        monkeypatch.setattr(sys.modules[f"gnomon.procrustes.{name}"], "SAMPLE_ROWS", 40)
    done = gnomon("compare", "new", "old", "--permutations", "9", folder=here)
    assert "among 40 rows drawn at random" in done.stderr
    assert "of 9 shuffles, of 40 rows as alike" in done.stderr


def test_columns_are_chosen_by_patterns_and_maps_by_themselves(here, tmp_path):
    X, Y = pair()
    for name, Z in (("a", X), ("b", Y)):
        write(tmp_path / name, np.column_stack([Z, Z + 1]), ["tsne1", "tsne2", "pc1", "pc2"])
    out = tmp_path / "out.parquet"
    done = gnomon("align", "a", "--to", "b", "-o", out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert numbers(out)[0] == ["tsne1", "tsne2"]
    done = gnomon(
        "align", "a", "--to", "b", "-o", out, "--force", "--columns", "pc*", folder=tmp_path
    )
    assert numbers(out)[0] == ["pc1", "pc2"]
    np.testing.assert_allclose(numbers(out)[1], Y + 1, atol=0.1)


def test_ids_of_another_name_are_not_taken_for_a_column_of_that_name(tmp_path):
    X, Y = pair()
    ids = 3.0 * np.arange(N)
    write(tmp_path / "new", X[::2], ["u", "v"], ("t", ids[::2]))
    write(tmp_path / "old", np.column_stack([ids + 6, Y, ids]), ["t", "x", "y", "row"])
    order = ("compare", "new", "old", "--id", "t", "--id", "row", "--permutations", "9", "--json")
    done = gnomon(*order, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == N // 2


@pytest.mark.parametrize(("missing", "id"), [("mean", ()), ("em", ()), ("drop", ("--id", "cell"))])
def test_gaps_of_folders_are_treated_as_those_of_a_file(here, tmp_path, missing, id):
    """And labels go with the rows that are left."""
    X, Y = pair()
    X[35, 0] = X[60, 1] = np.nan
    kinds = np.array(["ash", "oak", "yew"])[np.arange(N) % 3]
    numbers = {"u": X[:, 0], "v": X[:, 1], "kind": kinds}
    table = pa.table(({"cell": 2 * np.arange(N)} if id else {}) | numbers)
    (tmp_path / "new").mkdir()
    pq.write_table(table[:50], tmp_path / "new" / "0.parquet")
    pq.write_table(table[50:], tmp_path / "new" / "1.parquet")
    pq.write_table(table, tmp_path / "new.parquet")
    write(tmp_path / "old", Y, ["x", "y"], ("cell", 2 * np.arange(N)) if id else None)
    pq.write_table(pq.read_table(tmp_path / "old"), tmp_path / "old.parquet")
    for end in ("", ".parquet"):
        order = ("align", f"new{end}", "--to", f"old{end}", "-o", f"out{end or '_.parquet'}", *id)
        done = gnomon(*order, "--missing", missing, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Missing" in first_words(done)
    blocks, held = (pq.read_table(tmp_path / f"out{end}.parquet") for end in ("_", ""))
    for name in ("x", "y"):
        np.testing.assert_allclose(blocks[name].to_numpy(), held[name].to_numpy(), atol=1e-9)
    assert blocks["kind"].to_pylist() == held["kind"].to_pylist()
    assert len(blocks) == (N - 2 if id else N)


def test_ids_that_are_not_looked_at_are_named(here, tmp_path):
    done = gnomon("align", "text_ids", "--to", "old", "-o", tmp_path / "o.npy", folder=here)
    assert done.returncode == 0, done.stderr
    assert 'Note     "id" not looked at: rows belong together by their order' in done.stderr


@pytest.mark.parametrize(
    ("order", "code", "says"),
    [
        (["align", "new", "--to", "few", "-o", "n.npy"], 3, "new has 90 rows and few 45"),
        (["align", "new", "--to", "old"], 2, "written to a file that ends in .npy or .parquet"),
        (["align", "new", "--to", "old", "-o", "n.csv"], 2, "got 'n.csv'. Name one with -o"),
        (["align", "new", "--to", "old", "-o", "n.npy", "--missing", "drop"], 2, "--missing drop"),
        (
            ["compare", "new_ids", "old_ids", "--id", "cell", "--missing", "mean"],
            2,
            "--missing mean needs the whole table in memory",
        ),
        (["align", "-", "--to", "old", "-o", "n.npy"], 2, "Standard input is not read in blocks"),
        (
            ["align", "new_ids", "--to", "mixed_ids", "--id", "cell", "-o", "n.npy"],
            3,
            "The ids of mixed_ids must ascend to be joined in blocks",
        ),
        (
            ["compare", "text_ids", "old", "--id", "id"],
            3,
            'part0.parquet: column "id" holds text, '
            "not numbers. In blocks --id must be a column of numbers that ascends.",
        ),
        (
            ["compare", "new_ids", "old_ids", "--id", "cel"],
            2,
            'part0.parquet has no column "cel", named by the option --id. Did you mean "cell"?',
        ),
        (
            ["align", "old.npy", "--to", "old", "--id", "cell", "-o", "n.npy"],
            2,
            'old.npy has no column "cell", named by the option --id',
        ),
        (
            ["compare", "new_ids", "far_ids", "--id", "cell"],
            3,
            "new_ids and far_ids have no id in common in the column 'cell'",
        ),
        (
            ["compare", "new_ids", "large_ids", "--id", "cell"],
            3,
            "The ids of large_ids must be between -2^53 and 2^53",
        ),
        (
            ["compare", "gap", "old"],
            3,
            "gap holds 1 missing value (NaN), the first in part1.parquet at row 5, column 'u'",
        ),
        (["compare", "new", "iris"], 2, "There is no file or folder 'iris'. Check the name."),
        (
            ["align", "none", "--to", "old", "-o", "n.npy", "--workers", "1"],
            2,
            "There is no file or folder 'none'. Check the name.",
        ),
        (["compare", "new", "old", "--dask", "x:1", "--workers", "1"], 2, "mutually exclusive"),
    ],
)
def test_what_cannot_be_done_in_blocks_is_refused(here, order, code, says):
    done = gnomon(*order, folder=here, stdin="x,y\n1,2\n")
    assert refused(done, code, says), done.stderr
    assert not list(here.glob("n.*"))


def test_workers_and_a_cluster_align_and_compare_with_the_bytes_of_this_process(
    here, tmp_path, monkeypatch
):
    def written(*order, where=()):
        """The file, and whether it is said where the work was done."""
        out = tmp_path / ("out.json" if order[0] == "compare" else "out.parquet")
        done = gnomon(*order, *where, "-o", out, "--force", folder=here)
        assert done.returncode == 0, done.stderr
        assert ("Cluster" in first_words(done)) == bool(where)
        return out.read_bytes()

    align = ("align", "new_ids", "--to", "old_ids", "--id", "cell", "--scaling", "yes")
    compare = ("compare", "new", "old", "--permutations", "19")
    aligned, compared = written(*align), written(*compare)
    assert written(*align, where=["--workers", "1", "--memory", "2GB"]) == aligned
    with within(120), processes(tmp_path) as cluster:  # whose processes work in another folder
        cluster.scheduler()
        cluster.worker()
        there = ["--dask", cluster.address()]
        assert written(*align, where=there) == aligned
        assert written(*compare, where=there) == compared
        # Workers that run already, in the place of three new ones, spare seconds.
        asked = []
        monkeypatch.setattr(
            "gnomon.engine.cluster.local_cluster",
            lambda workers: asked.append(workers) or connected(there[1]),
        )
        assert written(*compare, where=["--workers", "3"]) == compared
        assert asked == [3]
