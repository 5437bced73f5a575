"""`gnomon align` as a user runs it: one map laid on another."""

import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from commands import first_words, gnomon, refused

from gnomon import align, load

OLD = "id,x,y\na,0,0.5\nb,1,0\nc,0,2.5\nd,3,3.5\n"
# b, d and a of OLD mirrored (x and y exchanged) and moved by 10; z is new
NEW = "id,u,v\nd,13.5,13\na,10.5,10\nb,10,11\nz,1,2\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "old.csv").write_text(OLD)
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path


def table_of(done):
    assert done.returncode == 0, done.stderr
    return pc.read_csv(io.BytesIO(done.stdout.encode()))


def numbers(table, names):
    return np.column_stack([table[name].to_numpy() for name in names])


def test_every_row_of_new_comes_out_in_the_frame_of_old(folder):
    done = gnomon("align", "new.csv", "--to", "old.csv", "--id", "id", folder=folder)
    table = table_of(done)
    assert table.column_names == ["id", "x", "y"]
    assert table["id"].to_pylist() == ["d", "a", "b", "z"]
    expected = [[3, 3.5], [0, 0.5], [1, 0], [-8, -9]]
    assert np.allclose(numbers(table, "xy"), expected, atol=1e-12)
    assert sorted(os.listdir(folder)) == ["new.csv", "old.csv"]


def test_it_says_what_is_shared_how_close_it_came_and_what_had_no_partner(folder):
    done = gnomon("align", "new.csv", "--to", "old.csv", "--id", "id", folder=folder)
    assert first_words(done) == [
        *2 * ["Read", "Features", "Id"],
        "Shared",
        "Alone",
        "Alone",
        "Fit",
        "Warning",
    ]
    assert "3 rows of 4 in new.csv and 4 in old.csv, by id" in done.stderr
    assert '1 only in new.csv: "z"' in done.stderr
    assert '1 only in old.csv: "c"' in done.stderr
    assert "scale 1, mirrored" in done.stderr
    assert "3 shared rows in 2 dimensions are too few for a verdict" in done.stderr


def test_a_file_gets_the_format_of_its_ending_and_is_not_overwritten(folder):
    order = ("align", "new.csv", "--to", "old.csv", "--id", "id", "-o", "out.parquet")
    done = gnomon(*order, folder=folder)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines()[-1] == "Wrote    out.parquet"
    assert pq.read_table(folder / "out.parquet").column_names == ["id", "x", "y"]
    before = (folder / "out.parquet").read_bytes()
    assert refused(gnomon(*order, folder=folder), 2, "out.parquet exists. Use --force")
    assert (folder / "out.parquet").read_bytes() == before
    done = gnomon(*order, "--force", "-q", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("scaling", "robust", "outlier"),
    [("yes", "tukey", "y"), ("norm-ratio", "tukey", "x"), ("yes", "no", "x")],
)
def test_scaling_and_robust_reach_the_fit(folder, scaling, robust, outlier):
    Y = np.random.default_rng(0).normal(size=(30, 2))
    tables = {"x": 3 * Y[:, ::-1] + 5, "y": Y.copy()}
    tables[outlier][0] += 100
    write_pair(folder, tables)
    done = gnomon(
        "align",
        "x.csv",
        "--to",
        "y.csv",
        "--id",
        "id",
        "--scaling",
        scaling,
        "--robust",
        robust,
        folder=folder,
    )
    found = numbers(table_of(done), "pq")
    expected = align(
        tables["x"],
        tables["y"],
        scaling={"yes": True}.get(scaling, scaling),
        robust=False if robust == "no" else robust,
    )
    assert np.allclose(found, expected.aligned, rtol=1e-9, atol=1e-9)
    if robust == "tukey":
        assert np.allclose(found[1:], Y[1:], atol=1e-9)
        assert "scale 0.3333, mirrored" in done.stderr
        assert 'farthest "r0"' in done.stderr


def test_a_mirror_can_be_forbidden(folder):
    Y = np.random.default_rng(0).normal(size=(30, 2))
    write_pair(folder, {"x": Y[:, ::-1], "y": Y})
    order = ("align", "x.csv", "--to", "y.csv", "--id", "id")
    assert "scale 1, mirrored;" in gnomon(*order, folder=folder).stderr
    done = gnomon(*order, "--reflection", "forbid", folder=folder)
    assert done.returncode == 0
    assert "scale 1;" in done.stderr


def write_pair(folder, tables):
    names = [f"r{i}" for i in range(30)]
    for name, Z in tables.items():
        pc.write_csv(pa.table({"id": names, "p": Z[:, 0], "q": Z[:, 1]}), folder / f"{name}.csv")


