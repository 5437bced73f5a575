"""`gnomon compare` as a user runs it: how alike two maps are."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from commands import first_words, gnomon, refused

from gnomon import compare, permutation_test

ORDER = ("compare", "a.csv", "b.csv", "--id", "id")


@pytest.fixture
def made(tmp_path):
    """Two tables of 40 shared rows in different orders, and one row more in each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = X[:, :2] + rng.normal(size=(40, 2)) / 4
    names = np.array([f"r{i}" for i in range(40)])
    turn = rng.permutation(40)
    write(tmp_path / "a.csv", [*names, "only_a"], np.vstack([X, [1, 2, 3]]))
    write(tmp_path / "b.csv", ["only_b", *names[turn]], np.vstack([[1, 2], Y[turn]]))
    return tmp_path, X, Y


def write(path, ids, X):
    columns = {f"v{j}": axis for j, axis in enumerate(X.T)}
    pc.write_csv(pa.table({"id": list(ids), **columns}), path)


def strict(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_words_go_to_stderr_and_say_all_measures(made):
    done = gnomon(*ORDER, folder=made[0])
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert first_words(done) == [
        *2 * ["Read", "Features", "Id"],
        "Shared",
        "Alone",
        "Alone",
        "Distance",
        "Alike",
        "RV",
        "Near",
        "Changed",
        "p-value",
    ]
    assert "40 rows of 41 in a.csv and 41 in b.csv, by id" in done.stderr
    assert "p-value  0.001: 0 of 999 shuffles as alike" in done.stderr
    assert sorted(os.listdir(made[0])) == ["a.csv", "b.csv"]


def test_json_holds_what_the_library_finds_on_the_shared_rows(made):
    folder, X, Y = made
    done = gnomon(
        *ORDER,
        "--json",
        "-q",
        "--permutations",
        "99",
        "--neighbors",
        "5",
        "--seed",
        "7",
        folder=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = strict(done.stdout)
    expected = compare(X, Y, n_neighbors=5).to_dict()
    test = permutation_test(X, Y, 99, random_state=7)
    assert found["p_value"] == test.p_value
    assert (found["n_permutations"], found["seed"], found["id"]) == (99, 7, "id")
    assert (found["only_a"], found["only_b"]) == (["only_a"], ["only_b"])
    assert found["metric"] == expected.pop("metric")
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9)


def test_a_file_gets_the_format_of_its_ending_and_is_not_overwritten(made):
    folder = made[0]
    assert gnomon(*ORDER, "-o", "c.json", folder=folder).returncode == 0
    numbers = strict((folder / "c.json").read_text())
    done = gnomon(*ORDER, "-o", "c.csv", folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == "Wrote    c.csv"
    (row,) = pc.read_csv(folder / "c.csv").to_pylist()
    assert row["correlation"] == pytest.approx(numbers["correlation"])
    assert (row["a"], row["b"], row["n_only_a"]) == ("a.csv", "b.csv", 1)
    assert refused(gnomon(*ORDER, "-o", "c.json", folder=folder), 2, "c.json exists. Use --force")
    assert strict((folder / "c.json").read_text()) == numbers


def test_unrelated_tables_have_a_large_p_value(made):
    folder = made[0]
    names = [f"r{i}" for i in range(40)]
    write(folder / "n.csv", names, np.random.default_rng(5).normal(size=(40, 2)))
    done = gnomon("compare", "a.csv", "n.csv", "--id", "id", "--json", folder=folder)
    assert strict(done.stdout)["p_value"] > 0.05


def test_what_three_rows_cannot_tell_is_null_in_json_and_unsaid_in_words(tmp_path):
    write(tmp_path / "a.csv", "abc", np.array([[0.5, 0], [1, 0], [0, 2]]))
    done = gnomon("compare", "a.csv", "a.csv", "--id", "id", "--json", folder=tmp_path)
    assert strict(done.stdout)["unbiased_cka"] is None
    assert "nan" not in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("id,x\nq,1.5\nr,2\n", 3, ["share no row"]),
        ("id,x\nr1,1.5\nr1,2\n", 3, ['has "r1" twice, in line 2 and line 3']),
        ("key,x\nr1,1.5\nr2,2\n", 2, ['no column "id"']),
        ("id,x\nr1,1.5\nr2,inf\n", 3, ["infinit"]),
        ("id,x\nr1,1.5\nr2,1.5\nr3,1.5\n", 3, ["bad.csv", "the same point"]),
    ],
    ids=["no shared", "duplicate", "missing column", "infinite", "no shape"],
)
def test_bad_tables_are_refused_in_one_sentence(made, text, code, says):
    (made[0] / "bad.csv").write_text(text)
    done = gnomon("compare", "a.csv", "bad.csv", "--id", "id", "--json", folder=made[0])
    assert refused(done, code, *says)


def test_ids_of_different_names_are_named_one_after_the_other(made):
    folder, X, _ = made
    write(folder / "k.csv", [f"r{i}" for i in range(40)], X[:, ::-1])
    text = (folder / "k.csv").read_text()
    (folder / "k.csv").write_text(text.replace('"id"', '"key"'))
    done = gnomon("compare", "a.csv", "k.csv", folder=folder)
    assert refused(done, 2, 'named by "id" and "key"', "such as --id id --id key")
    done = gnomon("compare", "a.csv", "k.csv", "--id", "id", "--id", "key", "--json", folder=folder)
    found = strict(done.stdout)
    assert (found["id"], found["n"]) == ("id and key", 40)
    assert found["correlation"] == pytest.approx(1)
    assert "40 rows of 41 in a.csv and 40 in k.csv, by id and key" in done.stderr
    done = gnomon("compare", "a.csv", "k.csv", "--id", "key", "--id", "id", folder=folder)
    assert refused(done, 2, 'a.csv has no column "key"')
    done = gnomon("compare", "a.csv", "k.csv", *["--id", "id"] * 3, folder=folder)
    assert refused(done, 2, "--id may be given twice", "got 3 columns")