def test_of_tables_by_gnomon_map_the_map_is_taken_and_columns_overrule_it(folder):
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        table = {"cell": [f"c{i}" for i in range(9)]}
        for column in ("tsne1", "tsne2", "pc1", "pc2", "pc3", "trust"):
            table[column] = rng.normal(size=9)
        (folder / name).mkdir()
        pq.write_table(pa.table(table), folder / name / "map.parquet")
    order = ("align", "b/map.parquet", "--to", "a/map.parquet", "--id", "cell")
    done = gnomon(*order, folder=folder)
    assert table_of(done).column_names == ["cell", "tsne1", "tsne2"]
    assert "pc1, pc2, pc3, trust (not the map: --columns to use others)" in done.stderr
    assert "in b/map.parquet and 9 in a/map.parquet" in done.stderr  # not two of one name
    done = gnomon(*order, "--columns", "pc*", folder=folder)
    assert table_of(done).column_names == ["cell", "pc1", "pc2", "pc3"]
    done = gnomon(*order, "--columns", "umap1", folder=folder)
    assert refused(done, 2, 'no column of numbers "umap1"', '"tsne1"')


def test_what_is_warned_of_is_said_and_on_record(folder):
    (folder / "point.csv").write_text("id,u,v\na,1.5,2\nb,1.5,2\nd,1.5,2\n")
    order = ("align", "point.csv", "--to", "old.csv", "--id", "id", "-o", "out.csv", "--json")
    done = gnomon(*order, folder=folder)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Warning")]
    assert "all rotations fit equally well" in line
    assert json.loads(done.stdout)["warnings"] == [line.removeprefix("Warning  ")]


def test_no_option_is_offered_that_align_has_not(folder):
    rows = [f"{i}.5,{i * i % 7}.25,{'true' if i % 3 else 'false'},{i % 2}" for i in range(20)]
    (folder / "t.csv").write_text("\n".join(["x,y,odd,half", *rows]) + "\n")
    done = gnomon("align", "t.csv", "--to", "t.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Label    odd\n" in done.stderr
    assert "Colour   kept for colour: half (few distinct whole numbers)\n" in done.stderr
    assert "--keep" not in done.stderr


def test_rows_without_ids_belong_together_by_their_order(folder):
    (folder / "p.csv").write_text("x,y\n0.5,0\n1.5,0\n0.5,2\n")
    (folder / "q.csv").write_text("x,y\n5.5,5\n6.5,5\n5.5,7\n")
    done = gnomon("align", "p.csv", "--to", "q.csv", folder=folder)
    assert np.allclose(numbers(table_of(done), "xy"), [[5.5, 5], [6.5, 5], [5.5, 7]])
    assert "by their order" in done.stderr
    (folder / "q.csv").write_text("x,y\n5.5,5\n6.5,5\n")
    done = gnomon("align", "p.csv", "--to", "q.csv", folder=folder)
    assert refused(done, 3, "p.csv has 3 rows and q.csv 2", "Use --id COLUMN")


def test_rows_are_joined_by_the_only_column_that_names_them_in_both(folder):
    """Equal numbers of rows in another order: joined by their order, they would be other pairs."""
    (folder / "p.csv").write_text("word,x,y\nash,0.5,0\noak,1.5,0\nyew,0.5,2\n")
    (folder / "q.csv").write_text("word,x,y\nyew,5.5,7\nash,5.5,5\noak,6.5,5\n")
    done = gnomon("align", "p.csv", "--to", "q.csv", folder=folder)
    assert np.allclose(numbers(table_of(done), "xy"), [[5.5, 5], [6.5, 5], [5.5, 7]])
    assert "by word" in done.stderr
    # The same name, but no row in common: not a column that joins them.
    (folder / "q.csv").write_text("word,x,y\nEsche,5.5,5\nEiche,6.5,5\nEibe,5.5,7\n")
    done = gnomon("align", "p.csv", "--to", "q.csv", folder=folder)
    assert np.allclose(numbers(table_of(done), "xy"), [[5.5, 5], [6.5, 5], [5.5, 7]])
    assert "by their order" in done.stderr


def test_tables_of_unequal_widths_are_aligned_in_the_columns_of_old(folder):
    (folder / "thin.csv").write_text("id,t\na,1.5\nb,2\nd,5\n")
    done = gnomon("align", "thin.csv", "--to", "old.csv", "--id", "id", folder=folder)
    assert table_of(done).column_names == ["id", "x", "y"]
    assert "Columns  1 of thin.csv, 2 of old.csv: the result has 2\n" in done.stderr
    done = gnomon("align", "old.csv", "--to", "thin.csv", "--id", "id", folder=folder)
    assert table_of(done).column_names == ["id", "t"]
    order = ("align", "thin.csv", "--to", "old.csv", "--id", "id", "--reflection", "forbid")
    assert refused(gnomon(*order, folder=folder), 2, "different widths")


def test_one_table_may_come_from_standard_input(folder):
    done = gnomon("align", "-", "--to", "old.csv", "--id", "id", folder=folder, stdin=NEW)
    assert table_of(done)["id"].to_pylist() == ["d", "a", "b", "z"]
    done = gnomon("align", "-", "--to", "-", "--id", "id", folder=folder, stdin=NEW)
    assert refused(done, 2, "Only one table")


def test_standard_input_that_memory_does_not_hold_is_refused(folder, monkeypatch):
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 1)
    monkeypatch.setattr("gnomon.data.open.fits", lambda path, *_: path.name == "old.csv")
    done = gnomon("align", "-", "--to", "old.csv", folder=folder, stdin=NEW)
    assert refused(done, 2, "standard input does not fit into memory. Save it as a file")


def test_a_sparse_matrix_is_refused(folder):
    scipy.sparse.save_npz(folder / "s.npz", scipy.sparse.random_array((9, 4), density=0.5))
    for order in (("align", "s.npz", "--to", "s.npz"), ("compare", "s.npz", "s.npz")):
        assert refused(gnomon(*order, folder=folder), 3, "s.npz is a sparse matrix")


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("id,x,y\nq,1.5,2\nr,3,4\n", 3, ["share no row", '"q", "r"', '"a", "b", "c" and 1 more']),
        ("id,x,y\na,1.5,2\nr,3,4\n", 3, ["share only one row"]),
        ("id,x,y\na,1.5,2\nb,3,4\na,5,6\n", 3, ['has "a" twice, in line 2 and line 4']),
        ("id,x,y\na,1.5,2\n,3,4\nb,5,6\n", 3, ['line 3 has no id in column "id"']),
        ("name,x,y\na,1.5,2\nb,3,4\n", 2, ['no column "id"', '"name", "x", "y"']),
        ("id,x,y\na,1.5,\nb,3,4\n", 3, ["1 missing value", "line 2", "--missing drop"]),
        ("id,x,y\na,u,v\nb,s,t\n", 3, ["no column of numbers"]),
    ],
    ids=["no shared", "one shared", "duplicate", "blank", "missing column", "gap", "text"],
)
def test_bad_tables_are_refused_in_one_sentence(folder, text, code, says):
    (folder / "bad.csv").write_text(text)
    order = ("align", "bad.csv", "--to", "old.csv", "--id", "id", "-o", "out.csv")
    assert refused(gnomon(*order, folder=folder), code, *says)
    assert not (folder / "out.csv").exists()


def test_rows_with_gaps_can_be_dropped(folder):
    (folder / "gap.csv").write_text(NEW + "c,,9\n")
    order = ("align", "gap.csv", "--to", "old.csv", "--id", "id", "--missing", "drop")
    done = gnomon(*order, folder=folder)
    assert table_of(done)["id"].to_pylist() == ["d", "a", "b", "z"]
    assert "1 row dropped" in done.stderr


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["align", "nope.csv", "--to", "old.csv"], "There is no file 'nope.csv'"),
        (["align", "new.csv", "--to", "old.csv", "-o", "out.xlsx"], "-o must end in one of .csv"),
        (["align", "new.csv", "--to", "old.csv", "-o", "no/out.csv"], "There is no folder 'no'"),
    ],
)
def test_wrong_usage_is_told_before_any_work(folder, order, says):
    done = gnomon(*order, folder=folder)
    assert refused(done, 2, says)
    assert len(done.stderr.splitlines()) == 1


def test_without_a_table_to_lie_on_it_is_wrong_usage(folder):
    done = gnomon("align", "new.csv", folder=folder, COLUMNS="200")
    assert done.returncode == 2
    assert "Missing option '--to'" in done.stderr


def test_a_wider_table_is_laid_on_the_columns_of_old_and_says_what_these_do_not_hold(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 5)), rng.normal(size=(30, 2))
    for name, Z in (("x", X), ("y", Y)):
        columns = {f"{name}{j}": Z[:, j] for j in range(Z.shape[1])}
        pc.write_csv(
            pa.table({"id": [f"r{i}" for i in range(30)]} | columns), tmp_path / f"{name}.csv"
        )
    order = ("align", "x.csv", "--to", "y.csv", "--scaling", "yes", "--model", "m.gnomon")
    done = gnomon(*order, folder=tmp_path)
    table, expected = table_of(done), align(X, Y, scaling=True)
    assert table.column_names == ["id", "y0", "y1"]
    assert np.allclose(numbers(table, ["y0", "y1"]), expected.aligned, atol=1e-9)
    said = f"which do not hold {100 * expected.outside:.1f} % of the squared lengths"
    assert f"5 of x.csv, 2 of y.csv: the result has 2, {said}" in done.stderr
    assert f"disparity {expected.disparity:.3g}: " in done.stderr
    assert "the best factor draws rows to the mean" in done.stderr
    model = load(tmp_path / "m.gnomon")
    assert np.allclose(model.transform(X[:3])[:, :2], expected.aligned[:3])
    assert refused(gnomon(*order, folder=tmp_path), 2, "m.gnomon exists. Use --force")
    assert refused(gnomon(*order[:-1], "m.csv", folder=tmp_path), 2, "--model must end in")