def test_missing_and_wrong_files_are_told_before_any_work(made):
    assert refused(gnomon("compare", "a.csv", "no.csv", folder=made[0]), 2, "no file 'no.csv'")
    done = gnomon(*ORDER, "-o", "c.xlsx", folder=made[0])
    assert refused(done, 2, "-o must end in one of", ".json")


def test_cosine_reaches_the_library_and_is_named(made):
    folder, X, Y = made
    done = gnomon(*ORDER, "--metric", "cosine", "--json", folder=folder)
    found = strict(done.stdout)
    expected = compare(X, Y, metric="cosine").to_dict()
    assert found["metric"] == expected.pop("metric") == "cosine"
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert "Distance cosine: rows divided by their lengths" in done.stderr
    assert "Distance euclidean: rows as they are" in gnomon(*ORDER, folder=folder).stderr


def test_a_row_without_a_direction_is_named(made):
    folder, X, _ = made
    X[3] = 0
    write(folder / "zero.csv", [f"r{i}" for i in range(40)], X)
    order = ("compare", "zero.csv", "b.csv", "--id", "id", "--metric", "cosine")
    assert refused(gnomon(*order, folder=folder), 3, 'zero.csv: row "r3" is all 0')


def test_lengths_that_decide_are_told_where_no_metric_was_asked_for(made):
    folder, X, _ = made
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    names = [f"r{i}" for i in range(40)]
    write(folder / "unit.csv", names, unit)
    order = ("compare", "a.csv", "unit.csv", "--id", "id")
    said = gnomon(*order, folder=folder).stderr
    assert "Note     rows of one table all have length 1, those of the other 0." in said
    assert "--metric cosine" in said
    assert "Note" not in gnomon(*order, "--metric", "euclidean", folder=folder).stderr
    assert "Note" not in gnomon(*ORDER, folder=folder).stderr  # maps have rows of any length


def test_json_on_stdout_and_in_a_file_is_the_same_figures_first_and_lists_short(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2))
    write(tmp_path / "a.csv", [f"r{i}" for i in range(300)], X)
    write(tmp_path / "b.csv", [f"r{i}" for i in range(20)], X[:20, ::-1])
    order = ("compare", "a.csv", "b.csv", "--id", "id", "--json", "-o", "x.json")
    done = gnomon(*order, folder=tmp_path)
    found = strict(done.stdout)
    assert found == strict((tmp_path / "x.json").read_text())
    assert (found["n_only_a"], len(found["only_a"]), found["only_b"]) == (280, 100, [])
    names = list(found)
    assert max(map(names.index, ("n", "neighbor_overlap", "p_value", "conditions"))) < min(
        map(names.index, ("changed_rows", "only_a", "only_b"))
    )


def swapped(folder):
    """Two tables of ten groups, of which four rows exchange their places."""
    rng = np.random.default_rng(0)
    X = 20 * np.repeat(np.arange(10), 20)[:, None] + rng.normal(size=(200, 2))
    Y = X.copy()
    Y[[0, 100, 40, 160]] = X[[100, 0, 160, 40]]
    names = np.array([f"r{i}" for i in range(200)])
    write(folder / "a.csv", names, X)
    write(folder / "b.csv", [*names, "z"], np.vstack([Y, [[0, 0]]]))
    return X, Y, names


def test_rows_that_changed_are_named_with_what_they_lost_and_gained(tmp_path):
    X, Y, names = swapped(tmp_path)
    done = gnomon(*ORDER, "--json", "--rows", "rows.csv", folder=tmp_path)
    found, changes = strict(done.stdout), compare(X, Y).changes
    assert {row["id"] for row in found["changed_rows"]} == {"r0", "r100", "r40", "r160"}
    assert found["n_changed"] == 4
    assert f'former neighbours): "{names[changes.changed[0]]}", ' in done.stderr
    first = next(row for row in found["changed_rows"] if row["id"] == "r0")
    lost = set(changes.near_x[0].tolist()) - set(changes.near_y[0].tolist())
    assert set(first["lost"]) == {f"r{i}" for i in lost}
    assert found["files"] == ["rows.csv"]
    rows = {row["id"]: row for row in pc.read_csv(tmp_path / "rows.csv").to_pylist()}
    assert len(rows) == 201
    assert (rows["z"]["found_in"], rows["z"]["changed"]) == ("b", False)
    assert rows["r0"]["lost"].split("; ") == first["lost"]
    assert {name for name, row in rows.items() if row["changed"]} == {"r0", "r100", "r40", "r160"}


def test_two_paths_in_python_are_joined_as_by_the_command(made, monkeypatch):
    folder, X, Y = made
    monkeypatch.chdir(folder)
    found = compare("a.csv", "b.csv", id="id", metric="cosine")
    expected = compare(X, Y, metric="cosine")
    assert found.metric == "cosine"
    assert found.disparity == pytest.approx(expected.disparity, rel=1e-9)
    assert found.neighbor_overlap == expected.neighbor_overlap
    assert found.ids == tuple(f"r{i}" for i in range(40))
    assert compare("a.csv", "b.csv") == compare("a.csv", "b.csv", id="id")  # a column named so
